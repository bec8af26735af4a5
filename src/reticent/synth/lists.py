"""Noisy marginals as they were measured: raw counts before any scaling, merging or projection. After the noise, all of it.

A fitted model keeps them beside its conditionals, since direct answers with intervals are made from them and not from the
model (`synth/direct.py`). They were paid for when they were measured, and cost nothing to keep.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from reticent.files import Section
from reticent.synth.base import Floats, MissingMethod, Places
from reticent.synth.domain import Domain

Wholes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyList:
    """One noisy list over the axes `places`: cells over groups, rows left out by block, then sums of residuals.

    `is_chosen` says that the set was chosen by a look at the rows, privately. `is_grouped` says that cells are groups of the
    domain's cells, as `Lists.groups` has them, and not the cells themselves; `is_fitted` that the model rests on it.
    """

    places: Places
    cells: Floats = field(repr=False)
    left: Floats = field(repr=False)
    sums: Floats = field(repr=False)
    deviation: float
    sum_deviations: Floats = field(repr=False)
    is_chosen: bool
    is_grouped: bool
    is_fitted: bool = True
    left_variance: float | None = None
    left_own: float | None = None

    @property
    def noise_left(self) -> float:
        """The variance of the noise in rows left out: that of a cell, unless they were made of several entries."""
        return self.deviation**2 if self.left_variance is None else self.left_variance

    @property
    def own_left(self) -> float:
        """The part of `noise_left` that comes from this list; the rest comes from the lists of its columns."""
        return self.noise_left if self.left_own is None else self.left_own

    @property
    def is_borrowing(self) -> bool:
        """Whether the rows left out were told by the lists of its columns."""
        return self.own_left < self.noise_left

    @property
    def entries(self) -> int:
        """Entries of which every row is in exactly one."""
        return len(self.cells) + len(self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """All lists of one fit, in order, and what their cells mean.

    `plain[axis]` and `groups[axis]` have the group of each cell of an axis, -1 where rows with it are left out: before
    and after rare cells were put together. `is_gaussian` is the law of the noise. `is_complex` says that the codebook declares
    weights, strata or sampling units, or several rows a respondent, so that rows are not drawn one by one. `filled` are
    columns whose missing answers were imputed before rows were counted.
    """

    domain: Domain
    missing: MissingMethod
    plain: tuple[Wholes, ...] = field(repr=False)
    groups: tuple[Wholes, ...] = field(repr=False)
    lists: tuple[NoisyList, ...] = field(repr=False)
    is_gaussian: bool
    is_complex: bool = False
    filled: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[NoisyList, ...]:
        """The first list of every column, in order: over single cells."""
        return self.lists[: len(self.domain.axes)]

    @property
    def total(self) -> float:
        """The noisy number of rows: every list has each of them once; the shorter, the better."""
        weights = self.total_weights
        sums = [float(each.cells.sum() + each.left.sum()) for each in self.columns]
        return max(1.0, float(np.dot(weights, sums)))

    @property
    def total_variance(self) -> float:
        """The variance of the noise in `total`."""
        weights = self.total_weights
        each = [one.entries * one.deviation**2 for one in self.columns]
        return float(np.dot(weights**2, each))

    def of(self, places: Places) -> list[NoisyList]:
        """The lists over these axes."""
        return [each for each in self.lists if each.places == places]

    def used(self, places: Places) -> list[NoisyList]:
        """The lists that a direct answer rests on: of a column its first, over single cells, which nothing was chosen for."""
        return self.of(places)[:1] if len(places) == 1 else self.of(places)

    def into(self, each: NoisyList) -> tuple[Wholes, ...]:
        """For each axis of a list, the group of every cell."""
        sides = self.groups if each.is_grouped else self.plain
        return tuple(sides[place] for place in each.places)

    @property
    def total_weights(self) -> Floats:
        """How much the `total` rests on each column's list."""
        weights = np.array([1 / each.entries for each in self.columns])
        return np.asarray(weights / weights.sum())


def sizes(into: Sequence[Wholes]) -> tuple[int, ...]:
    """How many groups each axis has."""
    return tuple(int(side.max()) + 1 for side in into)


def asked_blocks(domain: Domain, places: Places, into: Sequence[Wholes]) -> Wholes:
    """For each cell of a list its block: who was asked which of the columns."""
    sides, many = [], []
    for place, side in zip(places, into, strict=True):
        unasked = domain.axes[place].unasked
        made = np.zeros(int(side.max()) + 1, dtype=np.int64)
        if unasked is not None and side[unasked] >= 0:
            made[side[unasked]] = 1
        sides.append(made)
        many.append(1 if unasked is None else 2)
    return np.ravel_multi_index(np.ix_(*sides), many).ravel()


def left_out(
    whole: Floats,
    deviation: float,
    silent: Sequence[tuple[float, float]],
    unasked: Sequence[int | None],
) -> tuple[Floats, float, float]:
    """By block the rows that lack an answer, from a noisy list with missing answers as the last group of each column.

    Of two columns these are the silent cells of one, those of the other, less those of both. Sums of many noisy cells are
    known badly, and each column's own list has its silence in one entry, so they are taken from there where that is
    better. Told with the variance of the first block's, and the part of it that comes from this list.

    Parameters
    ----------
    whole : the list as a table
    deviation : the noise of each of its cells
    silent : by column, how many gave no answer by its own list, and the variance of that
    unasked : by column, the group of those who were not asked, where there is one
    """
    if whole.ndim == 1:
        noise = deviation**2
        return np.array([whole[-1], *([0.0] if unasked[0] is not None else [])]), noise, noise
    one, other = unasked
    beside = [
        *([whole[-1, other]] if other is not None else []),
        *([whole[one, -1]] if one is not None else []),
    ]
    lines = float(whole[-1, :].sum() + whole[:-1, -1].sum())
    from_columns = silent[0][0] + silent[1][0] - float(whole[-1, -1])
    own, borrowed = (sum(whole.shape) - 1) * deviation**2, silent[0][1] + silent[1][1] + deviation**2
    is_borrowed, beyond = borrowed < own, len(beside) * deviation**2
    left = (from_columns if is_borrowed else lines) - sum(beside)
    blocks = [left]
    if other is not None:
        blocks.append(float(whole[-1, other]))
    if one is not None:
        blocks += [float(whole[one, -1]), *([0.0] if other is not None else [])]
    return np.array(blocks), min(own, borrowed) + beyond, (deviation**2 if is_borrowed else own) + beyond


def as_available(lists: Lists) -> Lists:
    """Lists that tell missing answers apart, as lists of those who answered: rows left out, and by how much noise.

    What direct answers read. They are about those who answered all columns of a table, and about everybody where missing
    answers are missing at random.
    """
    if lists.missing is not MissingMethod.WEIGHTED:
        return lists
    silences = [axis.silence for axis in lists.domain.axes]

    def spoken(sides: Sequence[Wholes]) -> tuple[Wholes, ...]:
        return tuple(
            np.where(np.arange(len(side)) == at, -1, side) for side, at in zip(sides, silences, strict=True)
        )

    return replace(
        lists,
        missing=MissingMethod.AVAILABLE,
        plain=spoken(lists.plain),
        groups=spoken(lists.groups),
        lists=tuple(_answered(each, lists) for each in lists.lists),
    )


def _answered(each: NoisyList, lists: Lists) -> NoisyList:
    into = lists.into(each)
    whole = each.cells.reshape(sizes(into))
    columns = [lists.columns[place] for place in each.places]
    unasked = [
        None if lists.domain.axes[place].unasked is None else int(side[lists.domain.axes[place].unasked])
        for place, side in zip(each.places, into, strict=True)
    ]
    silent = [(float(one.cells[-1]), one.deviation**2) for one in columns]
    left, variance, own = left_out(whole, each.deviation, silent, unasked)
    answered = whole[tuple(slice(-1) for _ in each.places)].ravel()
    return replace(each, cells=answered, left=left, left_variance=variance, left_own=own)


class ListPart(Section):
    """One list in a file: its columns, how many numbers of each sort it has, and the deviations of their noise."""

    columns: list[str] = Field(min_length=1, max_length=3)
    cells: int = Field(ge=1)
    left: int = Field(ge=0)
    sums: int = Field(ge=0)
    deviation: str
    chosen: bool
    grouped: bool
    fitted: bool


class ListsPart(Section):
    """All lists in a file; the numbers themselves stand in one array beside it."""

    missing: Annotated[MissingMethod, Field(strict=False)]
    gaussian: bool
    complex: bool
    filled: list[str] = Field(default=[])
    groups: list[list[int]]
    lists: list[ListPart]


def lists_section(lists: Lists) -> tuple[dict[str, Any], Floats]:
    """What a file says of the lists, and all their numbers one after the other."""
    names = lists.domain.columns
    told = [
        {
            "columns": [names[place] for place in each.places],
            "cells": len(each.cells),
            "left": len(each.left),
            "sums": len(each.sums),
            "deviation": repr(float(each.deviation)),
            "chosen": each.is_chosen,
            "grouped": each.is_grouped,
            "fitted": each.is_fitted,
        }
        for each in lists.lists
    ]
    parts = [part for each in lists.lists for part in (each.cells, each.left, each.sums, each.sum_deviations)]
    words = {
        "missing": lists.missing.value,
        "gaussian": lists.is_gaussian,
        "complex": lists.is_complex,
        **({"filled": list(lists.filled)} if lists.filled else {}),
        "groups": [side.tolist() for side in lists.groups],
        "lists": told,
    }
    return words, np.concatenate([np.zeros(0), *parts])


def lists_size(part: ListsPart) -> int:
    """How many numbers stand in the array."""
    return sum(each.cells + each.left + 2 * each.sums for each in part.lists)


def lists_from(part: ListsPart, numbers: Floats, domain: Domain, plain: tuple[Wholes, ...]) -> Lists | None:
    """The lists again, or nothing where they do not fit the domain."""
    groups = tuple(np.array(side, dtype=np.int64) for side in part.groups)
    if len(groups) != len(plain) or any(len(a) != len(b) for a, b in zip(groups, plain, strict=True)):
        return None
    if any(
        ((side < 0) != (first < 0)).any() or side.max() < 0 for side, first in zip(groups, plain, strict=True)
    ):
        return None
    if any(set(side[side >= 0].tolist()) != set(range(int(side.max()) + 1)) for side in groups):
        return None
    made, at = [], 0
    for each in part.lists:
        found = _list_from(each, numbers[at:], domain, groups if each.grouped else plain)
        if found is None:
            return None
        made.append(found)
        at += each.cells + each.left + 2 * each.sums
    if [each.places for each in made[: len(plain)]] != [(place,) for place in range(len(plain))]:
        return None
    return Lists(
        domain=domain,
        missing=part.missing,
        plain=plain,
        groups=groups,
        lists=tuple(made),
        is_gaussian=part.gaussian,
        is_complex=part.complex,
        filled=tuple(part.filled),
    )


def _list_from(
    part: ListPart, numbers: Floats, domain: Domain, sides: tuple[Wholes, ...]
) -> NoisyList | None:
    if not {*part.columns} <= {*domain.columns}:
        return None
    places = tuple(domain.columns.index(name) for name in part.columns)
    into = [sides[place] for place in places]
    blocks = asked_blocks(domain, places, into)
    deviation = None
    with suppress(ValueError):
        deviation = float(part.deviation)
    is_whole = part.cells == len(blocks) and part.left in (0, int(blocks.max()) + 1)
    if deviation is None or not (isfinite(deviation) and deviation > 0) or not is_whole:
        return None
    cells, left, sums, deviations = np.split(
        numbers[: part.cells + part.left + 2 * part.sums],
        np.cumsum([part.cells, part.left, part.sums]),
    )
    if not np.isfinite(numbers).all() or (deviations <= 0).any():
        return None
    return NoisyList(
        places=places,
        cells=cells,
        left=left,
        sums=sums,
        deviation=deviation,
        sum_deviations=deviations,
        is_chosen=part.chosen,
        is_grouped=part.grouped,
        is_fitted=part.fitted,
    )
