"""Rows from private models: what is counted, what is learned from it, and what is done about missing values."""
