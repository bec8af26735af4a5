"""Older definitions: k-anonymity, l-diversity, t-closeness. None of them is differential privacy.

They are properties of one table, read off its rows, and say nothing about what somebody who knows other tables can
learn. They are here for a curator's own eyes, to compare a candidate table with what was asked for in earlier years.
They live in the lab because nothing of the library may import the lab: so no release can rest on them.
"""
