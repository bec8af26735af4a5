"""What a reader of a release has to know of it: its format, and from where on an estimate is called unreliable."""

FORMAT = "reticent-release/2"
RELIABLE, CAUTION = 0.15, 0.30
"""Coefficients of variation: up to the first an estimate is reliable, up to the second it is used with caution."""
COVERS = "privacy noise"
"""What a statistic's interval covers, and nothing else."""
