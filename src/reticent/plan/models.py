"""Regression imputation in a plan: an `[[impute]]` of method "regression" for numbers or "classes" for levels. All public.

**A line for numbers.** A predictor is a number, an ordinal column or one of two levels, counted by its code; other levels
are told apart one by one, the first of them standing for the rest. A row that lacks a predictor is filled all the same:
the middle of the bounds stands in, or the first level.

**Chances for levels.** Predictors are grouped: levels as they are, numbers in equal groups of their range. Silence about a
predictor is a group of its own, and so is not having been asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from reticent.answer.statistic import Statistic
from reticent.engine.sql.predict import keys_of
from reticent.engine.wants import has_universe
from reticent.errors import PlanError, nearest
from reticent.exact import show
from reticent.files import Amount, Section, fill
from reticent.models.table import PAGE, THEOREM, Grouped, TableDesign
from reticent.plan.budgets import Product
from reticent.plan.donors import repairable
from reticent.prepare.repair import PredictorCells
from reticent.privacy.claim import Change, Claim, read_epsilon
from reticent.schema import Levels, Number, Schema
from reticent.schema.predicate import statuses
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.donors import CAPPED_PAGES, fitted_to

if TYPE_CHECKING:
    from reticent.plan.plan import Plan

TABLE = "table"
CHANCE_FILLS = ("drawn", "mode")
MOST_GROUPS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRepair:
    """A column with levels, what it is predicted from, and what the table costs. Draws, or the likeliest level."""

    column: str
    sides: tuple[PredictorCells, ...]
    epsilon: Fraction
    draws: bool = True
    copies: int = 1
    stands_in: bool = False
    donees: int = 0
    rings: int = 1

    def neighbours(self, own: Neighbours) -> Neighbours:
        """The change in the rows that the table counts."""
        return fitted_to(own, self.donees, self.rings, of_products=False)

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns it is predicted from."""
        return tuple(side.column for side in self.sides)

    def claim(self, change: Change) -> Claim:
        """What the table will promise, before a row is read."""
        rests_on = ((THEOREM, PAGE), *grounds(self))
        return Claim(measure="pure", epsilon=self.epsilon, change=change, rests_on=rests_on)

    def words(self) -> str:
        """`missing job was drawn from private chances given age and sex (table, epsilon 0.5)`."""
        names = self.predictors
        on = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        how = "was drawn from private chances" if self.draws else "is the likeliest level by private chances"
        return f"{_whose(self)} {self.column} {how} given {on} ({TABLE}, epsilon {show(self.epsilon)})"


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


LINES: dict[str, str] = {
    "centred": "THEORY 7.3",
    "functional": "THEORY 7.3",
    "adassp": "AdaSSP",
    "output": "stability of ridge regression",
    "privgene": "PrivGene",
}
"""The estimators that sums are enough for, and what each rests on. All of them promise in exact arithmetic."""

IN_THE_LAB = ("objective",)
"""Estimators whose proofs stand in ideal reals: for comparisons in the lab, and in no plan."""

OF_PRODUCTS = ("centred", "functional", "adassp")
"""Estimators that see nothing but noisy sums of products, and the least eigenvalue of their table."""

FILLING = ("THEORY 7.1", "proofs/release/model_fit.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column of the model: the code of a predictor, or whether it is at one of its levels."""

    column: str
    low: int
    high: int
    grid: Fraction = Fraction(1)
    level: int | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}={self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRepair:
    """A column, what it is predicted from, and what the line costs. `draws` adds its spread to every prediction;
    several `copies` of the rows are filled from lines as uncertain as the released one is."""

    column: str
    features: tuple[Feature, ...]
    epsilon: Fraction
    estimator: str = "centred"
    draws: bool = False
    copies: int = 1
    stands_in: bool = False
    donees: int = 0
    rings: int = 1

    def neighbours(self, own: Neighbours) -> Neighbours:
        """The change in the rows that the line is fitted to."""
        return fitted_to(own, self.donees, self.rings, of_products=self.estimator in OF_PRODUCTS)

    def __post_init__(self) -> None:
        check_estimator(self.estimator, field="estimator")

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns it is predicted from, each once."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    def claim(self, change: Change) -> Claim:
        """What the line will promise, before a row is read."""
        page = f"proofs/models/{self.estimator}.md"
        rests_on = ((LINES[self.estimator], page), *grounds(self))
        return Claim(measure="pure", epsilon=self.epsilon, change=change, rests_on=rests_on)

    def words(self) -> str:
        """`missing wage was filled from a private line on age and hours (centred, epsilon 0.5)`."""
        names = self.predictors
        on = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        how = "drawn about" if self.draws else "filled from"
        times = f", in {self.copies} copies" if self.copies > 1 else ""
        cost = f"{self.estimator}, epsilon {show(self.epsilon)}{times}"
        return f"{_whose(self)} {self.column} was {how} a private line on {on} ({cost})"


def check_estimator(name: str, *, field: str) -> None:
    """Refuse an estimator that a plan does not offer, and say which one to take instead."""
    if name in IN_THE_LAB:
        raise PlanError(
            f"{name!r} is proved for ideal reals, which no computer has, so a plan does not offer it; "
            "write 'output', its nearest with an exact guarantee, or 'centred', which is more accurate",
            field=field,
        )
    if name not in LINES:
        raise PlanError(f"is one of {', '.join(LINES)}{nearest(name, tuple(LINES))}", field=field)


AnyModel = ModelRepair | ClassRepair


def grounds(model: AnyModel) -> tuple[tuple[str, str], ...]:
    """What a model rests on beside its estimator: filling, and capped donors where they fill a predictor."""
    return (FILLING, *(CAPPED_PAGES if model.donees else ()))


def _whose(model: AnyModel) -> str:
    """A model that stands in for donors fills what none of them has filled."""
    return "left by donors," if model.stands_in else "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImputationModels(Product):
    """The private models of a plan, in order. They are published, and fill the rows that all other products are made from."""

    section: ClassVar[str] = "impute"
    noun: ClassVar[str] = "a model"
    plural: ClassVar[str] = "models"

    models: tuple[AnyModel, ...]

    @property
    def directions(self) -> int:
        """In how many directions lines are uncertain: one for each predictor's column of the design, and the intercept."""
        return sum(len(model.features) + 1 for model in self.models if isinstance(model, ModelRepair))

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        return tuple(model.claim(plan.change) for model in self.models)


MOST_TERMS = 50
MOST_ROWS = 2**40
ACCUMULATOR = 2**126
FILLS = ("predicted", "drawn")
REGRESSION, CLASSES = "regression", "classes"
CENTRED = "centred"
MOST_COPIES = 100
GROUPS = 4
"""Of a number, where chances depend on it and the plan says nothing."""


class ModelSection(Section):
    """An `[[impute]]` section of method "regression" or "classes".

    **Keys**

    - `method`: `"regression"` for numbers, `"classes"` for levels.
    - `column`: what is filled.
    - `from`: its predictors.
    - `epsilon`: what the model costs.
    - `estimator`: how it is fitted.
    - `fill`: `"predicted"` or `"drawn"`; for levels `"drawn"` or `"mode"`.
    - `groups`: for levels, in how many groups numbers among the predictors are taken.
    - `copies`: how many completions statistics are answered from.
    """

    method: str
    column: str
    predictors: list[str] = Field(alias="from", min_length=1, max_length=MOST_TERMS)
    epsilon: Amount
    estimator: str | None = None
    fill: str | None = None
    groups: int | None = Field(default=None, ge=2, le=MOST_GROUPS)
    copies: int = Field(default=1, ge=1, le=MOST_COPIES)


def read_model(raw: Mapping[str, Any], schema: Schema, at: str, *, of_levels: bool = False) -> AnyModel:
    """The line, or the chances, that `raw` writes down; `of_levels` takes each level by itself, of ordinal predictors too."""
    section = fill(ModelSection, raw, error=PlanError, at=at)
    response = repairable(section.column, schema, verb="imputed", field=f"{at}.column")
    _check_method(section.method, response, f"{at}.method")
    if isinstance(response, Levels):
        return _read_classes(section, response, schema, at)
    if section.groups is not None:
        raise PlanError(
            f"a line takes numbers as they are, and {response.name} is one; remove it", field=f"{at}.groups"
        )
    _check_copies(section, at)
    check_estimator(section.estimator or CENTRED, field=f"{at}.estimator")
    features = _features(section, schema, at, of_levels=of_levels)
    check_sums(response, features, schema, f"{at}.from")
    return ModelRepair(
        column=response.name,
        features=features,
        epsilon=read_epsilon(section.epsilon, field=f"{at}.epsilon"),
        estimator=section.estimator or CENTRED,
        draws=_one_of(section.fill or FILLS[0], FILLS, f"{at}.fill") == "drawn",
        copies=section.copies,
    )


def _read_classes(section: ModelSection, response: Levels, schema: Schema, at: str) -> ClassRepair:
    """Chances for a column with levels."""
    _one_of(section.estimator or TABLE, (TABLE,), f"{at}.estimator")
    if section.copies > 1:
        raise PlanError("copies are filled from lines; a column with levels has one", field=f"{at}.copies")
    columns = _predictors(section, schema, at)
    sides = tuple(side_of(column, section.groups or GROUPS) for column in columns)
    design_of(sides, response, schema, field=f"{at}.from")
    return ClassRepair(
        column=response.name,
        sides=sides,
        epsilon=read_epsilon(section.epsilon, field=f"{at}.epsilon"),
        draws=_one_of(section.fill or CHANCE_FILLS[0], CHANCE_FILLS, f"{at}.fill") == "drawn",
    )


def _check_method(method: str, response: Levels | Number, field: str) -> None:
    wanted = CLASSES if isinstance(response, Levels) else REGRESSION
    if method != wanted:
        what = "has levels" if isinstance(response, Levels) else "is a number"
        raise PlanError(f"{response.name} {what}; write method = {wanted!r}", field=field)


def _check_copies(section: ModelSection, at: str) -> None:
    if section.copies > 1 and (section.fill != "drawn" or section.estimator not in (None, CENTRED)):
        raise PlanError(
            "several copies need fill = 'drawn', and estimator 'centred', whose sums say how uncertain the line is",
            field=f"{at}.copies",
        )


def _features(section: ModelSection, schema: Schema, at: str, *, of_levels: bool) -> tuple[Feature, ...]:
    columns = _predictors(section, schema, at)
    found = [
        each
        for k, column in enumerate(columns)
        for each in separate_features(column, f"{at}.from[{k}]", of_levels=of_levels)
    ]
    if len(found) > MOST_TERMS:
        raise PlanError(f"makes more than {MOST_TERMS} coefficients; leave some out", field=f"{at}.from")
    return tuple(found)


def _predictors(section: ModelSection, schema: Schema, at: str) -> list[Levels | Number]:
    found = []
    for place, name in enumerate(section.predictors):
        field = f"{at}.from[{place}]"
        found.append(repairable(name, schema, verb="predicted from", field=field))
        if name == section.column or name in section.predictors[:place]:
            raise PlanError(f"names {name} again; name another column", field=field)
    return found


def separate_features(column: Levels | Number, field: str, *, of_levels: bool = False) -> list[Feature]:
    """The columns of the design that one predictor makes: its code, or one for each level but the first; of an ordinal
    column the latter where it is taken `of_levels`."""
    if column.low == column.high:
        raise PlanError(f"{column.name} has one value, which explains nothing; leave it out", field=field)
    if isinstance(column, Number) or (column.ordered and not of_levels) or len(column.levels) == 2:
        grid = column.grid if isinstance(column, Number) else Fraction(1)
        return [Feature(column=column.name, low=column.low, high=column.high, grid=grid)]
    return [Feature(column=column.name, low=0, high=1, level=level) for level in range(1, len(column.levels))]


def check_sums(response: Number, features: tuple[Feature, ...], schema: Schema, field: str) -> None:
    """R04: no sum of products may leave its accumulator, from public numbers alone."""
    if response.low == response.high:
        raise PlanError(f"{response.name} has one value; there is nothing to predict", field=field)
    names = {feature.column for feature in features}
    largest = [
        max(abs(each.low), abs(each.high), 1) for each in (response, *(schema.coded[n] for n in names))
    ]
    if MOST_ROWS * max(largest) ** 2 >= ACCUMULATOR:
        raise PlanError("could overflow a 128-bit sum; declare a coarser grid or closer bounds", field=field)


def _one_of(word: str, known: tuple[str, ...], field: str) -> str:
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word, known)}", field=field)
    return word


def check_missingness(asks: Sequence[Statistic], models: Sequence[AnyModel]) -> None:
    """As for donors: a question about silence would always have the answer nobody. Who was asked stays as it was."""
    filled = {model.column for model in models}
    for place, ask in enumerate(asks):
        for status in (each for predicate in ask.query.predicates for each in statuses(predicate)):
            if status.column in filled and status.kind != "structural":
                raise PlanError(
                    f"a model fills {status.column}, so after the repair nobody's is missing and {status} says "
                    "nothing; ask it in a release without this repair, or of a column that is not filled.",
                    field=f"statistic[{place}].query",
                )
