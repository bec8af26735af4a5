"""Bootstrap copies: their spread is that of surveys and noise, an even drawing in its place is not, and combining them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import reticent
from reticent.errors import PlanError
from reticent.synth import bootstrap as module
from reticent.synth.answer import answer_directly
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.bootstrap import bootstrap
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.questions import read_question
from tests.noise.seeded import SeededBits
from tests.synth.standins import ArrayCounts, QuickSynthNoise, toy

SPEND = Spend(epsilon=Fraction(3), delta=Fraction(1, 10**6))
ROWS = 2_000


def fitted(silent: float = 0.0):
    rng = np.random.default_rng(4)
    domain = toy([2, 3])
    a = (rng.random(ROWS) < 0.3).astype(int)
    cells = np.stack([a, (a + rng.integers(0, 2, ROWS)) % 3], axis=1)
    cells = np.where(rng.random(cells.shape) < silent, [2, 3], cells)
    method = AllPairs(iterations=20, last=20)
    counts = ArrayCounts(cells, domain)
    return method.fit(
        FitTask(
            counts, domain, MissingMethod.AVAILABLE, SPEND, noise=QuickSynthNoise(seed=1), step=lambda _: None
        )
    )


def share(network) -> float:
    """The model's share of the second answer to the first column, by the joint table of both."""
    one, other = network.steps
    joint = one.table[:, None] * other.table
    return float(joint.sum(axis=1 if one.place == 0 else 0)[1])


@pytest.mark.parametrize("silent", [0.0, 0.3])
def test_copies_vary_as_surveys_and_noise_do(silent):
    """200 copies: the spread of a share beside its direct standard error, within four of its own standard errors."""
    network = fitted(silent)
    spread = np.std([share(each) for each in bootstrap(network, 200, SeededBits(2))])
    (direct,) = answer_directly(read_question({"proportion": "a = '1'"}, network.domain), network.lists)
    assert spread == pytest.approx(direct.standard_error, rel=0.25)


def test_rows_spread_out_evenly_would_hide_the_sampling_error(monkeypatch):
    """The twin draws rows as synthetic tables are drawn: its copies vary by noise alone."""
    network = fitted()
    right = np.std([share(each) for each in bootstrap(network, 60, SeededBits(2))])
    monkeypatch.setattr(module, "_sampled", lambda net, rows, bits: net.draw(rows, bits))
    evenly = np.std([share(each) for each in bootstrap(network, 60, SeededBits(2))])
    assert evenly < 0.75 * right


def test_the_third_vector():
    made = reticent.combine(0.30, [0.31, 0.29, 0.33, 0.30, 0.32])
    assert (made.high - made.low) / 2 == pytest.approx(0.0480894, abs=1e-7)
    assert made.estimate == 0.30 and made.degrees == 4 and not made.warning
    assert reticent.combine(0.3, [0.3, 0.31, 0.3, 0.31, 0.3], standard_errors=[0.1]).warning


@pytest.mark.parametrize(
    ("copies", "words"),
    [
        ([1.0] * 4, "fewer than 5"),
        ([1.0, 2.0, 3.0, 4.0, float("nan")], "no number"),
        (["a", "b", "c", "d", "e"], "no number"),
        ([[1.0], [2.0], [3.0], [4.0], [5.0]], "no number"),
    ],
)
def test_what_cannot_be_combined_is_refused(copies, words):
    with pytest.raises(PlanError, match=words):
        reticent.combine(1.0, copies)


def test_copies_that_all_say_the_same_are_warned_of():
    assert "tells nothing" in reticent.combine(0.3, [0.3] * 5).warning
    with pytest.raises(PlanError, match=r"released.*no number"):
        reticent.combine(float("inf"), [0.3] * 5)


def test_a_model_without_tables_has_no_copies():
    network = fitted()
    with pytest.raises(PlanError, match="noisy tables"):
        next(bootstrap(replace(network, lists=None), 5, SeededBits(1)))
