"""Samplers: what they refuse, and how their scales are rounded."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.noise import calibrate, cauchy, laplace
from reticent.noise.bits import Largest, exp_bracket, line, power_bracket, root, words
from reticent.noise.cauchy import add_cauchy, add_published, add_student
from reticent.noise.gaussian import add_gaussian, add_gaussian_many, gaussian_scale
from reticent.noise.laplace import add_laplace, add_laplace_many, add_lomax, laplace_scale
from reticent.noise.source import SystemNoise
from reticent.noise.vector import _GEOMETRIC, draw_laplace, draw_lomax
from reticent.sensitivity.bounds import Global, Smooth
from tests.audit import ALARM, chi_square
from tests.noise.seeded import SeededBits

ONE = Global(bound=Fraction(1))


@given(bound=st.integers(1, 10**30), epsilon=st.fractions(Fraction(1, 10**12), 10**6))
def test_laplace_scale_is_rounded_against_us(bound: int, epsilon: Fraction) -> None:
    """sensitivity / scale never exceeds epsilon, and comes within a double's last digit of it."""
    scale = Fraction(laplace_scale(Global(bound=Fraction(bound)), epsilon))
    assert epsilon * (1 - Fraction(1, 2**51)) <= bound / scale <= epsilon


def test_laplace_refuses_halves_zeros_and_floats() -> None:
    """A bound that is no whole number, an epsilon that is not positive, an answer off the grid."""
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=Global(bound=Fraction(1, 2)), epsilon=Fraction(1))
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=ONE, epsilon=Fraction(0))
    with pytest.raises(TypeError):
        add_laplace(0.5, sensitivity=ONE, epsilon=Fraction(1))  # type: ignore[arg-type]
    with pytest.raises(PlanError):
        add_laplace(0, sensitivity=ONE, epsilon=Fraction(1, 10**400))


def test_an_answer_too_large_is_refused_without_its_value() -> None:
    """The text names the rule, never the number."""
    with pytest.raises(ValueError, match="grid steps") as caught:
        add_laplace_many([0, 2**62 + 977], sensitivity=ONE, epsilon=Fraction(1))
    assert "977" not in str(caught.value)


def test_the_system_noise_keeps_shape_and_moves_answers() -> None:
    """Length and type; 200 answers all unmoved at scale 1000 has chance below 1e-600."""
    noise = SystemNoise()
    drawn = noise.laplace_many([5] * 200, sensitivity=1000, epsilon=Fraction(1))
    assert len(drawn) == 200 and all(type(x) is int for x in drawn) and set(drawn) != {5}
    assert type(noise.laplace(5, sensitivity=1, epsilon=Fraction(1))) is int
    assert noise.select([0, 10**6], sensitivity=1, epsilon=Fraction(1)) == 1
    assert noise.is_private


@given(bound=st.integers(1, 10**30), rho=st.fractions(Fraction(1, 10**12), 10**6))
def test_gaussian_scale_is_rounded_against_us(bound: int, rho: Fraction) -> None:
    """bound**2 / (2 sigma**2) never exceeds rho, and comes within a few last digits of it."""
    sigma = Fraction(gaussian_scale(Global(bound=Fraction(bound)), rho))
    assert rho * (1 - Fraction(1, 2**50)) <= bound**2 / (2 * sigma**2) <= rho


def test_gaussian_refuses_as_laplace_does() -> None:
    """Off the grid, not positive, too far out; and the answers keep shape and type."""
    with pytest.raises(PlanError):
        add_gaussian(0, sensitivity=Global(bound=Fraction(1, 2)), rho=Fraction(1))
    with pytest.raises(PlanError):
        add_gaussian(0, sensitivity=ONE, rho=Fraction(0))
    with pytest.raises(ValueError, match="grid steps"):
        add_gaussian(2**63, sensitivity=ONE, rho=Fraction(1))
    assert type(add_gaussian(3, sensitivity=ONE, rho=Fraction(1))) is int
    assert len(add_gaussian_many([1, 2, 3], sensitivity=ONE, rho=Fraction(1))) == 3


SMOOTH = Smooth(bound=Fraction(5, 2), beta=Fraction(1, 8))
CENTS = Fraction(1, 100)


@pytest.mark.parametrize("add", [add_lomax, add_student, add_cauchy])
def test_a_smooth_bound_moves_the_answer_by_its_calibrated_scale(add) -> None:
    """The same bits give the same noise: shifting the answer by whole grid steps shifts the release by as many."""
    given_bits = {"sensitivity": SMOOTH, "epsilon": Fraction(1), "grid": CENTS}
    for seed in range(50):
        at_zero = add(0, bits=SeededBits(seed), **given_bits)
        assert add(Fraction(10**20), bits=SeededBits(seed), **given_bits) == at_zero + 10**22
    spread = [add(0, bits=SeededBits(seed), **given_bits) for seed in range(50, 100)]
    assert min(spread) < 0 < max(spread)


def test_lomax_uses_the_scale_of_its_calibration() -> None:
    """add_lomax is the line with scale S/a, m = epsilon / beta, and nothing else."""
    a = calibrate.lomax(epsilon=Fraction(1), beta=Fraction(1, 8))
    for seed in range(20):
        where = line(7, scale=SMOOTH.bound / a, grid=CENTS)
        by_hand = laplace.draw_steps(where, m=8, bits=SeededBits(seed))
        assert by_hand == add_lomax(
            7, sensitivity=SMOOTH, epsilon=Fraction(1), grid=CENTS, bits=SeededBits(seed)
        )


def test_cauchy_noise_uses_the_scale_of_its_calibration() -> None:
    """As calibrated exactly, and as published: the line with scale S/a and the gamma that goes with it, and nothing else."""
    four, beta, one = Fraction(4), SMOOTH.beta, Fraction(1)
    tied = 1 + one / (2 * beta)
    exact = calibrate.cauchy(epsilon=one, beta=beta, gamma=four)
    printed = calibrate.cauchy_as_published(epsilon=one, beta=beta, gamma=tied)
    for add, a, gamma in ((add_cauchy, exact, four), (add_published, printed, tied)):
        for seed in range(10):
            where = line(7, scale=SMOOTH.bound / a, grid=CENTS)
            by_hand = cauchy.draw_steps(where, gamma=gamma, bits=SeededBits(seed))
            made = add(7, sensitivity=SMOOTH, epsilon=one, grid=CENTS, bits=SeededBits(seed))
            assert by_hand == made


@pytest.mark.parametrize("add", [add_lomax, add_student, add_cauchy])
def test_a_beta_too_large_or_a_grid_of_nothing_is_refused(add) -> None:
    """Before any bit is drawn, and without the bound in the text."""
    rough = Smooth(bound=Fraction(977), beta=Fraction(2))
    with pytest.raises(PlanError) as caught:
        add(0, sensitivity=rough, epsilon=Fraction(1), grid=CENTS, bits=SeededBits(0))
    assert "977" not in str(caught.value)
    with pytest.raises(PlanError):
        add(0, sensitivity=SMOOTH, epsilon=Fraction(1), grid=Fraction(0), bits=SeededBits(0))


@given(n=st.integers(0, 10**60), k=st.integers(1, 9))
def test_roots_are_the_largest_that_fit(n: int, k: int) -> None:
    """r**k <= n < (r + 1)**k."""
    r = root(n, k)
    assert r**k <= n < (r + 1) ** k


@given(v=st.integers(0, 2**40), power=st.fractions(Fraction(1, 9), 9, max_denominator=9))
def test_powers_are_bracketed(v: int, power: Fraction) -> None:
    """low <= 2**40 (v / 2**40)**power <= high, checked without roots."""
    low, high = power_bracket(v, power, 40)
    top, bottom, one = power.numerator, power.denominator, 1 << 40
    assert low**bottom * one**top <= v**top * one**bottom <= high**bottom * one**top
    assert high - low <= 1


@given(
    seed=st.integers(0, 10**6), m=st.integers(1, 9), cuts=st.lists(st.integers(1, 5), min_size=1, max_size=8)
)
def test_the_largest_of_lazy_numbers_only_grows_in_digits(seed: int, m: int, cuts: list[int]) -> None:
    """Refining keeps the prefix and never brings back a number that has dropped out."""
    w = Largest(SeededBits(seed), m)
    for more in cuts:
        before, count = w.prefix, w.count
        w.refine(more)
        assert w.prefix >> more == before and 1 <= w.count <= count


def test_the_largest_has_its_law_when_digits_come_one_by_one() -> None:
    """Four digits of the largest of three, 20,000 times: P(largest < k/16) = (k/16)**3. Ties are the rule here."""
    bits, drawn = SeededBits(5), []
    for _ in range(20_000):
        w = Largest(bits, 3)
        for _ in range(4):
            w.refine(1)
        drawn.append(w.prefix)
    assert chi_square(drawn, lambda k: np.clip((np.asarray(k) + 1) / 16, 0, 1) ** 3) > ALARM
    assert chi_square(drawn, lambda k: np.clip((np.asarray(k) + 1) / 16, 0, 1) ** 2.8) < ALARM


def test_the_thresholds_of_the_geometric_are_floors() -> None:
    """Both ends of exp(-k) to 128 digits have the same first 64."""
    for k, edge in zip(range(64, 0, -1), _GEOMETRIC.tolist(), strict=True):
        low, high = exp_bracket(Fraction(k), 128)
        assert low >> 64 == high >> 64 == edge


class ZerosAt(SeededBits):
    """Answers one request, counted from 0, with zeros, so that the draws no word can decide come up."""

    def __init__(self, seed: int, request: int) -> None:
        super().__init__(seed)
        self.left = request

    def take(self, n: int) -> int:
        self.left -= 1
        return 0 if self.left == -1 else super().take(n)


def test_draws_that_words_cannot_decide_are_finished_exactly() -> None:
    """Words of zeros stand for numbers below 2**-64: noise beyond 2**64 - 1 times a Lomax scale, beyond 44 for Laplace."""
    drawn = draw_lomax(3, m=8, scale=Fraction(10), bits=ZerosAt(1, 0))
    assert all(type(x) is int and abs(x) >= 10 * (2**64 - 1) for x in drawn)
    # All eight words are leaders still: the scalar code, from there and with the same bits, ends alike.
    bits, where = SeededBits(1), line(0, scale=Fraction(10), grid=Fraction(1))
    signs = [1 if word < 2**63 else -1 for word in words(3, bits).tolist()]
    assert drawn == [laplace.settle_lomax(where, sign, Largest(bits, 8, 0, 64)) for sign in signs]
    # At scale 1 the second request is for the geometric part; 2**-64 lies between exp(-45) and exp(-44).
    drawn = draw_laplace(20, scale=Fraction(1), bits=ZerosAt(1, 1))
    assert all(type(x) is int and 44 <= abs(x) < 60 for x in drawn)


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(30_000), Fraction(10**15, 7), Fraction(10**18)], ids=str
)
def test_vectorised_lomax_agrees_with_its_words(scale: Fraction) -> None:
    """The same words again: every draw lies between the exact steps at both ends of what its words say."""
    n, m = 500, 8
    drawn = draw_lomax(n, m=m, scale=scale, bits=SeededBits(6))
    each = words(m * n, SeededBits(6)).reshape(m, n)
    where = line(0, scale=scale, grid=Fraction(1))
    for x, p in zip(drawn, each.max(axis=0).tolist(), strict=True):
        assert where.steps(2**64 - p - 1, p + 1) <= abs(x) <= where.steps(2**64 - p, p)


def test_vectorised_draws_refuse_no_scale() -> None:
    """Tiny, huge, and nothing at all."""
    bits = SeededBits(3)
    assert draw_laplace(50, scale=Fraction(1, 10**30), bits=bits) == [0] * 50
    assert max(abs(x) for x in draw_laplace(50, scale=Fraction(10**40), bits=bits)) > 10**38
    assert draw_lomax(50, m=8, scale=Fraction(1, 10**400), bits=bits) == [0] * 50
    assert max(abs(x) for x in draw_lomax(50, m=8, scale=Fraction(10**400), bits=bits)) > 10**396
    assert (
        draw_laplace(0, scale=Fraction(1), bits=bits)
        == draw_lomax(0, m=8, scale=Fraction(1), bits=bits)
        == []
    )
    with pytest.raises(ValueError, match="positive"):
        draw_laplace(1, scale=Fraction(0), bits=bits)
