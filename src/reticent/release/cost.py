"""What an ask costs and rests on, from public numbers alone; asked again of what was actually run."""

from collections.abc import Iterable
from fractions import Fraction

from reticent.answer.parts import AnyPart, Hidden
from reticent.prepare.donors import Bounding, Repair
from reticent.privacy.claim import Change, Claim
from reticent.query.imputed import roles
from reticent.query.kinds import (
    Correlation,
    Count,
    Derived,
    Margin,
    Mean,
    Proportion,
    Quantile,
    Query,
    Total,
    Variance,
)
from reticent.schema import Schema

RESTS_ON: dict[type[Query], tuple[str, ...]] = {
    Count: ("count",),
    Total: ("count",),
    Mean: ("ratio",),
    Proportion: ("ratio",),
    Variance: ("ratio", "variance"),
    Correlation: ("ratio", "correlation"),
    Quantile: ("quantile",),
    Margin: ("margin",),
}
LAPLACE = ("discrete Laplace mechanism", "proofs/noise/laplace.md")
FLIP = ("permute-and-flip", "proofs/noise/selection.md")
LINEAR = ("linear sensitivity", "proofs/sensitivity/linear.md")
DONORS = (
    ("answer: imputed", "proofs/answer/imputed.md"),
    ("what a donor moves", "proofs/sensitivity/constants.md"),
    ("hub ladder", "proofs/sensitivity/hubs.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
HEAVY = {
    "double Lomax": ("double Lomax mechanism", "proofs/noise/lomax.md"),
    "generalised Cauchy": ("generalised Cauchy mechanism", "proofs/noise/cauchy.md"),
}
PIVOT = ("error bar for a confidential scale", "proofs/refine/pivot.md")
SCALE = "noise scale"
"""What the part is called that pays for an error bar when the scale is confidential."""


def claim_of(
    query: Query, epsilon: Fraction, bar: Fraction, change: Change, *, schema: Schema, repair: Repair
) -> Claim | None:
    """The claim of one ask, or None for post-processing. An error bar costs `bar` on top of the ask's own."""
    if isinstance(query, Derived):
        return None
    return _claim(query, epsilon + bar, change, hidden=_mechanism(query, schema, repair), bar=bool(bar))


def claim_of_parts(query: Query, parts: Iterable[AnyPart], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added, and the noises that were used."""
    run = tuple(parts)
    total = sum((part.epsilon for part in run), Fraction(0))
    if not total:
        return None
    hidden = next((part.mechanism for part in run if isinstance(part, Hidden)), None)
    return _claim(query, total, change, hidden=hidden, bar=any(part.what == SCALE for part in run))


def _mechanism(query: Query, schema: Schema, repair: Repair) -> str | None:
    """The noise of confidential scale that the ask needs, if it uses what donors filled."""
    used = roles(query, schema, repair)
    if not used:
        return None
    published = any(repair.of(role.column).bounding is Bounding.PUBLISHED for role in used)
    return "generalised Cauchy" if published else "double Lomax"


def _claim(query: Query, total: Fraction, change: Change, *, hidden: str | None, bar: bool) -> Claim:
    noise = FLIP if isinstance(query, Quantile) else LAPLACE
    pages = tuple((f"answer: {page}", f"proofs/answer/{page}.md") for page in RESTS_ON[type(query)])
    donors = () if hidden is None else (*DONORS, HEAVY[hidden], *((PIVOT,) if bar else ()))
    return Claim(measure="pure", epsilon=total, change=change, rests_on=(*pages, LINEAR, noise, *donors))
