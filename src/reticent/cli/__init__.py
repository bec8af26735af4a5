"""The command line: a thin door. Each command loads what it needs when it runs."""

from reticent.cli.main import main

__all__ = ["main"]
