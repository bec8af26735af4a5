"""Faults in the middle of a release: one constant text, the charge is kept, and `resume` finishes it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from reticent import Curator, Ledger, Survey
from reticent.errors import EngineError, PlanError
from tests.engine.conformance.openers import stored
from tests.engine.conformance.server import BOSS, Server
from tests.engine.faulty import ASKS, BOOK, PEOPLE, estimate

fenced = pytest.importorskip(
    "reticent.engine.postgres.connection",
    reason="the driver of PostgreSQL is not installed",
    exc_type=ImportError,
)


def house(folder: Path, relation: str, **sections: Any) -> tuple[Survey, Any, Ledger, Path]:
    survey = Survey("postgres:tests", codebook=BOOK, relation=relation)
    plan = survey.plan("town-1", epsilon="1", statistics=sections.pop("statistics", ASKS), **sections)
    ledger = Ledger.create(
        folder / "town.ledger.db", dataset="town", change=plan.change.value, unit="epsilon", budget="3"
    )
    return survey, plan, ledger, folder / "out"


def test_a_release_from_a_server(pg: Server, tmp_path: Path):
    """The same plan as from a frame: the answer is near the truth, and the receipt names the server's version."""
    survey, plan, ledger, out = house(tmp_path, stored(PEOPLE))
    made = Curator(ledger).release(plan, survey, out)
    assert abs(estimate(made) - 500) < 60 and str(ledger.left) == "5/2"
    assert "postgresql 1" in (out / "town-1.json").read_text()


def killed(pg: Server) -> None:
    """End every backend of the reader."""
    pg.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")


def limited(pg: Server) -> None:
    """Let every statement of the next sessions meet its time limit."""
    fenced.SETTINGS["statement_timeout"] = "1ms"


@pytest.mark.parametrize("fault", [killed, limited])
def test_a_fault_keeps_the_charge_and_resume_finishes(
    pg: Server, tmp_path: Path, fault: Any, monkeypatch: pytest.MonkeyPatch
):
    """A backend that was terminated, and a statement that ran out of time. The text is one, whatever happened."""
    monkeypatch.setitem(fenced.SETTINGS, "statement_timeout", "6h")
    many = pa.concat_tables([PEOPLE] * 100)
    survey, plan, ledger, out = house(tmp_path, stored(many))
    opened, whole = fenced.PostgresConnection._begin, [True]

    def struck(self: Any) -> None:
        if whole and whole.pop():
            fault(pg)
            if fault is limited:
                self._execute("SELECT pg_catalog.set_config('statement_timeout', '1ms', false)")
        opened(self)

    monkeypatch.setattr(fenced.PostgresConnection, "_begin", struck)
    with pytest.raises(EngineError) as problem:
        Curator(ledger).release(plan, survey, out)
    assert str(problem.value) == f"source: {fenced.UNREAD}" and problem.value.__cause__ is None
    assert ledger.state("town-1") == "reserved" and str(ledger.left) == "5/2"
    monkeypatch.setitem(fenced.SETTINGS, "statement_timeout", "6h")
    made = Curator(ledger).resume(plan, survey, out)
    assert abs(estimate(made) - 50_000) < 60 and str(ledger.left) == "5/2"


def test_a_query_ends_when_its_client_is_killed(pg: Server):
    """The naive twin runs on: the server asks only at the interval that we set."""
    script = f"""
import psycopg
c = psycopg.connect(host={str(pg.folder)!r}, port=54399, user="reader", dbname="postgres", application_name="left")
c.execute("SET client_connection_check_interval = '1s'")
print("on", flush=True)
c.execute("SELECT pg_sleep(60)")
"""
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert client.stdout is not None and client.stdout.readline() == b"on\n"
    time.sleep(0.3)
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    assert fenced.SETTINGS["client_connection_check_interval"] == "10s"
    with pg.connect(BOSS, autocommit=True) as boss:
        for _ in range(100):
            if boss.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'left'"
            ).fetchone() == (0,):
                return
            time.sleep(0.1)
    pytest.fail("the query of a dead client runs on")


RELEASE = """
import sys, time
from pathlib import Path
from reticent import Curator, Ledger, Survey
from reticent.engine.postgres.connection import PostgresConnection
from tests.engine.faulty import ASKS, BOOK

relation, folder = sys.argv[1], Path(sys.argv[2])
run = PostgresConnection._run

def slow(self, statement, **more):
    print("reading", flush=True)
    self._execute("SELECT pg_catalog.pg_sleep(60)")
    return run(self, statement, **more)

PostgresConnection._run = slow
survey = Survey("postgres:tests", codebook=BOOK, relation=relation)
plan = survey.plan("town-1", epsilon="1", statistics=ASKS)
Curator(Ledger.open(folder / "town.ledger.db")).release(plan, survey, folder / "out")
"""


def test_a_killed_client_leaves_its_charge_and_resume_finishes(pg: Server, tmp_path: Path):
    """Killed while the server works on its first statement over rows: nothing is out, and one release is charged in the end."""
    relation = stored(PEOPLE)
    survey, plan, ledger, out = house(tmp_path, relation)
    client = subprocess.Popen(
        [sys.executable, "-c", RELEASE, relation, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert client.stdout is not None and client.stdout.readline() == b"reading\n"
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    killed(pg)
    assert not out.exists() and ledger.state("town-1") == "reserved" and str(ledger.left) == "5/2"
    made = Curator(ledger).resume(plan, survey, out)
    assert abs(estimate(made) - 500) < 60 and str(ledger.left) == "5/2"


def test_a_full_disk_is_told_in_the_same_text(pg: Server, tmp_path: Path):
    """As far as a server can be made to have one: a sort that may not spill."""
    relation = stored(pa.concat_tables([PEOPLE] * 200))
    pg.run("ALTER ROLE reader SET temp_file_limit = '64kB'")
    try:
        survey, plan, ledger, out = house(
            tmp_path,
            relation,
            impute=[
                {
                    "method": "donors",
                    "column": "pay",
                    "match": ["sex"],
                    "default": "50",
                }
            ],
            statistics=[{"name": "pay", "query": {"total": "pay"}, "epsilon": "0.5"}],
        )
        fenced.SETTINGS["work_mem"] = "64kB"
        with pytest.raises(EngineError) as problem:
            Curator(ledger).release(plan, survey, out)
        assert str(problem.value) == f"source: {fenced.UNREAD}" and str(ledger.left) == "5/2"
    finally:
        fenced.SETTINGS["work_mem"] = "64MB"
        pg.run("ALTER ROLE reader RESET temp_file_limit")


def test_what_the_engine_cannot_do_is_refused_before_the_charge(pg: Server, tmp_path: Path):
    """Donors without a cap: named, and the ledger holds its whole budget."""
    survey, plan, ledger, out = house(
        tmp_path,
        stored(PEOPLE),
        impute=[{"method": "donors", "column": "pay", "match": ["sex"], "bound": "hubs", "default": "50"}],
        statistics=[{"name": "pay", "query": {"total": "pay"}, "epsilon": "0.5"}],
    )
    with pytest.raises(PlanError, match="hubs"):
        Curator(ledger).release(plan, survey, out)
    assert ledger.left == 3


def test_a_password_is_never_asked_for_in_a_plan_or_told(pg: Server):
    with pytest.raises(Exception) as problem:
        Survey("postgres:nowhere", codebook=BOOK, relation="a.b").open()
    assert "nowhere" not in str(problem.value) and str(pg.folder) not in str(problem.value)
