"""The statistics of a release: estimated from aggregates that are already in hand, with their weights, and told.

The noise is whatever the caller was given. The bounds of columns that donors fill are found once for all statistics, with a
step for each: they are the slow part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from reticent.answer.choose_bins import Weighed, weigh
from reticent.answer.context import CompletedSums, Context
from reticent.answer.parts import Answer, is_as_planned
from reticent.answer.positions import asked_by_level, with_positions
from reticent.answer.route import Route, route_of
from reticent.answer.statistic import Setting
from reticent.engine.sql.tallies import check_bins, largest_product
from reticent.engine.wants import (
    MOST_CELLS,
    Aggregate,
    Bins,
    Blocks,
    Ring,
    Sum,
    Table,
    Tallies,
    is_replicate,
    is_scored,
)
from reticent.errors import PlanError
from reticent.exact import LIMIT
from reticent.noise.source import Noise
from reticent.plan.plan import Plan
from reticent.plan.statistics import Statistics, claim_of_bins, claim_of_parts
from reticent.privacy.claim import Claim
from reticent.release.copies import tally_copies
from reticent.release.document import answers_section, sampling_section, weights_section
from reticent.release.labels import keys_of
from reticent.release.models import NO_MODELS, Modelled, ModelsResult
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.sampling import Sampled, buy_design, buy_errors
from reticent.schema.predicate import columns_compared
from reticent.sensitivity.hubs import HubCache

MOST_ROWS = 2**40
ACCUMULATOR = 2**126


def wants_of(plan: Plan) -> list[Aggregate]:
    """Everything the plan needs from the rows; refused from public numbers if a sum could overflow (R04)."""
    routes = plan.routes
    for place, route in enumerate(routes):
        route.check_query(f"statistic[{place}].query")
        route.check_budget(f"statistic[{place}].epsilon")
    wants = asked_of_engine(plan, [want for route in routes for want in route.aggregates])
    wants = [asked_by_level(want, plan.schema) if is_scored(want, plan.schema) else want for want in wants]
    wants += [plan.weight.wanted] if plan.weight else []
    wants += plan.design.wants(plan.schema) if plan.has_design else []
    for want in wants:
        if isinstance(want, Bins):
            check_bins(want, plan.schema)
        named = [factor for factor in _factors(want) if factor is not None]
        largest = MOST_ROWS * plan.repair.rings * max(1, largest_product(plan.schema, named))
        if largest >= ACCUMULATOR:
            raise PlanError(
                "could overflow a 128-bit sum; declare a coarser grid or closer bounds", field="statistic"
            )
        # A margin is measured without coarser steps, so its cells themselves must fit the sampler's 64 bits;
        # so must the weight of all recipients, which hubs add up.
        is_measured = not any(is_replicate(plan.schema, factor) for factor in named)
        if is_measured and _is_whole(want) and largest > LIMIT:
            what = "a margin" if isinstance(want, Table) else "an ask on filled columns"
            raise PlanError(
                f"{what} needs a weight of fewer steps; declare a coarser grid for it", field="statistic"
            )
    return wants


def asked_of_engine(plan: Plan, wants: list[Aggregate]) -> list[Aggregate]:
    """What the engine is asked for: by base cell, where weights are made of released factors."""
    bought = plan.weight.factors if plan.weight else None
    if bought is None:
        return wants
    if plan.partition is not None:
        raise PlanError(
            "a piece of a survey is not weighted by released factors; weight the whole",
            field="weight.factors",
        )
    asked = [bought.asked(want) for want in wants]
    if any(isinstance(want, Table) and want.size(plan.schema) > MOST_CELLS for want in asked):
        raise PlanError(
            "makes more cells with the base cells of the weights than can be tallied; use fewer bins",
            field="weight.by",
        )
    return [*asked, bought.want()]


def _is_whole(want: Aggregate) -> bool:
    """Whether its sums are kept in 64 bits: a margin's cells, and the rings of a column."""
    if isinstance(want, Table):
        return want.value is None and all(key.step is None for key in want.keys)
    return isinstance(want, Ring | Blocks)


def _factors(want: Aggregate) -> list[str | None]:
    """The columns that are multiplied to give one row's contribution."""
    match want:
        case Sum() | Table():
            return [want.weight, want.other, *[want.value] * want.power]
        case Ring() | Blocks():
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
) -> dict[str, Answer]:
    """Every ask answered, in order, as `evaluate_sampled` does."""
    return evaluate_sampled(
        plan, tallies, noise, step=step, book=book, weighed=weighed, copied=copied
    ).answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The answers to all statistics, and what is known of their sampling errors; None where the plan says nothing of them."""

    answers: dict[str, Answer]
    sampled: Sampled | None


def evaluate_sampled(
    plan: Plan,
    tallies: Tallies,
    noise: Noise,
    *,
    step: Callable[[str], None] = lambda _: None,
    book: HubCache | None = None,
    weighed: Weighed | None = None,
    copied: CompletedSums | None = None,
) -> Evaluated:
    """Every ask answered, in order; `step` hears the name of each ask as it is done, and nothing else.

    Where the same tallies are evaluated many times, a `book` keeps what was found of their rings. Bins that were
    found before are handed in as `weighed`; else they are found first. Asks that rest on columns filled several times are
    answered from `copied`, the sums over all copies. The items of a design factor come first, then the factor; standard errors
    that statistics buy for themselves come last.
    """
    answers: dict[str, Answer] = {}
    weighed = weighed or weigh_plan(plan, tallies, noise)
    factors = weighed.factors if weighed else None
    setting, tallies = _weighted(plan, weighed, tallies)
    routes = [route_of(ask, setting) for ask in plan.asks]
    context = Context(
        schema=setting.schema,
        neighbours=plan.neighbours,
        tallies=tallies,
        noise=noise,
        rows=plan.rows,
        repair=plan.repair,
        known=book,
        effect=float(plan.design.declared or 1),
        weighed=weighed,
        completed=copied,
        before=answers,
    )
    if not plan.has_design:
        _answer(routes, replace(context, known=context.book), answers, step)
        return Evaluated(answers=answers, sampled=None)
    items = plan.design.pooled.items if plan.design.pooled else {}
    _answer([route for route in routes if route.statistic.name in items], context, answers, step)
    bought = buy_design(plan, answers, tallies, noise)
    context = replace(context, known=context.book, design=Sampled(plan=plan, bought=bought, factors=factors))
    if bought is not None:
        context = replace(context, effect=bought.factor.effect)
    _answer([route for route in routes if route.statistic.name not in items], context, answers, step)
    sampled = Sampled(
        plan=plan, bought=bought, own=buy_errors(plan, answers, tallies, noise), factors=factors
    )
    return Evaluated(answers={ask.name: answers[ask.name] for ask in plan.asks}, sampled=sampled)


def _answer(
    routes: Sequence[Route], context: Context, answers: dict[str, Answer], step: Callable[[str], None]
) -> None:
    """Answer them one after the other; later ones may use `answers` of those before."""
    for route in routes:
        answers[route.statistic.name] = route.answer(context)
        step(route.statistic.name)


def ran_as_planned(plan: Plan, answers: Mapping[str, Answer]) -> bool:
    """Whether every answer was measured as its route had planned."""
    return all(is_as_planned(answers[route.statistic.name].parts, route.parts) for route in plan.routes)


def weigh_plan(plan: Plan, tallies: Tallies, noise: Noise) -> Weighed | None:
    """The bins that all weighted asks of the plan use; None where it has no weights."""
    if plan.weight is None:
        return None
    found = weigh(plan.weight, tallies.bins[plan.weight.wanted], neighbours=plan.neighbours, noise=noise)
    bought = plan.weight.factors
    if bought is None:
        return found
    factors = bought.run(tallies, found.strategy, neighbours=plan.neighbours, noise=noise)
    return replace(found, parts=(*found.parts, *factors.parts), factors=factors)


def _weighted(plan: Plan, weighed: Weighed | None, tallies: Tallies) -> tuple[Setting, Tallies]:
    """What statistics are answered in: with factors that were released, the codebook and the sums that they make."""
    wants = [want for route in plan.routes for want in route.aggregates]
    bought = plan.weight.factors if plan.weight else None
    asked = [bought.asked(want) for want in wants] if bought else wants
    if any(is_scored(want, plan.schema) for want in asked):
        tallies = with_positions(asked, tallies, plan.schema)
    if weighed is None or weighed.factors is None:
        return plan.setting, tallies
    made = weighed.factors.contracted(wants, tallies, plan.schema)
    return replace(plan.setting, schema=weighed.factors.schema(plan.schema)), made


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsResult(Result):
    """The answer to every statistic by its name, and the bins that weighted ones use."""

    plan: Plan
    answers: Mapping[str, Answer] = field(repr=False)
    weighed: Weighed | None = None
    sampled: Sampled | None = None

    @property
    def epsilon(self) -> Fraction:
        bins = self.weighed.epsilon if self.weighed else Fraction(0)
        bought = self.sampled.epsilon if self.sampled else Fraction(0)
        return sum((answer.epsilon for answer in self.answers.values()), start=bins + bought)

    @property
    def is_as_planned(self) -> bool:
        return ran_as_planned(self.plan, self.answers)

    @property
    def claims(self) -> Sequence[Claim]:
        ran = ((route, self.answers[route.statistic.name].parts) for route in self.plan.routes)
        found = (claim_of_parts(route, parts, self.plan.change) for route, parts in ran)
        bought = self.sampled.claims if self.sampled else ()
        return [*(claim for claim in found if claim is not None), *bought]

    @property
    def ground_claims(self) -> Sequence[Claim]:
        bins = claim_of_bins(self.weighed.parts, self.plan.change) if self.weighed else None
        return [bins] if bins else []

    @property
    def keys(self) -> Sequence[str]:
        crossed = keys_of(dict(each.cell) for answer in self.answers.values() for each in answer.estimates)
        queries = [route.query for route in self.plan.routes]
        asked = {name for query in queries for name in query.values}
        asked |= {name for query in queries for where in query.predicates for name in columns_compared(where)}
        return [*crossed, *(name for name in self.plan.schema.columns if name in asked)]

    def grounds(self) -> dict[str, Any]:
        return {**weights_section(self.plan, self.weighed), **sampling_section(self.sampled)}

    def document(self) -> dict[str, Any]:
        return {"statistics": answers_section(self.plan, self.answers, self.sampled)}


class StatisticsProducer(Producer[Statistics]):
    """Answers every statistic, in order, from aggregates of one pass over the rows."""

    __slots__ = ()

    @property
    def steps(self) -> int:
        """One for each statistic, and one for each bound of a column that donors fill."""
        return len(self.asked.asks) + len(rings_of(self.plan))

    def check(self) -> None:
        wants_of(self.plan)

    def wants(self) -> Sequence[Aggregate]:
        return wants_of(self.plan)

    def run(self, on: PlanRun) -> StatisticsResult:
        """Copies first, where rows are filled several times; then bounds, bins and answers."""
        modelled = _modelled(on)
        copied = tally_copies(on.plan, on.engine, on.lot, modelled, bits=on.bits) if modelled.fits else None
        book = book_of(on.plan, on.tallies, step=on.step)
        weighed = weigh_plan(on.plan, on.tallies, on.noise)
        made = evaluate_sampled(
            on.plan,
            on.tallies,
            on.noise,
            step=on.step,
            book=book,
            weighed=weighed,
            copied=copied,
        )
        return StatisticsResult(plan=on.plan, answers=made.answers, weighed=weighed, sampled=made.sampled)


def _modelled(on: PlanRun) -> Modelled:
    """The models that have filled rows, if any."""
    return next((done.modelled for done in on.results if isinstance(done, ModelsResult)), NO_MODELS)


def _estimates(answer: Document) -> list[dict[str, Any]]:
    return list(answer["estimates"])


STATISTICS = ReleasedSection(rows=_estimates)
