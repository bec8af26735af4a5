"""Numbers that many people give, declared beforehand: each gets a bin of its own, so that it is drawn as it is."""

from collections.abc import Mapping, Sequence

from reticent.decimals import read_decimal, show
from reticent.errors import PlanError
from reticent.schema import Levels, Number, Schema
from reticent.words import nearest

MOST = 100
"""Heaps of one column. More of them are bins, and these cost noise."""

Heaps = Mapping[str, Sequence[object]]
"""By column, the values in the units of the codebook: `{"hours": ["40"]}`."""


def heap_codes(heaps: Heaps, schema: Schema, columns: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The codes of the heaps, in order. Everything about them is public: they come from the plan."""
    return {name: _codes(values, _number(name, schema, columns)) for name, values in heaps.items()}


def heap_words(heaps: Heaps, schema: Schema, columns: Sequence[str]) -> dict[str, list[str]]:
    """The same as they are told: each value as the codebook would write it."""
    found = heap_codes(heaps, schema, columns)
    return {name: [schema.coded[name].text(code) for code in codes] for name, codes in found.items()}


def with_heaps(starts: Sequence[int], heaps: Sequence[int], high: int) -> tuple[int, ...]:
    """The codes at which bins begin, once every heap has a bin one code wide. No bin is empty, and none overlap.

    A heap at v begins one bin at v and the next at v + 1, unless v is the column's last code.
    """
    after = (code + 1 for code in heaps if code < high)
    return tuple(sorted({*starts, *heaps, *after}))


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
