"""Run a plan's asks on tallies that are already in hand. The noise is whatever the caller was given."""

from collections.abc import Callable

from reticent.answer.base import Answer
from reticent.answer.context import Context
from reticent.answer.count import answer_count, answer_total
from reticent.answer.derived import answer_derived
from reticent.answer.margin import answer_margin
from reticent.answer.quantile import answer_quantile
from reticent.answer.ratio import answer_mean, answer_proportion
from reticent.answer.variance import answer_variance
from reticent.engine.results import Tallies
from reticent.engine.wants import Sum, Table
from reticent.errors import PlanError
from reticent.noise.laplace import LIMIT
from reticent.noise.source import Noise
from reticent.query.kinds import Count, Derived, Margin, Mean, Proportion, Quantile, Total, Variance
from reticent.release.plan import Ask, Plan

MOST_ROWS = 2**40
ACCUMULATOR = 2**126


def wants_of(plan: Plan) -> list[Sum | Table]:
    """Everything the plan needs from the rows; refused from public numbers if a sum could overflow (R04)."""
    wants: list[Sum | Table] = [want for ask in plan.asks for want in ask.query.wants(plan.schema)]
    for want in wants:
        largest = MOST_ROWS
        factors = [want.weight] if isinstance(want, Table) else [want.weight, *[want.value] * want.power]
        for factor in factors:
            if factor is not None:
                column = plan.schema.coded[factor]
                largest *= max(abs(column.low), abs(column.high), 1)
        if largest >= ACCUMULATOR:
            raise PlanError(
                "could overflow a 128-bit sum; declare a coarser grid or closer bounds", field="ask"
            )
        # A margin is measured without coarser steps, so its cells themselves must fit the sampler's 64 bits.
        if isinstance(want, Table) and all(key.step is None for key in want.keys) and largest > LIMIT:
            raise PlanError(
                "a margin needs a weight of fewer steps; declare a coarser grid for it", field="ask"
            )
    return wants


def evaluate(
    plan: Plan, tallies: Tallies, noise: Noise, *, step: Callable[[str], None] = lambda _: None
) -> dict[str, Answer]:
    """Every ask answered, in order; `step` hears the name of each ask as it is done, and nothing else."""
    context = Context(
        schema=plan.schema, neighbours=plan.neighbours, tallies=tallies, noise=noise, rows=plan.rows
    )
    answers: dict[str, Answer] = {}
    for ask in plan.asks:
        answers[ask.name] = _answer(ask, context, answers)
        step(ask.name)
    return answers


def _answer(ask: Ask, context: Context, before: dict[str, Answer]) -> Answer:
    match ask.query:
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
        case Margin() as query:
            return answer_margin(query, ask.epsilon, context)
        case Derived() as query:
            return answer_derived(query, before[query.of[0]], before[query.of[1]])
