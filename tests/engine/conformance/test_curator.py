"""What `check`, `missing` and `ledger open` show the curator of a table is what they show of a file with its rows."""

from random import Random
from typing import Any

from reticent.engine.confidential import Look, inspect, look_tables, pattern_lines, patterns
from reticent.engine.wants import Key
from tests.engine.conformance.cases import TABLES, book


def test_findings_patterns_and_fingerprints(remote: Any, local: Any):
    schema, table = book(), TABLES["doubles"](Random(9), 80)
    here, there = local(table), remote(table)
    one, other = inspect(here, schema), inspect(there, schema)
    for mine, its in zip(one, other, strict=True):
        counts = ("column", "rows", "answered", "missing", "not_asked", "clamped", "unfit")
        assert [getattr(mine, name) for name in counts] == [getattr(its, name) for name in counts]
    names = ["age", "few", "job"]
    assert patterns(here, schema, names) == patterns(there, schema, names)
    assert sorted(pattern_lines(here, schema, ["age", "thirds"])) == sorted(
        pattern_lines(there, schema, ["age", "thirds"])
    )
    looks = [Look(given=Key(column="age", starts=(0, 30)), among=("few", "job"))]
    assert (look_tables(here, schema, looks)[0] == look_tables(there, schema, looks)[0]).all()
    assert here.fingerprint(schema) == there.fingerprint(schema)
