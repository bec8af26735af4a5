"""The curator's desk."""
