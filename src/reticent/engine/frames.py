"""Frames held by the caller, as Arrow tables. What a cell means does not depend on the type of its column (T31).

pandas and Polars choose a column's type from all of its cells, so one respondent's odd answer turns numbers into
doubles, texts or objects. Columns of plain types go over as they are; all others cell by cell, as text that means the
same. Nothing in a cell can raise.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.objects import as_texts
from reticent.errors import SourceError

PLAIN = "biuf"  # NumPy's kinds of truth values, whole numbers and doubles


def from_pandas(frame: Any) -> pa.Table:
    """Every column by its own type, categories by their words, other objects as text."""
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


def from_polars(frame: Any) -> pa.Table:
    """The columns as Polars gives them to Arrow; its columns of Python objects as text."""
    if not frame.columns:
        raise SourceError("has no columns", field="source")
    return pa.table({name: _polars_array(frame[name]) for name in frame.columns})


def _polars_array(series: Any) -> pa.Array:
    if str(series.dtype) == "Object":
        return as_texts(series.to_list())
    return series.to_arrow()


def _array(series: Any) -> pa.Array:
    if hasattr(series, "cat"):
        words = _objects(series.cat.categories)
        codes = np.asarray(series.cat.codes)
        return words.take(pa.array(codes, mask=codes < 0))
    kind = getattr(series.dtype, "kind", "O")
    if isinstance(series.dtype, np.dtype) and kind not in PLAIN + "M":
        return _objects(series)
    array = _attempt(lambda: pa.array(series, from_pandas=True))
    if array is None or isinstance(array.type, pa.BaseExtensionType):  # a type without a counterpart
        return _objects(series)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _objects(series: Any) -> pa.Array:
    """Texts as they are, where there is nothing else; otherwise object by object. Both give the same text."""
    objects = np.asarray(series, dtype=object)
    silent = np.asarray(series.isna(), dtype=bool)
    array = _attempt(lambda: pa.array(objects, type=pa.large_string(), mask=silent))
    if array is not None:
        return array
    told = objects.copy()
    told[silent] = None
    return as_texts(told)


def _attempt(make: Callable[[], Any]) -> Any:
    """What `make` gives, or None: why it cannot may hold a cell."""
    with suppress(pa.ArrowException, TypeError, ValueError, OverflowError, NotImplementedError):
        return make()
    return None
