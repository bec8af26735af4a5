"""Run experiments: pieces of work, their summary and their figures."""
