"""Completing synthetic rows: right where silence depends on answers, and never more than asked."""

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.synth.domain import Domain
from reticent.synth.lawful import associated, complete_rows
from tests.noise.seeded import SeededBits
from tests.synth.standins import rows_for, toy

ROWS = 40_000


def mar(seed: int) -> tuple[np.ndarray, np.ndarray, Domain]:
    """b follows a; b is silent for 60 percent where a = 1 and for nobody where a = 0."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, ROWS)
    b = np.where(rng.random(ROWS) < 0.8, a, 1 - a)
    seen = np.where((a == 1) & (rng.random(ROWS) < 0.6), 2, b)
    return np.stack([a, b], axis=1), np.stack([a, seen], axis=1), toy([2, 2])


def available(cells: np.ndarray, domain: Domain, seed: int) -> np.ndarray:
    """The naive twin: silent cells get a draw from the answers of all others."""
    rng, made = np.random.default_rng(seed), cells.copy()
    for place, axis in enumerate(domain.axes):
        silent = cells[:, place] == axis.silence
        made[silent, place] = rng.choice(cells[~silent, place], int(silent.sum()))
    return made


def test_the_bias_of_available_cells_goes_where_silence_depends_on_answers() -> None:
    """40,000 rows: a share misses by .02 with chance below 4e-14. Available cells say .37 for a half."""
    assert rows_for(4e-14, 0.02) < ROWS
    truth, seen, domain = mar(1)
    (made,) = complete_rows(seen, domain, SeededBits(1))
    assert abs(made[:, 1].mean() - truth[:, 1].mean()) < 0.02
    assert abs(made[made[:, 0] == 1, 1].mean() - 0.8) < 0.03
    twin = available(seen, domain, 1)
    assert abs(twin[:, 1].mean() - truth[:, 1].mean()) > 0.1


def chain(seed: int, rate: float) -> tuple[np.ndarray, np.ndarray, Domain]:
    """Four columns of three levels, each following the one before; every cell silent with chance `rate`."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((ROWS, 4), dtype=np.int64)
    truth[:, 0] = rng.integers(0, 3, ROWS)
    for place in range(1, 4):
        truth[:, place] = np.where(rng.random(ROWS) < 0.85, truth[:, place - 1], rng.integers(0, 3, ROWS))
    return truth, np.where(rng.random(truth.shape) < rate, 3, truth), toy([3, 3, 3, 3])


def apart(one: np.ndarray, other: np.ndarray) -> float:
    """The mean distance of their two-way tables."""
    found = []
    for i in range(4):
        for j in range(i):
            tables = [
                np.bincount(3 * rows[:, i] + rows[:, j], minlength=9) / len(rows) for rows in (one, other)
            ]
            found.append(np.abs(tables[0] - tables[1]).sum() / 2)
    return float(np.mean(found))


def test_pairs_survive_when_all_columns_have_holes() -> None:
    """30 percent silent everywhere, 40,000 rows: distance of pairs near that of chance alone; the twin's is ten times it."""
    truth, seen, domain = chain(2, 0.3)
    (made,) = complete_rows(seen, domain, SeededBits(2))
    assert apart(made, truth) < 0.01
    assert apart(available(seen, domain, 2), truth) > 0.1


def test_only_silent_cells_change_and_none_is_left() -> None:
    """Also with universes: nobody silent becomes unasked, and nobody unasked gets an answer."""
    domain = toy([3, 4, 2], universes={"b": "a = '1'"})
    cells = np.random.default_rng(3).integers(0, [4, 6, 3], (500, 3))
    for made in complete_rows(cells, domain, SeededBits(3), copies=2):
        silence = np.array([axis.silence for axis in domain.axes])
        was = cells == silence
        assert (made == cells)[~was].all()
        assert (made < silence)[was].all()


def test_copies_differ_in_silent_cells_and_repeat_from_the_same_bits() -> None:
    """Two thousand draws from two answers: alike with chance below 2^-500."""
    _, seen, domain = mar(4)
    one, other = complete_rows(seen[:4000], domain, SeededBits(5), copies=2)
    assert (one != other).any()
    again = complete_rows(seen[:4000], domain, SeededBits(5), copies=2)
    assert (again[0] == one).all() and (again[1] == other).all()


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_a_column_nobody_answered_is_drawn_from_its_domain(rows: int) -> None:
    domain = toy([3, 2])
    cells = np.tile([3, 1], (rows, 1)).reshape(rows, 2)
    (made,) = complete_rows(cells, domain, SeededBits(6))
    assert made.shape == (rows, 2) and (made[:, 0] < 3).all()


def test_no_copy_is_refused() -> None:
    with pytest.raises(PlanError):
        complete_rows(np.zeros((1, 2), int), toy([2, 2]), SeededBits(0), copies=0)


def test_columns_are_chosen_that_tell_something_and_no_others() -> None:
    """a tells b but a fifth. Noise of eight levels: twice the gain is chi-square of 49, above 98 with chance 4e-5."""
    truth, _, _ = mar(7)
    noise = np.random.default_rng(8).integers(0, 8, (ROWS, 2))
    assert associated(np.column_stack([noise[:, 0], truth]), toy([8, 2, 2]), 2) == (1,)
    assert associated(noise, toy([8, 8]), 0) == ()
