"""Theil-Sen by selection: its loss by listing all matchings, and every step of its choice against a plain twin."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, floor, log

import numpy as np
import pytest
from scipy.stats import chisquare

from reticent.errors import PlanError
from reticent.noise.bits import Uniform, words
from reticent.smallcells import theilsen
from reticent.smallcells import theilsen as matching
from reticent.smallcells import theilsen as median
from reticent.smallcells.estimators import CellMean, Estimator, Predict, Slope
from reticent.smallcells.points import GridPoints
from reticent.smallcells.table import Estimand
from reticent.smallcells.theilsen import TheilSenCells, settle
from tests.audit import ALARM
from tests.noise.seeded import SeededBits, chosen_bits
from tests.smallcells.tiny import Cell, neighbours, points_of

GRID = {"x_steps": 2, "y_steps": 2}
AIM = Estimand(estimator=Predict(at=Fraction(1, 4)), steps=5)
ASKED = TheilSenCells(aim=AIM, epsilon=Fraction(1), matchings=1)
Pairs = tuple[tuple[int, int], ...]


def _matchings(members: tuple[int, ...]) -> Iterator[Pairs]:
    """Every matching that leaves out nobody, or one where the number is odd."""
    if len(members) % 2:
        for i in range(len(members)):
            yield from _matchings(members[:i] + members[i + 1 :])
    elif not members:
        yield ()
    else:
        for i in range(1, len(members)):
            for rest in _matchings(members[1:i] + members[i + 1 :]):
                yield ((members[0], members[i]), *rest)


def _step(one: tuple[int, int], two: tuple[int, int], aim: Estimand, grid: dict[str, int]) -> int | None:
    """The line through two points, by rationals."""
    (x1, y1), (x2, y2) = sorted((one, two))
    if x1 == x2:
        return None
    slope = Fraction(y2 - y1, grid["y_steps"]) / Fraction(x2 - x1, grid["x_steps"])
    value = slope
    if isinstance(aim.estimator, Predict):
        value = Fraction(y1, grid["y_steps"]) + slope * (aim.estimator.at - Fraction(x1, grid["x_steps"]))
    return min(max(floor((value - aim.low) / aim.step + Fraction(1, 2)), -1), aim.steps + 1)


def _law(
    cell: Cell,
    asked: TheilSenCells,
    *,
    rate: Fraction | None = None,
    fixed: bool = False,
    grid: dict[str, int] = GRID,
) -> np.ndarray:
    """The law of the choice, by listing all matchings; `fixed` pairs the points as they are sorted instead."""
    everyone = tuple(range(len(cell)))
    each = [tuple(zip(everyone[::2], everyone[1::2], strict=False))] if fixed else list(_matchings(everyone))
    laws = []
    for chosen in product(each, repeat=asked.matchings):
        found = [_step(cell[i], cell[j], asked.aim, grid) for pairs in chosen for i, j in pairs]
        z = np.array([step for step in found if step is not None])
        weights = np.exp(-float(rate or asked.rate) * _scores(z, asked.aim.steps, asked.widen))
        laws.append(weights / weights.sum())
    return np.mean(laws, axis=0)


def _scores(z: np.ndarray, top: int, widen: int) -> np.ndarray:
    def g(s: int) -> int:
        return int((z < s).sum() - (z > s).sum())

    return np.array([max(0, -g(r + widen), g(r - widen)) for r in range(top + 1)])


def _loss(cells: list[Cell], asked: TheilSenCells, **how: object) -> float:
    worst = 0.0
    for cell in cells:
        here = _law(tuple(sorted(cell)), asked, **how)
        for other in {tuple(sorted(each)) for each in neighbours(cell, **GRID)}:
            worst = max(worst, float(np.abs(np.log(_law(other, asked, **how) / here)).max()))
    return worst


CELLS = [
    ((0, 0), (0, 2), (1, 1), (2, 0)),
    ((0, 0), (2, 2), (2, 2)),
    ((0, 2), (0, 2), (2, 2), (2, 2)),
    ((0, 1), (1, 2)),
    (),
]


@pytest.mark.parametrize("widen", [0, 1])
def test_the_loss_is_at_most_epsilon(widen: int):  # covers T07
    """All matchings, all neighbours of five tables with even and odd numbers, both ways."""
    assert _loss(CELLS, replace(ASKED, widen=widen)) <= 1


def test_the_loss_of_two_matchings_is_at_most_epsilon():  # covers T07
    """Pairs of matchings together, for a slope."""
    aim = Estimand(estimator=Slope(), low=Fraction(-2), high=Fraction(2), steps=4)
    assert _loss(CELLS[1:], replace(ASKED, aim=aim, matchings=2)) <= 1


def test_half_the_sensitivity_would_be_caught():  # covers T07
    """The naive twin counts one move for each matching, but where a pair goes another comes.

    Four points on the line y = 0, then a fifth at (1, 1): nearly every matching loses a pair at 0 for one at 1.
    """
    line = ((0, 0), (1, 0), (2, 0), (3, 0))
    aim, grid = Estimand(estimator=Predict(at=Fraction(1)), steps=2000), {"x_steps": 4, "y_steps": 1}
    asked = TheilSenCells(aim=aim, epsilon=Fraction(1, 5), matchings=1)

    def loss(rate: Fraction) -> float:
        laws = [_law(cell, asked, rate=rate, grid=grid) for cell in (line, (*line, (4, 1)))]
        return float(np.abs(np.log(laws[0] / laws[1])).max())

    assert loss(asked.rate) <= 0.2 < loss(2 * asked.rate)


def test_pairs_by_a_fixed_rule_would_be_caught():  # covers T07
    """The naive twin pairs points in sorted order: one who comes first shifts every pair, and up turns to down."""
    zigzag = tuple((i, i % 2) for i in range(10))
    aim, grid = (
        Estimand(estimator=Slope(), low=Fraction(-20), high=Fraction(20), steps=200),
        {"x_steps": 9, "y_steps": 1},
    )
    asked = replace(ASKED, aim=aim)
    cells = [zigzag, tuple(sorted((*zigzag, (0, 1))))]
    laws = [_law(cell, asked, fixed=True, grid=grid) for cell in cells]
    assert np.abs(np.log(laws[0] / laws[1])).max() > 1


def test_the_table_has_the_law_that_is_proved():  # covers T26
    """20,000 copies of one cell of five points, chi-square at 1e-9; the law at twice the rate is rejected."""
    cell = ((0, 0), (0, 1), (1, 2), (2, 0), (2, 1))
    asked = TheilSenCells(aim=AIM, epsilon=Fraction(12), matchings=2)
    one, many = points_of([cell], **GRID), 20_000
    points = GridPoints(
        starts=np.arange(many + 1) * 5, x=np.tile(one.x, many), y=np.tile(one.y, many), **GRID
    )
    drawn = np.bincount(asked.measure(points, bits=chosen_bits(8)).steps, minlength=6)
    right, wrong = _law(cell, asked), _law(cell, asked, rate=2 * asked.rate)
    assert chisquare(drawn, many * right).pvalue > ALARM > chisquare(drawn, many * wrong).pvalue


@pytest.mark.parametrize(("n", "kinds"), [(4, 3), (5, 15)])
def test_matchings_are_uniform(n: int, kinds: int):
    """30,000 matchings, each from the order the last one left; chi-square at 1e-9."""
    order, drawn, at = np.arange(n), words(30_000 * 4, chosen_bits(9)), 0
    seen: dict[frozenset[frozenset[int]], int] = {}
    for _ in range(30_000):
        at = matching.pair_up(order, drawn, at)
        pairs = frozenset(frozenset(order[i : i + 2].tolist()) for i in range(0, n - 1, 2))
        seen[pairs] = seen.get(pairs, 0) + 1
    assert len(seen) == kinds and chisquare(list(seen.values())).pvalue > ALARM


@pytest.mark.parametrize("n", [1, 3, 10**6 + 3, 2**40 + 1, 2**62 - 57])
def test_every_number_has_equally_many_words(n: int):
    """The words of number v are v 2^64 / n up to the next; those refused are 2^64 mod n in all, at each start."""
    spare = 2**64 % n
    for v in {0, 1 % n, n // 2, n - 1}:
        start = -(-v * 2**64 // n)
        refused = start * n % 2**64 < spare
        value, at = matching.below(n, np.array([start, 2**63], np.uint64), 0)
        assert at == (2 if refused else 1) and (refused or value == v)
        assert (start + 1) * n % 2**64 >= spare or n > 2**63
    assert matching.below(3, np.array([0], np.uint64), 0)[1] == -1  # refused, and the words have run out


def test_a_cell_that_runs_out_of_words_begins_anew():
    """Half the words do half the cells; the rest is told to come again."""
    points = points_of([[(0, 0), (1, 1), (2, 2)]] * 10, **GRID)
    counts, room = np.zeros(10, np.int64), np.arange(11) * 2
    line = ASKED.through(points)
    done = matching.pairs_of_all(
        line,
        points.starts,
        points.x,
        points.y,
        1,
        words(11, SeededBits(1)),
        room,
        np.zeros(20, np.int64),
        counts,
    )
    assert done == 5


@pytest.mark.parametrize("estimator", [Predict(at=Fraction(1, 3)), Predict(at=Fraction(1)), Slope()], ids=str)
def test_lines_are_rounded_as_rationals_are(estimator: Estimator):
    """Every pair of points of a small square, against Fractions."""
    grid = {"x_steps": 4, "y_steps": 3}
    aim = Estimand(estimator=estimator, low=Fraction(-1, 3), high=Fraction(5, 4), steps=19)
    line = TheilSenCells(aim=aim, epsilon=Fraction(1)).through(points_of([[]], **grid))
    everywhere = list(product(range(5), range(4)))
    for (x1, y1), (x2, y2) in product(everywhere, everywhere):
        if x1 < x2:
            assert matching.step_through(line, x1, y1, x2, y2) == _step((x1, y1), (x2, y2), aim, grid)


@pytest.mark.parametrize("widen", [0, 1, 4])
def test_stretches_hold_every_score(widen: int):
    """400 lists of steps, with ties and beyond the ends: each step is in one stretch, with the score of the formula."""
    rng, top = np.random.default_rng(4), 9
    for _ in range(400):
        z = np.sort(rng.integers(-1, top + 2, rng.integers(0, 9)))
        parts = median.stretches(z, top, widen)
        scores = [far for begin, end, far in parts.T.tolist() for _ in range(begin, end + 1)]
        assert parts[0, 0] == 0 and (parts[0, 1:] == parts[1, :-1] + 1).all() and parts[1, -1] == top
        assert scores == _scores(z, top, widen).tolist()


def test_the_quick_choice_is_the_exact_one():
    """600 choices, words near a border among them: doubles agree with integers or leave the choice open."""
    rng, rate, is_open = np.random.default_rng(5), Fraction(1, 7), 0
    decay = theilsen._decay(rate)
    for i in range(600):
        parts = median.stretches(np.sort(rng.integers(-1, 102, 12)), 100, 0)
        word = int(rng.integers(0, 2**63)) * 2
        if i % 2:  # the border after some stretch, as near as doubles tell it
            sizes = (parts[1] - parts[0] + 1) * np.exp(-float(rate) * (parts[2] - parts[2].min()))
            share = sizes.cumsum()[rng.integers(0, len(sizes))] / sizes.sum()
            word = min(max(int(share * 2**64) + int(rng.integers(-(2**20), 2**20)), 0), 2**64 - 1)
        quick = median.choose(parts, decay, np.uint64(word))
        is_open += quick < 0
        assert quick in (-1, settle(parts, rate, Uniform(SeededBits(i), word, 64)))
    assert 150 < is_open < 330  # near a border it is left open, elsewhere not


def test_what_doubles_leave_open_is_settled_by_integers(monkeypatch: pytest.MonkeyPatch):
    """With the quick choice switched off the table is as good: same law, chi-square at 1e-9 on 3,000 cells."""
    points = points_of([[(0, 0), (2, 2)]] * 3000, **GRID)
    monkeypatch.setattr(median, "choose_all", lambda *rest: rest[-1].fill(-1))
    asked = replace(ASKED, epsilon=Fraction(6))
    drawn = np.bincount(asked.measure(points, bits=chosen_bits(11)).steps, minlength=6)
    assert chisquare(drawn, 3000 * _law(((0, 0), (2, 2)), asked)).pvalue > ALARM


def test_scores_far_apart_choose_the_best():  # covers T18
    """2,000 points on one line at a huge epsilon: its step; no pair at all: every step is as likely as any other."""
    line = [(i, i) for i in range(2000)]
    points = points_of([line, [], [(3, 4)], [(5, 1)] * 7], x_steps=1999, y_steps=1999)
    asked = TheilSenCells(aim=replace(AIM, steps=100), epsilon=Fraction(10**6), matchings=3)
    chosen = asked.measure(points, bits=SeededBits(12)).steps
    assert chosen[0] == 25 and all(0 <= step <= 100 for step in chosen)
    nobody = points_of([[]] * 6000, **GRID)
    drawn = np.bincount(ASKED.measure(nobody, bits=chosen_bits(13)).steps, minlength=6)
    assert chisquare(drawn).pvalue > ALARM


def test_decay_is_within_its_margin():
    """Against the exponential of the standard library, itself within a few units of the last place."""
    decay = theilsen._decay(Fraction(1, 3))
    assert len(decay) == 1801 and decay[0] == 1
    assert max(abs(log(p) + d / 3) for d, p in enumerate(decay.tolist())) < 1e-12
    assert decay[1800] == pytest.approx(exp(-600), rel=1e-12)


def test_refuses_what_it_cannot_choose():
    """A mean, no epsilon, no matching, a window wider than the range, grids too fine for a word."""
    for wrong in (
        {"aim": Estimand(estimator=CellMean())},
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(1, 2000)},
        {"matchings": 0},
        {"widen": 6},
    ):
        with pytest.raises(PlanError):
            replace(ASKED, **wrong)
    fine = replace(ASKED, aim=replace(AIM, steps=2**40))
    with pytest.raises(PlanError, match="steps"):
        fine.measure(points_of([[]], x_steps=2**20, y_steps=2**20), bits=SeededBits(0))
