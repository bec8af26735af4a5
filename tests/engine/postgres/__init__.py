"""PostgreSQL: its fence, its faults, and what reaches this side."""
