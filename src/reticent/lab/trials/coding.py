"""Rows as codes of a codebook, and codes as cells of a domain. What is in here is for trials, with the truth in hand."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.noise.bits import Bits
from reticent.schema import Levels, Number, Schema
from reticent.synth.decode import HOLE, UNASKED, decode, encode
from reticent.synth.domain import Domain

Codes = NDArray[np.int64]
Cells = NDArray[np.int32]

__all__ = ["HOLE", "UNASKED", "Cells", "Codes", "cells_of", "codes_of", "decoded", "with_holes"]


def codes_of(table: pa.Table, schema: Schema, columns: tuple[str, ...]) -> Codes:
    """Rows by columns. What is null, no level or out of bounds is a hole; a null outside its universe is one too."""
    coded = [_codes(table[schema.columns[name].source], schema.coded[name]) for name in columns]
    return np.stack(coded, axis=1)


def _codes(values: pa.ChunkedArray, column: Levels | Number) -> Codes:
    if isinstance(column, Levels):
        found = pc.index_in(values.cast(pa.string()), pa.array(column.levels))
        return np.asarray(pc.fill_null(found.cast(pa.int64()), HOLE), dtype=np.int64)
    steps = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan)) / float(column.grid)
    inside = (steps > column.low - 0.5) & (steps < column.high + 0.5)
    return np.where(inside, np.floor(np.where(inside, steps, 0) + 0.5), HOLE).astype(np.int64)


def cells_of(codes: Codes, domain: Domain) -> Cells:
    """Each code in its cell: an answer's bin, silence, or not asked."""
    placed = [encode(codes[:, place], axis, domain.schema) for place, axis in enumerate(domain.axes)]
    return np.stack(placed, axis=1).astype(np.int32)


def decoded(cells: Cells, domain: Domain, bits: Bits) -> Codes:
    """Cells as codes again, each drawn evenly inside its bin: what would be published."""
    rows = decode(cells, domain, bits)
    return np.stack([rows[name] for name in domain.columns], axis=1)


def with_holes(codes: Codes, mask: NDArray[np.bool_]) -> Codes:
    """The answers that `mask` takes away are holes. Who was not asked stays so."""
    return np.where(mask & (codes != UNASKED), HOLE, codes)
