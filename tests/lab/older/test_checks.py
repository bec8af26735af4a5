"""Older definitions: the checks are the textbook's, and which of them survive when pieces are put together."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from reticent.errors import PlanError
from reticent.lab.papers.anonymity import (
    classes,
    distinct_diversity,
    earth_movers,
    entropy_diversity,
    k_anonymity,
    t_closeness,
)

LEVELS = ("flu", "cold", "none")
TABLE = {
    "age": ["20s", "20s", "20s", "30s", "30s"],
    "sex": ["f", "f", "f", "m", "m"],
    "illness": ["flu", "flu", "cold", "none", "cold"],
}
QUASI = ("age", "sex")


def test_by_hand():
    assert k_anonymity(TABLE, QUASI) == 2
    assert distinct_diversity(TABLE, QUASI, "illness") == 2
    thirds = math.exp(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert entropy_diversity(TABLE, QUASI, "illness") == pytest.approx(thirds)
    # The whole is (.4, .4, .2); the second class (0, .5, .5) is farther than the first (2/3, 1/3, 0).
    assert t_closeness(TABLE, QUASI, "illness", ground="equal", levels=LEVELS) == pytest.approx(0.4)
    assert t_closeness(TABLE, QUASI, "illness", ground="ordered", levels=LEVELS) == pytest.approx(0.35)


def test_lists_arrays_arrow_and_pandas_are_alike():
    frames = [{k: np.array(v) for k, v in TABLE.items()}, pa.table(TABLE).to_pydict(), pd.DataFrame(TABLE)]
    arrow = {name: pa.table(TABLE)[name] for name in TABLE}
    for columns in (*frames, arrow):
        assert classes(columns, QUASI) == classes(TABLE, QUASI)
        assert distinct_diversity(columns, QUASI, "illness") == 2


def test_an_empty_table_has_nothing():
    empty: dict[str, list[str]] = {name: [] for name in TABLE}
    assert k_anonymity(empty, QUASI) == distinct_diversity(empty, QUASI, "illness") == 0
    assert t_closeness(empty, QUASI, "illness", ground="equal", levels=LEVELS) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: k_anonymity(TABLE, ()),
        lambda: k_anonymity(TABLE, ("height",)),
        lambda: k_anonymity({"a": [1], "b": [1, 2]}, ("a", "b")),
        lambda: distinct_diversity(TABLE, QUASI, "height"),
        lambda: t_closeness(TABLE, QUASI, "illness", ground="equal", levels=("flu",)),
        lambda: t_closeness(TABLE, QUASI, "illness", ground="equal", levels=(*LEVELS, "flu")),
        lambda: earth_movers(np.ones(2) / 2, np.ones(2) / 2, ground="round"),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(PlanError):
        wrong()


def transport(one: np.ndarray, other: np.ndarray, distance: np.ndarray) -> float:
    """The cheapest way to move one law onto the other, as a linear programme."""
    m = len(one)
    leaving = [np.repeat(np.arange(m) == i, m) for i in range(m)]
    coming = [np.tile(np.arange(m) == j, m) for j in range(m)]
    rows = np.array(leaving + coming, dtype=float)
    found = linprog(distance.reshape(-1), A_eq=rows, b_eq=np.concatenate([one, other]), method="highs")
    return float(found.fun)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_the_cheapest_transport(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 7))
    one, other = rng.dirichlet(np.ones(m), 2)
    steps = np.abs(np.subtract.outer(np.arange(m), np.arange(m))) / (m - 1)
    assert earth_movers(one, other, ground="ordered") == pytest.approx(transport(one, other, steps))
    assert earth_movers(one, other, ground="equal") == pytest.approx(transport(one, other, 1 - np.eye(m)))
    scale = wasserstein_distance(np.arange(m), np.arange(m), one, other) / (m - 1)
    assert earth_movers(one, other, ground="ordered") == pytest.approx(scale)


# Pieces, each brought to a definition on its own and then put together.

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(LEVELS)), min_size=1, max_size=12)


def table(rows: list[tuple[str, str]]) -> dict[str, list[str]]:
    return {"place": [place for place, _ in rows], "illness": [illness for _, illness in rows]}


@settings(max_examples=300, deadline=None)
@given(ROWS, ROWS)
def test_anonymity_and_diversity_survive_a_partition(one, other):
    """A class of the whole is a union of classes of the pieces: it is no smaller, and entropy is concave."""
    quasi, whole = ("place",), table(one + other)
    for check in (
        lambda t: k_anonymity(t, quasi),
        lambda t: distinct_diversity(t, quasi, "illness"),
        lambda t: entropy_diversity(t, quasi, "illness"),
    ):
        assert check(whole) >= min(check(table(one)), check(table(other))) - 1e-12


@pytest.mark.parametrize("ground", ["equal", "ordered"])
def test_closeness_does_not_survive_a_partition(ground):
    """The counterexample: each piece is one class, like itself at distance 0; together the classes tell illness."""

    def distance(rows: list[tuple[str, str]]) -> float:
        return t_closeness(table(rows), ("place",), "illness", ground=ground, levels=LEVELS)

    ill, well = [("a", "flu")] * 4, [("b", "none")] * 4
    assert distance(ill) == distance(well) == 0
    assert distance(ill + well) == 0.5


def test_a_check_that_trusts_the_pieces_is_wrong_about_closeness():
    """The naive twin: call the whole as close as its farthest piece. It passes 0.1 where the truth is 0.5."""

    def naive(pieces: list[list[tuple[str, str]]]) -> float:
        return max(
            t_closeness(table(p), ("place",), "illness", ground="equal", levels=LEVELS) for p in pieces
        )

    pieces = [[("a", "flu")] * 4, [("b", "none")] * 4]
    truth = t_closeness(table([*pieces[0], *pieces[1]]), ("place",), "illness", ground="equal", levels=LEVELS)
    assert naive(pieces) <= 0.1 < truth
