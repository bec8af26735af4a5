"""What can be said of synthetic tables before a row is read: their guarantee, their cost, and what will be written."""

from collections.abc import Iterator, Sequence
from math import sqrt
from typing import Any

from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.plan.synth import PlannedAnswer, Synth, SyntheticTables, imputed_columns
from reticent.preview.foreseen import Foreseen
from reticent.query.base import listed
from reticent.release.product import Document, Grid, Line
from reticent.synth.answer import FILLED, USED
from reticent.synth.base import Foretold, MissingMethod
from reticent.synth.marginals.study import is_complex
from reticent.synth.registry import INFERRING

Z = 1.96
HEADINGS = ("synthetic table", "method", "missing values", "epsilon", "delta", "rows", "columns")


def foresee_synth(asked: SyntheticTables, plan: Plan, cv: float = 0.0) -> Foreseen:
    """What each synthetic table will cost and write."""
    told: list[dict[str, Any]] = []
    for synth in asked.tables:
        first = 1 + sum(len(before["files"]) for before in told)
        told.append(_section(synth, plan, first))
    return Foreseen(key="synth", told=told, lines=tuple(_lines(told)))


def _section(synth: Synth, plan: Plan, first: int) -> dict[str, Any]:
    return {
        "name": synth.name,
        "words": synth.words(),
        "method": synth.method.name,
        "missing": synth.holes.value,
        "guarantee": plan.worded(plan.resting(synth.claim)),
        **({"rho": show(synth.spend.rho)} if synth.spend.rho else {"epsilon": show(synth.spend.epsilon)}),
        "delta": show(synth.spend.delta) if synth.spend.delta else None,
        "rows": synth.rows,
        "columns": list(synth.domain.columns),
        "cells": dict(zip(synth.domain.columns, synth.domain.shape, strict=True)),
        "point_masses": {name: list(values) for name, values in synth.point_masses.items()},
        "never": list(synth.never),
        "determines": dict(synth.determines),
        **({"denial": synth.denial_words()} if synth.rules.denials else {}),
        "files": [f"{name}.csv" for name in synth.files(plan.release_id, first)],
        **_dearer(synth, plan),
        **_effort(synth),
        **_asked(synth, plan),
    }


def _dearer(synth: Synth, plan: Plan) -> dict[str, str]:
    """What donors cost a table of whole rows, and the way around: a synthesizer fills after the noise."""
    names = [name for name in synth.domain.columns if name in plan.repair.filled()]
    if synth.spend.stability == 1 or not names:
        return {}
    return {
        "dearer": f"donors fill {listed(names)}, so one respondent counts as {synth.spend.stability}; without them as one, and "
        "the synthesizer can fill missing values after the noise, which costs nothing"
    }


def _asked(synth: Synth, plan: Plan) -> dict[str, Any]:
    """The questions, and where every pair is measured what a share of one half will be known to, at the rows expected."""
    if not synth.answers:
        return {}
    said = [f"{each.name}: {each.question.words}{_lacking(each, synth, plan)}" for each in synth.answers]
    deviations = getattr(synth.method, "deviations", None)
    if deviations is None or not plan.rows:
        return {"answers": said}
    one, pair = (deviation / plan.rows for deviation in deviations(synth.domain, synth.spend))
    sampling = 0.25 / plan.rows
    halves = [Z * sqrt(each**2 + sampling) for each in (one, pair)]
    words = f"a share of one half to within {halves[0]:.2g}, one of two columns to within {halves[1]:.2g}"
    return {"answers": said, "expected": f"{words}, if all {plan.rows:,} answer and are drawn one by one"}


def _lacking(asked: PlannedAnswer, synth: Synth, plan: Plan) -> str:
    """Why an answer will have no interval, as far as the plan and the codebook tell; nothing where it may have one."""
    question, axes = asked.question, {axis.column: axis for axis in synth.domain.axes}
    if synth.method.name not in INFERRING or synth.holes not in USED:
        return "; model only, without an interval: no noisy tables of answers are kept"
    if question.is_of_silence and synth.holes is not MissingMethod.VALUES:
        return "; without a number: it asks who answered, and synthetic rows are of complete respondents"
    if len(question.columns) > 2 and not (question.kind == "regression" and len(question.on) > 1):
        return "; model only, without an interval: it speaks of more than two columns"
    averaged = question.of if question.kind in ("mean", "difference") else None
    if averaged is not None and axes[averaged.column].key.starts and not synth.inference:
        return "; at the midpoints of bins, without an interval: the table has no inference = true"
    if filled := sorted(imputed_columns(plan) & {*question.columns}):
        return f"; without an interval: {FILLED.format(' and '.join(filled))}"
    is_known = asked.design_effect is not None or plan.design.pooled or plan.design.declared is not None
    if is_complex(synth.domain.schema) and not is_known:
        return "; without an interval: the codebook declares a complex design, and no design effect is known"
    return ""


def _effort(synth: Synth) -> dict[str, str]:
    """What a fit that takes long will take, roughly."""
    if not isinstance(synth.method, Foretold):
        return {}
    found = synth.method.effort(synth.domain, synth.holes)
    if found is None:
        return {}
    rows = "the rows" if found.held == 1 else f"{found.held} copies of the rows"
    words = f"{found.megabytes:,.0f} MB beside {rows}; about {found.seconds:,.0f} s of processor time"
    return {"effort": f"{words}, and {found.seconds_each:,.1f} s more for every 10,000 rows"}


def _lines(told: Sequence[Document]) -> Iterator[Line]:
    yield Grid(headings=HEADINGS, rows=[_row(each) for each in told])
    for each in told:
        yield f"{each['name']}: {each['guarantee']}"
        yield f"  {each['words']}"
        if "dearer" in each:
            yield f"  {each['dearer']}"
        yield f"  will be written: {', '.join(each['files'])}, and the same as Parquet"
        yield from (f"  will be answered: {said}" for said in each.get("answers", ()))
        if "expected" in each:
            yield f"  intervals to expect, 95 %: {each['expected']}"
        if "effort" in each:
            yield f"  will take: {each['effort']}"
        for name, values in each["point_masses"].items():
            yield f"  point masses of {name}, each a bin of its own: {', '.join(values)}"
        yield from (f"  no row with: {rule}" for rule in each["never"])
        yield from (f"  {words}" for words in each.get("denial", ()))
        yield from (f"  {known} follows from {by}" for by, known in each["determines"].items())


def _row(each: Document) -> tuple[str, ...]:
    counts = (f"{each['rows']:,}", str(len(each["columns"])))
    cost = f"rho {each['rho']}" if "rho" in each else each["epsilon"]
    return (each["name"], each["method"], each["missing"], cost, each["delta"] or "", *counts)
