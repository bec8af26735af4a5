"""Rows simulated from the codebook alone, so that a plan can be tried before it is charged."""

from typing import Any

import numpy as np
import pyarrow as pa

from reticent.decimals import show
from reticent.engine.streams import ArrowRows
from reticent.schema import Levels, Number, Schema

MISSING = 0.1
ROWS = 1_000


def simulate(schema: Schema, rows: int | None) -> ArrowRows:
    """Every column uniform over its domain, a tenth of the cells missing. Nothing here resembles anybody."""
    count = min(rows or ROWS, 1_000_000)
    generator = np.random.default_rng()  # not noise: these rows are made up and protect nobody
    columns: dict[str, pa.Array] = {}
    for column in schema.columns.values():
        silent = generator.random(count) < MISSING
        if isinstance(column, Levels):
            codes = pa.array(generator.integers(0, len(column.levels), count), mask=silent)
            columns[column.source] = pa.array(column.levels).take(codes)
        elif isinstance(column, Number):
            columns[column.source] = _numbers(column, generator, count, silent)
        else:
            columns[column.source] = pa.array(np.arange(count).astype(str))
    return ArrowRows(pa.table(columns))


def _numbers(column: Number, generator: Any, count: int, silent: Any) -> pa.Array:
    codes = generator.integers(column.low, column.high + 1, count)
    if column.grid == 1:
        return pa.array(codes, mask=silent)
    known, places = np.unique(codes, return_inverse=True)
    words = pa.array([show(int(code) * column.grid) for code in known])
    return words.take(pa.array(places, mask=silent))
