"""Rows, wants and repairs of the suite, and tallies as canonical bytes."""

import json
from decimal import Decimal
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.wants import Aggregate, Bins, Key, PointsByCell, Rows, Sum, Tallies
from reticent.prepare.repair import (
    CappedDonors,
    Default,
    Edit,
    Match,
    MatchLevel,
    RegressionLine,
    Repair,
    Term,
)
from reticent.schema import Schema
from reticent.schema.bind import CodeIn, Is
from reticent.schema.codebook import schema_from
from tests.engine import slow
from tests.engine.test_reading import HUGE, ODD_TEXTS

POISON = [
    *ODD_TEXTS,
    *(
        "1e400",
        "-1e400",
        "1e-400",
        "2e-324",
        "5e-324",
        "1e99999",
        "0e99999",
        "1e-99999",
        "9" * 400,
        "1d",
        "0x1F",
    ),
    *(
        "\u00a017\u00a0",
        "17\u2003",
        "\t17 ",
        "12\n",
        "\n",
        "'; DROP TABLE people; --",
        "\\",
        "%(v0)s",
        "$1",
        "{}",
        "a\u0301",
    ),
    *(
        "_",
        "a",
        "A",
        "ä",
        "é",
        "b ",
        "nan",
        "-0.0",
        "1e5",
        "1.5e+01",
        "0.5",
        "2.5",
        "99.5",
        "100.4999999999999",
        "1e15",
        "1e16",
    ),
    *(
        "123456789012345678",
        "123456789012345678901234567890",
        "0.0000000000005",
        "17.",
        "+.5",
        "--1",
        "1,5",
        "１７",
        "true",
        "TRUE",
    ),
    *("2026-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00:00.000", "infinity", "INF", "-inf"),
]
LEVELS = sorted(
    {*"abcdefghijklmnopqrstuvwxyz", "_", "ä", "é", "A", "B", "ß", "0", "17", "true", "2026-01-01", "\\"}
)
COLUMNS: dict[str, dict[str, Any]] = {
    "pid": {"kind": "identifier"},
    "many": {"kind": "categorical", "levels": LEVELS},
    "few": {"kind": "categorical", "levels": ["17", "a", "ä", "é"], "missing_codes": ["?"]},
    "letters": {"kind": "categorical", "levels": ["17", "17.0", "a"], "text": True},
    "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9", "17"]},
    "size": {"kind": "decimal", "bounds": ["-100", "1000"], "grid": "0.5"},
    "fine": {"kind": "decimal", "bounds": ["0", "3"], "grid": "0.000001"},
    "far": {"kind": "decimal", "bounds": ["-1000000000000", "1000000000000"], "grid": "0.001"},
    "thirds": {"kind": "decimal", "bounds": ["0", "99"], "grid": "3"},
    "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 15"},
    "weight": {"kind": "decimal", "bounds": ["0", "3"], "grid": "0.01", "role": "weight"},
}


def book(unit: str = "row", at_most: int = 1) -> Schema:
    columns = {name: each for name, each in COLUMNS.items() if name != "pid" or unit == "pid"}
    return schema_from({"survey": {"name": "s", "unit": unit, "at_most": at_most}, "columns": columns})


NUMBERS = ("age", "size", "fine", "far", "thirds", "weight")


def as_texts(dice: Random, count: int) -> pa.Table:
    """Everything as text, half of it poison."""

    def cell(name: str) -> str | None:
        if dice.random() < 0.1:
            return None
        if dice.random() < 0.5:
            return dice.choice(POISON)
        if name in NUMBERS:
            return repr(round(dice.uniform(-5, 120), dice.choice([0, 1, 2, 3, 7])))
        return dice.choice(LEVELS if name == "many" else ["yes", "no", "a", "ä", "17", "17.0", "é"])

    return pa.table({name: pa.array([cell(name) for _ in range(count)], pa.string()) for name in COLUMNS})


def as_doubles(dice: Random, count: int) -> pa.Table:
    """Numbers as doubles with every poison that a double can be; texts as they are."""
    odd = [
        float("inf"),
        -float("inf"),
        float("nan"),
        5e-324,
        -5e-324,
        1e308,
        -1e308,
        1e-300,
        2.0**53,
        2.0**63,
        0.1 + 0.2,
        17.0,
    ]
    odd += [float(each) for each in HUGE if abs(each) < 10**300]

    def number() -> float | None:
        if dice.random() < 0.1:
            return None
        return dice.choice(odd) if dice.random() < 0.4 else dice.uniform(-5, 120)

    table = as_texts(dice, count)
    for name in NUMBERS:
        column = pa.array([number() for _ in range(count)], pa.float64())
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def as_wholes(dice: Random, count: int) -> pa.Table:
    """Numbers as integers of several widths and as decimals, narrow and wide."""
    table = as_texts(dice, count)
    kinds = {
        "age": (pa.int16(), lambda: dice.choice([-9, 17, -32768, 32767, dice.randint(-5, 120)])),
        "size": (pa.int64(), lambda: dice.choice([2**63 - 1, -(2**63), 2**53 + 1, dice.randint(-200, 1100)])),
        "fine": (pa.decimal128(15, 7), lambda: Decimal(dice.randint(-(10**7), 4 * 10**7)).scaleb(-7)),
        "far": (pa.decimal128(38, 6), lambda: Decimal(dice.randint(-(10**20), 10**20)).scaleb(-6)),
        "thirds": (pa.int32(), lambda: dice.choice([-(2**31), 2**31 - 1, dice.randint(-3, 110)])),
        "weight": (pa.decimal128(7, 2), lambda: Decimal(dice.randint(-10, 400)).scaleb(-2)),
        "few": (pa.int64(), lambda: dice.choice([17, 2**62, 0])),
        "job": (pa.bool_(), lambda: dice.random() < 0.5),
    }
    for name, (kind, draw) in kinds.items():
        column = pa.array([None if dice.random() < 0.1 else draw() for _ in range(count)], kind)
        table = table.set_column(table.column_names.index(name), name, column)
    return table


TABLES = {"texts": as_texts, "doubles": as_doubles, "wholes": as_wholes}


def wants_of(dice: Random, schema: Schema) -> list[Aggregate]:
    """All kinds but rings, of any columns."""
    small: Any = SimpleNamespace(
        coded={name: each for name, each in schema.coded.items() if name not in ("far", "fine", "size")},
        columns=schema.columns,
    )
    tables = [slow.some_table(dice, small) for _ in range(4)]
    wide = [Sum(rows=Rows(answered=("far",)), value="far", power=power) for power in (1, 2)]
    weights = Bins(
        rows=Rows(where=Is("age", "answered")),
        keys=(Key(column="few"), Key(column="age", starts=(0, 18, 65))),
        silent=(0, 1),
        value="age",
        weight="weight",
        kept=3,
    )
    points = PointsByCell(rows=Rows(), cell="few", y="age", x="thirds")
    return [*wide, *(slow.some_sum(dice, small) for _ in range(8)), *tables, weights, points]


def repairs(dice: Random, schema: Schema) -> dict[str, Repair]:
    """No repair, edits, lines without and with draws, and capped donors of several levels and rings."""
    age, size = schema.coded["age"], schema.coded["size"]
    edits = (
        Edit(column="age", when=CodeIn("few", ((0, 1),)), code=40),
        Edit(column="many", when=Is("age", "missing"), code=None, replaces=True),
    )
    line = RegressionLine(
        column="size",
        low=size.low,
        high=size.high,
        base=40 << 32,
        spread=1 << 30,
        terms=(
            Term(column="age", slope=3 << 31, low=age.low, high=age.high, gap=50),
            Term(column="few", slope=9 << 32, level=1),
        ),
    )
    levels = (
        MatchLevel(on=(Match(column="few"), Match(column="age", starts=(0, 30, 60))), serve=2),
        MatchLevel(on=(Match(column="few"),), serve=1),
        MatchLevel(serve=1),
    )
    capped = CappedDonors(
        columns=("size", "thirds"), levels=levels, defaults=(Default(code=3), Default(code=2))
    )
    return {
        "none": Repair(),
        "edits": Repair(edits=edits),
        "lines": Repair(edits=edits, lines=(line,)),
        "draws": Repair(lines=(_drawing(line),)),
        "capped": Repair(capped=(capped,), rings=1, key="k"),
        "rings": Repair(edits=edits, capped=(capped,), rings=3, key="'; DROP"),
    }


def _drawing(line: RegressionLine) -> RegressionLine:
    """Draws that are a fixed function of how many were drawn before, so that two engines have the same."""
    from dataclasses import replace

    return replace(line, draw=Fixed())


class Fixed:
    """The same numbers for everyone who asks for as many: 0, 3, -3, 6, ..."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, n: int) -> Any:
        at = np.arange(self.drawn, self.drawn + n)
        self.drawn += n
        return np.where(at % 2 == 0, -1, 1) * (at % 1000) * 3

    def __deepcopy__(self, memo: Any) -> "Fixed":
        return Fixed()


def canonical(found: Tallies) -> bytes:
    """All numbers of a tally, in the order of what was wanted."""

    def numbers(tally: Tallies) -> list[Any]:
        parts: list[Any] = [list(tally.statistics.sums.values()), [t.cells for t in tally.tables.values()]]
        parts += [[each.tolist() for each in (p.starts, p.x, p.y)] for p in tally.points.values()]
        parts += [
            [[int(cell) for cell in np.ravel(each)] for each in (b.count, b.total, b.matching, b.largest)]
            for b in tally.bins.values()
        ]
        parts.append(sorted(tally.unserved.items()))
        return parts + ([numbers(tally.fractions)] if tally.fractions else [])

    return json.dumps(numbers(found)).encode()
