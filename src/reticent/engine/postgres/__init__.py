"""PostgreSQL: its words, a fenced connection in one snapshot, and the engine on it."""
