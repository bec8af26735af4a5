"""The curator's order of things: what is charged when, what can be resumed, and what never changes again."""

import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.errors import BudgetError, EngineError, LedgerError, PlanError, SourceError
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.release import Release
from reticent.release.survey import Survey
from tests.doubles import passed
from tests.tables import ADD, book

ROWS = pa.table({"sex": ["f", "m", "f"], "age": [30, 40, 50], "pay": [1.5, 2.0, None], "w": [1.0, 2.0, 0.5]})
ASKS = [
    {"name": "women", "query": {"count": "*", "where": "sex = 'f'"}, "epsilon": "0.5"},
    {"name": "pay", "query": {"mean": "pay", "where": "age >= 15"}, "epsilon": "0.5"},
]


@pytest.fixture
def survey() -> Survey:
    return Survey(ROWS, codebook=book())


@pytest.fixture
def ledger(tmp_path) -> Ledger:
    return Ledger.create(tmp_path / "a.db", dataset="tiny", change=ADD, unit="epsilon", budget="3")


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture
def plan(survey):
    return survey.plan("r-1", epsilon="1", statistics=ASKS)


@pytest.fixture
def broken(monkeypatch):
    """Rows that cannot be read to the end, until the curator mends them."""

    def fail(self, schema, wants, repair, lot=None):
        raise EngineError("the rows could not be read to the end", field="source")

    with monkeypatch.context() as patch:
        patch.setattr(DuckDBEngine, "tally", fail)
        yield patch


def test_the_same_release_again_gives_the_same_bytes_and_no_charge(survey, ledger, plan, out):
    """Even where the rows are gone: they are not opened again."""
    # covers L06 T30
    first = Curator(ledger).release(plan, survey, out)
    again = Curator(ledger).release(plan, Survey("gone.csv", codebook=book()), out)
    assert again.to_bytes() == first.to_bytes() == (out / "r-1.json").read_bytes()
    assert ledger.spent == 1 and ledger.state("r-1") == "published"
    assert Release.from_bytes(first.to_bytes())["women"] == first["women"]


def test_another_plan_under_the_same_id_is_refused(survey, ledger, plan, out):
    Curator(ledger).release(plan, survey, out)
    other = survey.plan("r-1", epsilon="1", statistics=[ASKS[0]])
    with pytest.raises(PlanError):
        Curator(ledger).release(other, survey, out)
    assert ledger.spent == 1


def test_a_failure_after_the_charge_is_resumed_once(survey, ledger, plan, out, broken):
    """Charged, nothing published; one resume without a charge; after a second failure the id is used up."""
    # covers L04 T15
    curator = Curator(ledger)
    for attempt in (curator.release, curator.resume):
        with pytest.raises(EngineError):
            attempt(plan, survey, out)
        assert ledger.spent == 1 and not list(out.iterdir())
    with pytest.raises(LedgerError):
        curator.resume(plan, survey, out)


def test_resume_finishes_what_was_charged(survey, ledger, plan, out, broken):
    # covers L04
    curator = Curator(ledger)
    with pytest.raises(EngineError):
        curator.release(plan, survey, out)
    broken.undo()
    made = curator.resume(plan, survey, out)
    assert ledger.spent == 1 and (out / "r-1.json").read_bytes() == made.to_bytes()


def test_resume_publishes_what_was_committed(survey, ledger, plan, out, monkeypatch):
    """Cut off between the answer and the files: the same answer is published, the rows are not read again."""
    # covers L05
    with monkeypatch.context() as patch:
        patch.setattr("reticent.files.write_new", lambda *a, **k: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Curator(ledger).release(plan, survey, out)
    assert ledger.state("r-1") == "committed" and not list(out.iterdir())
    made = Curator(ledger).resume(plan, Survey("gone.csv", codebook=book()), out)
    assert made.to_bytes() == ledger.answer("r-1") == (out / "r-1.json").read_bytes()


@pytest.mark.parametrize("rows", [pa.table({"sex": ["f"]}), "gone.parquet"])
def test_a_file_that_does_not_fit_costs_nothing(rows, ledger, plan, out):
    # covers B066 B070
    with pytest.raises(SourceError):
        Curator(ledger).release(plan, Survey(rows, codebook=book()), out)
    assert ledger.spent == 0 and ledger.state("r-1") == "none" and not list(out.iterdir())


def test_a_name_that_is_taken_is_found_before_the_charge(survey, ledger, plan, out):
    # covers B106
    (out / "r-1.csv").write_text("somebody else's")
    with pytest.raises(PlanError):
        Curator(ledger).release(plan, survey, out)
    assert ledger.spent == 0 and (out / "r-1.csv").read_text() == "somebody else's"


def test_a_table_that_a_later_version_would_write_otherwise_is_left_alone(
    survey, ledger, plan, out, monkeypatch
):
    Curator(ledger).release(plan, survey, out)
    first = (out / "r-1.csv").read_bytes()
    monkeypatch.setattr(Release, "to_csv", lambda self: b"written anew")
    Curator(ledger).release(plan, survey, out)
    assert (out / "r-1.csv").read_bytes() == first
    (out / "r-1.csv").write_bytes(b"forged")
    with pytest.raises(PlanError):
        Curator(ledger).release(plan, survey, out)


def test_a_plan_over_budget_is_refused_and_says_what_is_left(survey, ledger, out):
    # covers B086
    asks = [{**ASKS[0], "epsilon": "3.5"}]
    with pytest.raises(BudgetError, match="3"):
        Curator(ledger).release(survey.plan("r-2", epsilon="4", statistics=asks), survey, out)
    assert ledger.spent == 0


def test_what_is_run_costs_what_was_planned(survey, ledger, plan, out, monkeypatch):
    """Should the two ever differ, nothing is published: the planned claim is asked for again of what was run."""
    from reticent.release import statistics as module

    plain = module.StatisticsResult.epsilon.fget
    monkeypatch.setattr(module.StatisticsResult, "epsilon", property(lambda made: 2 * plain(made)))
    with pytest.raises(PlanError, match="would run otherwise"):
        Curator(ledger).release(plan, survey, out)
    assert ledger.spent == 0
    passed(monkeypatch)
    with pytest.raises(Exception, match="nothing is published"):
        Curator(ledger).release(plan, survey, out)
    assert ledger.spent == 1 and not list(out.iterdir())


def test_a_folder_is_made_when_there_is_something_to_publish(survey, ledger, plan, tmp_path):
    """A refused release leaves nothing behind, not even an empty folder."""
    out = tmp_path / "releases"
    with pytest.raises(SourceError):
        Curator(ledger).release(plan, Survey("gone.csv", codebook=book()), out)
    assert not out.exists()
    Curator(ledger).release(plan, survey, out)
    assert (out / "r-1.json").is_file()
