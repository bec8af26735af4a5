"""Ours beside the published mechanism: the same rows filled alike, and a comparison that tells better from worse."""

import numpy as np
import pyarrow as pa
import pytest

from reticent.lab.experiments import donors_published as pairs
from reticent.lab.experiments.donors_income import silent, value_of, world
from reticent.lab.noise import NoNoise
from reticent.lab.run.experiment import OURS, Outcome, table_of
from reticent.release.statistics import evaluate

SIZE = 3_000


def test_all_three_with_the_nearest_donor_answer_from_the_same_filled_rows() -> None:
    """With the noise taken out they say the same six numbers, so that a run compares noise and nothing else."""
    rows = silent(SIZE, 0)
    told = [
        {name: value_of(answer) for name, answer in evaluate(plan, rows.filled, NoNoise()).items()}
        for name, plan in pairs.plans(SIZE, "2").items()
        if name not in (OURS, pairs.IGNORE)
    ]
    assert told[0] == pytest.approx(told[1], abs=1e-9) and told[0] == pytest.approx(told[2], abs=1e-9)
    assert told[1] == pytest.approx(rows.exact)
    capped = evaluate(pairs.plans(SIZE, "2")[OURS], rows.capped, NoNoise())
    assert {name: value_of(answer) for name, answer in capped.items()} == pytest.approx(rows.capped_exact)


def test_ours_with_the_size_known_is_on_the_published_ones_terms() -> None:
    """The same epsilon, no error bar and public sizes in both; ours by default pays for both from the same epsilon."""
    theirs, ours, known = (pairs.plans(SIZE, "2")[name] for name in (pairs.THEIRS, OURS, pairs.KNOWN))
    assert theirs.cost == ours.cost == known.cost == 12
    for plan in (theirs, known):
        assert all(ask.bar == 0 and ask.epsilon == 2 for ask in plan.asks)
        assert [ask.query.size for ask in plan.asks] == list(world(SIZE).sizes.values())  # type: ignore[union-attr]


def test_a_run_has_all_lines() -> None:
    """Four methods, six asks, against the truth and against the filled answers; `ignore` has no filled answers."""
    outcomes = pairs.run(0, 1, size=SIZE, runs_a_mask=2, epsilons=("2",))
    assert len(outcomes) == (4 * 2 + 1) * 6 and all(np.isfinite(line.estimate or 0) for line in outcomes)
    assert {line.method.removesuffix(pairs.ALONE) for line in outcomes} == set(pairs.plans(SIZE, "2"))


def test_ignoring_is_answered_from_those_who_answered() -> None:
    rows, plan = silent(SIZE, 0), pairs.plans(SIZE, "2")[pairs.IGNORE]
    without = {name: value_of(answer) for name, answer in evaluate(plan, rows.available, NoNoise()).items()}
    assert not plan.repair.filled() and without != pytest.approx(rows.exact)


def made(spread: float, runs: int = 400) -> pa.Table:
    """Runs in which our error has this spread, and the published one's 1; both on an error that masks share."""
    rng, found = np.random.default_rng(5), {}
    for run in range(runs):
        shared = np.random.default_rng(run // 10).normal()
        drawn = {pairs.THEIRS: rng.normal(), OURS: spread * rng.normal(), pairs.KNOWN: spread * rng.normal()}
        drawn[pairs.HUBS] = drawn[pairs.KNOWN]
        found[run] = [
            Outcome(method=name + alone, query="q", epsilon=2.0, truth=0.0, estimate=error + here)
            for alone, here in (("", shared), (pairs.ALONE, 0.0))
            for name, error in drawn.items()
        ]
    return table_of(found)


@pytest.mark.parametrize(("spread", "says"), [(0.5, "better"), (1.0, "nothing"), (2.0, "worse")])
def test_the_comparison_tells_better_from_worse_and_neither_from_chance(spread: float, says: str) -> None:
    """400 runs on 40 masks of noise alone: an interval for half the error ends below 1, for twice it begins above.

    Of equals one seed in twenty would say something; the seed is fixed, and so is what it says.
    """
    rows = pairs.pairs(made(spread), runs_a_mask=10)
    (found,) = [
        row for row in rows if row["item"] == f"{OURS}{pairs.ALONE}: median error over the published one's"
    ]
    (nearer,) = [
        row for row in rows if row["item"] == f"{OURS}{pairs.ALONE}: share of runs in which it is the nearer"
    ]
    assert found["low"] <= found["value"] <= found["high"]
    verdict = "better" if found["high"] < 1 else "worse" if found["low"] > 1 else "nothing"
    assert verdict == says
    assert (nearer["value"] > 0.5) == (spread < 1) or spread == 1


def test_runs_of_a_mask_that_are_not_all_there_are_left_out() -> None:
    """395 runs of ten a mask: the last five do not count."""
    whole, cut = (pairs.pairs(made(0.5, runs), runs_a_mask=10) for runs in (390, 395))
    assert whole == cut
