"""How strongly a column depends on its parents: whole numbers, with a proved reach of one record."""

import numpy as np

from reticent.synth.base import Counted

REACH = 4
_SAFE = 1 << 30  # n * n and twice that fit 64 bits


def dependence(table: Counted) -> int:
    """floor(sum |c - r s / n|): counts against those of independence, the column's own side last.

    That is 2 n R for PrivBayes' score R. R itself has a reach of 3/n + 2/n^2 when n is public and one row is replaced; here
    n is confidential, each table has its own, and none is divided by.

    Guarantee   moves by at most 4.
    Adjacency   one record added or removed.
    Theorem     the sum moves by 4 (n - r_a)(n - s_b) / (n (n + 1)) at most, which is below 4.
    Proof       proofs/synth/marginals/privbayes.md
    Assumes     one record is in at most one cell of `table`.
    Keeps back  the score, and how many rows the table holds.
    """
    joint = table.reshape(-1, table.shape[-1])
    n = int(joint.sum())
    if n == 0:
        return 0
    exact = joint if n < _SAFE else joint.astype(object)
    apart = n * exact - np.outer(exact.sum(axis=1), exact.sum(axis=0))
    return int(np.abs(apart).sum()) // n
