"""Pairs of cells that the codebook rules out: an answer of somebody who is not asked. Public, so a model may know it for free."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from reticent.engine.cells import named
from reticent.predicate.bind import Bound
from reticent.synth.base import Places
from reticent.synth.decode import bins
from reticent.synth.domain import Axis, Domain
from reticent.synth.rules import read_rules
from reticent.synth.rules_search import ranges_of, so_far

Flags = NDArray[np.bool_]


def lawful_pairs(domain: Domain) -> dict[Places, Flags]:
    """For each column and each that its universe speaks of, which pairs of cells can be: sides in the domain's order.

    A universe that needs more than the one answer leaves both open, and so does a silent one.
    """
    places = {name: place for place, name in enumerate(domain.columns)}
    found: dict[Places, Flags] = {}
    for name, universe in read_rules(domain).asked:
        for gate in named(universe):
            pair = places[gate], places[name]
            can_be = _pairs(universe, domain.axes[pair[0]], domain.axes[pair[1]], domain)
            found[min(pair), max(pair)] = can_be if pair[0] < pair[1] else can_be.T
    return {pair: can_be for pair, can_be in found.items() if not can_be.all()}


def _pairs(universe: Bound, gate: Axis, column: Axis, domain: Domain) -> Flags:
    can_ask, can_skip = _open(universe, gate, domain)
    made = np.ones((gate.size, column.size), dtype=np.bool_)
    made[: gate.answers] = can_ask[:, None]
    if column.unasked is not None:
        made[: gate.answers, column.unasked] = can_skip
    return made


def _open(universe: Bound, gate: Axis, domain: Domain) -> tuple[Flags, Flags]:
    """For each answer's cell of the gate, whether some code in it can be asked, and whether some can be left out."""
    starts, _ = bins(gate, domain.schema)
    codes = sorted({*starts.tolist(), *_edges(universe, gate, domain)})
    holds = [so_far(universe, {gate.column: code}) for code in codes]
    cells = np.searchsorted(starts, codes, side="right") - 1
    asks, skips = np.zeros((2, gate.answers), dtype=np.bool_)
    np.logical_or.at(asks, cells, [known is not False for known in holds])
    np.logical_or.at(skips, cells, [known is not True for known in holds])
    return asks, skips


def _edges(universe: Bound, gate: Axis, domain: Domain) -> Iterator[int]:
    """Codes of the gate at which the universe may change."""
    column = domain.schema.coded[gate.column]
    for edge in chain.from_iterable((low, high + 1) for low, high in ranges_of(universe, gate.column)):
        if column.low <= edge <= column.high:
            yield edge
