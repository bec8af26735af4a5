"""Surveys for the coverage of filled columns: silence at random within the levels, not without them; and caps side by side."""

import numpy as np
import pytest

from reticent.lab.experiments import donors_caps, donors_coverage
from reticent.lab.experiments.donors_coverage import CASES, TOTAL, SilentClusters, plan_of, run, told
from reticent.lab.run.experiment import table_of
from reticent.plan.regression import Regressions


def test_silence_is_at_random_within_classes_and_not_among_all():
    """40,000 people: five standard errors of the difference within each class and answer."""
    world = SilentClusters(people=40_000, units=100, effect=1.0, hush=0.3)
    rows, whole = (
        SilentClusters(people=40_000, units=100, effect=1.0, hush=hush).draw(np.random.default_rng(5))
        for hush in (0.3, 0.0)
    )
    wage, silent = whole["wage"].to_numpy(), rows["wage"].is_null().to_numpy()
    assert abs(silent.mean() - 0.3) < 0.02
    assert wage[silent].mean() - wage[~silent].mean() > 1.0
    cell = np.char.add(np.asarray(rows["class"].to_pylist()), np.asarray(rows["y6"].to_pylist()))
    for each in np.unique(cell):
        here, hush = wage[cell == each], silent[cell == each]
        error = here.std() * np.sqrt(1 / hush.sum() + 1 / (~hush).sum())
        assert abs(here[hush].mean() - here[~hush].mean()) < 5 * error
    assert world.facts["wage"] == pytest.approx(wage.mean(), rel=0.02)


@pytest.mark.parametrize("name", ["no clusters", "effect 2, weighted"])
def test_every_estimate_has_both_intervals_and_a_truth(name: str):
    case, plan = CASES[name], plan_of(name)
    outcomes = run(list(CASES).index(name), 1)
    assert len(outcomes) == 2 * len(case.world.facts) and plan.product(Regressions) is not None
    assert all(one.low is not None and one.high is not None and one.low < one.high for one in outcomes)
    total, noise = ([one for one in outcomes if (one.method == TOTAL) is kind] for kind in (True, False))
    for wide, narrow in zip(total, noise, strict=True):
        assert wide.low <= narrow.low and narrow.high <= wide.high  # type: ignore[operator]
        is_chosen = str(wide.query).endswith("median")
        assert is_chosen or (wide.low, wide.high) != (narrow.low, narrow.high)
    rows = told(table_of({0: outcomes}))
    sums = set() if case.weighted else {"total", "table", "table that adds up"}
    assert {row["of"] for row in rows} == {"shares", "mean", "slope", "median", *sums}
    assert all(row["runs"] == 1 for row in rows)


def test_the_twin_expects_hardly_anything_and_is_not_leading():
    twin = CASES["one donor, 40 % silent, 1 % expected"]
    assert (
        twin.expected == "0.01"
        and not twin.leading
        and donors_coverage.experiment().pieces[-1].startswith("other/")
    )


def test_larger_caps_are_noisier_and_all_fill_the_same_gaps():
    """2,000 people: the noise of a plan is that of its caps; every scheme has its lines."""
    sds = [
        donors_caps.plan_of(2_000, caps, "1").routes[0].parts[-1].bound  # type: ignore[union-attr]
        for caps in ((1, 1, 1, 1), (2, 1, 1, 1), (3, 2, 1, 1))
    ]
    assert sds == sorted(sds) and len(set(sds)) == 3
    outcomes = donors_caps.run(0, 1, size=2_000)
    schemes = {one.method for one in outcomes}
    assert len(schemes) == 2 * len(donors_caps.CAPS) + 1
    assert len(outcomes) == 6 * (1 + len(donors_caps.CAPS) * (1 + 2 * donors_caps.DRAWS))
