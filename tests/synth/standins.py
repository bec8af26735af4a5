"""Stand-ins for synthesizers' tests: rows in an array, and noise that repeats, is recorded, or is none."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.engine.coded import coins
from reticent.engine.protocol import RowFill, RowSum
from reticent.noise.bits import Bits, words
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.synth.base import Conditional, Counted, Places
from reticent.synth.domain import Domain, domain_of
from tests.noise.seeded import SeededBits

Cells = NDArray[np.int64]


def toy(levels: Sequence[int], *, universes: dict[str, str] | None = None, ordered: bool = False) -> Domain:
    """Columns a, b, c, ... with that many levels `0`, `1`, ...; `universes` says who is asked what."""
    columns = {}
    for name, count in zip("abcdefghij", levels, strict=False):
        columns[name] = {
            "kind": "ordinal" if ordered else "categorical",
            "levels": [str(level) for level in range(count)],
            "universe": (universes or {}).get(name, ""),
        }
    return domain_of(schema_from({"survey": {"name": "toy", "unit": "row"}, "columns": columns}))


def sized(domain: Domain, rows: int) -> Domain:
    """The same with a public number of rows."""
    schema: Schema = replace(domain.schema, sample_size=rows)
    return replace(domain, schema=schema)


def counted(cells: Cells, domain: Domain, sets: Sequence[Places]) -> list[Counted]:
    """For each set its table, cell by cell."""
    made = []
    for places in sets:
        table = np.zeros(domain.sizes(places), dtype=np.int64)
        np.add.at(table, tuple(cells[:, place] for place in places), 1)
        made.append(table)
    return made


@dataclass(frozen=True)
class ArrayCounts:
    """Rows as an array of cells; everything an engine's rows can do, slowly."""

    cells: Cells
    domain: Domain

    def count(self, sets: Sequence[Places]) -> list[Counted]:
        return counted(self.cells, self.domain, sets)

    def complete(self) -> "ArrayCounts":
        silence = np.array([axis.silence for axis in self.domain.axes])
        return ArrayCounts(self.cells[(self.cells != silence).all(axis=1)], self.domain)

    def filled(self, fills: Sequence[Conditional], bits: Bits) -> "ArrayCounts":
        cells = self.cells.copy()
        for fill in fills:
            silent = cells[:, fill.place] == self.domain.axes[fill.place].silence
            lines = fill.table[tuple(cells[silent, place] for place in fill.given)]
            lines = np.broadcast_to(lines, (int(silent.sum()), fill.table.shape[-1]))
            u = words(len(cells), bits)[silent] * 2.0**-64
            cells[silent, fill.place] = (lines.cumsum(axis=1) <= u[:, None]).sum(axis=1)
        return ArrayCounts(cells, self.domain)

    def redrawn(self, fill: RowFill, bits: Bits) -> "ArrayCounts":
        block = np.ascontiguousarray(self.cells.T.astype(np.uint16))
        fill.fill(block, words(len(self.cells), bits))
        return ArrayCounts(block.T.astype(np.int64), self.domain)

    def summed(self, work: RowSum) -> Counted:
        totals = np.zeros(work.length, dtype=np.int64)
        work.add(self.cells.T.astype(np.uint16), totals)
        return totals

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Bits) -> Counted:
        return ArrayCounts(self.cells[coins(len(self.cells), rate, bits)], self.domain).summed(work)

    def without(self, row: int) -> "ArrayCounts":
        """The neighbour that lacks one record."""
        return ArrayCounts(np.delete(self.cells, row, axis=0), self.domain)


@dataclass
class NoSynthNoise:
    """The noise switched off; the best candidate is chosen."""

    seed: int = 0
    is_private: bool = False
    bits: Bits = field(init=False)

    def __post_init__(self) -> None:
        self.bits = SeededBits(self.seed)

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(answers)

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(answers)

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        return list(scores).index(max(scores))


@dataclass
class QuickSynthNoise(NoSynthNoise):
    """The laws of the exact noise, rounded to whole numbers, from a seed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rng = np.random.default_rng(self.seed)

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        made = self.rng.laplace(scale=float(sensitivity / epsilon), size=len(answers))
        return [a + round(x) for a, x in zip(answers, made, strict=True)]

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        made = self.rng.normal(scale=sensitivity / sqrt(2 * rho), size=len(answers))
        return [a + round(x) for a, x in zip(answers, made, strict=True)]

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        rate = float(epsilon / (2 * sensitivity))
        return int(np.argmax(rate * np.array(scores, dtype=float) + self.rng.gumbel(size=len(scores))))


@dataclass(frozen=True)
class Met:
    """One meeting of exact numbers with the noise."""

    kind: str
    answers: tuple[int, ...]
    sensitivity: int
    amount: Fraction

    @property
    def parameters(self) -> tuple[object, ...]:
        """All that neighbours must share."""
        return self.kind, len(self.answers), self.sensitivity, self.amount

    def distance(self, other: "Met") -> float:
        """Summed for Laplace, Euclidean for Gaussian noise, the largest single move for a choice."""
        moves = [abs(a - b) for a, b in zip(self.answers, other.answers, strict=True)]
        if self.kind == "gaussian":
            return sqrt(sum(move * move for move in moves))
        return max(moves, default=0) if self.kind == "choose" else sum(moves)


@dataclass
class FrozenSynthNoise(NoSynthNoise):
    """Records every call, and gives back the outputs of `script` where it has any: one transcript for all neighbours."""

    script: Sequence[tuple[int, ...]] = ()
    met: list[Met] = field(default_factory=list)
    given: list[tuple[int, ...]] = field(default_factory=list)

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        return list(self._give(Met("laplace", tuple(answers), sensitivity, epsilon)))

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        return list(self._give(Met("gaussian", tuple(answers), sensitivity, rho)))

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        return self._give(Met("choose", tuple(scores), sensitivity, epsilon))[0]

    def _give(self, met: Met) -> tuple[int, ...]:
        at = len(self.met)
        self.met.append(met)
        fixed = tuple(answer + (3, -2, 1)[(at + i) % 3] for i, answer in enumerate(met.answers))
        if met.kind == "choose":
            fixed = (met.answers.index(max(met.answers)),)
        given = tuple(self.script[at]) if at < len(self.script) else fixed
        is_other = len(given) != len(fixed) or (met.kind == "choose" and given[0] >= len(met.answers))
        given = fixed if is_other else given  # a transcript of other calls; whoever compares will see
        self.given.append(given)
        return given


def spent(met: Sequence[Met], *, pure: bool) -> Fraction:
    """What the calls cost together: epsilons added, or rho with epsilon^2/8 for a choice."""
    if pure:
        return sum((each.amount for each in met), Fraction(0))
    return sum((each.amount**2 / 8 if each.kind == "choose" else each.amount for each in met), Fraction(0))


def rows_for(chance: float, gap: float) -> int:
    """How many rows make a share miss by `gap` with at most this chance (Hoeffding, both sides)."""
    return ceil(log(2 / chance) / (2 * gap * gap))
