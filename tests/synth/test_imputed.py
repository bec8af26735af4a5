"""Impute first with a model of one's choice: replay on neighbours, what is spent, what is filled, what is refused."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.plan.synth import read_synth
from reticent.schema.codebook import schema_from
from reticent.synth.base import MissingMethod
from reticent.synth.imputed import IMPUTERS, ImputeFirst, completed, imputing
from reticent.synth.learned import descent, kamino
from reticent.synth.learned.chain import AutoregressiveChain
from reticent.synth.learned.descent import Pace
from reticent.synth.learned.kamino import ColumnPace, Kamino
from reticent.synth.marginals.independent import Independent
from reticent.synth.registry import find
from reticent.synth.spending import total_of
from tests.noise.seeded import SeededBits
from tests.release.synthetic import TABLE, survey
from tests.synth.learned.test_chain import together
from tests.synth.learned.test_kamino import Labelled
from tests.synth.replay import APPROXIMATE, alike, is_drawable, random_rows, run
from tests.synth.standins import FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, spent, toy

# covers T20 T27

CHAIN = AutoregressiveChain(pace=Pace(steps=3))
KAMINO = Kamino(pace=ColumnPace(steps=2))
MODEL = MissingMethod.MODEL


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays need no exact biases."""
    monkeypatch.setattr(descent, "SIMULATED", 256)
    monkeypatch.setattr(kamino, "SIMULATED", 256)


@pytest.mark.parametrize("imputer", [CHAIN, KAMINO], ids=["chain", "kamino"])
def test_replay_on_neighbours(imputer) -> None:
    """Each record removed, with every other row's draws as they were: same calls, moves within their bounds, same model."""
    rows = random_rows(toy([2, 3, 2], universes={"b": "a = '1'"}), 8, 3)
    counts = Labelled(rows.cells, rows.domain, tuple(range(8)))
    method = ImputeFirst(imputer=imputer, method=Independent(), share=Fraction(1, 4))
    first = FrozenSynthNoise()
    model = run(method, counts, MODEL, APPROXIMATE, first)
    assert spent(first.met, pure=False) <= total_of(APPROXIMATE)
    for row in range(8):
        again = FrozenSynthNoise(script=first.given)
        same = run(method, counts.without(row), MODEL, APPROXIMATE, again)
        assert [m.parameters for m in again.met] == [m.parameters for m in first.met]
        assert all(a.distance(b) <= a.sensitivity for a, b in zip(first.met, again.met, strict=True))
        assert alike(model, same)


@pytest.mark.parametrize("share", ["0.25", "0.5", "0.75"])
def test_the_document_s_splits_are_spent(share: str) -> None:
    """What the imputer's calls cost is the share, and nearly all of it."""
    whole = total_of(APPROXIMATE)
    noise = FrozenSynthNoise()
    method = ImputeFirst(imputer=CHAIN, method=Independent(), share=Fraction(share))
    model = run(method, random_rows(toy([2, 3]), 20, 1), MODEL, APPROXIMATE, noise)
    first = spent(noise.met[: 2 + CHAIN.pace.steps], pure=False)
    assert abs(float(first / whole) - float(share)) < 0.001
    assert spent(noise.met, pure=False) <= whole
    assert model.claim == method.claim(toy([2, 3]), MODEL, APPROXIMATE)
    mean = imputing(Independent(), MissingMethod.MEAN, None, Fraction(share))
    noise = FrozenSynthNoise()
    run(mean, random_rows(toy([2, 3]), 20, 1), MissingMethod.MEAN, APPROXIMATE, noise)
    assert abs(float(spent(noise.met[:2], pure=False) / whole) - float(share)) < 0.001


@pytest.mark.parametrize("name", ["chain", "kamino"])
def test_missing_answers_follow_the_row_s_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """b is a but for one row in ten: without noise, more than two thirds of filled b are a; a mean would give a half at most."""
    monkeypatch.setattr(descent, "SIMULATED", 4096)
    rows = together(5_000, 3, 0.3)
    steps = {"chain": AutoregressiveChain(pace=Pace(steps=100)), "kamino": Kamino(pace=ColumnPace(steps=60))}
    model = run(steps[name], rows, MissingMethod.AVAILABLE, APPROXIMATE, NoSynthNoise())
    silence = np.array([axis.silence for axis in rows.domain.axes])
    was = rows.cells == silence
    made = completed(rows, model, SeededBits(2)).cells
    assert (made[~was] == rows.cells[~was]).all()
    assert (made < silence).all()
    only_b = was[:, 1] & ~was[:, 0]
    assert (made[only_b, 0] == made[only_b, 1]).mean() > 2 / 3


def test_every_imputer_there_is_completes_rows() -> None:
    for name in IMPUTERS:
        rows = random_rows(toy([2, 3]), 30, 1)
        model = run(find(name), rows, MissingMethod.AVAILABLE, APPROXIMATE, QuickSynthNoise(1))
        silence = np.array([axis.silence for axis in rows.domain.axes])
        assert (completed(rows, model, SeededBits(2)).cells < silence).all()
        assert is_drawable(model)


REFUSED = {
    "no such model": ({"impute_model": "chian"}, "synth.impute_model.*did you mean 'chain'"),
    "one that cannot complete": (
        {"impute_model": "aim-printed"},
        "synth.impute_model: is one of independent",
    ),
    "nothing to pay for": (
        {"impute_share": "0.5", "missing": "available"},
        "synth.impute_share: goes with missing",
    ),
    "a share of all": ({"impute_share": "1"}, "synth.impute_share: the share for filling"),
    "a share as a number": ({"impute_share": 0.5}, "synth.impute_share"),
    "a mean with a model": (
        {"impute_model": "chain", "missing": "impute-mean"},
        "synth.impute_model: a mean needs",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name(case: str) -> None:
    given, words = REFUSED[case]
    raw = {**TABLE, "delta": "0.000001", "missing": "impute-model", **given}
    with pytest.raises(PlanError, match=words):
        read_synth(raw, schema_from(survey().book()))


def test_the_page_says_who_imputed_and_for_how_much() -> None:
    raw = {
        **TABLE,
        "delta": "0.000001",
        "missing": "impute-model",
        "impute_model": "chain",
        "impute_share": "0.25",
    }
    synth = read_synth(raw, schema_from(survey().book()))
    assert synth.words().endswith("each row from itself, by chain, for 0.25 of the amount")
    assert {page for _, page in synth.claim.rests_on} >= {
        "proofs/synth/fills.md",
        "proofs/synth/learned/chain.md",
        "proofs/synth/marginals/independent.md",
    }
