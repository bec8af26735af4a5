"""How far two fillings of the same row can be apart, where nothing is drawn: from their whole coefficients alone."""

from collections.abc import Sequence

from reticent.prepare.chances import Chances
from reticent.prepare.lines import SCALE, RegressionLine


def apart(one: Sequence[RegressionLine | Chances], two: Sequence[RegressionLine | Chances]) -> dict[str, int]:
    """For each column that is filled, the largest difference between a row's codes; both fill the same in the same order.

    Guarantee   no row's filled code differs by more, whatever its answers are.
    Adjacency   none: it compares two fillings of one row.
    Theorem     a line's total is linear in codes between public bounds; holding is a contraction; floors of numbers d
                apart differ by at most ceil(d).
    Proof       proofs/prepare/apart.md
    Assumes     no draws; chances, where there are any, are the same in both.
    Keeps back  nothing: no row is read.
    """
    found: dict[str, int] = {}
    for here, there in zip(one, two, strict=True):
        span = here.high - here.low
        if isinstance(here, RegressionLine) and isinstance(there, RegressionLine):
            found[here.column] = min(span, -(-_total(here, there, found) >> SCALE))
        else:
            moved = any(found.get(name) for name in here.columns if name != here.column)
            found[here.column] = span if moved or here != there else 0
    return found


def _total(one: RegressionLine, two: RegressionLine, moved: dict[str, int]) -> int:
    """The largest difference of the totals: from the coefficients, and from predictors that were filled otherwise."""
    top = bottom = one.base - two.base
    other = 0
    for here, there in zip(one.terms, two.terms, strict=True):
        width = (here.high - here.low) if here.level is None else 1
        step = (here.slope - there.slope) * width
        top, bottom = top + max(0, step), bottom + min(0, step)
        other += abs(here.slope) * min(width, moved.get(here.column, 0))
    return max(abs(top), abs(bottom)) + other
