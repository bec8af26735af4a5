"""Every sample of small data sets, with geometric counts on it: exact laws of the output, and their largest log ratio."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, product

Data = tuple[int, ...]
Law = dict[object, float]
REACH = 8
"""Counts of at most five records: beyond this many steps a geometric law only falls by the same factor."""


def geometric(count: int, epsilon: float) -> Law:
    """Count plus two-sided geometric noise, on a range that holds every extreme ratio."""
    ratio = math.exp(-epsilon)
    top = (1 - ratio) / (1 + ratio)
    return {o: top * ratio ** abs(o - count) for o in range(-REACH, REACH + 1)}


def histogram(data: Iterable[int], epsilon: float, levels: tuple[int, ...] = (0, 1)) -> Law:
    """One geometric count for each level: epsilon-DP for add/remove, twice that for replace."""
    counts = [sum(x == level for x in data) for level in levels]
    laws = [geometric(count, epsilon) for count in counts]
    return {
        key: math.prod(law[o] for law, o in zip(laws, key, strict=True))
        for key in product(range(-3, 4), repeat=len(levels))
    }


def ones(data: Iterable[int], epsilon: float) -> Law:
    """The number of ones, with noise: epsilon-DP for replace and for add/remove."""
    return geometric(sum(data), epsilon)


def mixture(parts: Iterable[tuple[float, Mapping[object, float]]]) -> Law:
    total: Law = {}
    for weight, law in parts:
        for key, mass in law.items():
            total[key] = total.get(key, 0.0) + weight * mass
    return total


def simple(data: Data, size: int, mechanism: Callable[[Data], Law]) -> Law:
    """The law of `mechanism` on `size` records drawn without replacement."""
    drawn = list(combinations(data, size))
    return mixture((1 / len(drawn), mechanism(sample)) for sample in drawn)


def poisson(data: Data, rate: float, mechanism: Callable[[Data], Law]) -> Law:
    """The law of `mechanism` on records drawn one by one."""
    parts = []
    for taken in product((0, 1), repeat=len(data)):
        chance = math.prod(rate if t else 1 - rate for t in taken)
        parts.append((chance, mechanism(tuple(x for x, t in zip(data, taken, strict=True) if t))))
    return mixture(parts)


def loss(here: Mapping[object, float], there: Mapping[object, float]) -> float:
    """The largest log ratio, both ways."""
    return max(abs(math.log(here[key] / there[key])) for key in here)


def replaced(n: int, levels: tuple[int, ...] = (0, 1)) -> Iterator[tuple[Data, Data]]:
    """Every pair of data sets of `n` records that differ in one. Order does not matter here."""
    for rest in combinations_of(n - 1, levels):
        for one, other in combinations(levels, 2):
            yield (one, *rest), (other, *rest)


def added(n: int, levels: tuple[int, ...] = (0, 1)) -> Iterator[tuple[Data, Data]]:
    """Every pair of data sets of up to `n` records, one of which has a record more."""
    for size in range(n):
        for rest in combinations_of(size, levels):
            for one in levels:
                yield rest, (one, *rest)


def combinations_of(n: int, levels: tuple[int, ...]) -> Iterator[Data]:
    return (data for data in product(levels, repeat=n) if tuple(sorted(data)) == data)
