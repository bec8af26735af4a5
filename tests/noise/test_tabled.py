"""Noise from tables of words: every entry is the stated probability, open words are settled, no other law passes."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from reticent.errors import PlanError
from reticent.noise import gaussian
from reticent.noise.bits import Uniform
from reticent.noise.gaussian import (
    FULL,
    LARGEST,
    WordTable,
    add_gaussian_many,
    add_rounded_many,
    discrete_bracket,
    discrete_table,
    draw_wide,
    half_table,
    rounded_table,
)
from reticent.noise.vector import draw_gaussian
from reticent.sensitivity.bounds import Global
from tests.audit import ALARM, chi_square
from tests.noise import laws
from tests.noise.seeded import IS_NIGHTLY, SeededBits, chosen_bits

SIGMAS = [0.3, 1.0, 10 / 3, 37.0, 1000.0, 4096.0]
DRAWS = 100_000 if IS_NIGHTLY else 40_000
TABLES = {"discrete": discrete_table, "rounded": rounded_table}


def masses(sigma: float) -> list[Decimal]:
    """exp(-x*x / (2 sigma*sigma)) to 60 digits, until it is below 1e-55: another road than the recurrence."""
    twice = 2 * Decimal(sigma) * Decimal(sigma)
    found: list[Decimal] = []
    while not found or found[-1] > Decimal(10) ** -55:
        found.append((-Decimal(len(found) ** 2) / twice).exp())
    return found


def cumulated(sigma: float) -> list[Decimal]:
    """P(|X| <= m) of the discrete Gaussian."""
    each = masses(sigma)
    total = 2 * sum(each) - each[0]
    sums = [each[0]]
    for mass in each[1:]:
        sums.append(sums[-1] + 2 * mass)
    return [s / total for s in sums]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 10 / 3, 37.0, 300.0])
def test_every_entry_is_the_first_64_digits_of_its_probability(sigma: float) -> None:  # covers T26
    """Against sums of 60 decimal digits; an entry is a whole number and has to be equal."""
    with localcontext() as digits:
        digits.prec = 60
        expected = [int(p * 2**64) for p in cumulated(sigma)]
    entries = discrete_table(sigma).entries.tolist()
    assert entries == [min(word, FULL) for word in expected[: len(entries)]]
    assert entries[-1] == FULL
    assert entries[-2] < FULL


@pytest.mark.parametrize("sigma", [1.0, 37.0, 4096.0])
def test_brackets_hold_the_same_number_at_every_precision(sigma: float) -> None:
    """Wide ones hold narrow ones, and narrow ones are narrow."""
    coarse, fine = discrete_bracket(sigma, 64), discrete_bracket(sigma, 192)
    for m in (0, 1, int(sigma), int(5 * sigma), int(40 * sigma)):
        low, high = coarse(m, 64)
        inner = fine(m, 192)
        assert low <= inner[0] >> 128 <= inner[1] >> 128 <= high
        assert inner[1] - inner[0] <= 1 << 8 or m >= 20 * sigma


@pytest.mark.parametrize("sigma", [0.3, 1.0, 37.0, 1000.0])
def test_rounded_entries_are_those_of_the_normal_law(sigma: float) -> None:
    """Within what a double's error function gives: 1e-13 of the mass."""
    entries = rounded_table(sigma).entries.astype(np.float64) / 2.0**64
    m = np.arange(len(entries))
    assert np.allclose(entries, 2 * ndtr((m + 0.5) / sigma) - 1, rtol=0, atol=1e-13)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("name", TABLES)
def test_tables_have_the_stated_scale_and_no_other(name: str, sigma: float) -> None:  # covers T26
    """40,000 draws; 5 % of sigma is seen from 17,000 on, a quarter where the grid is coarse for the noise."""
    law = laws.gaussian if name == "discrete" else rounded_law
    draws = TABLES[name](sigma).draw(DRAWS, chosen_bits(18)).tolist()
    off = 1.05 if sigma > 1 else 1.25
    assert chi_square(draws, law(sigma), cells=12) > ALARM
    assert chi_square(draws, law(off * sigma), cells=12) < ALARM


@pytest.mark.parametrize("sigma", [0.4, 10 / 3, 37.0, 5e5, 1e12])
def test_draws_by_rejection_have_the_stated_scale_and_no_other(sigma: float) -> None:  # covers T26
    """The same law without a table, for any sigma."""
    draws = draw_gaussian(DRAWS, sigma=sigma, bits=chosen_bits(20))
    off = 1.05 if sigma > 1 else 1.25
    assert chi_square(draws, laws.gaussian(sigma), cells=12) > ALARM
    assert chi_square(draws, laws.gaussian(off * sigma), cells=12) < ALARM


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), 2.0**48])
def test_no_draws_for_what_is_no_scale(sigma: float) -> None:
    for draw in (draw_gaussian, draw_wide):
        with pytest.raises(ValueError, match="scale"):
            draw(1, sigma=sigma, bits=SeededBits(1))
    with pytest.raises(ValueError, match="scale"):
        draw_wide(1, sigma=1023.0, bits=SeededBits(1))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 10 / 3, 300.0])
def test_entries_of_one_side_are_the_first_64_digits_of_their_probabilities(sigma: float) -> None:
    """Zero has its mass once, as on both sides, and every other number half of what it has there."""
    with localcontext() as digits:
        digits.prec = 60
        each = masses(sigma)
        expected = [int(sum(each[: m + 1]) / sum(each) * 2**64) for m in range(min(len(each), 40))]
    entries = half_table(sigma).entries.tolist()
    assert entries[: len(expected)] == [min(word, FULL) for word in expected[: len(entries)]]


@pytest.mark.parametrize("sigma", [1024.0, 10_000 / 3, 5e5, 1e12, 2.0**47.9])
def test_draws_by_blocks_have_the_stated_scale_and_no_other(sigma: float) -> None:  # covers T26
    """40,000 draws, as for tables."""
    draws = draw_wide(DRAWS, sigma=sigma, bits=chosen_bits(21)).tolist()
    assert len(draws) == DRAWS
    assert chi_square(draws, laws.gaussian(sigma), cells=12) > ALARM
    assert chi_square(draws, laws.gaussian(1.05 * sigma), cells=12) < ALARM


def by_blocks(sigma: float, places: int, n: int = 2 * DRAWS) -> list[int]:
    """The tries that are kept where blocks are as wide as the law, and so many are refused."""
    table = half_table(sigma / 2**places)
    return gaussian._wide_tries(n, sigma, places, table, chosen_bits(22)).tolist()


@pytest.mark.parametrize(("sigma", "places"), [(6.0, 2), (2.7, 3), (37.0, 6)])
def test_coins_make_blocks_into_the_law_whatever_their_width(sigma: float, places: int) -> None:
    assert chi_square(by_blocks(sigma, places), laws.gaussian(sigma), cells=12) > ALARM


def test_blocks_without_coins_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive twin keeps every try: steps of equal chance, and too wide."""
    monkeypatch.setattr(gaussian, "is_below_exp", lambda u, gamma: True)
    assert chi_square(by_blocks(6.0, 2), laws.gaussian(6.0), cells=12) < ALARM


def test_a_coin_starts_from_the_digits_that_decide_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word's last digits are the place in the block, the others those of the coin; only what is open is asked for."""
    asked: list[tuple[int, int, Fraction]] = []
    monkeypatch.setattr(
        gaussian, "is_below_exp", lambda u, gamma: asked.append((u.prefix, u.known, gamma)) or True
    )
    sigma, places = 8192.0, 3
    blocks = np.array([1 << 63, 1 << 63], dtype=np.uint64)
    coins = np.array([FULL, (FULL >> 1) & ~7 | 5], dtype=np.uint64)
    planted = [int.from_bytes(each.tobytes()) for each in (blocks, coins)]
    made = gaussian._wide_tries(2, sigma, places, half_table(1024.0), Planted(*planted, 0))
    first = int(half_table(1024.0).sizes(1, Planted(int.from_bytes(blocks[:1].tobytes())))[0]) * 8
    assert made.tolist() == [first + 7, first + 5]
    assert asked == [(FULL >> 3, 61, Fraction(7 * (7 + 2 * first), 2 * 8192**2))]


def rounded_law(sigma: float) -> laws.Law:
    """P(floor(sigma Z + 1/2) <= k)."""
    return lambda k: ndtr((np.asarray(k) + 0.5) / sigma)


def test_the_two_laws_differ_where_the_grid_is_coarse() -> None:
    """At sigma 0.3 the discrete Gaussian is zero with chance .992, the rounded normal with .904."""
    draws = rounded_table(0.3).draw(DRAWS, chosen_bits(19)).tolist()
    assert chi_square(draws, laws.gaussian(0.3), cells=12) < ALARM


class Planted:
    """Given words first, then bits from a seed."""

    is_private = False

    def __init__(self, *planted: int) -> None:
        self.planted, self.rest = list(planted), SeededBits(3)

    def take(self, n: int) -> int:
        return self.planted.pop(0) if self.planted else self.rest.take(n)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("m", [0, 1, 5])
def test_a_word_equal_to_an_entry_is_settled_by_more_digits(name: str, m: int) -> None:
    """With the next 64 digits all zero U lies below P(|X| <= m), with all of them one above."""
    table = TABLES[name](3.0)
    word = int(table.entries[m])
    assert table.settle(m, Uniform(Planted(0), word, 64)) == m
    assert table.settle(m, Uniform(Planted(FULL), word, 64)) == m + 1


@pytest.mark.parametrize("name", TABLES)
def test_the_last_word_goes_beyond_the_table(name: str) -> None:
    """64 ones say only that U is near 1: 64 ones more lead farther than the table does, and nothing breaks."""
    table = TABLES[name](3.0)
    last = len(table.entries) - 1
    assert table.settle(last, Uniform(Planted(0), FULL, 64)) == last
    assert table.settle(last, Uniform(Planted(FULL, FULL), FULL, 64)) > last


def test_a_draw_settles_what_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever took the first entry that is not below would be wrong for every other tie."""
    table = discrete_table(3.0)
    met: list[int] = []
    monkeypatch.setattr(WordTable, "settle", lambda _, m, u: met.append(u.prefix) or m)
    words = np.array([table.entries[2], 17, table.entries[4]], dtype=np.uint64)
    planted = int.from_bytes(words.tobytes())
    table.draw(3, Planted(planted))
    assert met == [int(table.entries[2]), int(table.entries[4])]


def test_long_lists_take_the_table_and_short_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice rests on the length of the list and on sigma, both public."""
    used: list[tuple[str, float]] = []

    def noting(name: str, call):
        return lambda *a, **k: used.append((name, round(k.get("sigma", a[0])))) or call(*a, **k)

    monkeypatch.setattr(gaussian, "discrete_table", noting("table", discrete_table))
    monkeypatch.setattr(gaussian, "draw_gaussian", noting("rejection", draw_gaussian))
    monkeypatch.setattr(gaussian, "draw_wide", noting("blocks", draw_wide))
    for n, bound in ((2, 3), (50, 3), (50, 10**6), (5_000, 10**6), (5_000, 5_000)):
        made = add_gaussian_many([7] * n, sensitivity=Global(bound=Fraction(bound)), rho=Fraction(1, 2))
        assert len(made) == n
        assert {type(each) for each in made} == {int}
    assert used == [("table", 3), ("rejection", 10**6), ("blocks", 10**6), ("blocks", 5_000)]


def test_rounded_noise_is_added_to_its_answer() -> None:
    """10,000 answers of a million: the mean noise is below 6 deviations of it."""
    made = add_rounded_many([10**6] * 10_000, sensitivity=Global(bound=Fraction(5)), rho=Fraction(1, 2))
    assert abs(np.mean(made) - 10**6) < 6 * 5 / 100
    assert 4.5 < np.std(made) < 5.5


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), 2 * LARGEST])
def test_no_table_for_what_is_no_scale(sigma: float) -> None:
    with pytest.raises(ValueError, match="sigma"):
        discrete_table(sigma)
    with pytest.raises(ValueError, match="sigma"):
        rounded_table(sigma)


def test_rounded_noise_beyond_a_table_is_refused() -> None:
    with pytest.raises(PlanError, match="too large for a table"):
        add_rounded_many([1], sensitivity=Global(bound=Fraction(1)), rho=Fraction(1, 10**12))
