"""Small worlds for trees and rounds: rows with planted pairs, all ways to replace a record, and a network as one table."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod, Spend, SynthesisMethod
from reticent.synth.domain import Domain
from reticent.synth.network import Network
from tests.synth.replay import alike, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise

PLENTY = Spend(epsilon=Fraction(1000), delta=Fraction(1, 10**6))


def chain(domain: Domain, rows: int, seed: int, *, silent: float = 0.0) -> ArrayCounts:
    """Each column repeats the one before four times in five, as far as its levels go; some cells fall silent."""
    rng = np.random.default_rng(seed)
    cells = np.zeros((rows, len(domain.axes)), dtype=np.int64)
    for place, axis in enumerate(domain.axes):
        fresh = rng.integers(0, axis.answers, rows)
        before = cells[:, place - 1] % axis.answers if place else fresh
        cells[:, place] = np.where(rng.random(rows) < 0.8, before, fresh)
    silence = np.array([axis.silence for axis in domain.axes])
    return ArrayCounts(np.where(rng.random(cells.shape) < silent, silence, cells), domain)


def joint(network: Network) -> np.ndarray:
    """The chance of every row."""
    made = np.ones(network.domain.shape)
    for step in network.steps:
        order = np.argsort((*step.given, step.place))
        sides = np.ones(made.ndim, dtype=int)
        sides[sorted((*step.given, step.place))] = np.array(step.table.shape)[order]
        made = made * step.table.transpose(order).reshape(sides)
    return made


def table(network: Network, places: tuple[int, ...]) -> np.ndarray:
    """The chances of a set of columns."""
    away = tuple(i for i in range(len(network.domain.axes)) if i not in places)
    return joint(network).sum(axis=away)


def replaced(counts: ArrayCounts) -> Iterator[ArrayCounts]:
    """The first and the last record answer otherwise: silent everywhere, all first cells, all last ones, one cell moved."""
    axes = counts.domain.axes
    silent, first, last = [a.silence for a in axes], [0] * len(axes), [a.size - 1 for a in axes]
    for row in (0, len(counts.cells) - 1):
        moved = [*counts.cells[row][:-1], (counts.cells[row][-1] + 1) % axes[-1].size]
        for new in (silent, first, last, moved):
            cells = counts.cells.copy()
            cells[row] = new
            yield ArrayCounts(cells, counts.domain)


def faults_when_replaced(
    method: SynthesisMethod, counts: ArrayCounts, holes: MissingMethod, spend: Spend
) -> tuple[list[str], float]:
    """As `replay.faults`, for replaced records; and the largest share of a stated bound that was used."""
    protect = replace(spend, change=Change.REPLACE)
    first = FrozenSynthNoise()
    network, found, most = run(method, counts, holes, protect, first), [], 0.0
    for other in replaced(counts):
        again = FrozenSynthNoise(script=first.given)
        if not alike(network, run(method, other, holes, protect, again)):
            found.append("says more than the noise let out")
        if [m.parameters for m in again.met] != [m.parameters for m in first.met]:
            found.append("asks otherwise of a neighbour")
            continue
        used = [a.distance(b) / a.sensitivity for a, b in zip(first.met, again.met, strict=True)]
        most = max(most, *used)
    return found, most
