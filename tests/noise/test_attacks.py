"""Attacks on the noise, each beside naive code that falls to it."""

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.lab import noise as twins
from reticent.noise import cauchy, laplace
from reticent.noise import cauchy as student
from reticent.noise.bits import SystemBits, line
from reticent.noise.source import SystemNoise
from reticent.noise.vector import draw_laplace, draw_lomax
from tests.audit import ALARM, Coins, audit, coin_audit
from tests.noise.seeded import chosen_bits

RNG = np.random.default_rng(1)
NOISE = SystemNoise()
BITS = chosen_bits(2)


def ours(answers: tuple[int, int], epsilon: Fraction) -> Callable[[int, int], Any]:
    """Our Laplace mechanism on two neighbouring answers."""
    apart = abs(answers[1] - answers[0])
    return lambda b, n: np.array(NOISE.laplace_many([answers[b]] * n, sensitivity=apart, epsilon=epsilon))


# --- T01: holes in the noise ------------------------------------------------------------------------------------


def c_log(x: Any) -> Any:
    """The C library's logarithm, number by number: what NumPy's sampler itself calls.

    `np.log` on an array takes the vector units of the processor, whose last bit differs from machine to machine.
    """
    return np.array([math.log(each) if each > 0 else -math.inf for each in np.asarray(x).tolist()])


def c_exp(x: Any) -> Any:
    """The C library's exponential, number by number."""
    return np.array([math.exp(each) for each in np.asarray(x).tolist()])


def numpy_laplace(v: float, s: float, n: int) -> Any:
    """What most people write."""
    return RNG.laplace(v, s, n)


def inverse_cdf(v: float, s: float, n: int) -> Any:
    """The textbook: a 53-bit uniform number through the inverse distribution function."""
    u = RNG.random(n) - 0.5
    return v - s * np.sign(u) * c_log(1 - 2 * np.abs(u))


def is_reachable_from_zero(y: Any, digits: Any) -> Any:
    """Whether |y| is -log(j / 2**digits) for a whole j: all that either sampler, at scale 1, can put around 0."""
    size, one = np.abs(np.asarray(y, dtype=float)), np.exp2(digits)
    j = np.rint(c_exp(-size) * one)
    return np.any([np.abs(c_log((j + d) / one)) == size for d in (-2, -1, 0, 1, 2)], axis=0)


HOLES = {
    # NumPy computes 2 - u - u above the middle, whose first rounding leaves one digit more.
    numpy_laplace: lambda y: ~is_reachable_from_zero(y, np.where(np.asarray(y) > 0, 53, 52)),
    inverse_cdf: lambda y: ~is_reachable_from_zero(y, 52),
}


@pytest.mark.parametrize("naive", HOLES)
def test_outputs_have_no_holes(naive) -> None:  # covers T01
    """5,000 runs on the answers 0 and 1: some outputs cannot come from 0, and give the naive code away."""
    hole = HOLES[naive]
    assert not hole(naive(0.0, 1.0, 4000)).any()
    assert coin_audit(lambda b, n: naive(float(b), 1.0, n), hole, runs=5000, seed=1).p_value(1.0) < 1e-200
    for event in (hole, lambda y: ~hole(y)):
        assert coin_audit(ours((0, 1), Fraction(1)), event, runs=5000, seed=2).p_value(1.0) > ALARM


FINE = line(Fraction(1, 3), scale=Fraction(10**15), grid=Fraction(1))


@pytest.mark.parametrize(
    "draw",
    [
        lambda n: [laplace.draw_steps(FINE, m=8, bits=BITS) for _ in range(n)],
        lambda n: [student.draw_student_steps(FINE, bits=BITS) for _ in range(n)],
        lambda n: [cauchy.draw_steps(FINE, gamma=Fraction(4), bits=BITS) for _ in range(n)],
        lambda n: [cauchy.draw_steps(FINE, gamma=Fraction(5, 2), bits=BITS) for _ in range(n)],
        lambda n: draw_lomax(n, m=8, scale=Fraction(10**15), bits=BITS),
        lambda n: draw_laplace(n, scale=Fraction(10**15), bits=BITS),
    ],
)
def test_heavy_tails_have_no_holes_on_a_fine_grid(draw) -> None:  # covers T01
    """20,000 draws over 1e15 steps: two alike have a chance near 1e-5; 24 digits alone would repeat about a hundred."""
    assert len(set(draw(20_000))) == 20_000
    coarse = np.rint((1 / RNG.integers(1, 2**24, (20_000, 8)).max(axis=1) * 2.0**24 - 1) * 1e15)
    assert len(set(coarse.tolist())) < 20_000


# --- T02: the grid of the double --------------------------------------------------------------------------------


def finer_than(g: int) -> Callable[[Any], Any]:
    """The event that a number is no multiple of 2**g."""
    return lambda y: np.asarray(y, dtype=float) % 2.0**g != 0


GRIDS = [finer_than(g) for g in range(-70, 12)]


def float_laplace(v: int, s: int, n: int) -> Any:
    return v + RNG.laplace(0, s, n)


def perfect_noise_added_as_float(v: int, s: int, n: int) -> Any:
    """Exact noise on a grid of 2**-60, but the sum is made of doubles."""
    noise = draw_laplace(n, scale=Fraction(s << 60), bits=BITS)
    return float(v) + np.array([x * 2.0**-60 for x in noise])


def float_cauchy(v: int, s: int, n: int) -> Any:
    """On real numbers a scale of 2.28 s would give epsilon 1 (THEORY 9, kappa)."""
    return v + 2.28 * s * twins.cauchy(RNG, gamma=4.0, size=n)


PAIRS = [(0, 1), (0, 1000), (1, 2), (1000, 1024), (0, 10**6)]


@pytest.mark.parametrize("naive", [float_laplace, perfect_noise_added_as_float, float_cauchy])
def test_the_grid_of_the_double_gives_floats_away(naive) -> None:  # covers T02
    """3,000 runs on the pairs with a zero: near 0 doubles are finer than near any other answer."""
    for low, high in [pair for pair in PAIRS if pair[0] == 0]:
        draw = [low, high]
        found = audit(lambda b, k, d=draw: naive(d[b], d[1], k), epsilon=1.0, runs=3000, seed=3, events=GRIDS)
        assert found < ALARM


@pytest.mark.parametrize("pair", PAIRS)
def test_our_outputs_lie_on_the_public_grid(pair: tuple[int, int]) -> None:  # covers T02 R03
    """3,000 runs for each pair of answers; every output is a whole number of steps, whatever the answer."""
    draw = ours(pair, Fraction(1))
    assert all(type(x) is int for x in NOISE.laplace_many(list(pair), sensitivity=1, epsilon=Fraction(1)))
    assert audit(draw, epsilon=1.0, runs=3000, seed=4, events=GRIDS) > ALARM


@pytest.mark.parametrize("answer", [Fraction(0), Fraction(1, 3), Fraction(10**12) + Fraction(1, 7)])
def test_heavy_tails_are_released_in_whole_steps_of_any_grid(answer: Fraction) -> None:  # covers T02
    """A grid of 1/10, which no double holds."""
    where, bits = line(answer, scale=Fraction(7, 3), grid=Fraction(1, 10)), chosen_bits(5)
    assert all(type(laplace.draw_steps(where, m=8, bits=bits)) is int for _ in range(1000))


# --- T07: a wrong scale -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)], ids=str)
def test_half_the_noise_fails_the_coin_audit(epsilon: Fraction) -> None:  # covers T07
    """6,000 runs; half the noise costs 2 epsilon."""

    def half(b: int, n: int) -> Any:
        return np.array(NOISE.laplace_many([b] * n, sensitivity=1, epsilon=2 * epsilon))

    assert audit(half, epsilon=float(epsilon), runs=6000, seed=6) < ALARM
    assert audit(ours((0, 1), epsilon), epsilon=float(epsilon), runs=6000, seed=7) > ALARM


HEAVY = {
    "lomax": (Fraction(1157, 10**4), lambda where: laplace.draw_steps(where, m=8, bits=BITS)),
    "student": (Fraction(4501, 10**4), lambda where: student.draw_student_steps(where, bits=BITS)),
    "cauchy 4": (Fraction(3429, 10**4), lambda where: cauchy.draw_steps(where, gamma=Fraction(4), bits=BITS)),
}


@pytest.mark.parametrize("family", HEAVY)
def test_heavy_tails_keep_epsilon_on_drifting_bounds_and_half_of_them_does_not(
    family: str,
) -> None:  # covers T07
    """epsilon 1, beta 1/8, the constants of THEORY 9: bounds e**beta apart, answers as far off as the smaller allows."""
    a, draw = HEAVY[family]
    bound = [Fraction(100), Fraction(113)]  # 113/100 < e**(1/8)

    def mechanism(a: Fraction) -> Callable[[int, int], Any]:
        where = [line(100 * b, scale=bound[b] / a, grid=Fraction(1)) for b in (0, 1)]
        return lambda b, n: np.array([draw(where[b]) for _ in range(n)])

    assert audit(mechanism(a), epsilon=1.0, runs=8000, seed=8) > ALARM
    assert audit(mechanism(2 * a), epsilon=1.0, runs=8000, seed=9) < ALARM


# --- T16: the same noise twice ----------------------------------------------------------------------------------

SCRIPT = """
from fractions import Fraction
from reticent.noise.source import SystemNoise
print(*SystemNoise().laplace_many([0] * 64, sensitivity=10**9, epsilon=Fraction(1)))
"""


def system_draws(_: int = 0) -> list[int]:
    """64 numbers of OpenDP's generator and 64 of ours, one after the other."""
    bits = SystemBits()
    random.seed(0)
    np.random.seed(0)
    opendp = NOISE.laplace_many([0] * 64, sensitivity=10**9, epsilon=Fraction(1))
    return opendp + draw_laplace(64, scale=Fraction(10**9), bits=bits)


def in_forks(draw: Callable[[], list[int]], count: int = 8) -> list[list[int]]:
    """What `draw` gives in each of several forked children."""
    results = []
    for _ in range(count):
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, " ".join(map(str, draw())).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            results.append([int(x) for x in pipe.read().split()])
        os.wait()
    return results


def has_repeats(runs: list[list[int]]) -> bool:
    """Whether some four numbers in a row appear twice anywhere."""
    windows = [tuple(run[i : i + 4]) for run in runs for i in range(len(run) - 3)]
    return len(set(windows)) < len(windows)


def test_no_noise_is_used_twice() -> None:  # covers T16
    """8 forks, 8 threads, 4 interpreters and the parent; at this scale a chance repeat has odds below 1e-25."""
    shared = np.random.default_rng(5)
    assert has_repeats(in_forks(lambda: shared.integers(-(10**9), 10**9, 64).tolist()))
    system_draws()  # so that any state there may be exists before the fork
    with ThreadPoolExecutor(8) as pool:
        threads = list(pool.map(system_draws, range(8)))
    made = [subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=True) for _ in range(4)]
    interpreters = [[int(x) for x in done.stdout.split()] for done in made]
    assert all(len(run) == 64 for run in interpreters)
    assert not has_repeats([system_draws(), *in_forks(system_draws), *threads, *interpreters])


def test_the_same_plan_twice_gives_two_answers() -> None:  # covers T16
    """200 answers at scale 1e9: equal with chance below 1e-1800; the caller's seeds change nothing."""
    assert system_draws() != system_draws()


def test_the_coins_count_what_they_say() -> None:
    """Ten coins all one, at epsilon ln 3: chance 0.75**10 in either direction."""
    assert Coins(ones=10, zeros=0).p_value(np.log(3)) == pytest.approx(2 * 0.75**10)
