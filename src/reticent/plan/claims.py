"""What an ask costs and rests on, from public numbers alone; asked again of what was actually run."""

from collections.abc import Iterable
from fractions import Fraction

from reticent.answer.parts import AnyMeasurement, HiddenScale, Measurement
from reticent.answer.weighted import LAWS
from reticent.answer.weighting import BINS as CHOICE
from reticent.answer.weighting import TABLE, Weighting
from reticent.prepare.repair import Bounding, Repair
from reticent.privacy.claim import Change, Claim
from reticent.query.filled import roles
from reticent.query.kinds import (
    Correlation,
    Count,
    CrossTabulation,
    Derived,
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
    CrossTabulation: ("margin",),
}
LAPLACE_NAME = "discrete Laplace"
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
    "Student": ("Student mechanism", "proofs/noise/student.md"),
}
PIVOT = ("error bar for a confidential scale", "proofs/refine/pivot.md")
WEIGHTS = (
    ("answer: weighted", "proofs/answer/weighted.md"),
    ("post-stratified answers", "proofs/answer/poststrata.md"),
    ("the largest weight within k steps", "proofs/sensitivity/poststrata.md"),
    ("smooth bound of a ladder", "proofs/sensitivity/ladder.md"),
)
COPIED = ("answer: copied", "proofs/answer/copied.md")
BINS = ("answer: weighing", "proofs/answer/weighing.md")
EACH = ("answer: attribute by attribute", "proofs/answer/attributes.md")
RAKED = ("answer: totals from a raked table", "proofs/answer/raked.md")
SCALE = "noise scale"
"""What the part is called that pays for an error bar when the scale is confidential."""


def claim_of(
    query: Query,
    epsilon: Fraction,
    bar: Fraction,
    change: Change,
    *,
    schema: Schema,
    repair: Repair,
    weighting: Weighting | None = None,
) -> Claim | None:
    """The claim of one ask, or None for post-processing. An error bar costs `bar` on top of the ask's own."""
    if isinstance(query, Derived):
        return None
    if weighting is not None:
        return _weighted(epsilon + bar, change, LAWS[weighting.law], bar=bool(bar))
    return _claim(query, epsilon + bar, change, hidden=_mechanism(query, schema, repair), bar=bool(bar))


def claim_of_parts(query: Query, parts: Iterable[AnyMeasurement], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added, and the noises that were used."""
    run = tuple(parts)
    total = sum((part.epsilon for part in run), Fraction(0))
    if not total:
        return None
    found = next((part for part in run if isinstance(part, HiddenScale)), None)
    bar = any(part.what == SCALE or part.proof == COPIED[1] for part in run)
    if found is not None and found.source == "weights":
        return _weighted(total, change, found.mechanism, bar=bar)
    return _claim(query, total, change, hidden=found.mechanism if found else None, bar=bar)


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


def _weighted(total: Fraction, change: Change, mechanism: str, *, bar: bool) -> Claim:
    told = (PIVOT, LAPLACE) if bar else ()
    rests_on = (*WEIGHTS, HEAVY[mechanism], *told)
    return Claim(measure="pure", epsilon=total, change=change, rests_on=rests_on)


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
    pages += (COPIED,) if bar and hidden is None and not isinstance(query, Quantile) else ()
    donors = () if hidden is None else (*DONORS, HEAVY[hidden], *((PIVOT,) if bar else ()))
    return Claim(measure="pure", epsilon=total, change=change, rests_on=(*pages, LINEAR, noise, *donors))
