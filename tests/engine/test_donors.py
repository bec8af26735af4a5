"""Donors fill what the definition says, for every order of rows: the engine against one record at a time."""

from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from reticent.engine.cells import needed
from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.sources import open_frame
from reticent.engine.wants import Ring, Sum, Table, Want
from reticent.prepare.donors import Donors, Match, Repair, Scheme
from reticent.prepare.edits import Edit
from reticent.schema import Schema
from reticent.schema.load import schema_from
from tests.engine import donors_reference as reference
from tests.engine import slow
from tests.engine.slow import Raw

COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "school": {"kind": "ordinal", "levels": ["none", "some", "all"], "positions": [0, 1, 4]},
    "age": {"kind": "integer", "bounds": [0, 9]},
    "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 3"},
    "wage": {"kind": "integer", "bounds": [-20, 20], "universe": "job = 'yes'"},
    "mood": {"kind": "integer", "bounds": [-2, 2]},
    "house": {"kind": "categorical", "levels": ["own", "rent", "none"]},
    "far": {"kind": "integer", "bounds": [0, 10**15]},
    "weight": {"kind": "decimal", "bounds": ["0", "2"], "grid": "0.5", "role": "weight"},
}
NEVER_FILLED = ("sex", "school", "age")
FILLED = ("job", "wage", "mood", "house")


def book(unit: str = "row", at_most: int = 1) -> Schema:
    columns = dict(COLUMNS) if unit == "row" else {unit: {"kind": "identifier"}, **COLUMNS}
    return schema_from({"survey": {"name": "s", "unit": unit, "at_most": at_most}, "columns": columns})


def some_people(dice: Random, count: int, hush: float = 0.3) -> list[Raw]:
    """Few different answers, so that cells, ties and equal records abound."""

    def maybe(value: object) -> object:
        return None if dice.random() < hush else value

    def person() -> Raw:
        return {
            "pid": dice.choice(["", None, *(f"p{i}" for i in range(count // 2 + 1))]),
            "sex": maybe(dice.choice("fm")),
            "school": dice.choice(["none", "some", "all", None]),
            "age": dice.choice([0, 3, 3, 5, 9, None]),
            "job": maybe(dice.choice(["yes", "yes", "no"])),
            "wage": maybe(dice.choice([-20, -7, -6, 0, 1, 20])),
            "mood": maybe(dice.randint(-2, 2)),
            "house": maybe(dice.choice(["own", "rent", "none"])),
            "far": dice.choice([0, 7, 10**15]),
            "weight": maybe(Fraction(dice.randint(0, 5), 2)),
        }

    people = [person() for _ in range(count)]
    return people + [dict(dice.choice(people)) for _ in range(count // 3)] if people else []


def some_donors(dice: Random, column: str, schema: Schema) -> Donors:
    known = schema.coded[column]
    near = tuple(
        Match(
            column=name,
            starts=(0, 3, 6) if name == "age" and dice.random() < 0.5 else (),
            weight=dice.choice([Fraction(1), Fraction(1, 2), Fraction(3)]),
        )
        for name in dice.sample(NEVER_FILLED, dice.randint(1, 3))
    )
    scheme = dice.choice(list(Scheme))
    k = 1 if scheme is Scheme.NEAREST else dice.randint(1, 4)
    defaults = tuple(dice.randint(known.low, known.high) for _ in range(k))
    return Donors(column=column, near=near, k=k, scheme=scheme, defaults=defaults)


def some_edit(dice: Random, schema: Schema) -> Edit:
    column = dice.choice(list(schema.coded))
    known = schema.coded[column]
    code = dice.randint(known.low, min(known.high, 20))
    return Edit(when=slow.some_bound(dice, schema), column=column, code=code, replaces=dice.random() < 0.3)


def some_repair(dice: Random, schema: Schema) -> Repair:
    filled = dice.sample(FILLED, dice.randint(1, 3))
    return Repair(
        edits=tuple(some_edit(dice, schema) for _ in range(dice.randrange(3))),
        donors=tuple(some_donors(dice, column, schema) for column in filled),
        key=dice.choice(["", "a key", "'; DROP"]),
    )


def some_wants(dice: Random, schema: Schema, repair: Repair) -> list[Want]:
    still = {name: column for name, column in schema.coded.items() if name not in repair.filled()}
    public: Any = SimpleNamespace(coded=still)
    rings = [
        Ring(
            column=donors.column,
            rows=slow.some_rows(dice, public, []),
            weight=dice.choice([None, "weight"]),
        )
        for donors in repair.donors
        for _ in range(2)
    ]
    near: Any = SimpleNamespace(
        coded={n: c for n, c in schema.coded.items() if n != "far"}
    )  # fits 128 bits, and a table
    sums = [slow.some_sum(dice, near) for _ in range(6)]
    return [*sums, *(slow.some_table(dice, near) for _ in range(3)), *rings]


def frame(people: list[Raw]) -> pa.Table:
    kinds = {
        "age": pa.int8(),
        "wage": pa.int16(),
        "mood": pa.int64(),
        "far": pa.int64(),
        "weight": pa.float64(),
    }
    names = ["pid", *COLUMNS]
    held = [{k: float(v) if isinstance(v, Fraction) else v for k, v in p.items()} for p in people]
    return pa.table({n: pa.array([p[n] for p in held], kinds.get(n, pa.string())) for n in names})


def engine_says(
    people: list[Raw] | pa.Table, schema: Schema, wants: list[Want], repair: Repair, threads: int = 1
):
    table = people if isinstance(people, pa.Table) else frame(people)
    engine = DuckDBEngine(open_frame(table), threads=threads)
    try:
        return told(engine.tally(schema, wants, repair), wants)
    finally:
        engine.close()


def told(found: Any, wants: list[Want]) -> list[object]:
    says: list[object] = []
    for want in wants:
        if isinstance(want, Sum):
            says.append(found.statistics[want])
        elif isinstance(want, Table):
            says.append(found.tables[want].cells)
        elif isinstance(want, Ring):
            ring = found.rings[want]
            says.append((ring.donors.tolist(), ring.recipients.tolist(), ring.gaps.tolist()))
    return says


def by_hand(people: list[Raw], schema: Schema, wants: list[Want], repair: Repair, **how: Any) -> list[object]:
    found = reference.records(schema, people, needed(schema, wants, repair), repair, **how)
    rows = reference.impute(schema, found, repair)
    says: list[object] = []
    for want in wants:
        if isinstance(want, Sum):
            says.append(slow.add_up(want, rows))
        elif isinstance(want, Table):
            says.append(slow.tabulate(want, rows, schema))
        elif isinstance(want, Ring):
            says.append(reference.ring(schema, found, repair.of(want.column), want))
    return says


# covers T08 B096
@pytest.mark.parametrize("unit", [("row", 1), ("pid", 1), ("pid", 2)], ids=["row", "one", "two"])
@pytest.mark.parametrize("seed", range(24))
def test_donors_are_those_of_the_definition(seed: int, unit: tuple[str, int]):
    """Random people, codebooks of owners, edits, donors of one to three columns: sums, tables and rings."""
    dice, schema = Random(f"{seed} {unit}"), book(*unit)
    people = some_people(dice, dice.choice([0, 1, 2, 5, 12, 20]), hush=dice.choice([0.1, 0.4, 0.8]))
    repair = some_repair(dice, schema)
    wants = some_wants(dice, schema, repair)
    assert engine_says(people, schema, wants, repair) == by_hand(people, schema, wants, repair)
