"""The questions that a trial table is asked where coverage is measured, each with its kind. Levels are chosen by the whole table, which is public here."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from reticent.lab.trials.tables import CENSUS, Trial, trial
from reticent.schema import Levels, Number
from reticent.synth.domain import Domain
from reticent.synth.questions import TableQuestion, read_question

Written = tuple[str, dict[str, Any]]
SEVERAL = {
    "adult": ("hours_per_week", ["age", "education_num", "sex = 'Female'", "income = '>50K'"]),
    "national": ("AGEP", ["SEX = '2'", "OWN_RENT = '1'", "DREM = '1'", "POVPIP"]),
    CENSUS: ("age", ["sex = 'f'", "relationship = 'head'", "rent"]),
}
"""Of each table a regression on several predictors, all asked of everybody."""
MOST_CELLS = 10_000
SECOND = 0.02
"""Beside the largest cell of a pair, the one whose share is nearest to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuestions:
    """The questions of one table, with their kinds."""

    table: Trial = field(repr=False)
    domain: Domain
    questions: tuple[tuple[str, TableQuestion], ...] = field(repr=False)


@cache
def asked(name: str) -> TableQuestions:
    """All questions of the table of this name; made once in every worker."""
    table = trial(name)
    domain = table.domain()
    written = [*_of_columns(table, domain), *_of_pairs(table, domain), *_of_several(name)]
    return TableQuestions(
        table=table,
        domain=domain,
        questions=tuple((kind, read_question(raw, domain)) for kind, raw in written),
    )


def _filter(domain: Domain, place: int, cell: int) -> str | None:
    """A cell of a column in words: its level, or its bin's bounds."""
    axis = domain.axes[place]
    column = domain.schema.coded[axis.column]
    if cell >= axis.answers:
        return None
    if isinstance(column, Levels):
        return f"{axis.column} = '{column.levels[cell]}'" if "'" not in column.levels[cell] else None
    starts = axis.key.starts or tuple(range(column.low, column.high + 1))
    text = f"{axis.column} >= {column.text(starts[cell])}"
    return text if cell + 1 == len(starts) else f"{text} and {axis.column} < {column.text(starts[cell + 1])}"


def _of_columns(table: Trial, domain: Domain) -> Iterator[Written]:
    """Shares of the two largest levels or bins of every column, and means of numbers."""
    cells = table.cells()
    for place, axis in enumerate(domain.axes):
        counts = np.bincount(cells[:, place], minlength=axis.size)[: axis.answers]
        for cell in np.argsort(-counts)[:2]:
            if (text := _filter(domain, place, int(cell))) is not None:
                yield "share", {"proportion": text}
        if isinstance(domain.schema.coded[axis.column], Number):
            yield "mean", {"mean": axis.column}


def _of_pairs(table: Trial, domain: Domain) -> Iterator[Written]:
    """Two cells of every pair, and of a number with a category a difference and two slopes."""
    cells, axes = table.cells(), domain.axes
    for one, other in combinations(range(len(axes)), 2):
        if axes[one].size * axes[other].size > MOST_CELLS:
            continue
        counts = np.zeros((axes[one].size, axes[other].size))
        np.add.at(counts, (cells[:, one], cells[:, other]), 1 / len(cells))
        inner = counts[: axes[one].answers, : axes[other].answers]
        for flat in (int(inner.argmax()), int(np.abs(inner - SECOND).argmin())):
            at = np.unravel_index(flat, inner.shape)
            found = [_filter(domain, place, int(cell)) for place, cell in zip((one, other), at, strict=True)]
            if all(found):
                yield "two-way cell", {"proportion": " and ".join(str(text) for text in found)}
        yield from _mixed(domain, one, other, counts)


def _mixed(domain: Domain, one: int, other: int, counts: Any) -> Iterator[Written]:
    kinds = [domain.schema.coded[domain.axes[place].column] for place in (one, other)]
    if isinstance(kinds[0], Number) == isinstance(kinds[1], Number):
        return
    number, levels = (one, other) if isinstance(kinds[0], Number) else (other, one)
    sums = counts.sum(axis=0 if number == one else 1)[: domain.axes[levels].answers]
    if len(sums) < 2:
        return
    first, second = (_filter(domain, levels, int(cell)) for cell in np.argsort(-sums)[:2])
    name = domain.axes[number].column
    if first is None or second is None:
        return
    yield "difference", {"difference": name, "between": [first, second]}
    yield "slope", {"regression": first, "on": [name]}
    yield "logistic slope", {"logistic": first, "on": [name]}


def _of_several(name: str) -> Iterator[Written]:
    if name in SEVERAL:
        explained, on = SEVERAL[name]
        yield "several", {"regression": explained, "on": on}
