"""CONFIDENTIAL: what in the rows should make a curator stop, in sentences. For `check` alone; nothing here is ever published."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from reticent.engine.confidential import Finding, read
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.dialect import NO_NUMBER
from reticent.engine.sql import build as sql
from reticent.engine.sql.clean import Clean, code
from reticent.plan.models import ModelRepair
from reticent.plan.plan import Plan
from reticent.schema import Levels, Number, Schema
from reticent.schema.columns import FOLDS, folded, letters_of
from reticent.schema.schema import CsvDialect

MASS = 0.2
"""A single value with more than this share of the answers is a mass that a line does not go through."""
COMMA = re.compile(r"[+-]?[0-9]{1,3}([.' ]?[0-9]{3})*,[0-9]+|[+-]?[0-9]+,[0-9]+")
# Groups of thousands begin with no zero: 0,500 is a half.
TRIPLES = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+")
GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?")
POINTED = re.compile(r"[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})+,[0-9]+|[+-]?[1-9][0-9]{0,2}(\.[0-9]{3}){2,}")
PLAIN = re.compile(r"[+-]?([0-9]+\.[0-9]*|\.[0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One thing to look at before anything is charged: of which column, and what.

    `bare` says it without quoting a cell, where `words` quotes one: a page may be left open.
    """

    column: str
    words: str = field(repr=False)
    bare: str = field(default="", repr=False)

    @property
    def cellless(self) -> str:
        """The words, with no cell in them."""
        return self.bare or self.words


def doubts(engine: CuratorEngine, plan: Plan, findings: Sequence[Finding]) -> list[Doubt]:
    """Everything that looks wrong, loudest first."""
    found = [doubt for each in findings for doubt in _of_column(each, plan.schema)]
    return [*found, *_masses(engine, plan), *_duplicates(engine, plan.schema)]


def _of_column(found: Finding, schema: Schema) -> Iterator[Doubt]:
    column, name = schema.coded[found.column], found.column
    if not found.answered and found.missing:
        yield Doubt(column=name, words="is wholly missing: nobody's answer fits the codebook")
    if found.clamped and found.clamped == found.answered:
        yield Doubt(
            column=name, words="has every value outside its bounds: all are clamped to the nearest one"
        )
    elif found.answered and found.clamped > found.answered / 2:
        yield Doubt(column=name, words="has more than half of its values outside its bounds")
    if isinstance(column, Number):
        yield from _written(found, schema.csv)
    if isinstance(column, Levels):
        yield from _spelled(found, column)
        yield from _garbled(found, schema.csv)


def _written(found: Finding, dialect: CsvDialect) -> Iterator[Doubt]:
    """Numbers that would be some if the codebook told how they are written."""
    cells = [each.strip() for each in found.examples]
    if dialect.decimal == ",":
        yield from _pointed(found, cells, dialect)
    elif any(COMMA.fullmatch(each) for each in cells):
        key = 'thousands = ","' if all(GROUPED.fullmatch(each) for each in cells) else 'decimal = ","'
        key += ' and thousands = "."' if any(POINTED.fullmatch(each) for each in cells) else ""
        key += ' in place of thousands = ","' if dialect.thousands == "," else ""
        yield Doubt(
            column=found.column,
            words=f"holds numbers with a comma, which do not fit: say [survey.csv] {key} in the codebook",
        )
    elif cells and not dialect.thousands and all(TRIPLES.fullmatch(each) for each in cells):
        yield Doubt(
            column=found.column,
            words="holds numbers with three digits after a point; if that is the mark of thousands, others were read a thousand "
            'times too small: say [survey.csv] decimal = "," and thousands = "." in the codebook',
        )


def _pointed(found: Finding, cells: Sequence[str], dialect: CsvDialect) -> Iterator[Doubt]:
    """Points where the comma stands before the decimals: between thousands, or as in a file that mixes both."""
    triples = bool(cells) and all(TRIPLES.fullmatch(each) for each in cells)
    if not dialect.thousands and (triples or any(POINTED.fullmatch(each) for each in cells)):
        yield Doubt(
            column=found.column,
            words='holds numbers with points between their digits: say [survey.csv] thousands = "." in the codebook',
        )
    elif any(PLAIN.fullmatch(each) for each in cells):
        yield Doubt(
            column=found.column,
            words='holds numbers with a decimal point, where the codebook says decimal = ",": a file writes all of them one '
            "way, so mend the file or the codebook",
        )


def _garbled(found: Finding, dialect: CsvDialect) -> Iterator[Doubt]:
    """Letters of another code page, which came out as marks."""
    if any(NO_NUMBER in each for each in found.examples):
        yield Doubt(
            column=found.column,
            words=f'holds bytes that are no {dialect.encoding}: say [survey.csv] encoding in the codebook, often "cp1252"',
        )


def _spelled(found: Finding, column: Levels) -> Iterator[Doubt]:
    """Texts that would be levels if case and spacing did not count."""
    letters = letters_of(column.spellings)
    known = {folded(text, FOLDS, letters): text for text in column.spellings}
    alike = [
        (each, known[folded(each, FOLDS, letters)])
        for each in found.examples
        if folded(each, FOLDS, letters) in known
    ]
    if alike and set(column.ignore) != set(FOLDS):
        one, level = alike[0]
        yield Doubt(
            column=found.column,
            words=f"holds {one!r} where the codebook has {level!r}, and so counts it as missing: mend the levels, or write "
            'ignore = ["case", "spacing"]',
            bare=f"holds texts that differ from {level!r} of the codebook by case or spacing alone, and so counts them as "
            'missing: mend the levels, or write ignore = ["case", "spacing"]',
        )


def _masses(engine: CuratorEngine, plan: Plan) -> Iterator[Doubt]:
    """Columns of a regression imputation in which one value has a large part of the answers."""
    names = [
        name
        for each in plan.models
        if isinstance(each, ModelRepair)
        for name in (each.column, *each.predictors)
    ]
    for name in dict.fromkeys(names):
        column = plan.schema.coded[name]
        if isinstance(column, Number):
            share, value = _largest(engine, plan.schema, name)
            if share > MASS:
                line = "a regression imputation through it draws a line between the mass and the rest, and fills values that nobody has"
                yield Doubt(
                    column=name,
                    words=f"has {share:.0%} of its answers at {column.text(value)}: {line}",
                    bare=f"has {share:.0%} of its answers at one value: {line}",
                )


def _largest(engine: CuratorEngine, schema: Schema, name: str) -> tuple[float, int]:
    """The share of the most frequent answer, and its code."""

    def counted(_: Clean, rows: exp.Select) -> exp.Select:
        return sql.select([code(name), exp.Count(this=exp.Star())], rows, sql.not_null(code(name))).group_by(
            code(name)
        )

    lines = read(engine, schema, [name], counted)
    if not lines:
        return 0.0, 0
    most, whole = max(lines, key=lambda line: line[1]), sum(line[1] for line in lines)
    return most[1] / whole, int(most[0])


def _duplicates(engine: CuratorEngine, schema: Schema) -> Iterator[Doubt]:
    """Rows that are alike in every column: in a survey of many questions they are copies."""
    names = [name for name in schema.coded if name not in schema.computed]

    def counted(_: Clean, rows: exp.Select) -> exp.Select:
        keys = [code(name) for name in names]
        many = sql.alias(exp.Count(this=exp.Star()), "many_")
        alike = sql.select([many], rows).group_by(*keys)
        more = exp.GT(this=sql.column("many_"), expression=sql.number(1))
        total = exp.Coalesce(this=exp.Sum(this=sql.column("many_")), expressions=[sql.number(0)])
        return sql.select([total, exp.Count(this=exp.Star())], alike, more)

    ((rows, kinds),) = read(engine, schema, names, counted)
    if rows:
        yield Doubt(
            column="",
            words=f"{int(rows):,} rows are like another in every column of the codebook ({int(kinds):,} kinds): copies, if the "
            "questions are many; in few columns they are to be expected",
        )
