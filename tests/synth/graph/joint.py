"""Whole joint tables, small enough to hold: what the graph code must agree with."""

from collections.abc import Mapping, Sequence

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable


def summed(joint: Floats, places: Places) -> Floats:
    """The table over `places`, in their order."""
    away = tuple(axis for axis in range(joint.ndim) if axis not in places)
    table = joint.sum(axis=away)
    kept = sorted(places)
    return table.transpose([kept.index(place) for place in places])


def lifted(table: Floats, places: Places, axes: int) -> Floats:
    """A table over sorted `places`, with sides of length one for all other axes."""
    sizes = [table.shape[places.index(axis)] if axis in places else 1 for axis in range(axes)]
    return table.reshape(sizes)


def joint_of(shape: Sequence[int], potentials: Mapping[Places, Floats]) -> Floats:
    """The distribution with these potentials, by enumeration in extended precision."""
    logs = np.zeros(shape, dtype=np.longdouble)
    for places, table in potentials.items():
        logs = logs + lifted(table.astype(np.longdouble), places, len(shape))
    joint = np.exp(logs - logs.max())
    return (joint / joint.sum()).astype(np.float64)


def joint_from(fitted: FittedGraph) -> Floats:
    """The whole table of a fitted model, multiplied from its conditionals."""
    joint = np.ones(fitted.tree.shape)
    for step in fitted.conditionals():
        axes = (*step.given, step.place)
        order = np.argsort(axes)
        joint = joint * lifted(step.table.transpose(order), tuple(sorted(axes)), joint.ndim)
    return fitted.total * joint


def loss_of(joint: Floats, measured: Sequence[NoisyTable]) -> float:
    """Half the weighted squares between a joint table and what was measured."""
    return sum(
        0.5 * float(((summed(joint, m.places) - m.table) ** 2).sum()) / m.deviation**2 for m in measured
    )


def best_joint(
    shape: Sequence[int], measured: Sequence[NoisyTable], total: float, steps: int = 3000
) -> Floats:
    """The least squares optimum over all joint tables, by long accelerated projected gradient descent."""
    here = last = np.full(shape, total / np.prod(shape))
    length = 1.0 / sum(here.size / m.table.size / m.deviation**2 for m in measured)
    for k in range(steps):
        ahead = here + k / (k + 3) * (here - last)
        slope = sum(
            lifted((summed(ahead, m.places) - m.table) / m.deviation**2, m.places, len(shape))
            for m in measured
        )
        last, here = here, onto_simplex(ahead - length * slope, total)
    return here


def onto_simplex(point: Floats, total: float) -> Floats:
    """The nearest table without negative cells and with the given sum."""
    falling = np.sort(point, axis=None)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, point.size + 1)
    return np.maximum(point - over[np.flatnonzero(falling > over)[-1]], 0.0)


def noisy(
    joint: Floats, sets: Sequence[Places], deviations: Sequence[float], rng: np.random.Generator
) -> list[NoisyTable]:
    """Measurements of a joint table."""
    return [
        NoisyTable(places=p, table=summed(joint, p) + rng.normal(0, d, summed(joint, p).shape), deviation=d)
        for p, d in zip(sets, deviations, strict=True)
    ]
