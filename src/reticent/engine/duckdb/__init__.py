"""DuckDB: the connection in its sandbox, and the engine on it."""
