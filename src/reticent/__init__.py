"""reticent: differentially private releases from surveys that people did not finish answering."""

__version__ = "0.1.0"
