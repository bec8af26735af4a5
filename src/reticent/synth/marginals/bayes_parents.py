"""Which parents a column may have: all largest sets whose table is worth its noise. Public throughout."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from reticent.synth.base import Places
from reticent.synth.domain import Domain
from reticent.synth.marginals.bayes_levels import Ladder

MOST_PARENTS = 6
MOST_CELLS = 1 << 17
"""Of one table over all cells, as it is counted before its columns are made coarser."""
MOST_CANDIDATES = 2_000

Parents = tuple[tuple[int, int], ...]
"""Columns, each with its level, in order of place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentChoice:
    """A column and the parents it may be drawn from."""

    place: int
    parents: Parents

    @property
    def given(self) -> Places:
        return tuple(place for place, _ in self.parents)

    @property
    def places(self) -> Places:
        """The columns to count, in order."""
        return tuple(sorted((*self.given, self.place)))


def candidates(
    domain: Domain, ladders: Sequence[Ladder], drawn: Places, most: float, *, parents: int = MOST_PARENTS
) -> list[ParentChoice]:
    """For every column not yet drawn its largest parent sets with at most `most` cells, the column's own included.

    Where that makes too many, fewer parents are allowed: the rule looks at sizes alone.
    """
    made = [
        one for place in _rest(domain, drawn) for one in _of(domain, ladders, drawn, place, most, parents)
    ]
    if len(made) > MOST_CANDIDATES and parents > 1:
        return candidates(domain, ladders, drawn, most, parents=parents - 1)
    return made


def _rest(domain: Domain, drawn: Places) -> list[int]:
    return [place for place in range(len(domain.axes)) if place not in drawn]


def _of(
    domain: Domain, ladders: Sequence[Ladder], drawn: Places, place: int, most: float, parents: int
) -> list[ParentChoice]:
    cells = int(most // ladders[place][0].size)
    full = MOST_CELLS // domain.axes[place].size
    sets = largest_sets(domain, ladders, tuple(sorted(drawn)), cells, full, parents)
    return [ParentChoice(place=place, parents=each) for each in sets or [()]]


def largest_sets(
    domain: Domain, ladders: Sequence[Ladder], places: Places, cells: int, full: int, parents: int
) -> list[Parents]:
    """All sets of columns at levels that fit, and to which nothing can be added and none made finer.

    `cells` bounds the product of the levels' sizes, `full` that of all cells, `parents` how many there are. As Zhang and
    others 2017 enumerate them: a set without the first column is largest if no level of that column fits beside it.
    """

    @cache
    def largest(first: int, cells: int, full: int, parents: int) -> tuple[Parents, ...]:
        if cells < 1 or full < 1 or parents < 0:
            return ()
        if first == len(places):
            return ((),)
        place, made = places[first], dict[Parents, Parents]()
        for level, seen in enumerate(ladders[place]):
            rest = largest(first + 1, cells // seen.size, full // domain.axes[place].size, parents - 1)
            for other in rest:
                made.setdefault(other, ((place, level), *other))
        for other in largest(first + 1, cells, full, parents):
            made.setdefault(other, other)
        return tuple(made.values())

    return list(largest(0, cells, full, parents))
