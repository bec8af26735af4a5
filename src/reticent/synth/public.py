"""Public margins of a survey's population, such as a census prints: what synthetic rows agree with besides noisy tables.

A margin is a table of one or two columns with the share of every cell. Nothing of it comes from a row of the survey, so it
costs nothing, and a model that is fitted to it is as private as one that is not. Direct answers do not see it: they
are about the survey and its sampling error.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from pydantic import Field

from reticent.errors import PlanError
from reticent.exact import read_decimal
from reticent.files import Section, fill
from reticent.schema import Levels, Number
from reticent.schema.public_files import PublicFiles
from reticent.synth.base import Floats, PublicMargin
from reticent.synth.domain import Axis, Domain, bins

COUNT = "count"
"""The header of the numbers."""
MOST_LINES = 100_000
MOST_MARGINS = 50
_RANGE = re.compile(r"(-?[0-9]+(?:[.][0-9]+)?)[.][.](-?[0-9]+(?:[.][0-9]+)?)")


class PublicMarginSection(Section):
    """One public margin, written out: its `columns`, and `lines` of a cell for each and a count at the end."""

    columns: list[str] = Field(min_length=1, max_length=2)
    lines: list[list[str]] = Field(min_length=1, max_length=MOST_LINES)


def with_margins(sections: Sequence[Any], files: PublicFiles) -> list[Any]:
    """`[[synth]]` sections with the margins that stand in public files written out."""
    return [_with_margins(raw, files, f"synth[{place}].public") for place, raw in enumerate(sections)]


def _with_margins(raw: Any, files: PublicFiles, at: str) -> Any:
    named = raw.get("public") if isinstance(raw, Mapping) else None
    names = [named] if isinstance(named, str) else named
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return raw
    return {**raw, "public": [_margin_in(name, files, at) for name in names]}


def _margin_in(name: str, files: PublicFiles, at: str) -> dict[str, Any]:
    lines = list(files.lines(name, field=at))
    columns = [column for column in (lines[0] if lines else ()) if column != COUNT]
    if not lines or COUNT not in lines[0]:
        raise PlanError(f"{name} needs a line of headers, {COUNT!r} among them, and lines below it", field=at)
    files.publish(field=at, what="shares of a population, which synthetic rows agree with", texts=columns)
    return {"columns": columns, "lines": [[str(line[each]) for each in (*columns, COUNT)] for line in lines]}


def read_margins(raw: object, domain: Domain) -> tuple[PublicMargin, ...]:
    """The margins that a section writes out; refused where they do not fit the codebook. Public, all of it."""
    if isinstance(raw, str) or (isinstance(raw, list) and any(isinstance(each, str) for each in raw)):
        raise _wrong('names a file, which a plan file reads; here write {"columns": [...], "lines": [...]}')
    if not isinstance(raw, Sequence) or len(raw) > MOST_MARGINS:
        raise _wrong(f"lists at most {MOST_MARGINS} margins")
    found = tuple(_margin(_section(each), domain) for each in raw)
    if len({each.places for each in found}) < len(found):
        raise _wrong("has two margins of the same columns; leave one out")
    return found


def _section(raw: object) -> PublicMarginSection:
    try:
        return fill(
            PublicMarginSection, raw if isinstance(raw, Mapping) else {}, error=PlanError, at="public"
        )
    except PlanError:
        raise _wrong(
            "a margin has the names of one column or two under 'columns', and texts in 'lines'"
        ) from None


def _margin(section: PublicMarginSection, domain: Domain) -> PublicMargin:
    for name in section.columns:
        if name not in domain.columns:
            raise _wrong(
                f"has a header that is no column of this synthetic table; give the codebook's names and {COUNT!r}"
            )
    if len(set(section.columns)) < len(section.columns):
        raise _wrong(f"names {section.columns[0]} twice")
    at = [domain.columns.index(name) for name in section.columns]
    shares = np.zeros([domain.axes[place].size for place in at])
    for number, line in enumerate(section.lines, start=2):
        if len(line) != len(at) + 1:
            raise _wrong(f"line {number} has {len(line)} entries for {len(at)} columns and a count")
        count = read_decimal(line[-1])
        if count is None or count < 0:
            raise _wrong(f"line {number} needs a count from 0 up")
        spread = [
            _cells(text, domain.axes[place], domain, number)
            for place, text in zip(at, line[:-1], strict=True)
        ]
        shares += float(count) * (spread[0] if len(spread) == 1 else np.multiply.outer(*spread))
    _check(shares, [domain.axes[place] for place in at])
    order = np.argsort(at)
    return PublicMargin(places=tuple(sorted(at)), shares=np.transpose(shares, order) / shares.sum())


def _check(shares: Floats, axes: Sequence[Axis]) -> None:
    if not shares.sum() > 0:
        raise _wrong("counts nobody")
    for axis, place in zip(axes, range(shares.ndim), strict=True):
        if axis.unasked is not None and not shares.take(axis.unasked, axis=place).any():
            raise _wrong(
                f"{axis.column} is not asked of everybody; count those who are not in a line with an empty cell"
            )


def _cells(text: str, axis: Axis, domain: Domain, number: int) -> Floats:
    """Over the cells of a column how a line's count is spread: one cell, or those of a range `15..24`, by their width."""
    made, column = np.zeros(axis.size), domain.schema.coded[axis.column]
    if not text:
        if axis.unasked is None:
            raise _wrong(f"line {number} has an empty cell, and {axis.column} is asked of everybody")
        made[axis.unasked] = 1.0
        return made
    if isinstance(column, Levels):
        if text not in column.levels:
            raise _wrong(f"line {number} has no level of {axis.column}")
        first = last = column.levels.index(text)
    else:
        first, last = _ends(text, column, number)
    starts, widths = bins(axis, domain.schema)
    inside = np.minimum(starts + widths - 1, last) - np.maximum(starts, first) + 1
    made[: axis.answers] = np.maximum(inside, 0)
    return np.asarray(made / made.sum())


def _ends(text: str, column: Number, number: int) -> tuple[int, int]:
    span = _RANGE.fullmatch(text)
    values = [read_decimal(end) for end in (span.groups() if span else (text, text))]
    codes = [_code(value, column) for value in values]
    if codes[0] is None or codes[1] is None or codes[0] > codes[1]:
        raise _wrong(
            f"line {number} has no value of {column.name}, and no range such as 15..24, within its bounds"
        )
    return codes[0], codes[1]


def _code(value: Fraction | None, column: Number) -> int | None:
    steps = None if value is None else value / column.grid
    is_code = steps is not None and steps.denominator == 1 and column.low <= steps <= column.high
    return int(steps) if is_code and steps is not None else None


def _wrong(said: str) -> PlanError:
    return PlanError(said, field="public")
