"""A leaf: exact numbers, as decimals read and written without a float in between, and as balls (`flint.arb`).

A ball holds the true value of a rational at whatever precision is set.
"""

import re
from fractions import Fraction

from flint import arb, fmpq

_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def read_decimal(value: object) -> Fraction | None:
    """An exact rational from an int, a Decimal or plain decimal text; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value)
    return Fraction(text) if _DECIMAL.fullmatch(text) and text.isascii() else None


def exact_text(value: Fraction, *, places: int) -> str | None:
    """The shortest decimal equal to `value`; None where it needs more than `places` digits after the point."""
    digits = next((k for k in range(places + 1) if 10**k % value.denominator == 0), None)
    if digits is None:
        return None
    text = str(abs(value.numerator) * (10**digits // value.denominator)).zfill(digits + 1)
    whole, part = text[: len(text) - digits], text[len(text) - digits :]
    return ("-" if value < 0 else "") + whole + ("." + part if part else "")


def show(value: Fraction, *, digits: int = 12) -> str:
    """Decimal text of a rational: exact where it ends within `digits` places, else rounded half up there."""
    scaled = value * 10**digits
    steps = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    whole, part = divmod(abs(steps), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if digits else str(whole)
    return f"-{text}" if steps < 0 else text


def ball(value: Fraction | int) -> arb:
    """A ball that holds the rational `value`."""
    return arb(fmpq(value.numerator, value.denominator))
