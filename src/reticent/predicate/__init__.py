"""Conditions on respondents, `age >= 18 and sex in ('f')`: read, bound to codes, and judged in three values."""
