"""The reading of a cell once more, slowly and from the written rule: for what the engine is held to in tests.

A cell is a Python value. Nothing here is taken from the library but the columns of a codebook.
"""

import re
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import floor, inf, isinf, isnan
from typing import Any

from reticent.schema import Levels, Number

WIDE = Context(prec=500, rounding=ROUND_HALF_UP)
DIGITS = r"[+-]?(\d+(\.\d*)?|\.\d+)"
ENDLESS = r"[+-]?(inf|infinity)"


def as_double(cell: Any, *, in_numbers: bool) -> float | None:
    """The nearest double to a number; None for what is none."""
    if cell is None or isinstance(cell, bool | date) or (isinstance(cell, float) and isnan(cell)):
        return None
    if isinstance(cell, str):
        text = cell.strip(" \t")
        power = r"(e[+-]?\d+)?" if in_numbers else ""
        plain = re.fullmatch(DIGITS + power, text, re.ASCII | re.IGNORECASE)
        printed = re.fullmatch(r"[+-]?\d(\.\d*)?e[+-]\d\d\d?", text, re.ASCII)
        endless = re.fullmatch(ENDLESS, text, re.ASCII | re.IGNORECASE)
        return float(text) if plain or printed or endless else None
    try:
        return float(cell)
    except OverflowError:
        return inf if cell > 0 else -inf


def meant(number: float) -> Fraction:
    """The decimal that a double shows, to twelve places."""
    return Fraction(Decimal(repr(number)).quantize(Decimal("1e-12"), context=WIDE))


def number_code(column: Number, cell: Any) -> int | None:
    number = as_double(cell, in_numbers=True)
    silent = [as_double(code, in_numbers=True) for code in column.missing]
    if number is None or number in silent:
        return None
    if isinf(number):
        return column.high if number > 0 else column.low
    value = meant(number)
    if value in [meant(s) for s in silent if s is not None and not isinf(s)]:
        return None
    if column.whole and value.denominator != 1:
        return None
    return min(max(floor(value / column.grid + Fraction(1, 2)), column.low), column.high)


def key(cell: Any) -> str | None:
    """One text for all cells that mean the same."""
    if isinstance(cell, datetime):
        return _day(cell.isoformat(" "))
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, bool):
        return str(cell).lower()
    number = as_double(cell, in_numbers=False)
    if number is not None:
        whole = abs(number) <= 2**53 and number == int(number)
        return str(int(number)) if whole else repr(number)
    if not isinstance(cell, str):
        return None
    if cell in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return cell.lower()
    return _day(cell)


def _day(text: str) -> str:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?", text, re.ASCII)
    if found is None:
        return text
    time = found[2] + (found[3] or "").rstrip("0").rstrip(".")
    return found[1] if time == "00:00:00" else f"{found[1]} {time}"


def level_code(column: Levels, cell: Any) -> int | None:
    means = [key(level) for level in column.levels]
    return means.index(key(cell)) if cell is not None and key(cell) in means else None


def identifier(cell: Any) -> str | None:
    return key(cell.strip(" \t") if isinstance(cell, str) else cell) or None
