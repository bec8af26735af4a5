"""One suite that every synthesizer meets: found by name, claimed as spent, sound on rows that say nothing."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.synth.base import FitTask, MissingMethod, Spend, SynthesisMethod
from reticent.synth.domain import Domain
from reticent.synth.learned import factors, gradient
from reticent.synth.learned.adversarial import Adversarial, Game
from reticent.synth.learned.training import NoisySteps
from reticent.synth.registry import KNOWN, find
from reticent.synth.spending import SystemSynthNoise
from tests.noise.seeded import SeededBits
from tests.synth.replay import is_drawable, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, QuickSynthNoise, sized, spent, toy

# covers T20 T22 T27 B068 B069

DELTA = Fraction(1, 10**6)
DOMAIN = sized(toy([2, 3, 2], universes={"b": "a = '1'"}), 24)


def spend_for(name: str, *, pure: bool, epsilon: Fraction = Fraction(1)) -> Spend:
    """A promise that the method can make: one published score needs a public number of rows, so replacing."""
    change = Change.REPLACE if name == "privbayes-printed" else Change.ADD_REMOVE
    return Spend(epsilon=epsilon, delta=Fraction(0) if pure else DELTA, change=change)


SMALL = Game(steps=3, turns=1, batch=16, fakes=32, hidden=4, settled=64)


def quick(name: str) -> SynthesisMethod:
    """The method of that name, its game a short one where it plays any."""
    method = find(name)
    return replace(method, game=SMALL) if isinstance(method, Adversarial) else method


def possible(name: str, holes: MissingMethod, spend: Spend, domain: Domain = DOMAIN) -> bool:
    try:
        find(name).check(domain, holes, spend)
    except PlanError:
        return False
    return True


CASES = [
    (name, holes, pure)
    for name in KNOWN
    for holes in MissingMethod
    for pure in (True, False)
    if possible(name, holes, spend_for(name, pure=pure))
]


@pytest.mark.parametrize("name", KNOWN)
def test_rows_that_donors_filled_are_refused_where_several_records_are(name: str):
    """One respondent is several of either: a method that can hide three records can hide three rows, and none else can."""
    for holes in MissingMethod:
        for change in Change:
            for delta in (Fraction(0), DELTA):
                spend = Spend(epsilon=Fraction(9), delta=delta, change=change)
                owned, filled = replace(spend, records=3), replace(spend, stability=3)
                assert possible(name, holes, owned) == possible(name, holes, filled)


@pytest.mark.parametrize("name", KNOWN)
def test_rows_that_donors_filled_get_the_noise_of_several_records(name: str):
    """The same calls to the noise, with the same bounds and prices."""
    holes = next(
        (
            each
            for each in MissingMethod
            if possible(name, each, replace(spend_for(name, pure=False), records=3))
        ),
        None,
    )
    if holes is None:
        assert name == "privbayes-printed"
        return
    found = []
    for more in ({"records": 3}, {"stability": 3}):
        noise = FrozenSynthNoise()
        spend = replace(spend_for(name, pure=False), **more)
        run(quick(name), ArrayCounts(np.ones((24, 3), dtype=np.int64), DOMAIN), holes, spend, noise)
        found.append([call.parameters for call in noise.met])
    assert found[0] == found[1] and found[0]


def silent_rows() -> np.ndarray:
    return np.array([[axis.silence for axis in DOMAIN.axes]] * 24)


def degenerate() -> dict[str, np.ndarray]:
    return {
        "nobody": silent_rows()[:0],
        "one": np.zeros((1, 3), dtype=np.int64),
        "all silent": silent_rows(),
        "all alike": np.ones((24, 3), dtype=np.int64),
    }


LEARNED = [name for name in KNOWN if hasattr(find(name), "step_noise")]


def noise_met(name: str, cells: np.ndarray, holes: MissingMethod) -> list[tuple]:
    """What the noise was asked for, call by call: kind, how many numbers, bound and price."""
    noise = FrozenSynthNoise()
    run(quick(name), ArrayCounts(cells, DOMAIN), holes, spend_for(name, pure=False), noise)
    return [call.parameters for call in noise.met]


@pytest.mark.parametrize(
    ("name", "holes"),
    [(n, h) for n, h, pure in CASES if n in LEARNED and not pure and h is not MissingMethod.MODEL],
)
def test_rows_that_say_nothing_get_the_noise_of_all_others(name: str, holes: MissingMethod) -> None:
    """Nobody, one row, silence and one column that nobody answered: as many steps, with the bounds of 24 full rows.

    Not where trees impute first: they measure pairs that were chosen by released numbers, and these have other sizes.
    """
    unanswered = np.where(np.arange(3) == 1, silent_rows(), 0)
    asked = noise_met(name, random_rows(DOMAIN, 24, 1).cells, holes)
    for cells in (*degenerate().values(), unanswered):
        assert noise_met(name, cells, holes) == asked


STEP_LENGTHS = gradient.LENGTH, factors.LENGTH
"""How far a record moves a step's sum: nothing else that is measured has a bound as large as the smaller of these."""


@pytest.mark.parametrize(("name", "holes"), [(n, h) for n, h, pure in CASES if n in LEARNED and not pure])
def test_the_noise_that_is_foretold_is_that_of_the_steps(name: str, holes: MissingMethod) -> None:
    """In records of full length, also where filling took its share first and where two networks share what is left."""
    spend, length = spend_for(name, pure=False), STEP_LENGTHS[isinstance(quick(name), Adversarial)]
    noise = FrozenSynthNoise()
    run(quick(name), random_rows(DOMAIN, 24, 1), holes, spend, noise)
    sums = [call for call in noise.met if call.kind == "gaussian" and call.sensitivity >= STEP_LENGTHS[0]]
    met = [call.sensitivity / sqrt(2 * call.amount) / length for call in sums]
    foretold = quick(name).step_noise(DOMAIN, holes, spend)
    assert met and met == pytest.approx([foretold] * len(met), rel=1e-9)


def test_a_step_left_out_where_nobody_has_a_part_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive twin spares itself the noise on a sum of zeros."""
    honest = NoisySteps.noisy

    def sparing(self: NoisySteps, work):
        is_empty = not self.rows.summed(work).any()
        return np.zeros(work.length) if is_empty else honest(self, work)

    monkeypatch.setattr(NoisySteps, "noisy", sparing)
    some, none = (
        noise_met("chain", cells, MissingMethod.AVAILABLE)
        for cells in (random_rows(DOMAIN, 24, 1).cells, silent_rows())
    )
    assert len(none) < len(some)


def test_every_name_finds_itself_and_a_wrong_one_is_helped():
    assert {"independent", "privbayes", "privbayes-printed", "mst", "aim"} <= set(KNOWN)
    assert all(find(name).name == name for name in KNOWN)
    with pytest.raises(PlanError, match="did you mean 'privbayes'"):
        find("privbayse")
    with pytest.raises(PlanError, match="is one of independent"):
        find("?")


def test_every_method_meets_most_strategies():
    """The list of cases is not empty by mistake. One method fills what is missing itself, and has one strategy."""
    for name in KNOWN:
        assert sum(case[0] == name for case in CASES) >= (1 if name == "kamino-i" else 3)


@pytest.mark.parametrize(("name", "holes", "pure"), CASES)
def test_the_claim_is_known_before_and_no_more_is_spent(name, holes, pure):
    """Amounts of all calls, added by the rules of their kind; steps within the bar; a network that can be drawn from."""
    method, spend = quick(name), spend_for(name, pure=pure)
    noise, calls = FrozenSynthNoise(), []
    network = method.fit(
        FitTask(random_rows(DOMAIN, 24, 1), DOMAIN, holes, spend, noise=noise, step=calls.append)
    )
    claim = method.claim(DOMAIN, holes, spend)
    assert network.claim == claim
    assert (claim.epsilon, claim.delta, claim.change) == (spend.epsilon, spend.delta, spend.change)
    budget = spend.epsilon if pure else Fraction(24355970359, 10**12)
    assert 0 < spent(noise.met, pure=pure) <= budget
    assert len(calls) <= method.rounds(DOMAIN)
    assert is_drawable(network)
    silent = [network.draw(50, SeededBits(1))[:, i] == a.silence for i, a in enumerate(DOMAIN.axes)]
    assert holes is MissingMethod.VALUES or not np.any(silent)


@pytest.mark.parametrize("kind", degenerate())
@pytest.mark.parametrize("name", list(KNOWN))
def test_rows_that_say_nothing_never_raise(name, kind):
    """Quick noise and the system's, a small epsilon. A public number of rows is the true one, where there is any."""
    cells = degenerate()[kind]
    counts = ArrayCounts(
        cells, replace(DOMAIN, schema=replace(DOMAIN.schema, sample_size=len(cells) or None))
    )
    for noise in (QuickSynthNoise(2), SystemSynthNoise()):
        for holes in (MissingMethod.AVAILABLE, MissingMethod.VALUES):
            spend = spend_for(name, pure=False, epsilon=Fraction(1, 5))
            if possible(name, holes, spend, counts.domain):
                assert is_drawable(run(quick(name), counts, holes, spend, noise))


@pytest.mark.parametrize("name", list(KNOWN))
def test_amounts_that_promise_nothing_are_refused(name):
    for spend in (
        Spend(epsilon=Fraction(0), delta=DELTA),
        Spend(epsilon=Fraction(1), delta=Fraction(1)),
        Spend(epsilon=Fraction(-1)),
    ):
        with pytest.raises(PlanError):
            find(name).check(DOMAIN, MissingMethod.AVAILABLE, spend)
