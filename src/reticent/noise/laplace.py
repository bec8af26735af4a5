"""Discrete Laplace noise for whole numbers with a global bound."""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_laplace
from opendp.metrics import absolute_distance, l1_distance
from opendp.mod import enable_features

from reticent.errors import PlanError
from reticent.sensitivity.bounds import Global

enable_features("contrib")  # OpenDP's integer samplers are behind this door

LIMIT = 1 << 62
"""Answers lie within this distance of zero; the plan's public numbers have seen to it."""


def add_laplace(answer: int, *, sensitivity: Global, epsilon: Fraction) -> int:
    """Add discrete Laplace noise, P(x) ~ exp(-|x| / scale), with scale at least sensitivity / epsilon.

    Guarantee   epsilon-DP for one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Laplace mechanism on the integers.
    Proof       proofs/noise/laplace.md
    Assumes     |answer - answer'| <= sensitivity.bound; OpenDP's integer sampler is exact.
    Keeps back  nothing: the scale is public.
    """
    check_whole([answer])
    return int(_scalar(laplace_scale(sensitivity, epsilon))(answer))


def add_laplace_many(answers: Sequence[int], *, sensitivity: Global, epsilon: Fraction) -> list[int]:
    """Add discrete Laplace noise to each answer; `sensitivity` bounds the sum of all their moves.

    Guarantee   epsilon-DP for the whole list, one call.
    Adjacency   the one `sensitivity` was bounded for.
    Theorem     the Laplace mechanism on the integers, in the L1 norm.
    Proof       proofs/noise/laplace.md
    Assumes     sum |answer - answer'| <= sensitivity.bound, both lists of one public length.
    Keeps back  nothing: the scale is public.
    """
    check_whole(answers)
    return [int(x) for x in _vector(laplace_scale(sensitivity, epsilon))(list(answers))]


def laplace_scale(sensitivity: Global, epsilon: Fraction) -> float:
    """The least double that is at least sensitivity / epsilon, for a whole bound."""
    if sensitivity.bound.denominator != 1:
        raise PlanError("the bound of a count or a sum on its grid is a whole number of grid steps")
    if epsilon <= 0:
        raise PlanError("epsilon is positive")
    return float_up(sensitivity.bound / epsilon)


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


@lru_cache(maxsize=64)
def _scalar(scale: float) -> Any:
    return make_laplace(atom_domain(T="i64"), absolute_distance(T="i64"), scale=scale)


@lru_cache(maxsize=64)
def _vector(scale: float) -> Any:
    return make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)
