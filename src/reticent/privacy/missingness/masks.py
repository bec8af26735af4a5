"""Missingness masks: which answers of one row are observed, when a mechanism uses the row, and means of products over masks.

The law of a mask is public, or bounded by public numbers. Each mechanism that uses the row brings a factor. Where attributes
are observed independently of each other, masks are not listed one by one: attributes are gone through in an order, and of
those seen only that is kept which mechanisms still waiting for others need to know.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from flint import arb

from reticent.errors import PlanError, nearest
from reticent.exact import ball

Sets = tuple[frozenset[str], ...]
EVERY_ROW: Sets = (frozenset(),)
"""Rows are used whatever is missing: where donors or a model fill the cells first, or where silence is a level."""


def sets_of(*sets: Collection[str]) -> Sets:
    """Sets of attributes in a stated order; one that holds another is left out, since the other is observed with it."""
    if any(isinstance(each, str) for each in sets):
        raise PlanError("give each set as a collection of names, such as {'age'}.", field="attributes")
    found = {frozenset(each) for each in sets}
    if not found:
        raise PlanError("name at least one set of attributes.", field="attributes")
    least = [each for each in found if not any(other < each for other in found)]
    return tuple(sorted(least, key=sorted))


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A mechanism that is (epsilon, delta)-DP, one row added or removed, in the rows it uses.

    It uses a row if one of its `sets` is observed there in full. Most have one set; a choice among candidate sets
    has them all.
    """

    sets: Sets
    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", sets_of(*self.sets))
        if not (isinstance(self.epsilon, Fraction) and isinstance(self.delta, Fraction)):
            raise PlanError("pass exact Fractions, as amount() makes them.", field="epsilon")
        if not self.epsilon > 0:
            raise PlanError(f"it is {self.epsilon}, but must be positive.", field="epsilon")
        if not 0 <= self.delta < 1:
            raise PlanError(f"it is {self.delta}, but must lie from 0 to below 1.", field="delta")


def use(*attributes: str, epsilon: Fraction) -> Use:
    """A mechanism on the rows in which all these attributes are observed."""
    return Use(sets=(frozenset(attributes),), epsilon=epsilon)


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


@dataclass(frozen=True, slots=True)
class IndependentMask:
    """Attributes are observed independently of each other, each with at most the stated chance, whatever the row says.

    The chances are typed by the curator: a design's, or upper bounds that were released privately. What was counted
    in the table is neither.
    """

    chances: Mapping[str, Fraction] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.chances:
            raise PlanError("say of each attribute how often it is observed at most.", field="observed")
        for name, chance in self.chances.items():
            _check_chance(name, chance)
        object.__setattr__(self, "chances", MappingProxyType(dict(self.chances)))

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(self.chances)

    def mean(self, uses: Sequence[Sets], factors: Sequence[arb]) -> list[arb]:
        """The mean of the product of factors of those that use the row; one class of rows."""
        chances = {name: ball(chance) for name, chance in self.chances.items()}
        return [mean_product(uses, factors, chances, course(tuple(uses), self._named()))]

    def used(self, sets: Sets) -> Fraction:
        """The chance that a row is used, exactly."""
        zero = [Fraction(0)]  # the mean of 0^(used) is the chance of not being used
        return 1 - mean_product([sets], zero, self.chances, course((sets,), self._named()))

    def taken(self, uses: Sequence[Sets]) -> tuple[str, ...]:
        """Attributes taken as always observed because the sum would be too long; the result is a bound above then."""
        return course(tuple(uses), self._named()).taken

    def _named(self) -> tuple[tuple[str, Fraction], ...]:
        return tuple(sorted(self.chances.items()))


@dataclass(frozen=True, slots=True)
class MaskTable:
    """For each class of rows, how likely each set of observed attributes is. Bits may depend on each other.

    A class is all rows that share one law; which class a row is in may depend on its answers. Shares add up to 1.
    """

    classes: Sequence[Mapping[frozenset[str], Fraction]] = field(hash=False)

    def __post_init__(self) -> None:
        if not self.classes:
            raise PlanError("give at least one class of rows.", field="observed")
        for shares in self.classes:
            if not all(isinstance(share, Fraction) for share in shares.values()):
                raise PlanError("pass shares as exact Fractions.", field="observed")
            if any(share < 0 for share in shares.values()) or sum(shares.values()) != 1:
                raise PlanError("the shares of a class are not negative and add up to 1.", field="observed")
        kept = tuple(MappingProxyType(dict(each)) for each in self.classes)
        object.__setattr__(self, "classes", kept)

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(sorted({name for shares in self.classes for mask in shares for name in mask}))

    def mean(self, uses: Sequence[Sets], factors: Sequence[arb]) -> list[arb]:
        """The same mean for each class of rows."""
        return [
            sum((ball(share) * _product(mask, uses, factors) for mask, share in shares.items()), arb(0))
            for shares in self.classes
        ]

    def used(self, sets: Sets) -> Fraction:
        """The chance that a row is used, in the class where it is largest."""
        return max(
            sum((share for mask, share in shares.items() if _is_used(mask, sets)), Fraction(0))
            for shares in self.classes
        )

    def deltas(self, uses: Sequence[Sets], deltas: Sequence[Fraction], factors: Sequence[arb]) -> list[arb]:
        """Both directions for each class: the mean of delta, and its mean weighted by the factors, which are e^-epsilon."""
        found = []
        for shares in self.classes:
            ways = [
                (ball(share), _product(mask, uses, factors), _total(mask, uses, deltas))
                for mask, share in shares.items()
            ]
            found.append(sum((share * delta for share, _, delta in ways), arb(0)))
            weight = sum((share * factor for share, factor, _ in ways), arb(0))
            found.append(sum((share * factor * delta for share, factor, delta in ways), arb(0)) / weight)
        return found

    def taken(self, uses: Sequence[Sets]) -> tuple[str, ...]:
        """None: every mask is gone through."""
        return ()


Law = IndependentMask | MaskTable


def check_known(uses: Iterable[Sets], law: Law) -> None:
    """Every attribute that a mechanism needs has a chance of being observed."""
    known = law.attributes
    for name in sorted({name for sets in uses for one in sets for name in one}):
        if name not in known:
            raise PlanError(
                f"nothing says how often {name[:40]!r} is observed{nearest(name, known)}", field="observed"
            )


def _check_chance(name: str, chance: object) -> None:
    if not isinstance(chance, Fraction):
        raise PlanError(
            f"of {name[:40]!r} it is no exact Fraction; a number counted in the table is confidential and no bound.",
            field="observed",
        )
    if not 0 < chance <= 1:
        raise PlanError(
            f"of {name[:40]!r} it is {chance}, but must lie above 0 and at most at 1.", field="observed"
        )


def _is_used(mask: frozenset[str], sets: Sets) -> bool:
    return any(one <= mask for one in sets)


def _product(mask: frozenset[str], uses: Sequence[Sets], factors: Sequence[arb]) -> arb:
    found = arb(1)
    for sets, factor in zip(uses, factors, strict=True):
        if _is_used(mask, sets):
            found = found * factor
    return found


def _total(mask: frozenset[str], uses: Sequence[Sets], deltas: Sequence[Fraction]) -> arb:
    return ball(sum((d for u, d in zip(uses, deltas, strict=True) if _is_used(mask, u)), Fraction(0)))
