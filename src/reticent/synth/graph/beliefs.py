"""Belief propagation on a junction tree: from potentials to marginals, by one walk up and one down, and the fitted joint table.

On the way up every clique becomes conditional on its separator. On the way down conditionals are multiplied by what the
parent says of the separator. Exponentials are dear, so they are taken of the small tables of potentials, and cliques are
made of products. If a line of products comes near what a double can hold, the walk is done again in logarithms, where
nothing can under- or overflow; so are all walks after it. Potentials may be minus infinity, where a cell is impossible.

**Middle tables.** A table over a, b, c, d is summed over d once for all sets without d, and so on down. Multiplying is the
same way back. So the large table is walked through a few times and not once for every set.

**Axes that no clique holds together.** Beyond a separator the rest of the tree matters only through it. So the table of two
far axes is that of the one and a separator, times the law of the other given that separator; and that law is the same for
all tables that ask for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.synth.base import Conditional, Floats, Places
from reticent.synth.graph.tree import Tree


@dataclass(slots=True, kw_only=True)
class Middle:
    """One table on the way, its memory, what is handed out from it, and the smaller ones below."""

    axes: Places
    room: Floats = field(repr=False)
    dropped: Places = ()  # sides of the table above that are summed here
    lifted: tuple[int, ...] = ()  # this table's sizes seen from above
    targets: list[tuple[int, Places, Places]] = field(default_factory=list)  # number, sides there, sides here
    below: list["Middle"] = field(default_factory=list)

    def collect(self, tables: Sequence[Floats]) -> None:
        """Write the sums of this table into the targets among `tables`."""
        for number, there, _ in self.targets:
            tables[number][...] = self.room.transpose(there)
        for part in self.below:
            np.add.reduce(self.room, axis=part.dropped, out=part.room)
            part.collect(tables)

    def spread(self, tables: Sequence[Floats], joined: np.ufunc) -> None:
        """Make this table the product, or the sum, of the targets among `tables`."""
        for part in self.below:
            part.spread(tables, joined)
        parts = [part.room.reshape(part.lifted) for part in self.below]
        parts += [tables[number].transpose(here) for number, _, here in self.targets]
        if len(parts) > 1:
            joined(parts[0], parts[1], out=self.room)
        else:
            self.room[...] = parts[0] if parts else joined.identity
        for more in parts[2:]:
            joined(self.room, more, out=self.room)


def middle_tables(axes: Places, shape: Sequence[int], targets: Sequence[tuple[int, Places]]) -> Middle:
    """The way from a table over `axes` (in that order) to numbered targets, each with its own order of axes."""
    made = Middle(axes=axes, room=np.zeros([shape[axis] for axis in axes]))
    left = []
    for number, places in targets:
        if set(places) == set(axes):
            made.targets.append((number, _order(axes, places), _order(places, axes)))
        else:
            left.append((number, places))
    while left:
        # Drop the axis that most targets lack, and with it whatever none of those needs.
        gone = max(axes, key=lambda axis: (sum(axis not in places for _, places in left), shape[axis]))
        group = [target for target in left if gone not in target[1]]
        left = [target for target in left if gone in target[1]]
        made.below.append(_part(axes, shape, group))
    return made


def _order(axes: Places, wanted: Places) -> Places:
    return tuple(axes.index(place) for place in wanted)


def _part(axes: Places, shape: Sequence[int], group: Sequence[tuple[int, Places]]) -> Middle:
    used = {place for _, places in group for place in places}
    part = middle_tables(tuple(axis for axis in axes if axis in used), shape, group)
    part.dropped = tuple(i for i, axis in enumerate(axes) if axis not in used)
    part.lifted = tuple(shape[axis] if axis in used else 1 for axis in axes)
    return part


# A line that sums to this holds its cells down to 1e-100 of the largest, whatever was lost below 1e-308.
SMALLEST = 1e-200


class Beliefs:
    """Memory and plan for walks over one tree. `sets` are the places of the potentials, in their order."""

    def __init__(self, tree: Tree, sets: Sequence[Places]) -> None:
        self.tree = tree
        count = len(tree.cliques)
        self._messages = [np.zeros(tree.sizes(places)) for places in tree.separators]
        held: list[list[tuple[int, Places]]] = [[] for _ in range(count)]
        for number, places in enumerate(sets):
            held[_home(tree, places)].append((number, places))
        for child in range(1, count):
            held[tree.parents[child]].append((len(sets) + child, tree.separators[child]))
        self._tops = [middle_tables(c, tree.shape, h) for c, h in zip(tree.cliques, held, strict=True)]
        self._sums = [np.ones(message.size) for message in self._messages]
        self._possible: list[NDArray[np.bool_]] | None = None
        self._can_multiply = True

    @property
    def cliques(self) -> list[Floats]:
        """The probabilities of every clique, as the last walk left them. Not a copy."""
        return [top.room for top in self._tops]

    def up(self, potentials: Sequence[Floats]) -> bool:
        """Take potentials to conditionals. False where no joint cell is possible."""
        if not (self._can_multiply and self._up_by_products(potentials)):
            # The first time, lines may have been empty because they must be. After that we know which.
            self._can_multiply = self._possible is None
            self._up_by_logarithms(potentials)
            self._possible = [sums > 0 for sums in self._sums]
        return bool(self._sums[0][0] > 0)

    def _up_by_products(self, potentials: Sequence[Floats]) -> bool:
        """Whether every line was large enough to be trusted."""
        tables = [*(_exponential(table) for table in potentials), *self._messages]
        for i in reversed(range(len(self._tops))):
            self._tops[i].spread(tables, np.multiply)
            sums = self._sums[i]
            np.add.reduce(self._lines(i), axis=0, out=sums)
            if self._smallest(i) < SMALLEST:
                return False
            np.divide(sums.reshape(self._messages[i].shape), sums.max() or 1.0, out=self._messages[i])
        return True

    def _smallest(self, i: int) -> float:
        """The smallest sum of a line that is not empty by rule."""
        if self._possible is None:
            return float(self._sums[i].min())
        return float(self._sums[i].min(where=self._possible[i], initial=1.0))

    def _up_by_logarithms(self, potentials: Sequence[Floats]) -> None:
        tables = [*potentials, *self._messages]
        for i in reversed(range(len(self._tops))):
            self._tops[i].spread(tables, np.add)
            lines, sums = self._lines(i), self._sums[i]
            highest = lines.max(axis=0)
            highest[highest == -np.inf] = 0.0
            np.exp(np.subtract(lines, highest, out=lines), out=lines)
            np.add.reduce(lines, axis=0, out=sums)
            with np.errstate(divide="ignore"):
                self._messages[i][...] = (np.log(sums) + highest).reshape(self._messages[i].shape)

    def down(self, marginals: Sequence[Floats]) -> None:
        """Take conditionals to probabilities of cliques, and write those of the sets into `marginals`."""
        self._messages[0][...] = 1.0
        tables = [*marginals, *self._messages]
        for i, top in enumerate(self._tops):
            lines, sums = self._lines(i), self._sums[i]
            share = np.divide(self._messages[i].reshape(-1), sums, out=np.zeros_like(sums), where=sums > 0)
            np.multiply(lines, share, out=lines)
            top.collect(tables)

    def _lines(self, i: int) -> Floats:
        """A clique as a matrix with a column for each cell of its separator."""
        return self._tops[i].room.reshape(-1, self._sums[i].size)


def _exponential(potential: Floats) -> Floats:
    """With a largest cell of 1, or empty where everything is impossible."""
    highest = float(potential.max())
    found: Floats = np.exp(potential - (highest if highest > -np.inf else 0.0))
    return found


def _home(tree: Tree, places: Places) -> int:
    home = tree.home(places)
    if home is None:
        raise ValueError("the tree was not made for these sets")
    return home


Factor = tuple[Floats, Places]


class Across:
    """Answers for one calibrated tree. Keeps what it has summed, for the next question."""

    def __init__(self, tree: Tree, tables: Sequence[Floats]) -> None:
        self._tree = tree
        self._sums: list[dict[frozenset[int], Factor]] = [
            {frozenset(clique): (table, clique)} for clique, table in zip(tree.cliques, tables, strict=True)
        ]
        self._laws: dict[tuple[int, int, Places], Factor] = {}
        self._near = _near(tree.parents)
        self._beyond: dict[tuple[int, int], frozenset[int]] = {}

    def table(self, places: Places) -> Floats:
        """The probabilities over `places`, in their order."""
        home = self._tree.home(places)
        if home is not None:
            return _ordered(self._sum(home, places), places)
        best = max(range(len(self._near)), key=lambda i: (self._held(i, places), -self._cells(i)))
        return self._through(best, None, places)

    def _held(self, i: int, places: Places) -> int:
        return len(set(places) & set(self._tree.cliques[i]))

    def _cells(self, i: int) -> int:
        return prod(self._tree.sizes(self._tree.cliques[i]))

    def _through(self, i: int, source: int | None, kept: Places) -> Floats:
        """Clique `i` and what lies behind it, seen from `source`, summed to `kept`."""
        clique = set(self._tree.cliques[i])
        far = [place for place in kept if place not in clique]
        factors: list[Factor] = []
        for j in self._near[i]:
            part = tuple(sorted(place for place in far if j != source and place in self._reach(i, j)))
            if part:
                factors.append(self._law(j, i, part))
        needed = {place for place in kept if place in clique}
        needed.update(place for _, axes in factors for place in axes if place in clique)
        return _multiplied([self._sum(i, needed), *factors], kept)

    def _law(self, i: int, source: int, places: Places) -> Factor:
        """`places`, which lie on the side of clique `i`, given its separator from clique `source`."""
        key = (i, source, places)
        if key not in self._laws:
            shared = tuple(sorted(set(self._tree.cliques[i]) & set(self._tree.cliques[source])))
            joint = self._through(i, source, (*shared, *places))
            mass = _ordered(self._sum(i, shared), shared).reshape(
                joint.shape[: len(shared)] + (1,) * len(places)
            )
            law = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
            self._laws[key] = (law, (*shared, *places))
        return self._laws[key]

    def _reach(self, i: int, j: int) -> frozenset[int]:
        """All axes on the side of `j` when the edge between `i` and `j` is cut."""
        if (i, j) not in self._beyond:
            further = (self._reach(j, k) for k in self._near[j] if k != i)
            self._beyond[i, j] = frozenset(self._tree.cliques[j]).union(*further)
        return self._beyond[i, j]

    def _sum(self, i: int, places: Iterable[int]) -> Factor:
        """Clique `i` summed to `places`, from the smallest sum that is there already."""
        wanted, known = frozenset(places), self._sums[i]
        if wanted not in known:
            table, axes = min((f for key, f in known.items() if wanted <= key), key=lambda f: f[0].size)
            away = tuple(n for n, axis in enumerate(axes) if axis not in wanted)
            known[wanted] = (np.asarray(table.sum(axis=away)), tuple(axis for axis in axes if axis in wanted))
        return known[wanted]


def _multiplied(factors: Sequence[Factor], kept: Places) -> Floats:
    """The product of the factors, summed to `kept`; each axis is summed as soon as no factor to come needs it."""
    table, axes = factors[0]
    for i, (other, more) in enumerate(factors[1:], start=2):
        needed = {*kept, *(place for _, later in factors[i:] for place in later)}
        joint = tuple(place for place in dict.fromkeys((*axes, *more)) if place in needed)
        table, axes = _product(table, axes, other, more, joint), joint
    return _ordered((table, axes), kept)


def _product(a: Floats, a_axes: Places, b: Floats, b_axes: Places, kept: Places) -> Floats:
    # Not by matrix products: most of these are thousands of tiny ones, each slower to start than to do.
    names = {place: i for i, place in enumerate(dict.fromkeys((*a_axes, *b_axes)))}
    sides = [[names[place] for place in axes] for axes in (a_axes, b_axes, kept)]
    operands: list[Any] = [a, sides[0], b, sides[1], sides[2]]
    return np.asarray(np.einsum(*operands))


def _near(parents: Sequence[int]) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in parents]
    for child, parent in enumerate(parents):
        if parent >= 0:
            near[child].append(parent)
            near[parent].append(child)
    return near


def _ordered(factor: Factor, places: Places) -> Floats:
    table, axes = factor
    return table.transpose([axes.index(place) for place in places])


NOTHING = 1e-15


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGraph:
    """`tables` hold the probabilities of the cliques, `potentials` what was fitted for each measured set."""

    tree: Tree
    tables: tuple[Floats, ...] = field(repr=False)
    potentials: Mapping[Places, Floats] = field(repr=False)
    total: float

    @property
    def cliques(self) -> tuple[Places, ...]:
        """The axes of every clique, sorted."""
        return tuple(tuple(sorted(clique)) for clique in self.tree.cliques)

    def marginal(self, places: Places) -> Floats:
        """The table over `places`, in their order, scaled to the total."""
        return self.marginals([places])[0]

    def marginals(self, sets: Sequence[Places]) -> list[Floats]:
        """Many tables at once, sharing what they have in common."""
        across = Across(self.tree, self.tables)
        return [self.total * across.table(places) for places in sets]

    def conditionals(self) -> tuple[Conditional, ...]:
        """The same joint table as a row of steps: each axis given some of those before it.

        Chances below 1e-15 become 0, so that whatever can be drawn has a line of its own.
        """
        across = Across(self.tree, self.tables)
        steps = []
        for clique, separator in zip(self.tree.cliques, self.tree.separators, strict=True):
            # Axes of the separator come last, and are there already; the others follow from the back.
            for place in reversed(range(len(clique) - len(separator))):
                steps.append(_conditional(across, clique[place], tuple(sorted(clique[place + 1 :]))))
        return tuple(steps)


def _conditional(across: Across, place: int, given: Places) -> Conditional:
    joint = across.table((*given, place))
    lines = joint.reshape(-1, joint.shape[-1])
    mass = lines.sum(axis=1, keepdims=True)
    chances = np.where(mass > 0, lines / np.where(mass > 0, mass, 1.0), lines.sum(axis=0))
    chances = np.where(chances < NOTHING, 0.0, chances)
    chances /= chances.sum(axis=1, keepdims=True)
    return Conditional(place=place, given=given, table=chances.reshape(joint.shape))
