"""What a reader of a release has to know of it: its format, and what an interval covers."""

FORMAT = "reticent-release/2"
COVERS = "privacy noise"
"""What a statistic's interval covers, and nothing else."""
