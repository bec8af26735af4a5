"""Read a plan: every section becomes a value that has checked itself. Public words only; no row is read."""
