"""The page "Survey in PostgreSQL" does what it says: its roles, its services and its commands, on a server without any."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from reticent.lab.demo import demo_survey
from tests.badinput.house import Seen, run
from tests.engine.conformance.server import BOSS, Server

PAGE = (Path(__file__).parents[3] / "docs/howto/postgres.md").read_text()
SECTION = PAGE.partition("## Try it on the simulated state")[2].partition("\n## ")[0]
PLACE = ["lab", "elsewhere", "demo", "postgres", "owner", "census", "census.people"]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


@pytest.fixture
def demo(pg: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder that the commands are given in, beside the page's roles and services; all gone at the end."""
    demo_survey(tmp_path / "demo", rows=400)
    monkeypatch.chdir(tmp_path)
    (roles,), (services,) = blocks("sql"), blocks("ini")
    here = services.replace("/var/run/postgresql", f"{pg.folder}\nport={pg.service(BOSS)['port']}")
    (tmp_path / "pg_service.conf").write_text(here)
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "pg_service.conf"))
    pg.run(roles)
    yield tmp_path
    pg.run("DROP SCHEMA IF EXISTS census CASCADE; DROP OWNED BY census_owner, reticent_reader")
    pg.run("DROP ROLE census_owner, reticent_reader")


def test_the_page_runs_from_the_roles_to_the_release(demo: Path):
    lines = [line for block in blocks("console") for line in block.splitlines()]
    assert len(lines) == 4
    for line in lines:
        seen = run(*shlex.split(line)[2:])
        assert seen.status == 0, f"{line}\n{seen.err}"
    assert list(demo.glob("demo/**/demo-postgres.json"))
    again = run(*PLACE)
    assert again.status != 0 and "postgres.toml" in again.err


def without_table(pg: Server) -> Seen:
    """What the command says where it makes no table; that there is none, and no plan."""
    seen = run(*PLACE)
    assert seen.status != 0 and not Path("demo/postgres.toml").exists()
    with pg.connect(BOSS) as boss:
        assert boss.execute("SELECT to_regclass('census.people')").fetchone() == (None,)
    return seen


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("REVOKE USAGE ON SCHEMA census FROM reticent_reader", "", "GRANT USAGE ON SCHEMA census"),
        ("ALTER SCHEMA census OWNER TO boss", "", "GRANT USAGE, CREATE"),
        ("DROP SCHEMA census", "CREATE SCHEMA census", "no schema census"),
        ("GRANT census_owner TO reticent_reader", "", "can only read"),
    ],
)
def test_what_makes_no_table_is_said_in_plain_words(
    pg: Server, demo: Path, before: str, after: str, words: str
):
    pg.run(before)
    seen = without_table(pg)
    assert words in seen.err and str(pg.folder) not in seen.err
    pg.run(after or "SELECT 1")


def test_a_table_that_is_there_is_left_as_it_is(pg: Server, demo: Path):
    pg.run("CREATE TABLE census.people (x int); INSERT INTO census.people VALUES (7)")
    seen = run(*PLACE)
    assert "exists already" in seen.err and not Path("demo/postgres.toml").exists()
    with pg.connect(BOSS) as boss:
        assert boss.execute("SELECT x FROM census.people").fetchall() == [(7,)]
    half = run(*PLACE[:-1], "people")
    assert half.status != 0 and "schema.name" in half.err
