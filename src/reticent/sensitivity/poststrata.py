"""How much a post-stratified answer can move: the largest weight, now and after k respondents have come or gone.

A record of base weight w in a bin of known total N weighs w N/B, B the base weights of its bin. One respondent
moves a weighted count by at most the largest weight that anybody has, or would have on coming: W_0. W_k is the
largest W_0 within k steps. Both are read off the rows and never shown.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.prepare.strata import BaseWeights, Strategy
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import Ladder, LadderLine

Counts = NDArray[np.int64]

_NEAR = 1 - 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tally:
    """What the rows say, bin by bin: an ordered cell table. All of it is private.

    `count` is n, the records of positive base weight; `total` is B and `matching` A, the sums of w and of w y, y
    being 0 or 1 or whole steps of a value; A may be whole numbers of any size. `largest` has K columns: the largest base weights of each bin,
    falling, then zeros.
    """

    count: Counts = field(repr=False)
    total: Counts = field(repr=False)
    matching: Counts | NDArray[np.object_] = field(repr=False)
    largest: Counts = field(repr=False)

    def __post_init__(self) -> None:
        n, kept = len(self.count), self.largest.shape[-1]
        if not self.total.shape == self.matching.shape == (n,) or self.largest.shape != (n, kept):
            raise ValueError("a tally has one line for each bin")
        if (self.largest < 0).any() or (np.diff(self.largest, axis=1) > 0).any():
            raise ValueError("the largest weights of a bin fall")
        if ((self.largest > 0).sum(axis=1) != np.minimum(self.count, kept)).any():
            raise ValueError("as many of the largest weights are positive as there are records, or all")
        rest, others = self.total - self.largest.sum(axis=1), np.maximum(self.count - kept, 0)
        if (rest < others).any() or (rest > 0)[others == 0].any():
            raise ValueError("the weights that are not listed make up the rest of the total")

    def merged(self, strategy: Strategy) -> "Tally":
        """The tally of the strategy's bins, exactly, from that of its base cells."""
        at, size = np.array(strategy.bins, np.int64), len(strategy.totals)
        if len(at) != len(self.count):
            raise ValueError("tally and strategy are over the same base cells")
        sums = (_sums(each, at, size) for each in (self.count, self.total, self.matching))
        count, total, matching = sums
        kept = self.largest.shape[1]
        largest = _largest(self.largest.ravel(), np.repeat(at, kept), size, kept)
        return Tally(count=count, total=total, matching=matching, largest=largest)


def tally_rows(cells: Counts, weights: Counts, values: Counts, *, size: int, base: BaseWeights) -> Tally:
    """The tally of records, one line each: their base cell, base weight and 0/1 or numeric value."""
    weights = np.clip(weights, 0, base.heaviest)
    there = weights > 0
    cells, weights, values = cells[there], weights[there], values[there]
    return Tally(
        count=_sums(np.ones_like(cells), cells, size),
        total=_sums(weights, cells, size),
        matching=_sums(weights * values, cells, size),
        largest=_largest(weights, cells, size, base.kept),
    )


def _sums(values: NDArray[Any], at: Counts, size: int) -> NDArray[Any]:
    sums = np.zeros(size, values.dtype)
    np.add.at(sums, at, values)
    return sums


def _largest(weights: Counts, at: Counts, size: int, kept: int) -> Counts:
    """The `kept` largest weights of each bin, falling, then zeros."""
    order = np.lexsort((-weights, at))
    at, weights = at[order], weights[order]
    rank = np.arange(len(at)) - np.searchsorted(at, at)
    listed = np.zeros((size, kept), np.int64)
    listed[at[rank < kept], rank[rank < kept]] = weights[rank < kept]
    return listed


def weight_ladder(strategy: Strategy, tally: Tally, *, base: BaseWeights) -> Ladder:
    """W_k, from the tally of the strategy's own bins; with unequal weights the largest N from rung K on.

    Guarantee   W_0 covers what one respondent moves a weighted count, W_k(D) <= W_{k+1}(D') between neighbours,
                and below K W_k is the exact maximum of W_0 within k steps.
    Adjacency   one respondent added or removed.
    Theorem     THEORY 6.1 and 6.2, with 1.2b past K.
    Proof       proofs/sensitivity/poststrata.md
    Assumes     bins, totals, heaviest weight and K public; base weight and bin depend on the record alone.
    Keeps back  all of it.
    """
    if len(tally.count) != len(strategy.totals):
        raise ValueError("the tally is that of the strategy's bins")
    line = LadderLine(base=strategy.largest)
    if base.heaviest == 1:
        heads = tally.count
        return Ladder(
            rung=lambda k: _highest(strategy, np.ones_like(heads), np.maximum(heads - k, 1)), lines=(line,)
        )
    if tally.largest.shape[1] != base.kept:
        raise ValueError("the tally keeps as many weights as was publicly agreed")
    exact = Ladder(rung=_Rungs(strategy, tally, base.heaviest).at, lines=(line,))
    return lad.mixture(exact, lad.constant(strategy.largest), start=base.kept)


class _Rungs:
    """W_k for k < K where weights differ: who stays, or who might come, after the k largest others have gone."""

    __slots__ = ("_heaviest", "_strategy", "_tally", "_upto")

    def __init__(self, strategy: Strategy, tally: Tally, heaviest: int) -> None:
        self._strategy, self._tally, self._heaviest = strategy, tally, heaviest
        self._upto = np.pad(np.cumsum(tally.largest, axis=1), ((0, 0), (1, 0)))

    def at(self, k: int) -> Fraction:
        total, heaviest = self._tally.total, np.full_like(self._tally.total, self._heaviest)
        # Nobody there: the first term is 0/1, and the second N.
        first = self._tally.largest[:, 0]
        stays = _highest(self._strategy, first, np.maximum(first + total - self._upto[:, k + 1], 1))
        comes = _highest(self._strategy, heaviest, heaviest + total - self._upto[:, k])
        return max(stays, comes)


def _highest(strategy: Strategy, over: Counts, under: Counts) -> Fraction:
    """The exact maximum of N over/under. Doubles, wrong by less than one part in 2^50, say which bins to look at."""
    near = np.array([float(each) for each in strategy.totals]) * over / under
    best = np.flatnonzero(near >= near.max() * _NEAR).tolist()
    shares = {(strategy.totals[each], int(over[each]), int(under[each])) for each in best}
    return max(total * Fraction(one, other) for total, one, other in shares)


def numeric_reach(low: Fraction, high: Fraction) -> Fraction:
    """What W_k is multiplied by for a value in [low, high]: max(high, 0) - min(low, 0), which is 1 for 0/1."""
    if low > high or low == high == 0:
        raise PlanError("the bounds are turned round, or both 0.", field="bounds")
    return max(high, Fraction(0)) - min(low, Fraction(0))


def closed_form(strategy: Strategy, count: Counts, *, beta: Fraction) -> arb:
    """max over k of e^(-beta k) W_k where all base weights are equal: over bins, max(N/n, N e^(-beta (n-1)))."""
    heads = np.maximum(count, 1).tolist()
    with ctx.workprec(128):
        bounds = [
            ball(total / n).max(ball(total) * ball(-beta * (n - 1)).exp())
            for total, n in zip(strategy.totals, heads, strict=True)
        ]
        return max(bounds, key=lambda bound: float(bound.mid()))


def rungs_needed(*, beta: Fraction, rows: int) -> int:
    """A K at which rungs past K do not win, for up to `rows` records: the least with e^(-beta K) <= 1/(rows + 1).

    W_0 is at least N/(rows + 1) in the bin with the largest N, and the rungs past K are that N. A larger survey
    only gets more noise.
    """
    if rows < 1 or beta <= 0:
        raise PlanError("rows and beta are positive.", field="rows")
    with ctx.workprec(128):
        goal = ball(rows + 1).log()
        k = max(1, int(float(goal / ball(beta))))
        return next(each for each in (k, k + 1, k + 2) if ball(beta * each) > goal)
