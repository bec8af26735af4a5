"""Direct estimates from noisy marginals by generalised least squares, with the variance of their noise and of the sample.

The raw noisy lists are unbiased and the variance of their noise is public. A pair's own list, the lists of its two columns
and the total say the same thing several times over; weighed by the inverse of their variances they give the best linear
estimate, and its variance, in closed form. No model is fitted, nothing is assumed of how columns go together, and no row is
drawn. What follows here comes after the noise and costs nothing.

Notation, as in docs/theory/synthesis.md: x is the table of shares, T the variances of its cells, R takes a table to its
row sums, its column sums and its total, D has the variances of what is known of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from reticent.synth.base import Floats, MissingMethod, Places
from reticent.synth.lists import Lists, NoisyList, Wholes, as_available, asked_blocks, sizes
from reticent.synth.network import simplex

TOTAL: Places = ()
LEAST_SHARE = 1 / 64
ENOUGH = 4.0
"""A denominator is told apart from nothing where it is that many of its own standard errors."""


class NoInterval(Exception):
    """Why a question has no interval, and the number that can be told all the same, if there is one."""

    def __init__(self, reason: str, estimate: float | None = None) -> None:
        super().__init__(reason)
        self.reason, self.estimate = reason, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """A noisy list as shares of all rows, cell by cell: with the variance of its noise and the share that answered.

    `scale` is the variance that all cells of a block have in common, relative to their size: that of the noisy total, and
    of the rows left out. `rows` has the rows of each block that answered; `left` is the variance that the list itself brings
    to its rows left out, none where all rows are in, and where `is_borrowing` they are told by the columns' lists, too.
    """

    shares: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    response: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    blocks: Wholes = field(repr=False)
    rows: Floats = field(repr=False)
    left: float = 0.0
    is_borrowing: bool = False

    @property
    def by_block(self) -> Floats:
        """The share of each block."""
        return np.asarray(np.bincount(self.blocks, weights=self.shares, minlength=len(self.scale)))


def shares_of(each: NoisyList, lists: Lists) -> Shares:
    """The list on the scale of all rows. Where rows are left out, each block is scaled by those who answered in it."""
    total, noise = lists.total, each.deviation**2
    blocks = asked_blocks(lists.domain, each.places, lists.into(each))
    response, rows = _response(each, blocks, total)
    unit = total * response[blocks]
    scale = (lists.total_variance + (each.noise_left if len(each.left) else 0.0)) / np.square(rows * response)
    return Shares(
        shares=each.cells / unit,
        variance=noise / np.square(unit),
        response=response[blocks],
        scale=scale,
        blocks=blocks,
        rows=rows * response,
        left=each.own_left if len(each.left) else 0.0,
        is_borrowing=each.is_borrowing,
    )


def _response(each: NoisyList, blocks: Wholes, total: float) -> tuple[Floats, Floats]:
    """For each block the share of its rows that answered, and its rows: those of the widest are what the others leave."""
    many = int(blocks.max()) + 1
    if not len(each.left):
        return np.ones(many), np.full(many, total)
    rows = np.bincount(blocks, weights=each.cells, minlength=many) + each.left
    widest = int(np.bincount(blocks).argmax())
    rows[widest] = total - (rows.sum() - rows[widest])
    rows = np.maximum(rows, max(1.0, each.deviation))
    return np.clip(1 - each.left / rows, LEAST_SHARE, 1.0), rows


def averaged(parts: Sequence[Shares]) -> Shares:
    """A set that was measured more than once: its lists weighed by the inverse of their variances."""
    weights = [1 / part.variance for part in parts]
    total = sum(weights, np.zeros_like(weights[0]))

    def mean(values: Sequence[Floats]) -> Floats:
        return np.asarray(
            sum((w * v for w, v in zip(weights, values, strict=True)), np.zeros_like(total)) / total
        )

    return Shares(
        shares=mean([part.shares for part in parts]),
        variance=1 / total,
        response=mean([part.response for part in parts]),
        scale=np.max([part.scale for part in parts], axis=0),
        blocks=parts[0].blocks,
        rows=np.min([part.rows for part in parts], axis=0),
        left=max(part.left for part in parts),
        is_borrowing=any(part.is_borrowing for part in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCombination:
    """A linear functional of noisy lists: its value, and by list the weight of every entry. Values can be added up."""

    value: float
    weights: dict[Places, Floats] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """The best linear estimate of one measured table, with all that an interval about it needs.

    `known` has the rows of R whose value is known from elsewhere, `told` these values and `spread` their variances; `sides`
    says of each row to which column and group it belongs, or to the total.
    """

    places: Places
    lists: Lists
    own: Shares
    known: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    sides: tuple[tuple[Places, int], ...]
    columns: dict[Places, tuple[Shares, Wholes]] = field(repr=False)
    table: Floats = field(repr=False)
    inverse: Floats = field(repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        return sizes(self.lists.into(self._list))

    @property
    def _list(self) -> NoisyList:
        return self.lists.of(self.places)[0]

    @property
    def positive(self) -> Floats:
        """The nearest table of shares without negative cells. For variances of sampling only."""
        return simplex(self.table, 1.0)

    def linear(self, q: Floats) -> ListCombination:
        """q . x^, and the weights with which it rests on this list, on those of its columns, and on the total."""
        borrowed = self.borrowed(q)
        weights: dict[Places, Floats] = {self.places: q - borrowed @ self.known}
        for weight, (side, group) in zip(borrowed, self.sides, strict=True):
            if side == TOTAL:
                weights[TOTAL] = np.array([weight])
                continue
            own, cells_of = self.columns[side]
            weights.setdefault(side, np.zeros(len(own.shares)))[cells_of == group] += weight
        return ListCombination(value=float(q @ self.table), weights=weights)

    def borrowed(self, q: Floats) -> Floats:
        """How much of a functional rests on each known sum: S^-1 R T q."""
        return np.asarray(self.inverse @ (self.known @ (self.own.variance * q)))

    def noise(self, q: Floats) -> float:
        """The variance that the noise gives to q . x^: q'Cq, and what the common scale adds.

        Where rows are left out every list is scaled by its own, so the scale is told list by list.
        """
        if self.own.left:
            shares = {self.places: self.own, **{side: own for side, (own, _) in self.columns.items()}}
            return list_noise(self.linear(q).weights, shares, self.lists)
        plain = float(q @ (self.own.variance * q))
        taken = self.known @ (self.own.variance * q)
        return max(0.0, plain - float(taken @ self.inverse @ taken)) + self.scale_noise(q)

    def scale_noise(self, q: Floats) -> float:
        """The part of an error in the total, where no rows are left out: each block's share of the functional, squared."""
        part = np.bincount(self.own.blocks, weights=q * self.positive, minlength=len(self.own.scale))
        return float(np.square(part) @ self.own.scale)

    def denominator(self, q: Floats, what: str) -> float:
        """The value of q . x^, which something is divided by: refused where it is not far enough from nothing."""
        value = float(q @ self.table)
        if value < ENOUGH * sqrt(self.noise(q)):
            raise NoInterval(f"{what} is less than {ENOUGH:g} of its own standard errors")
        return value

    def sampling(self, q: Floats) -> float:
        """The variance that the sample gives to q . x^, for rows drawn independently of each other.

        Where rows are left out, those who answer are taken to be a random part of those asked. A row's influence is
        1_AB f/r_AB + 1_A k_a/r_A + 1_B k_b/r_B, with f what rests on the pair's own list and k what rests on columns.
        """
        x, total = self.positive, self.lists.total
        borrowed = self.borrowed(q)
        f = _centred(q - borrowed @ self.known, x)
        if self.lists.missing is not MissingMethod.AVAILABLE:
            return float(np.square(_centred(q, x)) @ x) / total
        r = self.own.response
        found = float(np.square(f) @ (x / r))
        parts = [self._side(borrowed, side, x) for side in self.columns]
        for k, response in parts:
            found += float(np.square(k) @ (x / response)) + 2 * float((f * k) @ (x / response))
        if len(parts) == 2:
            (one, first), (other, second) = parts
            found += 2 * float((one * other) @ (x * r / (first * second)))
        return max(0.0, found) / total

    def influence(self, q: Floats) -> Floats:
        """What a row in each cell that is in the table's own list moves q . x^ by, with everything it answered."""
        x, borrowed = self.positive, self.borrowed(q)
        if self.lists.missing is not MissingMethod.AVAILABLE:
            return _centred(q, x)
        found = _centred(q - borrowed @ self.known, x) / self.own.response
        for k, response in (self._side(borrowed, side, x) for side in self.columns):
            found = found + k / response
        return found

    def _side(self, borrowed: Floats, side: Places, x: Floats) -> tuple[Floats, Floats]:
        """What rests on a column's list, cell by cell of the table, centred; and who answered the column."""
        here = np.array([each == side for each, _ in self.sides])
        k = borrowed[here] @ self.known[here]
        own, cells_of = self.columns[side]
        group = np.indices(self.shape)[self.places.index(side[0])].ravel()
        response = np.array([own.response[cells_of == g][0] for g in range(int(group.max()) + 1)])
        return _centred(k, x), response[group]


def _centred(q: Floats, x: Floats) -> Floats:
    return np.asarray(q - float(q @ x))


def estimated(lists: Lists, places: Places) -> Estimated | None:
    """The estimate of a measured table; none where the set was not measured."""
    found = lists.used(places)
    if not found:
        return None
    own = averaged([shares_of(each, lists) for each in found])
    into = lists.into(found[0])
    columns: dict[Places, tuple[Shares, Wholes]] = {}
    if len(places) > 1:
        columns = {(place,): _column(lists, place) for place in places}
    known, told, spread, sides = _known(lists, own, places, sizes(into), columns)
    inverse: Floats = np.asarray(
        np.linalg.inv((known * own.variance) @ known.T + np.diag(spread)), dtype=np.float64
    )
    table = own.shares + own.variance * (known.T @ (inverse @ (told - known @ own.shares)))
    return Estimated(
        places=places,
        lists=lists,
        own=own,
        known=known,
        spread=spread,
        sides=sides,
        columns=columns,
        table=table,
        inverse=inverse,
    )


def _column(lists: Lists, place: int) -> tuple[Shares, Wholes]:
    """A column's own list as shares, and for each of its cells the group that pairs have it in."""
    first, groups = lists.plain[place], lists.groups[place]
    kept = first >= 0
    cells_of = np.zeros(int(first.max()) + 1, dtype=np.int64)
    cells_of[first[kept]] = groups[kept]
    return shares_of(lists.columns[place], lists), cells_of


def _known(
    lists: Lists,
    whole: Shares,
    places: Places,
    shape: tuple[int, ...],
    columns: dict[Places, tuple[Shares, Wholes]],
) -> tuple[Floats, Floats, Floats, tuple[tuple[Places, int], ...]]:
    """The sums of a table that are known from elsewhere: of the columns' groups, and the total.

    A group of merged cells is left out: which cells were merged was decided by the very noise of that column's list.
    """
    indices = np.indices(shape).reshape(len(shape), -1)
    rows: list[Floats] = []
    told: list[float] = []
    spread: list[float] = []
    sides: list[tuple[Places, int]] = []
    for at, place in enumerate(places if columns else ()):
        own, cells_of = columns[(place,)]
        for group in range(shape[at]):
            here = cells_of == group
            if here.sum() == 1:
                rows.append((indices[at] == group).astype(np.float64))
                told.append(float(own.shares[here].sum()))
                spread.append(float(own.variance[here].sum()))
                sides.append(((place,), group))
    rows.append(np.ones(indices.shape[1]))
    told.append(1.0)
    # That all shares are one is known as well as this list's scale is.
    is_scaled = whole.left > 0
    spread.append(
        float(np.square(whole.by_block) @ whole.scale) if is_scaled else lists.total_variance / lists.total**2
    )
    sides.append((TOTAL, 0))
    return np.array(rows), np.array(told), np.array(spread), tuple(sides)


def joined(parts: Sequence[ListCombination], factors: Sequence[float]) -> dict[Places, Floats]:
    """The weights of a sum of functionals on every list that one of them rests on."""
    found: dict[Places, Floats] = {}
    for part, factor in zip(parts, factors, strict=True):
        for places, weights in part.weights.items():
            found[places] = found.get(places, np.zeros_like(weights)) + factor * weights
    return found


def variance_of(parts: Sequence[ListCombination], factors: Sequence[float], lists: Lists) -> float:
    """The noise of a sum of functionals that may share lists: weights on one list are added before they are squared."""
    weights = joined(parts, factors)
    used = dict.fromkeys(
        [*(each for each in weights if each), *((place,) for each in weights for place in each)]
    )
    shares = {places: averaged([shares_of(each, lists) for each in lists.used(places)]) for places in used}
    return list_noise(weights, shares, lists)


def list_noise(weights: dict[Places, Floats], shares: dict[Places, Shares], lists: Lists) -> float:
    """The noise of a functional that rests on lists with these weights: of their cells, and of what they are scaled by.

    Where rows are left out a list is divided by the total less its rows left out. An error in these moves all shares of a
    block alike, and the sum of the shares, which is one, not at all. Errors that lists have in common are added before they
    are squared: of the total, which is made of all columns' lists, and of a column's missing answers, by which a pair's
    rows left out may be told.
    """
    zeroes = {places: np.zeros_like(each.shares) for places, each in shares.items()}
    weights = {TOTAL: np.zeros(1), **zeroes, **weights}
    found = sum(float(np.square(weights[places]) @ each.variance) for places, each in shares.items())
    if not any(each.left for each in shares.values()):
        return found + float(weights[TOTAL][0]) ** 2 * lists.total_variance / lists.total**2
    total, left = 0.0, dict[tuple[Places, int], float]()
    for places, each in shares.items():
        moved = np.bincount(each.blocks, weights=weights[places] * each.shares, minlength=len(each.rows))
        for block, part in enumerate(moved / each.rows):
            total -= float(part)
            told_by = [places, *([(place,) for place in places] if each.is_borrowing and not block else [])]
            for one in told_by:
                left[one, block] = left.get((one, block), 0.0) + float(part)
    found += sum(part**2 * shares[places].left for (places, _), part in left.items())
    for (place,) in (places for places in shares if len(places) == 1):
        # The total rests on this list as well.
        own, noise = shares[place,], lists.columns[place].deviation ** 2
        direct = float((weights[place,] * np.sqrt(own.variance / noise)).sum())
        beside = sum(part for (places, _), part in left.items() if places == (place,))
        found += 2 * total * lists.total_weights[place] * noise * (direct + beside)
    return max(0.0, found + total**2 * lists.total_variance)


class MeasuredTables:
    """The estimates of all measured tables, each made once: for many questions to the same lists."""

    def __init__(self, lists: Lists) -> None:
        self.missing = lists.missing
        self.lists = as_available(lists)
        self._made: dict[Places, Estimated | None] = {}

    def of(self, places: Places) -> Estimated:
        """The estimate, or why there is none."""
        if places not in self._made:
            self._made[places] = estimated(self.lists, places)
        found = self._made[places]
        if found is None:
            names = " and ".join(self.lists.domain.columns[place] for place in places)
            raise NoInterval(f"no table of {names} was measured")
        return found
