"""Kleene's three values: a condition on a cell without an answer is neither true nor false.

`truth` judges one row and is written to be read; `truth_array` judges many and must agree with it, as must the
SQL of `engine.predicate_sql`.
"""

from collections.abc import Mapping
from enum import Enum
from functools import reduce
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from reticent.predicate.bind import AllOf, Always, AnyOf, Bound, CodeIn, Is, Negation, Ranges
from reticent.predicate.tree import Kind


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
