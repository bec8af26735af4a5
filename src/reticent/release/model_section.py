"""Read an `[[impute]]` of method "regression", for numbers, or "classes", for levels. Everything here is public."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field

from reticent.errors import PlanError
from reticent.release.asks import read_epsilon
from reticent.release.class_repair import FILLS as CHOICES
from reticent.release.class_repair import MOST_GROUPS, TABLE, ClassRepair, design_of, side_of
from reticent.release.codes import repairable
from reticent.release.model_repair import AnyModel, Feature, ModelRepair, check_estimator
from reticent.schema import Levels, Number, Schema
from reticent.tomlfile import Section, fill
from reticent.words import nearest

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
    method: str
    column: str
    predictors: list[str] = Field(alias="from", min_length=1, max_length=MOST_TERMS)
    epsilon: str
    estimator: str | None = None
    fill: str | None = None
    groups: int | None = Field(default=None, ge=2, le=MOST_GROUPS)
    copies: int = Field(default=1, ge=1, le=MOST_COPIES)


def read_model(raw: Mapping[str, Any], schema: Schema, at: str) -> AnyModel:
    """The line, or the chances, that `raw` writes down."""
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
    features = _features(section, schema, at)
    _check_sums(response, features, schema, f"{at}.from")
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
        draws=_one_of(section.fill or CHOICES[0], CHOICES, f"{at}.fill") == "drawn",
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


def _features(section: ModelSection, schema: Schema, at: str) -> tuple[Feature, ...]:
    columns = _predictors(section, schema, at)
    found = [each for k, column in enumerate(columns) for each in _told_apart(column, f"{at}.from[{k}]")]
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


def _told_apart(column: Levels | Number, field: str) -> list[Feature]:
    if column.low == column.high:
        raise PlanError(f"{column.name} has one value, which explains nothing; leave it out", field=field)
    if isinstance(column, Number) or column.ordered or len(column.levels) == 2:
        grid = column.grid if isinstance(column, Number) else Fraction(1)
        return [Feature(column=column.name, low=column.low, high=column.high, grid=grid)]
    return [Feature(column=column.name, low=0, high=1, level=level) for level in range(1, len(column.levels))]


def _check_sums(response: Number, features: tuple[Feature, ...], schema: Schema, field: str) -> None:
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
