"""From exact tallies to noisy answers: the only place where the two meet.

Every answer is made of parts measured by `measure`, `measure_table` or `choose`; whatever is done with the
parts afterwards is post-processing. Nothing exact is kept in an answer.
"""
