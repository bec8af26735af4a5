"""Tables of small cells from rows to files: the textbook without noise, nothing but noise for a reader, every label."""

import json
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent import Curator, Ledger, Survey
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import BudgetError, PlanError
from reticent.noise.bits import SystemBits
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan, read_plan
from reticent.release.cells import CellsResult, cell_wants, cells_csv, run_cells
from reticent.release.curator import beside_epsilon
from reticent.release.document import document
from reticent.release.release import Release
from reticent.release.run import try_plan
from reticent.report.pages import ReportPages
from reticent.smallcells import smooth
from reticent.smallcells.observed import LABEL
from reticent.smallcells.table import LINE
from tests.noise.seeded import chosen_bits
from tests.smallcells.doors import Doors, shut, violations
from tests.tables import book, cell_tables, steps

DATA = Path(os.environ.get("RETICENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLE = DATA / "mose_example.parquet"
COLUMNS: dict[str, Any] = {
    "tract": {"kind": "integer", "bounds": [1, 5]},
    "parent": {"kind": "decimal", "bounds": [0, 100], "grid": "0.5"},
    "kid": {"kind": "decimal", "bounds": [-10, 30], "grid": "0.1", "unit": "points"},
}
BOOK = book(COLUMNS)
COMMON: dict[str, Any] = {
    "cell": "tract",
    "y": "kid",
    "x": "parent",
    "estimate": {"predict": "25"},
    "epsilon": "4",
}
SMOOTH = {**COMMON, "name": "smooth", "method": "smooth", "count_epsilon": "1", "noise_epsilon": "1"}
POOLED = {
    **COMMON,
    "name": "pooled",
    "method": "pooled",
    "count_epsilon": "1",
    "noise_epsilon": "1",
    "delta": "0.000001",
    "least": 5,
}
THEIL_SEN = {**COMMON, "name": "pairs", "method": "theil-sen"}
OBSERVED = {
    **COMMON,
    "name": "seen",
    "method": "observed",
    "accept_observed": True,
    "count_epsilon": "1",
    "error_epsilon": "1",
}
Row = tuple[str | None, str | None, str | None]


def people(seed: int = 3) -> list[Row]:
    """Thirty people in tracts 1 to 4, as text; nobody lives in tract 5."""
    rng = np.random.default_rng(seed)
    return [
        (str(1 + i % 4), f"{x / 2:.1f}", f"{-10 + y / 10:.1f}")
        for i, (x, y) in enumerate(zip(rng.integers(0, 201, 30), rng.integers(0, 401, 30), strict=True))
    ]


def frame(rows: Sequence[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(COLUMNS, columns, strict=True)})


def plan_of(*cells: dict[str, Any], release_id: str = "r-1") -> Plan:
    protect = {
        "accept_large": True,
        **({"delta": "0.00001"} if any("delta" in each for each in cells) else {}),
    }
    return Survey(frame([]), codebook=BOOK).plan(release_id, epsilon="60", cells=cells, protect=protect)


def asked(plan: Plan) -> CellTables:
    """The plan's tables, which it has."""
    return CellTables(tables=cell_tables(plan))


def seen(plan: Plan, rows: Sequence[Row]) -> bytes:
    """All that a reader would be given."""
    engine = DuckDBEngine(open_frame(frame(rows)), threads=1)
    try:
        tallies = engine.tally(plan.schema, cell_wants(asked(plan), plan))
    finally:
        engine.close()
    tables = run_cells(asked(plan), plan, tallies, SystemBits())
    done = CellsResult(asked=asked(plan), plan=plan, tables=tables)
    made = Release(document(plan, [done], receipt={"entry": 2}, engine="engine"))
    return made.to_bytes() + cells_csv(made.document)


# --- the textbook ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["predict", "slope", "mean"])
def test_without_noise_the_table_is_the_textbook_s(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Least squares of numpy in the units of the columns, kept within the range; the middle of it in an empty cell."""
    monkeypatch.setattr(smooth, "add_lomax_many", lambda answers, **_: list(answers))
    estimate = {"predict": {"predict": "25"}, "slope": {"slope": True}, "mean": {"mean": True}}[kind]
    raw = {
        key: value for key, value in {**SMOOTH, "estimate": estimate}.items() if kind != "mean" or key != "x"
    }
    plan, rows = plan_of(raw), people()
    release = json.loads(seen(plan, rows).partition(b"}\nrelease")[0] + b"}")
    (table,) = release["cells"]
    low, high = table["range"]
    for tract, value in zip(table["columns"]["cell"], table["columns"]["estimate"], strict=True):
        own = [(float(x or 0), float(y or 0)) for cell, x, y in rows if cell == tract]
        expected = (low + high) / 2
        if own:
            x, y = np.array(own).T
            b, a = np.polyfit(x, y, 1)
            expected = {"predict": a + 25 * b, "slope": b, "mean": y.mean()}[kind]
        assert abs(value - min(high, max(low, expected))) <= (high - low) / 10**6
    assert [len(column) for column in table["columns"].values()] == [5] * 7


def test_the_intervals_hold_what_they_claim():
    """Of 200 tables of five cells, the estimate of the rows lies outside a 95 % interval in at most 100 of 1,000.

    At the stated chance of 5 % more than 100 have probability below 1e-9.
    """
    plan, rows = plan_of({**SMOOTH, "epsilon": "2"}), people()
    engine = DuckDBEngine(open_frame(frame(rows)), threads=1)
    tallies = engine.tally(plan.schema, cell_wants(asked(plan), plan))
    engine.close()
    exact, bits = _exact(rows), chosen_bits(61)
    outside = 0
    for _ in range(200):
        made = run_cells(asked(plan), plan, tallies, bits)["smooth"]
        for t, width, truth in zip(made.estimates, made.widths, exact, strict=True):
            assert t is not None and width is not None
            outside += abs(float(t) - truth) > width
    assert 0 < outside <= 100


def test_an_edit_comes_first_and_donors_of_another_column_change_nothing(monkeypatch: pytest.MonkeyPatch):
    """A record's own answers may settle y; what donors fill elsewhere is no matter of the cells."""
    monkeypatch.setattr(smooth, "add_lomax_many", lambda answers, **_: list(answers))
    wide = book({**COLUMNS, "rooms": {"kind": "integer", "bounds": [1, 9]}})
    mean = {key: value for key, value in SMOOTH.items() if key != "x"} | {"estimate": {"mean": True}}
    edit = {"if": "parent > 50", "then": {"kid": "20"}, "replace": True}
    donors = {"method": "donors", "bound": "hubs", "column": "rooms", "match": ["tract"]}
    rows = people()
    table = frame(rows).append_column("rooms", pa.array(["3", None] * 15))
    plan = Survey(table, codebook=wide).plan("r-1", epsilon="20", cells=[mean], **steps([edit, donors]))
    engine = DuckDBEngine(open_frame(table), threads=1)
    tallies = engine.tally(plan.schema, cell_wants(asked(plan), plan), plan.repair)
    engine.close()
    found = run_cells(asked(plan), plan, tallies, SystemBits())["smooth"].estimates
    for tract, t in zip("1234", found, strict=False):
        own = [20.0 if float(x or 0) > 50 else float(y or 0) for cell, x, y in rows if cell == tract]
        assert t is not None and abs(-10 + 40 * float(t) - np.mean(own)) <= 40 / 10**6


def _exact(rows: Sequence[Row]) -> list[float]:
    """Predictions at a quarter in the unit square, kept within it; a half in the empty cell."""
    found = []
    for tract in "12345":
        own = [(float(x or 0) / 100, (float(y or 0) + 10) / 40) for cell, x, y in rows if cell == tract]
        found.append(float(np.clip(np.polyval(np.polyfit(*np.array(own).T, 1), 0.25), 0, 1)) if own else 0.5)
    return found


# --- nothing escapes the noise --------------------------------------------------------------------------------------------

FORMAL = (SMOOTH, POOLED, THEIL_SEN, {**SMOOTH, "name": "slopes", "estimate": {"slope": True}})
STRANGERS: tuple[Row, ...] = (
    # covers T06 T10 T13 T20 B001 B004 B009 B012
    ("1", "50.0", "20.0"),
    ("5", "0.0", "-10.0"),
    ("4", "100.0", "30.0"),
    ("2", "99999", "-1e400"),
    ("3", "inf", "-inf"),
    ("1", "NaN", "3.0"),
    (None, "3.0", "3.0"),
    ("1", None, "3.0"),
    ("1", "3.0", None),
    ("0", "3.0", "3.0"),
    ("77", "3.0", "3.0"),
    ("=cmd()", "3.0", "3.0"),
    ("2.5", "3.0", "3.0"),
    ("1", "<script>", "'; drop table"),
    ("", "", ""),
)


def run_shut(
    plan: Plan, rows: Sequence[Row], monkeypatch: pytest.MonkeyPatch, made: Any = seen
) -> tuple[Doors, bytes]:
    with monkeypatch.context() as patch:
        doors = shut(patch)
        return doors, made(plan, rows)


def neighbours(rows: list[Row]) -> list[list[Row]]:
    gone = [rows[:place] + rows[place + 1 :] for place in range(0, len(rows), 3)]
    return [*gone, *([*rows, stranger] for stranger in STRANGERS)]


def test_nothing_exact_is_visible_and_nothing_moves_further_than_declared(monkeypatch: pytest.MonkeyPatch):
    """Ten removals and fifteen additions, odd ones among them, along one transcript."""
    plan, rows = plan_of(*FORMAL), people()
    here, told = run_shut(plan, rows, monkeypatch)
    for other in neighbours(rows):
        there, also = run_shut(plan, other, monkeypatch)
        assert violations(here, there) == [] and also == told
    assert b"script" not in told and b"cmd" not in told


def test_the_replay_rejects_naive_tables(monkeypatch: pytest.MonkeyPatch):
    """The naive twins: empty cells dropped; the exact count beside the noisy one."""
    plan, rows = plan_of(SMOOTH), people()

    def with_true_count(plan: Plan, rows: Sequence[Row]) -> bytes:
        return seen(plan, rows) + str(sum(None not in row for row in rows)).encode()

    def without_empty(plan: Plan, rows: Sequence[Row]) -> bytes:
        cells = {row[0] for row in rows}
        return b"\n".join(
            line for line in seen(plan, rows).split(b"\n") if b"r-1,smooth,5" not in line or "5" in cells
        )

    for naive in (with_true_count, without_empty):
        told = [run_shut(plan, r, monkeypatch, naive)[1] for r in (rows, [*rows, STRANGERS[1]])]
        assert told[0] != told[1]


ONLY = ("1", "3.0", "3.0")
ODD_TABLES: dict[str, list[Row]] = {
    "nobody": [],
    "one": [ONLY],
    "alike": [ONLY] * 40,
    "corners": [("1", "0.0", "-10.0"), ("1", "100.0", "30.0")] * 20,
}


# covers B068 B069
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kind", ["predict", "slope", "mean"])
@pytest.mark.parametrize("rows", ODD_TABLES)
def test_every_table_of_rows_has_an_answer(rows: str, kind: str):
    """Nobody, one person, people all alike, and people in two corners; JSON without an infinity (R01)."""
    estimate = {"predict": {"predict": "25"}, "slope": {"slope": True}, "mean": {"mean": True}}[kind]
    beyond = {**SMOOTH, "name": "beyond", "range": ["100", "200"], "noise_epsilon": "0.04"}
    grouped = {**OBSERVED, "name": "grouped", "envelope": "equal sizes"}
    grouped["groups"] = {"of": {"a": ["1..2"], "b": ["3..5"]}}
    bounded = {**OBSERVED, "name": "bounded", "range": ["0", "20"]}
    asked = [{**each, "estimate": estimate} for each in (SMOOTH, beyond, POOLED, OBSERVED, grouped, bounded)]
    plan = plan_of(*[{k: v for k, v in each.items() if kind != "mean" or k != "x"} for each in asked])
    told = seen(plan, ODD_TABLES[rows])
    assert b"Infinity" not in told and b"NaN" not in told and told.count(b"\nr-1,") == 6 * 5


def test_several_records_and_replaced_answers_are_paid_for():
    """Each record between neighbours takes its share: a respondent of three records replaced is six steps."""
    from reticent.smallcells.run import spec_of, steps_between

    owned = book(COLUMNS, unit="pid", at_most=3)
    survey = Survey(frame([]), codebook=owned)
    change = {"change": "one respondent's answers replaced"}
    plan = survey.plan("r-1", epsilon="20", cells=[SMOOTH], protect=change)
    assert steps_between(plan.neighbours) == 6
    spec = spec_of(cell_tables(plan)[0], plan.schema, plan.neighbours)
    assert (spec.epsilon, plan.cost) == (Fraction(4, 6), 6)
    for method in (POOLED, OBSERVED):
        allowed = {**change, **({"delta": "0.00001"} if "delta" in method else {})}
        with pytest.raises(PlanError, match="built for one record"):
            try_plan(survey.plan("r-2", epsilon="20", cells=[method], protect=allowed))


# --- from a plan to files -------------------------------------------------------------------------------------------------


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    path = tmp_path / "ledger.db"
    return Ledger.create(
        path, dataset="tiny", change="one respondent added or removed", unit="epsilon", budget="40"
    )


def test_a_release_writes_its_cells_and_repeats_itself(ledger: Ledger, tmp_path: Path):
    """The same id and plan again: the same bytes, no charge (T30)."""
    survey, plan, out = Survey(frame(people()), codebook=BOOK), plan_of(SMOOTH, POOLED), tmp_path / "out"
    made = Curator(ledger).release(plan, survey, out)
    written = {path.name: path.read_bytes() for path in out.iterdir()}
    assert set(written) == {"r-1.json", "r-1.csv", "r-1.cells.csv"} and ledger.spent == plan.cost == 12
    again = Curator(ledger).release(plan, survey, out)
    assert ledger.spent == 12 and again.to_bytes() == made.to_bytes() == written["r-1.json"]
    lines = written["r-1.cells.csv"].decode().splitlines()
    assert lines[0] == ",".join(LINE) and len(lines) == 1 + 2 * 5
    assert [line["cell"] for line in made["smooth"]] == ["1", "2", "3", "4", "5"]
    assert cells_csv(Release.from_bytes(written["r-1.json"]).document) == written["r-1.cells.csv"]


def test_columns_stand_on_one_line_each(ledger: Ledger, tmp_path: Path):
    """73,000 cells would otherwise be half a million lines."""
    made = Curator(ledger).release(plan_of(SMOOTH), Survey(frame(people()), codebook=BOOK), tmp_path / "out")
    text = made.to_bytes().decode()
    assert '"cell": ["1","2","3","4","5"]' in text and json.loads(text) == made.document


def test_what_cannot_run_is_refused_before_it_is_charged(ledger: Ledger, tmp_path: Path):
    """A noise level so fine that no ladder can carry it; a budget that is not there."""
    survey = Survey(frame(people()), codebook=BOOK)
    tiny = plan_of({**SMOOTH, "epsilon": "0.000002", "smoothness": 64})
    with pytest.raises(PlanError):
        Curator(ledger).release(tiny, survey, tmp_path / "out")
    with pytest.raises(BudgetError):
        Curator(ledger).release(plan_of({**SMOOTH, "epsilon": "50"}), survey, tmp_path / "out")
    assert ledger.spent == 0 and not (tmp_path / "out").exists()


def test_what_ran_at_another_price_is_not_published(ledger, tmp_path, monkeypatch):
    plan = plan_of(SMOOTH)
    monkeypatch.setattr(smooth.SmoothCells, "cost", property(lambda self: Fraction(1)))
    with pytest.raises(Exception, match="nothing is published"):
        Curator(ledger).release(plan, Survey(frame(people()), codebook=BOOK), tmp_path / "out")
    assert ledger.spent == plan.cost and not (tmp_path / "out").exists()


def test_an_observed_table_says_so_in_every_file(ledger: Ledger, tmp_path: Path):
    """Document, both tables, page and ledger; and nowhere does its table wear the words of a promise."""
    survey, out = Survey(frame(people()), codebook=BOOK), tmp_path / "out"
    plan = plan_of(OBSERVED)
    Curator(ledger, pages=ReportPages()).release(plan, survey, out)
    for name in ("r-1.json", "r-1.cells.csv", "r-1.html"):
        text = (out / name).read_text(encoding="utf-8")
        assert LABEL in text and "-DP" not in text, name
    written = (out / "r-1.html").read_text(encoding="utf-8")
    assert "What is not protected" in written and "under differential privacy" not in written
    (charge,) = (entry.body for entry in ledger.entries() if entry.kind == "reserve")
    assert charge["claim"]["measure"] == "observed" and charge["amount"] == "6"
    assert charge["claim"]["observed"] == {"tables": ["seen"], "reserved": "6"}


def test_later_releases_do_not_promise_for_an_observed_one(ledger: Ledger, tmp_path: Path):
    """A ledger's sum of epsilon is a promise only where every charge in it was one."""
    survey, out = Survey(frame(people()), codebook=BOOK), tmp_path / "out"
    curator = Curator(ledger, pages=ReportPages())
    curator.release(plan_of(SMOOTH), survey, out)
    assert "promise together what epsilon 6 promises" in (out / "r-1.html").read_text(encoding="utf-8")
    curator.release(plan_of(POOLED, release_id="r-2"), survey, out)
    assert "what epsilon 12 and delta 0.000001 promise" in (out / "r-2.html").read_text(encoding="utf-8")
    curator.release(plan_of(OBSERVED, release_id="r-3"), survey, out)
    curator.release(plan_of(SMOOTH, release_id="r-4"), survey, out)
    last = (out / "r-4.html").read_text(encoding="utf-8")
    assert "Not all releases charged to this ledger are protected: r-3 is observed" in last
    assert "promise together" not in last
    assert beside_epsilon(ledger.entries()) == {"delta": "0.000001", "observed": ["r-3"]}


def test_a_plan_with_a_delta_says_how_much_it_allows():
    survey = Survey(frame([]), codebook=BOOK)
    with pytest.raises(PlanError, match=r"protect\.delta: the cells need 0\.000001"):
        survey.plan("r-1", epsilon="20", cells=[POOLED])
    with pytest.raises(PlanError, match=r"the cells need 0\.000002"):
        two = [POOLED, {**POOLED, "name": "again"}]
        survey.plan("r-1", epsilon="20", cells=two, protect={"delta": "0.000001"})
    with pytest.raises(PlanError, match=r"protect\.delta: does not go with pure noise"):
        survey.plan("r-1", epsilon="20", cells=[SMOOTH], protect={"delta": "0.000001"})
    with pytest.raises(PlanError, match=r"protect\.epsilon: is 5, but the plan needs 6"):
        survey.plan("r-1", epsilon="5", cells=[SMOOTH])
    with pytest.raises(PlanError, match="asks nothing"):
        survey.plan("r-1", epsilon="5")


def test_an_ask_and_a_table_do_not_share_a_name():
    survey = Survey(frame([]), codebook=BOOK)
    ask = {"name": "smooth", "query": {"count": "*"}, "epsilon": "1"}
    with pytest.raises(PlanError, match=r"cells\[0\]\.name: a statistic is called 'smooth' too"):
        survey.plan("r-1", epsilon="20", statistics=[ask], cells=[SMOOTH])


def test_another_public_file_of_groups_is_another_plan(tmp_path: Path):
    """The digest covers what the file says; and the rows are no public file."""
    (tmp_path / "s.toml").write_text(
        '[survey]\nname = "tiny"\nunit = "row"\n'
        + "".join(
            f"[columns.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in column.items())
            for name, column in COLUMNS.items()
        ),
        encoding="utf-8",
    )
    text = (
        '[survey]\nsource = "rows.csv"\ncodebook = "s.toml"\nledger = "l.db"\n[release]\nid = "g"\n'
        '[protect]\nchange = "one respondent added or removed"\nepsilon = "9"\n'
        '[[cells]]\nname = "seen"\ncell = "tract"\ny = "kid"\nestimate = { mean = true }\nmethod = "observed"\n'
        'accept_observed = true\nepsilon = "1"\ncount_epsilon = "1"\n'
        'groups = { file = "FILE", cell = "tract", group = "state" }\n'
    )
    digests = set()
    for groups in ("aabbb", "aabba"):
        lines = [f"{tract},{group}" for tract, group in enumerate(groups, start=1)]
        (tmp_path / "states.csv").write_text("\n".join(["tract,state", *lines]), encoding="utf-8")
        (tmp_path / "p.toml").write_text(text.replace("FILE", "states.csv"), encoding="utf-8")
        plan = read_plan(tmp_path / "p.toml")
        assert cell_tables(plan)[0].groups is not None and cell_tables(plan)[0].groups.names == ("a", "b")
        digests.add(plan.digest)
    assert len(digests) == 2
    (tmp_path / "p.toml").write_text(text.replace("FILE", "rows.csv"), encoding="utf-8")
    with pytest.raises(PlanError, match="holds the rows"):
        read_plan(tmp_path / "p.toml")


# --- the published example ------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not EXAMPLE.is_file(), reason="the published example is not here; set RETICENT_DATA")
def test_the_published_example_from_parquet_to_csv(tmp_path: Path):
    """chi by corner additions is 2.970233, as the authors' own example gives; the spread of noise follows from it."""
    columns = {
        "cell": {"kind": "integer", "bounds": [1, 111]},
        "parent_rank": {"kind": "decimal", "bounds": [0, 1], "grid": "0.000001"},
        "kid_rank": {"kind": "decimal", "bounds": [0, 1], "grid": "0.000001"},
    }
    rows = tmp_path / EXAMPLE.name  # a charge leaves a mark beside the rows
    copyfile(EXAMPLE, rows)
    survey = Survey(str(rows), codebook=book(columns))
    cells = {
        "name": "rank",
        "cell": "cell",
        "x": "parent_rank",
        "y": "kid_rank",
        "estimate": {"predict": "0.25"},
        "method": "observed",
        "accept_observed": True,
        "changes": "corners added",
        "epsilon": "8",
        "count_epsilon": "8",
    }
    plan = survey.plan("m-1", epsilon="16", cells=[cells])
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="tiny", change=plan.change.value, unit="epsilon", budget="16"
    )
    made = Curator(ledger).release(plan, survey, tmp_path / "out")
    (table,) = made.document["cells"]
    chi = table["chi"]["all cells"]
    assert abs(chi - 2.970233) < 1e-5
    for line in made["rank"]:
        if line["estimate"] is not None:
            expected = 2 * (chi / (8 * max(1, line["count"]))) ** 2
            assert abs(line["noise_variance"] / expected - 1) < 1e-5
