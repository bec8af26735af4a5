"""Generalisation hierarchies: how the values of a column become coarser, step by step. Not differential privacy."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from reticent.errors import PlanError

Value = Hashable


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Hierarchy:
    """For each value its chain of coarser ones, the value itself first; all chains are of one length and meet at the top."""

    chains: Mapping[Value, tuple[Value, ...]] = field(repr=False)
    height: int

    def __init__(self, chains: Mapping[Value, Sequence[Value]]) -> None:
        made = {value: (value, *chain) for value, chain in chains.items()}
        lengths = {len(chain) for chain in made.values()}
        if len(lengths) != 1:
            raise PlanError("every value needs a chain of the same length.", field="hierarchy")
        if len({chain[-1] for chain in made.values()}) != 1:
            raise PlanError("all chains must end in one value that stands for all.", field="hierarchy")
        object.__setattr__(self, "chains", made)
        object.__setattr__(self, "height", lengths.pop() - 1)
        self._check_nested()

    def _check_nested(self) -> None:
        """Values that are one at some height stay one at every greater height."""
        for low in range(self.height):
            above: dict[Value, Value] = {}
            for chain in self.chains.values():
                if above.setdefault(chain[low], chain[low + 1]) != chain[low + 1]:
                    raise PlanError(f"{chain[low]!r} has two coarser values.", field="hierarchy")

    def at(self, value: Value, height: int) -> Value:
        """The value, `height` steps coarser."""
        if value not in self.chains:
            raise PlanError("a value of the column is not in its hierarchy.", field="hierarchy")
        return self.chains[value][height]

    def share(self, value: Value, height: int) -> float:
        """The share of other values that this one can no longer be told from: 0 at the bottom, 1 at the top."""
        same = sum(chain[height] == self.at(value, height) for chain in self.chains.values())
        return (same - 1) / (len(self.chains) - 1) if len(self.chains) > 1 else 0.0


def intervals(low: int, high: int, widths: Sequence[int]) -> Hierarchy:
    """Whole numbers from `low` to `high`, in intervals of growing widths, each a multiple of the one before; then all."""
    for narrow, wide in zip((1, *widths), widths, strict=False):
        if narrow < 1 or wide % narrow:
            raise PlanError(f"{wide} is not a multiple of {narrow}.", field="widths")
    top = f"{low} to {high}"

    def chain(value: int) -> list[Value]:
        starts = [(low + (value - low) // width * width, width) for width in widths]
        return [*(f"{start} to {min(start + width - 1, high)}" for start, width in starts), top]

    return Hierarchy({value: chain(value) for value in range(low, high + 1)})
