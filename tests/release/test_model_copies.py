"""Several copies from one private line, in a plan: what it costs, whom it protects, and intervals that hold the truth."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.answer.context import CompletedSums
from reticent.answer.copies import CopiesRoute
from reticent.answer.parts import COPIES_WORDS, Answer, is_as_planned
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.lab.noise import NoModelNoise, QuickModelNoise, SeededBits
from reticent.plan.plan import Plan
from reticent.plan.statistics import claim_of_parts
from reticent.privacy.ledger import Ledger
from reticent.release.copies import tally_copies
from reticent.release.curator import Curator
from reticent.release.models import Modelled, fit_models
from reticent.release.sampling import FIXED_SIZE
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.models.doubles import FrozenModelNoise
from tests.models.draws import follow_rows
from tests.tables import ADD, REPLACE, book, make_plan, steps

COLUMNS = {
    "x": {"kind": "integer", "bounds": [0, 100]},
    "g": {"kind": "categorical", "levels": ["a", "b"]},
    "y": {"kind": "integer", "bounds": [0, 400]},
    "w": {"kind": "integer", "bounds": [0, 4], "role": "weight"},
}
LINE = {"method": "regression", "column": "y", "from": ["x"], "epsilon": "2", "fill": "drawn", "copies": 3}
QUERIES = [
    {"mean": "y"},
    {"total": "y"},
    {"count": "*", "where": "y < 120"},
    {"proportion": "y < 120", "where": "x >= 40"},
    {"count": "*", "where": "g = 'a'"},
    {"median": "y", "step": "10"},
]
BARS = {place: {"interval": {"epsilon": "1"}} for place in range(4)}


def plan_of(*repair: dict[str, Any], queries: Any = QUERIES, asks: Any = BARS, **options: Any) -> Plan:
    return make_plan(queries, book(COLUMNS), repair=list(repair or (LINE,)), asks=asks, **options)


def people(n: int, rng: np.random.Generator) -> pa.Table:
    x = rng.integers(0, 101, n)
    y = np.clip(np.round(50 + 2 * x + rng.normal(0, 40, n)), 0, 400).astype(int)
    group = pa.array(["a", "b"]).take(pa.array(rng.integers(0, 2, n)))
    return pa.table(
        {"x": x, "g": group, "y": pa.array(y, mask=rng.random(n) < x / 120), "w": np.ones(n, int)}
    )


def run(plan: Plan, table: pa.Table, noise: Any, bits: Any) -> tuple[CompletedSums | None, dict[str, Answer]]:
    engine = DuckDBEngine(open_frame(table), threads=1)
    try:
        modelled: Modelled = fit_models(plan, engine, None, noise=noise, bits=bits)
        tallies = engine.tally(plan.schema, wants_of(plan), modelled.repair)
        copied = tally_copies(plan, engine, None, modelled, bits=bits)
        return copied, evaluate(plan, tallies, noise, copied=copied)
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("repair", "asks", "word"),
    [
        ([{**LINE, "fill": "predicted"}], {}, "need fill = 'drawn'"),
        ([{**LINE, "estimator": "adassp"}], {}, "'centred'"),
        ([{**LINE, "copies": 0}], {}, "copies"),
        ([{**LINE, "copies": 101}], {}, "copies"),
        ([LINE, {**LINE, "column": "x", "from": ["g"], "copies": 2}], {}, "differs between lines"),
        ([{**LINE, "copies": 1}], BARS, "is not needed"),
        ([LINE], {4: {"interval": {"epsilon": "1"}}}, "is not needed"),
    ],
)
def test_copies_that_cannot_be_are_refused_before_any_row(repair: Any, asks: Any, word: str) -> None:
    with pytest.raises(PlanError, match=word):
        plan_of(*repair, asks=asks)


def test_a_mean_among_those_whom_the_filling_decides_has_an_interval_too() -> None:
    """Alone in its plan: its steps are drawn, and none are straight."""
    plan = plan_of(queries=[{"mean": "y", "where": "y < 300"}], asks={0: BARS[0]})
    rng = np.random.default_rng(7)
    copied, answers = run(plan, people(100, rng), QuickModelNoise(rng), SeededBits(rng))
    assert copied is not None and (len(copied.apart), len(copied.straight)) == (2, 0)
    low, high = answers["ask 0"].estimates[0].interval(Fraction(9, 10))
    assert low < answers["ask 0"].estimates[0].value < high


def test_a_base_weight_has_no_interval_over_copies() -> None:
    weighted = [{"mean": "y", "weight": "w"}]
    with pytest.raises(PlanError, match="base weight"):
        plan_of(queries=weighted, asks={0: BARS[0]})
    assert isinstance(plan_of(queries=weighted, asks={}).routes[0], CopiesRoute)


def test_what_is_planned_is_what_is_run() -> None:
    """2 for the line, 1 for each of six asks and 1 for each of four bars; parts and claims agree with the plan's."""
    plan = plan_of()
    assert plan.cost == 2 + 6 + 4 == plan.claim.epsilon
    rng = np.random.default_rng(1)
    copied, answers = run(plan, people(200, rng), QuickModelNoise(rng), SeededBits(rng))
    assert copied is not None and copied.copies == 3 and len(copied.apart) == len(copied.straight) == 2
    for route, claim in zip(plan.routes, plan.claims[1:], strict=True):
        name, is_copied = route.statistic.name, isinstance(route, CopiesRoute)
        parts = answers[name].parts
        assert claim_of_parts(route, parts, plan.change) == claim
        assert is_as_planned(parts, route.parts)
        assert is_copied == (name not in ("ask 4", "ask 5"))
        assert (answers[name].total_meaning == COPIES_WORDS) == is_copied
    assert ("answer: copied", "proofs/answer/copied.md") in plan.claim.rests_on


def test_the_answer_is_the_mean_over_copies() -> None:
    """Without noise: the sums over all copies, divided once; and the truth, within six standard errors of 1.4."""
    plan, rng = plan_of(queries=QUERIES[:3], asks={}), np.random.default_rng(2)
    copied, answers = run(plan, people(3_000, rng), NoModelNoise(), SeededBits(rng))
    assert copied is not None and not copied.apart
    mean, total, low = (answer.estimates[0].value for answer in answers.values())
    wants = [want for ask in plan.asks for want in ask.query.wants(plan.schema)]
    count, first, _, below = (Fraction(copied.total[want], 3) for want in wants)
    assert (mean, total, low) == (first / count, first, below) and count == 3_000
    assert abs(float(mean) - 150) < 6 * 1.4


# The promise.


CORNERS = [(0, "a", 0), (100, "b", 400), (0, "a", 400), (100, "b", None), (0, "b", None), (None, "a", None)]


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_replay_with_frozen_noise_on_every_neighbour(change: str) -> None:  # covers T08 T20
    """Same calls, same public parameters, and nothing further apart than its noise is made for, bars included.

    The naive twin has noise for one copy's sum: the sum over copies moves further.
    """
    inside = {"mean": "y", "where": "y < 300"}
    plan = plan_of(queries=[*QUERIES[:4], inside], asks={**BARS, 4: BARS[0]}, change=change)
    table = people(25, np.random.default_rng(3))
    base = table.slice(0, 24) if change == REPLACE else table
    rows = [{"x": x, "g": g, "y": y, "w": 1} for x, g, y in CORNERS]
    others = [pa.concat_tables([base, pa.Table.from_pylist([row], schema=table.schema)]) for row in rows]
    others += [] if change == REPLACE else [table.slice(0, 24)]
    first, farther = FrozenModelNoise(), set[int]()
    for place, survey in enumerate([table, *others]):
        again = first if place == 0 else FrozenModelNoise(prescribed=first.outputs)
        with pytest.MonkeyPatch.context() as patch:
            follow_rows(patch)
            run(plan, survey, again, SeededBits(np.random.default_rng(4)))
        assert [c.parameters for c in again.calls] == [c.parameters for c in first.calls]
        for number, (mine, theirs) in enumerate(zip(first.calls, again.calls, strict=True)):
            assert mine.distance(theirs) <= mine.sensitivity
            farther |= {number} if 3 * mine.distance(theirs) > mine.sensitivity else set()
    # The line; a mean of two numbers and three for its bar; a total and three; a count and two; a share of two and two; a
    # mean among those whom the filling decides.
    assert len(first.calls) == 1 + 5 + 4 + 3 + 4 + 5
    # Steps of a mean are measured against what the lines can do to a row, not against the width of the column.
    wide, near = (first.calls[place].sensitivity for place in (-3, 3))
    assert near < wide / 2
    # The twin fails on what is summed over copies: the mean's sum, the total, the count, the share's sum.
    assert {2, 6, 10, 14} <= farther


# Intervals.


RUNS, SIZE = 36, 600


def test_intervals_of_a_plan_hold_the_truth() -> None:
    """36 releases of 600 rows: a mean's interval of 95 % holds at least 74 % of the time (two points, and five standard
    deviations of so many runs: 1e-6). Bars of the noise alone, the naive twin, hold far less often."""
    plan = plan_of({**LINE, "copies": 2}, queries=QUERIES[:1], asks={0: BARS[0]})
    alone = plan_of({**LINE, "copies": 2}, queries=QUERIES[:1], asks={})
    rng, held, naive = np.random.default_rng(5), 0, 0
    truth = float(np.mean(np.clip(50 + 2 * rng.integers(0, 101, 10**6) + rng.normal(0, 40, 10**6), 0, 400)))
    for each in range(RUNS):
        table, noise = people(SIZE, rng), QuickModelNoise(rng)
        found = run(plan, table, noise, SeededBits(rng))[1]["ask 0"].estimates[0]
        assert found.total is not None
        low, high = found.total(Fraction(95, 100))
        held += low <= truth <= high
        if each % 3 == 0:
            bare = run(alone, table, noise, SeededBits(rng))[1]["ask 0"].estimates[0]
            low, high = bare.interval(Fraction(95, 100))
            naive += 3 * (low <= truth <= high)
    least = RUNS * (0.95 - 0.02) - 5 * (RUNS * 0.95 * 0.05) ** 0.5
    assert held >= least > naive


def test_it_is_charged_and_says_what_its_interval_covers(tmp_path: Any) -> None:
    ledger = Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="40")
    survey = Survey(people(150, np.random.default_rng(6)), codebook=book(COLUMNS))
    asks = [{"name": f"q{i}", "query": q, "epsilon": "1", **BARS.get(i, {})} for i, q in enumerate(QUERIES)]
    plan = survey.plan("r-1", epsilon="12", statistics=asks, **steps([LINE]))
    Curator(ledger).release(plan, survey, tmp_path / "out")
    told = json.loads((tmp_path / "out" / "r-1.json").read_bytes())
    assert ledger.spent == plan.cost == 12
    meaning, total = ([each[of]["meaning"] for each in told["statistics"]] for of in ("interval", "total"))
    of_numbers = [
        COPIES_WORDS + FIXED_SIZE if {"count", "total"} & set(q) else COPIES_WORDS for q in QUERIES[:4]
    ]
    assert total[:4] == of_numbers and not any(COPIES_WORDS in said for said in (*meaning, *total[4:]))
    assert all(each["estimates"][0]["total_low"] is not None for each in told["statistics"][:4])
    assert "its own error is not covered" in meaning[5]
    assert "in 3 copies" in told["imputation"][0]
    assert [part["what"] for part in told["statistics"][0]["parts"]][-3:] == [
        "steps of the lines",
        "rows with missing values",
        "squares",
    ]
    # Nobody at all, or nobody who answered: a release all the same.
    silent = pa.table({"x": [1, 2], "g": ["a", "b"], "y": pa.array([None, None], pa.int64()), "w": [1, 1]})
    for name, rows in (("r-2", silent.slice(0, 0)), ("r-3", silent)):
        empty = Survey(rows, codebook=book(COLUMNS))
        Curator(ledger).release(
            empty.plan(name, epsilon="12", statistics=asks[:4], **steps([LINE])), empty, tmp_path
        )
