"""Filter expressions bound to a codebook: words become integer codes, conditions Kleene's three values.

Every column has integer codes (grid integers, the index of a level, ordinals by position), so past this point no literal of
the plan is left: neither SQL nor Python ever sees a level's name. A condition on a cell without an answer is neither true nor
false. `truth` judges one row and is written to be read; `truth_array` judges many and must agree with it, as must the SQL of
`reticent.engine.sql.clean`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from fractions import Fraction
from functools import reduce
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from reticent.errors import PlanError
from reticent.schema.predicate import And, Compare, Everyone, Kind, Not, Or, Predicate, Status

Ranges: TypeAlias = tuple[tuple[int, int], ...]
_INT64: Final = 2**63


class CodedColumn(Protocol):
    """A column that knows its codes."""

    def matching(self, op: str, literals: tuple[Fraction | str, ...], *, field: str) -> Ranges:
        """Inclusive ranges of codes that satisfy the comparison: sorted, disjoint, within the column's codes.

        `PlanError` where a literal does not fit the column.
        """


@dataclass(frozen=True, slots=True)
class CodeIn:
    """The code lies in one of the ranges; unknown where there is no code. Ranges that touch are joined."""

    column: str
    ranges: Ranges

    def __post_init__(self) -> None:
        ends = [-_INT64 - 1]
        for low, high in self.ranges:
            if not ends[-1] < low <= high < _INT64:
                raise ValueError("ranges of codes are sorted, disjoint and within 64 bits")
            ends.append(high)
        object.__setattr__(self, "ranges", _joined(self.ranges))


@dataclass(frozen=True, slots=True)
class Is:
    """The cell is missing, answered or structural; always known."""

    column: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part holds."""

    parts: "tuple[Bound, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part holds."""

    parts: "tuple[Bound, ...]"


@dataclass(frozen=True, slots=True)
class Negation:
    """The part does not hold; unknown stays unknown."""

    part: "Bound"


@dataclass(frozen=True, slots=True)
class Always:
    """True of every respondent."""


Bound: TypeAlias = CodeIn | Is | AllOf | AnyOf | Negation | Always


def bind(predicate: Predicate, columns: Mapping[str, CodedColumn], *, field: str) -> Bound:
    """The predicate over codes, or a `PlanError` that names what the codebook does not know."""
    match predicate:
        case Compare(column=name, op=op, literals=literals):
            return CodeIn(name, _known(name, columns, field).matching(op, literals, field=field))
        case Status(column=name, kind=kind):
            _known(name, columns, field)
            return Is(name, kind)
        case And(parts=parts):
            return AllOf(tuple(bind(part, columns, field=field) for part in parts))
        case Or(parts=parts):
            return AnyOf(tuple(bind(part, columns, field=field) for part in parts))
        case Not(part=part):
            return Negation(bind(part, columns, field=field))
        case Everyone():
            return Always()


def _known(name: str, columns: Mapping[str, CodedColumn], field: str) -> CodedColumn:
    if name in columns:
        return columns[name]
    by_lower = {known.lower(): known for known in columns}
    near = get_close_matches(name.lower(), by_lower, n=1)
    way_out = f'did you mean "{by_lower[near[0]]}"?' if near else "use a column that the codebook declares."
    raise PlanError(f'the codebook has no column "{name}"; {way_out}', field=field)


def _joined(ranges: Ranges) -> Ranges:
    """The same codes in the fewest ranges: 1 to 2 and 3 to 5 are 1 to 5."""
    joined: list[tuple[int, int]] = []
    for low, high in ranges:
        if joined and joined[-1][1] + 1 == low:
            low = joined.pop()[0]
        joined.append((low, high))
    return tuple(joined)


class Absent(Enum):
    """Why a cell holds no code."""

    MISSING = "missing"
    STRUCTURAL = "structural"


MISSING: Final = Absent.MISSING
STRUCTURAL: Final = Absent.STRUCTURAL
Cell: TypeAlias = int | Absent
Flags: TypeAlias = npt.NDArray[np.bool_]

STATUS_CODE: Final[Mapping[Kind, int]] = {"answered": 0, "missing": 1, "structural": 2}


def truth(bound: Bound, row: Mapping[str, Cell]) -> bool | None:
    """Whether the row satisfies the predicate; `None` where its silences leave that open."""
    match bound:
        case CodeIn(column=name, ranges=ranges):
            cell = row[name]
            return None if isinstance(cell, Absent) else any(low <= cell <= high for low, high in ranges)
        case Is(column=name, kind=kind):
            cell = row[name]
            return kind == (cell.value if isinstance(cell, Absent) else "answered")
        case AllOf(parts=parts):
            return _all([truth(part, row) for part in parts])
        case AnyOf(parts=parts):
            return _not(_all([_not(truth(part, row)) for part in parts]))
        case Negation(part=part):
            return _not(truth(part, row))
        case Always():
            return True


Span: TypeAlias = tuple[int, int] | Absent
"""Codes from the first to the last, or no answer for one reason."""


def may_be(bound: Bound, spans: Mapping[str, Span], *, true: bool = True) -> bool:
    """Whether some row whose cells lie in `spans` could satisfy the predicate, or where not `true` fail it, for all that is
    public. Columns without a span may hold anything. Never False of what some row does."""
    match bound:
        case CodeIn(column=name, ranges=ranges):
            span = spans.get(name)
            if span is None or isinstance(span, Absent):
                return span is None
            low, high = span
            inside = sum(max(0, min(high, last) - max(low, first) + 1) for first, last in ranges)
            return inside > 0 if true else inside <= high - low
        case Is(column=name, kind=kind):
            span = spans.get(name)
            return span is None or (kind == (span.value if isinstance(span, Absent) else "answered")) == true
        case AllOf(parts=parts):
            return (all if true else any)(may_be(part, spans, true=true) for part in parts)
        case AnyOf(parts=parts):
            return (any if true else all)(may_be(part, spans, true=true) for part in parts)
        case Negation(part=part):
            return may_be(part, spans, true=not true)
        case Always():
            return true


def truth_array(
    bound: Bound,
    codes: Mapping[str, npt.NDArray[np.int64]],
    status: Mapping[str, npt.NDArray[np.int8]],
) -> tuple[Flags, Flags]:
    """For every row, whether the predicate is true and whether it is known; true implies known.

    `status` is 0 answered, 1 missing, 2 structural; the code beside a status other than 0 is never looked at.
    With no column at all there is no length to take, and both arrays have shape ().
    """
    shape = next(iter(status.values())).shape if status else ()
    is_true, is_false = _both(bound, codes, status, shape)
    return is_true, is_true | is_false


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _all(values: list[bool | None]) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def _both(
    bound: Bound,
    codes: Mapping[str, npt.NDArray[np.int64]],
    status: Mapping[str, npt.NDArray[np.int8]],
    shape: tuple[int, ...],
) -> tuple[Flags, Flags]:
    """Where it is true and where it is false. Kept as a pair, each connective is two plain operations."""
    match bound:
        case CodeIn(column=name, ranges=ranges):
            is_answered, is_inside = status[name] == 0, _inside(codes[name], ranges)
            return is_answered & is_inside, is_answered & ~is_inside
        case Is(column=name, kind=kind):
            holds = status[name] == STATUS_CODE[kind]
            return holds, ~holds
        case AllOf(parts=parts):
            trues, falses = zip(*(_both(part, codes, status, shape) for part in parts), strict=True)
            return reduce(np.logical_and, trues), reduce(np.logical_or, falses)
        case AnyOf(parts=parts):
            trues, falses = zip(*(_both(part, codes, status, shape) for part in parts), strict=True)
            return reduce(np.logical_or, trues), reduce(np.logical_and, falses)
        case Negation(part=part):
            is_true, is_false = _both(part, codes, status, shape)
            return is_false, is_true
        case Always():
            return np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)


def _inside(codes: npt.NDArray[np.int64], ranges: Ranges) -> Flags:
    """Whether each code lies in a range: only the last one that starts at or below it can hold it."""
    if not ranges:
        return np.zeros(codes.shape, dtype=np.bool_)
    lows, highs = np.array(ranges, dtype=np.int64).T
    place = np.searchsorted(lows, codes, side="right") - 1
    return np.asarray((place >= 0) & (codes <= highs[place]))
