"""Nothing escapes the noise: every kind of ask, replayed on seventy neighbours both ways."""

import json
from collections.abc import Sequence
from functools import lru_cache
from math import isnan

import pytest

from reticent.engine.wants import Tallies
from reticent.noise.source import Noise
from reticent.refine import pivot
from reticent.release.statistics import evaluate
from tests.attacks.people import ORDINARY, STRANGE, Person
from tests.attacks.replay import Release, replay
from tests.tables import ADD, REPLACE, Row, arrow, book, every_plan, tally, visible

OWNERS = 12
"""Respondents who own the ordinary rows when a respondent may own several."""


@pytest.fixture(autouse=True)
def remembered(monkeypatch) -> None:
    """Half-widths are functions of public numbers: each is computed once."""
    monkeypatch.setattr(pivot, "ratio_half_width", lru_cache(100_000)(pivot.ratio_half_width))


def ours(change: str, *, unit: str = "row", at_most: int = 1, in_rho: bool = False) -> Release:
    """Our whole way from rows to what is visible; rows met before are not tallied again."""
    plan = every_plan(book(unit=unit, at_most=at_most), change=change, in_rho=in_rho)
    known: dict[str, Tallies] = {}

    def release(rows: Sequence[Row], noise: Noise) -> bytes:
        if repr(rows) not in known:
            known[repr(rows)] = tally(plan, arrow(rows, plan.schema))
        return visible(plan, evaluate(plan, known[repr(rows)], noise))

    return release


def one_more_or_less(rows: Sequence[Person]) -> list[list[Person]]:
    """35 respondents added, 35 removed."""
    more = [[*rows, strange] for strange in STRANGE]
    return more + [[*rows[:i], *rows[i + 1 :]] for i in range(len(rows))]


def one_exchanged(rows: Sequence[Person]) -> list[list[Person]]:
    """70 respondents who answer otherwise."""
    others = [*STRANGE, *STRANGE[::-1]]
    return [[*rows[: i % 35], other, *rows[i % 35 + 1 :]] for i, other in enumerate(others)]


def owned(rows: Sequence[Person]) -> list[Person]:
    return [{**row, "who": f"p{i % OWNERS}"} for i, row in enumerate(rows)]


def one_owner_more_or_less(rows: Sequence[Person]) -> list[list[Person]]:
    """58 respondents with one to five rows each added, 12 removed with all of theirs."""
    strange = [*STRANGE, *STRANGE[::3], *STRANGE[::-1][:11]][: 70 - OWNERS]
    more = []
    for i, first in enumerate(strange):
        rest = [ORDINARY[(3 * i + j) % 35] for j in range(i % 5)]
        more.append([*rows, *({**row, "who": "newcomer"} for row in (first, *rest))])
    less = [[row for row in rows if row["who"] != f"p{i}"] for i in range(OWNERS)]
    return more + less


# covers T10 T11 T12 T20 R02
@pytest.mark.parametrize(
    ("release", "rows", "neighbours"),
    [
        (ours(ADD), ORDINARY, one_more_or_less(ORDINARY)),
        (ours(REPLACE), ORDINARY, one_exchanged(ORDINARY)),
        (ours(ADD, unit="who", at_most=2), owned(ORDINARY), one_owner_more_or_less(owned(ORDINARY))),
        (ours(ADD, in_rho=True), ORDINARY, one_more_or_less(ORDINARY)),
        (ours(REPLACE, in_rho=True), ORDINARY, one_exchanged(ORDINARY)),
    ],
    ids=[
        "add or remove",
        "replace",
        "add or remove an owner of several rows",
        "add or remove, in rho",
        "replace, in rho",
    ],
)
def test_nothing_but_noisy_answers_tells_neighbours_apart(release, rows, neighbours) -> None:
    assert len(neighbours) == 70
    assert replay(release, rows, neighbours) == []


# covers T10 T12 T20
@pytest.mark.parametrize("rows", [[], ORDINARY[:1], [dict.fromkeys(ORDINARY[0])]])
def test_empty_and_silent_tables_look_like_any_other(rows) -> None:
    """Nobody, one respondent, one who said nothing: same calls and the same document."""
    release = ours(ADD)
    assert replay(release, rows, [[*rows, STRANGE[0]], [*rows, ORDINARY[1]], [*rows, STRANGE[-1]]]) == []


# --- six classic bugs, each a few lines; the same replay rejects every one of them ---------------------------------


def held(value: float | None, low: float, high: float) -> int:
    """A number on the grid of halves, missing or strange ones as zero."""
    return 0 if value is None or isnan(value) else int(2 * min(high, max(low, value)))


def total(rows: Sequence[Row]) -> int:
    return sum(held(row["pay"], -50, 150) for row in rows)


def forgotten_clip(rows: Sequence[Row], noise: Noise) -> bytes:
    return b"%d" % noise.laplace(sum(held(r["pay"], -1e9, 1e9) for r in rows), sensitivity=300, epsilon=1)


def domain_from_data(rows: Sequence[Row], noise: Noise) -> bytes:
    seen = sorted({row["sex"] for row in rows if row["sex"]})
    cells = [sum(row["sex"] == sex for row in rows) for sex in seen]
    noisy = noise.laplace_many(cells, sensitivity=1, epsilon=1)
    return json.dumps(dict(zip(seen, noisy, strict=True))).encode()


def exact_n(rows: Sequence[Row], noise: Noise) -> bytes:
    return str(noise.laplace(total(rows), sensitivity=300, epsilon=1) / max(1, len(rows))).encode()


def empty_cells_dropped(rows: Sequence[Row], noise: Noise) -> bytes:
    cells = {age: sum(row["age"] == age for row in rows) for age in range(100)}
    filled = [count for count in cells.values() if count]
    return json.dumps(noise.laplace_many(filled, sensitivity=1, epsilon=1)).encode()


def weight_uncapped(rows: Sequence[Row], noise: Noise) -> bytes:
    return b"%d" % noise.laplace(sum(held(r["w"], 0, 1e9) for r in rows), sensitivity=8, epsilon=1)


def factor_two_missing(rows: Sequence[Row], noise: Noise) -> bytes:
    """Right for one respondent more or less, wrong for one who answers otherwise."""
    return b"%d" % noise.laplace(total(rows), sensitivity=300, epsilon=1)


def maximum_as_bound(rows: Sequence[Row], noise: Noise) -> bytes:
    """A bound read off the data."""
    top = max([1, *(held(row["age"], 0, 99) for row in rows)])
    return b"%d" % noise.laplace(sum(held(row["age"], 0, 99) for row in rows), sensitivity=top, epsilon=1)


BUGS = [
    (forgotten_clip, "add"),
    (domain_from_data, "add"),
    (exact_n, "add"),
    (empty_cells_dropped, "add"),
    (weight_uncapped, "add"),
    (maximum_as_bound, "add"),
    (factor_two_missing, "replace"),
]


# covers T10 T11 T12 T20 R02
@pytest.mark.parametrize(("bug", "kind"), BUGS)
def test_replay_rejects_the_classic_bugs(bug, kind) -> None:
    neighbours = one_more_or_less(ORDINARY) if kind == "add" else one_exchanged(ORDINARY)
    assert replay(bug, ORDINARY, neighbours)


def test_replay_accepts_what_is_right() -> None:
    """The bug of the factor is one under the other change only: the replay is not a mere alarm bell."""
    assert replay(factor_two_missing, ORDINARY, one_more_or_less(ORDINARY)) == []
