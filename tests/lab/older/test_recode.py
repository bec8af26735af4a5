"""Recoding reaches k-anonymity: globally with the least loss there is, locally with no class below k."""

from itertools import product

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.papers.anonymity import Hierarchy, intervals, k_anonymity, recode_globally, recode_locally

AGE = intervals(20, 59, [5, 10, 20])
PLACE = Hierarchy(
    {
        "Brest": ("west", "anywhere"),
        "Nantes": ("west", "anywhere"),
        "Lille": ("north", "anywhere"),
        "Calais": ("north", "anywhere"),
    }
)
HIERARCHIES = {"age": AGE, "place": PLACE}


def people(seed: int, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 60, n),
        "place": rng.choice(list(PLACE.chains), n, p=[0.5, 0.3, 0.15, 0.05]),
    }


def test_hierarchies_by_hand():
    assert [AGE.at(37, height) for height in range(5)] == [37, "35 to 39", "30 to 39", "20 to 39", "20 to 59"]
    assert (AGE.share(37, 0), AGE.share(37, 1), AGE.share(37, 4)) == (0, 4 / 39, 1)
    assert PLACE.at("Lille", 1) == "north" and PLACE.height == 2


@pytest.mark.parametrize("k", [2, 5, 20])
@pytest.mark.parametrize("seed", range(3))
def test_both_ways_reach_k(seed, k):
    columns = people(seed, 200)
    for recode in (recode_globally, recode_locally):
        made = recode(columns, HIERARCHIES, k=k)
        assert k_anonymity(made.columns, tuple(HIERARCHIES)) >= k > k_anonymity(columns, tuple(HIERARCHIES))
        assert 0 < made.loss <= 1


@pytest.mark.parametrize("seed", range(4))
def test_global_recoding_loses_least_of_all_heights(seed):
    """Every height of every column, by brute force."""
    columns, k = people(seed, 60), 4
    best = 1.0
    for a, p in product(range(AGE.height + 1), range(PLACE.height + 1)):
        made = {"age": [AGE.at(x, a) for x in columns["age"].tolist()]}
        made["place"] = [PLACE.at(x, p) for x in columns["place"].tolist()]
        if k_anonymity(made, ("age", "place")) >= k:
            shares = [
                AGE.share(x, a) + PLACE.share(y, p)
                for x, y in zip(columns["age"].tolist(), columns["place"].tolist(), strict=True)
            ]
            best = min(best, sum(shares) / 120)
    assert recode_globally(columns, HIERARCHIES, k=k).loss == pytest.approx(best)


def test_local_recoding_keeps_detail_where_there_are_many():
    """One age is crowded and the others are rare: only the rare ones need to be coarse."""
    columns = {"age": [30] * 50 + [20, 22, 25, 41, 47, 52, 58], "place": ["Brest"] * 57}
    local, whole = (recode(columns, HIERARCHIES, k=3) for recode in (recode_locally, recode_globally))
    assert local.loss < whole.loss and len(set(local.heights)) > 1 == len(set(whole.heights))


def test_recoded_values_are_ancestors():
    columns = people(9, 100)
    made = recode_locally(columns, HIERARCHIES, k=5)
    for name, hierarchy in HIERARCHIES.items():
        for value, coarse in zip(columns[name].tolist(), made.columns[name], strict=True):
            assert coarse in hierarchy.chains[value]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Hierarchy({"a": ("x",), "b": ("x", "y")}),
        lambda: Hierarchy({"a": ("x",), "b": ("y",)}),
        lambda: Hierarchy({"a": ("x", "p", "all"), "b": ("x", "q", "all")}),
        lambda: Hierarchy({}),
        lambda: intervals(0, 9, [2, 3]),
        lambda: AGE.at(99, 1),
        lambda: recode_globally({"age": [20]}, {}, k=1),
        lambda: recode_globally({"age": [20]}, HIERARCHIES, k=1),
        lambda: recode_locally({"age": [20]}, {"age": AGE}, k=2),
        lambda: recode_locally({"age": [20]}, {"age": AGE}, k=0),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(PlanError):
        wrong()


def test_an_error_names_no_value():
    with pytest.raises(PlanError) as problem:
        recode_globally({"age": [20, 77]}, {"age": AGE}, k=1)
    assert "77" not in str(problem.value)
