"""A leaf: exact numbers, as decimals read and written without a float in between, as balls (`flint.arb`), and for readers.

A ball holds the true value of a rational at whatever precision is set.
"""

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from math import floor, isfinite, log10

from flint import arb, fmpq

from reticent.errors import PlanError

_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")

LIMIT = 1 << 62
"""Answers lie within this distance of zero; the plan's public numbers have seen to it."""


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


DIGITS = 2  # significant digits of a margin of error that a reader is shown, and so of the value beside it
BARE = 5  # significant digits of a value that has no margin
MOST_PLACES = 6  # decimals in a release's own files


def places_for(size: float, digits: int = DIGITS, *, most: int = MOST_PLACES) -> int:
    """Decimals that show so many significant digits of a size; no more than `most`, and none where it is zero or no number."""
    if not size or not isfinite(size):
        return 0
    return min(most, max(0, digits - 1 - floor(log10(abs(size)))))


def margin_text(margin: float) -> str:
    """The half-width of an interval for a reader: two significant digits, rounded up."""
    if not isfinite(margin):
        return "without end"
    return rounded_up(margin, DIGITS - 1 - floor(log10(margin)) if margin > 0 else 0)


def level_words(levels: Iterable[float | None]) -> str:
    """`95 % `, to stand before the word interval, where all that have a level have the same; nothing where they differ."""
    told = {float(level) for level in levels if level is not None}
    return f"{100 * told.pop():g} % " if len(told) == 1 else ""


def rounded(value: float | None, places: int = MOST_PLACES) -> str:
    """A number for a reader, rounded by the one rule everywhere, floor(x/g + 1/2); negative places are zeros before the point."""
    return _rounded(value, places, Decimal("0.5"), ROUND_FLOOR)


def rounded_down(value: float | None, places: int = MOST_PLACES) -> str:
    """The same, toward minus infinity: the lower end of an interval."""
    return _rounded(value, places, Decimal(0), ROUND_FLOOR)


def rounded_up(value: float | None, places: int = MOST_PLACES) -> str:
    """The same, toward infinity: the upper end of an interval, or its half-width."""
    return _rounded(value, places, Decimal(0), ROUND_CEILING)


def _rounded(value: float | None, places: int, shift: Decimal, rounding: str) -> str:
    if value is None:
        return ""
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(str(value))
        steps = (exact.scaleb(places) + shift).to_integral_value(rounding=rounding)
        text = f"{steps.scaleb(-places):,f}"
    text = text.removeprefix("-") if not steps else text
    # A whole number stays whole, and where every digit is shown no zero is added to them.
    is_bare = places == MOST_PLACES or exact == exact.to_integral_value()
    return text.rstrip("0").rstrip(".") if is_bare and "." in text else text


def float_up(exact: Fraction) -> float:
    """The least double that is not below `exact`."""
    try:
        scale = float(exact)
    except OverflowError:
        raise PlanError(
            "the noise would be larger than any number we can write; use a larger epsilon"
        ) from None
    if Fraction(scale) < exact:
        scale = math.nextafter(scale, math.inf)
    if math.isinf(scale):
        raise PlanError("the noise would be larger than any number we can write; use a larger epsilon")
    return scale


def check_whole(answers: Sequence[int]) -> None:
    """Refuse what is no whole number within the limit; the text says the rule and not the number."""
    if any(type(answer) is not int for answer in answers):
        raise TypeError("an answer is a whole number of grid steps")
    if any(not -LIMIT <= answer <= LIMIT for answer in answers):
        raise ValueError("an answer lies beyond 2**62 grid steps")
