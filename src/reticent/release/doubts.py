"""CONFIDENTIAL: what in the rows should make a curator stop, in sentences. For `check` alone; nothing here is ever published."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from reticent.engine.confidential import Finding, read
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sql import build as sql
from reticent.engine.sql.clean import Clean, code
from reticent.plan.models import ModelRepair
from reticent.plan.plan import Plan
from reticent.schema import Levels, Number, Schema
from reticent.schema.columns import FOLDS, folded, letters_of

MASS = 0.2
"""A single value with more than this share of the answers is a mass that a line does not go through."""
COMMA = re.compile(r"[+-]?[0-9]{1,3}([.' ]?[0-9]{3})*,[0-9]+|[+-]?[0-9]+,[0-9]+")
GROUPED = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """One thing to look at before anything is charged: of which column, and what."""

    column: str
    words: str = field(repr=False)


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
    if isinstance(column, Number) and any(COMMA.fullmatch(each.strip()) for each in found.examples):
        is_grouped = all(GROUPED.fullmatch(each.strip()) for each in found.examples)
        key = 'thousands = ","' if is_grouped else 'decimal = ","'
        yield Doubt(
            column=name,
            words=f"holds numbers with a comma, which do not fit: say [survey.csv] {key} in the codebook",
        )
    if isinstance(column, Levels):
        yield from _spelled(found, column)


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
                yield Doubt(
                    column=name,
                    words=f"has {share:.0%} of its answers at {column.text(value)}: a regression imputation through it "
                    "draws a line between the mass and the rest, and fills values that nobody has",
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
    names = list(schema.coded)

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
