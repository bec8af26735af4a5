"""What a synthetic table should get right: pairs of columns, and what may be measured for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from reticent.engine.coded import MOST_CELLS as MOST_HELD
from reticent.errors import PlanError
from reticent.synth.base import Places
from reticent.synth.domain import Domain

MOST_CELLS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A set of columns that may be measured; `weight` says how much of the workload it touches."""

    places: Places
    weight: int


def pairs(domain: Domain, most: int = MOST_CELLS) -> tuple[Places, ...]:
    """All pairs of columns whose table has at most `most` cells."""
    every = combinations(range(len(domain.axes)), 2)
    return tuple(pair for pair in every if domain.cells(pair) <= most)


def check_held(domain: Domain, sets: Sequence[Places]) -> None:
    """Refuse from public numbers tables that the engine will not count at once."""
    cells = sum(domain.cells(each) for each in sets)
    if cells > MOST_HELD:
        raise PlanError(
            f"makes pairs of {cells:,} cells, and at most {MOST_HELD:,} are counted at once; use fewer columns or bins",
            field="columns",
        )


def candidates(workload: Sequence[Places], columns: int) -> tuple[Candidate, ...]:
    """The workload's sets and all single columns, each with the sum of its overlaps with the workload."""
    sets = dict.fromkeys([*((place,) for place in range(columns)), *workload])
    return tuple(
        Candidate(places=each, weight=max(1, sum(len({*each} & {*other}) for other in workload)))
        for each in sets
    )
