"""The chain: replay on neighbours, a naive twin, what it learns with the noise taken out, and what it refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.errors import PlanError, SourceError
from reticent.synth.base import MissingMethod
from reticent.synth.learned import chain, descent
from reticent.synth.learned.chain import AutoregressiveChain, ChainModel
from reticent.synth.learned.descent import Pace
from reticent.synth.learned.gradient import LENGTH, ChainGradient, ChainLayout
from reticent.synth.marginals.study import plain
from reticent.synth.saved import load, save
from tests.noise.seeded import SeededBits
from tests.synth.marginals.trees import faults_when_replaced
from tests.synth.replay import APPROXIMATE, NOT_FILLED, PURE, faults, random_rows, run
from tests.synth.standins import ArrayCounts, NoSynthNoise, QuickSynthNoise, toy

# covers T20 T21 T23 T27


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Replays need no exact biases: those who look at what was learned ask for them."""
    if "replay" in request.node.name:
        monkeypatch.setattr(descent, "SIMULATED", 64)


QUICK = AutoregressiveChain(pace=Pace(steps=4))
DOMAIN = toy([2, 3, 2], universes={"b": "a = '1'"})


@pytest.mark.parametrize("holes", NOT_FILLED)
def test_replay_on_neighbours(holes: MissingMethod) -> None:
    """Each of 12 records removed, three added; records replaced, which come near to the bound and do not pass it."""
    counts = random_rows(DOMAIN, 12, 1)
    assert faults(QUICK, counts, holes, APPROXIMATE) == []
    found, most = faults_when_replaced(QUICK, counts, holes, APPROXIMATE)
    assert found == [] and 0.7 < most <= 1


class Unclipped(ChainGradient):
    """The naive twin: every record's vector three times as long as is said."""

    def add(self, block, totals) -> None:
        before = totals.copy()
        super().add(block, totals)
        totals += 2 * (totals - before)


def test_replay_notices_a_vector_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "ChainGradient", Unclipped)
    assert "moves further than it says" in faults(
        QUICK, random_rows(DOMAIN, 12, 1), MissingMethod.AVAILABLE, APPROXIMATE
    )


class Averaging(ChainGradient):
    """The naive twin: divided by the number of rows that answered, which one record changes for everybody."""

    def add(self, block, totals) -> None:
        super().add(block, totals)
        totals //= max(1, block.shape[1] // 4)


def test_replay_notices_a_mean_over_the_rows_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven and eight rows are divided by one and by two: a record moves what others brought."""
    monkeypatch.setattr(chain, "ChainGradient", Averaging)
    rows = ArrayCounts(np.zeros((8, 3), dtype=np.int64), toy([2, 3, 2]))
    assert "moves further than it says" in faults(QUICK, rows, MissingMethod.AVAILABLE, APPROXIMATE)


def together(n: int, seed: int, lost: float) -> ArrayCounts:
    """b is a but for one row in ten, c is by itself; `lost` of all answers are missing."""
    domain, rng = toy([3, 3, 2]), np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    b = np.where(rng.random(n) < 0.9, a, rng.integers(0, 3, n))
    cells = np.stack([a, b, rng.integers(0, 2, n)], axis=1)
    silence = np.array([axis.silence for axis in domain.axes])
    return ArrayCounts(np.where(rng.random(cells.shape) < lost, silence, cells), domain)


@pytest.mark.parametrize("lost", [0.0, 0.3])
def test_without_noise_it_learns_the_table(lost: float) -> None:
    """Pairs within .03 of the truth, half of the summed differences; independent columns would be .4 away."""
    model = run(
        AutoregressiveChain(pace=Pace(steps=150)),
        together(20_000, 3, lost),
        MissingMethod.AVAILABLE,
        APPROXIMATE,
        NoSynthNoise(),
    )
    truth, made = together(20_000, 3, 0.0).cells, model.draw(20_000, SeededBits(4))
    pairs = [np.bincount(3 * rows[:, 0] + rows[:, 1], minlength=9) / len(rows) for rows in (truth, made)]
    assert np.abs(pairs[0] - pairs[1]).sum() / 2 < 0.03
    assert abs(model.total - 20_000) < 1


def test_columns_keep_their_noisy_shares() -> None:
    """With noise: shares of the first column within what its noise allows, six deviations and the draw's."""
    model = run(QUICK, together(5_000, 3, 0.2), MissingMethod.AVAILABLE, APPROXIMATE, QuickSynthNoise(5))
    shares = np.bincount(model.draw(20_000, SeededBits(6))[:, 0], minlength=3) / 20_000
    assert np.abs(shares - [0.5, 0.3, 0.2]).max() < 0.05


def test_missing_values_are_drawn_only_where_they_are_a_category() -> None:
    for holes, is_drawn in ((MissingMethod.AVAILABLE, False), (MissingMethod.VALUES, True)):
        rows = together(2_000, 3, 0.3)
        drawn = run(QUICK, rows, holes, APPROXIMATE, NoSynthNoise()).draw(500, SeededBits(7))
        silence = np.array([axis.silence for axis in rows.domain.axes])
        assert (drawn == silence).any() == is_drawn


@pytest.mark.parametrize(
    ("domain", "spend", "words"),
    [
        (toy([2, 3]), PURE, "needs a delta"),
        (toy([2]), APPROXIMATE, "for one, use independent"),
        (toy([2000, 3000]), APPROXIMATE, "name fewer columns or bins"),
        (toy([10_000] * 10), APPROXIMATE, "name fewer columns or bins"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_a_row(domain, spend, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        AutoregressiveChain().check(domain, MissingMethod.AVAILABLE, spend)


def test_it_spends_what_it_says() -> None:
    """A third for columns, the rest in equal parts; the bound of a respondent with three records is three lengths."""
    spend = replace(APPROXIMATE, records=3)
    noise = QuickSynthNoise(1)
    met: list[tuple[int, Fraction]] = []
    noise.gaussian_many = lambda answers, *, sensitivity, rho: met.append((sensitivity, rho)) or list(answers)
    run(QUICK, together(100, 1, 0.1), MissingMethod.AVAILABLE, spend, noise)
    gradients = [each for each in met if each[0] == 3 * LENGTH]
    assert len(gradients) == 4
    assert sum(rho for _, rho in met[:3]) * 2 == sum(rho for _, rho in gradients)


def test_a_saved_chain_comes_back_and_a_changed_one_does_not(tmp_path) -> None:
    rows = together(500, 2, 0.1)
    model = run(QUICK, rows, MissingMethod.AVAILABLE, APPROXIMATE, QuickSynthNoise(1))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model", rows.domain.schema)
    assert (again.claim, again.total) == (model.claim, model.total)
    assert (again.draw(100, SeededBits(1)) == model.draw(100, SeededBits(1))).all()
    data = bytearray((tmp_path / "model" / "parameters.npy").read_bytes())
    data[-1] ^= 1
    (tmp_path / "model" / "parameters.npy").write_bytes(bytes(data))
    with pytest.raises(SourceError, match="not the array that was saved"):
        load(tmp_path / "model", rows.domain.schema)
    with pytest.raises(SourceError, match="other levels"):
        load(tmp_path / "model", toy([3, 4, 2]).schema)


def test_the_number_of_parameters_is_that_of_the_layout() -> None:
    for holes in (MissingMethod.AVAILABLE, MissingMethod.VALUES):
        layout = ChainLayout.of(plain(DOMAIN, holes))
        assert ChainModel.size(DOMAIN, holes) == layout.parameters
