"""Small worlds for attacks on synthesizers: rows whose draws are their own, neighbours, and noise that an enemy chose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from reticent.noise.bits import Bits
from reticent.privacy.claim import Change
from reticent.synth.base import Conditional, FitTask, MissingMethod, Spend, SynthesisMethod
from reticent.synth.domain import Domain
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes
from reticent.synth.marginals.privbayes_printed import EVERY_ROW, PrivBayesPrinted
from reticent.synth.network import Network
from reticent.synth.spending import rho_within
from tests.synth.replay import alike
from tests.synth.standins import Cells, FrozenSynthNoise, Met, counted, sized, spent, toy

METHODS: tuple[SynthesisMethod, ...] = (
    Independent(),
    PrivBayes(useful=0.01),  # so few rows would be worth no parents
    PrivBayesPrinted(),
    MST(iterations=2, merge=0),  # so few rows would all be put together
    AIM(iterations=2, last=2, per_column=2, merge=0),
)
DOMAIN = toy([2, 3, 2], universes={"c": "a = '1'"}, ordered=True)
SMALL = toy([2, 2])
LOTS = np.random.default_rng(1).random((64, 8))
"""One draw for each record and column: a record falls on the same answers whoever else is there."""


@dataclass(frozen=True)
class Records:
    """Rows as cells, each under its own name. Fills draw by name, so that neighbours can be set side by side."""

    cells: Cells
    names: tuple[int, ...]
    domain: Domain

    def count(self, sets: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
        return counted(self.cells, self.domain, sets)

    def complete(self) -> "Records":
        silence = np.array([axis.silence for axis in self.domain.axes])
        return self._kept(np.flatnonzero((self.cells != silence).all(axis=1)))

    def filled(self, fills: Sequence[Conditional], bits: Bits) -> "Records":
        cells = self.cells.copy()
        for fill in fills:
            silent = np.flatnonzero(cells[:, fill.place] == self.domain.axes[fill.place].silence)
            for row in silent:
                line = fill.table[tuple(cells[row, place] for place in fill.given)]
                draw = LOTS[self.names[row], fill.place]
                cells[row, fill.place] = int((line.cumsum() <= draw).sum())
        return replace(self, cells=cells)

    def without(self, *rows: int) -> "Records":
        return self._kept(np.array([i for i in range(len(self.cells)) if i not in rows], dtype=int))

    def plus(self, *news: Sequence[int]) -> "Records":
        more = np.array(news, dtype=np.int64).reshape(len(news), len(self.domain.axes))
        names = tuple(range(32, 32 + len(news)))
        return replace(self, cells=np.vstack([self.cells, more]), names=self.names + names)

    def otherwise(self, row: int, new: Sequence[int]) -> "Records":
        return self.without(row).plus(new)

    def _kept(self, rows: np.ndarray) -> "Records":
        return replace(self, cells=self.cells[rows], names=tuple(self.names[row] for row in rows))


def records(domain: Domain, rows: int, seed: int, *, is_counted: bool = False) -> Records:
    """MissingMethod and unasked cells among them; the level before the last of the second column is met by nobody.

    `is_counted` says that the codebook tells everybody how many there are.
    """
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.integers(0, size, rows) for size in domain.shape], axis=1).reshape(
        rows, len(domain.axes)
    )
    cells[:, 1] = np.where(cells[:, 1] == domain.axes[1].answers - 1, 0, cells[:, 1])
    return Records(cells.astype(np.int64), tuple(range(rows)), sized(domain, rows) if is_counted else domain)


def strangers(domain: Domain) -> list[list[int]]:
    """Silent everywhere, silent once, all first cells, all last ones (unasked where it can be), one in an empty cell."""
    axes = domain.axes
    silent, first, last = [a.silence for a in axes], [0] * len(axes), [a.size - 1 for a in axes]
    return [silent, [0, axes[1].silence, *first[2:]], first, last, [1, axes[1].answers - 1, *first[2:]]]


def neighbours(here: Records, spend: Spend) -> list[Records]:
    """One respondent more, one less, or one who answers otherwise; of two records where respondents have two."""
    new, rows = strangers(here.domain), range(len(here.cells))
    if spend.records == 2:
        two = [here.plus(a, b) for a, b in zip(new, new[1:] + new[:1], strict=True)]
        return two + [here.without(row, row + 1) for row in rows[:-1:2]]
    if spend.change is Change.REPLACE:
        return [here.otherwise(i % len(here.cells), each) for i, each in enumerate(new)] if rows else []
    return [here.plus(each) for each in new] + [here.without(row) for row in rows[:3]]


def budget(spend: Spend) -> Fraction:
    return rho_within(spend.epsilon, spend.delta) if spend.delta else spend.epsilon


def within(one: Met, other: Met) -> bool:
    """Whether the exact numbers moved no further than was said, in whole numbers throughout."""
    moves = [abs(a - b) for a, b in zip(one.answers, other.answers, strict=True)]
    if one.kind == "gaussian":
        return sum(move * move for move in moves) <= one.sensitivity**2
    return (max(moves, default=0) if one.kind == "choose" else sum(moves)) <= one.sensitivity


@dataclass(frozen=True)
class Fit:
    """One run: the network, what met the noise, what came back, and what a progress bar heard."""

    network: Network
    met: tuple[Met, ...]
    given: tuple[tuple[int, ...], ...]
    heard: tuple[str, ...]


def fitted(
    method: SynthesisMethod, here: Records, holes: MissingMethod, spend: Spend, noise: FrozenSynthNoise
) -> Fit:
    heard: list[str] = []
    network = method.fit(FitTask(here, here.domain, holes, spend, noise=noise, step=heard.append))  # type: ignore[arg-type]
    return Fit(network, tuple(noise.met), tuple(noise.given), tuple(heard))


def apart(one: Fit, other: Fit) -> list[str]:
    """What tells two runs along one transcript apart; nothing, where the method keeps its promise."""
    found = []
    if [met.parameters for met in one.met] != [met.parameters for met in other.met]:
        return ["asks otherwise of a neighbour"]
    if not all(within(a, b) for a, b in zip(one.met, other.met, strict=True)):
        found.append("moves further than it says")
    if not alike(one.network, other.network) or one.heard != other.heard:
        found.append("says more than the noise let out")
    return found


def faults(method: SynthesisMethod, here: Records, holes: MissingMethod, spend: Spend) -> list[str]:
    """All neighbours both ways, along the transcript of either; and what the calls cost together."""

    def along(rows: Records, script: Sequence[tuple[int, ...]] = ()) -> Fit:
        return fitted(method, rows, holes, spend, FrozenSynthNoise(script=script))

    first, found = along(here), []
    for other in neighbours(here, spend):
        found += apart(first, along(other, first.given))
        there = along(other)
        found += apart(there, along(here, there.given))
        if spent(there.met, pure=not spend.delta) > budget(spend):
            found.append("spends more than it has")
    return found


@dataclass
class Forced(FrozenSynthNoise):
    """What an enemy would have the noise say: numbers near `size` of either sign, and candidates by lot, whatever is true."""

    size: int = 0

    def _give(self, met: Met) -> tuple[int, ...]:
        dice = np.random.default_rng([self.size % 1000, len(self.met)])
        self.met.append(met)
        if met.kind == "choose":
            given = (int(dice.integers(len(met.answers))),)
        else:
            given = tuple(self.size * int(way) for way in dice.integers(-1, 2, len(met.answers)))
        self.given.append(given)
        return given


def allows(method: SynthesisMethod, holes: MissingMethod, spend: Spend) -> bool:
    """One published score needs every row in every table, a public number of them, and so a replacement."""
    if method.name != "privbayes-printed":
        return True
    return holes in EVERY_ROW and spend.change is Change.REPLACE and spend.records == 1
