"""Adversarial synthesizers: replay on neighbours, critics clipped together, twins that must fail, masks, and refusals."""

import tomllib
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest

from reticent.errors import PlanError, SourceError
from reticent.synth.base import MissingMethod
from reticent.synth.learned import adversarial, autogan, ctgan, misgan
from reticent.synth.learned.adversarial import Game
from reticent.synth.learned.autogan import AutoGan
from reticent.synth.learned.ctgan import Conditioned, CtGan
from reticent.synth.learned.factors import LENGTH, Dense, JointGradient
from reticent.synth.learned.misgan import MaskForger, MisGan, started
from reticent.synth.learned.model import PARAMETERS
from reticent.synth.learned.onehot import OneHot
from reticent.synth.learned.perceptron import Perceptron, RowPerceptron, praise
from reticent.synth.learned.training import NoisySteps
from reticent.synth.marginals.study import plain
from reticent.synth.saved import load, save
from reticent.synth.spending import Accountant
from reticent.synth.written import MODEL, bytes_of, sealed
from tests.noise.seeded import SeededBits
from tests.synth.marginals.trees import faults_when_replaced
from tests.synth.replay import APPROXIMATE, PURE, RHO, faults, random_rows, run
from tests.synth.standins import ArrayCounts, NoSynthNoise, QuickSynthNoise, toy

# covers T20 T21 T23 T27

SMALL = Game(steps=3, turns=1, batch=16, fakes=32, hidden=4, settled=64)
DOMAIN = toy([2, 3, 2], universes={"b": "a = '1'"})
METHODS = (MisGan(game=SMALL), CtGan(game=SMALL), AutoGan(game=SMALL))
AVAILABLE, VALUES = MissingMethod.AVAILABLE, MissingMethod.VALUES
MET = [(MisGan(game=SMALL), AVAILABLE), *((method, VALUES) for method in METHODS)]


@pytest.mark.parametrize(("method", "holes"), MET, ids=lambda each: getattr(each, "name", str(each)))
def test_replay_on_neighbours(method, holes) -> None:
    """Each of 10 records removed, three added, and records replaced, whose vectors come near to the bound."""
    counts = random_rows(DOMAIN, 10, 1)
    assert faults(method, counts, holes, APPROXIMATE) == []
    found, most = faults_when_replaced(method, counts, holes, APPROXIMATE)
    assert found == [] and 0.5 < most <= 1


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_replay_on_complete_rows_in_rho(method) -> None:
    assert faults(method, random_rows(DOMAIN, 6, 2), MissingMethod.COMPLETE, RHO) == []


class ClippedApart(JointGradient):
    """The naive twin: every critic clipped by itself, and charged as one."""

    def add(self, block, totals) -> None:
        start = 0
        for network in self.networks:
            size = sum(network.sizes)
            JointGradient((network,)).add(block, totals[start : start + size])
            start += size


def test_replay_notices_critics_that_are_clipped_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wide critics, so that both gradients of a record with answers and holes are long."""
    monkeypatch.setattr(adversarial, "JointGradient", ClippedApart)
    method = MisGan(game=replace(SMALL, hidden=24))
    assert "moves further than it says" in faults(method, random_rows(DOMAIN, 8, 1), AVAILABLE, APPROXIMATE)


class Thrown(AutoGan):
    """The naive twin: the encoder learns from the rows without noise and is thrown away."""

    def decoder(self, start, layout):
        whole = Perceptron.started((layout.width, autogan.CODE, layout.width), start.bits)
        work = JointGradient((RowPerceptron(whole, layout.lines, autogan.softmax_residual(
            layout.into, np.array(layout.sizes))),))  # fmt: skip
        for _ in range(3):
            whole.values = whole.values - start.rows.summed(work) / LENGTH
        start.paid(1, start.accountant.left / 2).noisy(work)
        matrix, bias = whole.layers(whole.values)[1]
        return Perceptron((autogan.CODE, layout.width), np.concatenate([matrix.ravel(), bias]))


def test_replay_notices_an_encoder_without_noise() -> None:
    assert "says more than the noise let out" in faults(
        Thrown(game=SMALL), random_rows(DOMAIN, 8, 1), VALUES, APPROXIMATE
    )


class Held(Conditioned):
    """The naive twin, batch normalisation at its simplest: what goes into the last layer is the largest of the batch."""

    def factors(self, rows):
        made = list(super().factors(rows))
        inputs = made[-2].inputs
        made[-2] = Dense(np.broadcast_to(inputs.max(axis=0), inputs.shape), made[-2].residuals)
        return made


def test_replay_notices_rows_that_are_held_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctgan, "Conditioned", Held)
    found = faults(CtGan(game=SMALL), random_rows(DOMAIN, 24, 1), VALUES, APPROXIMATE)
    assert "moves further than it says" in found


def pair(hidden: int, seed: int = 3) -> tuple[OneHot, MaskForger, list[Perceptron]]:
    """Critics of three columns, no universe, with large weights: every gradient is longer than the clip."""
    domain = toy([3, 4, 2])
    layout = OneHot.of(domain, plain(domain, AVAILABLE))
    shares = [np.full(size, 1 / size) for size in layout.sizes]
    bits = SeededBits(seed)
    forger = started(layout, domain, shares, np.full(3, 0.2), SMALL, bits)
    critics = [Perceptron.started((width, hidden, 1), bits) for width in (layout.width, 3)]
    for critic in critics:
        critic.values = 4 * critic.values + 0.5
    return layout, forger, critics


def vector(networks, row) -> np.ndarray:
    work = JointGradient(tuple(networks))
    totals = np.zeros(work.length, dtype=np.int64)
    work.add(np.array(row, dtype=np.uint16)[:, None], totals)
    return totals


def test_two_coordinates_of_one_record_are_one_vector() -> None:
    """A canary with a part in both critics: together within the bound; the twin, clipped apart, passes it by two fifths."""
    layout, forger, critics = pair(16)
    canary = [1, layout.silence[1], layout.silence[2]]
    networks = forger.real(critics)
    together = vector(networks, canary).astype(object)
    split = sum(networks[0].sizes)
    assert (together[:split] ** 2).sum() > 0 < (together[split:] ** 2).sum()
    assert 0.9 * LENGTH**2 < (together**2).sum() <= LENGTH**2
    apart = [vector((network,), canary).astype(object) for network in networks]
    assert sum((each**2).sum() for each in apart) > 1.9 * LENGTH**2


def test_a_respondent_who_is_seen_by_an_odd_mask_alone_is_hidden_by_the_noise() -> None:
    """Nothing answered, so only the mask critic sees them: 3,000 noisy sums with and without, along their own vector.

    The shift is L/sigma = the root of 2 rho = .632; its standard error is .026. Noise 1.3 times too small would show .82.
    """
    layout, forger, critics = pair(4)
    canary = np.array([layout.silence])
    networks = forger.real(critics)
    own = vector(networks, canary[0])
    split = sum(networks[0].sizes)
    first = own[: int(networks[0].sizes[0])]
    assert not first.any() and own[split:].any()
    rho, noise = Fraction(1, 5), QuickSynthNoise(5)
    others = random_rows(toy([3, 4, 2]), 4, 1)
    way = own / np.linalg.norm(own)

    def shift(weaker: float) -> float:
        found = []
        for rows in (others.cells, np.vstack([others.cells, canary])):
            accountant = Accountant(spend=replace(RHO, rho=3000 * rho), noise=noise)
            paid = NoisySteps(
                rows=ArrayCounts(rows, others.domain), accountant=accountant, amount=3000 * rho, steps=3000,
                length=LENGTH, step=lambda _: None,
            )  # fmt: skip
            exact = paid.rows.summed(JointGradient(networks)) / LENGTH @ way
            once = Frozen(JointGradient(networks), paid.rows)
            drawn = np.array([paid.noisy(once) @ way for _ in range(3000)])
            found.append(exact + (drawn - exact) / weaker)
        return float(
            (found[1].mean() - found[0].mean()) / np.concatenate([f - f.mean() for f in found]).std()
        )

    claimed = float(2 * rho) ** 0.5
    assert shift(1.0) < claimed + 4 * 0.026
    assert shift(1.3) > claimed + 4 * 0.026


class Frozen:
    """A sum that was made once, for as many draws of its noise as are wanted."""

    def __init__(self, work, rows) -> None:
        self.length = work.length
        self.totals = rows.summed(work)

    def add(self, block, totals) -> None:
        if not totals.any():
            totals += self.totals


def together(n: int, seed: int, lost: float) -> ArrayCounts:
    """b is a but for one row in ten, c is by itself; of b `lost` of the answers are missing, of the others none."""
    domain, rng = toy([3, 3, 2]), np.random.default_rng(seed)
    a = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    b = np.where(rng.random(n) < 0.9, a, rng.integers(0, 3, n))
    cells = np.stack([a, b, rng.integers(0, 2, n)], axis=1)
    cells[:, 1] = np.where(rng.random(n) < lost, domain.axes[1].silence, cells[:, 1])
    return ArrayCounts(cells, domain)


def apart(rows: np.ndarray) -> float:
    """Half of the summed differences between a pair's shares and those of independent columns."""
    joint = np.zeros((3, 3))
    np.add.at(joint, (rows[:, 0], rows[:, 1]), 1 / len(rows))
    return float(np.abs(joint - np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum() / 2)


LEARNS = Game(steps=60, turns=8, batch=128, fakes=256, hidden=16, forger_rate=0.002)


@pytest.mark.parametrize(
    ("method", "holes"),
    [(MisGan(game=LEARNS), VALUES), (CtGan(game=LEARNS), MissingMethod.COMPLETE), (AutoGan(game=LEARNS), MissingMethod.COMPLETE)],
    ids=lambda each: getattr(each, "name", ""),
)  # fmt: skip
def test_without_noise_it_learns_that_columns_hang_together(method, holes) -> None:
    """The truth is .54 from independence; a forger that learned nothing stays below .1. Columns keep their shares."""
    counts = together(2000, 1, 0.3 if holes is VALUES else 0.0)
    model = run(method, counts, holes, APPROXIMATE, NoSynthNoise())
    rows = model.draw(4000, SeededBits(2))
    answered = rows[(rows[:, 1] < 3) & (rows[:, 0] < 3)]
    assert apart(answered) > 0.2
    assert abs((answered[:, 0] == 0).mean() - 0.5) < 0.04
    if holes is VALUES:  # holes of one column alone, as many as there were
        silent = [(rows[:, j] == axis.silence).mean() for j, axis in enumerate(model.domain.axes)]
        assert abs(silent[1] - 0.3) < 0.05 and max(silent[0], silent[2]) < 0.02


def test_holes_are_where_they_were_asked_for_and_who_was_not_asked_is_not_silent() -> None:
    counts = random_rows(DOMAIN, 30, 4)
    plainly = run(MisGan(game=SMALL), counts, AVAILABLE, APPROXIMATE, NoSynthNoise()).draw(500, SeededBits(1))
    holed = run(MisGan(game=SMALL), counts, VALUES, APPROXIMATE, NoSynthNoise()).draw(500, SeededBits(1))
    silence = np.array([axis.silence for axis in DOMAIN.axes])
    assert not (plainly == silence).any() and (holed == silence).any()
    assert (holed[:, 1] == DOMAIN.axes[1].unasked).any()


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_a_saved_model_draws_the_same_and_a_changed_one_is_refused(method, tmp_path) -> None:
    model = run(method, random_rows(DOMAIN, 20, 1), VALUES, APPROXIMATE, QuickSynthNoise(1))
    save(model, tmp_path / "m")
    again = load(tmp_path / "m", DOMAIN.schema)
    assert (
        again.draw(40, SeededBits(3)) == model.draw(40, SeededBits(3))
    ).all() and again.claim == model.claim
    file = tmp_path / "m" / "parameters.npy"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(SourceError, match="is not the array"):
        load(tmp_path / "m", DOMAIN.schema)


def sealed_anew(model, folder, *, bend=lambda told: None, parameters=None) -> None:
    """A model's files written by somebody careful: bent, and every digest right."""
    told = tomllib.loads(model.files()[MODEL].decode())
    del told["sha256"]
    data = bytes_of(model.parameters if parameters is None else parameters)
    told["parameters"] = sha256(data).hexdigest()
    bend(told)
    folder.mkdir()
    for name, written in sealed(told, {PARAMETERS: data}).items():
        (folder / name).write_bytes(written)


BENT = {
    "a column twice": (lambda told: told["axes"].__setitem__(2, told["axes"][0]), r"model\.toml: .*twice"),
    "no column": (lambda told: told.__setitem__("axes", []), r"model\.toml: axes"),
    "an unknown way": (lambda told: told.__setitem__("missing", "as-is"), r"model\.toml: missing"),
    "another word": (lambda told: told.__setitem__("extra", 1), r"model\.toml: extra"),
    "another kind": (lambda told: told.__setitem__("kind", "chain"), r"parameters\.npy"),
    "no claim": (lambda told: told["claim"].__setitem__("delta", "2"), r"model\.toml: claim"),
    "no number": (lambda told: told.__setitem__("total", "nan"), r"model\.toml: total"),
}


@pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)
def test_files_that_somebody_careful_bent_are_refused_by_their_names(method, tmp_path) -> None:
    """Digests are no signature. What is no model of this codebook is refused all the same, and what is one draws rows of it."""
    model = run(method, random_rows(DOMAIN, 20, 1), VALUES, APPROXIMATE, QuickSynthNoise(1))
    for i, (bend, said) in enumerate(BENT.values()):
        sealed_anew(model, tmp_path / f"{i}", bend=bend)
        with pytest.raises(SourceError, match=said):
            load(tmp_path / f"{i}", DOMAIN.schema)
    wild = np.where(np.arange(len(model.parameters)) % 2 == 0, 1e308, model.parameters)
    for i, bad in enumerate((wild, np.append(model.parameters[:-1], np.inf), model.parameters[None])):
        sealed_anew(model, tmp_path / f"bad{i}", parameters=bad)
        with pytest.raises(SourceError, match=r"parameters\.npy"):
            load(tmp_path / f"bad{i}", DOMAIN.schema)
    sealed_anew(model, tmp_path / "large", parameters=np.clip(1e5 * model.parameters, -1e6, 1e6))
    drawn = load(tmp_path / "large", DOMAIN.schema).draw(50, SeededBits(1))
    assert ((drawn >= 0) & (drawn < np.array(DOMAIN.shape))).all()


def test_what_is_known_to_fail_is_refused_with_a_way_out() -> None:
    for method in METHODS:
        with pytest.raises(PlanError, match="needs a delta"):
            method.check(DOMAIN, VALUES, PURE)
        with pytest.raises(PlanError, match="use independent"):
            method.check(toy([3]), VALUES, APPROXIMATE)
        with pytest.raises(PlanError, match="name fewer columns or bins"):
            replace(method, game=replace(SMALL, hidden=10**6)).check(DOMAIN, VALUES, APPROXIMATE)
        method.check(DOMAIN, VALUES, APPROXIMATE)
        effort = method.effort(DOMAIN, VALUES)
        assert effort.megabytes > 0 and effort.seconds > 0 and effort.seconds_each > 0
    wide = toy([3000, 2000])
    with pytest.raises(PlanError, match="dpautogan would read rows by a layer of 5,000 numbers"):
        METHODS[2].check(wide, MissingMethod.COMPLETE, APPROXIMATE)
    with pytest.raises(PlanError, match="above 4,096 its sums would not be exact"):
        RowPerceptron(Perceptron.started((2, 5000, 1), SeededBits(1)), np.zeros((2, 2), np.int64), praise)
    METHODS[0].check(wide, AVAILABLE, APPROXIMATE)
    for method in METHODS[1:]:
        with pytest.raises(PlanError, match="impute first"):
            method.check(DOMAIN, AVAILABLE, APPROXIMATE)


def test_the_free_half_needs_no_engine() -> None:
    """Generators, penalties and the sum over made-up rows with nobody there to ask."""
    layout, forger, critics = pair(4)
    bits = SeededBits(1)
    forger.begin(bits)
    made = forger.forged(64, bits)
    before = forger.data.values.copy()
    adversarial.summed(JointGradient(forger.made(critics)), made.rows)
    forger.learn(
        [adversarial.slopes(critic, shown) for critic, shown in zip(critics, made.shown, strict=True)]
    )
    assert (forger.data.values != before).any() and np.isfinite(forger.data.values).all()
    assert layout.lines.shape == layout.mask_lines.shape
    assert praise(np.zeros((2, 1), dtype=np.int64), made.rows).shape == (2, 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_shares_with_silence_are_taken_apart(seed: int) -> None:
    """Asked or not stays as it was, answers keep their proportions, silence is a share of those who were asked."""
    rng = np.random.default_rng(seed)
    shares = [rng.dirichlet(np.ones(size)) for size in DOMAIN.shape]
    told, silent = misgan.apart(DOMAIN, shares)
    for axis, share, own, quiet in zip(DOMAIN.axes, shares, told, silent, strict=True):
        assert own.sum() == pytest.approx(1)
        assert own[: axis.answers] / own[0] == pytest.approx(share[: axis.answers] / share[0])
        if axis.has_unasked:
            assert own[-1] == pytest.approx(share[-1])
        asked = share[: axis.answers].sum() + share[axis.silence]
        assert quiet == pytest.approx(share[axis.silence] / asked)
