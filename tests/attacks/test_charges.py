"""Charge first, charge once, charge exactly; and the same question again is the same answer."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Sum, Table, Tallies
from reticent.errors import BudgetError, EngineError, LedgerError, PlanError
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.statistics import evaluate
from reticent.schema import Schema
from tests.attacks.people import ORDINARY, Person
from tests.tables import EVERY_KIND, arrow, make_plan, plain_tallies, tally


def open_ledger(path: Path, plan: Plan, budget: str) -> Ledger:
    return Ledger.create(
        path, dataset=plan.schema.name, change=plan.change.value, unit="epsilon", budget=budget
    )


class Rows:
    """A survey held in memory; `open` is all a curator asks of one."""

    def __init__(self, plan: Plan, rows: Sequence[Person] = ORDINARY) -> None:
        self.table = arrow(rows, plan.schema)

    def open(self) -> DuckDBEngine:
        return DuckDBEngine(open_frame(self.table), threads=1)

    def check_apart(self, plan: Plan) -> None:
        """Rows in memory are no file."""


class Broken:
    """An engine that opens, checks, and fails once rows are asked for."""

    version, files = "broken", ()

    def open(self) -> "Broken":
        return self

    def check_apart(self, plan: Plan) -> None:
        pass

    def check(self, schema: Schema) -> None:
        pass

    def stand_in(self) -> None:
        return None

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Sum | Table],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies:
        raise EngineError("the rows could not be read", field="source")

    def close(self) -> None:
        pass


# --- T15: failures cost what was reserved ---------------------------------------------------------------------------


# covers T15
def test_a_release_that_fails_on_the_rows_is_charged_ten_times_in_ten(folder) -> None:
    plans = [make_plan([EVERY_KIND[0]], epsilon="0.1", release_id=f"r{i}") for i in range(10)]
    ledger = open_ledger(folder / "l.db", plans[0], "10")
    for place, plan in enumerate(plans):
        with pytest.raises(EngineError):
            Curator(ledger).release(plan, Broken(), folder)
        assert ledger.spent == Fraction(place + 1, 10)
        assert ledger.state(plan.release_id) == "reserved"
        with pytest.raises(LedgerError):
            Curator(ledger).release(plan, Rows(plan), folder)  # not again for the same charge
    assert not list(folder.glob("*.json")) and not list(folder.glob("*.csv"))


def test_naive_order_of_evaluate_then_charge_is_not_charged(folder) -> None:  # covers T15
    """The twin: read, answer, then charge. The same failure leaves nothing in the ledger."""
    plan = make_plan([EVERY_KIND[0]], epsilon="0.1")
    ledger = open_ledger(folder / "l.db", plan, "10")

    def naive(engine: Any) -> None:
        answers = evaluate(plan, engine.tally(plan.schema, []), SystemNoise())
        Curator(ledger)._reserve(plan)
        print(answers)

    with pytest.raises(EngineError):
        naive(Broken())
    assert ledger.spent == 0


# --- T17: exact budgets ---------------------------------------------------------------------------------------------


# covers T17
def test_a_budget_of_one_holds_ten_releases_of_a_tenth(folder) -> None:
    plans = [make_plan([EVERY_KIND[0]], epsilon="0.1", release_id=f"r{i}") for i in range(11)]
    ledger = open_ledger(folder / "l.db", plans[0], "1")
    for plan in plans[:10]:
        Curator(ledger).release(plan, Rows(plan), folder)
    assert (ledger.spent, ledger.left) == (1, 0)
    with pytest.raises(BudgetError):
        Curator(ledger).release(plans[10], Rows(plans[10]), folder)
    assert len(list(folder.glob("*.json"))) == 10 and ledger.state("r10") == "none"
    spent, releases = 0.0, 0  # the twin, in doubles: an eleventh fits
    while spent < 1.0:
        spent, releases = spent + 0.1, releases + 1
    assert releases == 11


# --- T30: averaging -------------------------------------------------------------------------------------------------


# covers T30
def test_the_same_question_again_is_the_same_answer_and_a_new_one_a_new_charge(folder) -> None:
    plan = make_plan(EVERY_KIND[:4], epsilon="0.1", release_id="r1")
    ledger = open_ledger(folder / "l.db", plan, "10")
    first = Curator(ledger).release(plan, Rows(plan), folder)
    files = {path.name: path.read_bytes() for path in folder.glob("r1.*")}
    for _ in range(5):
        again = Curator(ledger).release(plan, Broken(), folder)  # rows are not even opened
        assert again.to_bytes() == first.to_bytes()
    assert {path.name: path.read_bytes() for path in folder.glob("r1.*")} == files
    assert ledger.spent == plan.cost
    other = make_plan(EVERY_KIND[:4], epsilon="0.1", release_id="r2")
    Curator(ledger).release(other, Rows(other), folder)
    assert ledger.spent == 2 * plan.cost
    changed = make_plan(EVERY_KIND[:3], epsilon="0.1", release_id="r1")
    with pytest.raises(PlanError):
        Curator(ledger).release(changed, Rows(changed), folder)
    # The twin that answers anew: its mean over runs is as near the truth as one likes.
    tallies = tally(plan, arrow(ORDINARY, plan.schema))
    values = [evaluate(plan, tallies, SystemNoise())["ask 0"].estimates[0].value for _ in range(20)]
    assert len(set(values)) > 1


# --- T16: noise reuse -----------------------------------------------------------------------------------------------

WIDE = make_plan([{"total": "pay"}] * 4, epsilon="0.01")
CODES = [{"sex": 0, "age": 40, "pay": 3, "w": 4}] * 5
DRAW = """
from tests.attacks.test_charges import draw_run
print(*draw_run(), sep=",")
"""


def draw_run() -> tuple[int, ...]:
    """Four noisy totals of one release, each spread over some 30,000 steps."""
    answers = evaluate(WIDE, plain_tallies(WIDE, CODES), SystemNoise())
    return tuple(int(2 * answer.estimates[0].value) for answer in answers.values())


def in_interpreter() -> tuple[int, ...]:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", DRAW], cwd=root, capture_output=True, check=True, text=True, timeout=120
    )
    return tuple(map(int, done.stdout.strip().split(",")))


def forked(draw: Callable[[], tuple[int, ...]], times: int) -> list[tuple[int, ...]]:
    """`draw` in forked children, each with a copy of everything this process holds."""
    found = []
    for _ in range(times):
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(there, json.dumps(draw()).encode())
            os._exit(0)
        os.close(there)
        found.append(tuple(json.loads(os.read(here, 1 << 16))))
        os.close(here)
        os.waitpid(child, 0)
    return found


# covers T16
def test_forks_threads_and_interpreters_never_repeat_a_run_of_noise() -> None:
    """8 forks, 8 threads, 2 interpreters, 8 releases here: no run of four numbers twice (chance below 1e-14)."""
    draw_run()
    runs = [draw_run() for _ in range(8)] + forked(draw_run, 8)
    with ThreadPoolExecutor(8) as pool:
        runs += list(pool.map(lambda _: draw_run(), range(8)))
    runs += [in_interpreter() for _ in range(2)]
    assert len(set(runs)) == len(runs) == 26

    generator = np.random.default_rng(0)  # the twin: one state, copied by every fork
    naive = forked(lambda: tuple(int(x) for x in generator.laplace(0, 30_000, 4)), 8)
    assert len(set(naive)) == 1


# --- T22: exact facts beside the noisy ones ---------------------------------------------------------------------------

LARGE = [
    {**ORDINARY[i % 35], "age": 20 + (7 * i) % 60, "pay": (i * 37 % 300) / 2, "sex": "fm"[i % 2]}
    for i in range(3000)
]
FEWER = [*LARGE[:-2], LARGE[-1]]
"""Without a respondent who counts in every ask below."""
RUNS = 8


def places(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every place of a document, with what stands there."""
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in inner:
            yield from places(part, f"{at}/{key}")
    else:
        yield at, value


def telling(ones: Sequence[Any], others: Sequence[Any]) -> list[str]:
    """Places that are constant on both sides and different."""
    sides = [[dict(places(document)) for document in side] for side in (ones, others)]
    found = []
    for place in {place for side in sides for document in side for place in document}:
        seen = [{repr(document.get(place, "absent")) for document in side} for side in sides]
        if len(seen[0]) == len(seen[1]) == 1 and seen[0] != seen[1]:
            found.append(place)
    return sorted(found)


def published(folder: Path, plan: Plan, rows: Sequence[Person]) -> Any:
    """Everything a release leaves for others: both files, line by line, with their sizes in lines."""
    folder.mkdir()
    ledger = open_ledger(folder / "l.db", plan, "10")
    Curator(ledger).release(plan, Rows(plan, rows), folder)
    files = {path.suffix: path.read_bytes() for path in folder.glob("r1.*")}
    table = [line.split(",") for line in files[".csv"].decode().splitlines()]
    return {"json": json.loads(files[".json"]), "csv": table, "names": sorted(files)}


# covers T12 T22 R11
def test_no_place_of_a_release_tells_neighbours_apart_for_certain(folder) -> None:
    """8 releases of each: a place constant on both and different would be exact.

    No number here has an atom above 0.1 but the limits of an interval, which have one and the same on both sides,
    and no word of reliability has a rival above 0.02; so this comes by chance below 1e-12.
    """
    queries = [EVERY_KIND[i] for i in (0, 2, 4, 6, 12)] + [{"median": "pay", "step": "0.5"}]
    expect, rare = {"rows": 3000, "design_effect": "1"}, {5: {"epsilon": "0.005"}}
    plan = make_plan(queries, epsilon="0.05", asks=rare, expect=expect)
    sides = [
        [published(folder / f"{side}{i}", plan, rows) for i in range(RUNS)]
        for side, rows in enumerate((LARGE, FEWER))
    ]
    assert telling(*sides) == []

    naive = [
        [{**made, "rows": len(rows), "sha256": sha256(repr(rows).encode()).hexdigest()} for made in side]
        for side, rows in zip(sides, (LARGE, FEWER), strict=True)
    ]
    assert telling(*naive) == ["/rows", "/sha256"]


# covers T12
def test_the_number_of_rows_stands_nowhere(folder) -> None:
    """7,919 rows: that number, as a word of its own, is in no file and not in the ledger."""
    plan = make_plan([EVERY_KIND[6]], epsilon="0.01")
    rows = Rows(plan, [ORDINARY[i % 35] for i in range(7919)])
    Curator(open_ledger(folder / "l.db", plan, "10")).release(plan, rows, folder)
    word = re.compile(rb"(?<![0-9a-f.])7919(?![0-9a-f])")  # digests are hexadecimal
    held = [path.read_bytes() for path in folder.iterdir()]
    assert len(held) >= 3 and not any(word.search(data) for data in held)
    assert word.search(b'{"rows": 7919}')
