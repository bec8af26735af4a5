"""Raking meets all margins or says that it does not, and what it finds is the nearest table that meets them."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from reticent.errors import PlanError
from reticent.refine.margins import Margin
from reticent.refine.raking import rake

SHAPE = (3, 4, 2)
FAMILIES = [
    [(0,), (1,), (2,)],
    [(0, 1), (1, 2)],
    [(0, 2), (1,)],
    [(0, 1), (1, 2), (0, 2)],
    [(1,)],
    [(2, 0)],
    [(0,), (0, 1)],
    [(0, 1, 2)],
]


def naive(table: np.ndarray, margins: list[Margin], cycles: int) -> np.ndarray:
    """The textbook: for every cell of every margin, find its part of the table and multiply it."""
    table = table.copy()
    for _ in range(cycles):
        for margin in margins:
            for where in product(*(range(n) for n in margin.totals.shape)):
                part = [slice(None)] * table.ndim
                for axis, place in zip(margin.axes, where, strict=True):
                    part[axis] = place
                total = table[tuple(part)].sum()
                if total > 0:
                    table[tuple(part)] *= margin.totals[where] / total
    return table


def margins_of(table: np.ndarray, family) -> list[Margin]:
    """What `table` says about these axes, given in the order named."""
    made = []
    for axes in family:
        summed = table.sum(axis=tuple(a for a in range(table.ndim) if a not in axes))
        made.append(Margin(axes, summed.transpose([sorted(axes).index(a) for a in axes])))
    return made


def worst(table: np.ndarray, margins: list[Margin]) -> float:
    return max(float(np.max(np.abs(m.project(table) / m.totals - 1))) for m in margins)


def tables(seed: int, shape=SHAPE) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.gamma(0.7, 20, shape), rng.gamma(2, 30, shape)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_raking_equals_the_textbook_loop(family, seed):
    table, other = tables(seed)
    margins = margins_of(other, family)
    made = rake(table, margins, tolerance=1e-12)
    assert made.status == "met" and worst(made.table, margins) <= 1.1e-12
    assert np.allclose(made.table, naive(table, margins, 300), rtol=1e-9, atol=0)


@pytest.mark.parametrize("family", FAMILIES[:4], ids=str)
def test_one_cycle_is_one_cycle_of_the_textbook(family):
    """Margins that share no axis are met group by group; within a group in the order given."""
    table, other = tables(5)
    margins = margins_of(other, family)
    once = naive(table, margins, 1)
    assert np.allclose(rake(table, margins, cycles=1).table, once, rtol=1e-12)


def kl(one: np.ndarray, other: np.ndarray) -> float:
    """Kullback-Leibler divergence of tables with the same total, 0 log 0 = 0."""
    seen = one > 0
    return float((one[seen] * np.log(one[seen] / other[seen])).sum())


@pytest.mark.parametrize("family", FAMILIES[:4], ids=str)
def test_raking_finds_the_nearest_table_by_pythagoras(family):
    """For every other table X with the margins: KL(X|T) = KL(X|raked) + KL(raked|T)."""
    table, other = tables(1)
    margins = margins_of(other, family)
    table *= other.sum() / table.sum()
    made = rake(table, margins, tolerance=1e-13).table
    for seed in range(10, 15):
        feasible = rake(tables(seed)[0], margins, tolerance=1e-13).table
        assert kl(feasible, table) == pytest.approx(kl(feasible, made) + kl(made, table), rel=1e-9)
        assert kl(made, table) <= kl(feasible, table)


@pytest.mark.parametrize("family", FAMILIES[:4], ids=str)
def test_raking_is_the_optimum_of_the_dual(family):
    """max over lambda of lambda.m - sum T e^(A' lambda), by a general optimiser that knows no raking."""
    table, other = tables(2)
    margins = margins_of(other, family)

    def lifted(at: np.ndarray) -> np.ndarray:
        tilt, start = np.zeros(SHAPE), 0
        for m in margins:
            part = at[start : start + m.totals.size].reshape(
                [SHAPE[a] if a in m.axes else 1 for a in range(3)]
            )
            tilt, start = tilt + part, start + m.totals.size
        return table * np.exp(tilt)

    def minus(at: np.ndarray) -> tuple[float, np.ndarray]:
        fitted = lifted(at)
        wanted = np.concatenate([m.totals.reshape(-1) for m in margins])
        found = np.concatenate([m.project(fitted).reshape(-1) for m in margins])
        return float(fitted.sum() - at @ wanted), found - wanted

    size = sum(m.totals.size for m in margins)
    best = minimize(minus, np.zeros(size), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 5000})
    assert np.allclose(rake(table, margins).table, lifted(best.x), rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 4), st.data())
def test_any_margins_of_a_positive_table_can_be_met(seed, axes, data):
    """Tables of 2 to 4 axes, any margins of any other table of that shape; the error said is the error there."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, axes))
    subsets = [s for k in range(1, axes + 1) for s in combinations(range(axes), k)]
    family = data.draw(st.lists(st.sampled_from(subsets), min_size=1, max_size=5))
    table, other = tables(seed, shape)
    margins = margins_of(other, family)
    made = rake(table + 1, margins, cycles=20_000)
    assert made.status == "met" and made.error <= 1e-8
    assert worst(made.table, margins) == pytest.approx(made.error, abs=1e-12)


def test_the_order_of_axes_in_a_margin_is_the_callers():
    table, other = tables(3)
    one = rake(table, [Margin((0, 2), other.sum(axis=1))])
    two = rake(table, [Margin((2, 0), other.sum(axis=1).T)])
    assert np.array_equal(one.table, two.table)


# Stop, zeroes and what cannot be met.


def stops_on_the_last(table: np.ndarray, margins: list[Margin], tolerance: float) -> np.ndarray:
    """The naive twin: looks at the margin that was met last, which is always met."""
    for _ in range(1000):
        table = naive(table, margins, 1)
        if worst(table, margins[-1:]) <= tolerance:
            return table
    raise AssertionError("never stopped")


def test_all_margins_are_looked_at_before_it_stops():
    table, other = tables(4)
    margins = margins_of(other, [(0, 1), (1, 2), (0, 2)])
    made = rake(table, margins, tolerance=1e-6)
    assert made.cycles > 2 and worst(made.table, margins) <= 1e-6
    assert worst(stops_on_the_last(table, margins, 1e-6), margins) > 1e-3


def test_structural_zeroes_stay_and_margins_are_met_around_them():
    table, other = tables(6)
    zeroes = np.zeros(SHAPE, dtype=bool)
    zeroes[0, 1] = zeroes[2, 3, 1] = True
    other[zeroes] = 0
    made = rake(table, margins_of(other, [(0, 1), (1, 2)]), zeroes=zeroes)
    assert made.status == "met" and not made.table[zeroes].any() and made.table[~zeroes].all()


def test_a_total_of_zero_empties_its_cells():
    table, other = tables(7)
    other[1] = 0
    made = rake(table, margins_of(other, [(0,), (1,)]))
    assert made.status == "met" and not made.table[1].any()


# covers B093
def test_totals_without_cells_are_named_and_the_last_iterate_is_given():
    """The noisy table is 0 where the margin is not: public, a status and not a failure."""
    table, other = tables(8)
    table[:, 2, :] = 0
    made = rake(table, margins_of(other, [(0,), (1,)]), cycles=30)
    assert (made.status, made.cycles, made.empty) == ("no cells", 30, ((1, (2,)),))
    assert made.error == pytest.approx(1) and np.isfinite(made.table).all()


# covers B093
@pytest.mark.parametrize("cycles", [1, 50, 3000])
def test_margins_that_the_cells_cannot_carry_are_not_met_and_it_says_so(cycles):
    """Every total has cells, but all of row 0 lies in column 0, whose total is smaller."""
    made = rake([[5.0, 0.0], [1.0, 9.0]], [Margin(0, [60, 40]), Margin(1, [50, 50])], cycles=cycles)
    assert (made.status, made.cycles, made.empty) == ("not met", cycles, ())
    assert np.isfinite(made.table).all() and (made.table >= 0).all()
    assert made.error == pytest.approx(worst(made.table, [Margin(0, [60, 40]), Margin(1, [50, 50])]))
    assert made.error > 0.1


def test_margins_that_agree_in_pairs_and_not_together_are_not_met():
    """Three two-way margins of 0/1 answers, each with equal halves, that no table has: x = y, y = z, x != z."""
    same, other = np.array([[0.5, 0.0], [0.0, 0.5]]), np.array([[0.0, 0.5], [0.5, 0.0]])
    margins = [Margin((0, 1), same), Margin((1, 2), same), Margin((0, 2), other)]
    made = rake(np.ones((2, 2, 2)), margins, cycles=40)
    assert made.status == "not met" and np.isfinite(made.error)


def test_factors_that_run_away_do_not_overflow():
    """A limit on the edge of what is possible: row 0 must leave column 1, ever more slowly. 20,000 cycles, finite."""
    made = rake([[1.0, 1.0], [0.0, 1.0]], [Margin(0, [50, 50]), Margin(1, [50, 50])], cycles=20_000)
    assert np.isfinite(made.table).all() and made.table[0, 1] < 0.01
    far = rake([[1e-18, 1.0], [1.0, 1e-18]], [Margin(0, [1, 1e9]), Margin(1, [1e9, 1])], tolerance=1e-6)
    assert far.status == "met"
    one_way = np.ones((2, 2, 2))
    one_way[0, 0, 0] = one_way[0, 1, 1] = one_way[1, 0, 1] = 0
    runs = rake(one_way, [Margin(a, [99, 1]) for a in range(3)], cycles=5000)
    assert np.isfinite(runs.table).all() and np.isfinite(runs.error)


PAIR = Margin(0, [3, 4])


@pytest.mark.parametrize(  # covers B092
    ("margins", "said"),
    [
        ([PAIR, Margin(1, [3, 5])], "contradict each other about the grand total"),
        ([Margin((0, 1), [[1, 2], [3, 4]]), Margin(0, [4, 6])], r"about the totals over axes \(0,\)"),
        ([], "at least one margin"),
        ([Margin(0, [1, 2, 4])], "does not fit a table of shape"),
        ([Margin(2, [3, 4])], "does not fit a table of shape"),
    ],
)
def test_margins_that_contradict_each_other_are_refused_before_anything_is_computed(margins, said):
    with pytest.raises(PlanError, match=said):
        rake(np.ones((2, 2)), margins)


@pytest.mark.parametrize(  # covers B092
    "totals", [[0, 0], [-1, 8], [np.nan, 1], [np.inf, 1], [[1, 2]], []], ids=str
)
def test_totals_that_are_no_totals_are_refused(totals):
    with pytest.raises(PlanError):
        Margin(0, totals)


@pytest.mark.parametrize("axes", [(), (0, 0), (-1,)], ids=str)
def test_axes_that_are_no_axes_are_refused(axes):
    with pytest.raises(PlanError):
        Margin(axes, np.ones([2] * len(axes)))


# covers B092
def test_a_positive_total_over_structural_zeroes_alone_is_refused():
    zeroes = np.array([[True, True], [False, False]])
    with pytest.raises(PlanError, match=r"margin 0 has a total above 0 at \(0,\)"):
        rake(np.ones((2, 2)), [PAIR], zeroes=zeroes)


@pytest.mark.parametrize(
    "call",
    [
        lambda: rake(np.array([[-1.0, 1], [1, 1]]), [PAIR]),
        lambda: rake(np.array([[np.nan, 1], [1, 1]]), [PAIR]),
        lambda: rake(np.ones(()), [PAIR]),
        lambda: rake(np.ones((2, 0)), [PAIR]),
        lambda: rake(np.ones((2, 2)), [PAIR], zeroes=np.zeros((2, 2))),
        lambda: rake(np.ones((2, 2)), [PAIR], tolerance=0),
        lambda: rake(np.ones((2, 2)), [PAIR], cycles=0),
    ],
)
def test_tables_that_cannot_be_raked_are_refused(call):
    with pytest.raises(PlanError):
        call()


def test_what_was_given_is_not_changed():
    table, other = tables(9)
    before = table.copy()
    margins = margins_of(other, [(0,), (1,)])
    zeroes = np.zeros(SHAPE, dtype=bool)
    rake(table, margins, zeroes=zeroes)
    assert np.array_equal(table, before)
    with pytest.raises(ValueError, match="read-only"):
        margins[0].totals[0] = 1
