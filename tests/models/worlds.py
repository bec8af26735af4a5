"""Small designs and rows for tests of models."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from reticent.lab.papers.objective import Objective
from reticent.lab.papers.robust import Robust
from reticent.models.design import Bounded, Records, RegressionDesign, records
from reticent.models.fit import Estimator, Fit
from reticent.models.perturbed import Output
from reticent.models.privgene import PrivGene
from reticent.models.sums import AdaSSP, Centred, Functional
from reticent.sensitivity.bounds import Neighbours

ADD, REPLACE = Neighbours(), Neighbours(replaced=True)
DELTA = Fraction(1, 10**6)

ESTIMATORS: dict[str, tuple[Estimator, Fraction | None]] = {
    "functional": (Functional(), None),
    "centred": (Centred(), None),
    "adassp": (AdaSSP(), None),
    "adassp with delta": (AdaSSP(), DELTA),
    "output": (Output(), None),
    "objective": (Objective(), None),
    "robust": (Robust(), None),
    "robust with delta": (Robust(), DELTA),
    "privgene": (PrivGene(), None),
}
"""Every estimator, and the delta it is tried with. A new one joins here and meets the whole suite."""


def design(d: int = 1, *, intercept: bool = True, size: int | None = None) -> RegressionDesign:
    """Predictors of several widths and a response from -10 to 30 in halves."""
    grids = [Fraction(1), Fraction(1, 4), Fraction(5)]
    predictors = tuple(Bounded(name=f"x{i}", low=-2 * i, high=8 + 3 * i, grid=grids[i % 3]) for i in range(d))
    response = Bounded(name="y", low=-20, high=60, grid=Fraction(1, 2))
    return RegressionDesign(predictors=predictors, response=response, intercept=intercept, size=size)


def values(design: RegressionDesign, column: Bounded, codes: Any) -> np.ndarray:
    return float(column.origin) + np.asarray(codes, dtype=float) * float(column.grid)


def some_rows(design: RegressionDesign, n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the grid, the response near a line and inside its bounds."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(c.low, c.high + 1, n) for c in design.predictors]
    x = np.column_stack([values(design, c, k) for c, k in zip(design.predictors, codes, strict=True)])
    unit = [
        (2 * k - c.low - c.high) / (c.high - c.low) for c, k in zip(design.predictors, codes, strict=True)
    ]
    said = 0.1 + sum(0.5 / (j + 1) * u for j, u in enumerate(unit)) + rng.normal(0, 0.1, n)
    y = design.response
    steps = np.clip(np.floor((y.low + y.high + (y.high - y.low) * said) / 2 + 0.5), y.low, y.high)
    return x, values(design, y, steps)


def extremes(design: RegressionDesign) -> list[tuple[float, ...]]:
    """Every corner, the middle, a row that does not count, and rows far outside."""
    ends = [(float(c.origin + c.grid * c.low), float(c.origin + c.grid * c.high)) for c in design.columns]
    corners = list(product(*ends))
    middle = tuple((a + b) / 2 for a, b in ends)
    silent = (*middle[:-1], float("nan"))
    far = tuple(1e300 if i % 2 else -np.inf for i in range(len(ends)))
    return [*corners, middle, silent, far]


def neighbours_of(design: RegressionDesign, x: np.ndarray, y: np.ndarray, *, replaced: bool) -> list[Records]:
    """The last row exchanged for every extreme one; or every extreme one added, and the last one removed."""
    base = x[:-1] if replaced else x, y[:-1] if replaced else y
    found = [
        records(design, np.vstack([base[0], row[:-1]]), np.append(base[1], row[-1]))
        for row in extremes(design)
    ]
    return found if replaced else [*found, records(design, x[:-1], y[:-1])]


def given(estimator: Estimator, data: Records) -> Any:
    return data if estimator.requires == "rows" else data.sums()


def fitted(
    name: str, data: Records, *, neighbours: Neighbours, noise: Any, epsilon: Fraction = Fraction(1)
) -> Fit:
    estimator, delta = ESTIMATORS[name]
    return estimator.fit(
        given(estimator, data), epsilon=epsilon, delta=delta, neighbours=neighbours, noise=noise
    )


def least_squares(x: np.ndarray, y: np.ndarray, *, intercept: bool = True) -> np.ndarray:
    full = np.column_stack([np.ones(len(x)), x]) if intercept else x
    found = np.linalg.lstsq(full, y, rcond=None)[0]
    return found if intercept else np.concatenate([[0.0], found])
