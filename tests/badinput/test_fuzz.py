"""Whatever somebody writes as a plan or a codebook: a value of ours, or an error of ours, and nothing else."""

import copy
import tempfile
import tomllib
from decimal import Decimal
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError, ReticentError, SchemaError
from reticent.plan.plan import Plan, plan_from, read_plan
from reticent.preview.preview import expectations
from reticent.release.statistics import wants_of
from reticent.schema import Schema
from reticent.schema.codebook import read_schema, schema_from
from tests.badinput.house import CODEBOOK, PLAN

GOOD_PLAN = tomllib.loads(PLAN, parse_float=Decimal)
GOOD_BOOK = tomllib.loads(CODEBOOK, parse_float=Decimal)
WORDS = [
    "survey", "source", "schema", "ledger", "release", "id", "title", "protect", "change", "epsilon", "delta",
    "statistic", "name", "query", "count", "mean", "total", "variance", "median", "quantile", "table", "proportion",
    "difference", "ratio", "where", "weight", "bins", "step", "at", "centre", "size", "missing", "interval",
    "level", "columns", "age", "rent", "sex", "kind", "levels", "bounds", "grid", "positions", "universe", "unit",
    "row", "format", "*", "1", "0", "-1", "0.5", "1e400", "nan", "age >= 18", "sex = 'f'", "not (", "f", "m",
    "one respondent added or removed", "integer", "decimal", "categorical", "ordinal", "identifier", "at_most",
    "expect", "rows", "design_effect", "role", "stratum", "source", "everybody", "complete", "available",
]  # fmt: skip

texts = st.sampled_from(WORDS) | st.text(max_size=8)
numbers = (
    st.integers(-(2**70), 2**70)
    | st.decimals(allow_nan=True, allow_infinity=True)
    | st.sampled_from([0, 1, -1, 2**53, 2**63, Decimal("1e400"), Decimal("1e-400"), Decimal("0.1")])
)
leaves = texts | numbers | st.booleans() | st.dates() | st.datetimes() | st.none()
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
tables = st.dictionaries(texts, values, max_size=5)
quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def places(table: object, at: tuple = ()) -> list[tuple]:
    """Every place in a nest of tables and lists."""
    found = [at] if at else []
    pairs = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, inner in pairs:
        found += places(inner, (*at, key))
    return found


def changed(table: dict, at: tuple, how: str, value: object) -> dict:
    """A copy with one place replaced, removed, or given a neighbour."""
    whole = copy.deepcopy(table)
    inner = whole
    for key in at[:-1]:
        inner = inner[key]
    if how == "replace":
        inner[at[-1]] = value
    elif how == "remove":
        del inner[at[-1]]
    elif isinstance(inner, dict):
        inner[str(value)[:20]] = value
    else:
        inner.insert(0, value)
    return whole


def edits(table: dict) -> st.SearchStrategy[dict]:
    """One or two small changes to something that works."""
    one = st.tuples(st.sampled_from(places(table)), st.sampled_from(["replace", "remove", "add"]), values)

    def apply(changes: list[tuple]) -> dict:
        whole = table
        for at, how, value in changes:
            try:
                whole = changed(whole, at, how, value)
            except (KeyError, IndexError, TypeError, AttributeError):
                continue  # the first change took the place away
        return whole

    return st.lists(one, min_size=1, max_size=2).map(apply)


def read(data: dict, book: dict) -> Plan | None:
    """A plan that can be previewed and wanted for, or None where it is refused in one printable line."""
    try:
        plan = plan_from(data, book)
        assert wants_of(plan) is not None and plan.cost > 0 and expectations(plan)
    except (PlanError, SchemaError) as problem:
        assert str(problem) and problem.status == 2
        return None
    assert isinstance(plan, Plan)
    return plan


def test_the_unchanged_plan_is_read():
    assert isinstance(read(GOOD_PLAN, GOOD_BOOK), Plan)


@quick
@given(tables | edits(GOOD_PLAN))
def test_any_table_as_a_plan(data):  # covers B090 B099 B100
    read(data, GOOD_BOOK)


@quick
@given(edits(GOOD_BOOK))
def test_any_change_to_the_codebook_under_a_plan(book):  # covers B088 B089 B090
    read(GOOD_PLAN, book)


@quick
@given(tables | edits(GOOD_BOOK))
def test_any_table_as_a_codebook(data):  # covers B088 B089 B090
    try:
        assert isinstance(schema_from(data), Schema)
    except (PlanError, SchemaError) as problem:
        assert str(problem)


SCRAPS = [
    b"[survey]", b"[[ask]]", b"=", b'"', b"'", b'"""', b"\n", b"[", b"]", b"{", b"}", b",", b"#", b"\\", b"\xff",
    b"1e9999", b"nan", b"2026-02-30", b"0x", b"1_", b"\0", b"\r", b"\xef\xbb\xbf", b"name", b".",
]  # fmt: skip
scraps = st.lists(st.sampled_from(SCRAPS), max_size=40).map(b"".join)


@st.composite
def cuts(draw, good: bytes) -> bytes:
    """A good file with a stretch replaced."""
    start = draw(st.integers(0, len(good)))
    end = draw(st.integers(start, min(len(good), start + 30)))
    return good[:start] + draw(scraps | st.binary(max_size=10)) + good[end:]


@quick
@given(st.binary(max_size=200) | scraps | cuts(PLAN.encode()), scraps | cuts(CODEBOOK.encode()))
def test_any_bytes_as_files(plan, book):  # covers B099 B100
    with tempfile.TemporaryDirectory() as folder:
        path, beside = Path(folder, "plan.toml"), Path(folder, "town.codebook.toml")
        path.write_bytes(plan)
        beside.write_bytes(book)
        for reader in (lambda: read_plan(path), lambda: read_schema(beside)):
            try:
                reader()
            except ReticentError as problem:
                assert problem.status == 2 and folder not in str(problem)
        beside.write_text(CODEBOOK)
        try:
            read_plan(path)
        except ReticentError as problem:
            assert problem.status == 2


@quick
@given(st.text(st.sampled_from("agesxrnt<>=!()'\" andornotbetwiusmg0189.,-\t\0é"), max_size=40))
def test_any_words_as_a_condition(words):  # covers B090 R13
    read(changed(GOOD_PLAN, ("statistic", 0, "query", "where"), "replace", words), GOOD_BOOK)
