"""Quantiles on a declared grid, by a private choice on ranks: permute-and-flip, or for rho the exponential mechanism.

An interval costs two more choices.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, log

from reticent.answer.context import (
    Context,
    completions,
    imputed,
    rests_on_caps,
    rings_of,
    times,
    weight_of,
    with_donees,
)
from reticent.answer.count import widening
from reticent.answer.expect import IN_RANKS, IN_WEIGHT, Expected
from reticent.answer.parts import (
    GAPS_WORDS,
    RANK_WORDS,
    SELECTED_WORDS,
    WEIGHT_WORDS,
    Answer,
    Estimate,
    Interval,
    Measurement,
    plan_part,
)
from reticent.answer.shares import SumSpec, Tasks
from reticent.answer.statistic import (
    CAPPED,
    CHOICE,
    FLIP,
    GAUSS,
    LAPLACE,
    LINEAR,
    BaseRoute,
    Ground,
    answered,
)
from reticent.answer.woodruff import (
    SIZE,
    WOODRUFF_WORDS,
    EndBudgets,
    RankError,
    end_budgets,
    joint_shift,
    rank_error,
)
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.convert import root_below
from reticent.query.kinds import Quantile
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global, Neighbours, bound_rank

PAGE = "proofs/answer/quantile.md"


def rank_bound(query: Quantile, schema: Schema, neighbours: Neighbours, repair: Repair = NO_REPAIR) -> Global:
    """How far one respondent moves a score, with what capped donees add."""
    weight = weight_of(query.among, schema)
    own = bound_rank(query.at, weight.high if weight else 1, neighbours=neighbours)
    filled = imputed(query, schema, repair)
    return with_donees(own, filled.ranks(query.at), neighbours, repair, crosses=filled.crosses)


def scores(cells: tuple[int, ...], at: Fraction, shift: int = 0) -> list[int]:
    """Minus how far each candidate's rank is from the wanted one, b B - a W being the distance in b-ths.

    With a `shift` the wanted rank is lower (shift > 0) or higher (shift < 0) by |shift|/b, and one candidate is
    added beyond the end that the target may cross, so that some candidate always scores 0.
    """
    a, b = at.numerator, at.denominator
    total = sum(cells)
    below = [0, *accumulate(cells)][:-1]
    above = [total - low - cell for low, cell in zip(below, cells, strict=True)]
    # bB - aW + shift <= 0 and bA - (b-a)W - shift <= 0 say that the shifted rank falls on this candidate.
    inside = [
        -max(0, b * low - a * total + shift, b * up - (b - a) * total - shift)
        for low, up in zip(below, above, strict=True)
    ]
    if shift > 0:
        return [-max(0, a * total - shift), *inside]
    if shift < 0:
        return [*inside, -max(0, (b - a) * total + shift)]
    return inside


def slack(candidates: int, *, bound: Global, epsilon: Fraction, chance: Fraction) -> int:
    """Permute-and-flip and the exponential mechanism miss the best score by more with probability at most `chance`."""
    return ceil(2 * float(bound.bound) * log(candidates / float(chance)) / float(epsilon)) + 1


def rate_of(amount: Fraction, *, in_rho: bool) -> Fraction:
    """The epsilon of a choice: the amount itself, or that at which the exponential mechanism costs so much rho."""
    return root_below(8 * amount) if in_rho else amount


def choose(
    cells: tuple[int, ...], query: Quantile, shift: int, *, bound: Global, epsilon: Fraction, context: Context
) -> int:
    """The index of the candidate chosen for a quantile (or for a bound of it, with a shift).

    Guarantee   epsilon-DP for one call; `epsilon`-zCDP where context.in_rho.
    Adjacency   the one `bound` was proved for.
    Theorem     permute-and-flip with scores of sensitivity `bound`; the exponential mechanism for rho (THEORY 16.1).
    Proof       proofs/answer/quantile.md
    Assumes     `shift` is public; candidates come from the codebook and the plan; exact arithmetic.
    Keeps back  the scores.
    """
    ranked = scores(cells, query.at, shift)
    if context.in_rho:
        rate = rate_of(epsilon, in_rho=True)
        index = context.noise.choose(ranked, sensitivity=int(bound.bound), epsilon=rate)
    else:
        index = context.noise.select(ranked, sensitivity=int(bound.bound), epsilon=epsilon)
    return min(max(index - (shift > 0), 0), len(cells) - 1)


def answer_quantile(
    query: Quantile,
    epsilon: Fraction,
    context: Context,
    *,
    bar: Fraction = Fraction(0),
    level: Fraction,
    error: RankError | None = None,
) -> Answer:
    """The noisy quantile at cost epsilon; with `bar` > 0, an interval of `level` at that cost on top.

    With the sampling `error` of ranks, the same budget buys a total interval as well.

    Guarantee   (epsilon + bar)-DP for one call; (epsilon + bar)-zCDP where context.in_rho.
    Adjacency   context.neighbours.
    Theorem     `choose`, once, three or five times, and `measure` for the size; budgets add. Scores over several
                completions move as often.
    Proof       proofs/answer/quantile.md
    Assumes     tallies of `query.wants`; exact arithmetic.
    Keeps back  the exact table and the scores.
    """
    schema, copies = context.schema, context.copies
    one = rank_bound(query, schema, context.neighbours, context.repair)
    fine, values = query.parts_of_one(schema), query.candidates(schema)
    bound = times(one, copies * fine)
    held = context.tallies.tables[query.table(schema)].cells
    cells = query.spread(held, schema)

    def pick(shift: int, budget: Fraction) -> Fraction:
        return values[choose(cells, query, shift, bound=bound, epsilon=budget, context=context)]

    def ends(shift: int, budget: Fraction, inner: Interval) -> Interval:
        low, high = pick(shift, budget), pick(-shift, budget)
        return min(low, inner[0]), max(high, inner[1])

    point = pick(0, epsilon)
    everything = interval = total = (values[0], values[-1])
    budgets = end_budgets(bar, has_total=error is not None)
    if bar:
        rate = rate_of(budgets.end, in_rho=context.in_rho)
        reach = slack(len(cells) + 1, bound=bound, epsilon=rate, chance=(1 - level) / 2)
        interval = ends(reach, budgets.end, (point, point))
    if bar and error is not None:
        sampling = fine * _rank_reach(query, sum(held), error, budgets, context, level)
        total = ends(joint_shift(reach, sampling), budgets.end, interval)

    def covering(wanted: Fraction) -> Interval:
        """The interval was chosen for one level; of a higher one only the public limits are sure."""
        return interval if wanted <= level else everything

    def totally(wanted: Fraction) -> Interval:
        return total if wanted <= level else everything

    has_total = bool(bar) and error is not None
    estimate = Estimate(
        value=point,
        interval=covering,
        noise_sd=float("nan"),
        has_interval=bool(bar),
        total=totally if has_total else None,
        grain=_grain(values, point),
    )
    rate = rate_of(epsilon, in_rho=context.in_rho)
    meaning = SELECTED_WORDS if bar else _rank_words(len(cells), one, rate, level, query, schema)
    meaning += GAPS_WORDS if rests_on_caps(query, schema, context.repair) else ""
    size = _size_task(query, schema, context.neighbours, context.repair) if has_total else None
    parts = quantile_parts(query, epsilon, bar, one, size=size, copies=copies, in_rho=context.in_rho)
    said = WOODRUFF_WORDS if has_total else ""
    return Answer(estimates=(estimate,), parts=parts, meaning=meaning, total_meaning=said)


def _grain(values: Sequence[Fraction], point: Fraction) -> Fraction:
    """How far the candidates around a chosen one lie apart, on the side where they are farther."""
    place = values.index(point)
    around = values[max(0, place - 1) : place + 2]
    return max((high - low for low, high in pairwise(around)), default=Fraction(0))


def _size_task(query: Quantile, schema: Schema, neighbours: Neighbours, repair: Repair) -> SumSpec:
    """The size of the subpopulation as it is measured for a total interval: respondents, or their weight."""
    return Tasks(query, schema, neighbours, repair).count()


def _rank_reach(
    query: Quantile, whole: int, error: RankError, budgets: EndBudgets, context: Context, level: Fraction
) -> float:
    """How far sampling moves ranks, in the units of scores: b-ths of a step of weight, of all completions together.

    Guarantee   budgets.size-DP for one call; of zCDP where context.in_rho.
    Adjacency   context.neighbours.
    Theorem     `Tasks.count` and `Context.measure`; the rest is post-processing.
    Proof       proofs/answer/quantile.md
    Assumes     `whole` is the sum of the cells of the query's table; exact arithmetic.
    Keeps back  the exact size.
    """
    task = _size_task(query, context.schema, context.neighbours, context.repair)
    size = context.measure(whole, SIZE, bound=task.bound, grid=task.grid, epsilon=budgets.size)
    among = max(float(task.grid), float(size.estimate))
    steps = error.reach(query.at, among, level) / float(task.grid) * context.copies
    return query.at.denominator * steps


def quantile_parts(
    query: Quantile,
    epsilon: Fraction,
    bar: Fraction,
    bound: Global,
    *,
    size: SumSpec | None = None,
    copies: int = 1,
    in_rho: bool = False,
) -> tuple[Measurement, ...]:
    """What a quantile is made of, known before a row is read: one choice, and two more for an interval; for a total interval
    another two, and the `size` of the subpopulation."""
    budgets = end_budgets(bar, has_total=size is not None)
    named = ("interval", *(("total interval",) if size is not None else ()))
    ends = [(f"{end} end of its {which}", budgets.end) for which in named for end in ("lower", "upper")]
    chosen = [("quantile", epsilon), *(ends if bar else ())]
    told = bound.bound / query.at.denominator
    parts = tuple(
        selection(what, budget, moves=bound.bound, bound=told, unit=query.step, in_rho=in_rho, proof=PAGE)
        for what, budget in chosen
    )
    if size is None or not bar:
        return parts
    held = times(size.bound, copies)
    counted = plan_part(SIZE, bound=held, grid=size.grid / copies, epsilon=budgets.size, in_rho=in_rho)
    return (*parts[:3], counted, *parts[3:])


def selection(
    what: str,
    amount: Fraction,
    *,
    moves: Fraction,
    unit: Fraction,
    in_rho: bool,
    proof: str,
    bound: Fraction | None = None,
    mechanism: str = "permute-and-flip",
) -> Measurement:
    """A choice by scores that one respondent moves by at most `moves`; in rho it is the exponential mechanism's.

    `bound` is what is told of that, where scores are in other units.
    """
    mechanism = "exponential mechanism" if in_rho else mechanism
    return Measurement(
        what=what,
        epsilon=Fraction(0) if in_rho else amount,
        rho=amount if in_rho else Fraction(0),
        bound=moves if bound is None else bound,
        unit=unit,
        scale=2 * moves / rate_of(amount, in_rho=in_rho),
        mechanism=mechanism,
        theorem=mechanism,
        proof=proof,
    )


def _rank_words(
    candidates: int, bound: Global, epsilon: Fraction, level: Fraction, query: Quantile, schema: Schema
) -> str:
    ranks = _ranks(candidates, bound, epsilon, 1 - level, query, schema)
    said = WEIGHT_WORDS if query.weight else RANK_WORDS
    return f"{said}: at most {ceil(ranks)}; give interval an epsilon for an interval of values"


def _ranks(
    candidates: int, bound: Global, epsilon: Fraction, chance: Fraction, query: Quantile, schema: Schema
) -> Fraction:
    """How far a choice's rank is off but for `chance`: in respondents, or in weight."""
    weight = weight_of(query.among, schema)
    ranks = Fraction(slack(candidates, bound=bound, epsilon=epsilon, chance=chance), query.at.denominator)
    return ranks * (weight.grid if weight else 1)


class QuantileRoute(BaseRoute[Quantile]):
    """A quantile, by a private choice among candidates; its interval can be bought."""

    __slots__ = ()
    goes_by_domain = True

    @property
    def bound(self) -> Global:
        """How far one respondent moves a score."""
        return rank_bound(self.query, self.setting.schema, self.setting.neighbours, self.setting.repair)

    @property
    def wider(self) -> float | None:
        """By how much filling widens the sampling variance: 1 where nothing is filled, None where that is not known."""
        return widening(self.query, self.setting.schema, self.setting.repair)

    @property
    def has_total(self) -> bool:
        """Whether the interval's budget buys a total interval too: where the design factor will be known."""
        ask = self.statistic
        return bool(ask.bar) and ask.name in self.setting.designed and self.wider is not None

    @property
    def parts(self) -> tuple[Measurement, ...]:
        ask, here = self.statistic, self.setting
        size = _size_task(self.query, here.schema, here.neighbours, here.repair) if self.has_total else None
        copies = rings_of(self.query, here.schema, here.repair)
        return quantile_parts(
            self.query, ask.epsilon, ask.bar, self.bound, size=size, copies=copies, in_rho=ask.in_rho
        )

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        in_rho = self.statistic.in_rho
        sized = ((GAUSS if in_rho else LAPLACE),) if self.has_total else ()
        own = (answered("quantile"), LINEAR, CHOICE if in_rho else FLIP, *sized)
        is_capped = rests_on_caps(self.query, self.setting.schema, self.setting.repair)
        return (*own, *CAPPED) if is_capped else own

    @property
    def no_rho(self) -> str:
        return ""

    @property
    def no_bar(self) -> str:
        return ""

    def expect(self) -> Expected:
        """In ranks: respondents between the answer and the exact one; with weights, what they weigh."""
        ask, schema = self.statistic, self.setting.schema
        rate = rate_of(ask.epsilon, in_rho=ask.in_rho)
        ranks = _ranks(
            len(self.query.candidates(schema)), self.bound, rate, 1 - ask.level, self.query, schema
        )
        return Expected(margin=ranks, how=IN_WEIGHT if self.query.weight else IN_RANKS)

    @property
    def interval_reach(self) -> Fraction | None:
        """By how many ranks, or how much weight, the ends of the interval lie beyond the wanted rank; None without one."""
        ask, schema = self.statistic, self.setting.schema
        if not ask.bar:
            return None
        end = end_budgets(ask.bar, has_total=self.has_total).end
        candidates = len(self.query.candidates(schema)) + 1
        rate = rate_of(end, in_rho=ask.in_rho)
        return _ranks(candidates, self.bound, rate, (1 - ask.level) / 2, self.query, schema)

    def measured(self, context: Context) -> Answer:
        ask = self.statistic
        held = completions(self.query, context)
        error = None
        if self.has_total:
            error = rank_error(ask.name, self.query.weight, context, wider=self.wider or 1.0)
        return answer_quantile(self.query, ask.epsilon, held, bar=ask.bar, level=ask.level, error=error)
