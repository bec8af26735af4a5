"""Read an `[[impute]]` of method "classes", for a column with levels: private chances fill its gaps. Everything here is public.

Predictors are grouped: levels as they are, numbers in equal groups of their range. Silence about a predictor is a group
of its own, and so is not having been asked.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.decimals import show
from reticent.engine.choose import keys_of
from reticent.engine.wants import has_universe
from reticent.errors import PlanError
from reticent.models.tabled import PAGE, THEOREM, Grouped, TableDesign
from reticent.prepare.chances import PredictorCells
from reticent.privacy.claim import Change, Claim
from reticent.schema import Levels, Number, Schema

TABLE = "table"
FILLS = ("drawn", "mode")
MOST_GROUPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRepair:
    """A column with levels, what it is predicted from, and what the table costs. Draws, or the likeliest level."""

    column: str
    sides: tuple[PredictorCells, ...]
    epsilon: Fraction
    draws: bool = True
    copies: int = 1

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns it is predicted from."""
        return tuple(side.column for side in self.sides)

    def claim(self, change: Change) -> Claim:
        """What the table will promise, before a row is read."""
        filling = ("THEORY 7.1", "proofs/release/model_fit.md")
        return Claim(measure="pure", epsilon=self.epsilon, change=change, rests_on=((THEOREM, PAGE), filling))

    def words(self) -> str:
        """`missing job was drawn from private chances given age and sex (table, epsilon 0.5)`."""
        names = self.predictors
        on = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        how = "was drawn from private chances" if self.draws else "is the likeliest level by private chances"
        return f"missing {self.column} {how} given {on} ({TABLE}, epsilon {show(self.epsilon)})"


def side_of(column: Levels | Number, groups: int) -> PredictorCells:
    """Levels as they are; numbers in `groups` of equal width, or one for each code where there are fewer."""
    if isinstance(column, Levels):
        return PredictorCells(column=column.name)
    codes = column.high - column.low + 1
    if codes <= groups:
        return PredictorCells(column=column.name)
    return PredictorCells(
        column=column.name, starts=tuple(column.low + codes * k // groups for k in range(groups))
    )


def design_of(
    sides: tuple[PredictorCells, ...], response: Levels, schema: Schema, *, field: str
) -> TableDesign:
    """The table's cells, from the codebook."""
    grouped = []
    for side, key in zip(sides, keys_of(sides), strict=True):
        column = schema.coded[side.column]
        answers = key.answers(schema)
        ordered = isinstance(column, Number) or column.ordered or answers == 2
        silent = 1 + has_universe(schema, side.column)
        grouped.append(Grouped(name=side.column, answers=answers, silent=silent, ordered=ordered))
    try:
        return TableDesign(predictors=tuple(grouped), levels=len(response.levels))
    except PlanError as problem:
        raise PlanError(str(problem.args[0]), field=field) from None
