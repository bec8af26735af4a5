"""The cells a synthesizer sees: answers in public bins, then a cell for silence, then one for who was not asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError
from reticent.schema import Levels, Schema
from reticent.synth.heaps import Heaps, heap_codes, with_heaps
from reticent.words import nearest

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
    schema: Schema, columns: Sequence[str] | None = None, *, bins: int = BINS, heaps: Heaps | None = None
) -> Domain:
    """The axes of `columns` (all but identifiers and weights where none are named), numbers in `bins` equal bins.

    A value among the `heaps` of its column has a bin of its own beside them.
    """
    if bins < 2:
        raise PlanError("is a whole number from 2 up", field="bins")
    names = _default(schema) if columns is None else tuple(columns)
    if not names or len(set(names)) < len(names):
        raise PlanError("names columns of the codebook, each once", field="columns")
    for name in names:
        _check(schema, name)
    apart = heap_codes(heaps or {}, schema, names)
    return Domain(schema=schema, axes=tuple(_axis(schema, name, bins, apart) for name in names))


def _default(schema: Schema) -> tuple[str, ...]:
    return tuple(name for name, column in schema.coded.items() if column.role != "weight")


def _check(schema: Schema, name: str) -> None:
    if name not in schema.coded:
        raise PlanError(
            f"no column {name[:80]!r} in the codebook{nearest(name, schema.coded)}", field="columns"
        )


def _axis(schema: Schema, name: str, bins: int, heaps: Mapping[str, Sequence[int]]) -> Axis:
    column = schema.coded[name]
    codes = column.high - column.low + 1
    is_binned = not isinstance(column, Levels) and codes > bins
    equal = tuple(column.low + -(-i * codes // bins) for i in range(bins)) if is_binned else ()
    starts = with_heaps(equal, heaps.get(name, ()), column.high) if is_binned else ()
    key = Key(column=name, starts=starts, silent=True)
    return Axis(key=key, answers=key.answers(schema), has_unasked=has_universe(schema, name))
