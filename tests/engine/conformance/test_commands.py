"""The commands on a table of a server and on a cluster: draft, open, check, missing and release say what they say of a file."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from reticent.errors import PlanError
from reticent.lab import elsewhere
from reticent.lab.demo import demo_survey
from tests.badinput.house import House, run
from tests.engine.conformance.openers import OPENERS, REMOTE, stored
from tests.engine.conformance.server import BOSS, server
from tests.engine.spark.sessions import small_session

BROKEN = ["SECRET7,x,f,1", ",300.5,m,", "44,1e400,other,2.25", "-3,\u00a012,,1.25"]


def placed(engine: str, table: pa.Table, folder: Path) -> tuple[str, str]:
    """What a plan writes as source and relation, once the rows are there."""
    if engine == "postgres":
        return "postgres:tests", stored(table)
    small_session()
    pq.write_table(table, folder / "people.parquet")
    return "spark", str(folder / "people.parquet")


@pytest.fixture(params=REMOTE)
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[House, str, str]:
    """A house whose rows are in a file, and where else they are."""
    if why := OPENERS[request.param].why_not():
        pytest.skip(why)
    house = House(tmp_path)
    with open(house.rows, "a", encoding="utf-8") as file:
        file.write("\n".join([*BROKEN, ""]))
    texts = {name: pa.string() for name in ("age", "rent", "sex", "weight")}
    given = pa_csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=[""])
    return house, *placed(request.param, pa_csv.read_csv(house.rows, convert_options=given), tmp_path)


def test_the_commands_say_of_a_table_what_they_say_of_a_file(moved: Any):
    house, source, relation = moved
    of_file = {name: run(name, str(house.plan)).out for name in ("check", "missing")}
    house.edit('source = "rows.csv"', f'source = "{source}"\nrelation = "{relation}"')
    for name, said in of_file.items():
        seen = run(name, str(house.plan))
        assert seen.status == 0 and _without_place(seen.out) == _without_place(said)
    drafted = run("codebook", "draft", source, "--relation", relation)
    assert drafted.status == 0 and all(f"[columns.{name}]" in drafted.out for name in ("age", "rent", "sex"))
    made = house.release()
    assert made.status == 0 and "SECRET7" not in made.out + made.err
    found = json.loads((house.out / "town-1.json").read_text())
    assert found["receipt"]["charged"] == "20" and house.spent == 20
    assert "SECRET7" not in json.dumps(found)


def _without_place(text: str) -> list[str]:
    """The lines that are about rows."""
    return [line for line in text.splitlines() if "rows.csv" not in line and "relation" not in line]


def test_a_ledger_is_opened_for_a_table_by_its_fingerprint(moved: Any):
    """The same rows in a file and in a table: the second ledger is told to the curator."""
    # covers L13
    house, source, relation = moved
    house.edit("town.ledger.db", "one.db")
    opened = run("ledger", "open", "--plan", str(house.plan), "--epsilon", "9", "--separate-budget")
    assert opened.status == 0
    house.edit('source = "rows.csv"', f'source = "{source}"\nrelation = "{relation}"')
    house.edit("one.db", "two.db")
    second = run("ledger", "open", "--plan", str(house.plan), "--epsilon", "9", "--separate-budget")
    assert second.status == 0 and 'one.db, for "town-2026"' in second.out


@pytest.mark.parametrize("engine", REMOTE)
def test_the_demonstration_runs_elsewhere_as_its_pages_say(engine: str, tmp_path: Path):
    """The rows placed, the plan written, and checked: the file's findings."""
    if why := OPENERS[engine].why_not():
        pytest.skip(why)
    demo_survey(tmp_path, rows=400)
    if engine == "postgres":
        words = ["postgres", "owner", "tests", "people.demo"]
        server().serve("owner", server().service(BOSS))
        server().run("DROP TABLE IF EXISTS people.demo")
    else:
        small_session()
        words = ["spark"]
    elsewhere.main([str(tmp_path), *words])
    seen, of_file = (run("check", str(tmp_path / name)) for name in (f"{engine}.toml", "plan.toml"))
    assert seen.status == 0 and _without_place(seen.out) == _without_place(of_file.out)
    with pytest.raises(PlanError, match="OWNER READER"):
        elsewhere.main([str(tmp_path)])
