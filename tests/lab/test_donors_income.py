"""The donors experiment: silence that biases, donors that mend it, and bars that hold what they say."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.wants import Tallies
from reticent.lab.experiments import donors_income
from reticent.lab.experiments.donors_income import figures, widths
from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.run.experiment import OURS, Outcome, table_of
from reticent.lab.world import workers as wages
from reticent.lab.world.state import people
from reticent.plan.statistics import Statistics
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from reticent.sensitivity.hubs import HubCache

SIZE = 60_000
MEAN = "mean wage, 20-59"


@pytest.fixture(scope="module")
def state() -> pa.Table:
    return people(SIZE, seed=donors_income.STATE_SEED)


def tallied(rows: pa.Table, **said: object) -> tuple[Tallies, dict[str, float]]:
    plan = wages.plan(SIZE, epsilon="1", **said)  # type: ignore[arg-type]
    engine = Survey(rows, codebook={}, threads=1).open()
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    found = evaluate(plan, tallies, NoNoise())
    return tallies, {name: donors_income.value_of(answer) for name, answer in found.items()}


def test_silence_biases_the_mean_and_donors_take_most_of_it_away(state: pa.Table) -> None:
    """Ignoring the silent biases mean wages by 2 to 4 %; filled from donors, less than a third of that is left.

    Over four masks, so that the chance of one draw (about 0.4 %) hardly matters.
    """
    truth = wages.truth_of(state, SIZE)
    drawn = [wages.silent(state, seed=mask) for mask in range(4)]
    ignored = np.mean([tallied(rows, donors=False)[1][MEAN] for rows in drawn]) / truth[MEAN] - 1
    filled = np.mean([tallied(rows)[1][MEAN] for rows in drawn]) / truth[MEAN] - 1
    assert 0.02 < ignored < 0.04
    assert abs(filled) < ignored / 3


def test_bars_hold_the_filled_answer_as_often_as_they_say(state: pa.Table) -> None:
    """600 draws of noise; counts five standard deviations off nominal have chance below 1e-6.

    By construction bars may hold up to two points more than they say, and a tenth of a point less. Bars two
    thirds as wide are noticed.
    """
    whole = wages.plan(SIZE, epsilon="0.8", bar="0.2")
    asks = tuple(ask for ask in whole.asks if ask.name == MEAN)
    plan = replace(whole, products=(Statistics(asks=asks),))
    tallies, exact = tallied(wages.silent(state, seed=1))
    book, rng = HubCache(tallies, plan.schema, plan.repair), np.random.default_rng(3)
    runs, held = 600, {level: 0 for level in donors_income.LEVELS.values()}
    naive = 0
    for _ in range(runs):
        estimate = evaluate(plan, tallies, QuickNoise(rng), book=book)[MEAN].estimates[0]
        for level in held:
            low, high = estimate.interval(level)
            held[level] += low <= Fraction(exact[MEAN]) <= high
        low, high = estimate.interval(Fraction(19, 20))
        naive += abs(float(estimate.value) - exact[MEAN]) <= float(high - low) / 2 / 1.5
    for level, count in held.items():
        spread = 5 * float(runs * level * (1 - level)) ** 0.5
        assert -spread - 0.001 * runs <= count - runs * float(level) <= spread + 0.02 * runs
    assert naive < runs * 0.95 - 5 * (runs * 0.95 * 0.05) ** 0.5


def test_a_run_has_every_method_where_it_is_private() -> None:
    """The published mechanism is left out below 2 ln 2; every other line is there, with finite numbers."""
    made = donors_income.run(0, 1, size=20_000, runs_a_mask=1, epsilons=("1", "2"))
    methods = {(line.method, line.epsilon) for line in made}
    assert ("published", 1.0) not in methods and ("published", 2.0) in methods
    both = [
        name + what for name in (OURS, donors_income.HUBS) for what in ("", ", noise alone", ", no noise")
    ]
    for method in ("ignore", "global", *both, *donors_income.LEVELS):
        assert (method, 1.0) in methods
    assert len(made) == 6 * (2 * 11 + 2)
    assert all(np.isfinite(line.estimate or 0.0) for line in made)
    assert "donors-income" in figures(table_of({0: made}), size=20_000)


def test_widths_are_compared_with_the_quantile_of_the_errors() -> None:
    """Errors -2, -1, 1, 2 have median size 1.5: a bar of width 6 is twice the oracle's 3."""
    lines = [
        Outcome(method="bar 50", query="q", epsilon=1.0, truth=0.0, estimate=e, low=e - 3, high=e + 3)
        for e in (-2.0, -1.0, 1.0, 2.0)
    ]
    (row,) = widths(table_of({index: [line] for index, line in enumerate(lines)}))
    assert row["value"] == pytest.approx(2.0)


def test_capped_donors_fill_as_well_and_need_less_noise(state: pa.Table) -> None:
    """Without noise about as near to the truth as the nearest donor; with it, a third of the spread at epsilon 1."""
    truth, rows = wages.truth_of(state, SIZE), wages.silent(state, seed=2)
    tallies, exact = tallied(rows, capped=True)
    assert abs(exact[MEAN] / truth[MEAN] - 1) < 0.015
    few, hubs = wages.plan(SIZE, epsilon="1", capped=True), wages.plan(SIZE, epsilon="0.8", bar="0.2")
    near, near_exact = tallied(rows)
    rng, book = np.random.default_rng(1), HubCache(near, hubs.schema, hubs.repair)

    def spread(plan: object, held: Tallies, about: float, **options: object) -> float:
        found = [evaluate(plan, held, QuickNoise(rng), **options)[MEAN].estimates[0].value for _ in range(60)]  # type: ignore[arg-type]
        return float(np.median(np.abs(np.array(found, dtype=float) - about)))

    assert spread(few, tallies, exact[MEAN]) < spread(hubs, near, near_exact[MEAN], book=book) / 2
