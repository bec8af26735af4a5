"""Rake a fitted joint table to margins that are known: of all tables with these margins the nearest in relative entropy.

Iterative proportional fitting on the potentials of the model (Deming and Stephan 1940; Csiszar 1975). What a cell's row and column are
not raked by stays: odds ratios, and chances given the columns of the margins. Margins that contradict each other leave it between them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from reticent.synth.base import Floats, Places
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import GraphFit, NoisyTable, Zeroes, check_fits

SWEEPS = 100
CLOSE = 1e-7
"""The largest difference of a share from its margin with which raking ends."""
LOWEST = -60.0
"""The change of a potential where a margin has nobody: a chance of 1e-26."""


def raked(
    model: FittedGraph, shape: Sequence[int], margins: Mapping[Places, Floats], zeroes: Sequence[Zeroes] = ()
) -> FittedGraph:
    """The model with these margins, shares of cells of sets of axes. A cell that the model rules out stays empty."""
    for places, shares in margins.items():
        check_fits(shape, places, shares.shape)
    sets = dict.fromkeys([*model.potentials, *margins])
    blank = [_blank(places, shape) for places in sets]
    fit = GraphFit(tuple(shape), blank, zeroes, model.total)
    fit.potentials = fit.first(model)
    order = list(sets)
    for _ in range(SWEEPS):
        if max(_step(fit, order.index(places), shares) for places, shares in margins.items()) < CLOSE:
            break
    return fit.fitted()


def _blank(places: Places, shape: Sequence[int]) -> NoisyTable:
    """A set that has potentials, and no table."""
    return NoisyTable(places=places, table=np.zeros([shape[place] for place in places]), deviation=1.0)


def _step(fit: GraphFit, at: int, shares: Floats) -> float:
    """Give one set its margin; how far off it was."""
    found = fit.pieces.of(fit.marginals(fit.potentials))[at] / fit.total
    can_move = found > 0
    change = np.full(shares.shape, 0.0)
    change[can_move] = np.log(np.maximum(shares[can_move], 1e-300) / found[can_move])
    fit.pieces.of(fit.potentials)[at][...] += np.maximum(change, LOWEST)
    return float(np.abs(found - shares)[can_move].max(initial=0.0))
