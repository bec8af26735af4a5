"""Amounts of budget: decimals written as text, held as rationals, so that sums are exact (R07, L08)."""

import re
from fractions import Fraction

from reticent.decimals import exact_text
from reticent.errors import PlanError

PLACES = 12
_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


def exact(text: object, *, field: str) -> Fraction:
    """The rational a decimal stands for; anything but plain digits and one point is refused."""
    if not isinstance(text, str) or _DECIMAL.fullmatch(text) is None:
        raise PlanError(
            'amounts are decimals in quotes, at most 12 digits on each side of the point, such as "0.5".',
            field=field,
        )
    return Fraction(text)


def decimal_text(amount: object, *, field: str) -> str:
    """The shortest decimal equal to `amount`; refused where there is none of twelve places."""
    if isinstance(amount, bool) or not isinstance(amount, int | Fraction):
        raise PlanError("amounts are exact; give a Fraction, not a float.", field=field)
    text = exact_text(Fraction(amount), places=PLACES)
    if text is None or not 0 <= amount < 10**PLACES:
        raise PlanError(
            "the amount is no decimal of at most 12 digits on each side of the point; round it up to one.",
            field=field,
        )
    return text
