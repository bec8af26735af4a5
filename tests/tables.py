"""Tiny surveys: a codebook, rows as dictionaries, a plan of every kind of ask, and the way through the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pyarrow as pa

from reticent.answer.parts import Answer
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import ContingencyTable, Key, Rows, SufficientStatistics, Sum, Table, Tallies
from reticent.noise.source import Noise
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan, plan_from
from reticent.plan.synth import Synth, SyntheticTables
from reticent.release.document import document
from reticent.release.release import Release
from reticent.release.run import Results
from reticent.release.statistics import StatisticsResult, evaluate, wants_of
from reticent.schema import Levels, Schema
from reticent.schema.bind import MISSING, STRUCTURAL, Absent, Cell, truth
from reticent.smallcells.cells import SmallCells

ADD = "one respondent added or removed"
REPLACE = "one respondent's answers replaced"
Row = Mapping[str, Any]
Book = dict[str, Any]

COLUMNS: Book = {
    "sex": {"kind": "categorical", "levels": ["f", "m", "x"]},
    "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": [-1]},
    "pay": {"kind": "decimal", "bounds": [-50, 150], "grid": "0.5", "universe": "age >= 15"},
    "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.25", "role": "weight"},
}

EVERY_KIND: list[dict[str, Any]] = [
    {"count": "*", "where": "sex = 'f'"},
    {"count": "*", "weight": "w"},
    {"total": "pay"},
    {"total": "pay", "where": "age >= 30", "weight": "w"},
    {"proportion": "pay > 20", "where": "sex in ('f', 'm')"},
    {"proportion": "sex = 'f'", "weight": "w"},
    {"mean": "age"},
    {"mean": "pay", "weight": "w", "centre": "20"},
    {"variance": "pay"},
    {"variance": "age", "weight": "w", "where": "not sex = 'x'"},
    {"median": "age", "step": "5"},
    {"quantile": "pay", "at": "0.25", "step": "10", "weight": "w"},
    {"table": ["sex"]},
    {"table": ["sex", "pay"], "bins": {"pay": [-50, 0, 50, 150]}, "weight": "w"},
]
DERIVED: list[dict[str, Any]] = [{"difference": ["ask 6", "ask 7"]}, {"ratio": ["ask 2", "ask 0"]}]


def book(columns: Book | None = None, *, unit: str = "row", at_most: int = 1, **survey: Any) -> Book:
    """A codebook; with another unit than the row, its identifier is added."""
    found = dict(COLUMNS if columns is None else columns)
    if unit != "row":
        found[unit] = {"kind": "identifier"}
    return {"survey": {"name": "tiny", "unit": unit, "at_most": at_most, **survey}, "columns": found}


def make_plan(
    queries: Sequence[Mapping[str, Any]],
    codebook: Book | None = None,
    *,
    change: str = ADD,
    epsilon: str = "1",
    release_id: str = "r1",
    asks: Mapping[int, Mapping[str, Any]] | None = None,
    repair: Sequence[Mapping[str, Any]] = (),
    in_rho: bool = False,
    **sections: Any,
) -> Plan:
    """A plan of statistics called "ask 0", "ask 1", ...; `asks` adds keys to some of them by place; `repair` are edits and
    imputations. With `in_rho` all amounts are of rho."""
    made = []
    for place, query in enumerate(queries):
        cost = {} if "difference" in query or "ratio" in query else {"epsilon": epsilon}
        made.append({"name": f"ask {place}", "query": dict(query), **cost, **(asks or {}).get(place, {})})
    data = {
        "survey": {"source": "rows.csv", "codebook": "codebook.toml", "ledger": "ledger.db"},
        "release": {"id": release_id},
        "protect": {"change": change, "epsilon": "1000", "accept_large": True},
        "statistic": made,
        **steps(repair),
        **sections,
    }
    if in_rho:
        data |= {"protect": {**renamed(data["protect"]), "measure": "zcdp"}, "statistic": renamed(made)}
    return plan_from(data, book() if codebook is None else codebook)


def renamed(told: Any) -> Any:
    """The same with rho for epsilon."""
    if isinstance(told, Mapping):
        return {"rho" if key == "epsilon" else key: renamed(each) for key, each in told.items()}
    return [renamed(each) for each in told] if isinstance(told, list) else told


def steps(repair: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Edits and imputations under the keys of a plan; an edit is what has an `if` or a `then`."""
    edits = [each for each in repair if {"if", "then"} & set(each)]
    imputes = [each for each in repair if each not in edits]
    return {**({"edit": edits} if edits else {}), **({"impute": imputes} if imputes else {})}


def every_plan(codebook: Book | None = None, *, change: str = ADD, **options: Any) -> Plan:
    """Every kind of ask in one plan: weighted and not, an error bar on one quantile, derived ones last."""
    bars = {11: {"interval": {"level": "0.9", "epsilon": "0.5"}}, 6: {"variance": None}}
    return make_plan(
        EVERY_KIND + DERIVED,
        codebook,
        change=change,
        asks={**bars, 7: {"size": {"weight": 40}}},
        expect={"rows": 40, "design_effect": "1.5"},
        **options,
    )


def arrow(rows: Sequence[Row], schema: Schema, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Rows as an Arrow table; text for levels and identifiers, doubles for numbers, unless said otherwise."""
    columns = {}
    for column in schema.columns.values():
        plain = (
            pa.float64() if column.name in schema.coded and not isinstance(column, Levels) else pa.string()
        )
        kind = (types or {}).get(column.name, plain)
        columns[column.source] = pa.array([row.get(column.name) for row in rows], type=kind)
    return pa.table(columns)


def tally(plan: Plan, table: pa.Table, *, threads: int = 1) -> Tallies:
    """Through the real engine."""
    engine = DuckDBEngine(open_frame(table), threads=threads)
    try:
        engine.check(plan.schema)
        return engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()


def answer(plan: Plan, rows: Sequence[Row], noise: Noise, **options: Any) -> dict[str, Answer]:
    """Every ask answered from rows, through the real engine."""
    return evaluate(plan, tally(plan, arrow(rows, plan.schema, **options)), noise)


def visible(plan: Plan, answers: Mapping[str, Answer]) -> bytes:
    """All that a reader would be given: the document and the table. The receipt is the ledger's business."""
    release = Release(
        document(plan, [StatisticsResult(plan=plan, answers=answers)], receipt={"entry": 2}, engine="engine")
    )
    return release.to_bytes() + release.to_csv()


# --- the same tallies in plain Python, for tables so many that the engine would be too slow ------------------------


def cells_of(row: Row, schema: Schema) -> dict[str, Cell]:
    """A row as codes. `row` holds codes already, None where nothing was answered."""
    found: dict[str, Cell] = {}
    for name in schema.in_universe_order:
        value, universe = row.get(name), schema.universe(name)
        found[name] = MISSING if value is None else int(value)
        if universe is not None and truth(universe, found) is False:
            found[name] = STRUCTURAL
    return found


def plain_tallies(plan: Plan, rows: Sequence[Row], *, wants: Sequence[Any] = ()) -> Tallies:
    """What the engine would say, written to be read. Rows hold codes; one row, one respondent."""
    schema, wants = plan.schema, wants or wants_of(plan)
    people = [cells_of(row, schema) for row in rows]
    sums = {want: _sum(want, people) for want in wants if isinstance(want, Sum)}
    tables = {want: _table(want, people, schema) for want in wants if isinstance(want, Table)}
    return Tallies(statistics=SufficientStatistics(sums=sums), tables=tables)


def _counts(rows: Rows, person: Mapping[str, Cell]) -> bool:
    known = all(person[name] is not MISSING for name in rows.known)
    answered = all(not isinstance(person[name], Absent) for name in rows.answered)
    return known and answered and truth(rows.where, person) is True


def _sum(want: Sum, people: Sequence[Mapping[str, Cell]]) -> int:
    total = 0
    for person in people:
        if _counts(want.rows, person):
            weight = int(person[want.weight]) if want.weight else 1  # type: ignore[arg-type]
            total += weight * (int(person[want.value]) ** want.power if want.value else 1)  # type: ignore[arg-type]
    return total


def _table(want: Table, people: Sequence[Mapping[str, Cell]], schema: Schema) -> ContingencyTable:
    sides = [range(key.size(schema)) for key in want.keys]
    cells = dict.fromkeys(product(*sides), 0)
    for person in people:
        if _counts(want.rows, person):
            place = tuple(_place(key, person[key.column], schema) for key in want.keys)
            worth = int(person[want.weight]) if want.weight else 1  # type: ignore[arg-type]
            cells[place] += worth * (int(person[want.value]) ** want.power if want.value else 1)  # type: ignore[arg-type]
    return ContingencyTable(want=want, cells=tuple(cells.values()))


def _place(key: Key, cell: Cell, schema: Schema) -> int:
    if isinstance(cell, Absent):
        return key.answers(schema) + (cell is STRUCTURAL)
    if key.step is not None:
        return int(Fraction(cell - schema.coded[key.column].low, key.step) + Fraction(1, 2))
    if key.starts:
        return max(i for i, start in enumerate(key.starts) if start <= cell)
    return cell


def answers_of(done: Results) -> dict[str, Answer]:
    """The answers to the statistics of a plan that was run."""
    (found,) = (each for each in done.products if isinstance(each, StatisticsResult))
    return dict(found.answers)


def cell_tables(plan: Plan) -> tuple[SmallCells, ...]:
    """The tables of small cells that a plan asks for."""
    return asked.tables if (asked := plan.product(CellTables)) else ()


def synths_of(plan: Plan) -> tuple[Synth, ...]:
    """The synthetic tables that a plan asks for."""
    return asked.tables if (asked := plan.product(SyntheticTables)) else ()


def with_synths(plan: Plan, tables: Sequence[Synth]) -> Plan:
    """The plan with other synthetic tables in place of its own, and nothing else."""
    return replace(plan, products=(SyntheticTables(tables=tuple(tables)),))
