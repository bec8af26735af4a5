"""The words of the grammar: names, reserved words, and how a literal is written down exactly."""

import re
import unicodedata
from fractions import Fraction
from typing import Final

from reticent.decimals import exact_text

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
