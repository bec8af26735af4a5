"""Donor imputation as a plan states it: which column, matched on what, how many donors, and who stands in."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from reticent.errors import PlanError
from reticent.prepare.chances import Chances
from reticent.prepare.edits import Edit
from reticent.prepare.lines import RegressionLine


class Scheme(StrEnum):
    """What is made of the donors' answers."""

    NEAREST = "nearest"
    MEAN = "mean"
    MAJORITY = "majority"


class Metric(StrEnum):
    """How far two cells are apart: by the codebook's kinds, or as published."""

    DECLARED = "declared"
    ONE_HOT = "one-hot euclidean"


class Bounding(StrEnum):
    """Which ladder bounds what a donor can move. All but the first are for comparison."""

    HUBS = "hubs"
    NEWCOMER = "newcomer"
    PUBLISHED = "published"
    GLOBAL = "global"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One matching attribute, never imputed itself; `starts` are the codes at which its groups begin."""

    column: str
    starts: tuple[int, ...] = ()
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Donors:
    """One column filled from its `k` preferred donors; `defaults` are `k` codes of public donors who stand last."""

    column: str
    near: tuple[Match, ...]
    k: int = 1
    scheme: Scheme = Scheme.NEAREST
    defaults: tuple[int, ...]
    metric: Metric = Metric.DECLARED
    bounding: Bounding = Bounding.HUBS

    def __post_init__(self) -> None:
        if self.k < 1 or len(self.defaults) != self.k:
            raise PlanError("needs at least one donor, and a default for each.", field="k")
        if self.scheme is Scheme.NEAREST and self.k != 1:
            raise PlanError(
                "the nearest donor is one; ask for the mean or the majority of several.", field="k"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """All of a plan's repairs: edits first, in order, then donors or released lines, never both. `key` fixes every
    record's place on the ring.

    The key is public or secret, but never a function of the rows. `smoothness` is the m of beta = epsilon / m:
    noise with a larger one has lighter tails, a smaller one allows a smaller bound.
    """

    edits: tuple[Edit, ...] = ()
    donors: tuple[Donors, ...] = ()
    lines: tuple[RegressionLine | Chances, ...] = ()
    key: str = ""
    smoothness: int = 8

    def __post_init__(self) -> None:
        if not 3 <= self.smoothness <= 64:
            raise PlanError("is a whole number from 3 to 64.", field="smoothness")
        if self.donors and self.lines:
            raise PlanError("donors and lines do not go together: nothing bounds the two.", field="impute")

    def filled(self) -> frozenset[str]:
        """The columns that donors fill."""
        return frozenset(each.column for each in self.donors)

    def of(self, column: str) -> Donors:
        return next(each for each in self.donors if each.column == column)


NO_REPAIR = Repair()
