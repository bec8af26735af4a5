"""Sums: the same in any order, never moved further than declared, never past the accumulator."""

import math
import random
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.wants import Tallies
from reticent.errors import PlanError
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, book, every_plan, make_plan, tally

ROWS = 3000
ORDERS = 12


def numbers(plan: Plan, tallies: Tallies) -> list[Any]:
    """Every integer the engine gave, in the order of the plan."""
    found: list[Any] = []
    for want in wants_of(plan):
        found.append(tallies.tables[want].cells if want in tallies.tables else tallies.statistics[want])
    return found


def rough_table(seed: int) -> pa.Table:
    """Numbers of all sizes, so that a sum of doubles depends on its order."""
    draw = random.Random(seed)
    pay = [draw.uniform(-60, 160) * 10 ** -draw.randrange(12) for _ in range(ROWS)]
    return pa.table(
        {
            "sex": [draw.choice(["f", "m", "x", "?", None]) for _ in range(ROWS)],
            "age": pa.array([draw.choice([None, draw.randrange(-5, 120)]) for _ in range(ROWS)], pa.int64()),
            "pay": [None if draw.random() < 0.2 else value for value in pay],
            "w": [draw.uniform(0, 5) for _ in range(ROWS)],
        }
    )


# covers T03
def test_order_of_rows_and_threads_change_no_bit() -> None:
    """26 sums and tables of one table in 12 orders with 1, 2 and 4 threads: bit-equal.

    Doubles added in the same orders differ, in NumPy and in DuckDB.
    """
    table, plan = rough_table(1), every_plan()
    draw = random.Random(2)
    orders = [draw.sample(range(ROWS), ROWS) for _ in range(ORDERS)]
    shuffled = [table.take(order) for order in orders]
    first = numbers(plan, tally(plan, table))
    for place, other in enumerate(shuffled):
        assert numbers(plan, tally(plan, other, threads=(1, 2, 4)[place % 3])) == first

    pays = [np.array([x for x in other["pay"].to_pylist() if x is not None]) for other in shuffled]
    assert len({float(np.cumsum(pay)[-1]) for pay in pays}) > 1
    naive = [duckdb.execute("select sum(pay) from other").fetchone() for other in shuffled]
    assert len(set(naive)) > 1


# covers T04 R03
def test_one_respondent_more_is_seen_in_a_sum_beyond_the_doubles() -> None:
    """2^53 and one more: exact, with and without a weight. A sum of doubles, the naive twin, does not move."""
    plan = make_plan(
        [{"total": "big"}, {"total": "big", "weight": "w"}],
        book(
            {
                "big": {"kind": "integer", "bounds": [0, 2**52]},
                "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
            }
        ),
    )
    sizes = [[2**52, 2**52], [2**52, 2**52, 1]]
    tables = [pa.table({"big": pa.array(each, pa.int64()), "w": [1] * len(each)}) for each in sizes]
    assert [numbers(plan, tally(plan, table)) for table in tables] == [[sum(each)] * 2 for each in sizes]
    naive = [float(np.sum(np.array(each, dtype=float))) for each in sizes]
    assert naive[0] == naive[1]


# covers T03
def test_respondents_with_too_many_rows_are_cut_alike_in_any_order() -> None:
    """Which rows of a respondent count is a matter of what they hold, never of where they stand."""
    table = rough_table(3).append_column("who", [[str(i % 500) for i in range(ROWS)]])
    plan = every_plan(book(unit="who", at_most=2))
    draw = random.Random(4)
    first = numbers(plan, tally(plan, table))
    for threads in (1, 2, 4):
        order = draw.sample(range(ROWS), ROWS)
        assert numbers(plan, tally(plan, table.take(order), threads=threads)) == first
    place_in_file = table.to_pandas().groupby("who").head(2)
    other = table.take(draw.sample(range(ROWS), ROWS)).to_pandas().groupby("who").head(2)
    assert place_in_file["age"].sum() != other["age"].sum()


# --- T04: rounding ------------------------------------------------------------------------------------------------

TENTHS = {"x": {"kind": "decimal", "bounds": [0, 1], "grid": "0.1"}}
WIDE = {"x": {"kind": "decimal", "bounds": [str(-(2**53)), str(2**53)], "grid": "1"}}
NARROW = {"x": {"kind": "decimal", "bounds": ["1000000000000000", "1000000000000001"], "grid": "0.25"}}
YEARS = {
    "x": {"kind": "decimal", "bounds": [1900, 2030], "grid": "0.01"},
    "w": {"kind": "decimal", "bounds": [0, "12.5"], "grid": "0.001", "role": "weight"},
}
Pair = tuple[list[float], list[float], tuple[float, float]]
"""Values, their weights, and one more respondent with a weight."""


def pairs(kind: str) -> list[Pair]:
    """20 tables and one more respondent at the bounds: there a sum of doubles has no room left to round."""
    draw = random.Random(kind)
    made: list[Pair] = []
    for n in range(1, 21):
        values = {
            "tenths": [0.1, 0.3, 0.7] * (3 * n),
            "2^53, cancelling": [3.0] * (2 * n) + [-(2.0**53)],
            "a narrow range far out": [1e15 + draw.random() for _ in range(40 * n)],
            "years times weights": [draw.uniform(1890, 2040) for _ in range(10 * n)],
        }[kind]
        extra = {"tenths": 1.0, "2^53, cancelling": 2.0**53}.get(kind, 1e15 + 1)
        weights = [draw.uniform(0, 13) if kind == "years times weights" else 1.0 for _ in values]
        made.append((values, weights, (min(extra, 3000.0) if weights[0] != 1.0 else extra, 12.5)))
    return made


CODEBOOKS = {
    "tenths": TENTHS,
    "2^53, cancelling": WIDE,
    "a narrow range far out": NARROW,
    "years times weights": YEARS,
}


def our_move(columns: dict[str, Any], pair: Pair) -> tuple[int, int]:
    """How far one more respondent moves the exact total handed to the noise, and how far it may."""
    values, weights, (extra, heavy) = pair
    plan = make_plan([{"total": "x", **({"weight": "w"} if "w" in columns else {})}], book(columns))
    made = []
    for xs, ws in ((values, weights), ([*values, extra], [*weights, heavy])):
        noise = FrozenNoise()
        evaluate(plan, tally(plan, pa.table({"x": xs, "w": ws})), noise)
        made.append(noise.calls[0])
    return made[0].distance(made[1]), made[0].sensitivity


def naive_excess(columns: dict[str, Any], pair: Pair) -> Fraction:
    """Clamp, then add doubles: by how much more than the declared bound the total moves, in exact rationals."""
    low, high = (float(bound) for bound in columns["x"]["bounds"])
    values, weights, (extra, heavy) = pair
    if "w" not in columns:
        weights, heavy = [1.0] * len(values), 1.0

    def total(xs: list[float], ws: list[float]) -> Fraction:
        added = np.cumsum(np.clip(xs, low, high) * np.clip(ws, 0, 12.5))
        return Fraction(float(added[-1]))

    moved = abs(total([extra, *values], [heavy, *weights]) - total(values, weights))
    return moved - Fraction(max(abs(low), abs(high))) * Fraction(heavy)


# covers T04
@pytest.mark.parametrize("kind", CODEBOOKS)
def test_a_sum_moves_no_further_than_declared(kind) -> None:
    """20 pairs of each kind, in whole grid steps through the engine; doubles move further on some of them."""
    for pair in pairs(kind):
        far, allowed = our_move(CODEBOOKS[kind], pair)
        assert far <= allowed
    assert max(naive_excess(CODEBOOKS[kind], pair) for pair in pairs(kind)) > 0


# covers T04
def test_a_double_below_the_bound_stays_at_or_below_it() -> None:
    """Grid 0.7 and 2^53 - 1 steps either side: the product of doubles would end two steps above the bound."""
    edge = Fraction(7, 10) * (2**53 - 1)
    text = f"{edge.numerator // 10}.{edge.numerator % 10}"
    plan = make_plan(
        [{"total": "x"}],
        book({"x": {"kind": "decimal", "bounds": ["-" + text, text], "grid": "0.7"}}),
    )
    raw = float(edge)
    for _ in range(4):
        raw = math.nextafter(raw, -math.inf)
        noise = FrozenNoise()
        evaluate(plan, tally(plan, pa.table({"x": [raw]})), noise)
        assert abs(noise.calls[0].answers[0]) <= noise.calls[0].sensitivity
    naive = math.floor((raw + float(edge)) * float(Fraction(10, 7)) + 0.5) - (2**53 - 1)
    worst = math.floor((math.nextafter(float(edge), 0) + float(edge)) * float(Fraction(10, 7)) + 0.5)
    assert max(naive, worst - (2**53 - 1)) > 2**53 - 1


# --- T05: overflow ------------------------------------------------------------------------------------------------


def products(steps: int, weight: int) -> Plan:
    return make_plan(
        [{"variance": "x", "weight": "w"}],
        book(
            {
                "x": {"kind": "integer", "bounds": [0, steps]},
                "w": {"kind": "integer", "bounds": [0, weight], "role": "weight"},
            }
        ),
    )


def full(plan: Plan, rows: int) -> pa.Table:
    """Every respondent at the upper bounds."""
    return pa.table(
        {name: pa.array([column.high] * rows, pa.int64()) for name, column in plan.schema.coded.items()}
    )


# covers T05
@pytest.mark.parametrize("rows", [1, 2, 1000])
def test_a_plan_that_could_overflow_is_refused_before_any_row(rows) -> None:
    """2^86 for one respondent times 2^40 respondents is 2^126: refused; one step less is exact."""
    with pytest.raises(PlanError, match="overflow"):
        wants_of(products(2**42, 2**2))
    plan = products(2**42 - 1, 2**2)
    found = tally(plan, full(plan, rows)).statistics.sums
    top, weight = 2**42 - 1, 4
    assert [found[want] for want in wants_of(plan)] == [rows * weight * top**power for power in (0, 1, 2)]
    naive = np.full(rows, top, dtype=np.int64)
    with np.errstate(over="ignore"):
        assert int((weight * naive * naive).sum()) != rows * weight * top**2


# covers T05
@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_answers_at_the_limit_reach_the_noise(change) -> None:
    """Whatever the plan allows, the noise accepts: no value decides whether a release fails."""
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "w": {"kind": "integer", "bounds": [0, 2**53], "role": "weight"},
        "x": {"kind": "integer", "bounds": [-(2**53), 2**53]},
    }
    queries = [
        {"count": "*", "weight": "w"},
        {"total": "x"},
        {"mean": "x"},
        {"proportion": "sex = 'f'", "weight": "w"},
        {"median": "x", "step": str(2**50), "weight": "w"},
        {"table": ["sex"], "weight": "w"},
    ]
    for query in queries:
        try:
            plan = make_plan([query], book(columns), change=change)
            wants_of(plan)
        except PlanError:
            continue  # refused from public numbers, for every table alike
        table = pa.table({"sex": ["f"] * 5000, "w": pa.array([2**53] * 5000), "x": pa.array([2**53] * 5000)})
        evaluate(plan, tally(plan, table), SystemNoise())
        evaluate(plan, tally(plan, table), ZeroNoise())
