"""A tally is what one would count by hand: for every source, every order of rows, every number of threads."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import Source, open_frame, open_path
from reticent.engine.sql.clean import needed
from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.schema import Schema
from reticent.schema.bind import CodeIn
from reticent.schema.codebook import schema_from
from tests.engine import slow
from tests.engine.opening import open_any
from tests.engine.slow import Raw

pytestmark = pytest.mark.usefixtures("every_engine")

COLUMNS: dict[str, dict[str, Any]] = {
    "region": {"kind": "categorical", "levels": ["east", 'it\'s "new"', "süd"]},
    "vote": {"kind": "categorical", "levels": ["false", "true"]},
    "rooms": {"kind": "ordinal", "levels": ["1", "2", "3"], "missing_codes": ["9"]},
    "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9"]},
    "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 15"},
    "hours": {"kind": "integer", "bounds": [0, 80], "grid": 5, "universe": "job = 'yes'"},
    "income": {"kind": "decimal", "bounds": ["-100", "1000"], "grid": "0.5", "universe": "age >= 15"},
    "weight": {"kind": "decimal", "bounds": ["0", "3"], "grid": "0.01", "role": "weight"},
}


def book(unit: str = "row", at_most: int = 1) -> Schema:
    columns = dict(COLUMNS) if unit == "row" else {unit: {"kind": "identifier"}, **COLUMNS}
    return schema_from({"survey": {"name": "s", "unit": unit, "at_most": at_most}, "columns": columns})


def some_people(dice: Random, count: int) -> list[Raw]:
    """Records that fit, that do not, and that are silent. Children hold answers nobody asked for."""

    def maybe(value: object) -> object:
        return None if dice.random() < 0.15 else value

    return [
        {
            "pid": dice.choice(["", " ", None, *(f"p{i}" for i in range(count // 3 + 1))]),
            "region": maybe(dice.choice(["east", 'it\'s "new"', "süd", "Ost", "EAST", " east"])),
            "vote": maybe(dice.random() < 0.5),
            "rooms": maybe(dice.choice([1, 2, 3, 4, 9])),
            "age": maybe(dice.choice([-9, -1, 0, 3, 14, 15, 16, 40, 64, 99, 120])),
            "job": maybe(dice.choice(["yes", "no"])),
            "hours": maybe(dice.randint(-2, 100)),
            "income": maybe(Fraction(dice.randint(-900, 8800), 8)),
            "weight": maybe(Fraction(dice.randint(-10, 350), 100)),
        }
        for _ in range(count)
    ]


# --- the same people in every kind of source ---------------------------------------------------------------------------

TEXT = ("pid", "region", "job")


def _arrow(people: list[Raw], *, numbers: str, words: pa.DataType, truths: pa.DataType) -> pa.Table:
    """The people with their numbers as exact, floating or decimal."""
    exact = {"rooms": pa.int8(), "age": pa.int16(), "hours": pa.int64(), "income": pa.float64()}
    exact["weight"] = pa.decimal128(7, 2)
    kinds = {
        "exact": exact,
        "wide": {
            **exact,
            "rooms": pa.int32(),
            "age": pa.int64(),
            "hours": pa.int32(),
            "weight": pa.float64(),
        },
        "floating": dict.fromkeys(exact, pa.float64()),
        "decimal": {**dict.fromkeys(exact, pa.decimal128(12, 3)), "rooms": pa.int64()},
        "broad": {**dict.fromkeys(exact, pa.decimal128(38, 6)), "rooms": pa.int64()},
    }[numbers]
    columns = {name: pa.array([p[name] for p in people], pa.string()).cast(words) for name in TEXT}
    columns["vote"] = pa.array([p["vote"] for p in people], pa.bool_()).cast(truths)
    for name, kind in kinds.items():
        columns[name] = pa.array([_stored(p[name], kind) for p in people], kind)
    return pa.table(columns)


def _stored(value: Any, kind: pa.DataType) -> Any:
    if value is None or pa.types.is_integer(kind):
        return value
    if pa.types.is_floating(kind):
        return float(value)
    return Decimal(Fraction(value).numerator) / Fraction(value).denominator


def _written(value: object) -> str:
    """As somebody would type it; nothing where nobody answered."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(float(value)) if isinstance(value, Fraction) else str(value)


def _texts(people: list[Raw]) -> pa.Table:
    return pa.table({name: pa.array([_written(p[name]) for p in people]) for name in people[0]})


def native(people: list[Raw]) -> pa.Table:
    return _arrow(people, numbers="exact", words=pa.string(), truths=pa.bool_())


def _parquet(table: pa.Table, folder: Path) -> Source:
    pq.write_table(table, folder / "people.parquet", row_group_size=17)
    return open_path(str(folder / "people.parquet"))


def _csv(people: list[Raw], folder: Path) -> Source:
    lines = [",".join(people[0])]
    for p in people:
        quoted = (_written(value).replace('"', '""') for value in p.values())
        lines.append(",".join(f'"{text}"' for text in quoted))
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return open_path(str(folder / "people.csv"))


def _database(people: list[Raw], folder: Path) -> Source:
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        table = native(people)
        connection.register("given", table)
        connection.execute('CREATE TABLE "the people" AS SELECT * FROM given')
    return open_path(str(folder / "people.duckdb"), table="the people")


def _objects(people: list[Raw]) -> pd.DataFrame:
    held = [{k: float(v) if isinstance(v, Fraction) else v for k, v in p.items()} for p in people]
    return pd.DataFrame(held, dtype=object)


DICTIONARY = pa.dictionary(pa.int8(), pa.string())
SOURCES: dict[str, Callable[[list[Raw], Path], Source]] = {
    "parquet": lambda p, f: _parquet(native(p), f),
    "parquet, wide": lambda p, f: _parquet(
        _arrow(p, numbers="wide", words=pa.large_string(), truths=pa.bool_()), f
    ),
    "parquet, floating": lambda p, f: _parquet(
        _arrow(p, numbers="floating", words=pa.string(), truths=pa.bool_()), f
    ),
    "parquet, dictionary, decimal": lambda p, f: _parquet(
        _arrow(p, numbers="decimal", words=DICTIONARY, truths=pa.string()), f
    ),
    "parquet, broad decimal": lambda p, f: _parquet(
        _arrow(p, numbers="broad", words=pa.string(), truths=pa.bool_()), f
    ),
    "parquet, text": lambda p, f: _parquet(_texts(p), f),
    "arrow": lambda p, f: open_frame(native(p)),
    "arrow, dictionary": lambda p, f: open_frame(
        _arrow(p, numbers="wide", words=DICTIONARY, truths=pa.bool_())
    ),
    "pandas": lambda p, f: open_frame(native(p).to_pandas()),
    "pandas, floating": lambda p, f: open_frame(
        _arrow(p, numbers="floating", words=DICTIONARY, truths=pa.bool_()).to_pandas()
    ),
    "pandas, objects": lambda p, f: open_frame(_objects(p)),
    "polars": lambda p, f: open_frame(pl.from_arrow(native(p))),
    "csv": _csv,
    "duckdb": _database,
}


@contextmanager
def opened(source: Source, threads: int = 2) -> Iterator[CuratorEngine]:
    engine = open_any(source, threads=threads)
    try:
        yield engine
    finally:
        engine.close()


def by_hand(schema: Schema, people: list[Raw], wants: list[Sum | Table]) -> list[object]:
    sums, tables = ([w for w in wants if isinstance(w, kind)] for kind in (Sum, Table))
    rows = {
        kind: slow.clean(schema, people, needed(schema, of)) for kind, of in ((Sum, sums), (Table, tables))
    }
    return [
        slow.add_up(w, rows[Sum]) if isinstance(w, Sum) else slow.tabulate(w, rows[Table], schema)
        for w in wants
    ]


def tallied(engine: CuratorEngine, schema: Schema, wants: list[Sum | Table]) -> list[object]:
    found = engine.tally(schema, wants)
    return [found.statistics[w] if isinstance(w, Sum) else found.tables[w].cells for w in wants]


def some_wants(dice: Random, schema: Schema) -> list[Sum | Table]:
    return [slow.some_sum(dice, schema) for _ in range(16)] + [
        slow.some_table(dice, schema) if dice.random() < 0.5 else slow.some_domain_sum(dice, schema)
        for _ in range(16)
    ]


# --- every source equals the slow count --------------------------------------------------------------------------------


# covers B018 B019 B039 B056 B057 B069 B076 B077
@pytest.mark.parametrize("unit", [("row", 1), ("pid", 1), ("pid", 2)], ids=["row", "one", "two"])
@pytest.mark.parametrize("kind", SOURCES)
def test_a_tally_is_what_one_counts_by_hand(kind: str, unit: tuple[str, int], tmp_path: Path):
    """Codes, universes two deep, bounded owners, weights, bins, steps and silent cells; 60 people, 32 wants."""
    schema = book(*unit)
    dice = Random(f"{kind} {unit}")
    people, wants = some_people(dice, 60), some_wants(dice, schema)
    with opened(SOURCES[kind](people, tmp_path)) as engine:
        engine.check(schema)
        assert tallied(engine, schema, wants) == by_hand(schema, people, wants)


def test_a_cell_of_people_without_a_value_sums_to_zero():
    """Silence in what is summed adds nothing and fails nothing, in a cell of its own or beside others."""
    schema = book()
    silent = dict.fromkeys(some_people(Random(2), 1)[0])
    people: list[Raw] = [
        {**silent, "region": "east"},
        {**silent, "region": "süd", "age": 40},
        {**silent, "region": "süd"},
    ]
    want = Sum(rows=Rows(), value="age", power=2).by((Key(column="region", silent=True),))
    with opened(open_frame(native(people))) as engine:
        assert engine.tally(schema, [want]).tables[want].cells == (0, 0, 1600, 0)


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow"])
def test_nobody_and_nothing_are_counted_too(kind: str, tmp_path: Path):
    """No person at all (B068), and people who answered nothing (B069)."""
    schema, dice = book(), Random(1)
    wants = some_wants(dice, schema)
    silent: list[Raw] = [dict.fromkeys(some_people(dice, 1)[0])] * 3
    for people in ([], silent):
        frame = native(people or silent).slice(0, len(people))
        source = open_frame(frame) if kind == "arrow" else _parquet(frame, tmp_path)
        if kind == "csv":
            source = _csv(people or silent, tmp_path)
            text = (tmp_path / "people.csv").read_text(encoding="utf-8").splitlines(keepends=True)
            (tmp_path / "people.csv").write_text("".join(text[: len(people) + 1]), encoding="utf-8")
        with opened(source) as engine:
            assert tallied(engine, schema, wants) == by_hand(schema, people, wants)


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.uint32(), pa.uint64()], ids=str
)
def test_bounds_beyond_a_narrow_type_and_values_beyond_a_wide_one_are_held(kind: pa.DataType, tmp_path: Path):
    """The type of a column neither wraps a bound nor lets a value past it."""
    columns = {"x": {"kind": "integer", "bounds": [-1000, 100_000]}}
    schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})
    top = 2 ** (kind.bit_width - str(kind).startswith("int")) - 1
    values = [0, 1, top, top, None, 100 if top > 100 else 1]
    pq.write_table(pa.table({"x": pa.array(values, kind)}), tmp_path / "x.parquet")
    want = Sum(rows=Rows(answered=("x",)), value="x", power=2)
    with opened(open_path(str(tmp_path / "x.parquet"))) as engine:
        expected = sum(min(value, 100_000) ** 2 for value in values if value is not None)
        assert engine.tally(schema, [want]).statistics[want] == expected


def test_a_child_not_asked_about_work_is_not_asked_for_hours(tmp_path: Path):
    """Not asked passes down; not known does not."""
    schema = book()
    child = {**dict.fromkeys(COLUMNS), "pid": None, "age": 9, "job": "yes", "hours": 20}
    unknown = {**child, "age": None, "job": None}
    expected = {"answered": (0, 1), "missing": (0, 0), "structural": (1, 0)}
    for kind, numbers in expected.items():
        for person, number in zip((child, unknown), numbers, strict=True):
            want = Sum(rows=Rows(where=slow.Is("hours", kind)))  # type: ignore[arg-type]
            with opened(_parquet(native([person]), tmp_path)) as engine:
                assert engine.tally(schema, [want]).statistics[want] == number, (kind, person)


@pytest.mark.parametrize("grid", ["1", "0.5", "0.01", "0.001", "2.5", "0.0001"])
def test_text_rounds_to_the_grid_exactly_however_long_it_is(grid: str, tmp_path: Path):
    """Up to twelve decimals, near and at the halves of the grid, inside the bounds and beyond."""
    columns = {"x": {"kind": "decimal", "bounds": ["-10", "10"], "grid": grid}}
    schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})
    dice, texts = Random(grid), []
    for digits in range(13):
        half = Decimal(dice.randint(-50, 50)) * Decimal(grid) / 2
        tiny = Decimal(dice.choice([-1, 0, 1])).scaleb(-digits)
        texts += [f"{half + tiny:f}", f"+{abs(half)}", f" {half * 10**digits:f} ", f"{half:.{digits}f}"]
    codes = [slow.code_of(schema.coded["x"], Fraction(text.strip())) for text in texts]
    want = Table(rows=Rows(), keys=(Key(column="x", step=1),))
    with opened(open_frame(pa.table({"x": texts}))) as engine:
        cells = engine.tally(schema, [want]).tables[want].cells
    low = schema.coded["x"].low
    assert {low + place: count for place, count in enumerate(cells) if count} == Counter(codes)


def test_many_levels_are_found_by_halving(tmp_path: Path):
    """More levels than are compared one by one; words and numbers sort differently."""
    levels = [str(i) for i in range(-150, 150)]
    dice = Random(3)
    dice.shuffle(levels)
    columns = {"x": {"kind": "categorical", "levels": levels}}
    schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})
    values = [dice.randint(-170, 170) for _ in range(500)]
    want = Table(rows=Rows(), keys=(Key(column="x", silent=True),))
    expected = [values.count(int(level)) for level in levels]
    expected.append(len(values) - sum(expected))
    for array in (pa.array(values), pa.array(values, pa.float64()), pa.array(map(str, values))):
        with opened(_parquet(pa.table({"x": array}), tmp_path)) as engine:
            assert list(engine.tally(schema, [want]).tables[want].cells) == expected


# --- order, threads and passes ------------------------------------------------------------------------------------------


# covers T03
def test_no_order_of_rows_and_no_number_of_threads_changes_a_bit(tmp_path: Path):
    """5,000 times sixty people in row groups of 20,000: exactly 5,000 times their tally, however it is read."""
    schema, dice = book(), Random(4)
    people, wants = some_people(dice, 60), some_wants(dice, schema)
    once = by_hand(schema, people, wants)
    many = [x * 5000 if isinstance(x, int) else tuple(c * 5000 for c in x) for x in once]  # type: ignore[attr-defined]
    places = list(range(60)) * 5000
    for threads in (1, 2, 4):
        table = native(people).take(pa.array(places))
        pq.write_table(table, tmp_path / "many.parquet", row_group_size=20_000)
        with opened(open_path(str(tmp_path / "many.parquet")), threads) as engine:
            assert tallied(engine, schema, wants) == many
        dice.shuffle(places)


def test_which_records_of_an_owner_count_does_not_depend_on_their_order(tmp_path: Path):
    """An owner of more records than count keeps the same ones in any order of the file."""
    schema, dice = book("pid", 2), Random(5)
    people, wants = some_people(dice, 90), some_wants(dice, schema)
    found = []
    for _ in range(4):
        with opened(_parquet(native(people), tmp_path)) as engine:
            found.append(tallied(engine, schema, wants))
        dice.shuffle(people)
    assert found == [found[0]] * 4


class Counting:
    """A connection that counts the statements it runs."""

    def __init__(self, connection: Any) -> None:
        self.connection, self.statements = connection, 0

    def execute(self, *given: Any) -> Any:
        self.statements += 1
        return self.connection.execute(*given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def all_at_once(engine: CuratorEngine, schema: Schema, wants: list[Sum | Table]) -> None:
    engine.tally(schema, wants)


def one_by_one(engine: CuratorEngine, schema: Schema, wants: list[Sum | Table]) -> None:
    for want in wants:
        engine.tally(schema, [want])


def test_the_file_is_read_as_often_for_a_hundred_asks_as_for_two(tmp_path: Path):
    """Two statements whatever is wanted; the naive way, a statement an ask, shows."""
    schema, dice = book(), Random(6)
    source = _parquet(native(some_people(dice, 20)), tmp_path)

    def statements(tally: Callable[..., None], count: int) -> int:
        wants = [Sum(rows=Rows(where=CodeIn("age", ((i, 99),)))) for i in range(count)]
        tables = [
            Table(rows=Rows(where=CodeIn("age", ((i, 99),))), keys=(Key(column="job"),)) for i in range(count)
        ]
        with opened(source) as engine:
            engine._connection = counting = Counting(engine._connection)
            tally(engine, schema, [*wants, *tables])
        return counting.statements

    assert [statements(all_at_once, count) for count in (1, 10, 50)] == [2, 2, 2]
    assert [statements(one_by_one, count) for count in (1, 10)] == [2, 20]


def test_the_slow_count_rejects_the_obvious_clamp():
    """`least(greatest(x, 0), 99)` forgets that nobody answered: NULL becomes a number."""
    ages = [40, None, 120]
    schema = book()
    by_rule = [slow.code_of(schema.coded["age"], age) for age in ages]
    naive = duckdb.execute(
        "SELECT list(least(greatest(a, 0), 99)) FROM unnest([40, NULL, 120]) t(a)"
    ).fetchall()[0]
    assert naive[0] != [code if isinstance(code, int) else None for code in by_rule]
