"""Post-stratified surveys small enough to list: records are (cell, base weight, value), data sets are multisets.

Everything is taken literally from the definitions, slowly, in fractions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np

from reticent.prepare.strata import BaseWeights, Strategy
from reticent.sensitivity.poststrata import Tally, tally_rows

Record = tuple[int, int, int]
Data = tuple[Record, ...]


@dataclass(frozen=True)
class World:
    """What records there can be."""

    cells: int
    weights: tuple[int, ...]
    values: tuple[int, ...] = (0,)

    def records(self) -> list[Record]:
        return list(product(range(self.cells), self.weights, self.values))

    def data_sets(self, most: int) -> Iterator[Data]:
        for size in range(most + 1):
            yield from combinations_with_replacement(self.records(), size)

    def neighbours(self, data: Data) -> set[Data]:
        longer = {tuple(sorted((*data, record))) for record in self.records()}
        return longer | {data[:i] + data[i + 1 :] for i in range(len(data))}


def members(strategy: Strategy, data: Data, number: int) -> list[tuple[int, int]]:
    return [(w, y) for cell, w, y in data if strategy.bins[cell] == number]


def answer(strategy: Strategy, data: Data) -> Fraction:
    """q: every record times w N/B, bin by bin."""
    found = Fraction(0)
    for number, total in enumerate(strategy.totals):
        inside = members(strategy, data, number)
        base = sum(w for w, _ in inside)
        found += sum((Fraction(w * y) * total / base for w, y in inside), Fraction(0))
    return found


def largest_weight(strategy: Strategy, data: Data, heaviest: int, *, newcomer: bool = True) -> Fraction:
    """W_0: the largest weight of a member, or of anybody who might come."""
    weights = [Fraction(0)]
    for number, total in enumerate(strategy.totals):
        inside = [w for w, _ in members(strategy, data, number)]
        base = sum(inside)
        weights += [total * w / base for w in inside]
        if newcomer:
            weights += [total * w / (base + w) for w in range(1, heaviest + 1)]
    return max(weights)


def within(world: World, strategy: Strategy) -> Callable[[Data, int], Fraction]:
    """The largest W_0 within k steps, by walking them all."""

    @cache
    def most(data: Data, k: int) -> Fraction:
        here = largest_weight(strategy, data, max(world.weights))
        return max([here, *(most(other, k - 1) for other in world.neighbours(data))]) if k else here

    return most


def tally(data: Data, base: BaseWeights, *, cells: int) -> Tally:
    rows = np.array(data, np.int64).reshape(-1, 3)
    return tally_rows(rows[:, 0], rows[:, 1], rows[:, 2], size=cells, base=base)
