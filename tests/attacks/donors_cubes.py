"""Random neighbours by the hundred: a few respondents beside a common table, each there or not, and all pairs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random
from typing import Any

from reticent.engine.wants import Tallies
from tests.attacks.donors_surveys import by_hand, calls_of, faults, plan_of, tally
from tests.doubles import Call
from tests.tables import ADD, REPLACE, Row

Group = frozenset[int]


def some_person(dice: Random) -> Row:
    """Few places, much silence, extreme answers: cells, ties and equal records abound."""

    def one(answers: Sequence[Any], silence: float) -> Any:
        return None if dice.random() < silence else dice.choice(answers)

    return {
        "site": one([3, 5, 5, 6, 20], 0.1),
        "sex": one("ffm", 0.1),
        "job": one(["yes", "yes", "yes", "no"], 0.2),
        "pay": one([-3, 5, 5, 0], 0.6),
        "hours": one([0, 2, 4], 0.1),
        "mood": one(["low", "mid", "high"], 0.5),
        "w": one([0, 1, 3], 0.1),
    }


@dataclass(frozen=True)
class Cube:
    """A plan, a table, and newcomers of one or more records each. Every subset of them is a survey."""

    kind: str
    newcomers: int
    seed: int
    options: dict[str, Any] = field(default_factory=dict)
    how: Callable[..., Tallies] = by_hand

    def survey(self, group: Group) -> list[Row]:
        """Whose rows stand in an order of their own."""
        dice = Random(self.seed)
        there = [{**some_person(dice), "who": f"p{i // 2}"} for i in range(dice.choice([6, 10]))]
        most = self.options.get("owners", 0) + 1
        for who in range(self.newcomers):
            records = [{**some_person(dice), "who": f"n{who}"} for _ in range(dice.randint(1, most))]
            there += records[: None if self.options.get("owners") else 1] if who in group else []
        Random(f"{self.seed} {sorted(group)}").shuffle(there)
        return there

    def groups(self) -> list[Group]:
        everybody = range(self.newcomers)
        return [frozenset(g) for size in range(len(everybody) + 1) for g in combinations(everybody, size)]

    def calls(self, change: str, output: int) -> dict[Group, list[Call]]:
        plan = plan_of(self.kind, change=change, **self.options)
        return {group: calls_of(plan, self.survey(group), output, how=self.how) for group in self.groups()}

    def pairs(self, change: str) -> Iterator[tuple[Group, Group]]:
        """All pairs of surveys of which one has a newcomer more; or another newcomer in the place of one."""
        everybody = range(self.newcomers)
        apart = 1 if change == ADD else 2
        for some in combinations(everybody, apart):
            rest = [who for who in everybody if who not in some]
            for size in range(len(rest) + 1):
                for others in combinations(rest, size):
                    there = frozenset({*others, some[0]})
                    yield (frozenset(others), there) if apart == 1 else (frozenset({*others, some[1]}), there)

    def faults(self, change: str, output: int) -> tuple[int, set[str]]:
        """The number of pairs looked at, and what is wrong in any of them."""
        known, found, count = self.calls(change, output), set[str](), 0
        steps = plan_of(self.kind, change=change, **self.options).neighbours.steps
        for one, other in self.pairs(change):
            found |= set(faults(known[one], known[other], steps=steps))
            count += 1
        return count, found


CUBES = [
    Cube("nearest", 5, 1, {"asks": (1, 2, 3)}, tally),
    Cube("nearest", 5, 5, {"asks": (2, 4), "epsilon": "1", "bar": "1"}),
    Cube("mean of three", 6, 2, {"asks": (0, 2), "epsilon": "3", "bar": "1"}),
    Cube("several", 5, 3, {"asks": (0, 2), "epsilon": "8"}),
    Cube("nearest", 5, 4, {"asks": (0, 1), "owners": 2}),
]
"""The first is tallied by the engine; of the others a part is, and compared."""
PAIRS_IN_CUBES = sum(len(list(cube.pairs(change))) for cube in CUBES for change in (ADD, REPLACE))
