"""Why a statistic has no total interval, and what the plan would have to say or buy for one. Public words alone."""

from collections.abc import Mapping

from reticent.answer.context import rests_on_caps
from reticent.answer.count import widening
from reticent.answer.parts import Answer
from reticent.answer.statistic import Statistic
from reticent.query.base import CodedMean, CodedSum
from reticent.query.kinds import UnservedRecipients
from reticent.release.sampling import Sampled, asked_of
from reticent.schema import Levels

NO_FACTOR = "no sampling error is known: add [design] to the plan, or sampling to the statistic"
NO_INTERVAL = "the estimate has no interval for privacy noise, so there is none for both"
NOTHING_LEFT = "noise left nothing of the sampling error that was bought; give sampling more epsilon"
NO_HOUSEHOLDS = (
    "how many households were drawn is not released, so a number of them has a total interval only where the statistic buys "
    "its own: sampling = { epsilon = ... }; a share of households has one"
)
NO_SPREAD = "how much its column varies was not released: release a variance of it above, and name it with variance = ..."
OR_OWN = "; or give the statistic sampling = { epsilon = ... }"
NO_SHARE = "donors fill a column that it uses: say under [expect] which share of its answers is missing, missing = { ... }"
NO_SIZE = "how many respondents were drawn is not known: write rows under [expect], or buy the design factor with [design]"
NO_WEIGHT = "what its weight stands for in respondents is not known: buy the design factor with [design], from items with this weight"
OF_THE_FILLING = "it tells of this filling of this sample, not of a population"
OF_ITS_PARTS = "a statistic that it is made of has none"
TO_KNOWN_TOTALS = "weights made of who answered have no sampling error here; with factors = { epsilon = ... } under [weight] they have"


def why_empty(sampled: Sampled, ask: Statistic, answers: Mapping[str, Answer]) -> str:
    """Why a statistic has no total interval."""
    if sampled.factor(ask.name) is None and ask.name not in sampled.own:
        return NO_FACTOR
    if sampled.is_unsized(ask):
        return NO_HOUSEHOLDS
    if ask.query.no_total:
        return ask.query.no_total
    if ask.name in sampled.own:
        return NOTHING_LEFT
    if not answers[ask.name].estimates[0].has_interval:
        return NO_INTERVAL
    return _unknown(sampled, ask, answers)


def _of_cells(ask: Statistic, answers: Mapping[str, Answer], sampled: Sampled) -> str:
    """What is made of cells needs what a share or a count of them needs."""
    counted = answers[ask.query.uses[0]].counted
    if counted is None or counted.wider is None:
        return NO_SHARE if counted is not None else OF_ITS_PARTS
    return NO_SIZE if sampled.size is None else NO_WEIGHT


def _unknown(sampled: Sampled, ask: Statistic, answers: Mapping[str, Answer]) -> str:
    """What is not known of its sampling error, although there is a design factor."""
    query, plan = asked_of(ask), sampled.plan
    if query.uses_cells:
        return _of_cells(ask, answers, sampled)
    if query.uses:
        return OF_ITS_PARTS
    if isinstance(query, UnservedRecipients):
        return OF_THE_FILLING
    if ask.weighted:
        return TO_KNOWN_TOTALS
    if widening(ask.query, plan.schema, plan.repair) is None:
        return NO_SHARE
    if _is_of_a_number(ask, sampled) and ask.variance is None:
        return NO_SPREAD + (OR_OWN if _can_buy_its_own(ask, sampled) else "")
    return NO_SIZE if sampled.size is None else NO_WEIGHT


def _is_of_a_number(ask: Statistic, sampled: Sampled) -> bool:
    shape = asked_of(ask).shape(sampled.plan.setting.schema)
    return isinstance(shape, CodedMean | CodedSum) and shape.number is not None


def _can_buy_its_own(ask: Statistic, sampled: Sampled) -> bool:
    """Whether a plan would let it: not of a column that donors fill, nor of levels."""
    plan, held = sampled.plan, sampled.plan.schema.coded
    is_filled = rests_on_caps(ask.query, plan.schema, plan.repair)
    return not is_filled and not any(isinstance(held.get(name), Levels) for name in asked_of(ask).values)
