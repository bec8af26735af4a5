"""Series behind the pictures of the small-cells paper, and what noise does to reliability. Plain numbers.

Those made from `GridPoints` are for the curator's eyes: they are read off the rows and published nowhere.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reticent.errors import PlanError
from reticent.smallcells.estimators import Predict, estimates
from reticent.smallcells.fits import Floats
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.moments import moments
from reticent.smallcells.points import GridPoints

Rows = list[dict[str, Any]]


def one_cell(points: GridPoints, cell: int, at: Fraction) -> Rows:
    """Figure 1: the lines of one cell before and after each corner is added, and how far each moves the prediction."""
    here = slice(int(points.starts[cell]), int(points.starts[cell + 1]))
    x, y = points.x[here], points.y[here]
    lines: Rows = []
    for corner in (None, (0, 0), (0, 1), (1, 0), (1, 1)):
        more = [] if corner is None else [corner]
        grown = GridPoints(
            starts=np.array([0, len(x) + len(more)], dtype=np.int64),
            x=np.append(x, np.array([a * points.x_steps for a, _ in more], dtype=np.int64)),
            y=np.append(y, np.array([b * points.y_steps for _, b in more], dtype=np.int64)),
            x_steps=points.x_steps,
            y_steps=points.y_steps,
        )
        of = moments(grown)
        heights = [float(estimates(Predict(at=Fraction(p)), of).floats()[0]) for p in (0, at, 1)]
        name = "as it is" if corner is None else f"with ({corner[0]}, {corner[1]})"
        lines.append({"line": name, "left": heights[0], "prediction": heights[1], "right": heights[2]})
    return [{**line, "moved": abs(line["prediction"] - lines[0]["prediction"])} for line in lines]


def log_envelope(points: GridPoints, at: Fraction) -> Rows:
    """Figure 2: each cell's size and local sensitivity, and the envelope chi / N above them all."""
    local = local_sensitivity(points, Predict(at=at))
    sizes = np.diff(points.starts)
    used = np.flatnonzero(~np.isnan(local))
    if not len(used):
        raise PlanError("no cell has a line.", field="cells")
    chi = float((sizes[used] * local[used]).max())
    return [
        {"size": int(sizes[g]), "local": float(local[g]), "envelope": chi / int(sizes[g])}
        for g in used.tolist()
    ]


def error_by_epsilon(chi: Fraction, sizes: Floats, epsilons: tuple[Fraction, ...]) -> Rows:
    """The mean squared error by noise over cells of these sizes, 2 (chi / (epsilon N))**2, for each epsilon."""
    if len(sizes) == 0 or sizes.min() < 1 or min(epsilons) <= 0:
        raise PlanError("sizes are at least 1 and epsilons positive.", field="epsilon")
    return [
        {
            "epsilon": float(e),
            "squared_error": float((2 * (float(chi) / (float(e) * sizes)) ** 2).mean()),
        }
        for e in epsilons
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The share of the spread between cells that is signal, before and after the noise, and the noise's own share."""

    before: float
    after: float
    noise_share: float


def reliability(*, variance: float, sampling: float, noise: float) -> Reliability:
    """From the variance of estimates between cells, and the mean variances of sampling and of noise.

    With `share` the noise's part of the variance of what is released, after = before (1 - share): the noise adds to
    what the signal is divided by. Taking the share off in points would be too much.
    """
    if variance <= 0 or not 0 <= sampling <= variance or noise < 0:
        raise PlanError(
            "the variance between cells is positive and holds that of sampling.", field="variance"
        )
    signal, total = variance - sampling, variance + noise
    return Reliability(before=signal / variance, after=signal / total, noise_share=noise / total)
