"""From cells back to answers: evenly inside the bin, on the public grid, never outside the codebook. After the noise."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.noise.bits import Bits, words
from reticent.schema import Levels, Number, Schema
from reticent.synth.domain import Axis, Domain

Codes = NDArray[np.int64]
Rows = dict[str, Codes]

HOLE = -(2**63)
"""The code of a cell that was asked and not answered. Codes of answers lie within 2**53."""
UNASKED = HOLE + 1
"""The code of a cell that was not asked."""


def decode(cells: NDArray[np.integer], domain: Domain, bits: Bits) -> Rows:
    """The codes of every column, each drawn evenly from those its cell stands for.

    Mid-points would be a mark of the machine: they pile up where nobody is, and leave the bin when rounded.
    """
    return {
        axis.column: _codes(cells[:, place].astype(np.int64), axis, domain.schema, bits)
        for place, axis in enumerate(domain.axes)
    }


def _codes(cells: Codes, axis: Axis, schema: Schema, bits: Bits) -> Codes:
    starts, widths = bins(axis, schema)
    is_answer = cells < axis.answers
    cell = np.where(is_answer, cells, 0)
    inside = _below(widths[cell], bits) if widths.max() > 1 else np.zeros(len(cells), np.int64)
    absent = np.where(cells == axis.silence, HOLE, UNASKED)
    return np.where(is_answer, starts[cell] + inside, absent)


def bins(axis: Axis, schema: Schema) -> tuple[Codes, Codes]:
    """The first code of every answer's cell, and how many codes it stands for."""
    column = schema.coded[axis.column]
    starts = np.array(axis.key.starts or range(column.low, column.high + 1), dtype=np.int64)
    return starts, np.diff(starts, append=column.high + 1)


def encode(codes: Codes, axis: Axis, schema: Schema) -> Codes:
    """The cells that hold these codes: what `decode` was given."""
    starts, _ = bins(axis, schema)
    cells = np.searchsorted(starts, codes, side="right") - 1
    cells = np.where(codes == HOLE, axis.silence, cells)
    return np.where(codes == UNASKED, axis.answers + 1, cells).astype(np.int64)


def _below(widths: Codes, bits: Bits) -> Codes:
    """For each width w a whole number even on 0 .. w-1, up to one part in 2**53."""
    drawn = uniforms(len(widths), bits) * widths
    return np.minimum(drawn.astype(np.int64), widths - 1)


def uniforms(n: int, bits: Bits) -> NDArray[np.float64]:
    """`n` multiples of 2**-53 from 0 up, below one, for draws after the noise."""
    return np.asarray((words(n, bits) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def to_arrow(rows: Mapping[str, Codes], schema: Schema) -> pa.Table:
    """The rows under the headers of the survey's own file: levels as text, numbers as numbers, other cells empty."""
    return pa.table(
        {schema.coded[name].source: _array(schema.coded[name], codes) for name, codes in rows.items()}
    )


def _array(column: Levels | Number, codes: Codes) -> pa.Array:
    is_absent = codes <= UNASKED
    kept = np.where(is_absent, column.low, codes)
    if isinstance(column, Levels):
        return pa.array(column.levels).take(pa.array(kept, mask=is_absent))
    # Whole numbers stay exact; of others a double is the nearest, and the rounding rule finds the code again.
    top, bottom = column.grid.numerator, column.grid.denominator
    if bottom == 1:
        return pa.array(kept * top, mask=is_absent)
    return pa.array(kept * float(top) / bottom, mask=is_absent)
