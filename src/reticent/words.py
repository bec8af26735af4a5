"""A leaf: small helpers for messages, and the one rule for names."""

import difflib
import re
from collections.abc import Iterable

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


def is_name(text: str) -> bool:
    """Whether `text` may name a column (R13)."""
    return NAME.fullmatch(text) is not None and text.isascii()


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'age'?`, or nothing when nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def is_printable(text: str) -> bool:
    """No control characters, no direction marks, nothing a terminal or a spreadsheet would act on."""
    return all(char.isprintable() for char in text)
