"""Statements as trees: cleaning, encoding, sums and predictions."""
