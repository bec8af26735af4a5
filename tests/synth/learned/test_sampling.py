"""Training over Poisson samples: fair coins for everybody, one record moves its own part, refusals, and the twins."""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.engine.coded import LocalCodedRows, coins
from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.synth.base import MissingMethod
from reticent.synth.learned import descent
from reticent.synth.learned.chain import AutoregressiveChain
from reticent.synth.learned.gradient import LENGTH, ChainGradient, ChainLayout
from reticent.synth.learned.training import PoissonSample, SampledSteps, sampled_multiplier
from reticent.synth.marginals.study import plain
from reticent.synth.spending import Accountant
from tests.noise.seeded import SeededBits
from tests.synth.learned.test_chain import together
from tests.synth.replay import APPROXIMATE, PURE, RHO, alike, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, toy

# covers T20 T21 T27

SAMPLED = AutoregressiveChain().sampling(Fraction(1, 4), 5)
DOMAIN = toy([2, 3, 2], universes={"b": "a = '1'"})
AVAILABLE = MissingMethod.AVAILABLE


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "learns" not in request.node.name:
        monkeypatch.setattr(descent, "SIMULATED", 64)


class Planted:
    """Bits that were written down before; words in the order in which they are asked for."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, n: int) -> int:
        found = 0
        for _ in range(n // 64):
            found = found << 64 | self.words.pop(0)
        return found


def test_a_tie_is_settled_by_further_digits() -> None:
    """One third has the digits 0101...: words below, above, and equal once and twice to its first."""
    third = (1 << 64) // 3
    swapped = int.from_bytes(third.to_bytes(8), "little")  # words of a list stand as the machine has them
    one = coins(3, Fraction(1, 3), Planted(0, (1 << 64) - 1, swapped, third - 1))
    assert one.tolist() == [True, False, True]
    assert not coins(1, Fraction(1, 3), Planted(swapped, third, third + 1))[0]
    assert not coins(1, Fraction(1, 2), Planted(int.from_bytes((1 << 63).to_bytes(8), "little")))[0]


@pytest.mark.parametrize("rate", ["0.02", "0.3"])
def test_coins_fall_with_the_stated_chance_and_no_other(rate: str) -> None:
    """400,000 coins; six deviations, a false alarm of 2e-9; one tenth more or less is found out."""
    n, q = 400_000, float(Fraction(rate))
    share = coins(n, Fraction(rate), SeededBits(3)).mean()
    off = 6 * (q * (1 - q) / n) ** 0.5
    assert abs(share - q) < off
    assert abs(share - 1.1 * q) > off < abs(share - 0.9 * q)


def test_the_engine_adds_up_exactly_those_who_were_drawn() -> None:
    """Blocks in turn, the same coins: the sum of the vectors of those with heads."""
    rows = random_rows(DOMAIN, 60, 2)
    layout = ChainLayout.of(plain(DOMAIN, AVAILABLE))
    work = ChainGradient(layout=layout, weights=np.zeros(layout.parameters, dtype=np.int64))
    cells = rows.cells.T.astype(np.uint8)
    held = LocalCodedRows(
        sizes=DOMAIN.shape,
        silences=[axis.silence for axis in DOMAIN.axes],
        blocks=[cells[:, :25], cells[:, 25:]],
    )
    found = held.sampled_sum(work, Fraction(1, 3), SeededBits(9))
    bits = SeededBits(9)
    heads = np.concatenate([coins(n, Fraction(1, 3), bits) for n in (25, 35)])
    assert 5 < heads.sum() < 40
    assert (found == ArrayCounts(rows.cells[heads], DOMAIN).summed(work)).all()


@dataclass(frozen=True)
class Named(ArrayCounts):
    """Rows with names, by which their coins fall in each step, whoever else is there."""

    names: tuple[int, ...] = ()

    def sampled_sum(self, work, rate, bits):
        turn = bits.take(64)  # one word a step, whatever the rows
        heads = [np.random.default_rng([name, turn]).random() < rate for name in self.names]
        return ArrayCounts(self.cells[np.array(heads, dtype=bool)], self.domain).summed(work)

    def without(self, row: int) -> "Named":
        kept = tuple(name for at, name in enumerate(self.names) if at != row)
        return type(self)(np.delete(self.cells, row, axis=0), self.domain, kept)


class OfObserved(Named):
    """The naive twin: as many as planned of those who answered everything, so at a rate that others' silence raises."""

    def sampled_sum(self, work, rate, bits):
        silence = np.array([axis.silence for axis in self.domain.axes])
        told = (self.cells != silence).all(axis=1).sum()
        return super().sampled_sum(work, min(1, rate * len(self.cells) / max(1, told)), bits)


class OfBatch(Named):
    """The naive twin: the mean over those who were drawn, which one more of them changes for all others."""

    def sampled_sum(self, work, rate, bits):
        turn = bits.take(64)
        heads = np.array([np.random.default_rng([name, turn]).random() < rate for name in self.names], bool)
        found = ArrayCounts(self.cells[heads], self.domain).summed(work)
        return found * 10 // max(1, int(heads.sum()))


def faults_when_sampled(rows: Named) -> list[str]:
    """Each record removed, every other record's coins as they were."""
    first, found = FrozenSynthNoise(), []
    model = run(SAMPLED, rows, AVAILABLE, APPROXIMATE, first)
    for row in range(len(rows.cells)):
        again = FrozenSynthNoise(script=first.given)
        same = run(SAMPLED, rows.without(row), AVAILABLE, APPROXIMATE, again)
        assert [m.parameters for m in again.met] == [m.parameters for m in first.met]
        if any(a.distance(b) > a.sensitivity for a, b in zip(first.met, again.met, strict=True)):
            found.append("moves further than it says")
        if not alike(model, same):
            found.append("says more than the noise let out")
    return found


def named(kind: type[Named], n: int) -> Named:
    rows = random_rows(DOMAIN, n, 1)
    return kind(rows.cells, rows.domain, tuple(range(n)))


def test_replay_on_neighbours() -> None:
    """14 records removed in turn: no other record's vector comes or goes with them."""
    assert faults_when_sampled(named(Named, 14)) == []


def test_replay_notices_a_rate_that_depends_on_who_answered() -> None:
    """One complete record among many incomplete ones: without it everybody else is drawn more often."""
    assert "moves further than it says" in faults_when_sampled(named(OfObserved, 40))


def test_replay_notices_a_mean_over_the_batch() -> None:
    """Ten are expected in a step; without one of them the others' parts grow."""
    assert "moves further than it says" in faults_when_sampled(named(OfBatch, 40))


def test_noise_and_steps_are_those_of_the_accountant() -> None:
    """The deviation in lengths is the multiplier; a step beyond the last is refused, and the budget is empty."""
    rows = together(50, 1, 0.1)
    accountant = Accountant(spend=APPROXIMATE, noise=FrozenSynthNoise())
    tables = rows.count([(0,), (1,)])
    accountant.measure(tables, amount=accountant.total / 4)
    paid = SampledSteps(
        rows=rows,
        accountant=accountant,
        sample=PoissonSample(rate=Fraction(1, 10), steps=2),
        length=LENGTH,
        step=lambda _: None,
    )
    assert accountant.left == 0
    layout = ChainLayout.of(plain(rows.domain, AVAILABLE))
    work = ChainGradient(layout=layout, weights=np.zeros(layout.parameters, dtype=np.int64))
    for _ in range(2):
        paid.noisy(work)
    met = accountant.noise.met[-1]
    assert (met.sensitivity, 1 / (2 * met.amount)) == (LENGTH, paid.multiplier**2)
    assert paid.multiplier == sampled_multiplier(APPROXIMATE, paid.sample, accountant.total / 4)
    with pytest.raises(PlanError, match="more than was set aside"):
        paid.noisy(work)


def test_without_noise_it_learns_the_table() -> None:
    """Pairs within .05 of the truth, half of the summed differences; independent columns would be .4 away."""
    method = AutoregressiveChain().sampling(Fraction(1, 10), 150)
    model = run(method, together(20_000, 3, 0.2), AVAILABLE, APPROXIMATE, NoSynthNoise())
    truth, made = together(20_000, 3, 0.0).cells, model.draw(20_000, SeededBits(4))
    pairs = [np.bincount(3 * rows[:, 0] + rows[:, 1], minlength=9) / len(rows) for rows in (truth, made)]
    assert np.abs(pairs[0] - pairs[1]).sum() / 2 < 0.05


@pytest.mark.parametrize("rows", [0, 1])
def test_nobody_and_one_row_take_the_same_path(rows: int) -> None:
    noise = FrozenSynthNoise()
    model = run(SAMPLED, random_rows(DOMAIN, rows, 1), AVAILABLE, APPROXIMATE, noise)
    assert len(noise.met) == 3 + 5 and len(model.draw(20, SeededBits(1))) == 20


@pytest.mark.parametrize(
    ("spend", "missing", "words"),
    [
        (PURE, AVAILABLE, "needs a delta"),
        (RHO, AVAILABLE, "counted in epsilon and delta"),
        (replace(APPROXIMATE, change=Change.REPLACE), AVAILABLE, "one record that comes or goes"),
        (replace(APPROXIMATE, records=2), AVAILABLE, "one record that comes or goes"),
        (APPROXIMATE, MissingMethod.MEAN, "does not go with impute-mean"),
        (APPROXIMATE, MissingMethod.MODEL, "does not go with impute-model"),
    ],
)
def test_what_the_theorem_is_not_about_is_refused_before_a_row(spend, missing, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        SAMPLED.check(DOMAIN, missing, spend)


@pytest.mark.parametrize(
    ("rate", "steps", "words"),
    [("0.6", 5, "all rows are in every step"), ("0", 5, "above 0"), ("0.1", 0, "1 to")],
)
def test_samples_that_are_none_are_refused(rate: str, steps: int, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        AutoregressiveChain().sampling(Fraction(rate), steps)


def test_the_claim_names_the_page_on_samples() -> None:
    pages = [page for _, page in SAMPLED.claim(DOMAIN, AVAILABLE, APPROXIMATE).rests_on]
    assert "proofs/privacy/renyi.md" in pages
    plainly = AutoregressiveChain().claim(DOMAIN, AVAILABLE, APPROXIMATE)
    assert "proofs/privacy/renyi.md" not in [page for _, page in plainly.rests_on]
    assert SAMPLED.step_noise(DOMAIN, AVAILABLE, APPROXIMATE) > 0
