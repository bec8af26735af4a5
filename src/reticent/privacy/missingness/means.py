"""The mean of a product over one row's mask, when attributes are observed independently of each other.

Each mechanism that uses the row brings a factor. Masks are not listed one by one: attributes are gone through in
an order, and of those seen only that is kept which mechanisms still waiting for others need to know.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from flint import arb

from reticent.privacy.missingness.uses import EVERY_ROW, Sets, sets_of

MOST_STATES = 2**17
Number = TypeVar("Number", arb, Fraction)
Chances = tuple[tuple[str, Fraction], ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """Mechanisms that share attributes, directly or through others, and the order in which these are gone through."""

    members: tuple[int, ...]
    sets: tuple[Sets, ...]
    order: tuple[str, ...]

    def layers(self) -> "Iterator[Layer]":
        """What happens at each attribute."""
        every = [(place, one) for place, sets in enumerate(self.sets) for one in sets]
        last = [max(map(self.order.index, one)) for _, one in every]
        own = [_bits(p == place for p, _ in every) for place in range(len(self.sets))]
        for step, attribute in enumerate(self.order):
            yield Layer(
                attribute=attribute,
                needs=_bits(attribute in one for _, one in every),
                ends=_bits(place == step for place in last),
                gone=_bits(place <= step for place in last),
                owners=tuple((place, own[place]) for place, _ in every),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One attribute: sets that need it, sets whose last attribute it is, and all that need not be remembered after it.

    A state is the set of sets that are out of the race, as bits. A set that is observed to its end takes the other
    sets of its mechanism out with it: the row is used, and once is enough.
    """

    attribute: str
    needs: int
    ends: int
    gone: int
    owners: tuple[tuple[int, int], ...]

    def after(self, state: int, *, observed: bool) -> tuple[int, list[int]]:
        """The next state, and which mechanisms turn out to use the row."""
        out = state if observed else state | self.needs
        used = []
        while through := self.ends & ~out:
            mechanism, own = self.owners[(through & -through).bit_length() - 1]
            used.append(mechanism)
            out |= own
        return out & ~self.gone, used


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How a mean is taken: walks that share no attribute, mechanisms that use every row, attributes taken as observed."""

    always: tuple[int, ...]
    walks: tuple[Walk, ...]
    taken: tuple[str, ...]


@lru_cache(maxsize=256)
def course(uses: tuple[Sets, ...], chances: Chances) -> Course:
    """A course short enough to go. Where it would be too long, what is observed most often is taken as always observed."""
    known = {name for name, chance in chances if chance == 1}
    taken: list[str] = []
    while True:
        found = _course(uses, known, tuple(taken))
        long = next(((walk, left) for walk in found.walks if (left := _left(walk))), None)
        if long is None:
            return found
        often = sorted(long[0].order, key=lambda name: (dict(chances)[name], name))
        taken += often[-long[1] :]
        known |= set(taken)


def mean_product(
    uses: Sequence[Sets], factors: Sequence[Number], chances: Mapping[str, Number], way: Course
) -> Number:
    """E of the product of `factors` over the mechanisms that use the row.

    Guarantee   the mean itself; with attributes in `way.taken`, the mean as if these were always observed.
    Adjacency   none: numbers only.
    Theorem     THEORY 4.1, components and enumeration.
    Proof       proofs/privacy/missingness.md
    Assumes     attributes are observed independently, with `chances`; `way` is the course of `uses`.
    Keeps back  nothing: no row is read.
    """
    one = next(iter(factors)) * 0 + 1
    for place in way.always:
        one = one * factors[place]
    for walk in way.walks:
        one = one * _walk(walk, [factors[place] for place in walk.members], chances)
    return one


def _walk(walk: Walk, factors: Sequence[Number], chances: Mapping[str, Number]) -> Number:
    masses: dict[int, Number] = {0: factors[0] * 0 + 1}
    for layer in walk.layers():
        chance = chances[layer.attribute]
        after: dict[int, Number] = {}
        for state, mass in masses.items():
            for observed, share in ((True, chance), (False, 1 - chance)):
                to, used = layer.after(state, observed=observed)
                moved = mass * share
                for place in used:
                    moved = moved * factors[place]
                after[to] = after[to] + moved if to in after else moved
        masses = after
    return masses[0]


def _course(uses: Sequence[Sets], known: set[str], taken: tuple[str, ...]) -> Course:
    sets = [sets_of(*(one - known for one in each)) for each in uses]
    always = tuple(place for place, each in enumerate(sets) if each == EVERY_ROW)
    groups = _components({place: each for place, each in enumerate(sets) if each != EVERY_ROW})
    walks = tuple(
        Walk(members, shown, _order(shown))
        for members in groups
        for shown in (tuple(sets[place] for place in members),)
    )
    return Course(always=always, walks=walks, taken=taken)


def _components(sets: Mapping[int, Sets]) -> list[tuple[int, ...]]:
    """Mechanisms put together where they share an attribute."""
    groups: list[tuple[list[int], set[str]]] = []
    for place, each in sets.items():
        names = set().union(*each)
        near = [group for group in groups if group[1] & names]
        groups = [group for group in groups if not group[1] & names]
        members = [place, *(member for group in near for member in group[0])]
        groups.append((members, names.union(*(group[1] for group in near))))
    return [tuple(sorted(members)) for members, _ in groups]


def _order(sets: Sequence[Sets]) -> tuple[str, ...]:
    """Next comes the attribute after which the fewest sets are begun and not ended; ties go by name."""
    every = [one for each in sets for one in each]
    left, seen = set().union(*every), set[str]()
    order = []
    while left:
        best = min(sorted(left), key=lambda name: sum(_is_open(one, seen | {name}) for one in every))
        order.append(best)
        seen.add(best)
        left.remove(best)
    return tuple(order)


def _is_open(one: frozenset[str], seen: set[str]) -> bool:
    return bool(one & seen) and not one <= seen


def _left(walk: Walk) -> int:
    """How many attributes are left when a walk has met as many states as it may; 0 where it comes to its end."""
    states, met = {0}, 1
    for step, layer in enumerate(walk.layers(), start=1):
        states = {layer.after(state, observed=seen)[0] for state in states for seen in (True, False)}
        met += len(states)
        if met > MOST_STATES:
            return len(walk.order) - step + 1
    return 0


def _bits(flags: Iterable[bool]) -> int:
    return sum(1 << place for place, flag in enumerate(flags) if flag)
