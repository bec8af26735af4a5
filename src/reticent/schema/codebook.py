"""A codebook: the columns, who is protected, and whether the sample size is public; and how it is read from TOML.

Messages name the field and the way out; nothing here has seen a row.
"""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field

from reticent.errors import PlanError, SchemaError, nearest
from reticent.exact import read_decimal
from reticent.files import Section, fill, is_printable, read_toml
from reticent.former import check_format
from reticent.schema.bind import Bound, bind
from reticent.schema.columns import FOLDS, Column, Identifier, Levels, Number
from reticent.schema.parse import parse
from reticent.schema.predicate import Predicate, columns_used, is_column_name

ROW = "row"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """How a CSV file is written: what separates its cells, how numbers are written, and its code page."""

    separator: str = ""
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are written otherwise than everywhere else."""
        return self.decimal != "." or self.thousands != ""


PLAIN_CSV = CsvDialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A codebook: public facts only. `unit` is "row" or the identifier of the protected respondent.

    **Parameters**

    - `name`: the public name of the data set, by which a ledger knows it.
    - `columns`: the columns by name.
    - `unit`: who is protected: `"row"`, or the identifier of the respondent.
    - `at_most`: how many rows one respondent may own.
    - `sample_size`: the number of respondents, where it is public.
    - `title`: for readers.
    - `finished`: false for a draft that nobody has read through.
    - `csv`: how the rows are written, where they are a CSV file.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str
    at_most: int = 1
    sample_size: int | None = None
    title: str = ""
    finished: bool = True
    csv: CsvDialect = PLAIN_CSV

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        self._check_unit()
        self._check_sources()
        self._check_roles()
        for column in self.columns.values():
            if column.universe is not None:
                bind(column.universe, self.coded, field=f"columns.{column.name}.universe")
        _ = self.in_universe_order

    @property
    def coded(self) -> Mapping[str, Levels | Number]:
        """The columns that can be asked about: all but identifiers."""
        return {n: c for n, c in self.columns.items() if isinstance(c, Levels | Number)}

    @property
    def in_universe_order(self) -> tuple[str, ...]:
        """Columns sorted so that each comes after those its universe speaks of."""
        needs = {
            name: columns_used(column.universe) if column.universe is not None else frozenset()
            for name, column in self.coded.items()
        }
        try:
            return tuple(TopologicalSorter(needs).static_order())
        except CycleError:
            raise SchemaError("universes refer to each other in a circle", field="columns") from None

    def universe(self, name: str) -> Bound | None:
        """The bound universe of a column, or None where everybody is asked."""
        predicate = self.columns[name].universe
        return None if predicate is None else bind(predicate, self.coded, field=f"columns.{name}.universe")

    def number(self, name: str, *, field: str) -> Number:
        """The numeric column `name`, which is not the base weight; `field` is where it was asked for."""
        column = self.column(name, field=field)
        if not isinstance(column, Number):
            raise PlanError(f"{name} is not a number; ask for a table or a proportion instead", field=field)
        if column.role == "weight":
            raise PlanError(f"{name} is the base weight; write weight = {name!r} instead", field=field)
        return column

    def scale(self, name: str, *, field: str) -> Number:
        """The numeric column `name`, or the scale of an ordinal one whose levels have positions."""
        column = self.column(name, field=field)
        if not isinstance(column, Levels):
            return self.number(name, field=field)
        found = column.scale
        if found is None:
            raise PlanError(
                f"{name} has levels without positions; declare them in the codebook, or ask for a table or a proportion",
                field=field,
            )
        return found

    def weight(self, name: str, *, field: str) -> Number:
        """The base weight `name`."""
        column = self.column(name, field=field)
        if not isinstance(column, Number) or column.role != "weight":
            raise PlanError(f"{name} is not declared with role = 'weight' in the codebook", field=field)
        return column

    def column(self, name: str, *, field: str) -> Levels | Number:
        """The column `name`, if it may be asked about."""
        if name in self.coded:
            return self.coded[name]
        if name in self.columns:
            raise PlanError(f"{name} identifies respondents; it cannot be asked about", field=field)
        raise PlanError(f"no column {name!r} in the codebook{nearest(name, self.coded)}", field=field)

    def _check_unit(self) -> None:
        if self.unit != ROW and not isinstance(self.columns.get(self.unit), Identifier):
            raise SchemaError(
                "is either 'row' (one record, one respondent) or the name of an identifier column",
                field="survey.unit",
            )
        if self.unit == ROW and self.at_most != 1:
            raise SchemaError("goes with an identifier as unit", field="survey.at_most")
        if not 1 <= self.at_most <= 10_000:
            raise SchemaError("is a whole number from 1 to 10000", field="survey.at_most")
        if self.sample_size is not None and not 1 <= self.sample_size <= 2**40:
            raise SchemaError("is a whole number from 1 to 2^40", field="survey.sample_size")
        identifiers = [name for name, column in self.columns.items() if isinstance(column, Identifier)]
        if self.unit == ROW and identifiers:
            raise SchemaError(
                f"is 'row', but {identifiers[0]} identifies respondents who may own several records; "
                f"write unit = {identifiers[0]!r} and at_most, or drop the column",
                field="survey.unit",
            )

    def _check_sources(self) -> None:
        if not self.coded:
            raise SchemaError("has no column to ask about", field="columns")
        sources = [column.source for column in self.columns.values()]
        twice = next((s for s in sources if sources.count(s) > 1), None)
        if twice is not None:
            raise SchemaError(f"two columns have the source {twice!r}", field="columns")

    def _check_roles(self) -> None:
        for name, column in self.columns.items():
            if column.role == "weight" and (not isinstance(column, Number) or column.lower < 0):
                raise SchemaError("is a weight: a number with bounds from 0 up", field=f"columns.{name}")
            if column.role in ("stratum", "psu") and not isinstance(column, Levels):
                raise SchemaError(
                    f"is a {column.role}: categorical or ordinal, with every one that was drawn among its levels",
                    field=f"columns.{name}",
                )
            if isinstance(column, Levels) and (column.strata or column.drawn):
                self._check_psu(column)

    def _check_psu(self, column: Levels) -> None:
        """Strata of units, or units drawn in strata: of a primary sampling unit, and one of the two."""
        if column.role != "psu" or (column.strata and column.drawn):
            raise SchemaError(
                "gives strata or drawn, one of them, with role = 'psu'", field=f"columns.{column.name}"
            )


FORMAT = 2
KINDS = ("categorical", "ordinal", "integer", "decimal", "identifier")
DATES = (
    "cannot be asked about as a date yet; make a column of numbers from it before (the year, the age in days) and declare "
    "that as integer, or declare the days themselves as levels of an ordinal column"
)
Numeric = str | int | Decimal


class CsvPart(Section):
    """The `[survey.csv]` section of a codebook: how a CSV file is written.

    **Keys**

    - `separator`: one character between cells: `";"`; where not said, a comma, in `.tsv` a tab.
    - `decimal`: the mark before decimals, `"."` or `","`.
    - `thousands`: the mark between groups of three digits: `"."`, `","`, `"'"` or `" "`.
    - `encoding`: its code page, such as `"latin-1"` or `"cp1252"`; UTF-8 where not said.
    """

    separator: str = ""
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"


SEPARATORS, DECIMALS, THOUSANDS = (";", ",", "|", "\t", ":", "~", "^"), (".", ","), ("", ".", ",", "'", " ")
CODE_PAGES = {"ascii", "cp437", "cp850", "cp852", "cp855", "cp857", "cp858", "cp866", "hp-roman8"}


def _csv(part: CsvPart | None) -> CsvDialect:
    if part is None:
        return PLAIN_CSV
    for key, known in (("decimal", DECIMALS), ("thousands", THOUSANDS), ("separator", ("", *SEPARATORS))):
        if getattr(part, key) not in known:
            shown = ", ".join(repr(each) for each in known if each)
            raise SchemaError(f"is one of {shown}", field=f"survey.csv.{key}")
    if part.decimal == part.thousands:
        raise SchemaError(
            "is the decimal mark too; a number has one mark for each", field="survey.csv.thousands"
        )
    encoding = _code_page(part.encoding)
    if encoding is None:
        raise SchemaError(
            "is UTF-8 or a code page of one byte a character, such as latin-1 or cp1252; save the file as UTF-8 otherwise",
            field="survey.csv.encoding",
        )
    return CsvDialect(
        separator=part.separator, decimal=part.decimal, thousands=part.thousands, encoding=encoding
    )


def _code_page(name: str) -> str | None:
    """Python's name of a code page in which every byte is a character by itself, or of UTF-8; None for any other."""
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    is_single = found.startswith(("iso8859", "cp125", "koi8", "mac-")) or found in CODE_PAGES
    return found if is_single or found == "utf-8" else None


class SurveyPart(Section):
    """The `[survey]` section of a codebook.

    **Keys**

    - `name`: the public name of the data set.
    - `title`: for readers.
    - `unit`: who is protected: `"row"`, or an identifier.
    - `at_most`: how many rows one respondent may own.
    - `sample_size`: the number of respondents, where it is public.
    - `unfinished`: true in a draft.
    - `csv`: how a CSV file is written.
    """

    name: str = Field(min_length=1, max_length=100)
    title: str = ""
    unit: str = ""
    at_most: int = 1
    sample_size: int | None = None
    unfinished: bool = False
    csv: CsvPart | None = None


class ColumnPart(Section):
    """One column of a codebook.

    **Keys**

    - `kind`: `categorical`, `ordinal`, `integer`, `decimal` or `identifier`.
    - `label`: for readers.
    - `unit`: of measurement.
    - `source`: the header in the file, the column's name where not said.
    - `role`: what it is to the design: `"weight"`, `"stratum"` or `"psu"`.
    - `strata`: for a psu, the stratum of each level; without it units are numbered within strata.
    - `drawn`: for a psu numbered within strata, how many were drawn in each stratum, where not all levels.
    - `levels`: the answers, in order for an ordinal column.
    - `positions`: places of ordinal levels on a scale, so that they have means, totals, variances and quantiles.
    - `bands`: for levels that are bands of a number, its edges, one more than levels; quantiles are interpolated in them.
    - `bounds`: lowest and highest; what lies outside is clamped.
    - `grid`: the step that values are rounded to.
    - `missing_codes`: numbers that stand for no answer.
    - `universe`: a filter expression: who was asked.
    - `text`: read levels or identifiers letter by letter.
    - `labels`: what a reader sees in place of each level: `{ 1 = "New England" }`.
    - `groups`: levels made of several codes of the file: `{ north = ["1", "2"] }`.
    - `ignore`: what texts may differ in and still be the same level: `"case"`, `"spacing"`.
    - `concept`: its SDMX concept, such as `REF_AREA`, for `reticent report --as sdmx`.
    """

    kind: str
    label: str = ""
    unit: str = ""
    source: str = ""
    role: str = ""
    strata: list[str | int] = Field(default=[])
    drawn: list[int] = Field(default=[])
    levels: list[str | int] = Field(default=[])
    positions: list[Numeric] = Field(default=[])
    bands: list[Numeric] = Field(default=[])
    bounds: list[Numeric] = Field(default=[])
    grid: Numeric = 1
    missing_codes: list[Numeric] = Field(default=[])
    universe: str = ""
    text: bool = False
    labels: dict[str, str] = Field(default={})
    groups: dict[str, list[str | int]] = Field(default={})
    ignore: list[str] = Field(default=[])
    concept: str = Field(default="", pattern=r"^([A-Z][A-Z0-9_]{0,49})?$")


class CodebookPart(Section):
    """All of a codebook file.

    **Keys**

    - `format`: the number of the format, 2.
    - `survey`: the survey.
    - `columns`: the columns by name.
    """

    format: int = FORMAT
    survey: SurveyPart
    columns: dict[str, dict[str, Any]]


def read_schema(path: Path) -> Schema:
    """The codebook in the file at `path`.

    **Parameters**

    - `path`: a TOML file.
    """
    return schema_from(read_toml(path, error=SchemaError))


def schema_from(data: dict[str, Any]) -> Schema:
    """A codebook from the dictionary that its TOML stands for."""
    check_format(data, FORMAT, "codebooks", SchemaError)
    book = fill(CodebookPart, data, error=SchemaError, at="")
    _check_text(book.survey.name, "survey.name")
    _check_text(book.survey.title, "survey.title")
    if not book.survey.unit:
        raise SchemaError("say who is protected: 'row', or the identifier column", field="survey.unit")
    columns = {name: _column(name, raw) for name, raw in book.columns.items()}
    return Schema(
        name=book.survey.name,
        title=book.survey.title,
        columns=columns,
        unit=book.survey.unit,
        at_most=book.survey.at_most,
        sample_size=book.survey.sample_size,
        finished=not book.survey.unfinished,
        csv=_csv(book.survey.csv),
    )


def _column(name: str, raw: dict[str, Any]) -> Column:
    at = f"columns.{name}"
    if not is_column_name(name):
        rule = "a letter or _, then at most 62 letters, digits or _, and not a reserved word"
        raise SchemaError(
            f"{name[:80]!r} is not a name ({rule}); put the header into 'source'", field="columns"
        )
    part = fill(ColumnPart, raw, error=SchemaError, at=at, offered=_offered(raw.get("kind")))
    if part.kind in ("date", "datetime", "time"):
        raise SchemaError(DATES, field=f"{at}.kind")
    if part.kind not in KINDS:
        raise SchemaError(f"is one of {', '.join(KINDS)}{nearest(part.kind, KINDS)}", field=f"{at}.kind")
    if part.role not in ("", "weight", "stratum", "psu"):
        raise SchemaError("is 'weight', 'stratum' or 'psu', where given", field=f"{at}.role")
    texts = [*map(str, part.levels), *map(str, part.strata), *map(str, part.missing_codes)]
    texts += [*part.labels, *part.labels.values(), *part.groups, *part.ignore]
    texts += [str(code) for codes in part.groups.values() for code in codes]
    for text in (part.label, part.unit, part.source, *texts):
        _check_text(text, at)
    common = {
        "name": name,
        "source": part.source or name,
        "label": part.label,
        "unit": part.unit,
        "role": part.role,
        "concept": part.concept,
        "missing": tuple(str(code) for code in part.missing_codes),
        "universe": _universe(part.universe, at),
    }
    if part.kind == "identifier":
        _refuse(part, at, "labels", "groups", "ignore")
        return Identifier(**common, literal=part.text)  # type: ignore[arg-type]
    return _levels(part, common, at) if part.kind in ("categorical", "ordinal") else _number(part, common, at)


def _offered(kind: Any) -> set[str]:
    """The keys that go with a kind of column; all of them where the kind is none."""
    every = set(ColumnPart.model_fields)
    if kind in ("categorical", "ordinal"):
        return every - {"bounds", "grid"} - ({"positions"} if kind == "categorical" else set())
    if kind in ("integer", "decimal"):
        return every - {"levels", "positions", "text", "strata", "drawn", "labels", "groups", "ignore"}
    return every - {"labels", "groups", "ignore", "levels", "bounds", "grid", "positions"}


def _levels(part: ColumnPart, common: dict[str, Any], at: str) -> Levels:
    _refuse(part, at, "bounds", "grid")
    if part.kind == "categorical":
        _refuse(part, at, "positions", "bands")
    positions = tuple(_exact(value, f"{at}.positions") for value in part.positions)
    bands = tuple(_exact(value, f"{at}.bands") for value in part.bands)
    if bands and not positions:
        positions = tuple((low + high) / 2 for low, high in pairwise(bands))
    levels, members = _grouped(part, at)
    ordered = part.kind == "ordinal"
    wrong = next((word for word in part.ignore if word not in FOLDS), None)
    if wrong is not None:
        raise SchemaError(f"lists 'case', 'spacing' or both, not {wrong!r}", field=f"{at}.ignore")
    return Levels(
        **common,
        levels=levels,
        members=members,
        labels=_labels(part, levels, at),
        ignore=tuple(word for word in FOLDS if word in part.ignore),
        positions=positions,
        bands=bands,
        ordered=ordered,
        literal=part.text,
        strata=tuple(str(stratum) for stratum in part.strata),
        drawn=tuple(part.drawn),
    )


def _grouped(part: ColumnPart, at: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The levels, and the codes of the file that each stands for where some are grouped.

    Without `levels` the groups are the levels, in their order. With them every code is replaced by its group where the
    first of the group stands, and a code in no group stays a level.
    """
    listed = tuple(str(level) for level in part.levels)
    groups = {name: tuple(str(code) for code in codes) for name, codes in part.groups.items()}
    if not groups:
        return listed, ()
    field = f"{at}.groups"
    codes = [code for members in groups.values() for code in members]
    if not all(groups.values()) or len(set(codes)) < len(codes):
        raise SchemaError("needs at least one code in each group, and each code in one group", field=field)
    if not listed:
        return tuple(groups), tuple(groups.values())
    unknown = next((code for code in codes if code not in listed), None)
    if unknown is not None:
        raise SchemaError(
            f"groups {unknown!r}, which is not among the levels{nearest(unknown, listed)}", field=field
        )
    group_of = {code: name for name, members in groups.items() for code in members}
    if part.kind == "ordinal":
        _check_runs(listed, group_of, field)
    levels = tuple(dict.fromkeys(group_of.get(level, level) for level in listed))
    alone = [level for level in listed if level not in group_of]
    if set(alone) & set(groups):
        raise SchemaError("has a group named like a level that is in no group; rename the group", field=field)
    return levels, tuple(groups.get(level, (level,)) for level in levels)


def _check_runs(listed: tuple[str, ...], group_of: Mapping[str, str], field: str) -> None:
    """Groups of an ordinal column are neighbours in its order, or the order would mean nothing."""
    runs = [group_of.get(level, level) for level in listed]
    starts = [name for place, name in enumerate(runs) if place == 0 or runs[place - 1] != name]
    if len(set(starts)) < len(starts):
        raise SchemaError(
            "groups levels that are not neighbours in their order; group neighbours, or declare it categorical",
            field=field,
        )


def _labels(part: ColumnPart, levels: tuple[str, ...], at: str) -> tuple[str, ...]:
    """The label of every level, empty where it has none. Codes that went into a group may keep theirs, for the curator."""
    known = {*levels, *map(str, part.levels), *(str(c) for codes in part.groups.values() for c in codes)}
    unknown = next((code for code in part.labels if code not in known), None)
    if unknown is not None:
        raise SchemaError(
            f"labels {unknown!r}, which is not a level{nearest(unknown, known)}", field=f"{at}.labels"
        )
    found = tuple(part.labels.get(level, "") for level in levels)
    return found if any(found) else ()


def _number(part: ColumnPart, common: dict[str, Any], at: str) -> Number:
    refused = ("levels", "positions", "bands", "text", "strata", "drawn", "labels", "groups", "ignore")
    _refuse(part, at, *refused)
    if len(part.bounds) != 2:
        raise SchemaError("give the lowest and the highest value: bounds = [0, 99]", field=f"{at}.bounds")
    lower, upper = (_exact(value, f"{at}.bounds") for value in part.bounds)
    if part.kind == "decimal" and "grid" not in part.model_fields_set:
        raise SchemaError('a decimal column needs its grid, such as grid = "0.01"', field=f"{at}.grid")
    grid = _exact(part.grid, f"{at}.grid")
    if part.kind == "integer" and grid.denominator != 1:
        raise SchemaError("an integer column has a whole grid; declare it decimal", field=f"{at}.grid")
    return Number(**common, lower=lower, upper=upper, grid=grid, whole=part.kind == "integer")


def _refuse(part: ColumnPart, at: str, *keys: str) -> None:
    for key in keys:
        if key in part.model_fields_set:
            raise SchemaError(f"does not go with kind {part.kind!r}; remove it", field=f"{at}.{key}")


def _universe(text: str, at: str) -> Predicate | None:
    if not text:
        return None
    try:
        return parse(text, field=f"{at}.universe")
    except PlanError as problem:
        raise SchemaError(str(problem.args[0]), field=problem.field) from None


def _exact(value: Numeric, field: str) -> Fraction:
    exact = read_decimal(value)
    if exact is None:
        raise SchemaError("is a plain decimal such as 10 or '0.01'", field=field)
    return exact


def _check_text(text: str, field: str) -> None:
    if not is_printable(text) or len(text) > 300:
        raise SchemaError("holds a control character, or is longer than 300 characters", field=field)
