"""What a synthesizer spends: one budget, counted exactly, in rho or (for pure noise) in epsilon, and the noise it buys.

The noise is that of the operating system's generator. There is no seed here, and no way to pass one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import Bits, SystemBits
from reticent.noise.gaussian import add_gaussian_many
from reticent.noise.laplace import add_laplace_many
from reticent.noise.selection import exponential
from reticent.privacy.claim import Claim
from reticent.privacy.convert import PLACES, root_below, zcdp_to_epsilon
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.donors import CAPPED_PAGES
from reticent.synth.base import Counted, Floats, Spend, SynthNoise

PAGE = "proofs/synth/spending.md"
ROOT = (99, 70)
"""99/70 is just above the root of two: 99 * 99 = 2 * 70 * 70 + 1."""
_ONE = 10**PLACES


NO_SUMS: Floats = np.zeros(0)
FINE = 1000
KAPPA = Fraction(3, 10)
"""How far a record may move each list of sums, beside the one cell that it moves by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyCounts:
    """Counts after the noise, with the standard deviation and the mean size of one cell's noise.

    `sums` are further noisy numbers that were measured with them, `sum_deviations` the deviation of each.
    """

    cells: Floats = field(repr=False)
    deviation: float
    size: float
    sums: Floats = field(repr=False, default_factory=lambda: NO_SUMS)
    sum_deviations: Floats = field(repr=False, default_factory=lambda: NO_SUMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSums:
    """CONFIDENTIAL: sums over rows, of which a record is in at most one, by a whole number of size at most `most`."""

    sums: Counted = field(repr=False)
    most: int


@lru_cache(maxsize=256)
def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho of 12 places for which rho-zCDP is certified to be (epsilon, delta)-DP."""
    low, high = 0, int(_ONE * epsilon) + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = zcdp_to_epsilon(rho=Fraction(middle, _ONE), delta=delta) <= epsilon
        low, high = (middle, high) if is_enough else (low, middle)
    if low == 0:
        raise PlanError("it is too small to be spent at this delta; use a larger one.", field="epsilon")
    return Fraction(low, _ONE)


def total_of(spend: Spend) -> Fraction:
    """All that may be spent: epsilon where it is pure, else rho, given or certified for (epsilon, delta)."""
    if spend.is_pure:
        return spend.epsilon
    return spend.rho or rho_within(spend.epsilon, spend.delta)


def claim_of(spend: Spend, *rests_on: tuple[str, str]) -> Claim:
    """What is promised once a whole budget made of `spend` is spent."""
    return Claim(
        measure="zcdp" if spend.rho else "approximate" if spend.delta else "pure",
        epsilon=spend.epsilon,
        delta=spend.delta,
        rho=spend.rho,
        change=spend.change,
        rests_on=(
            *rests_on,
            *(CAPPED_PAGES if spend.stability > 1 else ()),
            ("composition of tables and choices in one budget", PAGE),
        ),
    )


@dataclass(slots=True, kw_only=True)
class Accountant:
    """An amount of zCDP, or of epsilon where `is_pure`, and what is left of it.

    Guarantee   all calls together are `total`-zCDP, or `total`-DP where `is_pure`.
    Adjacency   `spend.neighbours`.
    Theorem     Bun and Steinke 2016, lemma 2.3; Rogers and others 2016 for amounts chosen on the way.
    Proof       proofs/synth/spending.md
    Assumes     a record is in at most one cell of each measured table; scores move by at most their `sensitivity`.
    Keeps back  the tables and the scores.
    """

    spend: Spend
    noise: SynthNoise = field(repr=False)
    total: Fraction = field(init=False)
    spent: Fraction = field(init=False, default=Fraction(0))

    def __post_init__(self) -> None:
        self.total = total_of(self.spend)

    @property
    def is_pure(self) -> bool:
        return self.spend.is_pure

    @property
    def left(self) -> Fraction:
        return self.total - self.spent

    def measure(self, tables: Sequence[Counted], *, amount: Fraction) -> list[NoisyCounts]:
        """Noise on all cells of all `tables`, the amount in equal parts."""
        part = amount / max(1, len(tables))
        self._take(part * len(tables))
        return [self._laplace(t, part) if self.is_pure else self._gaussian(t, part) for t in tables]

    def measure_with_sums(self, table: Counted, sums: Sequence[RowSums], *, amount: Fraction) -> NoisyCounts:
        """Noise on all cells of `table` and, in the same list, on `sums`, which are brought to KAPPA of a record.

        Guarantee   `amount`-zCDP, or `amount`-DP where `is_pure`.
        Adjacency   `spend.neighbours`.
        Theorem     one list, moved by a vector whose length is bounded entry by entry.
        Proof       proofs/synth/spending.md
        Assumes     a record is in one cell of `table`, and in at most one of each `sums`, by at most its `most`.
        Keeps back  the table and the sums.
        """
        if not sums:
            return self.measure([table], amount=amount)[0]
        self._take(amount)
        fine = max(FINE, *(-(-each.most * KAPPA.denominator // KAPPA.numerator) for each in sums))
        scales = [int(KAPPA * fine) // each.most for each in sums]
        weights = [scale * each.most for scale, each in zip(scales, sums, strict=True)]
        answers = [
            *(fine * table).ravel().tolist(),
            *(int(s) * scale for scale, each in zip(scales, sums, strict=True) for s in each.sums.ravel()),
        ]
        length = self._list_length(fine, weights)
        if self.is_pure:
            made = self.noise.laplace_many(answers, sensitivity=length, epsilon=amount)
            size = float(length / amount)
            deviation = sqrt(2) * size
        else:
            made = self.noise.gaussian_many(answers, sensitivity=length, rho=amount)
            deviation = length / sqrt(2 * amount)
            size = deviation * sqrt(2 / pi)
        many = np.repeat(np.array(scales, np.float64), [each.sums.size for each in sums])
        return NoisyCounts(
            cells=_shaped(made[: table.size], table, fine),
            deviation=deviation / fine,
            size=size / fine,
            sums=np.array(made[table.size :], np.float64) / many,
            sum_deviations=deviation / many,
        )

    def deviation(self, amount: Fraction, *, sums: int = 0) -> float:
        """The standard deviation of one cell's noise, in records, where so many lists of sums are measured with a table."""
        length = self._list_length(FINE, [int(KAPPA * FINE)] * sums) / FINE
        return float(sqrt(2) * length / amount) if self.is_pure else length / sqrt(2 * amount)

    def add(self, sums: Counted, *, length: int, amount: Fraction) -> Floats:
        """Gaussian noise on a list that one record moves by a vector of Euclidean length at most `length`.

        A record that answers otherwise takes one such vector away and brings another, which need have nothing in common.
        """
        if self.is_pure:
            raise PlanError("Gaussian noise needs a delta", field="delta")
        self._take(amount)
        bound = length * self.spend.neighbours.steps
        return np.array(self.noise.gaussian_many(sums.tolist(), sensitivity=bound, rho=amount), np.float64)

    def set_aside(self) -> Fraction:
        """All that is left, for steps that another accountant counts; how much was spent until then."""
        before = self.spent
        self._take(self.left)
        return before

    def choose(self, scores: Sequence[int], *, sensitivity: int, amount: Fraction) -> int:
        """The exponential mechanism on scores of which each moves by at most `sensitivity` between neighbours."""
        self._take(amount)
        epsilon = amount if self.is_pure else root_below(8 * amount)
        return self.noise.choose(scores, sensitivity=sensitivity, epsilon=epsilon)

    def size(self, amount: Fraction) -> float:
        """The mean size of one cell's noise when one table is measured with `amount`."""
        if self.is_pure:
            return float(self.spend.neighbours.steps / amount)
        length, fine = self._length()
        return sqrt(1 / (pi * amount)) * length / fine

    def _list_length(self, fine: int, weights: Sequence[int]) -> int:
        """How far neighbours move a list of which a record has one entry of `fine` and one of each of `weights`, at most.

        Summed for pure noise, else Euclidean. A record that answers otherwise leaves one cell for another, and turns a
        sum by at most twice its weight.
        """
        neighbours = self.spend.neighbours
        if self.is_pure:
            return neighbours.steps * (fine + sum(weights))
        turned = 2 if neighbours.replaced else 1
        squares = turned * fine**2 + sum((turned * weight) ** 2 for weight in weights)
        return neighbours.records * (isqrt(squares - 1) + 1)

    def _take(self, amount: Fraction) -> None:
        if amount <= 0 or self.spent + amount > self.total:
            raise PlanError("this step would spend more than was set aside; ask for less.", field="epsilon")
        self.spent += amount

    def _laplace(self, table: Counted, epsilon: Fraction) -> NoisyCounts:
        steps, size = self.spend.neighbours.steps, self.size(epsilon)
        made = self.noise.laplace_many(table.ravel().tolist(), sensitivity=steps, epsilon=epsilon)
        return NoisyCounts(cells=_shaped(made, table, 1), deviation=sqrt(2) * size, size=size)

    def _gaussian(self, table: Counted, rho: Fraction) -> NoisyCounts:
        (length, fine), size = self._length(), self.size(rho)
        made = self.noise.gaussian_many((fine * table).ravel().tolist(), sensitivity=length, rho=rho)
        return NoisyCounts(cells=_shaped(made, table, fine), deviation=sqrt(pi / 2) * size, size=size)

    def _length(self) -> tuple[int, int]:
        """The Euclidean length of one table's move, in steps of 1/`fine` of a record.

        A record that answers otherwise leaves one cell for another: a move of the root of two, not of two.
        """
        records = self.spend.neighbours.records
        return (ROOT[0] * records, ROOT[1]) if self.spend.neighbours.replaced else (records, 1)


def _shaped(made: Sequence[int], table: NDArray[np.int64], fine: int) -> Floats:
    return np.array(made, dtype=np.float64).reshape(table.shape) / fine


@dataclass(frozen=True, slots=True)
class SystemSynthNoise:
    """The only noise with which a synthesizer's network may be published."""

    @property
    def is_private(self) -> bool:
        """True: nobody can replay it."""
        return True

    @property
    def bits(self) -> Bits:
        """Fresh bits for rows, fills and other draws that come after the noise."""
        return SystemBits()

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """See `add_laplace_many`."""
        return add_laplace_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), epsilon=epsilon)

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        """See `add_gaussian_many`."""
        return add_gaussian_many(answers, sensitivity=Global(bound=Fraction(sensitivity)), rho=rho)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """See `exponential`."""
        return exponential(scores, sensitivity=sensitivity, epsilon=epsilon, bits=self.bits)
