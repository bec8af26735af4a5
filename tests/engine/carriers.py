"""The same cells in every column type that can hold them: of pandas, Polars and Arrow."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from reticent.engine.donors.records import LINE
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import Source, open_frame
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Values
from reticent.engine.sql.codes import level_code, number_code
from reticent.engine.sql.reading import identifier
from reticent.schema import Levels, Number
from reticent.schema.columns import Column, Identifier
from tests.engine.opening import open_any

Cells = Sequence[Any]


def written(cell: Any) -> str | None:
    """As a CSV file holds it: what Python prints."""
    return None if cell is None else cell if isinstance(cell, str) else str(cell)


def _objects(cells: Cells) -> pd.Series:
    return pd.Series(np.array([*cells, None], dtype=object)[:-1], dtype=object)


PANDAS: dict[str, Callable[[Cells], Any]] = {
    "objects": _objects,
    "texts": lambda cells: pd.Series([written(c) for c in cells], dtype="str"),
    "written": lambda cells: _objects([written(c) for c in cells]),
    "bytes": lambda cells: _objects([None if c is None else (written(c) or "").encode() for c in cells]),
    "category": lambda cells: _objects(cells).astype("category"),
    "words": lambda cells: pd.Series([written(c) for c in cells], dtype="category"),
    "with a text": lambda cells: _objects([*cells, "?"]).iloc[:-1],
    "inferred": lambda cells: pd.Series(list(cells)),
    "arrow texts": lambda cells: pd.Series([written(c) for c in cells], dtype=pd.ArrowDtype(pa.string())),
}
NUMBERS: dict[str, Callable[[Cells], Any]] = {
    "float64": lambda cells: pd.Series([np.nan if c is None else float(c) for c in cells], dtype="float64"),
    "Float64": lambda cells: pd.Series([None if c is None else float(c) for c in cells], dtype="Float64"),
    "complex": lambda cells: pd.Series([np.nan if c is None else complex(c) for c in cells], dtype="complex"),
    "scalars": lambda cells: _objects([None if c is None else np.float64(c) for c in cells]),
    "decimals": lambda cells: _objects([None if c is None else Decimal(str(c)) for c in cells]),
    "numbers by category": lambda cells: pd.Series([None if c is None else float(c) for c in cells]).astype(
        "category"
    ),
}
WHOLE: dict[str, Callable[[Cells], Any]] = {
    "Int64": lambda cells: pd.Series(list(cells), dtype="Int64"),
    "whole objects": lambda cells: _objects([None if c is None else np.int64(c) for c in cells]),
    "arrow integers": lambda cells: pd.Series(list(cells), dtype=pd.ArrowDtype(pa.int64())),
}
TRUTHS: dict[str, Callable[[Cells], Any]] = {"boolean": lambda cells: pd.Series(list(cells), dtype="boolean")}
DATES: dict[str, Callable[[Cells], Any]] = {
    "moments": lambda cells: pd.Series(pd.to_datetime(pd.Series(list(cells), dtype="object"))),
    "microseconds": lambda cells: pd.Series(
        [c and np.datetime64(c, "us") for c in cells], dtype="datetime64[us]"
    ),
}


def held(cells: Cells) -> dict[str, Any]:
    """The cells as columns of pandas of all types that hold every one of them."""
    told = [cell for cell in cells if cell is not None]
    kinds = dict(PANDAS)
    if len({type(cell) for cell in told}) > 1:
        del kinds["category"]  # pandas takes True and 1 for one category
    if told and all(isinstance(c, int | float) and not isinstance(c, bool) for c in told):
        kinds |= NUMBERS if all(isinstance(c, float) or abs(c) < 10**308 for c in told) else {}
        if all(isinstance(c, int) and abs(c) < 2**63 for c in told):
            kinds |= WHOLE
    if told and all(isinstance(c, bool) for c in told):
        kinds |= TRUTHS
    if told and all(isinstance(c, datetime) for c in told):
        kinds |= DATES
    return {name: make(cells) for name, make in kinds.items()}


def arrow(cells: Cells) -> dict[str, pa.Array]:
    """The same in Arrow, where its types hold them; and what Polars makes of them."""
    texts = pa.array([written(c) for c in cells], pa.string())
    found = {
        "a text": texts,
        "a dictionary": texts.dictionary_encode(),
        "a view": texts.cast(pa.string_view()),
    }
    told = [cell for cell in cells if cell is not None]
    numbers = bool(told) and all(isinstance(c, int | float) and not isinstance(c, bool) for c in told)
    if numbers and all(abs(c) < 2**63 and c == int(c) for c in told):
        found["an integer"] = pa.array([None if c is None else int(c) for c in cells], pa.int64())
        found["a decimal"] = pa.array(
            [None if c is None else Decimal(int(c)) for c in cells], pa.decimal128(38, 0)
        )
    if numbers and all(abs(c) < 10**9 and Decimal(str(c)) == round(Decimal(str(c)), 6) for c in told):
        wide = [None if c is None else Decimal(str(c)) for c in cells]
        found |= {
            "a narrow decimal": pa.array(wide, pa.decimal128(15, 6)),
            "a vast one": pa.array(wide, pa.decimal256(60, 20)),
        }
    if told and len({type(c) for c in told}) == 1:
        found["of polars"] = pl.Series(list(cells), strict=False).to_arrow()
    return found


@contextmanager
def engine_on(source: Source) -> Iterator[CuratorEngine]:
    engine = open_any(source, threads=1)
    try:
        yield engine
    finally:
        engine.close()


def readings(source: Source, column: Column, headers: Sequence[str]) -> dict[str, list[Any]]:
    """What each of the headers' cells is to `column`: codes, or respondents."""
    with engine_on(source) as engine:
        values = Values()
        base, names = engine.base(list(headers), values, line=True)
        made = []
        for place, header in enumerate(headers):
            raw, kind = sql.column(names[header]), engine.types[header]
            assert kind != "other", header
            if isinstance(column, Levels):
                cell = level_code(engine.dialect, column, raw, kind, values)
            elif isinstance(column, Number):
                cell = number_code(engine.dialect, column, raw, kind)
            else:
                assert isinstance(column, Identifier)
                cell = identifier(engine.dialect, column, raw, kind)
            made.append(sql.alias(cell, f"r{place}"))
        rows = engine.fetch(base.select(*made).order_by(sql.column(LINE)), values)
    return {header: [row[place] for row in rows] for place, header in enumerate(headers)}


def everywhere(cells: Cells, column: Column) -> dict[str, list[Any]]:
    """The readings of the same cells in all carriers."""
    frame, table = held(cells), pa.table(arrow(cells))
    found = readings(open_frame(pd.DataFrame(frame)), column, list(frame))
    return found | readings(open_frame(table), column, table.column_names)
