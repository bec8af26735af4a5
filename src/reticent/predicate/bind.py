"""From words to codes: a predicate over a codebook's columns becomes one over integers.

Every column has integer codes (grid integers, the index of a level, ordinals by position), so past this point
no literal of the plan is left: neither SQL nor Python ever sees a level's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, Protocol, TypeAlias

from reticent.errors import PlanError
from reticent.predicate.tree import And, Compare, Everyone, Kind, Not, Or, Predicate, Status

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
