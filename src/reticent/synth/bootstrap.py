"""Bootstrap copies of a synthetic table: the whole mechanism simulated on rows of its own model, and fitted anew.

For analyses that nobody could foresee. A copy is made as the released table was: as many rows as there are respondents are
drawn from the fitted model, answers go missing at the released rates, the same tables are counted, noise of the same law is
added, and a model over the same tables is fitted. What an estimate varies by over copies is what it varies by over surveys and
noise, as far as the model is right. Everything reads released numbers, so copies cost nothing, and their noise need keep no
secret.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import floor

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.synth.base import Counted, Floats, MissingMethod
from reticent.synth.direct import shares_of
from reticent.synth.domain import Domain, uniforms
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable, Zeroes, estimate
from reticent.synth.lists import Lists, NoisyList, as_available
from reticent.synth.marginals.answered import TURNS, AnsweredTables
from reticent.synth.marginals.response import Propensities
from reticent.synth.marginals.study import View, grouped_view, plain, with_silence
from reticent.synth.network import Network, one_scale, simplex, total_of
from reticent.synth.rules import lawful_pairs
from reticent.synth.spending import NoisyCounts

PASSES = 300
FEWEST = 5
"""Fewer copies tell too little of how much an estimate varies."""
MOST_ROWS = 2_000_000
AT_ONCE = 2**16
Cells = NDArray[np.int32]


def bootstrap(network: Network, copies: int, bits: Bits) -> Iterator[Network]:
    """So many networks as other surveys and other noise might have left, were this one the truth."""
    if network.lists is None:
        raise PlanError("bootstrap copies need the noisy tables of mst, aim or pairs", field="copies")
    for _ in range(copies):
        yield _again(network, network.lists, bits)


def _again(network: Network, lists: Lists, bits: Bits) -> Network:
    rows = _sampled(network, min(MOST_ROWS, max(1, floor(network.total + 0.5))), bits)
    if lists.missing is MissingMethod.WEIGHTED:
        return _again_weighted(network, lists, rows, bits)
    domain = network.domain
    rows = _silenced(rows, lists, bits) if lists.missing is MissingMethod.AVAILABLE else rows
    first, view = plain(domain, lists.missing), grouped_view(domain, lists)
    fitted = [each for each in lists.lists if each.is_fitted]
    noisy = [_noisy(each, rows, view if each.is_grouped else first, lists, bits) for each in fitted]
    total = total_of([found for each, found in zip(fitted, noisy, strict=True) if not each.is_grouped])
    measured = [_table(each, found, total, lists, view) for each, found in zip(fitted, noisy, strict=True)]
    model = estimate(
        view.shape, measured, total=total, iterations=PASSES, zeroes=_zeroes(network.domain, view)
    )
    return _network(network, model, view, total)


def _again_weighted(network: Network, lists: Lists, rows: Cells, bits: Bits) -> Network:
    """Answers go missing as the released lists say that they do, and the model is fitted with weights of its own."""
    domain, spoken = network.domain, as_available(lists)
    view = grouped_view(domain, spoken)
    tables = AnsweredTables(
        domain=domain, lists=list(lists.lists), view=view, paired=view, total=lists.total, bits=bits
    )
    rows = _silenced(rows, spoken, bits, tables.propensities_of(lambda: _groups(rows, view)))
    whole, first = with_silence(view, domain), plain(domain, lists.missing)
    tables.lists = [
        replace(each, cells=_noisy(each, rows, whole if each.is_grouped else first, lists, bits).cells)
        for each in lists.lists
    ]
    tables.total = replace(lists, lists=tuple(tables.lists)).total
    sets = list(dict.fromkeys(each.places for each in lists.lists if each.is_fitted))
    model = tables.in_turns(sets, _zeroes(domain, view), iterations=PASSES // TURNS, start=None)
    return _network(network, model, view, tables.total)


def _groups(rows: Cells, view: View) -> NDArray[np.int64]:
    """Rows as groups of a view, a line for each column."""
    return np.stack([side.into[rows[:, place]] for place, side in enumerate(view.sides)])


def _zeroes(domain: Domain, view: View) -> list[Zeroes]:
    found = lawful_pairs(domain).items()
    return [Zeroes(places=pair, allowed=view.allowed(can_be, pair)) for pair, can_be in found]


def _network(network: Network, model: FittedGraph, view: View, total: float) -> Network:
    steps = tuple(view.widened(step) for step in model.conditionals())
    return Network(domain=network.domain, steps=steps, total=total, claim=network.claim)


def _sampled(network: Network, rows: int, bits: Bits) -> Cells:
    """Rows drawn one by one and independently, as a survey's respondents are: `Network.draw` spreads them evenly instead."""
    drawn = np.zeros((rows, len(network.domain.axes)), dtype=np.int32)
    for step in network.steps:
        sums = np.cumsum(step.table, axis=-1)
        for at in range(0, rows, AT_ONCE):
            some = slice(at, at + AT_ONCE)
            lines = sums[tuple(drawn[some, place] for place in step.given)]
            lines = np.broadcast_to(lines, (len(drawn[some]), sums.shape[-1]))
            drawn[some, step.place] = (lines <= uniforms(len(lines), bits)[:, None] * lines[:, -1:]).sum(
                axis=1
            )
    return drawn


def _silenced(rows: Cells, lists: Lists, bits: Bits, seen: Propensities | None = None) -> Cells:
    """Answers gone missing at the rates that the columns' lists tell; who was not asked has none to miss."""
    made, chances = rows.copy(), {} if seen is None else seen.chances
    for place, axis in enumerate(lists.domain.axes):
        rate = 1 - chances.get(place, float(shares_of(lists.columns[place], lists).response[0]))
        is_lost = (uniforms(len(rows), bits) < rate) & (made[:, place] < axis.answers)
        made[is_lost, place] = axis.silence
    return made


def _noisy(each: NoisyList, rows: Cells, view: View, lists: Lists, bits: Bits) -> NoisyCounts:
    """The list of the same set from simulated rows, with noise of the same law and deviation."""
    counted: Counted = np.zeros(lists.domain.sizes(each.places), dtype=np.int64)
    np.add.at(counted, tuple(rows[:, place] for place in each.places), 1)
    exact = view.parted(counted, each.places) if len(each.left) else view.table(counted, each.places).ravel()
    draws = _draws(len(exact), each.deviation, bits, is_gaussian=lists.is_gaussian)
    return NoisyCounts(cells=exact + draws, deviation=each.deviation, size=each.deviation)


def _draws(n: int, deviation: float, bits: Bits, *, is_gaussian: bool) -> Floats:
    """Normal numbers by Box and Muller's formula, or Laplace ones: simulated noise, on simulated rows."""
    far, turn = -np.log1p(-uniforms(n, bits)), uniforms(n, bits)
    if is_gaussian:
        return np.asarray(deviation * np.sqrt(2 * far) * np.cos(2 * np.pi * turn))
    return np.asarray(deviation / np.sqrt(2) * far * np.where(turn < 0.5, -1.0, 1.0))


def _table(each: NoisyList, noisy: NoisyCounts, total: float, lists: Lists, view: View) -> NoisyTable:
    """As the model is given it: on the common scale; a column's without negative cells, over the groups of pairs."""
    first = view if each.is_grouped else plain(lists.domain, lists.missing)
    scaled = one_scale(noisy, total, first.blocks(each.places)) if len(each.left) else noisy
    if each.is_grouped:
        shape = [view.shape[place] for place in each.places]
        return NoisyTable(places=each.places, table=scaled.cells.reshape(shape), deviation=scaled.deviation)
    (place,) = each.places
    table = np.zeros(view.shape[place])
    kept = lists.plain[place] >= 0
    np.add.at(table, lists.groups[place][kept], simplex(scaled.cells, total)[lists.plain[place][kept]])
    return NoisyTable(places=each.places, table=table, deviation=scaled.deviation)
