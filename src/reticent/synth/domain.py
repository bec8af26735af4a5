"""The domain of a synthesizer: answers in public bins, then a cell for silence, then one for who was not asked, and back.

Point masses, numbers that many people give, are declared beforehand: each gets a bin of its own, so that it is drawn as
it is. From cells back to answers, after the noise: evenly inside the bin, on the public grid, never outside the codebook.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.noise.bits import Bits, words
from reticent.schema import Levels, Number, Schema

MOST = 100
"""Point masses of one column. More of them are bins, and these cost noise."""

PointMasses = Mapping[str, Sequence[object]]
"""By column, the values in the units of the codebook: `{"hours": ["40"]}`."""


def point_mass_codes(
    point_masses: PointMasses, schema: Schema, columns: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """The codes of the point masses, in order. Everything about them is public: they come from the plan."""
    return {name: _codes(values, _number(name, schema, columns)) for name, values in point_masses.items()}


def point_mass_words(
    point_masses: PointMasses, schema: Schema, columns: Sequence[str]
) -> dict[str, list[str]]:
    """The same as they are told: each value as the codebook would write it."""
    found = point_mass_codes(point_masses, schema, columns)
    return {name: [schema.coded[name].text(code) for code in codes] for name, codes in found.items()}


def with_point_masses(starts: Sequence[int], point_masses: Sequence[int], high: int) -> tuple[int, ...]:
    """The codes at which bins begin, once every point mass has a bin one code wide. No bin is empty, and none overlap.

    A point mass at v begins one bin at v and the next at v + 1, unless v is the column's last code.
    """
    after = (code + 1 for code in point_masses if code < high)
    return tuple(sorted({*starts, *point_masses, *after}))


def _number(name: str, schema: Schema, columns: Sequence[str]) -> Number:
    if name not in columns:
        raise PlanError(
            f"{name[:80]!r} is not among the columns of this table{nearest(name, columns)}",
            field="point_masses",
        )
    column = schema.coded[name]
    if isinstance(column, Levels):
        raise PlanError(
            f"{name} has levels, and each is by itself already; leave it out", field="point_masses"
        )
    return column


def _codes(values: Sequence[object], column: Number) -> tuple[int, ...]:
    name = column.name
    if isinstance(values, str) or not 1 <= len(values) <= MOST:
        raise PlanError(f'lists 1 to {MOST} values of {name}, such as {name} = ["0"]', field="point_masses")
    found = [_code(value, column) for value in values]
    if len(set(found)) < len(found):
        raise PlanError(f"names a value of {name} twice; keep one", field="point_masses")
    return tuple(sorted(found))


def _code(value: object, column: Number) -> int:
    exact = read_decimal(value)
    if exact is None:
        raise PlanError(f'has a value of {column.name} that is no decimal, such as "0"', field="point_masses")
    if not column.lower <= exact <= column.upper:
        bounds = f"from {show(column.lower)} to {show(column.upper)}"
        raise PlanError(
            f"{show(exact)} is no value of {column.name}, which runs {bounds}", field="point_masses"
        )
    if (exact / column.grid).denominator != 1:
        raise PlanError(
            f"{show(exact)} is no value of {column.name}, which has the grid {show(column.grid)}",
            field="point_masses",
        )
    return int(exact / column.grid)


BINS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One column. Cells 0 to `answers - 1` hold an answer, cell `answers` is silence, a further one the unasked."""

    key: Key
    answers: int
    has_unasked: bool = False

    @property
    def column(self) -> str:
        return self.key.column

    @property
    def silence(self) -> int:
        """The cell of those who were asked and did not answer."""
        return self.answers

    @property
    def unasked(self) -> int | None:
        """The cell of those outside the column's universe, where it has one."""
        return self.answers + 1 if self.has_unasked else None

    @property
    def size(self) -> int:
        return self.answers + 1 + self.has_unasked


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """All axes in order. Everything here is public: it is made of the codebook and the plan."""

    schema: Schema
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(axis.column for axis in self.axes)

    def sizes(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.axes[place].size for place in places)

    def cells(self, places: Sequence[int]) -> int:
        return prod(self.sizes(places))


def domain_of(
    schema: Schema,
    columns: Sequence[str] | None = None,
    *,
    bins: int = BINS,
    point_masses: PointMasses | None = None,
) -> Domain:
    """The axes of `columns` (all but identifiers and weights where none are named), numbers in `bins` equal bins.

    A value among the `point_masses` of its column has a bin of its own beside them.
    """
    if bins < 2:
        raise PlanError("is a whole number from 2 up", field="bins")
    names = _default(schema) if columns is None else tuple(columns)
    if not names or len(set(names)) < len(names):
        raise PlanError("names columns of the codebook, each once", field="columns")
    for name in names:
        _check(schema, name)
    apart = point_mass_codes(point_masses or {}, schema, names)
    return Domain(schema=schema, axes=tuple(_axis(schema, name, bins, apart) for name in names))


def _default(schema: Schema) -> tuple[str, ...]:
    return schema.questions


def _check(schema: Schema, name: str) -> None:
    if name not in schema.coded:
        raise PlanError(
            f"no column {name[:80]!r} in the codebook{nearest(name, schema.coded)}", field="columns"
        )


def _axis(schema: Schema, name: str, bins: int, point_masses: Mapping[str, Sequence[int]]) -> Axis:
    column = schema.coded[name]
    codes = column.high - column.low + 1
    is_binned = not isinstance(column, Levels) and codes > bins
    equal = tuple(column.low + -(-i * codes // bins) for i in range(bins)) if is_binned else ()
    starts = with_point_masses(equal, point_masses.get(name, ()), column.high) if is_binned else ()
    key = Key(column=name, starts=starts, silent=True)
    return Axis(key=key, answers=key.answers(schema), has_unasked=has_universe(schema, name))


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
        axis.column: _within(cells[:, place].astype(np.int64), axis, domain.schema, bits)
        for place, axis in enumerate(domain.axes)
    }


def _within(cells: Codes, axis: Axis, schema: Schema, bits: Bits) -> Codes:
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
    headers = schema.headers
    return pa.table({headers[name]: _array(schema.coded[name], codes) for name, codes in rows.items()})


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
