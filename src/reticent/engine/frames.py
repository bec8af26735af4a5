"""A pandas frame as an Arrow table. Columns of Python objects become text; nothing in them can raise."""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.errors import SourceError


def from_pandas(frame: Any) -> pa.Table:
    """Every column by its own type; objects of mixed type as text, missing where pandas says so."""
    if getattr(frame.columns, "nlevels", 1) > 1:
        raise SourceError("has columns of several levels; flatten them first", field="source")
    names = [str(name) for name in frame.columns]
    if not names:
        raise SourceError("has no columns", field="source")
    if len(set(names)) < len(names):
        raise SourceError("has a column name twice", field="source")
    if set(map(str, frame.index.names)) & set(names):
        raise SourceError("has an index named like a column; reset the index", field="source")
    return pa.table({name: _array(frame.iloc[:, place]) for place, name in enumerate(names)})


def _array(series: Any) -> pa.Array:
    if str(series.dtype) == "object":
        series = series.map(_text, na_action="ignore")
        return pa.array(series, type=pa.string(), from_pandas=True)
    array = None
    with suppress(pa.ArrowException, TypeError, ValueError):  # its text may hold a cell
        array = pa.array(series, from_pandas=True)
    if array is None:  # a type without a counterpart, such as complex: harmless unless the codebook names it
        return pa.nulls(len(series), pa.binary())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, bool | np.bool_):
        return str(value).lower()  # as a column of truths without a silence is written
    try:
        return str(value).encode("utf-8", errors="replace").decode("utf-8")
    except Exception:  # noqa: BLE001 - an object that cannot even be printed is no answer
        return ""
