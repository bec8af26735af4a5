"""Donor imputation (hot deck) in a plan: an `[[impute]]` of method "donors", and values written as codes of a column.

A value is a level by its name, or a number on its column's grid.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from pydantic import Field

from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.files import Section, fill
from reticent.plan.capped import (
    LevelSection,
    expected_share,
    is_released,
    ladder_of,
    levels_of,
    read_default,
    read_released,
)
from reticent.prepare.distance import MOST_VALUES
from reticent.prepare.repair import MOST_RINGS, Bounding, CappedDonors, Donors, Match, Metric, Scheme
from reticent.schema import Identifier, Levels, Number, Schema


def read_code(raw: Any, column: Levels | Number, *, field: str) -> int:
    """The code of `raw`, which lies in the column's declared domain or is refused."""
    return _level(raw, column, field) if isinstance(column, Levels) else _number(raw, column, field)


def repairable(name: str, schema: Schema, *, verb: str, field: str) -> Levels | Number:
    """The column `name`, if a repair may touch it; `verb` says what it would do, as in "imputed"."""
    column = schema.columns.get(name)
    if column is None:
        raise PlanError(f"no column {name!r} in the codebook{nearest(name, schema.coded)}", field=field)
    if isinstance(column, Identifier):
        raise PlanError(f"{name} identifies respondents; it cannot be {verb}", field=field)
    if column.role == "weight":
        raise PlanError(f"{name} is the base weight, a fact of the design; it cannot be {verb}", field=field)
    return schema.column(name, field=field)


def _level(raw: Any, column: Levels, field: str) -> int:
    text = str(raw) if isinstance(raw, str | int) and not isinstance(raw, bool) else ""
    if text not in column.levels:
        raise PlanError(
            f"{text[:80]!r} is not a level of {column.name}{nearest(text, column.levels)}", field=field
        )
    return column.levels.index(text)


def _number(raw: Any, column: Number, field: str) -> int:
    value = read_decimal(raw)
    if value is None:
        raise PlanError(f"{column.name} is a number; write a plain decimal", field=field)
    if not column.lower <= value <= column.upper:
        raise PlanError(
            f"lies outside the bounds of {column.name}, {show(column.lower)} to {show(column.upper)}",
            field=field,
        )
    if (value / column.grid).denominator != 1:
        raise PlanError(f"is off the grid of {column.name}, {show(column.grid)}", field=field)
    return int(value / column.grid)


MOST_DONORS = 100
MOST_GROUPS = MOST_VALUES - 2  # beside them there are "missing" and "not asked"
HEAVIEST = 1000


SAID: dict[str, tuple[type, str]] = {
    "serve": (
        int,
        "is a whole number: caps read off the rows would be confidential, and the noise with them; write serve = 2, or leave it out",
    ),
    "on": (
        list,
        'lists attributes: levels that are read off the rows would tell of them; write on = ["sex"], or on = [] for everybody',
    ),
    "groups": (
        list,
        "lists where groups begin: groups that are read off the rows would tell of them; write groups = [0, 18, 65], or by",
    ),
    "donors": (
        int,
        "is a whole number, how many donors each recipient has; write donors = 5, or leave it out",
    ),
}
"""What a plan says by itself, never by what the rows are like: of what type, and the way out."""


def check_said(raw: object, at: str) -> None:
    """Refuse caps, levels and groups that a plan would have read off the rows."""
    said = raw if isinstance(raw, Mapping) else {}
    for key, (kind, why) in SAID.items():
        if key in said and not isinstance(said[key], kind):
            raise PlanError(why, field=f"{at}.{key}")


class DonorsSection(Section):
    """An `[[impute]]` section of method "donors": hot deck imputation.

    **Keys**

    - `method`: `"donors"`.
    - `column`: what is filled.
    - `columns`: several columns, each from donors of its own.
    - `together`: fill the columns from one donor, who answered them all.
    - `match`: attributes to match on, the most important first, or levels from fine to coarse.
    - `donors`: how many donors a recipient has, each for a fraction of its record.
    - `default`: the value of a recipient whom nobody serves; under `"hubs"`, of public donors who stand last.
    - `bound`: `"capped"`, where a donor serves few; or `"hubs"`, where everybody gets the nearest; others are for comparison.
    - `k`: how many nearest donors are averaged; `"hubs"` only, as all below.
    - `scheme`: `"nearest"`, `"mean"` or `"majority"`.
    - `distance`: `"declared"` or `"one-hot euclidean"`.
    - `smoothness`: m of the noise.
    """

    method: str
    column: str | None = None
    columns: list[str] | None = Field(default=None, min_length=1, max_length=100)
    together: bool = False
    match: list[str | dict[str, Any]] = Field(min_length=1, max_length=100)
    donors: int | None = Field(default=None, ge=1, le=MOST_RINGS)
    default: Any = None
    bound: str | None = None
    k: int = Field(default=1, ge=1, le=MOST_DONORS)
    scheme: str | None = None
    distance: str = Metric.DECLARED.value
    smoothness: int | None = Field(default=None, ge=3, le=64)


class MatchSection(Section):
    """One attribute that donors are matched on.

    **Keys**

    - `column`: the attribute.
    - `groups`: where groups of a number begin.
    - `by`: the width of equal groups.
    - `weight`: how much it counts in the distance.
    """

    column: str
    groups: list[Any] | None = Field(default=None, min_length=1, max_length=MOST_GROUPS)
    by: Any = None
    weight: Any = 1


CAPPED = "capped"
BOUNDS = [CAPPED, *(each.value for each in Bounding)]
USUAL_DONORS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DonorsRead:
    """What one section says: nearest donors with their smoothness, or capped ones with how many each recipient has.

    `bought` are the models that defaults are made of, as sections, each with its place in the plan and whether it is the means of
    levels.
    """

    nearest: tuple[Donors, ...] = ()
    capped: tuple[CappedDonors, ...] = ()
    smoothness: int | None = None
    rings: int | None = None
    bought: tuple[tuple[dict[str, Any], str, bool], ...] = ()


def is_level(raw: object) -> bool:
    """Whether a line of `match` is a level of its own, a set of columns to match on."""
    return isinstance(raw, Mapping) and "on" in raw


def read_donors(
    raw: Mapping[str, Any], schema: Schema, at: str, shares: Mapping[str, Fraction] | None = None
) -> DonorsRead:
    """The donors of each column that `raw` names. `shares` are expected to be missing."""
    if isinstance(raw.get("match"), str | Mapping):
        raise PlanError(
            "levels that are read off the rows would tell of them; list attributes, the most important first, or levels",
            field=f"{at}.match",
        )
    if "serve" in raw:
        raise PlanError(
            "is said for each level: write on = [...] and serve = 2 under [[impute.match]], or leave it out for the rule of thumb",
            field=f"{at}.serve",
        )
    check_said(raw, at)
    section = fill(DonorsSection, raw, error=PlanError, at=at)
    if (section.column is None) == (section.columns is None):
        raise PlanError("fills one column or several: write column or columns", field=f"{at}.column")
    named = section.columns if section.columns is not None else [str(section.column)]
    field = f"{at}.columns" if section.columns is not None else f"{at}.column"
    targets = [repairable(name, schema, verb="imputed", field=field) for name in named]
    if section.bound is not None:
        _one_of(section.bound, BOUNDS, f"{at}.bound")
    if section.bound in (None, CAPPED):
        return _read_capped(section, targets, schema, at, shares or {})
    _check_hubs(section, at)
    near = tuple(_match(each, schema, f"{at}.match[{i}]") for i, each in enumerate(section.match))
    _check_once([match.column for match in near], f"{at}.match")
    made = tuple(_donors(section, target, near, at) for target in targets)
    return DonorsRead(nearest=made, smoothness=section.smoothness)


def _check_hubs(section: DonorsSection, at: str) -> None:
    """Levels, caps and fractions are for capped donors alone."""
    if any(is_level(each) for each in section.match):
        raise PlanError(
            "levels go with capped donors; list attributes, or leave bound out", field=f"{at}.match"
        )
    for key in ("donors", "together"):
        if key in section.model_fields_set:
            raise PlanError("goes with capped donors; remove it, or leave bound out", field=f"{at}.{key}")


HUBS_ONLY = {
    "k": "averages of the k nearest have no public bound; write donors = {k} for fractions of several donors, or bound = 'hubs'",
    "scheme": "is for the nearest donors; remove it, or write bound = 'hubs'",
    "distance": "is for the nearest donors; order the list of attributes, or write bound = 'hubs'",
    "smoothness": "is for noise of confidential scale; remove it, or write bound = 'hubs'",
}


def _read_capped(
    section: DonorsSection,
    targets: list[Levels | Number],
    schema: Schema,
    at: str,
    shares: Mapping[str, Fraction],
) -> DonorsRead:
    for key, why in HUBS_ONLY.items():
        if key in section.model_fields_set and getattr(section, key) not in (None, 1, Metric.DECLARED.value):
            raise PlanError(why.format(k=section.k), field=f"{at}.{key}")
    if section.together and len(targets) == 1:
        raise PlanError("takes several columns; write columns, or remove it", field=f"{at}.together")
    on, caps = _levels(section, schema, at)
    groups = [targets] if section.together else [[target] for target in targets]
    made = tuple(_group(section, group, on, caps, schema, at, shares) for group in groups)
    bought = tuple(
        (read_released(raw, column, schema, field), field, "mean" in raw)
        for column in targets
        for raw, field in [_default_of(section, column.name, f"{at}.default")]
        if is_released(raw)
    )
    return DonorsRead(capped=made, rings=section.donors, bought=bought)


def _default_of(section: DonorsSection, name: str, field: str) -> tuple[Any, str]:
    """The default of one column, and where it stands: one for all, or one for each."""
    raw = section.default
    if isinstance(raw, Mapping) and "by" not in raw and not is_released(raw):
        return raw.get(name), f"{field}.{name}"
    return raw, field


def _group(
    section: DonorsSection,
    columns: list[Levels | Number],
    on: list[tuple[Match, ...]],
    caps: list[int | None],
    schema: Schema,
    at: str,
    shares: Mapping[str, Fraction],
) -> CappedDonors:
    names = tuple(column.name for column in columns)
    if len(set(names)) < len(names):
        raise PlanError("names a column twice; keep one", field=f"{at}.columns")
    share = expected_share(names, shares)
    raw, field = section.default, f"{at}.default"
    if isinstance(raw, Mapping) and "by" not in raw and not is_released(raw):
        _check_each(raw, section, field)
    found = [(column, *_default_of(section, column.name, field)) for column in columns]
    defaults = tuple(read_default(each, column, schema, read_code, here) for column, each, here in found)
    return CappedDonors(columns=names, levels=levels_of(on, caps, share), defaults=defaults, expected=share)


def _check_each(raw: Mapping[str, Any], section: DonorsSection, field: str) -> None:
    known = section.columns or [str(section.column)]
    odd = next((name for name in raw if name not in known), None)
    if odd is not None:
        raise PlanError(f"{odd[:80]!r} is not filled here{nearest(odd, known)}", field=field)


def _check_own(section: DonorsSection, at: str) -> None:
    """A column is not matched on itself: recipients have no answer to agree in."""
    filled = section.columns or [str(section.column)]
    listed = [
        one
        for each in section.match
        for one in (each.get("on", []) if isinstance(each, Mapping) and is_level(each) else [each])
    ]
    named = [one.get("column") if isinstance(one, Mapping) else one for one in listed]
    own = next((name for name in named if name in filled), None)
    if own is not None:
        raise PlanError(
            f"names {own}, which is filled: recipients lack it, and changes would chain from donor to donor; match on columns "
            "that no donor fills",
            field=f"{at}.match",
        )


def _levels(
    section: DonorsSection, schema: Schema, at: str
) -> tuple[list[tuple[Match, ...]], list[int | None]]:
    """Each level's attributes and cap; a list of attributes is made into levels."""
    _check_own(section, at)
    if not any(is_level(each) for each in section.match):
        near = _agreeing(section.match, schema, f"{at}.match")
        ladder = ladder_of(near)
        return list(ladder), [None] * len(ladder)
    on, caps = list[tuple[Match, ...]](), list[int | None]()
    for place, raw in enumerate(section.match):
        here = f"{at}.match[{place}]"
        if not isinstance(raw, Mapping) or not is_level(raw):
            raise PlanError("is a level like the others: on = [...], serve = 1", field=here)
        check_said(raw, here)
        level = fill(LevelSection, raw, error=PlanError, at=here)
        on.append(_agreeing(level.on, schema, f"{here}.on"))
        caps.append(level.serve)
    return on, caps


def _agreeing(raw: Sequence[str | dict[str, Any]], schema: Schema, at: str) -> tuple[Match, ...]:
    """Attributes in which donor and recipient agree; there is no distance, so no weight."""
    found = tuple(_match(each, schema, f"{at}[{i}]") for i, each in enumerate(raw))
    _check_once([match.column for match in found], at)
    for place, match in enumerate(found):
        if match.weight != 1:
            raise PlanError(
                "weights are for distances, and capped donors agree or do not; put the attribute later in the list, or "
                "write bound = 'hubs'",
                field=f"{at}[{place}].weight",
            )
    return found


def _donors(section: DonorsSection, column: Levels | Number, near: tuple[Match, ...], at: str) -> Donors:
    scheme = _scheme(section, column, f"{at}.scheme")
    return Donors(
        column=column.name,
        near=near,
        k=section.k,
        scheme=scheme,
        defaults=_defaults(section, column, f"{at}.default"),
        metric=Metric(_one_of(section.distance, [each.value for each in Metric], f"{at}.distance")),
        bounding=Bounding(str(section.bound)),
    )


def _scheme(section: DonorsSection, column: Levels | Number, field: str) -> Scheme:
    if section.scheme is None:
        several = Scheme.MEAN if isinstance(column, Number) else Scheme.MAJORITY
        return Scheme.NEAREST if section.k == 1 else several
    scheme = Scheme(_one_of(section.scheme, [each.value for each in Scheme], field))
    if scheme is Scheme.MEAN and isinstance(column, Levels):
        raise PlanError(f"{column.name} has levels, which have no mean; take the majority", field=field)
    if scheme is Scheme.NEAREST and section.k != 1:
        raise PlanError(
            f"the nearest donor is one, but k is {section.k}; take the mean or the majority", field=field
        )
    return scheme


def _defaults(section: DonorsSection, column: Levels | Number, field: str) -> tuple[int, ...]:
    """The codes of the public donors who stand last: as written, or the middle of the bounds, or the first level."""
    if section.default is None:
        middle = 0 if isinstance(column, Levels) else (column.low + column.high) // 2
        return (middle,) * section.k
    if not isinstance(section.default, list):
        return (read_code(section.default, column, field=field),) * section.k
    if len(section.default) != section.k:
        raise PlanError(f"is one value, or {section.k} of them, one for each donor", field=field)
    return tuple(read_code(raw, column, field=f"{field}[{i}]") for i, raw in enumerate(section.default))


def _match(raw: str | dict[str, Any], schema: Schema, at: str) -> Match:
    check_said(raw, at)
    section = fill(MatchSection, {"column": raw} if isinstance(raw, str) else raw, error=PlanError, at=at)
    column = repairable(section.column, schema, verb="matched on", field=at)
    weight = read_decimal(section.weight)
    if weight is None or not 0 < weight <= HEAVIEST:
        raise PlanError(f"is a decimal above 0 and at most {HEAVIEST}", field=f"{at}.weight")
    return Match(column=column.name, starts=_starts(section, column, at), weight=weight)


def _starts(section: MatchSection, column: Levels | Number, at: str) -> tuple[int, ...]:
    """The codes at which groups of a number begin; none where every value stands for itself."""
    if section.groups is None and section.by is None:
        return _each(column, at)
    if isinstance(column, Levels):
        raise PlanError(f"{column.name} has levels, which are not grouped; leave groups and by out", field=at)
    if section.groups is not None and section.by is not None:
        raise PlanError("groups and by say the same thing twice; keep one", field=at)
    return _equal(section.by, column, at) if section.groups is None else _listed(section.groups, column, at)


def _each(column: Levels | Number, at: str) -> tuple[int, ...]:
    if isinstance(column, Number) and column.high - column.low >= MOST_GROUPS:
        raise PlanError(
            f"{column.name} has more than {MOST_GROUPS} values to match on; group it, as in "
            f'{{ column = "{column.name}", by = "1000" }}',
            field=at,
        )
    return ()


def _equal(raw: Any, column: Number, at: str) -> tuple[int, ...]:
    width = read_decimal(raw)
    if width is None or width <= 0 or (width / column.grid).denominator != 1:
        raise PlanError(
            f"is the width of equal groups, a multiple of the grid of {column.name}, {show(column.grid)}",
            field=f"{at}.by",
        )
    starts = range(column.low, column.high + 1, int(width / column.grid))
    if len(starts) > MOST_GROUPS:
        raise PlanError(f"makes more than {MOST_GROUPS} groups; take wider ones", field=f"{at}.by")
    return tuple(starts)


def _listed(raw: list[Any], column: Number, at: str) -> tuple[int, ...]:
    codes = tuple(read_code(start, column, field=f"{at}.groups[{i}]") for i, start in enumerate(raw))
    if codes[0] != column.low or any(b <= a for a, b in pairwise(codes)):
        raise PlanError(
            f"lists where groups begin, increasing from {show(Fraction(column.lower))}, the lower bound",
            field=f"{at}.groups",
        )
    return codes


def _one_of(word: str, known: list[str], field: str) -> str:
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word, known)}", field=field)
    return word


def _check_once(names: list[str], field: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"names {twice} twice; keep one", field=field)
