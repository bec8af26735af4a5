"""Guarantees as values: what is promised, against which change, resting on what, and what it costs in epsilon or rho (zCDP).

Amounts are exact rationals written as decimals. Where a step between two kinds of promise is not rational
(`convert`), its result is rounded up, so that a claim is never smaller than what was proved. A ledger has one unit for good,
and adds exact decimals of it. (epsilon, delta) is for readers: it is computed from a sum of rho when it is shown, for one
declared delta, and is neither stored nor added (THEORY 16.3).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Literal, get_args

from reticent.errors import PlanError
from reticent.exact import exact_text, show
from reticent.privacy import convert
from reticent.privacy.convert import pure_to_zcdp, rounded_up, zcdp_to_epsilon

Measure = Literal["pure", "approximate", "zcdp", "observed"]
Arithmetic = Literal["exact", "ideal reals"]
About = Literal["the incomplete data held", "the complete truth behind it", "the frame it was drawn from"]

_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_CARRIES: dict[str, frozenset[str]] = {
    "pure": frozenset({"epsilon"}),
    "approximate": frozenset({"epsilon", "delta"}),
    "zcdp": frozenset({"rho"}),
    "observed": frozenset(),
}
_ZERO = Fraction(0)


class Change(StrEnum):
    """The change that must stay hidden."""

    ADD_REMOVE = "one respondent added or removed"
    REPLACE = "one respondent's answers replaced"


def amount(text: object, *, field: str = "epsilon") -> Fraction:
    """The positive decimal written in `text`, exactly; anything else is refused by name (R07)."""
    if text is None:
        raise PlanError("is not said; write what may be spent, such as 0.5.", field=field)
    if not isinstance(text, str) or not _AMOUNT.fullmatch(text):
        raise PlanError(
            'write a plain decimal such as 0.5 or "0.5", at most 12 digits before the point and 12 after.',
            field=field,
        )
    value = Fraction(text)
    if value == 0:
        raise PlanError("it is 0, but must be positive; leave the step out instead.", field=field)
    return value


LEAST = Fraction(1, 10**6)


def read_epsilon(text: str | None, *, field: str) -> Fraction:
    """An amount of epsilon, large enough to say anything."""
    epsilon = amount(text, field=field)
    if epsilon < LEAST:
        raise PlanError("is smaller than 0.000001; the estimate would be noise alone", field=field)
    return epsilon


def decimal(value: Fraction) -> str:
    """`value` as a decimal, digit for digit; a rational without a finite decimal is refused."""
    text = exact_text(value, places=60)
    if text is None:
        raise PlanError(f"{value} has no decimal of 60 places; use amounts that are decimals.")
    return text


def _text(value: Fraction) -> str:
    try:
        return decimal(value)
    except PlanError:
        return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A differential privacy guarantee. `observed` is not a formal one and says so wherever it is printed.

    `secret` names what readers of the releases must not know for it to hold; empty where it holds whatever they know.

    **Parameters**

    - `measure`: which kind of guarantee, such as `"pure"`, `"approximate"` or `"observed"`.
    - `epsilon`: where the measure has one, exactly.
    - `delta`: where the measure has one.
    - `rho`: for zero-concentrated differential privacy.
    - `change`: the adjacency: one respondent added or removed, or replaced.
    - `rests_on`: theorems, each with the page that proves it.
    - `arithmetic`: whether the proof holds for the arithmetic that ran, or for ideal reals.
    - `about`: the data held, or the complete truth behind them.
    - `secret`: what has to stay unknown.
    """

    measure: Measure
    epsilon: Fraction = _ZERO
    delta: Fraction = _ZERO
    rho: Fraction = _ZERO
    change: Change = Change.ADD_REMOVE
    rests_on: tuple[tuple[str, str], ...] = ()
    arithmetic: Arithmetic = "exact"
    about: About = "the incomplete data held"
    secret: str = ""

    def __post_init__(self) -> None:
        carried = _CARRIES.get(self.measure)
        if carried is None:
            raise PlanError(f"{self.measure!r} is none of {', '.join(_CARRIES)}.", field="measure")
        for name in ("epsilon", "delta", "rho"):
            _check_amount(name, getattr(self, name), carried=name in carried)
        if self.delta >= 1:
            raise PlanError(
                f"it is {_text(self.delta)}, but must be below 1 to guarantee anything.", field="delta"
            )
        _check_words(self)

    def under(self, change: Change) -> "Claim":
        """The same promise against `change`. Replacing is removing and adding: twice epsilon, four times rho."""
        if change == self.change:
            return self
        if change == Change.ADD_REMOVE:
            raise PlanError(
                "a guarantee against replacing answers says nothing of adding or removing a respondent; "
                "use a mechanism proved for that change.",
                field="change",
            )
        return replace(self.times(2), change=change)

    def times(self, k: int) -> "Claim":
        """The promise to a group of `k` records changed together."""
        if k < 1:
            raise PlanError(f"the group has {k} records, but must have at least 1.", field="at_most")
        if self.measure == "approximate":
            epsilon, delta = convert.group(epsilon=self.epsilon, delta=self.delta, k=k)
            return replace(self, epsilon=epsilon, delta=delta)
        return replace(self, epsilon=k * self.epsilon, rho=k * k * self.rho)

    def as_dict(self) -> dict[str, object]:
        """For JSON: every amount a string, and only those this measure carries."""
        amounts: dict[str, object] = {
            n: _text(getattr(self, n)) for n in ("epsilon", "delta", "rho") if n in _CARRIES[self.measure]
        }
        return {
            "measure": self.measure,
            **amounts,
            "change": self.change.value,
            "rests_on": [{"theorem": theorem, "proof": page} for theorem, page in self.rests_on],
            "arithmetic": self.arithmetic,
            "about": self.about,
            **({"secret": self.secret} if self.secret else {}),
        }

    def __str__(self) -> str:
        promise = {
            "pure": f"{_text(self.epsilon)}-DP",
            "approximate": f"({_text(self.epsilon)}, {_text(self.delta)})-DP",
            "zcdp": f"{_text(self.rho)}-zCDP",
            "observed": "not differentially private (observed sensitivity)",
        }[self.measure]
        rest = "" if self.about == "the incomplete data held" else f", about {self.about}"
        return f"{promise}, {self.change.value}, {self.arithmetic}{rest}{while_secret(self.secret)}"


def while_secret(secret: str) -> str:
    """For the end of a promise's words."""
    return f", while {secret} stays secret" if secret else ""


def _check_amount(name: str, value: object, *, carried: bool) -> None:
    if not isinstance(value, Fraction):
        raise PlanError("pass an exact Fraction, as amount() makes it.", field=name)
    if (value > 0) != carried or value < 0:
        rule = "must be positive" if carried else "does not belong to this measure"
        raise PlanError(f"it is {_text(value)}, but {rule}.", field=name)


def _check_words(claim: Claim) -> None:
    if not isinstance(claim.change, Change):
        raise PlanError(f"{claim.change!r} is no Change.", field="change")
    if claim.arithmetic not in ("exact", "ideal reals"):
        raise PlanError(f"{claim.arithmetic!r} is neither exact nor ideal reals.", field="arithmetic")
    if claim.about not in get_args(About):
        raise PlanError(f"{claim.about!r} names no data.", field="about")


def check_exact(claim: Claim, *, field: str) -> Claim:
    """The claim, unless it is proved for ideal reals alone: such a one is neither charged nor handed out."""
    if claim.arithmetic != "exact":
        raise PlanError(
            "guarantees in ideal reals, which no computer has; take one whose arithmetic is exact.",
            field=field,
        )
    return claim


def compose(claims: Iterable[Claim]) -> Claim:
    """The promise of all of them together, made one after the other on the same respondents."""
    parts = tuple(claims)
    if not parts:
        raise PlanError("no claim to compose; a plan that asks nothing guarantees nothing.", field="claims")
    if len(parts) > 1:
        _check_alike(parts)
    total = _totals(parts)
    return replace(
        total,
        rests_on=tuple(dict.fromkeys(pair for part in parts for pair in part.rests_on)),
        arithmetic="exact" if all(part.arithmetic == "exact" for part in parts) else "ideal reals",
        secret=" and ".join(
            dict.fromkeys(p.secret for p in parts if p.secret and total.measure != "observed")
        ),
    )


def _check_alike(parts: tuple[Claim, ...]) -> None:
    if len({part.change for part in parts}) > 1:
        raise PlanError("the claims hide different changes; bring them to one with under().", field="change")
    if any(part.about != "the incomplete data held" for part in parts):
        # Mechanisms on the same masked rows share one mask, and log E e^(s1+s2) >= log E e^s1 + log E e^s2;
        # those on the same sample share one draw, with the same consequence.
        raise PlanError(
            "amplified guarantees share one mask or one sample and do not add; "
            "amplify the mechanisms together (THEORY 4.1 and 5.1).",
            field="about",
        )


def _totals(parts: tuple[Claim, ...]) -> Claim:
    first, measures = parts[0], {part.measure for part in parts}
    if "observed" in measures:
        return replace(first, measure="observed", epsilon=_ZERO, delta=_ZERO, rho=_ZERO)
    if "zcdp" not in measures:
        epsilon, delta = sum((p.epsilon for p in parts), _ZERO), sum((p.delta for p in parts), _ZERO)
        return replace(first, measure="approximate" if delta else "pure", epsilon=epsilon, delta=delta)
    if "approximate" in measures:
        raise PlanError(
            "zCDP and (epsilon, delta) claims do not add; convert the zCDP ones at a delta of your choice first.",
            field="measure",
        )
    rho = sum((p.rho or convert.pure_to_zcdp(epsilon=p.epsilon) for p in parts), _ZERO)
    return replace(first, measure="zcdp", epsilon=_ZERO, delta=_ZERO, rho=rho)


Unit = Literal["epsilon", "rho"]
UNITS: tuple[Unit, ...] = ("epsilon", "rho")
DELTA = Fraction(1, 10**6)
"""The delta at which rho is shown where nobody declared another."""
PAGE = "proofs/privacy/units.md"
SQUARED = ("every pure mechanism in rho: epsilon squared over two", PAGE)
_SHOWN = 10**4


def in_unit(claim: Claim, unit: Unit, *, field: str = "measure") -> Claim:
    """The claim as a ledger of this unit counts it, or a refusal that says what to write.

    Guarantee   whatever satisfies `claim` satisfies what is returned.
    Adjacency   that of the claim.
    Theorem     THEORY 16.1: epsilon-DP is epsilon^2/2-zCDP.
    Proof       proofs/privacy/units.md
    Assumes     the claim was proved.
    Keeps back  nothing: no row is read.
    """
    if unit == "rho":
        return _in_rho(claim, field)
    if claim.measure == "zcdp":
        raise PlanError(
            "is promised in rho, which a ledger in epsilon cannot add; give it an epsilon, or use a ledger opened "
            "with --rho.",
            field=field,
        )
    return claim


def _in_rho(claim: Claim, field: str) -> Claim:
    if claim.measure == "zcdp":
        return replace(claim, rho=rounded_up(claim.rho))
    if claim.measure == "pure":
        rho = pure_to_zcdp(epsilon=claim.epsilon)
        return replace(
            claim, measure="zcdp", epsilon=Fraction(0), rho=rho, rests_on=(*claim.rests_on, SQUARED)
        )
    if claim.measure == "approximate":
        raise PlanError(
            "has a delta of its own, which does not add to rho; give it rho in place of epsilon and delta, or take a "
            "pure one.",
            field=field,
        )
    raise PlanError(
        "promises nothing that rho could count; publish it under a ledger in epsilon.", field=field
    )


def cost(claim: Claim, unit: Unit, *, field: str = "measure") -> Fraction:
    """What a ledger of this unit is charged for the claim: a decimal of 12 places where the unit is rho."""
    found = in_unit(claim, unit, field=field)
    return found.rho if unit == "rho" else found.epsilon


def as_approximate(rho: Fraction, delta: Fraction = DELTA) -> Fraction:
    """The epsilon that goes with `delta` for a sum of rho, rounded up to four places; 0 where nothing was spent."""
    if rho == 0:
        return Fraction(0)
    return Fraction(ceil(zcdp_to_epsilon(rho=rho, delta=delta) * _SHOWN), _SHOWN)


def in_words(rho: Fraction, delta: Fraction = DELTA) -> str:
    """`rho = 0.088, that is (2.0021, 0.000001)-DP`."""
    return f"rho = {show(rho)}, that is ({show(as_approximate(rho, delta))}, {show(delta)})-DP"


def read_spent(
    epsilon: str | None, rho: str | None, *, unit: Unit, no_rho: str, at: str
) -> tuple[Fraction, bool]:
    """An amount that is written as epsilon or as rho, and whether it is rho; refused where it is both, or cannot be rho.

    `no_rho` says why what it pays for cannot have a budget in rho.
    """
    if rho is None:
        if epsilon is None and unit == "rho":
            raise PlanError(
                "give it rho, or epsilon for pure noise, charged its square over two", field=f"{at}.rho"
            )
        return read_epsilon(epsilon, field=f"{at}.epsilon"), False
    if epsilon is not None:
        raise PlanError(
            "stands beside epsilon: one statistic has one unit; remove one of them", field=f"{at}.rho"
        )
    if unit != "rho":
        raise PlanError(
            'goes with measure = "zcdp" in [protect] and a ledger in rho; write epsilon here',
            field=f"{at}.rho",
        )
    if no_rho:
        raise PlanError(no_rho, field=f"{at}.rho")
    return amount(rho, field=f"{at}.rho"), True
