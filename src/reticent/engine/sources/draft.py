"""Draft a codebook from a header: names, types, value labels, missing codes. Levels and bounds never come from rows.

Of an SPSS, Stata or SAS file the header says more: which values mean "no answer", how a variable is measured and printed, and
what its codes stand for. Where that still leaves a guess, the draft says TODO.
"""

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, floor
from pathlib import Path
from typing import Any

from reticent.engine.duckdb.engine import types_of
from reticent.engine.sources.arrow import read_header
from reticent.engine.sources.dialect import looks_separated_by
from reticent.engine.sources.open import STATISTICAL, TEXT_FILES, open_path
from reticent.errors import SourceError
from reticent.files import is_printable
from reticent.schema.predicate import is_column_name

HEAD = """# Drafted from the header; no row was read. Every TODO needs an answer from the questionnaire or the design,
# never from the rows: what you write here is public. `reticent codebook check` counts the ones that are left.
format = 2

[survey]
name = "TODO"
unfinished = true      # remove when the codebook is complete
unit = ""              # TODO: "row" (one record, one respondent), or the identifier column below
# at_most = 1          # with an identifier: the most records one respondent may own
# sample_size = 1000   # only where the number of respondents is public
"""
DIALECT = """
[survey.csv]
separator = {mark}
decimal = "."          # TODO: "," where numbers are written 3,5; and thousands = "." where 1.234,5
# encoding = "cp1252"  # where the file is not UTF-8
"""
IDENTIFIER = re.compile(r"(^|_)(id|serialno|seqn|caseid|pid)$", re.IGNORECASE)
DATE = re.compile(
    r"%?-?[0-9]*(t[cCdwmqhy].*|[AESJ]?DATE[0-9.]*|DATETIME.*|TIME[0-9.]*|DTIME.*|YMDHMS.*|MOYR.*|QYR.*|WKYR.*|DDMMYY.*|MMDDYY.*|"
    r"YYMMDD.*|MONYY.*|E8601D.*|B8601D.*|TOD.*|HHMM.*)"
)
DECIMALS = re.compile(r"%?-?[A-Za-z]*[0-9]+\.([0-9]+)[fF]?")
SILENT = re.compile(
    r"refus|don'?t know|do not know|\bdk\b|no answer|not answered|missing|not stated|unknown|inap|not applicable|\bn/?a\b",
    re.IGNORECASE,
)
FEW_LABELS = 2
MOST_LABELLED = 100  # of a range, before its labels are counted one by one
FARTHEST = 1e200  # from zero, of a value that somebody declared
DEFAULT_FORMAT = "F8.2"  # what SPSS writes where nobody said anything


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVariable:
    """What a header says of one variable; all of it is public."""

    kind: str
    label: str = ""
    levels: Mapping[Any, str] = field(default_factory=dict)
    missing: tuple[tuple[Any, Any], ...] = ()
    measure: str = "unknown"
    written: str = ""

    def is_silent(self, code: Any) -> bool:
        """Whether a code is declared to mean no answer."""
        return any(_within(code, low, high) for low, high in self.missing)

    @property
    def answers(self) -> dict[Any, str]:
        """The labelled codes that are answers."""
        return {
            code: label
            for code, label in self.levels.items()
            if not self.is_silent(code) and code not in self.extended
        }

    @property
    def extended(self) -> dict[Any, str]:
        """The missing values that Stata and SAS keep beside all numbers, .a to .z: they are read as missing, and have no code."""
        return {
            code: label
            for code, label in self.levels.items()
            if self.kind != "text" and isinstance(code, str)
        }

    @property
    def is_number(self) -> bool:
        """A scale whose few labels mark special values, and no list of answers."""
        if self.kind == "text" or not self.answers:
            return self.kind != "text"
        if self.measure in ("nominal", "ordinal"):
            return False
        if len(self.answers) > FEW_LABELS:
            return False
        if self.measure == "scale":
            return True
        starts_late = min(self.answers) > 1  # a list of answers starts at 0 or 1
        return len(self.answers) == 1 or starts_late or any(_is_special(code) for code in self.answers)


def _within(code: Any, low: Any, high: Any) -> bool:
    try:
        return bool(low <= code <= high)
    except TypeError:
        return str(code) == str(low)


def _is_special(code: Any) -> bool:
    """A code that a yes or a no would not have."""
    return isinstance(code, int | float) and not 0 <= code <= 9


def draft_codebook(text: str, elsewhere: Mapping[str, str] | None = None) -> str:
    """TOML text for the file at the path `text`, or for a header `elsewhere`, marked unfinished."""
    if elsewhere is not None:
        return HEAD + _columns({name: FileVariable(kind=kind) for name, kind in elsewhere.items()})
    variables, mark = header_of(text), ""
    if text.lower().endswith(TEXT_FILES):
        mark = looks_separated_by(variables)
        variables = {name: FileVariable(kind="untyped") for name in _separated(list(variables), mark)}
    return HEAD + (DIALECT.format(mark=json.dumps(mark)) if mark else "") + _columns(variables)


def _columns(variables: Mapping[str, FileVariable]) -> str:
    names = _names(list(variables))
    return "".join(_column(names[header], header, each) for header, each in variables.items())


def _separated(header: list[str], mark: str) -> list[str]:
    """The names of a header; those inside its one name where that holds another mark than the comma."""
    return next(csv.reader(header, delimiter=mark)) if mark else header


def header_of(text: str) -> dict[str, FileVariable]:
    """What the header of the file at the path `text` says of each variable. No row is read."""
    ending = "." + text.rsplit(".", 1)[-1].lower()
    if ending not in STATISTICAL:
        return {name: FileVariable(kind=kind) for name, kind in types_of(open_path(text)).items()}
    if not Path(text).is_file():
        raise SourceError(f"{Path(text).name!r} does not exist or is not a file", field="source")
    meta = read_header(Path(text))
    words = {"double": "float", "float": "float", "string": "text"}
    labels = dict(zip(meta.column_names, meta.column_labels, strict=True))
    return {
        name: FileVariable(
            kind=words.get(str(kind), "integer"),
            label=labels.get(name) or "",
            levels=meta.variable_value_labels.get(name, {}),
            missing=_missing(meta, name),
            measure=(getattr(meta, "variable_measure", None) or {}).get(name, "unknown"),
            written=str((getattr(meta, "original_variable_types", None) or {}).get(name) or ""),
        )
        for name, kind in meta.readstat_variable_types.items()
    }


def _missing(meta: Any, name: str) -> tuple[tuple[Any, Any], ...]:
    """The values that the header declares to be no answer: single ones, and ranges."""
    ranges = (getattr(meta, "missing_ranges", None) or {}).get(name, [])
    return tuple((each["lo"], each["hi"]) for each in ranges)


def _names(headers: list[str]) -> dict[str, str]:
    """A plain name for every header, none twice."""
    names: dict[str, str] = {}
    for header in headers:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", header).strip("_")[:55] or "column"
        plain = plain if is_column_name(plain) else f"q_{plain}"
        unique, number = plain, 2
        while unique in names.values():
            unique, number = f"{plain}_{number}", number + 1
        names[header] = unique
    return names


def _column(name: str, header: str, found: FileVariable) -> str:
    if DATE.fullmatch(found.written) or found.kind == "date":
        return _dated(name, header, found)
    lines = [f"\n[columns.{name}]"]
    if header != name:
        lines.append(f"source = {_quoted(header)}")
    if found.label:
        lines.append(f"label = {_quoted(found.label)}")
    lines += [*_domain(name, found), *_silences(found)]
    lines.append('# universe = "age >= 15"    # who was asked, if not everybody')
    return "\n".join(lines) + "\n"


def _dated(name: str, header: str, found: FileVariable) -> str:
    """A date has no kind of its own: the section is written out as a comment, with the way out."""
    return (
        f"\n# TODO: {_plain(header)} is a date{f' ({_plain(found.label)})' if found.label else ''}, and dates are not asked about. Leave "
        f"it out, or make a\n# column of numbers from it in the file (the year, the age in days) and declare that:\n# [columns.{name}_year]\n"
        '# kind = "integer"\n# bounds = [1900, 2030]\n'
    )


def _domain(name: str, found: FileVariable) -> list[str]:
    if found.levels and not found.is_number and found.answers:
        return _levels(found)
    if IDENTIFIER.search(name) and not found.levels:
        return ['kind = "identifier"    # TODO: or remove this column']
    if found.kind == "boolean":
        return ['kind = "categorical"', 'levels = ["false", "true"]']
    if found.kind == "untyped":
        return [
            'kind = "categorical"    # TODO: or ordinal; or "integer" or "decimal", with bounds = [low, high]',
            "levels = []    # TODO: every possible answer",
        ]
    if found.kind == "text":
        return ['kind = "categorical"', "levels = []    # TODO: every possible answer"]
    return _number(found)


def _levels(found: FileVariable) -> list[str]:
    kind = "ordinal" if found.measure == "ordinal" else "categorical"
    codes = ", ".join(_quoted(_code(code)) for code in found.answers)
    labels = ", ".join(
        f"{_quoted(_code(code))} = {_quoted(label)}" for code, label in found.answers.items() if label
    )
    guess = (
        "" if found.measure in ("nominal", "ordinal") else "    # TODO: or ordinal, if these have an order"
    )
    lines = [f'kind = "{kind}"{guess}', f"levels = [{codes}]", f"labels = {{ {labels} }}"]
    if _leaves_room(list(found.answers)):
        lines.append(
            "# TODO: the file labels these alone; list every other possible answer, or write a number with bounds"
        )
    doubtful = [f"{_code(code)} {label}" for code, label in found.answers.items() if SILENT.search(label)]
    if doubtful:
        lines.append(f"# TODO: missing_codes rather than levels? {_plain('; '.join(doubtful))}")
    return lines


def _leaves_room(codes: list[Any]) -> bool:
    """Whether labelled codes look like a part of all: a single one, or whole numbers with others between them."""
    numbers = [code for code in codes if isinstance(code, int | float)]
    has_holes = len(numbers) == len(codes) and max(codes) - min(codes) >= len(codes)
    return len(codes) == 1 or has_holes


def _number(found: FileVariable) -> list[str]:
    """A number, with as many decimals as it is printed with."""
    printed = DECIMALS.fullmatch(found.written)
    places = int(printed[1]) if printed else None
    is_whole = found.kind == "integer" or places == 0
    bounds = "bounds = []    # TODO: lowest and highest possible answer"
    special = [f"{_code(code)} {label}" for code, label in found.answers.items()]
    told = (
        [f"# TODO: labelled values of a number; missing_codes? {_plain('; '.join(special))}"]
        if special
        else []
    )
    if found.measure in ("nominal", "ordinal"):
        told.append(f"# TODO: measured as {found.measure}; kind and levels rather than a number?")
    if is_whole:
        return ['kind = "integer"', bounds, *told]
    return ['kind = "decimal"', bounds, _grid(places, found.written), *told]


def _grid(places: int | None, written: str) -> str:
    """The step of a decimal number; a guess where the file says nothing, or what it says without being asked."""
    doubt = 'TODO: or kind = "integer" without a grid; or levels, if these are codes'
    if not places:
        return f'grid = "0.01"    # {doubt}'
    step = f"{10 ** -min(places, 6):.{min(places, 6)}f}"
    said = f"as it is printed; {doubt}" if written == DEFAULT_FORMAT else "as it is printed"
    return f'grid = "{step}"    # {said}'


def _silences(found: FileVariable) -> list[str]:
    """The codes that mean no answer, with what they are called; of a range those that have a label."""
    if found.extended:
        called = "; ".join(f".{code} {label}" for code, label in found.extended.items())
        return [f"# read as missing, as the file says: {_plain(called)}"]
    if not found.missing:
        return ['# missing_codes = ["-9"]    # codes that mean "no answer"']
    single = [low for low, high in found.missing if low == high]
    labelled = [code for code in found.levels if found.is_silent(code) and code not in single]
    codes = ", ".join(_quoted(_code(code)) for code in (*single, *labelled))
    called = "; ".join(f"{_code(c)} {found.levels[c]}" for c in (*single, *labelled) if c in found.levels)
    lines = [f"missing_codes = [{codes}]{f'    # {_plain(called)}' if called else ''}"]
    wide = [_range(low, high) for low, high in found.missing if not _is_listed(low, high, found.levels)]
    if wide:
        lines.append(
            f"# TODO: the file declares all of {_plain(', '.join(wide))} missing; list the codes that occur in the questionnaire"
        )
    return lines


def _is_listed(low: Any, high: Any, labels: Mapping[Any, str]) -> bool:
    """Whether a range is a single value, or whole numbers that all have a label: then the codes above are all of it."""
    if low == high:
        return True
    is_short = all(isinstance(end, int | float) for end in (low, high)) and high - low < MOST_LABELLED
    return is_short and all(code in labels for code in range(ceil(low), floor(high) + 1))


def _range(low: Any, high: Any) -> str:
    """A range of missing values in words; SPSS writes its `LO` and `HI` as numbers that nobody would."""
    if isinstance(low, int | float) and low < -FARTHEST:
        return f"the numbers up to {_code(high)}"
    if isinstance(high, int | float) and high > FARTHEST:
        return f"the numbers from {_code(low)} on"
    return f"{_code(low)} to {_code(high)}"


def _code(code: Any) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _quoted(text: str) -> str:
    return json.dumps(_plain(text), ensure_ascii=False)


def _plain(text: str) -> str:
    return "".join(c if is_printable(c) else " " for c in str(text))[:300]
