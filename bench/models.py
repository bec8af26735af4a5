"""Private lines: time and error of every estimator, beside diffprivlib's linear regression.

Run as `python -m bench.models`. The setting is that of Das, Drechsler, Merrill and Merrill: 10,000 rows, two uniform
predictors, y = x1/2 + x2/2 + noise of variance 0.1, clipped to [0, 1]. Slopes at epsilon 0.5 are held against ordinary
least squares on the same rows. The mean of y at epsilon 1, half for the line, when y is missing with chance x1, is held
against 1/2. Exact noise from the system. diffprivlib is installed under bench/out; where it cannot be, it is left out.
"""

import json
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.others import installed
from reticent.lab.papers.objective import Objective
from reticent.lab.papers.robust import Robust
from reticent.lab.papers.strategies import REPLACED, available_cases, both_stages, fill_exactly, query_only
from reticent.models.design import Bounded, RegressionDesign, records
from reticent.models.fit import SystemModelNoise
from reticent.models.perturbed import Output
from reticent.models.privgene import PrivGene
from reticent.models.sums import AdaSSP, Centred, Functional

HERE = Path(__file__).parent
OTHERS = HERE / "out" / "models-others"
PACKAGES = ("diffprivlib==0.6.6", "scikit-learn<1.6")
ROWS, RUNS, SEED = 10_000, 200, 2026
COLUMNS = [Bounded.between(name, Fraction(0), Fraction(1)) for name in ("x1", "x2", "y")]
PLAN = RegressionDesign(predictors=tuple(COLUMNS[:2]), response=COLUMNS[2])
NOISE = SystemModelNoise()
SMALL = Fraction(1, 10**6)
ESTIMATORS = {
    "centred sums": (Centred(), None),
    "AdaSSP": (AdaSSP(), None),
    "AdaSSP, delta 1e-6": (AdaSSP(), SMALL),
    "functional": (Functional(), None),
    "objective": (Objective(), None),
    "output": (Output(), None),
    "robust": (Robust(), None),
    "PrivGene": (PrivGene(), None),
}


def sample(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One survey without gaps."""
    x = rng.random((ROWS, 2))
    return x, np.clip(x.sum(axis=1) / 2 + rng.normal(0, 0.1**0.5, ROWS), 0, 1)


def ordinary(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slopes of least squares."""
    return np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0][1:]


def rmse(errors: list[Any]) -> float:
    """The root of the mean square."""
    return float(np.sqrt(np.mean(np.square(errors))))


def lines() -> list[dict[str, Any]]:
    """Milliseconds for a fit from arrays, the error of the slopes, and that of the mean with gaps."""
    rows = []
    for name, (estimator, delta) in ESTIMATORS.items():
        rng, off, mean, took = np.random.default_rng(SEED), [], [], []
        for _ in range(RUNS):
            x, y = sample(rng)
            start = time.perf_counter()
            data = records(PLAN, x, y)
            given = data if estimator.requires == "rows" else data.sums()
            half = Fraction(1, 2)
            fit = estimator.fit(given, epsilon=half, delta=delta, neighbours=REPLACED, noise=NOISE)
            took.append(time.perf_counter() - start)
            off.append(np.array([float(v) for v in fit.slopes]) - ordinary(x, y))
            holes = np.where(rng.random(ROWS) < x[:, 0], np.nan, y)
            made = both_stages(
                PLAN, x, holes, epsilon=Fraction(1), delta=delta, estimator=estimator, noise=NOISE
            )
            mean.append(float(made.mean) - 0.5)
        rows.append({"estimator": name, "ms": 1e3 * min(took), "slopes": rmse(off), "mean": rmse(mean)})
    return rows


def without_a_line() -> list[dict[str, Any]]:
    """The mean of those who answered, of query-only noise, and without any privacy."""
    rng = np.random.default_rng(SEED)
    off: dict[str, list[float]] = {"those who answered": [], "query only": [], "no privacy": []}
    for _ in range(RUNS):
        x, y = sample(rng)
        holes = np.where(rng.random(ROWS) < x[:, 0], np.nan, y)
        one = Fraction(1)
        off["those who answered"].append(
            float(available_cases(PLAN, holes, epsilon=one, noise=NOISE).mean) - 0.5
        )
        off["query only"].append(float(query_only(PLAN, x, holes, epsilon=one, noise=NOISE).mean) - 0.5)
        off["no privacy"].append(float(fill_exactly(PLAN, x, holes)[0].mean()) / 2048 - 0.5)
    return [{"estimator": name, "ms": None, "slopes": None, "mean": rmse(made)} for name, made in off.items()]


def other() -> list[dict[str, Any]]:
    """diffprivlib on the same rows, by an interpreter of its own."""
    if not installed(OTHERS, PACKAGES):
        return []
    rng = np.random.default_rng(SEED)
    made = []
    for _ in range(RUNS):
        made.append(sample(rng))
        rng.random(ROWS)  # where ours draws its gaps
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npz"
        np.savez(path, x=np.array([x for x, _ in made]), y=np.array([y for _, y in made]))
        call = [str(OTHERS / "bin" / "python"), str(HERE / "models_others.py"), str(path)]
        done = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout)
    off = [np.array(found) - ordinary(*rows) for found, rows in zip(done["slopes"], made, strict=True)]
    return [{"estimator": "diffprivlib", "ms": 1e3 * done["seconds"], "slopes": rmse(off), "mean": None}]


def run() -> list[dict[str, Any]]:
    """One row for each way."""
    return lines() + other() + without_a_line()


def main() -> None:
    """Print the table."""
    print(f"{'estimator':<22}{'ms':>8}{'slopes, 0.5':>14}{'mean, 1':>10}")
    for row in run():
        cells = [("ms", 8, 2), ("slopes", 14, 4), ("mean", 10, 4)]
        text = (f"{'':>{w}}" if row[k] is None else f"{row[k]:>{w}.{d}f}" for k, w, d in cells)
        print(f"{row['estimator']:<22}{''.join(text)}")
    if not (OTHERS / "ready").exists():
        print("diffprivlib could not be installed; it needs a network once.")


if __name__ == "__main__":
    sys.exit(main())
