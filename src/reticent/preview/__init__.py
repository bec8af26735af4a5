"""What can be said of a plan before a row is read: its cost and its expected errors."""
