"""PrivBayes as first printed: a fixed number of parents, mutual information. For a public number of rows only.

Mutual information is in whole numbers, with how far one replaced row can move it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from math import ceil, prod

import numpy as np
from flint import arb, ctx

from reticent.errors import EngineError, PlanError
from reticent.privacy.claim import Change, Claim
from reticent.privacy.convert import ball_up
from reticent.synth.base import (
    Conditional,
    Counted,
    FitTask,
    Floats,
    MissingMethod,
    Places,
    Spend,
    Step,
)
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.privbayes import MOST_CELLS, ParentChoice, Search
from reticent.synth.network import Network, clipped, total_of
from reticent.synth.spending import NoisyCounts, claim_of

FINE = 20
"""Scores are in steps of 2**-FINE of a bit times n."""


def information(table: Counted) -> int:
    """n times the mutual information between the last side of a table and the others, in bits, up to rounding.

    sum f(c) - sum f(r) - sum f(s) + f(n) with f(k) = floor(2**20 k log2 k).

    Guarantee   moves by at most `information_reach`.
    Adjacency   one of n rows replaced, n public.
    Theorem     Zhang and others 2017, the bound on mutual information; proved anew.
    Proof       proofs/synth/marginals/privbayes_printed.md
    Assumes     every row is in exactly one cell of `table`, before and after.
    Keeps back  the score.
    """
    joint = table.reshape(-1, table.shape[-1])
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    return _sum(joint.ravel()) - _sum(rows) - _sum(columns) + _floor(int(joint.sum()))


def information_reach(n: int, shapes: Iterable[tuple[int, int]]) -> int:
    """How far one replaced row of `n` can move the score of any table of these shapes (lines, own cells).

    2**20 (2 log2((n + 1)/2) + (n - 1) log2((n + 1)/(n - 1))), rounded up, and one for every rounding.
    """
    with ctx.workprec(256):
        m = arb(n)
        exact = 2 * ((m + 1) / 2).log() + ((m - 1) * ((m + 1) / (m - 1)).log() if n > 1 else arb(0))
        steps = ceil(ball_up(exact / arb(2).log() * 2**FINE))
    return steps + max(lines * own + lines + own + 1 for lines, own in shapes)


def _sum(counts: Counted) -> int:
    values, times = np.unique(counts, return_counts=True)
    return sum(_floor(v) * t for v, t in zip(values.tolist(), times.tolist(), strict=True))


@lru_cache(maxsize=1 << 18)
def _floor(k: int) -> int:
    """floor(2**20 k log2 k), decided by balls narrow enough. A whole logarithm is taken exactly."""
    if k < 2:
        return 0
    if k & (k - 1) == 0:
        return (k * (k.bit_length() - 1)) << FINE
    precision = 128
    while True:
        with ctx.workprec(precision):
            exact = arb(k) * arb(k).log() / arb(2).log() * 2**FINE
            low = exact.floor().unique_fmpz()
        if low is not None:
            return int(low)
        precision *= 2


PAGE = "proofs/synth/marginals/privbayes_printed.md"
EVERY_ROW = (MissingMethod.RANDOM, MissingMethod.MEAN, MissingMethod.MODEL, MissingMethod.VALUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayesPrinted:
    """Each column has `degree` parents among those before, or all of them while there are fewer.

    The printed bound on mutual information holds where one of n rows is replaced and n is known to everybody. So the codebook
    must declare the sample size, the change must be a replacement, and every row must be in every table.
    """

    degree: int = 2
    choosing: Fraction = Fraction(1, 2)
    share: Fraction = SHARE
    name: str = "privbayes-printed"

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share)
        if self.degree < 1:
            raise PlanError("is a whole number from 1 up", field="degree")
        if spend.change is not Change.REPLACE or spend.records != 1 or domain.schema.sample_size is None:
            raise PlanError(
                "privbayes-printed is proved for one of n rows replaced, with n public: declare sample_size in the "
                "codebook and protect replaced answers, or use 'privbayes', which needs neither.",
                field="method",
            )
        if spend.stability != 1:
            raise PlanError(
                f"privbayes-printed is proved for one row replaced, and of rows that donors filled one respondent is "
                f"{spend.stability}; use 'privbayes', or leave the donors out, and missing cells are filled after the noise.",
                field="method",
            )
        if missing not in EVERY_ROW:
            raise PlanError(
                f"privbayes-printed divides by the number of rows of each table, and with {missing.value!r} that number is "
                "confidential; use 'privbayes', or fill the cells first.",
                field="missing",
            )
        if _largest(domain, self._degree(domain)) > MOST_CELLS:
            raise PlanError("makes tables that are too large; use fewer parents or bins", field="degree")

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("Zhang and others 2017, as printed", PAGE))

    def rounds(self, domain: Domain) -> int:
        return len(domain.axes) + 2

    def fit(self, task: FitTask) -> Network:
        """Choose by mutual information, measure the tables of all columns with `degree` parents, derive the others.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   one of n rows replaced, n public.
        Theorem     Zhang and others 2017, with a fixed degree and mutual information.
        Proof       proofs/synth/marginals/privbayes_printed.md
        Assumes     `counts` maps rows one by one, and holds as many rows as the codebook says.
        Keeps back  tables and scores.
        """
        domain, step = task.domain, task.step
        self.check(domain, task.missing, task.spend)
        ready = prepared(task, model=Independent(), share=self.share)
        search = Search.of(ready, score=information, tidy=clipped)
        accountant = search.accountant
        _check_rows(search)
        degree = self._degree(domain)
        choosing = self.choosing * accountant.total if len(domain.axes) > 1 else Fraction(0)
        network = self._network(search, degree, amount=choosing, step=step)
        noisy = search.measure(network[degree:], amount=accountant.left)
        step("tables")
        steps = _conditionals(search, network, noisy, degree)
        claim = self.claim(domain, task.missing, task.spend)
        return Network(domain=domain, steps=steps, total=total_of(noisy), claim=claim)

    def _degree(self, domain: Domain) -> int:
        return min(self.degree, len(domain.axes) - 1)

    def _network(self, search: Search, degree: int, *, amount: Fraction, step: Step) -> list[ParentChoice]:
        network = [search.by_lot()]
        columns, n = len(search.domain.axes), search.domain.schema.sample_size or 0
        while len(network) < columns:
            open_ = _candidates(columns, tuple(one.place for one in network), degree)
            shapes = [_shape(search.domain, one) for one in open_]
            reach = information_reach(n, shapes)
            network.append(search.best(open_, sensitivity=reach, amount=amount / (columns - 1)))
            step("parents")
        return network


def _candidates(columns: int, drawn: Places, degree: int) -> list[ParentChoice]:
    sets = list(combinations(sorted(drawn), min(degree, len(drawn))))
    rest = [place for place in range(columns) if place not in drawn]
    return [ParentChoice(place=place, parents=tuple((p, 0) for p in each)) for place in rest for each in sets]


def _shape(domain: Domain, one: ParentChoice) -> tuple[int, int]:
    return domain.cells(one.given), domain.axes[one.place].size


def _largest(domain: Domain, degree: int) -> int:
    return prod(sorted(domain.shape)[-degree - 1 :])


def _check_rows(search: Search) -> None:
    """Neighbours have equally many rows, so they pass or fail alike."""
    (table,) = search.counts.count([(0,)])
    if int(table.sum()) != search.domain.schema.sample_size:
        raise EngineError("the survey does not have as many rows as its codebook says; mend sample_size")


def _conditionals(
    search: Search, network: list[ParentChoice], noisy: list[NoisyCounts], degree: int
) -> tuple[Conditional, ...]:
    """The first columns are parents of the first one measured, all of them: their chances are sums of its table."""
    first = network[degree]
    sizes = [search.ladders[place][0].size for place in (*first.given, first.place)]
    joint = noisy[0].cells[: prod(sizes)].reshape(sizes)
    early = []
    for one in network[:degree]:
        kept = [first.given.index(place) for place in (*one.given, one.place)]
        table = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in kept))
        order = [sorted(kept).index(axis) for axis in kept]
        early.append(search.conditional(one, _like(noisy[0], table.transpose(order).ravel())))
    late = [search.conditional(one, table) for one, table in zip(network[degree:], noisy, strict=True)]
    return (*early, *late)


def _like(noisy: NoisyCounts, cells: Floats) -> NoisyCounts:
    return NoisyCounts(cells=cells, deviation=noisy.deviation, size=noisy.size)
