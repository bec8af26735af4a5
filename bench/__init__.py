"""Measured, not guessed."""
