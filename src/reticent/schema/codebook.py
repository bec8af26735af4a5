"""Codebooks as TOML writes them: the keys of the survey and of its columns, read as a `Schema`.

Messages name the field and the way out; nothing here has seen a row.
"""

import codecs
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import Field

from reticent.errors import PlanError, SchemaError, nearest
from reticent.exact import read_decimal
from reticent.files import Section, fill, is_printable, read_toml
from reticent.former import check_words, other_format
from reticent.schema.columns import FOLDS, MOST_LEVELS, Column, Identifier, Levels, Number
from reticent.schema.parse import parse
from reticent.schema.predicate import Predicate, is_column_name
from reticent.schema.replicates import Replicates, ReplicatesPart, read_replicates
from reticent.schema.schema import PLAIN_CSV, ROW, CsvDialect, Schema

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
    - `replicates`: replicate weights that the file has.
    - `unit_name`: what the identifier stands for, such as `"household"`; statistics can then be of households.
    """

    name: str = Field(min_length=1, max_length=100)
    title: str = ""
    unit: str = ""
    at_most: int = 1
    sample_size: int | None = None
    unfinished: bool = False
    csv: CsvPart | None = None
    replicates: ReplicatesPart | None = None
    unit_name: str = Field(default="", pattern=r"^([a-z]{2,30})?$")


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
    - `dealt`: for a psu, where nobody was drawn together: into so many groups respondents are dealt by a digest.
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
    - `of`: the survey's `unit_name` where all records of a household agree in it: `"household"`.
    - `concept`: its SDMX concept, such as `REF_AREA`, for `reticent report --as sdmx`.
    """

    kind: str
    label: str = ""
    unit: str = ""
    source: str = ""
    role: str = ""
    strata: list[str | int] = Field(default=[])
    drawn: list[int] = Field(default=[])
    dealt: int = 0
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
    of: str = ""
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
    """A codebook from the dictionary that its TOML stands for; of a word of before an error says what it is called now."""
    if (said := data.get("format", FORMAT)) != FORMAT:
        raise other_format(said, FORMAT, "codebooks", SchemaError)
    try:
        return _schema_from(data)
    except SchemaError:
        check_words(data, SchemaError)
        raise


def _schema_from(data: dict[str, Any]) -> Schema:
    book = fill(CodebookPart, data, error=SchemaError, at="")
    _check_text(book.survey.name, "survey.name")
    _check_text(book.survey.title, "survey.title")
    if not book.survey.unit:
        raise SchemaError("say who is protected: 'row', or the identifier column", field="survey.unit")
    columns = {name: _column(name, raw) for name, raw in book.columns.items()}
    replicates, more = _replicates(book.survey.replicates, columns)
    return Schema(
        name=book.survey.name,
        title=book.survey.title,
        columns=columns | more | _first(book.survey),
        unit_name=book.survey.unit_name or "respondent",
        replicates=replicates,
        unit=book.survey.unit,
        at_most=book.survey.at_most,
        sample_size=book.survey.sample_size,
        finished=not book.survey.unfinished,
        csv=_csv(book.survey.csv),
    )


def _first(survey: SurveyPart) -> dict[str, Levels]:
    """The column that marks one record of each household, where the unit is called one."""
    if not survey.unit_name:
        return {}
    if survey.unit == ROW:
        raise SchemaError("goes with an identifier as unit; a row is a respondent", field="survey.unit_name")
    name = f"first_of_{survey.unit_name}"
    return {name: Levels(name=name, source="", levels=("yes", "no"), is_first=True)}


def _replicates(
    part: ReplicatesPart | None, columns: Mapping[str, Column]
) -> tuple[Replicates | None, dict[str, Number]]:
    """The replicate weights, and a column for each of them."""
    if part is None:
        return None, {}
    base = columns.get(part.weight)
    if not isinstance(base, Number) or base.role != "weight":
        raise SchemaError(
            f"is the base weight that they are replicates of, a column with role = 'weight'"
            f"{nearest(part.weight, [name for name, each in columns.items() if each.role == 'weight'])}",
            field="survey.replicates.weight",
        )
    made, more = read_replicates(part, base)
    for column in more.values():
        _check_text(column.source, "survey.replicates.columns")
    taken = next((name for name in more if name in columns), None)
    if taken is not None:
        raise SchemaError(
            f"would be called {taken}, as another column; rename that", field="survey.replicates"
        )
    return made, more


def _column(name: str, raw: dict[str, Any]) -> Column:
    at = f"columns.{name}"
    if not is_column_name(name):
        rule = "a letter or _, then at most 62 letters, digits or _, and not a reserved word"
        raise SchemaError(
            f"{name[:80]!r} is not a name ({rule}); put the header into 'source'", field="columns"
        )
    _check_units(raw, at)
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
        "of": part.of,
        "concept": part.concept,
        "missing": tuple(str(code) for code in part.missing_codes),
        "universe": _universe(part.universe, at),
    }
    if part.kind == "identifier":
        _refuse(part, at, "labels", "groups", "ignore")
        return Identifier(**common, literal=part.text)  # type: ignore[arg-type]
    return _levels(part, common, at) if part.kind in ("categorical", "ordinal") else _number(part, common, at)


def _check_units(raw: Mapping[str, Any], at: str) -> None:
    """Primary sampling units and strata are a public list: read off the rows they would tell who answered where."""
    if raw.get("role") not in ("psu", "stratum") or "dealt" in raw:
        return
    what = "primary sampling unit" if raw["role"] == "psu" else "stratum"
    if raw.get("kind") not in ("categorical", "ordinal"):
        raise SchemaError(
            f"is 'categorical' for a {what}, with every one that was drawn in levels", field=f"{at}.kind"
        )
    levels = raw.get("levels")
    if "groups" not in raw and (not isinstance(levels, list) or not levels):
        raise SchemaError(
            f"lists every {what} that was drawn, whether or not anybody answered there; read off the rows, the list would "
            "tell where somebody did",
            field=f"{at}.levels",
        )


def _offered(kind: Any) -> set[str]:
    """The keys that go with a kind of column; all of them where the kind is none."""
    every = set(ColumnPart.model_fields)
    if kind in ("categorical", "ordinal"):
        return every - {"bounds", "grid"} - ({"positions"} if kind == "categorical" else set())
    if kind in ("integer", "decimal"):
        return every - {
            "levels",
            "positions",
            "text",
            "strata",
            "drawn",
            "dealt",
            "labels",
            "groups",
            "ignore",
        }
    return every - {"labels", "groups", "ignore", "levels", "bounds", "grid", "positions"}


def _levels(part: ColumnPart, common: dict[str, Any], at: str) -> Levels:
    _refuse(part, at, "bounds", "grid")
    if part.kind == "categorical":
        _refuse(part, at, "positions", "bands")
    positions = tuple(_exact(value, f"{at}.positions") for value in part.positions)
    bands = tuple(_exact(value, f"{at}.bands") for value in part.bands)
    if bands and not positions:
        positions = tuple((low + high) / 2 for low, high in pairwise(bands))
    if part.dealt:
        return _dealt(part, common, at)
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


def _dealt(part: ColumnPart, common: dict[str, Any], at: str) -> Levels:
    """Groups that respondents are dealt into: levels 1, 2 and so on, of a column that no file has."""
    _refuse(part, at, "levels", "positions", "bands", "labels", "groups", "source", "missing_codes", "text")
    if not 4 <= part.dealt <= MOST_LEVELS:
        raise SchemaError(f"is how many groups there are, from 4 to {MOST_LEVELS}", field=f"{at}.dealt")
    return Levels(**common, levels=tuple(str(each) for each in range(1, part.dealt + 1)), dealt=part.dealt)


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
    refused = (
        "levels",
        "positions",
        "bands",
        "text",
        "strata",
        "drawn",
        "dealt",
        "labels",
        "groups",
        "ignore",
    )
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
