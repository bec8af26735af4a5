"""Filter expressions as values: what was written, exactly, before any codebook is asked, and the words of the grammar.

`str(p)` is canonical text, and parses back to the same tree, up to the parser's limit on length.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Final, Literal, TypeAlias, get_args

from reticent.exact import exact_text

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
RESERVED: Final = frozenset({"and", "or", "not", "in", "between", "is"})
MAX_DIGITS: Final = 30

# Marks that reorder what a reader sees: a predicate is printed in reports and must read as it was parsed.
_REORDERING: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_column_name(name: str) -> bool:
    """True for a name a predicate can speak of: the name rule (R13), and no reserved word in any case."""
    return NAME.fullmatch(name) is not None and name.lower() not in RESERVED


def is_refused_character(char: str) -> bool:
    """True for control characters, line separators, lone surrogates and marks that reorder text."""
    return unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in _REORDERING


def quoted(text: str) -> str:
    """The literal in single quotes, a quote inside doubled."""
    return "'" + text.replace("'", "''") + "'"


def decimal_text(value: Fraction) -> str:
    """The number in full, without exponent: the shortest text that reads back as the same rational."""
    text = exact_text(value, places=MAX_DIGITS)
    if text is None or abs(value) >= 10**MAX_DIGITS:
        raise ValueError(
            f"the number cannot be written with {MAX_DIGITS} digits on each side of the point; round it"
        )
    return text


def literal_text(literal: Fraction | str) -> str:
    """A literal as the grammar writes it."""
    return quoted(literal) if isinstance(literal, str) else decimal_text(literal)


Op = Literal["=", "!=", "<", "<=", ">", ">=", "in", "between"]
Kind = Literal["missing", "answered", "structural"]
MAX_DEPTH: Final = 50


@dataclass(frozen=True, slots=True)
class Compare:
    """A column against literals: one, two for `between`, one or more for `in`. Unknown where not answered."""

    depth: ClassVar[int] = 0
    column: str
    op: Op
    literals: tuple[Fraction | str, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.op not in get_args(Op):
            raise ValueError(f"a comparison is one of {', '.join(get_args(Op))}")
        _check_count(self.op, len(self.literals))
        for literal in self.literals:
            _check_literal(literal)
        if self.op == "between":
            _check_order(*self.literals)

    def __str__(self) -> str:
        texts = [literal_text(literal) for literal in self.literals]
        if self.op == "in":
            return f"{self.column} in ({', '.join(texts)})"
        return f"{self.column} {self.op} {' and '.join(texts)}"


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a cell is missing, answered, or structural (the question was not asked). Always known."""

    depth: ClassVar[int] = 0
    column: str
    kind: Kind

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.kind not in get_args(Kind):
            raise ValueError(f"a cell is one of {', '.join(get_args(Kind))}")

    def __str__(self) -> str:
        return f"{self.column} is {self.kind}"


@dataclass(frozen=True, slots=True)
class Everyone:
    """No condition: true for every respondent."""

    depth: ClassVar[int] = 0

    def __str__(self) -> str:
        return "everyone"


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold: false as soon as one is false, else unknown as soon as one is unknown."""

    parts: "tuple[Predicate, ...]"
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above(self.parts, at_least=2))

    def __str__(self) -> str:
        return " and ".join(_inner(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Some part holds: true as soon as one is true, else unknown as soon as one is unknown."""

    parts: "tuple[Predicate, ...]"
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above(self.parts, at_least=2))

    def __str__(self) -> str:
        return " or ".join(_inner(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold. Unknown stays unknown: `not (age < 18)` says nothing of the silent."""

    part: "Predicate"
    depth: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _depth_above((self.part,), at_least=1))

    def __str__(self) -> str:
        part = self.part
        if isinstance(part, Compare) and part.op in ("in", "between"):
            return f"{part.column} not {str(part).removeprefix(part.column + ' ')}"
        if isinstance(part, Status):
            return f"{part.column} is not {part.kind}"
        return f"not {_inner(part)}"


Predicate: TypeAlias = Compare | Status | And | Or | Not | Everyone


def columns_compared(predicate: Predicate) -> tuple[str, ...]:
    """The columns whose answers decide, each once, in order of appearance; statuses do not count."""
    return tuple(dict.fromkeys(leaf.column for leaf in _leaves(predicate) if isinstance(leaf, Compare)))


def statuses(predicate: Predicate) -> tuple[Status, ...]:
    """Where it asks whether a cell is missing, answered or structural."""
    return tuple(leaf for leaf in _leaves(predicate) if isinstance(leaf, Status))


def columns_used(predicate: Predicate) -> tuple[str, ...]:
    """All columns spoken of, each once, in order of appearance."""
    return tuple(dict.fromkeys(leaf.column for leaf in _leaves(predicate)))


def _leaves(predicate: Predicate) -> Iterator[Compare | Status]:
    match predicate:
        case Compare() | Status():
            yield predicate
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from _leaves(part)
        case Not(part=part):
            yield from _leaves(part)


def _inner(part: Predicate) -> str:
    # `and` and `or` inside another stand in parentheses, so that the nesting reads back as it was.
    return f"({part})" if isinstance(part, And | Or) else str(part)


def _depth_above(parts: tuple[Predicate, ...], *, at_least: int) -> int:
    if not isinstance(parts, tuple) or len(parts) < at_least:
        raise ValueError(f"needs a tuple of at least {at_least} conditions")
    if not all(isinstance(part, Predicate) for part in parts):
        raise ValueError("every part is itself a predicate")
    depth = 1 + max(part.depth for part in parts)
    if depth > MAX_DEPTH:
        raise ValueError(f"conditions are nested more than {MAX_DEPTH} deep; write them flatter")
    return depth


def _check_column(name: str) -> None:
    if not isinstance(name, str) or not is_column_name(name):
        raise ValueError(
            "a column name is a letter or _, then up to 62 letters, digits or _; no reserved word"
        )


def _check_count(op: str, count: int) -> None:
    if count == 0 or (op != "in" and count != (2 if op == "between" else 1)):
        raise ValueError(f'"{op}" does not take {count} values')


def _check_literal(literal: Fraction | str) -> None:
    if isinstance(literal, Fraction):
        decimal_text(literal)
    elif not isinstance(literal, str) or any(map(is_refused_character, literal)):
        raise ValueError("a value is an exact number (Fraction) or text without control characters")


def _check_order(low: Fraction | str, high: Fraction | str) -> None:
    # Levels of text are ordered by the codebook, which checks them when the predicate is bound.
    if isinstance(low, Fraction) and isinstance(high, Fraction) and low > high:
        raise ValueError("between has its larger number first; swap the two")
