"""Rényi accountant of the Poisson-sampled Gaussian mechanism: what noisy sums over random samples cost, at whole orders.

In each step every record is drawn by a coin of its own, independently, with a public chance; a sum over those drawn, which
one record moves by a whole vector of length at most C, gets discrete Gaussian noise, or the rounded normal, of deviation
`multiplier` times C. Steps compose by adding divergences order by order, with what zCDP mechanisms cost beside them.
"""

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.privacy.convert import ball_up

ORDERS = (*range(2, 65), *range(72, 129, 8), 160, 192, 256)
"""Whole orders alpha that are tried. Each is valid, so more of them make a claim tighter and never wrong."""
LEAST, MOST = Fraction(1, 10), Fraction(10**6)
"""Multipliers that are looked for."""
_PLACES = 10**6


def sampled_divergence(order: int, *, rate: Fraction, multiplier: Fraction) -> arb:
    """A bound on the Rényi divergence of order alpha between neighbours' outputs of one step, in both directions.

    (alpha - 1) R = ln sum over i of binomial(alpha, i) (1-q)^(alpha-i) q^i exp(i(i-1)/(2 s^2))

    Guarantee   the divergence of one step, whichever of the two neighbours comes first.
    Adjacency   one record added or removed.
    Theorem     Mironov, Talwar and Zhang 2019, theorem 5; for whole numbers THEORY 19.3.
    Proof       proofs/privacy/renyi.md
    Assumes     coins independent of everything, one a record and step; noise of deviation at least multiplier x length.
    Keeps back  nothing: no row is read.
    """
    with ctx.workprec(256):
        q, square = ball(rate), ball(multiplier * multiplier)
        terms = (
            math.comb(order, i) * (1 - q) ** (order - i) * q**i * (arb(i * (i - 1)) / (2 * square)).exp()
            for i in range(order + 1)
        )
        return sum(terms, arb(0)).log() / (order - 1)


def sampled_epsilon(
    *, rho: Fraction, steps: int, rate: Fraction, multiplier: Fraction, delta: Fraction
) -> Fraction:
    """An epsilon such that `steps` sampled steps and anything rho-zCDP beside them are together (epsilon, delta)-DP.

    Guarantee   (epsilon, delta)-DP of all of it, adaptively composed.
    Adjacency   one record added or removed.
    Theorem     composition of Rényi divergences; Canonne, Kamath and Steinke 2020, proposition 12.
    Proof       proofs/privacy/renyi.md
    Assumes     that of `sampled_divergence`; rho >= 0 and 0 < delta < 1.
    Keeps back  nothing: no row is read.
    """
    _check_step(rate, multiplier)
    order = min(
        ORDERS,
        key=lambda alpha: _about(alpha, float(rho), steps, float(rate), float(multiplier), float(delta)),
    )
    with ctx.workprec(256):
        spent = ball(rho) * order + steps * sampled_divergence(order, rate=rate, multiplier=multiplier)
        tail = (arb(order) * ball(delta)).log() / (order - 1)
        return ball_up(spent - tail + (arb(order - 1) / order).log())


@lru_cache(maxsize=64)
def multiplier_within(
    *, epsilon: Fraction, delta: Fraction, rho: Fraction, steps: int, rate: Fraction
) -> Fraction:
    """About the least noise multiplier, a decimal of six places, at which all of it is certified to cost at most epsilon."""
    low, high = LEAST, MOST

    def is_enough(multiplier: Fraction) -> bool:
        found = sampled_epsilon(rho=rho, steps=steps, rate=rate, multiplier=multiplier, delta=delta)
        return found <= epsilon

    if not is_enough(high):
        raise PlanError(
            "it is too small for so many steps; use a larger one, or fewer steps.", field="epsilon"
        )
    while high - low > Fraction(1, _PLACES) and high > low * (1 + Fraction(1, 10_000)):
        middle = Fraction(math.ceil((low + high) / 2 * _PLACES), _PLACES)
        if middle >= high:
            break
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _about(order: int, rho: float, steps: int, rate: float, multiplier: float, delta: float) -> float:
    """The same in doubles, to pick an order by: whichever is picked is certified afterwards."""
    logs = [
        math.lgamma(order + 1) - math.lgamma(i + 1) - math.lgamma(order - i + 1)
        + (order - i) * math.log1p(-rate) + i * math.log(rate) + i * (i - 1) / (2 * multiplier * multiplier)
        for i in range(order + 1)
    ]  # fmt: skip
    top = max(logs)
    one = (top + math.log(sum(math.exp(each - top) for each in logs))) / (order - 1)
    return rho * order + steps * one - math.log(order * delta) / (order - 1) + math.log(1 - 1 / order)


def _check_step(rate: Fraction, multiplier: Fraction) -> None:
    if not 0 < rate < 1 or multiplier < LEAST:
        raise PlanError(f"a rate lies between 0 and 1, a multiplier is {LEAST} or more", field="rate")
