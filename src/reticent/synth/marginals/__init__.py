"""Synthesizers that learn from noisy marginal tables."""
