"""What an ask costs and rests on, from public numbers alone; asked again of what was actually run."""

from collections.abc import Iterable
from fractions import Fraction

from reticent.answer.parts import Part
from reticent.privacy.claim import Change, Claim
from reticent.query.kinds import Count, Derived, Margin, Mean, Proportion, Quantile, Query, Total, Variance

RESTS_ON: dict[type[Query], tuple[str, ...]] = {
    Count: ("count",),
    Total: ("count",),
    Mean: ("ratio",),
    Proportion: ("ratio",),
    Variance: ("ratio", "variance"),
    Quantile: ("quantile",),
    Margin: ("margin",),
}
LAPLACE = ("discrete Laplace mechanism", "proofs/noise/laplace.md")
FLIP = ("permute-and-flip", "proofs/noise/selection.md")
LINEAR = ("linear sensitivity", "proofs/sensitivity/linear.md")


def claim_of(query: Query, epsilon: Fraction, bar: Fraction, change: Change) -> Claim | None:
    """The claim of one ask, or None for post-processing. Only a quantile's error bar costs anything."""
    if isinstance(query, Derived):
        return None
    total = epsilon + (bar if isinstance(query, Quantile) else 0)
    return _claim(query, total, change)


def claim_of_parts(query: Query, parts: Iterable[Part], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added."""
    total = sum((part.epsilon for part in parts), Fraction(0))
    return _claim(query, total, change) if total else None


def _claim(query: Query, total: Fraction, change: Change) -> Claim:
    noise = FLIP if isinstance(query, Quantile) else LAPLACE
    pages = tuple((f"answer: {page}", f"proofs/answer/{page}.md") for page in RESTS_ON[type(query)])
    return Claim(measure="pure", epsilon=total, change=change, rests_on=(*pages, LINEAR, noise))
