"""What a statistic costs and rests on, from public numbers alone; asked again of what was actually run."""

from collections.abc import Iterable
from fractions import Fraction

from reticent.answer.grounds import FLIP, LAPLACE
from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.answer.route import Route
from reticent.answer.weighting import BINS as CHOICE
from reticent.answer.weighting import TABLE
from reticent.privacy.claim import Change, Claim

LAPLACE_NAME = "discrete Laplace"
BINS = ("answer: weighing", "proofs/answer/weighing.md")
EACH = ("answer: attribute by attribute", "proofs/answer/attributes.md")
RAKED = ("answer: totals from a raked table", "proofs/answer/raked.md")


def claim_of(route: Route, change: Change) -> Claim | None:
    """The claim of one statistic, or None for post-processing."""
    return _claim(route, route.epsilon, change)


def claim_of_parts(route: Route, parts: Iterable[AnyMeasurement], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added, and what the route rests on."""
    return _claim(route, sum((part.epsilon for part in parts), Fraction(0)), change)


def _claim(route: Route, epsilon: Fraction, change: Change) -> Claim | None:
    if not epsilon:
        return None
    return Claim(measure="pure", epsilon=epsilon, change=change, rests_on=route.rests_on)


def claim_of_bins(parts: Iterable[Measurement], change: Change) -> Claim | None:
    """The claim of finding the totals and bins that weights are made of; None where they are known and fixed."""
    run = tuple(parts)
    if not run:
        return None
    rests_on = [BINS, *([RAKED] if any(part.what == TABLE for part in run) else [])]
    rests_on += [LAPLACE if part.mechanism == LAPLACE_NAME else FLIP for part in run]
    rests_on += [EACH] if any(part.what.startswith(f"{CHOICE} by") for part in run) else []
    total = sum((part.epsilon for part in run), Fraction(0))
    return Claim(measure="pure", epsilon=total, change=change, rests_on=tuple(dict.fromkeys(rests_on)))
