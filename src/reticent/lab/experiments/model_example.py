"""Proposition 3.2 of *Imputation under differential privacy*: how far one replaced row moves a mean after filling its gaps.

At most (missing + 1) times what it moves the mean of complete rows. The bound is attained: two rows answer, and all others
are where the first of them is, so that a line through both gives them its answer. All replacements are tried. Nothing is
drawn.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np

from reticent.lab.experiments.model_imputation import design
from reticent.lab.papers.strategies import fill_exactly
from reticent.lab.run.experiment import Experiment, Outcome

SIZES = (3, 4, 10, 100)
STEPS = np.linspace(0, 1, 5)


def filled_mean(x: Sequence[float], answers: Sequence[float]) -> float:
    """The mean of answers between 0 and 1 after least squares has filled those that are missing, at the end."""
    y = np.full(len(x), np.nan)
    y[: len(answers)] = answers
    shape = design(1)
    filled, _ = fill_exactly(shape, np.array(x)[:, None], y)
    return float(filled.mean() * float(shape.response.grid))


def largest_move(x: Sequence[float], *, answered: int) -> float:
    """The most that replacing the answer of the first row moves the filled mean; the others answer on a coarse grid."""
    moved = 0.0
    for others in product(STEPS, repeat=answered - 1):
        means = [filled_mean(x, (own, *others)) for own in STEPS]
        moved = max(moved, max(means) - min(means))
    return moved


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters."""
    items = []
    for n in SIZES:
        tight = [1.0, 0.0, *[1.0] * (n - 2)]
        items.append(
            Outcome(
                item=f"Proposition 3.2, a mean of {n} rows of which {n - 2} are missing",
                as_printed=(n - 1) / n,
                value=largest_move(tight, answered=2),
                query="(missing + 1) times 1/n, by all replacements of one row; without gaps it is 1/n",
            )
        )
    return items


def experiment() -> Experiment:
    """The sensitivity of regression imputation in its tight case, by brute force."""
    return Experiment(
        name="model-example",
        title="One replaced row after filling gaps: the tight case, by brute force",
        source="Imputation under differential privacy, Proposition 3.2; THEORY 7.2",
        run=run,
        exact=True,
    )
