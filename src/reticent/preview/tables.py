"""What can be said of tables that add up before a row is read: what is measured, and the noise of every margin."""

from collections.abc import Iterator, Sequence
from typing import Any

from reticent.answer.add_up import MarginTables
from reticent.exact import level_words, margin_text, show
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.preview.foreseen import Foreseen
from reticent.refine.residuals import Agreement
from reticent.release.product import Document, Grid, Line

HEADINGS = ("margin of noise, cell", "margin of noise, total")


def foresee_tables(asked: AddUpTables, plan: Plan, cv: float = 0.0) -> Foreseen:
    """What each table will cost, how it will be measured, and how noisy its cells and its grand total will be."""
    told = [_section(table, plan) for table in asked.tables]
    return Foreseen(key="tables", told=told, lines=tuple(_lines(told)))


def _section(table: MarginTables, plan: Plan) -> dict[str, Any]:
    schema, neighbours, level = plan.setting.schema, plan.neighbours, float(table.level)
    agreement = table.agreement(schema, neighbours)
    parts, step = table.parts(schema, neighbours), float(table.step(schema))
    margins = []
    for place, axes in enumerate(table.margins):
        law = agreement if table.add_up else Agreement(agreement.shape, (agreement.measured[place],))
        margins.append(
            {
                "columns": list(table.columns(axes)),
                "cells": law.cells(axes),
                "margin": round(law.half_width(axes, level) * step, 3),
                "total_margin_of_noise": round(law.half_width((), level) * step, 3),
            }
        )
    return {
        "name": table.name,
        "words": table.words(),
        "guarantee": plan.worded(plan.resting(table.claim(plan.change, plan.schema))),
        "rho" if table.in_rho else "epsilon": show(table.epsilon),
        "level": level,
        "measured": [part.what for part in parts],
        "margins": margins,
    }


def _lines(told: Sequence[Document]) -> Iterator[Line]:
    level = level_words(each["level"] for each in told)
    headings = ("table", "margin", "cells", *(f"{level}{words}" for words in HEADINGS))
    yield Grid(headings=headings, rows=[row for each in told for row in _rows(each, not level)])
    for each in told:
        yield f"{each['name']}: {each['guarantee']}"
        yield f"  {each['words']}"
        yield f"  measured: {'; '.join(each['measured'])}"


def _rows(each: Document, has_level: bool) -> Iterator[tuple[str, ...]]:
    """Every margin; with its level, where levels differ."""
    own = f" ({level_words([each['level']]).strip()})" if has_level else ""
    for margin in each["margins"]:
        over = " by ".join(margin["columns"])
        cell, total = (f"± {margin_text(margin[key])}{own}" for key in ("margin", "total_margin_of_noise"))
        yield each["name"], over, f"{margin['cells']:,}", cell, total
