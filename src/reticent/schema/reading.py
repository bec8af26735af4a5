"""What a text means: a number, a truth value, a date, or the text itself. One rule, whatever file or frame holds it.

The meaning of a cell follows from that cell and the codebook, never from the type that a file or frame gave the
whole column: that type can hang on a single respondent. Why, and the table: docs/decisions/0015-one-reading.md.

A number is the double nearest to it, and a double means the decimal that its shortest writing shows.
"""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction

READING = 1  # the version of this rule; it is part of what binds a partition

BLANKS = " \t"  # all that is trimmed
LAST_WHOLE = 2**53  # up to here every whole number is a double of its own
PLACES = 12  # a number counts to so many decimals, halves away from zero

# The same patterns are matched by Python and by the engine: ASCII, no look-around.
_PLAIN = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)"
_VAST = "[+-]?(?i:inf|infinity)"
_PRINTED = "[+-]?[0-9]([.][0-9]*)?e[+-][0-9]{2,3}"  # as doubles are printed; the code 1E5 is none
QUANTITY = f"{_PLAIN}([eE][+-]?[0-9]+)?|{_VAST}"
CODE = f"{_PLAIN}|{_PRINTED}|{_VAST}"
MOMENT = "([0-9]{4}-[0-9]{2}-[0-9]{2})[ T]([0-9]{2}:[0-9]{2}:[0-9]{2})([.][0-9]+)?"
TRUTHS = {"true": ("true", "True", "TRUE"), "false": ("false", "False", "FALSE")}

_TRUTH_OF = {word: truth for truth, words in TRUTHS.items() for word in words}
_WIDE = Context(prec=400, rounding=ROUND_HALF_UP)


def read_quantity(text: str) -> float | None:
    """The number that a text is in a column of numbers, exponents read; None for any other text."""
    return _matched(QUANTITY, text)


def read_code(text: str) -> float | None:
    """The number that a text is among levels and identifiers, where an exponent is read as printed alone."""
    return _matched(CODE, text)


def canonical(text: str) -> str:
    """One text for all that mean the same: 17 for 017, 17.0 and 1.7e+01; true for TRUE; a day for its midnight."""
    number = read_code(text)
    if number is not None:
        return number_text(number)
    return _TRUTH_OF.get(text) or moment_text(text) or text


def number_text(number: float) -> str:
    """A double as its digits where it is whole and every whole number is one; else its shortest writing."""
    if abs(number) <= LAST_WHOLE and number == int(number):
        return str(int(number))
    return repr(number)


def moment_text(text: str) -> str | None:
    """A date with its time of day, without the zeros at the end; the date alone at midnight. None for other texts."""
    found = re.fullmatch(MOMENT, text)
    if found is None:
        return None
    day, time, part = found[1], found[2], (found[3] or "").rstrip("0").rstrip(".")
    return day if time + part == "00:00:00" else f"{day} {time}{part}"


def exact(number: float) -> Fraction:
    """What a finite double means: the decimal that its shortest writing shows, to twelve decimals."""
    shown = Decimal(repr(number))
    return Fraction(shown.quantize(Decimal(1).scaleb(-PLACES), context=_WIDE))


def _matched(pattern: str, text: str) -> float | None:
    plain = text.strip(BLANKS)
    return float(plain) if re.fullmatch(pattern, plain) else None
