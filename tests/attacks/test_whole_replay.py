"""Nothing escapes the noise of a whole release: pieces, class models, draws, copies, cells and synthetic rows, replayed.

Each plan runs through the engine from rows to files, on neighbours who come, go or answer otherwise, along one transcript.
With RETICENT_NIGHTLY=1 there are ten times as many neighbours.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pytest

from reticent.answer import context
from reticent.answer.context import Context
from reticent.answer.parts import measure
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sql.sampling import Lot
from reticent.plan.plan import Plan
from reticent.privacy.ledger.history import CHANCE
from reticent.release import models as class_fit
from reticent.release import models as model_fit
from reticent.release import regression as regressions
from reticent.release import synth as synth_run
from reticent.release.run import run_plan
from reticent.sensitivity.bounds import Global
from reticent.smallcells import smooth
from reticent.smallcells.ladder import rungs
from tests.attacks.whole import KEY, Way, apart, faults, ours, run, visible
from tests.models.doubles import ZeroModelNoise
from tests.noise.seeded import IS_NIGHTLY
from tests.tables import ADD, REPLACE, Row, book, cell_tables, make_plan

PEOPLE, SOME = 14, 30 if IS_NIGHTLY else 3
COLUMNS: dict[str, Any] = {
    "region": {"kind": "categorical", "levels": ["north", "south", "west"]},
    "tract": {"kind": "integer", "bounds": [1, 4]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "age": {"kind": "integer", "bounds": [10, 99]},
    "job": {"kind": "categorical", "levels": ["none", "part", "full"], "universe": "age >= 15"},
    "pay": {"kind": "decimal", "bounds": [20, 180], "grid": "0.5"},
    "w": {"kind": "integer", "bounds": [0, 4], "role": "weight"},
}
JOB = {"method": "classes", "column": "job", "from": ["age", "sex"], "epsilon": "1"}
PAY = {"method": "regression", "column": "pay", "from": ["job", "age"], "epsilon": "1", "fill": "drawn"}
COPIES = {
    "method": "regression",
    "column": "pay",
    "from": ["age"],
    "epsilon": "2",
    "fill": "drawn",
    "copies": 2,
}
ASKS: list[dict[str, Any]] = [
    {"count": "*", "where": "job = 'full'"},
    {"total": "pay"},
    {"mean": "age", "weight": "w"},
    {"table": ["sex", "job"]},
    {"median": "age", "step": "10"},
    {"count": "*", "where": "pay is missing"},
]
FILLED: list[dict[str, Any]] = [{"table": ["job"]}, {"proportion": "job = 'full'"}, {"mean": "pay"}]
COPIED: list[dict[str, Any]] = [{"mean": "pay"}, {"total": "pay"}, {"count": "*", "where": "pay < 60"}]
BARS = {place: {"interval": {"epsilon": "1"}} for place in range(3)}
SMOOTH = {
    "name": "smooth", "cell": "tract", "y": "pay", "estimate": {"mean": True}, "method": "smooth",
    "epsilon": "4", "count_epsilon": "1", "noise_epsilon": "1",
}  # fmt: skip
POOLED = {**SMOOTH, "name": "pooled", "method": "pooled", "delta": "0.000001", "least": 3}
ALLOWED = {"epsilon": "1000", "accept_large": True, "delta": "0.00001"}
TABLE = {"rows": 8, "bins": 3, "epsilon": "1", "columns": ["sex", "age", "job"]}
SYNTH = [{**TABLE, "name": name, "method": name} for name in ("independent", "mst")]
PIECE = {"name": "lots", "piece": 1, "pieces": 2}
LINES: list[dict[str, Any]] = [
    {"name": "all", "y": "pay", "x": ["age", "region"], "epsilon": "1"},
    {"name": "some", "y": "pay", "x": ["age", "job"], "where": "sex = 'f'", "epsilon": "2"},
    {"name": "ridge", "y": "pay", "x": ["age"], "epsilon": "1", "estimator": "adassp"},
    {"name": "output", "y": "pay", "x": ["age"], "epsilon": "1", "estimator": "output"},
]


def asked(queries: Sequence[dict[str, Any]], change: str, **sections: Any) -> Plan:
    return make_plan(queries, sections.pop("codebook", None) or book(COLUMNS), change=change, **sections)


def by_rank(change: str) -> Plan:
    """Fixed sizes: the size of the survey is public, and a respondent who answers otherwise keeps lot and rank."""
    return asked(ASKS, change, codebook=book(COLUMNS, unit="who", sample_size=PEOPLE), partition=PIECE)


def together(change: str) -> Plan:
    """Everything in one piece of the survey."""
    return asked(
        [*ASKS[:1], *FILLED],
        change,
        repair=[JOB, PAY],
        partition={**PIECE, "draw": CHANCE},
        cells=[{**POOLED, "y": "age"}],
        synth=SYNTH[:1],
        protect={"change": change, **ALLOWED},
    )


by_chance = partial(asked, ASKS, partition={**PIECE, "draw": CHANCE})
by_values = partial(asked, ASKS, partition={"name": "regions", "by": "region", "piece": "north"})
classes = partial(asked, FILLED, repair=[JOB, PAY])
copies = partial(asked, COPIED, repair=[COPIES], asks=BARS)
cells = partial(asked, [], cells=[SMOOTH])
synth = partial(asked, [], synth=SYNTH, repair=[JOB])
lines = partial(asked, [], regression=LINES)

PLANS: dict[str, tuple[Callable[[str], Plan], str]] = {
    "piece by chance": (by_chance, ADD),
    "piece by rank": (by_rank, REPLACE),
    "piece by values": (by_values, ADD),
    "piece by values, replaced": (by_values, REPLACE),
    "class models and draws": (classes, ADD),
    "class models and draws, replaced": (classes, REPLACE),
    "copies": (copies, ADD),
    "copies, replaced": (copies, REPLACE),
    "small cells": (cells, ADD),
    "regressions": (lines, ADD),
    "regressions, replaced": (lines, REPLACE),
    "synthetic rows": (synth, ADD),
    "synthetic rows, replaced": (synth, REPLACE),
    "all in one piece": (together, ADD),
}


# --- people ----------------------------------------------------------------------------------------------------------


def somebody(dice: Random, who: int) -> Row:
    """An ordinary respondent, silent here and there."""
    row: dict[str, Any] = {
        "region": dice.choice(["north", "south", "west"]),
        "tract": dice.choice([1, 2, 3]),
        "sex": dice.choice(["f", "m"]),
        "age": dice.randrange(10, 100),
        "job": dice.choice(["none", "part", "full"]),
        "pay": dice.randrange(40, 361) / 2,
        "w": dice.randrange(5),
    }
    return {**{key: value if dice.random() < 0.75 else None for key, value in row.items()}, "who": f"p{who}"}


def stranger(dice: Random, who: int) -> Row:
    """One at the corners of every column, or beyond them."""
    row: dict[str, Any] = {
        "region": dice.choice(["north", "north", "new region", ""]),
        "tract": dice.choice([1, 3, 4711, None]),
        "sex": dice.choice(["f", "F ", None]),
        "age": dice.choice([10, 14, 15, 99, 1e300, float("nan")]),
        "job": dice.choice(["full", "none", "'; --"]),
        "pay": dice.choice([20, 180, float("inf"), -1e308, None, None]),
        "w": dice.choice([4, 1e9, -3]),
    }
    return {**row, "who": f"p{who}"}


RICH: Row = {
    "region": "north",
    "tract": 1,
    "sex": "f",
    "age": 50,
    "job": "full",
    "pay": 180,
    "w": 4,
    "who": "p13",
}
DICE = Random(15)
ORDINARY = [*(somebody(DICE, who) for who in range(PEOPLE - 1)), RICH]


def neighbours(change: str, number: int = SOME) -> list[list[Row]]:
    """First one who moves to another piece and cell, or comes to a cell where nobody is; then strangers in the place of others,
    or strangers who come anywhere and ordinary people who go."""
    dice = Random(16)
    newcomer: Row = {**RICH, "tract": 4, "who": f"p{PEOPLE}"}
    moved: Row = {**RICH, "region": "south", "tract": 2}
    made = [[*ORDINARY[:-1], moved]] if change == REPLACE else [[*ORDINARY[:3], newcomer, *ORDINARY[3:]]]
    for place in range(number - len(made)):
        who = dice.randrange(PEOPLE)
        if change == REPLACE:
            made.append([*ORDINARY[:who], stranger(dice, who), *ORDINARY[who + 1 :]])
        elif place % 3 == 2:
            made.append([*ORDINARY[:who], *ORDINARY[who + 1 :]])
        else:
            made.append([*ORDINARY[:who], stranger(dice, PEOPLE), *ORDINARY[who:]])
    return made


# covers T06 T08 T10 T12 T13 T20 T27 R02
@pytest.mark.parametrize("name", PLANS)
def test_nothing_but_noisy_answers_tells_neighbours_apart(name: str) -> None:
    """From rows to files, strangers in the middle of the file: same calls, same parameters, moves within the bounds, same bytes."""
    made, change = PLANS[name]
    assert list(faults(made(change), ORDINARY, neighbours(change), back=None if IS_NIGHTLY else 1)) == []


# covers T09 T20
def test_a_replaced_answer_in_small_cells_is_two_steps_and_each_is_paid_for() -> None:
    """Out of one cell, then into another: each step within its noise, which has half of every epsilon. As one step, the naive
    reading of the same calls, it moves two cells."""
    plan, moved = cells(REPLACE), []
    here = run(plan, ORDINARY)
    for other in neighbours(REPLACE):
        there, between = run(plan, other), run(plan, [row for row in ORDINARY if row in other])
        assert apart(here, between) == [] == apart(between, there)
        moved += apart(here, there)
    paid = {public[1] for kind, public, _ in here.doors.noted if kind == "estimates"}
    assert paid == {Fraction(4, 2)} and any("moved 2 cells" in each for each in moved)


@pytest.mark.parametrize(
    "rows", [[], [dict.fromkeys([*COLUMNS, "who"])]], ids=["nobody", "one who says nothing"]
)
def test_hardly_anybody_looks_like_everybody(rows: list[Row]) -> None:
    """Everything at once, of nobody and of one who was silent, against one who was not."""
    assert list(faults(together(ADD), rows, [[*rows, ORDINARY[0]]])) == []


def test_the_transcript_is_that_of_the_whole_release() -> None:
    """The replay sees every kind of noise that such a release meets, so that nothing goes round it."""
    seen = run(together(ADD), ORDINARY)
    assert {call.kind for call in seen.calls} == {"laplace", "laplace_many"}
    assert {kind for kind, _, _ in seen.doors.noted} == {"counts", "chi", "pooled estimates"}
    kinds = {call.kind for call in run(copies(ADD), ORDINARY).calls} | {
        c.kind for c in run(synth(ADD), ORDINARY).calls
    }
    assert {"laplace", "laplace_many", "select"} <= kinds


# --- the classic bug of each product; the same replay rejects every one ----------------------------------------------------


def ranks_where_sizes_are_hidden(plan: Plan, engine: DuckDBEngine, lot: Lot | None) -> bytes:
    """A piece is the first seven by lot, however many there are: who comes pushes another out."""
    return ours(plan, engine, Lot(key=KEY, first=0, last=7))


def share_as_it_came_out(plan: Plan, engine: DuckDBEngine, lot: Lot | None) -> bytes:
    """Scaled up by how many are in the piece, not by how many there should be."""
    from reticent.release.statistics import wants_of

    want = [want for want in wants_of(plan) if hasattr(want, "power")][:1]
    here, all_ = (engine.tally(plan.schema, want, lot=each).statistics[want[0]] for each in (lot, None))
    return ours(plan, engine, lot) + str(all_ / max(1, here)).encode()


def range_as_bound(patch: pytest.MonkeyPatch) -> None:
    """A replaced answer moves a total by b - a: not one who leaves the piece."""
    patch.setattr(
        context, "bound_sum", lambda low, high, *, neighbours: Global(bound=Fraction(max(1, high - low)))
    )


def exact_class_table(patch: pytest.MonkeyPatch) -> None:
    """Chances of a table without noise, for whatever it says it costs."""
    honest = class_fit.fit_table
    patch.setattr(
        class_fit,
        "fit_table",
        lambda design, cells, *, noise, **more: honest(design, cells, noise=ZeroModelNoise(), **more),
    )


def exact_line(patch: pytest.MonkeyPatch) -> None:
    """Gaps drawn from a regression that nobody paid for."""
    honest = model_fit._fit
    patch.setattr(
        model_fit,
        "_fit",
        lambda model, sums, neighbours, noise: honest(model, sums, neighbours, ZeroModelNoise()),
    )


def exact_regression(patch: pytest.MonkeyPatch) -> None:
    """Coefficients of the exact sums, for whatever they say they cost."""
    honest = regressions.fit_line
    patch.setattr(
        regressions,
        "fit_line",
        lambda estimator, sums, *, noise, **more: honest(estimator, sums, noise=ZeroModelNoise(), **more),
    )


def noise_for_one_copy(patch: pytest.MonkeyPatch) -> None:
    """The sum over all copies with the bound of one."""

    def measured(self: Context, exact: int, what: str, **given: Any) -> Any:
        return measure(exact, what, noise=self.noise, **{**given, "grid": given["grid"] / self.copies})

    patch.setattr(Context, "measure", measured)


def counts_as_they_are(plan: Plan, engine: DuckDBEngine, lot: Lot | None) -> bytes:
    """A cell is withheld by its true size."""
    done = run_plan(plan, engine, lot)
    (want,) = (each.want(plan.schema) for each in cell_tables(plan))
    held = engine.tally(plan.schema, [want], lot=lot).points[want]
    few = [int(size) < 4 for size in held.starts[1:]]
    return visible(plan, done) + str(few).encode()


def most_that_was_seen(patch: pytest.MonkeyPatch) -> None:
    """Noise scaled to the largest sensitivity seen in any cell: one respondent changes the noise of all others."""

    def seen(points: Any, aim: Any, *, beta: Fraction) -> Any:
        sizes = np.diff(points.starts) + 1
        first = [rungs(points, aim, cell=cell, count=1)[0] for cell in range(points.cells)]
        return np.max(sizes * first) / sizes

    patch.setattr(smooth, "smooth_bounds", seen)


def rows_counted(patch: pytest.MonkeyPatch) -> None:
    """The size of the survey as the fit saw it, beside the noisy one."""
    honest = synth_run.learn

    def learned(synth_: Any, engine: Any, lot: Any, **given: Any) -> Any:
        network = honest(synth_, engine, lot, **given)
        with engine.coded(synth_.domain.schema, [axis.key for axis in synth_.domain.axes]) as held:
            return replace(network, total=float(held.count([()])[0]))

    patch.setattr(synth_run, "learn", learned)


WAYS: list[tuple[str, Way]] = [
    ("piece by chance", ranks_where_sizes_are_hidden),
    ("piece by chance", share_as_it_came_out),
    ("small cells", counts_as_they_are),
]
PATCHES: list[tuple[str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("piece by values, replaced", range_as_bound),
    ("class models and draws", exact_class_table),
    ("class models and draws", exact_line),
    ("regressions", exact_regression),
    ("copies", noise_for_one_copy),
    ("small cells", most_that_was_seen),
    ("synthetic rows", rows_counted),
]


# covers T08 T12 T20 T27
@pytest.mark.parametrize(("name", "bug"), WAYS)
def test_the_replay_rejects_naive_ways(name: str, bug: Way) -> None:
    made, change = PLANS[name]
    assert any(faults(made(change), ORDINARY, neighbours(change, 6), bug))


# covers T08 T12 T20 T27
@pytest.mark.parametrize(("name", "bug"), PATCHES)
def test_the_replay_rejects_naive_parts(
    name: str, bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: Any
) -> None:
    made, change = PLANS[name]
    bug(monkeypatch)
    assert any(faults(made(change), ORDINARY, neighbours(change, 6)))
