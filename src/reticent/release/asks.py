"""Estimates of a plan's statistics from aggregates that are already in hand. The noise is whatever the caller was given.

The bounds of columns that donors fill are found once for all asks, with a step for each: they are the slow part.
"""

from collections.abc import Callable

from reticent.answer.choose_bins import Weighed, weigh
from reticent.answer.context import Context
from reticent.answer.copies import CompletedSums, Copiable, answer_copied
from reticent.answer.correlation import answer_correlation
from reticent.answer.count import answer_count, answer_margin, answer_total
from reticent.answer.derived import answer_derived
from reticent.answer.donors import answer_imputed
from reticent.answer.parts import Answer
from reticent.answer.quantile import answer_quantile
from reticent.answer.ratio import answer_mean, answer_proportion, answer_variance
from reticent.answer.shares import check_budget
from reticent.answer.weighted import Asked, answer_weighted, weighted_wants
from reticent.engine.results import Tallies
from reticent.engine.sql.tallies import check_bins
from reticent.engine.wants import Aggregate, Bins, Ring, Sum, Table
from reticent.errors import PlanError
from reticent.noise.laplace import LIMIT
from reticent.noise.source import Noise
from reticent.plan.asks import Statistic
from reticent.plan.partition import scaled
from reticent.plan.plan import Plan
from reticent.query import filled
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
from reticent.release.copies import drawn_variance, is_copied
from reticent.release.models import NO_MODELS, Modelled
from reticent.sensitivity.hubs import HubCache

MOST_ROWS = 2**40
ACCUMULATOR = 2**126


def wants_of(plan: Plan) -> list[Aggregate]:
    """Everything the plan needs from the rows; refused from public numbers if a sum could overflow (R04)."""
    for place, ask in enumerate(plan.asks):
        _check(ask, plan, f"statistic[{place}]")
    wants = [want for ask in plan.asks for want in _wants(ask, plan)]
    wants += [plan.weight.wanted] if plan.weight else []
    for want in wants:
        if isinstance(want, Bins):
            check_bins(want, plan.schema)
        largest = MOST_ROWS
        for factor in _factors(want):
            if factor is not None:
                column = plan.schema.coded[factor]
                largest *= max(abs(column.low), abs(column.high), 1)
        if largest >= ACCUMULATOR:
            raise PlanError(
                "could overflow a 128-bit sum; declare a coarser grid or closer bounds", field="statistic"
            )
        # A margin is measured without coarser steps, so its cells themselves must fit the sampler's 64 bits;
        # so must the weight of all recipients, which hubs add up.
        if _is_whole(want) and largest > LIMIT:
            what = "a margin" if isinstance(want, Table) else "an ask on filled columns"
            raise PlanError(
                f"{what} needs a weight of fewer steps; declare a coarser grid for it", field="statistic"
            )
    return wants


def _wants(ask: Statistic, plan: Plan) -> tuple[Aggregate, ...]:
    if ask.weighted and plan.weight is not None:
        return weighted_wants(ask.query, plan.schema, plan.weight)
    return filled.wants(ask.query, plan.schema, plan.repair)


def _check(ask: Statistic, plan: Plan, at: str) -> None:
    """Refuse what no theorem covers, and an epsilon that no noise for a smooth bound can run at."""
    filled.check(ask.query, plan.schema, plan.repair, field=f"{at}.query")
    if not isinstance(ask.query, Quantile | CrossTabulation | Derived):
        check_budget(
            ask.query,
            ask.epsilon,
            ask.bar,
            schema=plan.schema,
            neighbours=plan.neighbours,
            repair=plan.repair,
            field=f"{at}.epsilon",
        )


def _is_whole(want: Aggregate) -> bool:
    """Whether its sums are kept in 64 bits: a margin's cells, and the rings of a column."""
    return isinstance(want, Ring) or (isinstance(want, Table) and all(key.step is None for key in want.keys))


def _factors(want: Aggregate) -> list[str | None]:
    """The columns that are multiplied to give one row's contribution."""
    match want:
        case Sum():
            return [want.weight, want.other, *[want.value] * want.power]
        case Table() | Ring():
            return [want.weight]
        case _:
            return []


def evaluate(
    plan: Plan,
    tallies: Tallies,
    noise: Noise,
    *,
    step: Callable[[str], None] = lambda _: None,
    book: HubCache | None = None,
    weighed: Weighed | None = None,
    copied: CompletedSums | None = None,
    modelled: Modelled = NO_MODELS,
) -> dict[str, Answer]:
    """Every ask answered, in order; `step` hears the name of each ask as it is done, and nothing else.

    Where the same tallies are evaluated many times, a `book` keeps what was found of their rings. Bins that were
    found before are handed in as `weighed`; else they are found first. Asks that rest on columns filled several times are
    answered from `copied`, the sums over all copies, with the lines of `modelled`.
    """
    weighed = weighed or weigh_plan(plan, tallies, noise)
    context = Context(
        schema=plan.schema,
        neighbours=plan.neighbours,
        tallies=tallies,
        noise=noise,
        rows=plan.rows,
        repair=plan.repair,
        known=book,
    )
    answers: dict[str, Answer] = {}
    for ask in plan.asks:
        weighted = _weighted(ask, plan, context, weighed)
        answers[ask.name] = weighted or scaled(
            _copied(ask, plan, context, copied, modelled) or _answer(ask, context, answers),
            ask.query,
            plan.partition,
        )
        step(ask.name)
    return answers


def weigh_plan(plan: Plan, tallies: Tallies, noise: Noise) -> Weighed | None:
    """The bins that all weighted asks of the plan use; None where it has no weights."""
    if plan.weight is None:
        return None
    return weigh(plan.weight, tallies.bins[plan.weight.wanted], neighbours=plan.neighbours, noise=noise)


def _weighted(ask: Statistic, plan: Plan, context: Context, weighed: Weighed | None) -> Answer | None:
    """The answer of an ask weighted to known totals; None for others."""
    if not ask.weighted or plan.weight is None or weighed is None or not isinstance(ask.query, Asked):
        return None
    return answer_weighted(ask.query, ask.epsilon, ask.bar, context, weighting=plan.weight, weighed=weighed)


def _copied(
    ask: Statistic, plan: Plan, context: Context, copied: CompletedSums | None, modelled: Modelled
) -> Answer | None:
    """The mean over copies; None for asks that do not rest on them."""
    if copied is None or not isinstance(ask.query, Copiable) or not is_copied(ask, plan):
        return None
    return answer_copied(
        ask.query,
        ask.epsilon,
        ask.bar,
        context,
        copied=copied,
        drawn=drawn_variance(ask, plan, modelled),
        effect=float(plan.design_effect or 1),
    )


def _answer(ask: Statistic, context: Context, before: dict[str, Answer]) -> Answer:
    match ask.query:
        case Correlation() as query:
            return answer_correlation(query, ask.epsilon, ask.bar, context)
        case (Count() | Total() | Mean() | Proportion() | Variance()) as query if filled.uses_smooth(
            query, context.schema, context.repair
        ):
            return answer_imputed(query, ask.epsilon, ask.bar, context)
        case Count() as query:
            return answer_count(query, ask.epsilon, context)
        case Total() as query:
            return answer_total(query, ask.epsilon, context)
        case Mean() as query:
            variance = before[ask.variance].estimates[0].value if ask.variance is not None else None
            return answer_mean(query, ask.epsilon, context, variance=variance)
        case Proportion() as query:
            return answer_proportion(query, ask.epsilon, context)
        case Variance() as query:
            return answer_variance(query, ask.epsilon, context)
        case Quantile() as query:
            return answer_quantile(query, ask.epsilon, context, bar=ask.bar, level=ask.level)
        case CrossTabulation() as query:
            return answer_margin(query, ask.epsilon, context)
        case Derived() as query:
            return answer_derived(query, before[query.of[0]], before[query.of[1]])


def rings_of(plan: Plan) -> tuple[Ring, ...]:
    """The rings a plan needs, each once; a bound is a step for each of them."""
    return tuple(dict.fromkeys(want for want in wants_of(plan) if isinstance(want, Ring)))


def book_of(plan: Plan, tallies: Tallies, *, step: Callable[[str], None] = lambda _: None) -> HubCache:
    """What the rings say, their first rungs found. `step` hears which column, which is the plan's, and no number."""
    book = HubCache(tallies, plan.schema, plan.repair)
    for ring in rings_of(plan):
        book.hubs(ring).serves(0)
        step(f"bound of {ring.column}")
    return book
