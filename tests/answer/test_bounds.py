"""Every bound by brute force: all tables of up to four respondents out of ten, all of their neighbours."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from typing import Any

import pytest

from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate
from tests.doubles import Call, FrozenNoise
from tests.tables import ADD, REPLACE, book, make_plan, plain_tallies

COLUMNS = {
    "s": {"kind": "categorical", "levels": ["a", "b"]},
    "x": {"kind": "integer", "bounds": [-1, 2], "universe": "s = 'a'"},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
QUERIES: list[dict[str, Any]] = [
    {"count": "*", "where": "s = 'a'"},
    {"count": "*", "weight": "w"},
    {"total": "x"},
    {"total": "x", "weight": "w", "where": "not s = 'b'"},
    {"proportion": "x > 0"},
    {"proportion": "x > 0", "weight": "w"},
    {"mean": "x"},
    {"mean": "x", "weight": "w", "centre": "0"},
    {"variance": "x"},
    {"variance": "x", "weight": "w"},
    {"median": "x", "step": "1"},
    {"quantile": "x", "at": "0.25", "step": "1", "weight": "w"},
    {"table": ["s"]},
    {"table": ["s", "x"], "bins": {"x": [-1, 0, 2]}, "weight": "w"},
]
BAR = {11: {"interval": {"epsilon": "0.5"}}}

# Answers in codes; silence of every kind, a question not asked (x where s is b), one that may have been (s silent).
PEOPLE: list[dict[str, int | None]] = [
    {"s": s, "x": x, "w": w}
    for s, x, w in [
        (0, -1, 2),
        (0, 2, 2),
        (0, 0, 1),
        (0, None, 2),
        (0, 2, None),
        (0, -1, 0),
        (1, 2, 2),
        (1, None, 1),
        (None, 2, 2),
        (None, None, None),
    ]
]
Table = tuple[int, ...]
TRANSCRIPTS = [-50, 1, 50]
"""What the noise gives back to every question about numbers: the mean of a variance is then low, middle or high."""


def plan_for(change: str, at_most: int = 1, *, in_rho: bool = False) -> Plan:
    unit = "row" if at_most == 1 else "who"
    codebook = book(COLUMNS, unit=unit, at_most=at_most)
    return make_plan(QUERIES, codebook, change=change, asks=BAR, in_rho=in_rho)


def tables(size: int) -> Iterator[Table]:
    for n in range(size + 1):
        yield from combinations_with_replacement(range(len(PEOPLE)), n)


def calls_of(plan: Plan, output: int, size: int) -> dict[Table, list[Call]]:
    """What every table of up to `size` respondents hands to the noise along one transcript."""
    found = {}
    for table in tables(size):
        # A choice takes the first candidate; a table of cells is not looked at again.
        noise = Prescribed(output)
        evaluate(plan, plain_tallies(plan, [PEOPLE[i] for i in table]), noise)
        found[table] = noise.calls
    return found


class Prescribed(FrozenNoise):
    """One and the same output for every question."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self.output = output

    def laplace(self, answer: int, **parameters: Any) -> int:
        super().laplace(answer, **parameters)
        return self.output

    def gaussian(self, answer: int, **parameters: Any) -> int:
        super().gaussian(answer, **parameters)
        return self.output

    def select(self, scores: Any, **parameters: Any) -> int:
        super().select(scores, **parameters)
        return 0

    def choose(self, scores: Any, **parameters: Any) -> int:
        super().choose(scores, **parameters)
        return 0


def joined(*parts: Table) -> Table:
    return tuple(sorted(sum(parts, ())))


def added(size: int) -> Iterator[tuple[Table, Table]]:
    for table in tables(size - 1):
        for one in range(len(PEOPLE)):
            yield table, joined(table, (one,))


def replaced(size: int) -> Iterator[tuple[Table, Table]]:
    for table in tables(size - 1):
        for one, other in combinations(range(len(PEOPLE)), 2):
            yield joined(table, (one,)), joined(table, (other,))


def added_with_two_rows(size: int) -> Iterator[tuple[Table, Table]]:
    for table in tables(size - 2):
        for rows in tables(2):
            yield table, joined(table, rows)


def worst(calls: dict[Table, list[Call]], pairs: Iterator[tuple[Table, Table]]) -> list[tuple[int, int]]:
    """For every question of the plan: how far it was moved at most, and how far it may be."""
    first = calls[()]
    most = [0] * len(first)
    for one, other in pairs:
        for place, (a, b) in enumerate(zip(calls[one], calls[other], strict=True)):
            most[place] = max(most[place], a.distance(b))
    return [(far, call.sensitivity) for far, call in zip(most, first, strict=True)]


# covers T20 R08
@pytest.mark.parametrize("output", TRANSCRIPTS)
@pytest.mark.parametrize(
    ("change", "at_most", "pairs", "size"),
    [(ADD, 1, added, 4), (REPLACE, 1, replaced, 3), (ADD, 2, added_with_two_rows, 3)],
    ids=["add", "replace", "add two rows"],
)
def test_no_neighbour_is_further_than_the_bound_and_some_is_as_far(
    change, at_most, pairs, size, output
) -> None:
    """Sound and tight: so any smaller bound, half a bound or a forgotten factor would be found out here."""
    plan = plan_for(change, at_most)
    size -= output != 1  # the largest tables once
    for place, (far, allowed) in enumerate(worst(calls_of(plan, output, size), pairs(size))):
        assert far <= allowed, f"question {place} moves {far}, declared {allowed}"
        assert far == allowed, f"question {place} never moves more than {far} of {allowed}"


# covers T20 R08
@pytest.mark.parametrize(
    ("change", "at_most", "pairs", "size"),
    [(ADD, 1, added, 4), (REPLACE, 1, replaced, 3), (ADD, 2, added_with_two_rows, 3)],
    ids=["add", "replace", "add two rows"],
)
def test_in_rho_bounds_are_as_sound_and_tables_pay_for_their_length_alone(
    change, at_most, pairs, size
) -> None:
    """All noise is Gaussian or an exponential choice. A table that is replaced moves by the root of two, not by two: the bound
    is within 0.006 % of it, and one for adding or removing would be found out."""
    calls = calls_of(plan_for(change, at_most, in_rho=True), TRANSCRIPTS[1], size)
    assert {call.kind for call in calls[()]} == {"gaussian", "gaussian_many", "choose"}
    for place, (far, allowed) in enumerate(worst(calls, pairs(size))):
        assert far <= allowed, f"question {place} moves {far}, declared {allowed}"
        assert far >= allowed * Fraction(9999, 10000), f"question {place} never moves more than {far}"
    tables = [call.sensitivity for call in calls[()] if call.kind == "gaussian_many"]
    assert tables == [each * at_most * (Fraction(99, 70) if change == REPLACE else 1) for each in (1, 2)]


def test_a_bound_for_the_other_change_is_found_out() -> None:
    """The twin: bounds for one respondent more or less, used where one answers otherwise."""
    calls = calls_of(plan_for(ADD), TRANSCRIPTS[1], 2)
    short = [far > allowed for far, allowed in worst(calls, replaced(2))]
    assert sum(short) >= 6
