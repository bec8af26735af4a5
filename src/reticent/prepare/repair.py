"""Repairs as values: edit rules, donor imputation as a plan states it, released lines and released chances as rows follow them.

An edit is a deduction from a record's own answers, so it costs nothing. Donors have a column, what is matched on, how many
there are, and who stands in. Lines have whole coefficients, so that each gap is filled by integers alone, and how far two
fillings of one row can be apart follows from these. Chances say for each cell of the predictors how a gap's level is
chosen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.schema.bind import Bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Where `when` is true of a record, its missing `column` becomes `code`; with `replaces`, any other answer too.

    Without a code the answer is taken out: the cell is missing from then on.
    """

    when: Bound
    column: str
    code: int | None
    replaces: bool = False

    def __post_init__(self) -> None:
        if self.code is None and not self.replaces:
            raise PlanError("only an answer that is there can be taken out; let it replace.", field="replace")


SCALE = 32
"""Coefficients are counted in steps of 2^-32 of the response's grid."""

FINE = 16
"""Draws, and the spread they are multiplied with, in steps of 2^-16."""

FARTHEST = 8 << FINE
"""No draw is farther out than eight standard deviations."""

LARGEST = 1 << 120

Draw = Callable[[int], NDArray[np.int32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One predictor: its code from `low` on, or, with a `level`, 1 for those who gave that answer and 0 for others.

    `gap` is the code that stands for an answer that is missing or was not asked.
    """

    column: str
    slope: int
    low: int = 0
    high: int = 1
    level: int | None = None
    gap: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionLine:
    """Fills `column` with floor((base + sum of slope x value + spread x draw) / 2^32), held within its codes.

    All of it was released before. `draw` gives a number of its own to each of n rows, standard normal, in steps
    of 2^-16; without it everybody lies on the line.
    """

    column: str
    low: int
    high: int
    base: int
    terms: tuple[Term, ...]
    spread: int = 0
    draw: Draw | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.low > self.high or any(term.low > term.high for term in self.terms):
            raise PlanError("its lowest code lies above its highest.", field=self.column)
        if any(term.column == self.column for term in self.terms):
            raise PlanError("it cannot be predicted from itself.", field=self.column)
        if self.reach >= LARGEST:
            raise PlanError("a prediction could overflow; declare a coarser grid.", field=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it speaks of."""
        return tuple(dict.fromkeys((self.column, *(term.column for term in self.terms))))

    @property
    def reach(self) -> int:
        """No sum on the way to a prediction is larger than this."""
        steps = sum(abs(term.slope) * (term.high - term.low) for term in self.terms)
        bounds = max(abs(self.low), abs(self.high)) + 1
        return abs(self.base) + steps + abs(self.spread) * FARTHEST + (bounds << SCALE)


WHOLE = 1 << 19
"""Chances are counted in steps of 2^-19; a draw is one of so many numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictorCells:
    """One predictor: the levels of a column, or groups that begin at the codes `starts`; then silence, then not asked."""

    column: str
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chances:
    """Fills `column` with low + the number of a cell's `steps` that the row's draw has reached.

    `steps[k]` holds, for every cell of the sides, the last side fastest, the chance of the first k + 1 levels. Without a
    `draw` every row has the number `middle`, in place of a number of its own. All of it was released before.
    """

    column: str
    low: int
    high: int
    sides: tuple[PredictorCells, ...]
    steps: tuple[tuple[int, ...], ...]
    middle: int = WHOLE // 2
    draw: Draw | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.steps) != self.high - self.low or not self.steps:
            raise PlanError("takes a row of chances for every level but the last.", field=self.column)
        if any(side.column == self.column for side in self.sides) or not self.sides:
            raise PlanError("is predicted from other columns.", field=self.column)
        if len({len(row) for row in self.steps}) != 1:
            raise PlanError("takes as many chances for every level.", field=self.column)

    @property
    def columns(self) -> tuple[str, ...]:
        """All that it speaks of."""
        return tuple(dict.fromkeys((self.column, *(side.column for side in self.sides))))

    @property
    def cells(self) -> int:
        """How many cells the sides make."""
        return len(self.steps[0])


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
    """How what a donor can move is bounded: by the hub ladder, or by others, which are for comparison."""

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
class MatchLevel:
    """A level of capped rings: donors and recipients agree in all of `on`, and a donor serves at most `serve` here."""

    on: tuple[Match, ...] = ()
    serve: int = 1

    def __post_init__(self) -> None:
        if self.serve < 1:
            raise PlanError("a donor serves at least one recipient.", field="serve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    """What a recipient has whom nobody serves: a public code, or one for each level of the column `by`.

    With `looks` it is what a released line says, made of the record's own answers in these columns: one of the repair's
    `lines`.
    """

    code: int
    by: str | None = None
    codes: tuple[int, ...] = ()
    looks: tuple[str, ...] = ()

    @property
    def seen(self) -> tuple[str, ...]:
        """The columns that it is made of."""
        return (*self.looks, *(() if self.by is None else (self.by,)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedDonors:
    """Columns filled together from one donor, who answered them all and serves a limited number of recipients.

    `levels` go from fine to coarse; `defaults` has one for each column. `expected` is the share of missing answers that the
    plan expects, for a preview.
    """

    columns: tuple[str, ...]
    levels: tuple[MatchLevel, ...]
    defaults: tuple[Default, ...]
    expected: Fraction | None = None

    def __post_init__(self) -> None:
        if not self.columns or len(self.defaults) != len(self.columns):
            raise PlanError("needs a column, and a default for each.", field="column")
        if not self.levels:
            raise PlanError("needs at least one level to match on.", field="match")

    @property
    def serve(self) -> int:
        """The tau of THEORY 11.2: how many rows of others one record can change."""
        return sum(level.serve for level in self.levels)

    @property
    def matched(self) -> frozenset[str]:
        """The columns that levels and defaults look at."""
        return self.matched_on | {name for default in self.defaults for name in default.seen}

    @property
    def matched_on(self) -> frozenset[str]:
        """The columns that levels look at."""
        return frozenset(match.column for level in self.levels for match in level.on)


MOST_RINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """All of a plan's repairs: edits first, in order, then donors, then released lines. `key` fixes every record's place on
    the ring.

    Lines come after capped donors only, without draws: those of a default fill what no donor has filled, from answers that
    nobody fills; others may be predicted from filled columns. `follows` has what is predicted from what, before there are
    lines.

    Donors are capped, or each recipient's nearest (`donors`), never both. A recipient has a donor in each of the `rings`,
    and counts as so many fractions of a record (THEORY 11.8); who needs whole rows takes the first ring.

    The key is public or secret, but never a function of the rows. `smoothness` is the m of beta = epsilon / m:
    noise with a larger one has lighter tails, a smaller one allows a smaller bound.
    """

    edits: tuple[Edit, ...] = ()
    donors: tuple[Donors, ...] = ()
    capped: tuple[CappedDonors, ...] = ()
    rings: int = 1
    lines: tuple[RegressionLine | Chances, ...] = ()
    follows: tuple[tuple[str, tuple[str, ...]], ...] = ()
    key: str = ""
    smoothness: int = 8

    def __post_init__(self) -> None:
        if not 3 <= self.smoothness <= 64:
            raise PlanError("is a whole number from 3 to 64.", field="smoothness")
        if self.donors and self.lines:
            raise PlanError("donors and lines do not go together: nothing bounds the two.", field="impute")
        if self.capped and any(line.draw is not None for line in self.lines):
            raise PlanError(
                "draws about a line do not go with donors; fill what is predicted.", field="impute.fill"
            )
        if self.donors and self.capped:
            raise PlanError("donors are capped in all columns or in none; say one bound.", field="bound")
        if not 1 <= self.rings <= MOST_RINGS:
            raise PlanError(f"is a whole number from 1 to {MOST_RINGS}.", field="donors")

    def filled(self) -> frozenset[str]:
        """The columns that donors fill, or that are predicted from such columns."""
        capped = {column for group in self.capped for column in self.reach(group)}
        return frozenset(capped | {each.column for each in self.donors})

    def reach(self, group: CappedDonors) -> frozenset[str]:
        """The columns that these donors fill, and those that are predicted from them, one after the other."""
        found = set(group.columns)
        for column, predictors in self.follows:
            found |= {column} if found & set(predictors) else set()
        return frozenset(found)

    def group(self, column: str) -> CappedDonors | None:
        """The capped donors that fill a column; None where others do, or nobody."""
        return next((group for group in self.capped if column in group.columns), None)

    def of(self, column: str) -> Donors:
        return next(each for each in self.donors if each.column == column)


NO_REPAIR = Repair()


def apart(one: Sequence[RegressionLine | Chances], two: Sequence[RegressionLine | Chances]) -> dict[str, int]:
    """For each column that is filled, the largest difference between a row's codes; both fill the same in the same order.

    Guarantee   no row's filled code differs by more, whatever its answers are.
    Adjacency   none: it compares two fillings of one row.
    Theorem     a line's total is linear in codes between public bounds; holding is a contraction; floors of numbers d
                apart differ by at most ceil(d).
    Proof       proofs/prepare/apart.md
    Assumes     no draws; chances, where there are any, are the same in both.
    Keeps back  nothing: no row is read.
    """
    found: dict[str, int] = {}
    for here, there in zip(one, two, strict=True):
        span = here.high - here.low
        if isinstance(here, RegressionLine) and isinstance(there, RegressionLine):
            found[here.column] = min(span, -(-_total(here, there, found) >> SCALE))
        else:
            moved = any(found.get(name) for name in here.columns if name != here.column)
            found[here.column] = span if moved or here != there else 0
    return found


def _total(one: RegressionLine, two: RegressionLine, moved: dict[str, int]) -> int:
    """The largest difference of the totals: from the coefficients, and from predictors that were filled otherwise."""
    top = bottom = one.base - two.base
    other = 0
    for here, there in zip(one.terms, two.terms, strict=True):
        width = (here.high - here.low) if here.level is None else 1
        step = (here.slope - there.slope) * width
        top, bottom = top + max(0, step), bottom + min(0, step)
        other += abs(here.slope) * min(width, moved.get(here.column, 0))
    return max(abs(top), abs(bottom)) + other
