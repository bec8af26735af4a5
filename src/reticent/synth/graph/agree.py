"""Make noisy tables agree where they overlap, each counted for what its noise lets it know.

A table splits into effects: its total, one for every axis, one for every pair, and so on, orthogonal to each other.
Two tables that share axes measure the same effects of these. The average of each effect, weighted by the inverse of
its variances, gives tables that agree. Among tables that agree these are the nearest in weighted squares, and squared
distances to any tables that agree change by a constant only. So nothing is lost for the fit, and much time is won.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import prod

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.graph.measured import NoisyTable


def agreed(measured: Sequence[NoisyTable], *, total: float) -> list[Floats]:
    """The tables, made to agree with each other and with `total`."""
    effects = _averages(measured)
    effects[()] = np.full((), total)
    return [_joined(each, effects) for each in measured]


def _averages(measured: Sequence[NoisyTable]) -> dict[Places, Floats]:
    sums: dict[Places, Floats] = {}
    weights: dict[Places, float] = {}
    for each in measured:
        for places in _subsets(each.places):
            # A sum over n cells has n times the variance of a cell.
            weight = 1.0 / (each.deviation**2 * _left_out(each, places))
            sums[places] = sums.get(places, 0.0) + weight * _effect(each, places)
            weights[places] = weights.get(places, 0.0) + weight
    return {places: sums[places] / weights[places] for places in sums}


def _subsets(places: Places) -> Iterator[Places]:
    for size in range(len(places) + 1):
        yield from combinations(places, size)


def _left_out(each: NoisyTable, places: Places) -> int:
    return prod(n for n, place in zip(each.table.shape, each.places, strict=True) if place not in places)


def _effect(each: NoisyTable, places: Places) -> Floats:
    """The table summed to `places`, less what smaller sets of places say."""
    away = tuple(i for i, place in enumerate(each.places) if place not in places)
    table: Floats = np.asarray(each.table.sum(axis=away))
    for side in range(table.ndim):
        table = table - table.mean(axis=side, keepdims=True)
    return table


def _joined(each: NoisyTable, effects: dict[Places, Floats]) -> Floats:
    table = np.zeros(each.table.shape)
    for places in _subsets(each.places):
        sizes = [n if p in places else 1 for n, p in zip(each.table.shape, each.places, strict=True)]
        table += effects[places].reshape(sizes) / _left_out(each, places)
    return table
