"""Sensitivity: three kinds of bound on what one respondent can move, and the change that must stay hidden.

Each kind allows different noise, so each is a type.
"""

from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Global:
    """A bound over all data sets, from public facts alone. It may be printed."""

    bound: Fraction

    def __post_init__(self) -> None:
        if self.bound <= 0:
            raise ValueError("a global bound is positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Smooth:
    """A `beta`-smooth bound on local sensitivity. Read off the rows, so private."""

    bound: Fraction = field(repr=False)
    beta: Fraction

    def __post_init__(self) -> None:
        if self.bound <= 0 or self.beta <= 0:
            raise ValueError("a smooth bound and its beta are positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A sensitivity seen in the data at hand. Not differentially private; only noise that says so takes it."""

    bound: Fraction = field(repr=False)


FINE = 20
"""A bound of more than 2^20 steps is counted in coarser steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """One respondent, of at most `records` rows, is added or removed; or (`replaced`) answers otherwise.

    Where each of the rows may lie `apart`, in a sum of its own, a bound is to be shared out evenly among them.
    """

    replaced: bool = False
    records: int = 1
    apart: bool = False

    def __post_init__(self) -> None:
        if self.records < 1:
            raise ValueError("a respondent owns at least one record")

    @property
    def steps(self) -> int:
        """How many records must be added or removed, one at a time, to get from one to the other."""
        return self.records * (2 if self.replaced else 1)
