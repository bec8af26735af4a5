"""How far synthetic rows are from the truth: for trials, where the truth is in hand. Nothing here is private."""
