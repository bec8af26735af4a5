"""The fence: what a server, a role or a table must be, and that nothing of a row or a key is in a text."""

import re
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable, is_remote
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.errors import EngineError, SourceError
from reticent.schema.codebook import schema_from
from tests.engine.conformance.cases import as_texts as poison
from tests.engine.conformance.cases import book, canonical, repairs, wants_of
from tests.engine.conformance.openers import stored
from tests.engine.conformance.server import BOSS, Server

fenced = pytest.importorskip(
    "reticent.engine.postgres.connection",
    reason="the driver of PostgreSQL is not installed",
    exc_type=ImportError,
)
SnapshotStream, UNREAD = fenced.SnapshotStream, fenced.UNREAD

SCHEMA = schema_from(
    {
        "survey": {"name": "s", "unit": "row", "at_most": 1},
        "columns": {
            "x": {"kind": "integer", "bounds": [0, 9]},
            "t": {"kind": "categorical", "levels": ["a", "b"]},
        },
    }
)
TOTAL = Sum(rows=Rows(), value="x", power=1)
PEOPLE = pa.table({"x": pa.array([1, 2, 3, None], pa.int64()), "t": ["a", "b", "SECRET7", None]})


def opened(relation: str, **more: Any) -> Any:
    return open_engine(RemoteTable(engine="postgres", relation=relation, service="tests", **more))


def test_a_table_of_a_service_is_read(pg: Server):
    engine = opened(stored(PEOPLE))
    engine.check(SCHEMA)
    assert engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL] == 6
    assert engine.version.startswith("postgresql ") and engine.files == ()
    engine.close()


def test_a_connection_of_the_curators_own_is_read_and_left_open(pg: Server):
    from reticent import Survey

    connection = pg.connect()
    engine = Survey(connection, codebook={}, table=stored(PEOPLE)).open()
    assert engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL] == 6
    engine.close()
    assert not connection.closed
    connection.close()


def refused(pg: Server, relation: str, word: str, user: str | None = None) -> None:
    given = pg.connect(user) if user else None
    with pytest.raises(SourceError, match=word):
        opened(relation, given=given)
    if given is not None:
        given.close()


def test_what_a_release_may_not_rest_on_is_refused(pg: Server):
    """A role that may write, a superuser, a view, row security, a table that is not there, half a name."""
    name = stored(PEOPLE)
    refused(pg, name, "can only SELECT", BOSS)
    pg.run(f"CREATE VIEW people.seen AS SELECT * FROM {name}")
    refused(pg, "people.seen", "is no table")
    refused(pg, "people.nobody", "has no table")
    refused(pg, "nobody", "schema.name")
    refused(pg, 'people.x"; DROP TABLE t0; --', "has no table")
    pg.run(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    refused(pg, name, "row security")
    other = stored(PEOPLE)
    pg.run(f"GRANT UPDATE ON {other} TO reader")
    refused(pg, other, "can only SELECT")
    pg.run(f"REVOKE ALL ON {other} FROM reader")
    refused(pg, other, "grant SELECT")
    third = stored(PEOPLE)
    pg.run(f"GRANT UPDATE (x) ON {third} TO reader")
    refused(pg, third, "can only SELECT")


def test_a_part_on_another_server_is_refused(pg: Server):
    """A foreign table below a partitioned one is in no snapshot of this server."""
    pg.run(
        "CREATE TABLE people.whole (x bigint, t text) PARTITION BY LIST (t); GRANT SELECT ON people.whole TO reader;"
        "CREATE TABLE people.here PARTITION OF people.whole FOR VALUES IN ('a')"
    )
    try:
        opened("people.whole").close()
        pg.run(
            "CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;"
            "CREATE FOREIGN TABLE people.there PARTITION OF people.whole FOR VALUES IN ('b') SERVER nowhere"
        )
        refused(pg, "people.whole", "another server")
    finally:
        pg.run("DROP TABLE people.whole CASCADE; DROP FOREIGN DATA WRAPPER IF EXISTS nothing CASCADE")


def test_a_type_that_only_has_the_name_of_one_is_not_read(pg: Server):
    """Nor an enumeration with a cast of somebody's: a function of theirs would run for every row."""
    pg.run(
        "CREATE SCHEMA planted; CREATE TYPE planted.text AS (a int); CREATE TYPE people.kind AS ENUM ('a', 'b');"
        "CREATE TYPE people.cast_kind AS ENUM ('a', 'b');"
        "CREATE FUNCTION people.told(people.cast_kind) RETURNS text LANGUAGE sql AS $$ SELECT 'b' $$;"
        "CREATE CAST (people.cast_kind AS text) WITH FUNCTION people.told(people.cast_kind)"
    )
    try:
        with pg.connect() as naive:
            assert naive.execute("SELECT CAST('a'::people.cast_kind AS text)").fetchone() == ("b",)
        pg.run(
            "CREATE TABLE people.odd (x bigint, a planted.text, t people.kind, c people.cast_kind);"
            "GRANT SELECT ON people.odd TO reader; INSERT INTO people.odd VALUES (1, ROW(1), 'a', 'a')"
        )
        engine = opened("people.odd")
        assert dict(engine.types) == {"x": "integer", "a": "other", "t": "text", "c": "other"}
        assert engine.tally(SCHEMA, [CELLS]).tables[CELLS].cells == (1, 0, 0)
        engine.close()
    finally:
        pg.run(
            "DROP TABLE IF EXISTS people.odd; DROP SCHEMA planted CASCADE; DROP TYPE people.cast_kind CASCADE;"
            "DROP TYPE people.kind"
        )


def test_workers_of_the_server_change_nothing(pg: Server):
    """None and two of them, on a table that a plan is willing to share out."""
    schema, dice = book(), Random(4)
    name, wants = stored(poison(dice, 300)), wants_of(dice, schema)
    found = []
    for workers in (0, 2):
        pg.run(
            "; ".join(
                f"ALTER ROLE reader SET {setting}"
                for setting in (
                    f"max_parallel_workers_per_gather = {workers}",
                    "min_parallel_table_scan_size = 0",
                    "parallel_setup_cost = 0",
                    "parallel_tuple_cost = 0",
                )
            )
        )
        engine = opened(name)
        execute, plans = engine._execute, list[str]()

        def explained(
            statement: str, *more: Any, execute: Any = execute, plans: Any = plans, **named: Any
        ) -> Any:
            if statement.startswith("SELECT") and "COALESCE(SUM" in statement:
                plans += [line for (line,) in execute(f"EXPLAIN {statement}")]
            return execute(statement, *more, **named)

        engine._execute = explained
        found.append(
            [
                canonical(engine.tally(schema, wants, repairs(dice, schema)[each]))
                for each in ("none", "capped")
            ]
        )
        assert any("Gather" in line for line in plans) == (workers > 0)
        engine.close()
    pg.run("ALTER ROLE reader RESET ALL")
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "source", ["postgres:", "postgres:a b", "postgres:host=evil", "postgres://evil/x", "postgres:x'"]
)
def test_a_plan_names_a_service_and_no_host(source: str):
    assert not is_remote(source) and is_remote("postgres:census")


def test_a_planted_function_is_not_met(pg: Server):
    """With the usual search path `abs` of another schema would be taken (the naive twin)."""
    pg.run(
        "CREATE FUNCTION people.abs(double precision) RETURNS double precision LANGUAGE sql AS 'SELECT 666::double precision';"
        "ALTER ROLE reader SET search_path = people, pg_catalog"
    )
    try:
        frame = pa.table({"x": pa.array([5.0, 2.5]), "t": ["a", "b"]})
        with pg.connect() as naive:
            assert naive.execute("SELECT abs((-5)::double precision)").fetchone() == (666.0,)
        engine = opened(stored(frame))
        assert engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL] == 5
        engine.close()
    finally:
        pg.run("ALTER ROLE reader RESET search_path; DROP FUNCTION people.abs(double precision)")


def test_both_statements_see_the_same_rows(pg: Server):
    """A writer in between changes nothing; under READ COMMITTED, the naive twin, it would."""
    name = stored(PEOPLE)
    engine = opened(name)
    before = engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL]
    with pg.connect() as naive:
        seen = naive.execute(f"SELECT count(*) FROM {name}").fetchone()
        pg.run(f"INSERT INTO {name} VALUES (9, 'a')")
        assert naive.execute(f"SELECT count(*) FROM {name}").fetchone() != seen
    assert engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL] == before
    engine.close()


CELLS = Table(rows=Rows(), keys=(Key(column="t", silent=True),))


def test_a_stream_is_of_the_same_rows_as_the_statements_before_it(pg: Server):
    """The second connection is in the snapshot of the first. One of its own, the naive twin, sees what was written since."""
    pytest.importorskip("adbc_driver_postgresql", reason="ADBC's driver is not installed")
    name = stored(PEOPLE)
    engine = opened(name)
    engine.tally(SCHEMA, [TOTAL])
    pg.run(f"INSERT INTO {name} VALUES (9, 'a'), (9, 'a')")
    assert engine.tally(SCHEMA, [CELLS]).tables[CELLS].cells == (1, 1, 2)
    assert engine._second is not None
    naive = SnapshotStream.opened("tests", str(engine._execute("SELECT pg_export_snapshot()")[0][0]), {})
    assert naive is not None
    counted = f"SELECT count(*) FROM {name}"
    naive._connection.rollback()
    assert [block.tolist() for block in naive.batches(counted, 1, 8)] == [[[6]]]
    assert [block.tolist() for block in engine._second.batches(counted, 1, 8)] == [[[4]]]
    naive.close()
    engine.close()


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9, 40])
def test_both_streams_give_the_same_words_a_batch_at_a_time(
    pg: Server, monkeypatch: pytest.MonkeyPatch, rows: int
):
    """By Arrow and by COPY, with batches of eight rows: every number once, in order, the extreme ones too."""
    monkeypatch.setattr("reticent.engine.postgres.connection.BATCH", 8)
    engine = opened(stored(PEOPLE))
    statement = (
        f"SELECT g::bigint AS a, (9223372036854775807 - g)::bigint AS b FROM generate_series(1, {rows}) g"
    )
    expected = [[n for n in range(1, rows + 1)], [2**63 - 1 - n for n in range(1, rows + 1)]]
    for no_second in (False, True):
        engine._no_second = no_second
        blocks = list(engine.stream(statement, 2))
        joined = [[cell for block in blocks for cell in block[side].tolist()] for side in range(2)]
        assert joined == expected
        assert not no_second or all(block.shape[1] <= 8 for block in blocks)
    assert engine.tally(SCHEMA, [TOTAL]).statistics[TOTAL] == 6  # the connection goes on
    engine.close()


@pytest.mark.parametrize("no_second", [False, True])
def test_a_stream_that_fails_is_told_in_one_text_and_nothing_more_is_read(pg: Server, no_second: bool):
    engine = opened(stored(PEOPLE))
    engine._no_second = no_second
    with pytest.raises(EngineError) as problem:
        list(engine.stream("SELECT 1 / (g - 5000) AS a FROM generate_series(1, 9000) g", 1))
    assert str(problem.value) == f"source: {UNREAD}" and problem.value.__cause__ is None
    with pytest.raises(EngineError):
        engine.tally(SCHEMA, [TOTAL])
    engine.close()


def test_a_server_that_answers_another_isolation_is_refused(pg: Server, monkeypatch: pytest.MonkeyPatch):
    engine = opened(stored(PEOPLE))
    execute = engine._execute

    def lying(statement: str, *more: Any, **named: Any) -> Any:
        return [("read committed",)] if statement.startswith("SHOW") else execute(statement, *more, **named)

    monkeypatch.setattr(engine, "_execute", lying)
    with pytest.raises(EngineError, match="snapshot"):
        engine.tally(SCHEMA, [TOTAL])
    engine.close()


def test_no_cell_and_no_key_is_in_the_servers_log(pg: Server):
    """All statements are logged here: of rows and keys nothing is found, of our statements something is."""
    key = "0123456789abcdef" * 4
    table = poison(Random(5), 60).append_column("extra", pa.array(["SECRET7"] * 60))
    schema, before = book(), len(pg.log)
    engine = opened(stored(table, {"extra": "text"}))
    before = len(pg.log)
    lot = Lot(key=key, first=0, last=2**59, chance=True)
    engine.tally(schema, wants_of(Random(5), schema), repairs(Random(5), schema)["capped"], lot)
    engine.close()
    said = pg.log[before:]
    assert (
        "people_" in said
        and key not in said
        and "SECRET7" not in said
        and "DROP TABLE people; --" not in said
    )


def test_no_larger_than_the_codebook(pg: Server):
    """Ten times the rows bring the same number of bytes, streams of words aside, within digits of the counts."""
    schema, wants = book(), [Sum(rows=Rows(answered=("age",)), value="age", power=2)]
    wants.append(Table(rows=Rows(), keys=(Key(column="few", silent=True),)))  # type: ignore[arg-type]
    found = []
    for rows in (100, 1000):
        engine = opened(stored(poison(Random(rows), rows)))
        start = engine.received
        for repair in ("none", "capped"):
            engine.tally(schema, wants, repairs(Random(1), schema)[repair])
        found.append(engine.received - start)
        assert (
            0 < engine.streamed <= 8 * 4 * 2**16
        )  # one batch, or one lot of so few records, a few words a row
        engine.close()
    assert found[1] < 2 * found[0] + 100


def test_every_function_and_cast_of_a_statement_is_allowed(pg: Server, monkeypatch: pytest.MonkeyPatch):
    """No TRY_CAST, which the printer would make a plain cast, and no name that is not on the list."""
    allowed = {
        *(
            "abs",
            "array_agg",
            "array_position",
            "btrim",
            "case",
            "cast",
            "coalesce",
            "convert_to",
            "count",
            "dense_rank",
            "div",
        ),
        *(
            "encode",
            "exists",
            "floor",
            "greatest",
            "least",
            "left",
            "length",
            "max",
            "nullif",
            "octet_length",
            "over",
            "regexp_replace",
        ),
        *(
            "round",
            "row_number",
            "sha256",
            "split_part",
            "substr",
            "sum",
            "in",
            "and",
            "or",
            "not",
            "as",
            "then",
            "when",
            "else",
        ),
        *(
            "from",
            "where",
            "select",
            "filter",
            "decimal",
            "bit",
            "by",
            "on",
            "values",
            "is",
            "between",
            "all",
            "array",
            "drop",
        ),
    }
    schema, texts = book("pid", 2), list[str]()
    engine = opened(stored(poison(Random(2), 40)))
    execute, stream = engine._execute, engine.stream
    monkeypatch.setattr(
        engine, "_execute", lambda text, *a, **k: (texts.append(text), execute(text, *a, **k))[1]
    )
    monkeypatch.setattr(engine, "stream", lambda text, n: (texts.append(text), stream(text, n))[1])
    lot = Lot(key="ab", first=0, last=30)
    for repair in repairs(Random(2), schema).values():
        engine.tally(schema, wants_of(Random(2), schema), repair, lot)
    engine.close()
    bare = [re.sub(r"'(?:[^']|'')*'|\"[^\"]*\"", "", text) for text in texts]
    called = {name.lower() for text in bare for name in re.findall(r"([A-Za-z_][A-Za-z_0-9]*)\s*\(", text)}
    assert len(texts) > 40 and called - allowed - {"set_config", "secrets_", "join", "using"} == set()
    assert not [text for text in bare if "TRY_CAST" in text.upper()]
