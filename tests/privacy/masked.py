"""Every mask of small tables, with exact laws of what is released from them, as arrays over all outputs.

A row is a dict of answers; its mask is the set of attributes that are observed. A mechanism takes the rows with
their masks and gives a law over a few outputs. Nothing is drawn.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import prod

import numpy as np

Row = Mapping[str, int]
Mask = frozenset[str]
Masked = tuple[tuple[Row, Mask], ...]
Mechanism = Callable[[Masked], np.ndarray]
Masks = Callable[[Row], list[tuple[Mask, float]]]


def subsets(names: Iterable[str]) -> Iterator[Mask]:
    listed = sorted(names)
    return (frozenset(each) for size in range(len(listed) + 1) for each in combinations(listed, size))


def independent(chances: Mapping[str, float]) -> Masks:
    """Bits independent of each other and of the row."""

    def masks(row: Row) -> list[tuple[Mask, float]]:
        return [
            (mask, prod(p if name in mask else 1 - p for name, p in chances.items()))
            for mask in subsets(chances)
        ]

    return masks


def is_used(mask: Mask, sets: Iterable[Mask]) -> bool:
    return any(one <= mask for one in sets)


def geometric(count: int, epsilon: float, top: int) -> np.ndarray:
    """A count of at most `top` with two-sided geometric noise, where its ratios are not yet at their ends or just are."""
    ratio = np.exp(-epsilon)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-1, top + 2) - count)


def count(*sets: str, epsilon: float, top: int = 2) -> Mechanism:
    """How many rows are used. epsilon-DP in these, add/remove; it tells a row from none, not from another."""
    needed = [frozenset(one) for one in sets]
    return lambda table: geometric(sum(is_used(mask, needed) for _, mask in table), epsilon, top)


def ones(names: str, *, epsilon: float, top: int = 2) -> Mechanism:
    """How many used rows say 1 to all of `names`: epsilon-DP for add/remove and for a used row replaced."""

    def law(table: Masked) -> np.ndarray:
        said = sum(set(names) <= mask and all(row[n] for n in names) for row, mask in table)
        return geometric(said, epsilon, top)

    return law


def both(names: str, *, epsilon: float, top: int = 2) -> Mechanism:
    """A count for each of two answers: epsilon-DP for add/remove, twice that for a used row replaced."""

    def law(table: Masked) -> np.ndarray:
        used = [all(row[n] for n in names) for row, mask in table if set(names) <= mask]
        here = geometric(sum(used), epsilon, top)
        return np.multiply.outer(here, geometric(len(used) - sum(used), epsilon, top))

    return law


def released(table: Sequence[Row], masks: Masks, mechanisms: Sequence[Mechanism]) -> np.ndarray:
    """The law of all outputs together: a mean over the masks of every row."""
    total: np.ndarray | float = 0.0
    for drawn in product(*(masks(row) for row in table)):
        masked = tuple((row, mask) for row, (mask, _) in zip(table, drawn, strict=True))
        joint = np.array(prod(chance for _, chance in drawn))
        for mechanism in mechanisms:
            joint = np.multiply.outer(joint, mechanism(masked))
        total = total + joint
    return np.asarray(total)


def rows(names: str) -> list[dict[str, int]]:
    """Every row of zeroes and ones."""
    return [dict(zip(names, said, strict=True)) for said in product((0, 1), repeat=len(names))]


def loss(here: np.ndarray, there: np.ndarray) -> float:
    """The largest log ratio, both ways."""
    return float(np.abs(np.log(here) - np.log(there)).max())


def excess(here: np.ndarray, there: np.ndarray, epsilon: float) -> float:
    """The least delta that goes with epsilon, both ways."""
    grown = np.exp(epsilon)
    return float(max(np.maximum(here - grown * there, 0).sum(), np.maximum(there - grown * here, 0).sum()))


def divergence(here: np.ndarray, there: np.ndarray, order: float) -> float:
    """Rényi's divergence, the larger of both ways."""
    ways = [(a**order * b ** (1 - order)).sum() for a, b in ((here, there), (there, here))]
    return float(np.log(max(ways)) / (order - 1))
