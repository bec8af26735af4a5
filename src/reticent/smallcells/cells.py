"""Small area estimation as a plan asks for it: one estimate for every declared cell, and groups of cells.

Groups, such as the state a tract lies in, are public facts from a plan or a public file. All of it is known before a row is
read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import ceil
from typing import Any, Literal

from pydantic import Field

from reticent.engine.wants import PointsByCell as Want
from reticent.errors import PlanError
from reticent.exact import show
from reticent.files import Section, is_printable
from reticent.privacy.claim import Change, Claim
from reticent.query.base import Subpopulation
from reticent.schema import Levels, Number, Schema
from reticent.schema.public_files import PublicCell, PublicFiles
from reticent.sensitivity.donors import CAPPED_PAGES
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.observed import LABEL

MOST_GROUPS = 10_000
_RANGE = re.compile(r"(-?[0-9]{1,15})\.\.(-?[0-9]{1,15})")


class GroupsSection(Section):
    """Either `of`, cells by group, or a `file` with a header, its column of `cell`s and its column of `group`s."""

    of: dict[str, list[Any]] = Field(default={})  # cells of a file keep their lines
    file: str | None = None
    cell: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """One group for every declared cell: `place[g]` is the number of cell g's group among `names`."""

    names: tuple[str, ...]
    place: tuple[int, ...] = field(repr=False)


def with_files(sections: Sequence[Any], files: PublicFiles) -> list[Any]:
    """`[[cells]]` entries with the groups that stand in public files written out."""
    return [with_file(raw, files, field=f"cells[{place}].groups") for place, raw in enumerate(sections)]


def with_file(raw: Any, files: PublicFiles, *, field: str) -> Any:
    """A `[[cells]]` entry whose groups, if they stand in a public file, are written out; else as it was."""
    groups = raw.get("groups") if isinstance(raw, Mapping) else None
    if not isinstance(groups, Mapping) or not isinstance(groups.get("file"), str):
        return raw
    if set(groups) != {"file", "cell", "group"} or not all(isinstance(v, str) for v in groups.values()):
        raise PlanError("a file of groups goes with the names of its columns 'cell' and 'group'", field=field)
    at, found = f"{field}.file", dict[str, list[PublicCell]]()
    for line in files.lines(groups["file"], field=at):
        if not {groups["cell"], groups["group"]} <= set(line):
            raise PlanError(
                f"has no columns {groups['cell']!r} and {groups['group']!r} in its first line", field=at
            )
        found.setdefault(str(line[groups["group"]]), []).append(line[groups["cell"]])
    files.publish(field=at, what="names of groups", texts=found)
    return {**raw, "groups": {"of": found}}


def read_groups(section: GroupsSection, column: Levels | Number, *, field: str) -> Groups:
    """Every cell in exactly one group; cells by their text in the codebook, or as ranges `1..600`."""
    if section.file is not None or section.cell is not None or section.group is not None:
        raise PlanError(
            "a file of groups is read from a plan file; here write groups = { of = ... }", field=field
        )
    if not 1 <= len(section.of) <= MOST_GROUPS:
        raise PlanError(f"names from 1 to {MOST_GROUPS} groups", field=f"{field}.of")
    numbers = {column.text(code): code - column.low for code in range(column.low, column.high + 1)}
    place = [-1] * len(numbers)
    for number, (name, cells) in enumerate(section.of.items()):
        if not name or len(name) > 100 or not is_printable(name):
            raise PlanError("a group's name is up to 100 printable characters", field=f"{field}.of")
        for each in cells:
            at = f"{field}.file, line {each.line}" if isinstance(each, PublicCell) else f"{field}.of"
            for cell in _spread(each, numbers, column, at):
                if place[cell] not in (-1, number):
                    shown = column.text(cell + column.low)
                    which = "its cell" if isinstance(each, PublicCell) else f"cell {shown}"
                    raise PlanError(f"{which} is in two groups", field=at)
                place[cell] = number
    if -1 in place:
        lost = column.text(place.index(-1) + column.low)
        raise PlanError(f"cell {lost} is in no group; put every cell into one", field=f"{field}.of")
    return Groups(names=tuple(section.of), place=tuple(place))


def _spread(cell: object, numbers: Mapping[str, int], column: Levels | Number, field: str) -> Iterator[int]:
    """The numbers of a cell, or of a range of them."""
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        raise PlanError("a cell is a text or a whole number", field=field)
    text = str(cell)
    span = _RANGE.fullmatch(text) if isinstance(column, Number) else None
    ends = (span[1], span[2]) if span else (text, text)
    unknown = next((end for end in ends if end not in numbers), None)
    if unknown is not None:
        shown = "of that name" if isinstance(cell, PublicCell) else repr(unknown[:80])
        raise PlanError(f"there is no cell {shown} in the codebook", field=field)
    yield from range(numbers[ends[0]], numbers[ends[1]] + 1)


MOST_CELLS = 1_000_000
SMOOTHEST = 64
DEFAULT_LEVEL = Fraction(95, 100)
CHANGES = ("any", "corners", "corners added")
"""What the observed method looks at: all additions and removals; additions in the corners and removals; as published."""

ENVELOPES = ("all sizes", "equal sizes")


class Method(StrEnum):
    """How the estimates are protected."""

    SMOOTH = "smooth"
    POOLED = "pooled"
    THEIL_SEN = "theil-sen"
    OBSERVED = "observed"


RESTS_ON: Mapping[Method, tuple[tuple[str, str], ...]] = {
    Method.SMOOTH: (("smooth cell mechanism", "proofs/smallcells/smooth.md"),),
    Method.POOLED: (("pooled envelope", "proofs/smallcells/pooled.md"),),
    Method.THEIL_SEN: (("Theil-Sen by selection", "proofs/smallcells/theilsen.md"),),
    Method.OBSERVED: (("maximum observed sensitivity", "proofs/smallcells/observed.md"),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CellStatistic:
    """What is estimated in each cell: `predict` y at x, the `slope` of y on x, or the `mean` of y."""

    kind: Literal["predict", "slope", "mean"]
    at: Fraction | None = None

    def words(self, x: str | None, y: str) -> str:
        if self.kind == "predict":
            return f"{y} predicted at {x} = {show(self.at or Fraction(0))}"
        return f"slope of {y} on {x}" if self.kind == "slope" else f"mean of {y}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallCells:
    """A `[[cells]]` section. `low` and `high` clamp what is published, in the units of the estimate."""

    name: str
    cell: str
    y: str
    x: str | None
    among: Subpopulation
    estimate: CellStatistic
    method: Method
    epsilon: Fraction
    count_epsilon: Fraction = Fraction(0)
    noise_epsilon: Fraction = Fraction(0)
    error_epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    low: Fraction
    high: Fraction
    least: int = 0
    level: Fraction = DEFAULT_LEVEL
    groups: Groups | None = None
    smoothness: int | None = None
    matchings: int | None = None
    is_bounded: bool = False
    changes: str = CHANGES[0]
    envelope: str = ENVELOPES[0]
    stability: int = 1
    written: Mapping[str, Any]

    @property
    def is_observed(self) -> bool:
        return self.method is Method.OBSERVED

    @property
    def label(self) -> str | None:
        """What stands wherever an observed table is shown; none for the others."""
        return LABEL if self.is_observed else None

    @property
    def cost(self) -> Fraction:
        """What the ledger reserves: the estimates, the counts, the noise level and the standard errors, added."""
        return self.epsilon + self.count_epsilon + self.noise_epsilon + self.error_epsilon

    @property
    def m(self) -> int:
        """epsilon / beta, the smoothness of the bound: what the plan says, else 16 for `pooled` and 8 for `smooth`.

        The noise level has noise of relative size t = beta / noise_epsilon. A variance can be estimated from it for
        t < 1/2 (THEORY 8.4), so where a level is bought m is the least from 8 to 64 with t at most two fifths.
        """
        if self.smoothness is not None:
            return self.smoothness
        if self.method is Method.POOLED:
            return 16
        if not self.noise_epsilon:
            return 8
        return min(SMOOTHEST, max(8, ceil(Fraction(5, 2) * self.epsilon / self.noise_epsilon)))

    def want(self, schema: Schema) -> Want:
        """What is needed of the rows."""
        return Want(rows=self.among.rows(schema), cell=self.cell, x=self.x, y=self.y)

    def estimator(self, schema: Schema) -> Estimator:
        """The estimate in the unit square, where both columns run from 0 to 1."""
        if self.estimate.kind != "predict":
            return Slope() if self.estimate.kind == "slope" else CellMean()
        x = schema.number(self.x or "", field="cells.x")
        return Predict(at=((self.estimate.at or Fraction(0)) - x.lower) / (x.upper - x.lower))

    def ends(self, schema: Schema) -> tuple[Fraction, Fraction]:
        """The published range in the unit square."""
        shift, scale = self.unit(schema)
        return (self.low - shift) / scale, (self.high - shift) / scale

    def unit(self, schema: Schema) -> tuple[Fraction, Fraction]:
        """(shift, scale): an estimate t of the unit square is shift + scale t in the units of the columns."""
        y = schema.number(self.y, field="cells.y")
        if self.estimate.kind != "slope":
            return y.lower, y.upper - y.lower
        x = schema.number(self.x or "", field="cells.x")
        return Fraction(0), (y.upper - y.lower) / (x.upper - x.lower)

    def claim(self, change: Change) -> Claim:
        """The promise of this section, from public numbers alone."""
        rests_on = (*RESTS_ON[self.method], *(CAPPED_PAGES if self.stability > 1 else ()))
        if self.is_observed:
            return Claim(measure="observed", change=change, rests_on=rests_on)
        if self.delta:
            return Claim(
                measure="approximate", epsilon=self.cost, delta=self.delta, change=change, rests_on=rests_on
            )
        return Claim(measure="pure", epsilon=self.cost, change=change, rests_on=rests_on)

    def words(self, had: str = "") -> str:
        """`kid_rank predicted at parent_rank = 0.25 in each tract, over all respondents ...`; `had` tells of filled answers."""
        over = self.among.words((self.cell, *([self.x] if self.x else []), self.y), had)
        said = f"{self.estimate.words(self.x, self.y)} in each {self.cell}, over {over}"
        return (
            f"{said}; through filled values one respondent counts as {self.stability} rows"
            if self.stability > 1
            else said
        )

    def column(self, schema: Schema) -> Levels | Number:
        """The column that says which cell a respondent is in."""
        return schema.coded[self.cell]

    def labels(self, schema: Schema) -> list[str]:
        """The cells by name, in the order of the codebook."""
        column = self.column(schema)
        return [column.text(code) for code in range(column.low, column.high + 1)]
