"""Least squares by residuals is least squares by matrices, cell for cell; its noise is the noise it says."""

from itertools import product
from math import prod

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.refine.combination import NoiseLaw
from reticent.refine.residuals import Agreement, Axes, Measured, subsets

DESIGNS: list[tuple[tuple[int, ...], list[tuple[Axes, float]]]] = [
    ((3, 4), [((0,), 1.0), ((1,), 2.0)]),
    ((3, 4), [((0, 1), 1.0), ((1,), 0.7)]),
    ((2, 3, 4), [((0, 1), 1.0), ((1, 2), 1.5), ((0, 2), 0.8)]),
    ((2, 3, 4), [((0, 1, 2), 2.0)]),
    ((2, 3, 2, 3), [((0, 1), 1.0), ((1, 2), 1.0), ((2, 3), 3.0)]),
    ((2, 3), [((), 1.0), ((0, 1), 1.0)]),
    ((1, 3), [((0,), 1.0), ((0, 1), 1.0)]),
]
designs = pytest.mark.parametrize(("shape", "measured"), DESIGNS, ids=str)


def agreement(shape, measured, law=NoiseLaw.LAPLACE) -> Agreement:
    return Agreement(shape, tuple(Measured(axes=axes, scale=scale, law=law) for axes, scale in measured))


def summing(shape: tuple[int, ...], axes: Axes) -> np.ndarray:
    """The matrix that takes a joint table to its margin."""
    cells = list(product(*map(range, shape)))
    ours = list(product(*(range(shape[axis]) for axis in axes)))
    return np.array(
        [[all(c[a] == o for a, o in zip(axes, mine, strict=True)) for c in cells] for mine in ours], float
    )


def projection(found: Agreement, axes: Axes) -> np.ndarray:
    """The margin as a matrix applied to all noisy cells: (A'WA)+ A'W, by the textbook."""
    blocks = [summing(found.shape, table.axes) for table in found.measured]
    a = np.vstack(blocks)
    w = np.concatenate([np.full(len(b), 1 / t.variance) for b, t in zip(blocks, found.measured, strict=True)])
    return summing(found.shape, axes) @ np.linalg.pinv(a.T @ (w[:, None] * a)) @ (a.T * w)


def told(found: Agreement) -> list[Axes]:
    return sorted({s for table in found.measured for s in subsets(table.axes)})


@designs
def test_the_average_of_residuals_is_generalized_least_squares(shape, measured):
    """On tables of any numbers, for every margin that is told."""
    found = agreement(shape, measured)
    dice = np.random.default_rng(5)
    tables = [dice.normal(size=[shape[a] for a in table.axes]) * 10 for table in found.measured]
    residuals = found.estimate(tables)
    flat = np.concatenate([np.ravel(table) for table in tables])
    for axes in told(found):
        assert np.ravel(found.margin(residuals, axes)) == pytest.approx(
            projection(found, axes) @ flat, abs=1e-8
        )


@designs
def test_all_margins_add_up(shape, measured):
    found = agreement(shape, measured)
    dice = np.random.default_rng(6)
    residuals = found.estimate([dice.normal(size=[shape[a] for a in t.axes]) for t in found.measured])
    for table in found.measured:
        whole = found.margin(residuals, table.axes)
        for axes in subsets(table.axes):
            gone = tuple(i for i, axis in enumerate(table.axes) if axis not in axes)
            assert whole.sum(axis=gone) == pytest.approx(found.margin(residuals, axes), abs=1e-9)


@designs
def test_consistent_tables_are_left_alone(shape, measured):
    """Margins of one joint table come back as they are: the projection is one."""
    found = agreement(shape, measured)
    joint = np.random.default_rng(7).integers(0, 50, size=shape).astype(float)

    def over(axes):
        return joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in axes))

    residuals = found.estimate([over(table.axes) for table in found.measured])
    for axes in told(found):
        assert found.margin(residuals, axes) == pytest.approx(over(axes), abs=1e-8)


@designs
@pytest.mark.parametrize("law", [NoiseLaw.LAPLACE, NoiseLaw.GAUSSIAN])
def test_the_noise_that_is_left_is_told_draw_by_draw(shape, measured, law):
    """Weights and their numbers are those of the textbook's matrix, in every cell; so is the variance."""
    found = agreement(shape, measured, law)
    for axes in told(found):
        matrix, at = projection(found, axes), 0
        columns = {}
        for table in found.measured:
            size = prod(shape[a] for a in table.axes)
            columns[table.axes], at = matrix[:, at : at + size], at + size
        for row in range(len(matrix)):
            expected = sorted(
                round(float(weight), 9) + 0.0
                for part in columns.values()
                for weight in part[row]
                if abs(weight) > 1e-9
            )
            listed = sorted(round(d.weight, 9) + 0.0 for d in found.noise(axes) for _ in range(d.count))
            assert listed == pytest.approx(expected, abs=1e-8)
        variances = np.concatenate([np.full(columns[t.axes].shape[1], t.variance) for t in found.measured])
        assert found.variance(axes) == pytest.approx(float((matrix**2 @ variances)[0]))
        assert found.variance(axes) == pytest.approx(sum(d.variance for d in found.noise(axes)))


def test_intervals_cover_as_often_as_stated():
    """4,000 tables of Laplace noise, level 0.9: coverage within 4.5 standard errors (false alarm 7e-6), not above 0.93."""
    found = agreement((2, 3, 4), [((0, 1), 2.0), ((1, 2), 2.0), ((0, 2), 2.0)])
    dice, runs, q = np.random.default_rng(8), 4000, np.exp(-1 / 2.0)
    widths = {axes: found.half_width(axes, 0.9) for axes in told(found)}
    held = dict.fromkeys(widths, 0)
    for _ in range(runs):
        tables = []
        for table in found.measured:
            size = [found.shape[a] for a in table.axes]
            tables.append((dice.geometric(1 - q, size) - dice.geometric(1 - q, size)).astype(float))
        residuals = found.estimate(tables)
        for axes, width in widths.items():
            held[axes] += abs(found.margin(residuals, axes).ravel()[0]) <= width
    for axes, count in held.items():
        assert 0.9 - 4.5 * (0.09 / runs) ** 0.5 <= count / runs <= 0.93, axes


def test_a_width_of_the_table_alone_is_wider_than_after_agreement():
    """What agreement buys: the variance of each cell falls, and the width with it."""
    found = agreement((4, 2, 9), [((0, 1), 3.0), ((1, 2), 3.0), ((0, 2), 3.0)])
    alone = Agreement(found.shape, found.measured[:1])
    assert found.variance((0, 1)) < 0.9 * alone.variance((0, 1))
    assert found.half_width((0, 1), 0.95) < alone.half_width((0, 1), 0.95)


THEORY = [
    ((8, 5, 10), [(0, 1), (1, 2), (0, 2)], 15.7, 2.61),
    ((4, 2, 9), [(0, 1), (1, 2), (0, 2)], 13.9, 2.32),
    ((10, 6, 8, 3), [(0, 1), (1, 2), (2, 3)], 16.1, 2.68),
    ((10, 6, 8), [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)], 56.0, 4.67),
]


@pytest.mark.parametrize(("shape", "margins", "laplace", "gauss"), THEORY)
def test_variances_are_those_of_the_statement(shape, margins, laplace, gauss):
    """THEORY 15.3: mean variance of a cell after least squares, continuous noise at epsilon 1 or rho 1/2."""
    k = len(margins)
    for variance, expected in ((2 * k * k, laplace), (k, gauss)):
        found = agreement(shape, [(m, variance**0.5) for m in margins], NoiseLaw.GAUSSIAN)
        cells = [found.cells(m) for m in margins]
        mean = sum(n * found.variance(m) for n, m in zip(cells, margins, strict=True)) / sum(cells)
        assert mean == pytest.approx(expected, rel=0.006)


def test_what_is_no_margin_is_refused():
    with pytest.raises(PlanError, match="axes"):
        agreement((2, 3), [((1, 0), 1.0)])
    with pytest.raises(PlanError, match="once"):
        agreement((2, 3), [((1,), 1.0), ((1,), 1.0)])
    found = agreement((2, 3), [((1,), 1.0)])
    with pytest.raises(PlanError, match="no measured table"):
        found.variance((0, 1))
