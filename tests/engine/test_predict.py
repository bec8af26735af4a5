"""Rows filled from lines are those one would fill by hand: each from its own answers, by whole numbers."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.errors import PlanError
from reticent.prepare.repair import FARTHEST, SCALE, Donors, Match, RegressionLine, Repair, Term
from reticent.schema.codebook import schema_from
from tests.engine.opening import open_any

pytestmark = pytest.mark.usefixtures("every_engine")

COLUMNS = {
    "age": {"kind": "integer", "bounds": [18, 99]},
    "job": {"kind": "categorical", "levels": ["none", "part", "full"]},
    "hours": {"kind": "integer", "bounds": [-20, 80], "universe": "job != 'none'"},
    "pay": {"kind": "integer", "bounds": [-50, 200]},
}
SCHEMA = schema_from({"survey": {"name": "tiny", "unit": "row", "at_most": 1}, "columns": COLUMNS})
People = list[dict[str, Any]]
ONE = 1 << SCALE


def some_people(n: int, seed: int) -> People:
    draw = Random(seed)
    return [
        {
            "age": draw.choice([None, draw.randint(18, 99)]),
            "job": draw.choice([None, 0, 1, 2]),
            "hours": draw.choice([None, draw.randint(-20, 80)]),
            "pay": draw.choice([None, draw.randint(-50, 200)]),
        }
        for _ in range(n)
    ]


def arrow(people: People) -> pa.Table:
    jobs = [None if p["job"] is None else COLUMNS["job"]["levels"][p["job"]] for p in people]
    numbers = {name: pa.array([p[name] for p in people], pa.int64()) for name in ("age", "hours", "pay")}
    return pa.table({**numbers, "job": pa.array(jobs, pa.string())})


def line(column: str, seed: int, *, size: int = 1, **more: Any) -> RegressionLine:
    """A line with coefficients of either sign, on a number with gaps and on two levels."""
    draw = Random(seed)
    known, other = SCHEMA.coded[column], "hours" if column == "pay" else "pay"
    near = SCHEMA.coded[other]

    def some() -> int:
        return draw.randint(-2 * ONE, 2 * ONE) * size

    terms = (
        Term(column=other, slope=some(), low=near.low, high=near.high, gap=(near.low + near.high) // 2),
        Term(column="job", slope=10 * some(), level=1),
        Term(column="job", slope=10 * some(), level=2),
    )
    return RegressionLine(
        column=column, low=known.low, high=known.high, base=some() * 20, terms=terms, **more
    )


def by_hand(people: People, lines: Sequence[RegressionLine], draws: Sequence[int] = ()) -> People:
    """One line after the other in plain integers; hours are not asked of those without a job."""
    filled = [dict(p) for p in people]
    for p in filled:
        if p["job"] == 0:
            p["hours"] = None
    for each in lines:
        for place, p in enumerate(filled):
            structural = each.column == "hours" and p["job"] == 0
            if p[each.column] is not None or structural:
                continue
            total = each.base
            for term in each.terms:
                code = p[term.column]
                if term.level is not None:
                    total += term.slope * (code == term.level)
                else:
                    total += term.slope * ((term.gap if code is None else code) - term.low)
            low, high = each.low << SCALE, each.high << SCALE
            total = min(max(total, low), high)
            room = min(total - low, high - total)
            total += min(max(each.spread * draws[place], -room), room) if draws else 0
            p[each.column] = total >> SCALE
    return filled


WANTS = [
    Sum(rows=Rows(answered=("pay",)), value="pay", power=1),
    Sum(rows=Rows(answered=("pay", "hours")), value="pay", power=1, other="hours"),
    Sum(rows=Rows(answered=("pay",)), value="pay", power=2),
    Sum(rows=Rows(answered=("hours",))),
]


def expected(people: People) -> list[int]:
    pay = [p["pay"] for p in people if p["pay"] is not None]
    both = [p["pay"] * p["hours"] for p in people if p["pay"] is not None and p["hours"] is not None]
    return [sum(pay), sum(both), sum(x * x for x in pay), sum(p["hours"] is not None for p in people)]


def tallied(people: People, repair: Repair, wants: Sequence[Any] = WANTS) -> Any:
    engine = open_any(open_frame(arrow(people)), threads=2)
    try:
        return engine.tally(SCHEMA, wants, repair)
    finally:
        engine.close()


def sums(people: People, repair: Repair) -> list[int]:
    found = tallied(people, repair).statistics
    return [found[want] for want in WANTS]


@pytest.mark.parametrize("size", [1, 1 << 24, 1 << 60])  # 64 bits, then 128
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_filled_rows_are_those_made_by_hand(seed: int, size: int) -> None:
    """Chained: pay from hours, then hours from the pay that was just filled. In the other order it differs."""
    people = some_people(300, seed)
    chain = line("pay", seed, size=size), line("hours", seed + 10, size=size)
    found = sums(people, Repair(lines=chain))
    assert found == expected(by_hand(people, chain))
    if size == 1:
        assert found != expected(by_hand(people, chain[::-1]))


def test_a_respondent_moves_their_own_row_and_no_other() -> None:  # covers T08
    """Take each of ten people away: the sum loses one code within bounds. A mean of the others is the naive twin."""
    silent = [{"age": 30, "job": 1, "hours": hours, "pay": None} for hours in range(40)]
    people, chain = some_people(10, 5) + silent, (line("pay", 5),)
    whole = by_hand(people, chain)
    total = sums(people, Repair(lines=chain))[0]

    def naive(some: People) -> int:
        told = [p["pay"] for p in some if p["pay"] is not None]
        return sum(told) + (len(some) - len(told)) * round(sum(told) / len(told))

    moved = []
    for place in range(10):
        left = people[:place] + people[place + 1 :]
        assert total - sums(left, Repair(lines=chain))[0] == whole[place]["pay"]
        moved.append(abs(naive(people) - naive(left)))
    assert max(moved) > 200


def test_draws_are_made_once_and_used_by_every_statement() -> None:
    """The margin, another statement, holds the same filled rows as the sums; and each call draws anew."""
    people = [{"age": 30, "job": 1, "hours": 20, "pay": None}] * 500
    rng = np.random.default_rng(6)
    drawn: list[np.ndarray] = []

    def draw(n: int) -> np.ndarray:
        drawn.append(np.floor(rng.standard_normal(n) * 2**16).astype(np.int32))
        return drawn[-1]

    each = line("pay", 7, spread=25 << 16, draw=draw)
    margin = Table(rows=Rows(answered=("pay",)), keys=(Key(column="pay"),))
    totals = []
    for _ in range(2):
        found = tallied(people, Repair(lines=(each,)), [*WANTS, margin])
        cells = found.tables[margin].cells
        assert sum(cells) == 500 == len(drawn[-1])
        total = sum((code - 50) * n for code, n in enumerate(cells))
        # Everybody is alike but for the draw, so it does not matter who got which.
        assert total == found.statistics[WANTS[0]]
        assert total == expected(by_hand(people, (each,), drawn[-1].tolist()))[0]
        totals.append(total)
    assert totals[0] != totals[1] and len(drawn) == 2


def test_the_order_of_rows_does_not_say_who_gets_which_draw() -> None:
    """The same draws for shuffled rows fill the same set of rows. The naive twin deals them out by place in the file."""
    people, dice = some_people(120, 9), Random(9)
    each = line("pay", 9, spread=25 << 16, draw=lambda n: np.arange(n, dtype=np.int32) << 10)
    first, naive = sums(people, Repair(lines=(each,))), set()
    for _ in range(4):
        dice.shuffle(people)
        assert sums(people, Repair(lines=(each,))) == first
        naive.add(expected(by_hand(people, (each,), [n << 10 for n in range(120)]))[0])
    assert len(naive) == 4


def test_draws_keep_the_mean_of_the_line_near_a_bound() -> None:
    """4,000 rows 20 above the lower bound, draws of spread 25 held alike on both sides: within six standard errors of
    0.3. Clamped draws, the naive twin, lie 2 higher."""
    people = [{"age": 30, "job": 1, "hours": 20, "pay": None}] * 4_000
    rng = np.random.default_rng(8)
    near = RegressionLine(
        column="pay",
        low=-50,
        high=200,
        base=(-60 << SCALE) + (1 << SCALE - 1),
        terms=(Term(column="hours", slope=3 << (SCALE - 1), low=-20, high=80, gap=0),),
        spread=25 << 16,
        draw=lambda n: np.floor(rng.standard_normal(n) * 2**16).astype(np.int32),
    )
    assert near.base + near.terms[0].slope * 40 == 1 << SCALE - 1
    lifted = replace(near, base=near.base - (30 << SCALE))
    mean = sums(people, Repair(lines=(lifted,)))[0] / 4_000
    clamped = np.clip(-30 + rng.normal(0, 25, 4_000), -50, 200).mean()
    assert abs(mean + 30) < 6 * 0.3 < clamped + 30


def test_a_draw_that_is_too_far_out_is_held() -> None:
    far = line("pay", 7, spread=1 << 16, draw=lambda n: np.full(n, 2**31 - 1, np.int32))
    people = [{"age": 30, "job": 1, "hours": 20, "pay": None}] * 3
    assert sums(people, Repair(lines=(far,))) == expected(by_hand(people, (far,), [FARTHEST] * 3))


def test_lines_are_checked_against_the_codebook_before_any_row() -> None:
    """By every door: the line itself, the repair, the engine."""
    good = line("pay", 1)
    with pytest.raises(PlanError, match="itself"):
        line("pay", 1).__class__(column="pay", low=0, high=1, base=0, terms=(Term(column="pay", slope=1),))
    with pytest.raises(PlanError, match="overflow"):
        RegressionLine(column="pay", low=0, high=1, base=1 << 120, terms=())
    with pytest.raises(PlanError, match="do not go together"):
        Repair(lines=(good,), donors=(Donors(column="hours", near=(Match(column="job"),), defaults=(0,)),))
    for bad in (
        RegressionLine(column="pay", low=-51, high=0, base=0, terms=()),
        RegressionLine(column="pay", low=0, high=1, base=0, terms=(Term(column="age", slope=1, low=17, high=99),)),
        RegressionLine(column="pay", low=0, high=1, base=0, terms=(Term(column="hours", slope=1, low=-20, high=80, gap=81),)),
    ):  # fmt: skip
        with pytest.raises(PlanError):
            tallied([], Repair(lines=(bad,)))
