"""Capped donors in a plan: levels from fine to coarse, how many recipients a donor serves at each, and who stands in.

Levels are written down, or made of the list of attributes: all of them, then all but the last, and so on, four at most,
everybody being the last. Caps are written down, or follow from the share of missing answers that the plan expects. Nothing
here is read off the rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, exp, log, prod
from typing import Any

from pydantic import Field

from reticent.engine.wants import level_keys
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal
from reticent.files import Section, fill
from reticent.prepare.repair import CappedDonors, Default, Match, MatchLevel
from reticent.schema import Levels, Number, Schema

MOST_SERVED = 100
MOST_LEVELS = 4
USUAL_SHARE = Fraction(15, 100)
"""Of answers that are missing, where a plan expects nothing."""

UNSERVED = 0.01
"""The share of recipients that the rule of thumb leaves unserved (THEORY 11.4)."""


class LevelSection(Section):
    """An `[[impute.match]]` section: one level of capped donors.

    **Keys**

    - `on`: the attributes in which donor and recipient agree; an empty list is everybody.
    - `serve`: how many recipients a donor serves at this level, at most.
    """

    on: list[str | dict[str, Any]] = Field(max_length=100)
    serve: int | None = Field(default=None, ge=1, le=MOST_SERVED)


class DefaultSection(Section):
    """A `default` by the levels of an attribute.

    **Keys**

    - `by`: the attribute, which nobody fills.
    - `values`: what stands in, for each of its levels.
    - `otherwise`: what stands in for those who did not say.
    """

    by: str
    values: dict[str, Any] = Field(min_length=1)
    otherwise: Any


class BoughtDefaultSection(Section):
    """A `default` that is released first, with noise, from those who answered.

    **Keys**

    - `mean`: an attribute; the mean of each of its levels stands in (for a column with levels, the likeliest one).
    - `line`: predictors, which nobody fills; what a private line makes of them stands in.
    - `epsilon`: what it costs.
    """

    mean: str | None = None
    line: list[str] | None = Field(default=None, min_length=1, max_length=50)
    epsilon: str


def is_released(raw: object) -> bool:
    """Whether a default has to be bought."""
    return isinstance(raw, Mapping) and ("mean" in raw or "line" in raw)


def read_released(
    raw: Mapping[str, Any], column: Levels | Number, schema: Schema, field: str
) -> dict[str, Any]:
    """The model that is bought for a default, as an `[[impute]]` section would say it."""
    section = fill(BoughtDefaultSection, raw, error=PlanError, at=field)
    if (section.mean is None) == (section.line is None):
        raise PlanError("is the mean of cells or a line: write mean or line", field=field)
    looks = section.line if section.line is not None else [str(section.mean)]
    if section.mean is not None and not isinstance(
        schema.column(section.mean, field=f"{field}.mean"), Levels
    ):
        raise PlanError(
            f"{section.mean} is a number; means are those of the levels of a category, or write line",
            field=f"{field}.mean",
        )
    levels = isinstance(column, Levels)
    method, how = ("classes", "mode") if levels else ("regression", "predicted")
    made = {"method": method, "column": column.name, "from": looks, "epsilon": section.epsilon}
    return {**made, "fill": how}


def caps_for(share: Fraction | None, levels: int) -> tuple[int, ...]:
    """The rule of thumb of THEORY 11.4: the first two levels leave about one in a hundred unserved, most served at the fine one."""
    wanted = min(MOST_SERVED, ceil(log(UNSERVED) / log(float(share or USUAL_SHARE))))
    return (max(1, wanted - 1), *[1] * (levels - 1)) if levels > 1 else (max(1, wanted),)


def ladder_of(near: Sequence[Match]) -> tuple[tuple[Match, ...], ...]:
    """Levels from a list of attributes, the most important first."""
    whole = tuple(near)
    finer = [whole[:size] for size in range(len(whole), 0, -1)][: MOST_LEVELS - 1]
    return (*finer, ())


def levels_of(
    on: Sequence[tuple[Match, ...]], caps: Sequence[int | None], share: Fraction | None
) -> tuple[MatchLevel, ...]:
    """The levels, with the rule of thumb where no cap was said."""
    usual = caps_for(share, len(on))
    return tuple(
        MatchLevel(on=each, serve=cap if cap is not None else thumb)
        for each, cap, thumb in zip(on, caps, usual, strict=True)
    )


def read_shares(raw: Mapping[str, Any] | None, schema: Schema) -> dict[str, Fraction]:
    """The `missing` of `[expect]`: for columns, the share of answers that are expected to be missing."""
    found: dict[str, Fraction] = {}
    for name, each in (raw or {}).items():
        if name not in schema.coded:
            raise PlanError(
                f"no column {name!r} in the codebook{nearest(name, schema.coded)}", field="expect.missing"
            )
        share = read_decimal(each)
        if share is None or not 0 < share < 1:
            raise PlanError("is a share above 0 and below 1", field=f"expect.missing.{name}")
        found[name] = share
    return found


def read_default(raw: Any, column: Levels | Number, schema: Schema, read: Any, field: str) -> Default:
    """A public value, one for each level of an attribute, one that is released, or the middle of the bounds (of ordinal
    levels; else the first level)."""
    if raw is None:
        in_order = isinstance(column, Number) or column.ordered
        return Default(code=(column.low + column.high) // 2 if in_order else 0)
    if not isinstance(raw, Mapping):
        return Default(code=read(raw, column, field=field))
    if is_released(raw):
        looks = read_released(raw, column, schema, field)["from"]
        return replace(read_default(None, column, schema, read, field), looks=tuple(looks))
    section = fill(DefaultSection, raw, error=PlanError, at=field)
    by = schema.column(section.by, field=f"{field}.by")
    if not isinstance(by, Levels):
        raise PlanError(
            f"{section.by} is a number; a default goes by the levels of a category", field=f"{field}.by"
        )
    if set(section.values) != set(by.levels):
        raise PlanError(
            f"says a value for each level of {section.by}: {', '.join(by.levels)}", field=f"{field}.values"
        )
    codes = tuple(read(section.values[level], column, field=f"{field}.values.{level}") for level in by.levels)
    return Default(
        code=read(section.otherwise, column, field=f"{field}.otherwise"), by=section.by, codes=codes
    )


def expected_share(columns: Sequence[str], shares: Mapping[str, Fraction]) -> Fraction | None:
    """What a plan expects of columns that are filled together: at least the largest share."""
    return max((shares[name] for name in columns if name in shares), default=None)


def unserved(group: CappedDonors, schema: Schema | None = None, rows: int | None = None) -> float:
    """The share of recipients expected to be left to the default (THEORY 11.4).

    With many records in every cell about share^tau. With so many `rows` spread evenly over the cells of every level, of the J
    others in a recipient's cell, Poisson, the nearest min(J, serve) must all be recipients; levels have places of their own.
    """
    share = float(group.expected or USUAL_SHARE)
    if schema is None or rows is None:
        return share**group.serve
    found = 1.0
    for level in group.levels:
        cells = prod(key.size(schema) for key in level_keys(level))
        chance, left, none = exp(-(rows - 1) / cells), 1.0, 0.0
        for others in range(level.serve):
            none += chance * share**others
            left -= chance
            chance *= (rows - 1) / cells / (others + 1)
        found *= none + max(0.0, left) * share**level.serve
    return found
