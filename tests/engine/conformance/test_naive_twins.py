"""What each engine does by itself, and why our words differ: statements that were only translated give other numbers, or raise."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from sqlglot import exp

from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable
from reticent.engine.sql.tallies import tables
from reticent.engine.wants import Key, Rows, Table
from reticent.prepare.repair import NO_REPAIR
from reticent.schema.codebook import schema_from
from tests.engine.conformance import server
from tests.engine.conformance.cases import LEVELS, book
from tests.engine.conformance.openers import OPENERS, stored
from tests.engine.spark import sessions

MANY = sorted({*LEVELS, *(f"{letter}{number}" for letter in "äéz_" for number in range(6))})


@pytest.fixture
def pg() -> Any:
    if why := server.why_not():
        pytest.skip(why)
    return server.server()


@pytest.fixture
def session() -> Any:
    if why := sessions.why_not():
        pytest.skip(why)
    return sessions.small_session()


def test_a_trim_of_one_argument_takes_other_blanks(local: Any):
    """DuckDB's takes U+00A0 away, which the others keep: 17 would be a number here and none there."""
    import duckdb

    (naive,) = duckdb.execute("SELECT trim('\u00a017') = '17'").fetchone() or ()
    assert naive
    schema, want = book(), Table(rows=Rows(), keys=(Key(column="thirds", starts=(0, 1), silent=True),))
    rows = pa.table({name: ["\u00a018"] if name == "thirds" else pa.nulls(1, pa.string()) for name in ALL})
    assert local(rows).tally(schema, [want]).tables[want].cells == (0, 0, 1)


ALL = ("many", "few", "letters", "age", "size", "fine", "far", "thirds", "job", "weight")


def test_a_cast_that_was_translated_raises(pg: Any):
    """Our printer's TRY_CAST would be a plain CAST there, and one cell would stop a release."""
    import psycopg

    naive = exp.TryCast(this=exp.Literal.string("1e-400"), to=exp.DataType.build("DOUBLE")).sql("postgres")
    assert naive.startswith("CAST(")
    with pg.connect() as connection, pytest.raises(psycopg.Error):
        connection.execute(f"SELECT {naive}")


def test_levels_are_lost_under_a_languages_order(pg: Any):
    """More than 32 levels are halved by `<`. A column ordered as a language orders words is read by its bytes all the same."""
    assert len(MANY) > 40
    schema = schema_from(
        {
            "survey": {"name": "s", "unit": "row", "at_most": 1},
            "columns": {"many": {"kind": "categorical", "levels": MANY}},
        }
    )
    want = Table(rows=Rows(), keys=(Key(column="many", silent=True),))
    name = stored(pa.table({"many": MANY}), {"many": 'text COLLATE "en-x-icu"'})
    engine: Any = open_engine(RemoteTable(engine="postgres", relation=name, service="tests"))
    said: list[str] = []
    plain = engine.stream
    engine.stream = lambda statement, columns: said.append(statement) or plain(statement, columns)
    cells = engine.tally(schema, [want]).tables[want].cells
    assert cells == (*[1] * len(MANY), 0)
    (statement,) = said
    naive = statement.replace(' COLLATE "C"', "")
    assert naive != statement
    found = [int(word) // 2 for block in engine.stream(naive, 1) for word in block[0]]
    assert found.count(len(MANY)) > 0
    engine.close()


def test_a_sum_without_ansi_wraps(session: Any):
    """Two of the largest whole numbers make -2; under our settings such a sum raises, and ours is of more digits."""
    naive = session.newSession()
    naive.conf.set("spark.sql.ansi.enabled", "false")
    assert naive.sql(f"SELECT sum(x) FROM VALUES ({2**63 - 1}L), ({2**63 - 1}L) t(x)").collect()[0][0] == -2


def test_the_engines_own_randomness_depends_on_partitions(session: Any):
    """So a part of a stage that is run again has other draws. Digests of labels are the same in any parts."""
    from pyspark.sql import functions as f

    rows = session.range(200)

    def sums(column: Any) -> list[float]:
        """By one and by eight parts."""
        drawn = [rows.repartition(parts, "id").select("id", column.alias("z")) for parts in (1, 8)]
        return [round(float(each.select(f.sum(each.z * each.id)).collect()[0][0]), 6) for each in drawn]

    one, other = sums(f.rand(7))
    assert one != other
    keyed = f.conv(f.substring(f.sha2(f.concat(f.lit("key"), rows.id.cast("string")), 256), 1, 8), 16, 10)
    one, other = sums(keyed.cast("bigint"))
    assert one == other


def test_grouping_sets_do_not_travel(session: Any):
    """Of 65 tables one each is more than Spark groups by at once; blocks count them all."""
    schema, dice = book(), Random(3)
    names = [name for name in ("many", "few", "letters", "job")]
    wants = [
        Table(
            rows=Rows(),
            keys=(Key(column=names[i % 4], silent=True), Key(column="age", starts=(0, 1 + i), silent=True)),
        )
        for i in range(65)
    ]
    table = pa.table({name: [dice.choice(["17", "a", "yes", None]) for _ in range(30)] for name in ALL})
    engine, local = (OPENERS[name].open(table) for name in ("spark", "local"))
    found, expected = (each.tally(schema, wants).tables for each in (engine, local))
    assert [found[want].cells for want in wants] == [expected[want].cells for want in wants]
    clean, rows = engine._clean(None, schema, schema.in_universe_order, NO_REPAIR)  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="GROUPING_SIZE_LIMIT"):
        engine._session.sql(engine.printed(tables(clean, rows, wants))).collect()  # type: ignore[attr-defined]
    engine.close()
    local.close()
