"""Rows from files and frames: CSV, Parquet, statistical packages, Arrow."""
