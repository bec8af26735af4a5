"""Tables that add up: do their intervals cover, how near are they to the counts, and what would other ways give?

Every run counts a sparse table of made-up people, measures it with noise, and makes it add up. Coverage is of the interval
for privacy noise against the exact counts, over runs and over cells and totals of all margins. `error` is the root mean
squared error of what is published in cells, over that of noisy tables each at an even share of the budget: below 1 is a gain.
The cases differ in which tables are asked for, and in what is published.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa

from reticent.answer.add_up import ALL, MarginTables, answer_tables
from reticent.engine.wants import ContingencyTable, SufficientStatistics, Tallies
from reticent.lab.experiments.domains import row
from reticent.lab.noise import QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import Floats, groups
from reticent.query.base import Subpopulation
from reticent.query.sides import Sides
from reticent.refine.residuals import Axes
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.sensitivity.bounds import Neighbours

LEVEL, EPSILON, PEOPLE = 0.95, Fraction(1), 3_000
Z = 1.959963984540054
PAIRS: tuple[Axes, ...] = ((0, 1), (1, 2), (0, 2))
NEIGHBOURS = Neighbours()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCase:
    """Lengths of the columns without their cells for missing answers, margins, and what is published."""

    lengths: tuple[int, ...]
    margins: tuple[Axes, ...]
    whole: bool = True
    add_up: bool = True


CASES: dict[str, TableCase] = {
    "three two-way of 8 x 5 x 10": TableCase(lengths=(7, 4, 9), margins=PAIRS),
    "three two-way of 8 x 5 x 10, real": TableCase(lengths=(7, 4, 9), margins=PAIRS, whole=False),
    "three two-way of 8 x 5 x 10, apart": TableCase(
        lengths=(7, 4, 9), margins=PAIRS, whole=False, add_up=False
    ),
    "chain of 10 x 6 x 8 x 3": TableCase(lengths=(9, 5, 7, 2), margins=((0, 1), (1, 2), (2, 3))),
    "chain of 10 x 6 x 8 x 3, real": TableCase(
        lengths=(9, 5, 7, 2), margins=((0, 1), (1, 2), (2, 3)), whole=False
    ),
    "one sparse table of 40 x 30": TableCase(lengths=(39, 29), margins=((0, 1),)),
}


@cache
def asked(name: str) -> tuple[MarginTables, Schema]:
    """What the case asks for, and its codebook."""
    case = CASES[name]
    columns = {
        f"c{i}": {"kind": "categorical", "levels": [f"{j}" for j in range(length)]}
        for i, length in enumerate(case.lengths)
    }
    schema = schema_from({"survey": {"name": "made-up", "unit": "row"}, "columns": columns})
    made = MarginTables(
        name=name,
        sides=Sides(columns=tuple(columns)),
        margins=case.margins,
        among=Subpopulation(),
        epsilon=EPSILON,
        level=Fraction(95, 100),
        add_up=case.add_up,
        whole=case.whole,
    )
    return made, schema


def run(index: int, seed: int) -> list[Outcome]:
    """One table of one case; a line for every cell and total of its margins."""
    name = list(CASES)[index % len(CASES)]
    rng = np.random.default_rng(seed)
    made, schema = asked(name)
    joint = _people(made.shape(schema), rng)
    tables = {}
    measured = made.agreement(schema, NEIGHBOURS).measured
    for want, table in zip(made.wants(schema, NEIGHBOURS), measured, strict=True):
        cells = _margin(joint, table.axes).ravel().tolist()
        tables[want] = ContingencyTable(want=want, cells=tuple(int(cell) for cell in cells))
    tallies = Tallies(statistics=SufficientStatistics(sums={}), tables=tables)
    answer = answer_tables(made, tallies, QuickNoise(rng), schema=schema, neighbours=NEIGHBOURS)
    found: list[Outcome] = []
    for axes, lines in zip(made.margins, answer.margins, strict=True):
        exact = _with_totals(_margin(joint, axes))
        for line in lines:
            place = tuple(
                -1 if level == ALL else made.sides.labels(schema, column).index(level)
                for column, level in line.cell
            )
            what = "total" if ALL in dict(line.cell).values() else "cell"
            found.append(
                Outcome(
                    method="privacy",
                    query=f"{name}|{axes}|{what}",
                    truth=float(exact[place]),
                    estimate=float(line.value),
                    low=line.low,
                    high=line.high,
                )
            )
    return found


def _people(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """People in a table where a few cells hold most of them, and the last cell of each side, for silence, hardly anybody."""
    weight = rng.gamma(0.3, size=shape)
    for axis, length in enumerate(shape):
        index = np.arange(length) == length - 1
        weight *= np.where(index, 0.05, 1.0).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    counts = rng.multinomial(PEOPLE, weight.ravel() / weight.sum())
    return np.asarray(counts, dtype=np.float64).reshape(shape)


def _margin(joint: Floats, axes: Axes) -> Floats:
    return np.asarray(joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in axes)))


def _with_totals(table: Floats) -> Floats:
    """The table with its totals in a last place along every side."""
    for axis in range(table.ndim):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    return table


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each case, cells and totals apart: coverage, width, and the error beside noisy tables at even shares."""
    found: dict[tuple[str, str], list[tuple[Floats, float]]] = {}
    errors: dict[tuple[str, str], list[float]] = {}
    for key, lines in groups(outcomes):
        case, _, what = str(key["query"]).split("|")
        order = np.argsort(lines["run"], kind="stable")
        held = ((lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"]))[order]
        _, starts = np.unique(lines["run"][order], return_index=True)
        by_run = np.add.reduceat(held.astype(float), starts) / np.diff([*starts, len(held)])
        error = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        width = float(np.median(lines["high"] - lines["low"])) / (2 * Z * error) if error else np.nan
        found.setdefault((case, what), []).append((by_run, width))
        errors.setdefault((case, what), []).append(error)
    return [
        {
            **row(case, "privacy", each, what == "cell" and CASES[case].add_up),
            "of": f"{what}s",
            "error_over_even_shares": _over(case, errors[case, what]) if what == "cell" else None,
        }
        for (case, what), each in found.items()
    ]


def _over(case: str, errors: list[float]) -> float:
    made, _ = asked(case)
    even = made.epsilon / len(made.margins)
    q = float(np.exp(-float(even)))
    return round(float(np.sqrt(np.mean(np.square(errors)))) / float(np.sqrt(2 * q) / (1 - q)), 3)


def experiment() -> Experiment:
    """The experiment of the list."""
    return Experiment(
        name="add-up",
        title="Tables that add up: coverage, and error beside noisy tables",
        source="the library's own tables, THEORY 15",
        run=run,
        params={"cases": list(CASES), "epsilon": str(EPSILON), "level": LEVEL, "people": PEOPLE},
        runs=400,
        batch=10,
        cases=tuple(CASES),
        pieces=tuple(name.replace(", ", "/") for name in CASES),
        told=told,
    )
