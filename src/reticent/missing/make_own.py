"""Masks that depend on the very answer that is lost: logistic in it, or for one end of the column alone. For trials."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from reticent.errors import PlanError
from reticent.missing.chances import Flags, in_tail, logistic
from reticent.missing.make_driven import Codes, DrivenMask, Rng, asked_of, check_rate, scores

SLOPE = 1.5

Side = Literal["upper", "lower", "both"]
_TAILS: dict[str, tuple[tuple[int, float], ...]] = {
    "upper": ((1, 1.0),),
    "lower": ((-1, 1.0),),
    "both": ((1, 0.5), (-1, 0.5)),
}


def self_masking(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    slope: float = SLOPE,
) -> DrivenMask:
    """Not at random: probability logistic in the cell's own value, `slope` for each standard deviation."""
    check_rate(rate)
    lots, asked = rng.random(values.shape), asked_of(values, asked)
    chances = np.empty(values.shape)
    for k in range(values.shape[1]):
        own = scores(values[:, k], asked[:, k], rng, k in nominal)
        chances[:, k] = logistic(slope * own, asked[:, k], rate)
    return DrivenMask(mask=(lots < chances) & asked, drivers=tuple(range(values.shape[1])))


def quantile(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    share: float = 0.5,
    side: Side = "upper",
) -> DrivenMask:
    """Not at random: only the `share` of a column at one end, or both, is ever lost, so there at rate / share.

    Ties are kept together: cells equal to the threshold are lost with the probability that keeps the rate. Columns
    without an order have no end and stay complete.
    """
    check_rate(rate)
    if not rate <= share <= 1 or share == 0:
        raise PlanError("the rate is at most the share of cells that may be lost.", field="rate")
    lots, asked = rng.random(values.shape), asked_of(values, asked)
    tails = np.zeros(values.shape)
    ordered = tuple(k for k in range(values.shape[1]) if k not in nominal)
    for k in ordered:
        for sign, part in _TAILS[side]:
            tails[:, k] += in_tail(sign * np.asarray(values[:, k], dtype=float), asked[:, k], part * share)
    complete = tuple(sorted(set(range(values.shape[1])) - set(ordered)))
    return DrivenMask(mask=(lots * share < rate * tails) & asked, drivers=ordered, complete=complete)
