"""A leaf: small words for messages."""

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'age'?`, or nothing when nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def is_printable(text: str) -> bool:
    """No control characters, no direction marks, nothing a terminal or a spreadsheet would act on."""
    return all(char.isprintable() for char in text)
