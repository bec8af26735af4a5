"""Answers about gaps that were filled several times from uncertain lines: the mean over copies, and its interval.

The answer costs its epsilon, however many copies there are. What is bought beside it, for an error bar's epsilon, says
how far the answer would move with the lines, in how many rows it rests on a draw, and how far rows are apart. From these
the interval follows by Rubin's rules: sampling, filling, and all noise.
"""

from dataclasses import replace
from fractions import Fraction

from reticent.answer.base import COPIES_WORDS, Answer, Estimate, Interval
from reticent.answer.bought import BarMeasurements, CompletedSums, buy
from reticent.answer.context import Context
from reticent.answer.count import answer_count, answer_total
from reticent.answer.linear import Copiable, decided
from reticent.answer.ratio import mean_ratio, share_ratio
from reticent.engine.wants import Sum
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.refine.rubin import combine
from reticent.schema import Schema


def copied_wants(query: Copiable, schema: Schema) -> tuple[Sum, ...]:
    """All that an ask over copies needs of each."""
    more = (query.power(schema, 0), query.power(schema, 2)) if isinstance(query, Total | Mean) else ()
    return (*query.wants(schema), decided(query, schema), *more)


def answer_copied(
    query: Copiable,
    epsilon: Fraction,
    bar: Fraction,
    context: Context,
    *,
    copied: CompletedSums,
    drawn: float,
    effect: float = 1.0,
) -> Answer:
    """The mean over copies; with a `bar`, an interval about everything that is uncertain.

    `drawn` is the variance of a draw about its line, in the unit of the column; `effect` the design effect.

    Guarantee   (epsilon + bar)-DP for one call, given the lines.
    Adjacency   context.neighbours.
    Theorem     the answer's own, for means over copies; and the Laplace mechanism for what is bought.
    Proof       proofs/answer/copied.md
    Assumes     in each copy a row's cells depend on that row, released lines and its own draws; exact arithmetic.
    Keeps back  the exact sums of every copy, who has gaps, and how many have.
    """
    tallies = replace(context.tallies, statistics=copied.total)
    over = replace(context, tallies=tallies, copies=copied.copies, known=None)
    answer, count = _answer(query, epsilon, over)
    if not bar:
        return answer
    (estimate,) = answer.estimates
    bought = buy(query, estimate.value, bar, over, copied)
    variances = _variances(query, estimate.value, count, bought, over, drawn)
    made = combine(
        float(estimate.value),
        within=max(0.0, effect * variances[0]),
        between=bought.sampled / count**2 + variances[1],
        heavy=bought.heavy / count**2,
        copies=copied.copies,
        noise=(estimate.noise_sd or 0.0) ** 2,
    )

    def interval(level: Fraction) -> Interval:
        low, high = made.interval(float(level))
        return Fraction(low), Fraction(high)

    told = Estimate(value=estimate.value, interval=interval, noise_sd=estimate.noise_sd)
    return Answer(estimates=(told,), parts=(*answer.parts, *bought.parts), meaning=COPIES_WORDS)


def _answer(query: Copiable, epsilon: Fraction, context: Context) -> tuple[Answer, float]:
    """The answer, and what it was divided by."""
    match query:
        case Count():
            return answer_count(query, epsilon, context), 1.0
        case Total():
            return answer_total(query, epsilon, context), 1.0
        case Mean():
            ratio = mean_ratio(query, epsilon, context)
        case Proportion():
            ratio = share_ratio(query, epsilon, context)
    return ratio.answer(None), float(ratio.count)


def _variances(
    query: Copiable, value: Fraction, count: float, bought: BarMeasurements, context: Context, drawn: float
) -> tuple[float, float]:
    """The variance of sampling, and that of the draws. Statistics, on released numbers alone."""
    answer, gaps, rows = float(value), bought.gaps, context.rows
    if isinstance(query, Mean):
        return bought.squares / count**2, gaps * min(drawn, bought.squares / count) / count**2
    if isinstance(query, Total):
        return bought.squares - (answer**2 / rows if rows else 0.0), gaps * drawn
    share = (
        answer / rows
        if isinstance(query, Count) and rows
        else answer
        if isinstance(query, Proportion)
        else 0.5
    )
    each = min(max(share * (1 - share), 0.0), 0.25)
    if isinstance(query, Proportion):
        return each / count, gaps * each / count**2
    return (rows * each if rows else max(0.0, answer)), gaps * each
