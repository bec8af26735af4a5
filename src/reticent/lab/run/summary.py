"""What many runs say: bias, spread and coverage of every method, with how far chance alone can move each."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.lab.papers.items import Printed
from reticent.lab.run.experiment import Experiment, Row

Floats = NDArray[np.float64]
KEYS = ("method", "query", "epsilon")
NUMBERS = ("stands_in", "printed", "printed_digits", "as_printed", "value", "vector")
SOURCES = ("sampling", "nonresponse", "privacy")


def rows_of(experiment: Experiment, outcomes: pa.Table) -> list[Row]:
    """Tidy rows: one for each method, query and epsilon, one for each exact item, and the experiment's own.

    Beside a number that a document prints stand its digits as they are there, .60 and not 0.6, 4/143 and not 0.028, and where
    they stand: a figure is named where the row is about that figure.
    """
    rows = experiment.told(outcomes) if experiment.told is not None else _rows(experiment, outcomes)
    return [_with_digits(row) for row in rows]


def _with_digits(row: Row) -> Row:
    value = row.get("printed")
    return {**row, **value.row()} if isinstance(value, Printed) else row


def _rows(experiment: Experiment, outcomes: pa.Table) -> list[Row]:
    simulated = outcomes.filter(outcomes["method"].is_valid())
    exact = outcomes.filter(outcomes["item"].is_valid())
    rows = [
        {**_summary(key, lines), **experiment.carried.get(key["query"], {})}
        for key, lines in groups(simulated)
    ]
    rows += [
        {key: line[key] for key in (*KEYS, "item", *NUMBERS) if line[key] is not None}
        for line in exact.to_pylist()
    ]
    return rows + (experiment.more(outcomes) if experiment.more else [])


def groups(outcomes: pa.Table) -> Iterable[tuple[Row, dict[str, Floats]]]:
    """The lines of each method, query and epsilon, in order of first appearance; empty cells are nan."""
    columns = ("run", "truth", "estimate", "low", "high", "seconds")
    placed = outcomes.append_column("place", pa.array(np.arange(outcomes.num_rows)))
    grouped = placed.group_by(list(KEYS), use_threads=False).aggregate(
        [("place", "min"), *((name, "list") for name in columns)]
    )
    for group in grouped.sort_by("place_min").to_pylist():
        lines = {name: np.array(group[f"{name}_list"], dtype=float) for name in columns}
        yield {key: group[key] for key in KEYS}, lines


def _summary(key: Row, lines: dict[str, Floats]) -> Row:
    error = lines["estimate"] - lines["truth"]
    runs, rmse = len(error), float(np.sqrt(np.mean(error**2)))
    sd = _sd(error)
    return {
        **key,
        "runs": runs,
        "truth": float(np.mean(lines["truth"])),
        "bias": float(np.mean(error)),
        "bias_se": None if sd is None else sd / np.sqrt(runs),
        "sd": sd,
        "rmse": rmse,
        "rmse_se": _divided(_sd(error**2), 2 * rmse * np.sqrt(runs)),
        "medae": float(np.median(np.abs(error))),
        **_coverage(lines),
        "seconds": _mean(lines["seconds"]),
    }


def _coverage(lines: dict[str, Floats]) -> Row:
    """The share of runs whose interval holds the truth, over the runs that have an interval."""
    held = (lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])
    held = held[~np.isnan(lines["low"]) & ~np.isnan(lines["high"])]
    if not len(held):
        return {"coverage": None, "coverage_se": None}
    share = float(np.mean(held))
    return {"coverage": share, "coverage_se": float(np.sqrt(share * (1 - share) / len(held)))}


def cross_terms(outcomes: pa.Table, *, whole: str) -> list[Row]:
    """What the split leaves over: mean squares of the parts plus these items are the mean square of the `whole`.

    The parts are `sampling`, `nonresponse` and `privacy`, and their errors add up run by run; twice the mean
    product of two of them is the cross term of their squares. `value_se` is its Monte Carlo standard error.
    """
    errors = {(k["method"], k["query"], k["epsilon"]): _error(lines) for k, lines in groups(outcomes)}
    rows: list[Row] = []
    for method, query, epsilon in errors:
        if method == whole:
            parts = {s: errors.get((s, query, epsilon), errors.get((s, query, None))) for s in SOURCES}
            known = {s: e for s, e in parts.items() if e is not None}
            rows += [_cross(a, b, query, epsilon, known) for a, b in combinations(known, 2)]
    return rows


def _cross(a: str, b: str, query: str, epsilon: float | None, errors: dict[str, Floats]) -> Row:
    product = 2 * errors[a] * errors[b]
    return {
        "item": f"cross term of {a} and {b}",
        "query": query,
        "epsilon": epsilon,
        "value": float(np.mean(product)),
        "value_se": _divided(_sd(product), np.sqrt(len(product))),
    }


def _error(lines: dict[str, Floats]) -> Floats:
    """Errors in the order of the runs, so that those of two methods stand side by side."""
    return np.asarray((lines["estimate"] - lines["truth"])[np.argsort(lines["run"], kind="stable")])


def _sd(values: Floats) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else None


def _divided(top: float | None, bottom: Any) -> float | None:
    return float(top / bottom) if top is not None and bottom else None


def only(outcomes: pa.Table, **wanted: object) -> pa.Table:
    """The lines whose columns hold these values."""
    for name, value in wanted.items():
        held = pc.is_null(outcomes[name]) if value is None else pc.equal(outcomes[name], pa.scalar(value))
        outcomes = outcomes.filter(held)
    return outcomes
