"""Survey intervals: the world is the design it says, a run has both intervals, and rows have the columns of the experiment."""

import numpy as np
import pytest

from reticent.lab.experiments import find
from reticent.lab.experiments import survey_intervals as made
from reticent.lab.run.experiment import table_of
from reticent.lab.world.clusters import KISH, SHARES, Clusters


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_have_the_design_effect_asked_for(weighted: bool) -> None:
    """300 surveys: the variance over that of a simple sample; its standard error is 8 %, so five of them are allowed."""
    world = Clusters(people=3000, units=60, effect=3.0, weighted=weighted)
    found = []
    for seed in range(300):
        rows = world.draw(np.random.default_rng(seed))
        weight, yes = rows["w"].to_numpy(), np.asarray(rows["y5"].to_pylist()) == "yes"
        found.append((weight * yes).sum() / weight.sum())
    truth = world.truth["y5"]
    effect = np.var(found) / (truth * (1 - truth) / 3000)
    assert 0.6 * 3 < effect < 1.4 * 3
    assert abs(np.mean(found) - truth) < 5 * np.std(found) / np.sqrt(300)


def test_weights_have_the_spread_that_kish_asks_for() -> None:
    weight = (
        Clusters(people=40_000, units=40, effect=1.5, weighted=True)
        .draw(np.random.default_rng(1))["w"]
        .to_numpy()
    )
    assert abs((weight**2).mean() / weight.mean() ** 2 - KISH) < 0.03 and weight.max() <= 4


def test_a_run_has_both_intervals_of_every_estimate() -> None:
    """One survey of the smallest case, and one with errors of its own."""
    names = list(made.CASES)
    runs = {0: made.run(0, 5), len(names): made.run(len(names), 6)}
    assert len(runs[0]) == 3 * len(SHARES)
    rows = made.told(table_of(runs))
    assert {row["interval"] for row in rows} == {"privacy", "total", made.NOISE_ONLY}
    columns = {"case", "leading", "interval", "level", "coverage", "width_ratio", "runs"}
    assert all(columns <= set(row) and row["case"] == names[0] and row["runs"] == 2 for row in rows)
    assert [row["leading"] for row in rows] == [True, True, False]


def test_it_is_in_the_list_with_a_piece_for_every_case() -> None:
    experiment = find("survey-intervals")
    assert len(experiment.pieces) == len(made.CASES) and experiment.runs == 400
    assert sum(case.leading for case in made.CASES.values()) >= 8
