"""Tables of whole numbers add up, hold no negative cell, and are no farther from the truth than the noisy ones."""

from math import prod

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.refine import whole
from reticent.refine.residuals import Agreement, Axes, Measured, subsets
from reticent.refine.whole import Margins, nearest_joint, whole_joint, whole_tables

DESIGNS: list[tuple[tuple[int, ...], list[Axes]]] = [
    ((4, 5), [(0, 1)]),
    ((6, 4, 3), [(0, 1), (1, 2), (0, 2)]),
    ((5, 4, 3, 4), [(0, 1), (1, 2), (2, 3)]),
    ((7, 6), [(0,), (1,)]),
]
designs = pytest.mark.parametrize(("shape", "asked"), DESIGNS, ids=str)


def over(joint: np.ndarray, axes: Axes) -> np.ndarray:
    return np.asarray(joint.sum(axis=tuple(a for a in range(joint.ndim) if a not in axes)))


def told(asked: list[Axes]) -> list[Axes]:
    return list(dict.fromkeys(s for axes in asked for s in subsets(axes)))


def noisy_margins(shape, asked, dice, scale=3.0):
    """A sparse truth, and what least squares makes of its noisy margins."""
    truth = dice.poisson(2.0, size=shape) * (dice.random(shape) < 0.4)
    found = Agreement(shape, tuple(Measured(axes=axes, scale=scale) for axes in asked))
    q = np.exp(-1 / scale)

    def noise(axes):
        size = [shape[a] for a in axes]
        return dice.geometric(1 - q, size) - dice.geometric(1 - q, size)

    residuals = found.estimate([(over(truth, axes) + noise(axes)).astype(float) for axes in asked])
    tables = {axes: (found.margin(residuals, axes), found.variance(axes)) for axes in told(asked)}
    return truth, Margins(shape, tables)


@designs
def test_whole_tables_add_up_and_hold_nothing_negative(shape, asked):
    """Every margin of every table equals that margin of any other, to the last person; thirty noises."""
    dice = np.random.default_rng(1)
    for _ in range(30):
        _, margins = noisy_margins(shape, asked, dice)
        found = whole_tables(margins)
        for axes, table in found.items():
            assert table.dtype == np.int64 and (table >= 0).all()
            for s in subsets(axes):
                gone = tuple(i for i, axis in enumerate(axes) if axis not in s)
                assert (table.sum(axis=gone) == found[s]).all()


@designs
def test_clipping_each_table_by_itself_does_not_add_up(shape, asked):
    """The naive twin: negative cells set to zero, everything rounded."""
    _, margins = noisy_margins(shape, asked, np.random.default_rng(2))
    clipped = {axes: np.rint(np.maximum(table, 0)) for axes, (table, _) in margins.tables.items()}
    wrong = [
        (axes, s)
        for axes, table in clipped.items()
        for s in subsets(axes)
        if (table.sum(axis=tuple(i for i, axis in enumerate(axes) if axis not in s)) != clipped[s]).any()
    ]
    assert wrong


@designs
def test_no_negative_cell_never_leads_away_from_the_truth(shape, asked):
    """In the distance in which it is a projection: Pythagoras, for forty noises."""
    dice = np.random.default_rng(3)
    for _ in range(40):
        truth, margins = noisy_margins(shape, asked, dice)
        found = margins.sums(nearest_joint(margins))

        def far(tables, margins=margins, truth=truth):
            return sum(
                margins.weight(axes) * float(((table - over(truth, axes)) ** 2).sum())
                for axes, table in tables.items()
            )

        before = far({axes: table for axes, (table, _) in margins.tables.items()})
        assert far(found) <= before * 1.001


@designs
def test_margins_that_can_be_met_are_met(shape, asked):
    """Those of a joint table of positive cells come back, rounded or not within one."""
    joint = np.random.default_rng(4).integers(1, 40, size=shape).astype(float)
    margins = Margins(shape, {axes: (over(joint, axes), 1.0) for axes in told(asked)})
    found = nearest_joint(margins)
    whole = whole_joint(margins, found)
    for axes in told(asked):
        assert over(found, axes) == pytest.approx(over(joint, axes), abs=0.05)
        assert np.abs(over(whole, axes) - over(joint, axes)).max() <= 2


@designs
def test_rounding_moves_no_margin_far(shape, asked):
    """By less than 2.5 in any cell of any margin, over fifty joint tables of fractions; rounding down loses half of all."""
    dice = np.random.default_rng(5)
    for _ in range(50):
        joint = dice.random(shape) * 0.9
        margins = Margins(shape, {axes: (over(joint, axes), 1.0) for axes in told(asked)})
        whole = whole_joint(margins, joint)
        off = max(np.abs(over(whole, axes) - over(joint, axes)).max() for axes in told(asked))
        assert off < 2.5
        assert np.abs(over(np.floor(joint), ()) - joint.sum()) > 0.3 * joint.size


def test_a_total_is_not_pushed_up_by_empty_cells():
    """2,000 cells, most of them empty: the sum of those that noise made positive would be 1.5 times the total."""
    dice = np.random.default_rng(6)
    truth, margins = noisy_margins((50, 40), [(0, 1)], dice, scale=2.0)
    total, spread = float(margins.tables[()][0]), margins.tables[()][1] ** 0.5
    clipped = float(np.maximum(margins.tables[(0, 1)][0], 0).sum())
    found = whole_tables(margins)
    assert abs(int(found[()]) - total) < 0.5 * spread < 3 * spread < clipped - total
    del truth


def test_a_joint_table_beyond_the_limit_is_refused():
    with pytest.raises(PlanError, match="coarser bins"):
        Margins((1001, 1000), {(): (np.zeros(()), 1.0)})


def test_the_order_of_margins_is_no_matter_for_the_sums():
    joint = np.random.default_rng(7).random((3, 4, 2))
    tables = {axes: (over(joint, axes), 1.0) for axes in told([(0, 1), (1, 2)])}
    margins = Margins(joint.shape, tables)
    for axes, table in margins.sums(joint).items():
        assert table == pytest.approx(over(joint, axes))
    assert prod(joint.shape) == margins.spread({(): joint.sum()}).size


@designs
def test_compiled_and_plain_loops_give_the_same_numbers(shape, asked, monkeypatch):
    dice = np.random.default_rng(6)
    for _ in range(10):
        _, margins = noisy_margins(shape, asked, dice)
        joint = nearest_joint(margins)
        plain = whole_joint(margins, joint)
        with monkeypatch.context() as patch:
            patch.setattr(whole, "COMPILED_FROM", 0)
            assert (whole_joint(margins, joint) == plain).all()
