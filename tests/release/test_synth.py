"""Synthetic tables from rows to files: charged first, as many rows as planned, the same bytes again, silent about rows."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.csv import write_csv

from reticent import Curator, Ledger, Release
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import BudgetError, PlanError, ResourceError
from reticent.plan import synth as synth_section
from reticent.plan.synth import SyntheticTables
from reticent.preview.synth import foresee_synth
from reticent.release import synth as synth_run
from reticent.release.synth import run_synths
from reticent.synth.spending import SystemSynthNoise, claim_of
from tests.doubles import passed
from tests.release.synthetic import COLUMNS, ODD, Flat, odd_row, open_ledger, plan, rows, said_of_odd, survey
from tests.tables import REPLACE, book, steps, synths_of

EVERY_STRATEGY = ("complete", "impute-random", "impute-mean", "impute-model", "available", "category")


@pytest.fixture
def flat(monkeypatch) -> Flat:
    """A stand-in under every name."""
    made = Flat()
    monkeypatch.setattr(synth_section, "_method", lambda name, field: made)
    return made


def read(folder: Path, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((folder / name).read_text())))


# covers T27
@pytest.mark.parametrize("count", [0, 1, 400])
def test_the_size_comes_from_the_plan_and_answers_from_the_codebook(count: int, tmp_path: Path):
    """Whatever the table holds, empty ones included; a canary outside the domain never appears, nor any NULL of the young."""
    table = rows(count)
    table = pa.concat_tables([table, odd_row(table.schema)])
    made = Curator(open_ledger(tmp_path)).release(
        plan({"delta": "0.000001"}, protect={"delta": "0.000001"}), survey(table), tmp_path
    )
    found = read(tmp_path, "s1.1.synth.csv")
    assert len(found) == 200 == made.synthetic("people").num_rows
    assert list(found[0]) == ["age", "Sex, as told", "job", "pay"]
    assert all(0 <= int(row["age"]) <= 99 for row in found)
    assert {row["Sex, as told"] for row in found} <= {"f", "'=1+1"}
    assert all((row["job"] == "") == (int(row["age"]) < 15) for row in found)
    assert {row["job"] for row in found} <= {"yes", "no, never", ""}
    assert all(
        row["pay"] == "" or (-50 <= float(row["pay"]) <= 150 and float(row["pay"]) % 0.25 == 0)
        for row in found
    )
    text = b"".join(path.read_bytes() for path in tmp_path.glob("s1*"))
    assert not said_of_odd(text)


def test_the_odd_answers_would_be_found_as_any_file_writes_them():
    """The naive twin hands rows on: as CSV, as JSON and as a page writes numbers; digests and packed rows hold none of them."""
    answers = {str(value) for name, value in ODD.items() if name != "w"}
    table = odd_row(rows(0).schema)
    out = io.BytesIO()
    write_csv(table, out)
    for text in (
        out.getvalue(),
        json.dumps(table.to_pylist()).encode(),
        f"{ODD['age']:,} {ODD['pay']:,}".encode(),
    ):
        assert said_of_odd(text)
    assert set(said_of_odd(json.dumps(table.to_pylist()).encode())) >= answers
    assert not said_of_odd(b"".join(sha256(bytes([i])).hexdigest().encode() for i in range(200)))


def sizes(counts: Sequence[int]) -> list[set[int]]:
    """How many rows are drawn of surveys with so many rows."""
    wanted, found = plan({}), []
    for count in counts:
        engine = DuckDBEngine(open_frame(rows(count)))
        made = run_synths(synths_of(wanted), engine, None, repair=wanted.repair, noise=SystemSynthNoise())
        found.append({len(codes) for codes in made["people"].tables[0].values()})
        engine.close()
    return found


def test_a_size_taken_from_the_rows_would_be_seen(monkeypatch):
    """The naive twin draws as many rows as there are respondents, about: its tables differ in size."""
    assert sizes((50, 400)) == [{200}, {200}]
    honest = synth_run.table_of

    def as_many_as_read(synth: Any, network: Any, bits: Any, **more: Any) -> Any:
        return honest(replace(synth, rows=max(1, round(network.total))), network, bits, **more)

    monkeypatch.setattr(synth_run, "table_of", as_many_as_read)
    assert sizes((50, 400)) != [{200}, {200}]


# covers L06 T16
def test_the_same_plan_again_gives_the_same_bytes_and_no_charge(tmp_path: Path):
    """Files deleted in between come back byte for byte, from the ledger alone: the second survey cannot be read."""
    ledger, wanted = open_ledger(tmp_path), plan({"missing": "category", "copies": 2})
    Curator(ledger).release(wanted, survey(), tmp_path)
    names = {
        f"s1{end}"
        for end in (".json", ".csv", ".1.synth.csv", ".2.synth.csv", ".1.synth.parquet", ".2.synth.parquet")
    }
    before = {name: (tmp_path / name).read_bytes() for name in names}
    assert {path.name for path in tmp_path.glob("s1*")} == names
    for name in names:
        (tmp_path / name).unlink()
    again = Curator(ledger).release(wanted, survey(pa.table({"nothing": [1]})), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names} == before
    assert ledger.spent == 1 and again.synthetic("people", 2).num_rows == 200


# covers L03
def test_a_release_that_was_cut_off_is_finished_once_without_a_charge(tmp_path: Path, monkeypatch):
    ledger, wanted = open_ledger(tmp_path), plan({})

    def cut_off(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        passed(patch)
        patch.setattr(synth_run, "learn", cut_off)
        with pytest.raises(KeyboardInterrupt):
            Curator(ledger).release(wanted, survey(), tmp_path)
    assert ledger.spent == 1 and not list(tmp_path.glob("s1*"))
    Curator(ledger).resume(wanted, survey(), tmp_path)
    assert ledger.spent == 1 and len(read(tmp_path, "s1.1.synth.csv")) == 200


def test_parquet_and_csv_and_arrow_hold_the_same_rows(tmp_path: Path):
    """With their holes kept: an empty cell each."""
    wanted = plan({"missing": "category", "copies": 0, "rows": 300, "epsilon": "9"})
    made = Curator(open_ledger(tmp_path)).release(wanted, survey(), tmp_path)
    table = pq.read_table(tmp_path / "s1.1.synth.parquet")
    assert table.equals(made.synthetic("people")) and table["age"].null_count > 0
    for row, line in zip(table.to_pylist(), read(tmp_path, "s1.1.synth.csv"), strict=True):
        for name, cell in row.items():
            text = line[name].removeprefix("'")
            assert cell == (None if text == "" else type(cell)(text))


def test_synthetic_files_are_read_with_the_same_codebook(tmp_path: Path):
    """They look like the survey's own: the engine takes them, headers and words, and finds nothing missing."""
    made = Curator(open_ledger(tmp_path)).release(plan({}), survey(), tmp_path)
    assert Release.from_bytes((tmp_path / "s1.json").read_bytes()).document == made.document
    columns = {name: given for name, given in COLUMNS.items() if name != "w"}
    columns["sex"] = {**columns["sex"], "levels": ["f", "'=1+1"]}
    again = survey(codebook=book(columns)).plan(
        "s2", epsilon="1", statistics=[{"name": "n", "query": {"count": "*"}, "epsilon": "1"}]
    )
    engine = DuckDBEngine(open_frame(pq.read_table(tmp_path / "s1.1.synth.parquet")))
    engine.check(again.schema)
    engine.close()


@pytest.mark.parametrize("holes", EVERY_STRATEGY)
def test_every_strategy_leaves_no_hole(holes: str, tmp_path: Path):
    """But for those who were not asked; a table of small budget is lawful too."""
    made = Curator(open_ledger(tmp_path)).release(
        plan({"missing": holes, "epsilon": "0.5"}), survey(), tmp_path
    )
    table = made.synthetic("people").to_pylist()
    assert len(table) == 200
    assert all(row["age"] is not None and row["Sex, as told"] is not None for row in table)
    assert all((row["pay"] is None) == (row["age"] < 15) for row in table)


def test_rules_hold_in_every_row(tmp_path: Path):
    rules = {"never": ["age >= 90 and sex = 'f'", "job = 'yes' and pay < 0"], "determines": {"sex": "job"}}
    made = Curator(open_ledger(tmp_path)).release(plan(rules), survey(), tmp_path)
    table = made.synthetic("people").to_pylist()
    assert not any(row["age"] >= 90 and row["Sex, as told"] == "f" for row in table)
    assert not any(row["job"] == "yes" and row["pay"] < 0 for row in table)
    settled = {(row["Sex, as told"], row["job"]) for row in table if row["job"] is not None}
    assert len(settled) == len({sex for sex, _ in settled})


def test_asks_and_synthetic_tables_share_one_promise(tmp_path: Path):
    """Epsilons and deltas add up, in the plan, in the document and in the ledger."""
    asks = [{"name": "n", "query": {"count": "*"}, "epsilon": "0.5"}]
    tables = ({"delta": "0.000001"}, {"name": "more", "columns": ["age", "sex"], "epsilon": "2"})
    wanted = plan(*tables, statistics=asks, protect={"delta": "0.000001"})
    assert (wanted.claim.epsilon, wanted.claim.delta) == (Fraction(7, 2), Fraction(1, 10**6))
    assert wanted.cost == Fraction(7, 2)
    ledger = open_ledger(tmp_path)
    made = Curator(ledger).release(wanted, survey(), tmp_path)
    assert ledger.spent == Fraction(7, 2)
    assert made.document["guarantee"]["words"] == str(wanted.claim)
    assert [table["files"] for table in made.document["synth"]] == [["s1.1.synth"], ["s1.2.synth"]]
    assert made.synthetic("more").column_names == ["age", "Sex, as told"]
    with pytest.raises(BudgetError):
        Curator(ledger).release(plan({"epsilon": "18"}, release_id="s9", epsilon="18"), survey(), tmp_path)


def test_a_piece_of_the_survey_is_all_that_is_read(flat: Flat, tmp_path: Path):
    """The lot of the ledger's key; two halves have everybody once, each about half: 12 standard deviations about 200."""
    ledger = open_ledger(tmp_path)
    for number in (1, 2):
        cut = {"name": "halves", "piece": number, "pieces": 2}
        wanted = plan({}, release_id=f"piece-{number}", partition=cut)
        Curator(ledger).release(wanted, survey(), tmp_path)
    first, second = flat.seen[1::2]  # each after a trial on one made-up row
    assert flat.seen[::2] == [1, 1] and first + second == 400 and 100 < first < 300


def test_edits_and_lines_come_before_the_cells(flat: Flat, tmp_path: Path):
    """Both are a row's own; donors are refused, with the reason."""
    edit = {"if": "age < 10", "then": {"sex": "f"}}
    line = {"method": "regression", "column": "pay", "from": ["age"], "epsilon": "1"}
    wanted = plan({}, **steps([edit, line]))
    assert wanted.cost == 2
    made = Curator(open_ledger(tmp_path)).release(wanted, survey(), tmp_path)
    assert made.document["models"] and flat.seen == [1, 400]
    donors = {"method": "donors", "bound": "hubs", "column": "pay", "match": ["age"]}
    with pytest.raises(PlanError, match="impute: the nearest donors do not go together"):
        plan({}, **steps([donors]))


def test_rows_that_capped_donors_filled_are_counted_as_filled_and_paid_for(flat: Flat, tmp_path: Path):
    """Nobody's pay is missing then; one respondent is 1 + 2 tau rows, and the claim says what it rests on."""
    donors = {
        "method": "donors",
        "column": "pay",
        "match": [{"on": ["age"], "serve": 2}, {"on": [], "serve": 1}],
    }
    wanted = plan({}, **steps([donors]))
    spend = synths_of(wanted)[0].spend
    assert (
        spend.neighbours.steps == 7 == spend.stability
        and spend.epsilon == synths_of(plan({}))[0].spend.epsilon
    )
    assert "proofs/sensitivity/capped.md" in [page for _, page in claim_of(spend).rests_on]
    made = Curator(open_ledger(tmp_path)).release(wanted, survey(), tmp_path)
    assert "one respondent counts as 7 rows" in str(made.document["synth"]) and flat.seen == [1, 400]
    other = plan({}, **steps([{**donors, "column": "sex"}]))
    assert synths_of(other)[0].spend.stability == 7  # its columns have sex among them
    told = [foresee_synth(SyntheticTables(tables=synths_of(each)), each).lines for each in (wanted, plan({}))]
    way_out = (
        "donors fill pay, so one respondent counts as 7; without them as one, and the synthesizer can fill"
    )
    assert [any(way_out in str(line) for line in lines) for lines in told] == [True, False]


def test_several_records_of_a_respondent_scale_the_spend():
    codebook = book(COLUMNS, unit="pid", at_most=3)
    wanted = plan({}, codebook=codebook, protect={"change": REPLACE})
    assert synths_of(wanted)[0].spend.neighbours.steps == 6


# covers T13 T14
def test_a_fit_that_fails_says_one_constant_thing(tmp_path: Path, monkeypatch):
    """Whatever it says itself, and however it fails; what it was charged stays charged."""
    said = []
    passed(monkeypatch)
    for place, error in enumerate(
        (ValueError("age 47"), PlanError("pay 12"), ZeroDivisionError(), MemoryError("x"))
    ):
        failing = Flat(fails=error)
        monkeypatch.setattr(synth_section, "_method", lambda name, field, made=failing: made)
        folder = tmp_path / str(place)
        folder.mkdir()
        ledger = open_ledger(folder)
        with pytest.raises(ResourceError) as told:
            Curator(ledger).release(plan({}), survey(), folder)
        said.append((str(told.value), told.value.__cause__, told.value.__context__))
        assert ledger.spent == 1
    assert set(said) == {(f"synth: {synth_run.FAILED}", None, None)}


def test_what_ran_otherwise_than_planned_is_not_published(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(synth_section, "_method", lambda name, field: Flat(claimed=Fraction(2)))
    with pytest.raises(PlanError, match="Nothing was charged"):
        Curator(open_ledger(tmp_path)).release(plan({}), survey(), tmp_path)
    passed(monkeypatch)
    with pytest.raises(ResourceError, match="planned otherwise"):
        Curator(Ledger.open(tmp_path / "ledger.db")).release(plan({}), survey(), tmp_path)
    assert not list(tmp_path.glob("s1*"))


def test_progress_counts_rounds_and_says_names_of_the_plan(flat: Flat, tmp_path: Path):
    """At most as many steps as were announced."""
    heard: list[str] = []
    wanted = plan({})
    Curator(open_ledger(tmp_path)).release(wanted, survey(), tmp_path, step=heard.append)
    assert heard == ["charged", "tallied", "round 0", "round 1", "round 2", "people"]
    assert len(heard) - 2 <= synths_of(wanted)[0].rounds


def test_nothing_is_read_before_it_is_charged(flat: Flat, tmp_path: Path):
    """A name that is taken, or a ledger that is short, and no row is looked at."""
    (tmp_path / "s1.1.synth.csv").write_text("mine")
    with pytest.raises(PlanError, match="exists already"):
        Curator(open_ledger(tmp_path)).release(plan({}), survey(), tmp_path)
    assert flat.seen == [1]  # the trial, on one made-up row


def test_two_tables_of_one_survey_draw_different_rows():
    """Fresh bits each time: of 200 rows of four columns two draws agree with a chance far below 1e-9."""
    wanted, engine = plan({}), DuckDBEngine(open_frame(rows()))
    first, second = (
        run_synths(synths_of(wanted), engine, None, repair=wanted.repair, noise=SystemSynthNoise())[
            "people"
        ].tables[0]
        for _ in range(2)
    )
    engine.close()
    assert any((first[name] != second[name]).any() for name in first)
