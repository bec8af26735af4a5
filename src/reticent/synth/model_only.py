"""Answers from synthetic rows: what an analyst would compute from them. They have no interval, and none would hold."""

from collections.abc import Iterator
from math import nan

import numpy as np
from numpy.typing import NDArray

from reticent.engine.sql.clean import named
from reticent.schema import Levels, Schema
from reticent.schema.bind import Bound, truth_array
from reticent.synth.base import Floats
from reticent.synth.domain import UNASKED, Rows
from reticent.synth.questions import TableQuestion, Variable
from reticent.synth.rules import status_of

Flags = NDArray[np.bool_]
PASSES = 50


def rows_answer(question: TableQuestion, rows: Rows, schema: Schema) -> Iterator[tuple[str, float]]:
    """What the rows say, in words and as a number; one for each coefficient of a regression. Not a number where none is."""
    if question.kind == "proportion":
        where = _holds(question.groups[0], rows)
        yield question.words, _mean(_holds(question.share, rows)[where].astype(np.float64))
    elif question.of is not None and question.kind in ("mean", "difference"):
        values, is_known = _values(question.of, rows, schema)
        means = [_mean(values[_holds(group, rows) & is_known]) for group in question.groups]
        yield question.words, means[0] - (means[1] if len(means) > 1 else 0.0)
    elif question.of is not None:
        yield from _coefficients(question, question.of, rows, schema)


def _coefficients(
    question: TableQuestion, of: Variable, rows: Rows, schema: Schema
) -> Iterator[tuple[str, float]]:
    (y, known), *found = (_values(each, rows, schema) for each in (of, *question.on))
    for _, is_known in found:
        known = known & is_known
    x = np.stack([np.ones(int(known.sum())), *(values[known] for values, _ in found)], axis=1)
    fitted = _logistic(x, y[known]) if question.kind == "logistic" else _least_squares(x, y[known])
    for variable, coefficient in zip(question.on, fitted[1:], strict=True):
        single = len(question.on) == 1
        yield (
            question.words if single else f"coefficient of {variable.words}, {question.words}",
            float(coefficient),
        )


def _least_squares(x: Floats, y: Floats) -> Floats:
    found, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    return np.asarray(found) if rank == x.shape[1] else np.full(x.shape[1], nan)


def _logistic(x: Floats, y: Floats) -> Floats:
    found = np.zeros(x.shape[1])
    for _ in range(PASSES):
        fitted = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
        bread = (x.T * (fitted * (1 - fitted))) @ x
        if len(y) == 0 or not np.isfinite(bread).all() or np.linalg.cond(bread) > 1e14:
            return np.full(x.shape[1], nan)
        step = np.linalg.solve(bread, x.T @ (y - fitted))
        found = found + step
        if np.abs(step).max() < 1e-10:
            return found
    return np.full(x.shape[1], nan)  # where a predictor tells the answer the likelihood has no largest value


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else nan


def _holds(bound: Bound, rows: Rows) -> Flags:
    """Where a filter holds; nowhere where it is not known."""
    if not named(bound):
        return np.ones(len(next(iter(rows.values()))), dtype=np.bool_)
    return truth_array(bound, rows, {name: status_of(codes) for name, codes in rows.items()})[0]


def _values(variable: Variable, rows: Rows, schema: Schema) -> tuple[Floats, Flags]:
    codes = rows[variable.column]
    is_known = codes > UNASKED
    if variable.bound is not None:
        return _holds(variable.bound, rows).astype(np.float64), is_known
    column, kept = schema.coded[variable.column], np.where(is_known, codes, 0)
    if isinstance(column, Levels):
        positions = np.array([float(position) for position in column.positions])
        return positions[kept], is_known
    return kept * float(column.grid), is_known
