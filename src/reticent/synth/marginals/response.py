"""Response propensities from released tables: how answering one column depends on answers to others. After the noise, all of it.

A noisy list that tells missing answers apart says, for every level of a column c, how many of those who gave it left
column b without an answer. Where that differs from level to level by more than noise and sampling would, the chance of an
answer to b follows c. Chances are logistic in all columns that matter, raked in turns to the rates that were seen, each
level's offset shrunk by an empirical Bayes rule, and averaged over rows drawn from the current model. Dividing the answered
part of a table by the chance of being in it is inverse propensity weighting (Horvitz and Thompson 1952; Rosenbaum 1987).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Floats, Places

Wholes = NDArray[np.int64]

SEEN = 2.0
"""Deviations by which levels must differ in who answers before it counts for anything."""
SWEEPS = 6
LEAN = 20.0
"""Rows with which a cell leans on what its margins say."""
RANGE = (0.2, 5.0)
"""How much less or more often than others a cell is taken to be answered, at most."""
CHANCES = (0.02, 0.998)


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentCounts:
    """Of those who gave each answer to one column, how many left another without: noisy, with variances.

    Parameters
    ----------
    silent : by level of the column, how many gave no answer to the other
    noise : the variance of each of these
    asked : by level, how many were asked the other
    spread : the variance of each of these
    is_compared : which levels are compared; others are left alone
    """

    silent: Floats = field(repr=False)
    noise: float
    asked: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    is_compared: NDArray[np.bool_] | None = field(default=None, repr=False)

    def differences(self) -> "LevelRates | None":
        """By level, how much less often the other column is answered than on average; none where only noise is seen."""
        used = np.ones(len(self.asked), dtype=np.bool_) if self.is_compared is None else self.is_compared
        silent, asked, spread = self.silent[used], self.asked[used], self.spread[used]
        total, free = float(asked.sum()), len(asked) - 1
        if free < 1 or total <= 0:
            return None
        mean = min(max(float(silent.sum()) / total, 0.0), 1.0)
        apart = silent - mean * asked
        variance = self.noise + np.maximum(asked, 0.0) * mean * (1 - mean) + mean**2 * spread
        excess = float((np.square(apart) / variance).sum()) - free
        if excess < SEEN * np.sqrt(2 * free):
            return None
        # Variance between levels by moments (DerSimonian and Laird 1986), and how much of a level's difference is no noise.
        weights = np.square(asked) / variance
        between = excess / max(float(weights.sum() - np.square(weights).sum() / weights.sum()), 1e-300)
        signal = between * np.square(np.maximum(asked, 0.0))
        less, kept = np.zeros(len(used)), np.zeros(len(used))
        less[used], kept[used] = apart / np.maximum(asked, 1.0), signal / (signal + variance)
        return LevelRates(less=less, kept=kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRates:
    """By level of a column, how much less often another is answered than on average, and how far that is to be believed."""

    less: Floats = field(repr=False)
    kept: Floats = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Propensities:
    """Rows drawn from a model, and for every column whose answering follows others the chance of each row to answer it.

    Parameters
    ----------
    rows : groups of the model, a line for each column
    chances : by column, the chance of each row; a column that is not here is answered by everybody alike
    """

    rows: Wholes = field(repr=False)
    chances: Mapping[int, Floats] = field(repr=False)

    def relative(
        self, places: Places, into: Sequence[Wholes], shape: tuple[int, ...], blocks: Wholes
    ) -> Floats | None:
        """How much more or less often than others of its block each cell of a table is answered; none where all are alike.

        Parameters
        ----------
        places : the table's columns
        into : for each of them, the cell of every group of the model
        shape : how many cells each has
        blocks : the block of each cell of the table, in order
        """
        held = [place for place in places if place in self.chances]
        if not held:
            return None
        cells = [side[self.rows[place]] for place, side in zip(places, into, strict=True)]
        answered = np.prod([self.chances[place] for place in held], axis=0)
        found = _means(np.ravel_multi_index(cells, shape), answered, int(np.prod(shape)), 1.0)
        if len(places) > 1:
            sides = [_means(at, answered, n, 1.0)[0] for at, n in zip(cells, shape, strict=True)]
            apart = np.multiply.outer(*sides).ravel() / float(answered.mean())
        else:
            apart = np.full(shape, float(answered.mean()))
        means, many = found
        means = (many * means + LEAN * apart) / (many + LEAN)
        inside = np.bincount(blocks, weights=many * means) / np.maximum(
            np.bincount(blocks, weights=many), 1.0
        )
        inside = np.where(inside > 0, inside, 1.0)
        return np.clip(means / inside[blocks], *RANGE).reshape(shape)


def _means(at: Wholes, values: Floats, cells: int, lean: float) -> tuple[Floats, Floats]:
    """By cell the mean of the values, and how many there are; the overall mean where there are none."""
    many = np.bincount(at, minlength=cells).astype(np.float64)
    sums = np.bincount(at, weights=values, minlength=cells)
    return (sums + lean * float(values.mean())) / (many + lean), many


def propensities(
    rows: Wholes,
    seen: Mapping[int, Mapping[int, LevelRates]],
    rates: Sequence[float],
    into: Sequence[Wholes],
    unasked: Sequence[int | None],
) -> Propensities:
    """The chances of rows: logistic in the columns that matter, raked until each level has the rate it was seen to have.

    Parameters
    ----------
    rows : groups of the model, a line for each column
    seen : by column, and by the other columns that its answering follows, how much less often each level answers it
    rates : by column, the share of those asked who answer it
    into : by column, the level of every group of the model
    unasked : by column, the group of those who are not asked it, where there is one
    """
    made = {}
    for place, others in seen.items():
        is_asked = rows[place] != -1 if unasked[place] is None else rows[place] != unasked[place]
        if is_asked.any():
            chance = np.ones(rows.shape[1])
            levels = {other: into[other][rows[other][is_asked]] for other in others}
            chance[is_asked] = _raked(levels, others, rates[place])
            made[place] = chance
    return Propensities(rows=rows, chances=made)


def _raked(levels: Mapping[int, Wholes], seen: Mapping[int, LevelRates], rate: float) -> Floats:
    """One chance for each row: logistic in the levels of other columns, each with an offset that is shrunk as it is believed.

    A level that is believed wholly gets the rate that was seen; one that is not believed keeps what other columns make of it.
    """
    wanted = {other: _logit(np.clip(rate - each.less, *CHANCES)) for other, each in seen.items()}
    offsets = {other: np.zeros(len(each.less)) for other, each in seen.items()}
    rows = len(next(iter(levels.values())))
    logit = np.full(rows, float(_logit(np.clip(rate, *CHANCES))))
    for _ in range(SWEEPS):
        for other, each in seen.items():
            mean, many = _means(levels[other], _chance(logit), len(each.less), 1e-9)
            away = wanted[other] - _logit(np.clip(mean, *CHANCES))
            offset = np.where(many > 0, each.kept * (offsets[other] + away), 0.0)
            logit += (offset - offsets[other])[levels[other]]
            offsets[other] = offset
    return _chance(logit)


def _logit(p: Floats) -> Floats:
    return np.asarray(np.log(p / (1 - p)))


def _chance(logit: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-logit)))
