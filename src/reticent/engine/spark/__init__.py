"""Spark: rows on a cluster, behind the protocols."""
