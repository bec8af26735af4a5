"""The simulated state's land and homes: what is drawn before anybody lives there.

Nothing here was estimated from real records. The shares and curves are round numbers, chosen so that the
population looks like an American state at arm's length: a quarter of homes hold one person, cities are
mixed, tracts differ in affluence.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]

LEVELS: dict[str, tuple[str, ...]] = {
    "region": ("coast", "hills", "plains", "valley"),
    "stratum": tuple(f"{r}-{d}" for r in ("coast", "hills", "plains", "valley") for d in ("rural", "urban")),
    "sex": ("f", "m"),
    "race": ("asian", "black", "native", "other", "white"),
    "marital": ("married", "widowed", "divorced", "separated", "never"),
    "relationship": ("head", "partner", "child", "relative", "unrelated"),
    "schooling": (
        "none",
        "nursery",
        "primary",
        "middle",
        "some-high",
        "high-school",
        "some-college",
        "bachelor",
        "graduate",
    ),
    "employment": ("employed", "unemployed", "inactive"),
}
TRACTS = 2000
HEAD, PARTNER, CHILD, RELATIVE, UNRELATED = range(5)

# Homes: alone, couple, couple with children, lone parent, extended family, sharers.
ALONE, COUPLE, PARENTS, LONE, EXTENDED, SHARERS = range(6)
HOME_SHARES = np.array([0.26, 0.26, 0.22, 0.09, 0.09, 0.08])
# Age of the head at the 0, 1/7, ..., 1 quantile; homes with children take it from the youngest child.
HEAD_AGES = np.array(
    [
        [18, 26, 34, 47, 60, 71, 81, 100],
        [19, 28, 40, 52, 60, 67, 75, 96],
        [18, 28, 33, 38, 43, 48, 54, 66],
        [18, 26, 31, 36, 41, 46, 52, 66],
        [20, 30, 38, 45, 52, 59, 66, 90],
        [18, 20, 22, 25, 29, 35, 48, 85],
    ],
    dtype=float,
)


@dataclass(frozen=True, slots=True)
class Land:
    """The geography, the same in every population: one entry per tract."""

    share: Array
    region: Array
    urban: Array
    affluence: Array
    races: Array


@cache
def land() -> Land:
    """Tracts with their size, region, density, affluence and mix of races."""
    rng = np.random.default_rng(1787)
    region = np.repeat(np.arange(4), [760, 260, 340, 640])
    urban = rng.random(TRACTS) < np.array([0.9, 0.35, 0.45, 0.75])[region]
    affluence = rng.normal(np.array([0.25, -0.15, -0.1, 0.05])[region], 0.6)
    base = np.array([[0.12, 0.16, 0.01, 0.16, 0.55], [0.02, 0.05, 0.03, 0.05, 0.85]])[1 - urban.astype(int)]
    races = rng.gamma(4 * base + 0.02)
    size = rng.gamma(4.0, 0.25, TRACTS)
    return Land(size / size.sum(), region, urban, affluence, races / races.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class Homes:
    """One entry per household."""

    kind: Array
    tract: Array
    couple: Array
    children: Array
    relatives: Array
    unrelated: Array
    youngest: Array
    head_age: Array

    @property
    def size(self) -> Array:
        return 1 + self.couple + self.children + self.relatives + self.unrelated


def pick(rng: np.random.Generator, shares: Array, size: int) -> Array:
    """Positions drawn with the given shares."""
    edges = np.cumsum(shares)[:-1] / shares.sum()
    return np.searchsorted(edges, rng.random(size), side="right")


def draw_homes(rng: np.random.Generator, size: int) -> Homes:
    """Households of six kinds, each in a tract."""
    kind = pick(rng, HOME_SHARES, size)
    extended = kind == EXTENDED
    couple = np.isin(kind, (COUPLE, PARENTS)) | (extended & (rng.random(size) < 0.6))
    is_parent = np.isin(kind, (PARENTS, LONE)) | (extended & (rng.random(size) < 0.4))
    children = is_parent * (1 + np.minimum(rng.poisson(0.85, size), 6))
    relatives = extended * (1 + (rng.random(size) < 0.35))
    unrelated = (kind == SHARERS) * (1 + np.minimum(rng.poisson(0.5, size), 4))
    youngest = (23 * rng.random(size) ** 1.3).astype(int)
    # A parent is 17 to 41 years older than the youngest child; two uniforms make the middle likelier.
    from_child = youngest + 17 + (12 * (rng.random(size) + rng.random(size))).astype(int)
    at = 7 * rng.random(size)
    knot = at.astype(int)
    low, high = HEAD_AGES[kind, knot], HEAD_AGES[kind, knot + 1]
    drawn = (low + (high - low) * (at - knot)).astype(int)
    head_age = np.where(is_parent, from_child, np.minimum(drawn, 99))
    tract = pick(rng, land().share, size)
    return Homes(kind, tract, couple.astype(int), children, relatives, unrelated, youngest, head_age)


@dataclass(frozen=True, slots=True)
class Seats:
    """Who sits where: one entry per person."""

    home: Array
    first: Array
    place: Array
    role: Array


def seat(homes: Homes, count: int) -> Seats:
    """The first `count` people of these homes in order; the last home may be cut short."""
    size = homes.size
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    home = np.repeat(np.arange(len(size)), size)[:count]
    place = np.arange(len(home)) - starts[home]
    ends = np.cumsum([np.ones_like(size), homes.couple, homes.children, homes.relatives], axis=0)
    role = (place >= ends[0][home]).astype(int)
    for end in ends[1:]:
        role += place >= end[home]
    return Seats(home, starts[home], place, role)
