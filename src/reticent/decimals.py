"""A leaf: exact decimals, read and written without a float in between."""

import re
from fractions import Fraction

_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def read_decimal(value: object) -> Fraction | None:
    """An exact rational from an int, a Decimal or plain decimal text; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    text = str(value)
    return Fraction(text) if _DECIMAL.fullmatch(text) and text.isascii() else None


def show(value: Fraction, *, digits: int = 12) -> str:
    """Decimal text of a rational: exact where it ends within `digits` places, else rounded half up there."""
    scaled = value * 10**digits
    steps = (2 * scaled.numerator + scaled.denominator) // (2 * scaled.denominator)
    whole, part = divmod(abs(steps), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".") if digits else str(whole)
    return f"-{text}" if steps < 0 else text
