"""What can be said of a plan before a row is read: claim, cost, and honest expectations of the error."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.bought import PAGE as BOUGHT
from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.answer.quantile import rank_bound, slack
from reticent.query.kinds import (
    Correlation,
    Count,
    CrossTabulation,
    Derived,
    Mean,
    Proportion,
    Quantile,
    Total,
    Variance,
)
from reticent.release.foreseen import HUBS
from reticent.release.plan import Plan, Statistic
from reticent.release.planned import parts_of
from reticent.release.repair_words import ask_words
from reticent.release.spread import error_of, foreseen, is_smooth, quotient, size_of
from reticent.release.weights_seen import weighted_error
from reticent.release.weights_told import weighted_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """The noise of an ask if the busiest donor served `hub` recipients, in the answer's own unit."""

    hub: int
    sd: float
    margin: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """One ask as it will be: its cost, its parts, and the half-width of its error bar with the reason for it.

    `assumed` is told of noise whose scale is confidential: the floor first, then for busier donors.
    """

    name: str
    words: str
    epsilon: Fraction
    parts: tuple[AnyMeasurement, ...]
    margin: Fraction | None
    how: str
    assumed: tuple[Assumed, ...] = ()


EXACT, AT_SIZE, IN_RANKS, DERIVED, UNKNOWN = "exact", "at size", "in ranks", "derived", "unknown"
AT_LEAST, OPEN, AS_TOTALS = "at least", "open", "as totals"
LEGEND = {
    EXACT: "the noise is public, so this is its own quantile",
    AT_SIZE: "at the expected size; without an expected value, with the answer at its farthest from the centre",
    AT_LEAST: "the floor, with nobody missing; how busy donors are is confidential, and so is the noise",
    AS_TOTALS: "if the expected rows had equal base weights and were spread as the totals are; how they are is "
    "confidential, and so is the noise",
    IN_RANKS: "respondents between the answer and the exact one",
    DERIVED: "follows from the statistics it uses",
    OPEN: "depends on the spread of both columns, which is not known beforehand",
    UNKNOWN: "give [expect] rows, or expect = { value, size } on the statistic",
}


def expectations(plan: Plan) -> list[Expectation]:
    """What each ask will cost and how noisy it will be."""
    return [_expect(ask, plan) for ask in plan.asks]


def _expect(ask: Statistic, plan: Plan) -> Expectation:
    parts = parts_of(ask, plan)
    made = Expectation(
        name=ask.name,
        words=ask_words(ask.query, plan.schema, plan.repair, plan.models) + weighted_words(ask, plan),
        epsilon=sum((part.epsilon for part in parts), Fraction(0)),
        parts=parts,
        margin=None,
        how=OPEN,
    )
    if isinstance(ask.query, Correlation):
        return made
    if ask.weighted:
        noise = weighted_error(ask, plan) if plan.rows else None
        return (
            replace(made, margin=Fraction(noise[1]), how=AS_TOTALS) if noise else replace(made, how=UNKNOWN)
        )
    if is_smooth(ask, plan):
        assumed = tuple(found for hub in HUBS if (found := _assume(ask, plan, hub)) is not None)
        floor = Fraction(assumed[0].margin) if assumed else None
        return replace(made, margin=floor, how=AT_LEAST if assumed else UNKNOWN, assumed=assumed)
    own = [part for part in parts if isinstance(part, Measurement) and part.proof != BOUGHT]
    margin, how = _margin(ask, plan, own)
    if (
        margin is not None
        and plan.partition is not None
        and isinstance(ask.query, Count | Total | CrossTabulation)
    ):
        margin *= plan.partition.scale
    return replace(made, margin=margin, how=how)


def _assume(ask: Statistic, plan: Plan, hub: int) -> Assumed | None:
    """The error under an assumption; None where a quotient's size is not known."""
    parts = foreseen(ask, plan, hub)
    if not isinstance(ask.query, Mean | Proportion | Variance):
        return Assumed(hub=hub, sd=parts[-1].sd, margin=float(parts[-1].half_width(ask.level)))
    size = size_of(ask, plan)
    if not size:
        return None
    return Assumed(
        hub=hub, sd=error_of(ask, plan, parts) / size, margin=float(quotient(ask, plan, parts, size))
    )


def _margin(ask: Statistic, plan: Plan, parts: Sequence[Measurement]) -> tuple[Fraction | None, str]:
    """Half the width of the error bar: exact for one noise, at the expected size for a quotient."""
    match ask.query:
        case Count() | Total() | CrossTabulation():
            return parts[0].half_width(ask.level), EXACT
        case Mean() | Proportion() | Variance():
            size = size_of(ask, plan)
            return (quotient(ask, plan, parts, size), AT_SIZE) if size else (None, UNKNOWN)
        case Quantile() as query:
            bound = rank_bound(query, plan.schema, plan.neighbours)
            candidates = query.table(plan.schema).size(plan.schema)
            ranks = slack(candidates, bound=bound, epsilon=ask.epsilon, chance=1 - ask.level)
            return Fraction(ranks, query.at.denominator), IN_RANKS
        case Correlation() | Derived():
            return None, DERIVED
