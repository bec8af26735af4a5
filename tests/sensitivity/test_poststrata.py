"""Largest weights: the printed vectors, the definition over all steps of small surveys, and twins that are caught."""

import random
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.prepare.strata import EQUAL, BaseWeights, Strategy, separate
from reticent.sensitivity.bounds import SLACK, Ladder, LadderLine, smooth_bound
from reticent.sensitivity.poststrata import (
    Tally,
    closed_form,
    numeric_reach,
    rungs_needed,
    tally_rows,
    weight_ladder,
)
from tests.sensitivity.binned import World, answer, largest_weight, tally, within

F = Fraction
PAIR = Strategy(name="pair", bins=(0, 1), totals=(F(7), F(5, 2)))
THREE = BaseWeights(heaviest=3, kept=6)
SMALL = World(cells=2, weights=(1, 2, 3))
DATA = list(SMALL.data_sets(4))


def heads(*counts: int) -> Tally:
    n = np.array(counts)
    return Tally(count=n, total=n, matching=np.zeros_like(n), largest=np.zeros((len(n), 0), np.int64))


def ladder(data, *, strategy=PAIR, base=THREE):
    made = tally(data, base, cells=len(strategy.bins))
    return weight_ladder(strategy, made.merged(strategy), base=base)


def test_vector_of_the_rungs():
    """THEORY 6.6: W_k(A, separate) = 100000/(100 - k) for k < 100, 100000 from 100 on."""
    strategy = separate([F(100_000)] * 5)
    rungs = weight_ladder(strategy, heads(1300, 100, 1200, 1200, 1200), base=EQUAL)
    assert all(rungs.rung(k) == F(100_000, 100 - k) for k in range(100))
    assert all(rungs.rung(k) == 100_000 for k in (100, 101, 1000, 5000))


def test_rungs_are_the_largest_weight_within_k_steps():
    """All 210 surveys of up to four records, two bins, weights 1 to 3; every walk of up to three steps."""
    most = within(SMALL, PAIR)
    assert len(DATA) == 210
    for data in DATA:
        rungs = ladder(data)
        assert [rungs.rung(k) for k in range(4)] == [most(data, k) for k in range(4)]
        assert rungs.rung(0) == largest_weight(PAIR, data, 3)


def test_rungs_with_equal_weights_are_the_definition_too():
    """Three bins, one of them of total 0; up to five records; the same numbers from either formula."""
    strategy = Strategy(name="three", bins=(0, 1, 2), totals=(F(4), F(0), F(9)))
    world = World(cells=3, weights=(1,))
    most = within(world, strategy)
    for data in world.data_sets(5):
        rungs = ladder(data, strategy=strategy, base=EQUAL)
        assert [rungs.rung(k) for k in range(4)] == [most(data, k) for k in range(4)]
        counts = tally(data, EQUAL, cells=3).count.tolist()
        literal = [
            max(N / max(n - k, 1) for N, n in zip(strategy.totals, counts, strict=True)) for k in range(9)
        ]
        assert [rungs.rung(k) for k in range(9)] == literal


def climbs(rungs_of, *, rungs=6):
    """Whether U_k(D) <= U_{k+1}(D') for all neighbours of small surveys."""
    made = {data: rungs_of(data) for data in SMALL.data_sets(4)}
    return all(
        made[data].rung(k) <= made[other].rung(k + 1)
        for data in SMALL.data_sets(3)
        for other in SMALL.neighbours(data)
        for k in range(rungs)
    ) and all(
        made[other].rung(k) <= made[data].rung(k + 1)
        for data in SMALL.data_sets(3)
        for other in SMALL.neighbours(data)
        for k in range(rungs)
    )


@pytest.mark.parametrize("kept", [1, 2, 6])
def test_rungs_form_a_ladder_whatever_was_kept(kept):
    assert climbs(lambda data: ladder(data, base=BaseWeights(heaviest=3, kept=kept)))


def frozen(data):
    """Naive twin: past the weights that were kept, the last rung again."""
    return Ladder(rung=lambda k: ladder(data).rung(min(k, 1)), lines=(LadderLine(base=F(7)),))


def no_newcomer(data):
    """Naive twin: only those who are there can leave, nobody can come."""

    def rung(k):
        weights = [sorted((w for c, w, _ in data if c == cell), reverse=True) for cell in (0, 1)]
        shares = [F(w[0], w[0] + sum(w[k + 1 :])) if w else F(0) for w in weights]
        return max(N * share for N, share in zip(PAIR.totals, shares, strict=True))

    return Ladder(rung=rung, lines=(LadderLine(base=F(7)),))


def whole_cell(data):
    """Naive twin: the first rung everywhere, the local bound taken for a smooth one."""
    return Ladder(rung=lambda k: ladder(data).rung(0), lines=(LadderLine(base=F(7)),))


@pytest.mark.parametrize("naive", [frozen, no_newcomer, whole_cell])
def test_a_rough_ladder_is_noticed(naive):
    assert not climbs(naive)


ASKED = World(cells=2, weights=(1, 3), values=(0, 1))


def covered(bound, *, values=(0, 1), strategy=PAIR):
    """Whether every move of q, from all surveys of up to three records, stays within `bound` of either side."""
    world = World(cells=2, weights=(1, 3), values=values)
    return all(
        abs(answer(strategy, data) - answer(strategy, other)) <= min(bound(data), bound(other))
        for data in world.data_sets(3)
        for other in world.neighbours(data)
    )


@cache
def first_rung(data):
    return ladder(data).rung(0)


def largest(data):
    """W_0 as the library finds it; values do not matter to it."""
    return first_rung(tuple(sorted((cell, w, 0) for cell, w, _ in data)))


def test_first_rung_covers_every_move():
    """6.1, and the twin without the newcomer does not."""
    assert covered(largest)
    assert not covered(lambda data: largest_weight(PAIR, data, 3, newcomer=False))


@pytest.mark.parametrize("low_high", [(2, 5), (-5, -2), (-2, 5)])
def test_first_rung_covers_every_move_of_a_numeric_total(low_high):
    """6.5a; high - low alone does not cover the first and last member of a bin, unless 0 lies between."""
    low, high = low_high
    reach = numeric_reach(F(low), F(high))
    assert covered(lambda data: reach * largest(data), values=low_high)
    naive = covered(lambda data: (high - low) * largest(data), values=low_high)
    assert naive == (low < 0 < high)


@pytest.mark.parametrize("beta", [F(1, 20), F(3, 10), F(1)], ids=str)
def test_smooth_bound_drifts_by_at_most_e_to_the_beta(beta):  # covers T19
    """All neighbours of surveys of up to three records; the local bound drifts further."""
    smooth = {data: smooth_bound(ladder(data), beta).bound for data in SMALL.data_sets(4)}
    local = {data: ladder(data).rung(0) for data in smooth}
    pairs = [(data, other) for data in SMALL.data_sets(3) for other in SMALL.neighbours(data)]
    with ctx.workprec(100):
        factor = ball(beta).exp()

        def is_smooth(bound):
            worst = max(max(bound[a] / bound[b], bound[b] / bound[a]) for a, b in pairs)
            return bool(ball(worst) <= factor)

        assert is_smooth(smooth) and all(smooth[data] >= local[data] for data in smooth)
        assert is_smooth(local) == (beta == 1)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(0, 300), min_size=1, max_size=5),
    beta=st.fractions(F(1, 50), 2, max_denominator=50),
    data=st.data(),
)
def test_closed_form_is_the_bound_where_weights_are_equal(counts, beta, data):
    """6.3, against the search over all rungs: equal to one part in 2^34, the search never below."""
    totals = data.draw(st.lists(st.integers(1, 10**6), min_size=len(counts), max_size=len(counts)))
    strategy = separate([F(total) for total in totals])
    found = smooth_bound(weight_ladder(strategy, heads(*counts), base=EQUAL), beta + SLACK).bound
    with ctx.workprec(128):
        ratio = ball(found) / closed_form(strategy, np.array(counts), beta=beta)
        assert 1 - ball(F(1, 2**90)) <= ratio <= 1 + ball(F(1, 2**34))


def test_one_empty_bin_costs_its_whole_total():
    strategy = separate([F(50), F(10**6)])
    assert smooth_bound(weight_ladder(strategy, heads(9000, 0), base=EQUAL), F(1, 8)).bound >= 10**6


def test_enough_rungs_leave_the_bound_as_it_is():
    """With K from the expected rows the public end does not win; with a tenth of it, it does."""
    beta, rows = F(1, 8), 400
    rng = np.random.default_rng(5)
    weights, zeros = rng.integers(1, 51, rows), np.zeros(rows, np.int64)
    strategy = separate([F(10**6)])

    def bound(kept):
        base = BaseWeights(heaviest=50, kept=kept)
        made = tally_rows(zeros, weights, zeros, size=1, base=base)
        return smooth_bound(weight_ladder(strategy, made, base=base), beta).bound

    enough = rungs_needed(beta=beta, rows=rows)
    assert enough == 48 and bound(enough) == bound(400) < bound(enough // 10)
    with ctx.workprec(100):
        assert ball(-beta * enough).exp() <= ball(F(1, rows + 1)) < ball(-beta * (enough - 1)).exp()


def test_weights_beyond_their_bounds_are_clamped_and_none_is_no_record():  # covers B094
    """-5 and 0 are nobody; 99 is the heaviest there can be."""
    weights, zeros = np.array([-5, 0, 3, 99]), np.zeros(4, np.int64)
    made = tally_rows(zeros, weights, zeros + 1, size=1, base=BaseWeights(heaviest=6, kept=3))
    assert (made.count.tolist(), made.total.tolist(), made.matching.tolist()) == ([2], [9], [9])
    assert made.largest.tolist() == [[6, 3, 0]]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kept=st.integers(1, 4), size=st.integers(1, 6))
def test_merging_tallies_is_tallying_merged_rows(data, kept, size):
    """And the order of rows does not matter."""
    rows = data.draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(-1, 9), st.integers(-3, 3))))
    bins = data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    bins = [sorted(set(bins)).index(each) for each in bins]
    strategy = Strategy(name="s", bins=tuple(bins), totals=(F(1),) * (max(bins) + 1))
    base = BaseWeights(heaviest=6, kept=kept)

    def of(lines, cells):
        cell, weight, value = np.array(lines, np.int64).reshape(-1, 3).T
        return tally_rows(cell, weight, value, size=cells, base=base)

    one = of(rows, size).merged(strategy)
    other = of([(bins[c], w, y) for c, w, y in reversed(rows)], max(bins) + 1)
    for name in ("count", "total", "matching", "largest"):
        assert (getattr(one, name) == getattr(other, name)).all()


@settings(max_examples=50, deadline=None)
@given(data=st.data(), bins=st.integers(1, 30), k=st.integers(0, 3))
def test_doubles_only_say_where_to_look(data, bins, k):
    """Totals and weights up to 2^60, many ties and near ties: the maximum is that of fractions."""
    big = st.integers(1, 2**58) | st.integers(2**58 - 3, 2**58)
    lines = [sorted(data.draw(st.lists(big, max_size=6)), reverse=True) for _ in range(bins)]
    totals = tuple(F(data.draw(big)) for _ in range(bins))
    base = BaseWeights(heaviest=2**58, kept=4)
    kept = np.array([[*line, 0, 0, 0, 0][:4] for line in lines], np.int64)
    made = Tally(
        count=np.array([len(line) for line in lines]),
        total=np.array([sum(line) for line in lines], np.int64),
        matching=np.zeros(bins, np.int64),
        largest=kept,
    )
    strategy = separate(totals)
    literal = max(
        total * max(F(line[0], line[0] + sum(line[k + 1 :])) if line else 0, F(2**58, 2**58 + sum(line[k:])))
        for total, line in zip(totals, lines, strict=True)
    )
    assert weight_ladder(strategy, made, base=base).rung(k) == literal


def test_near_ties_below_the_last_digit_of_a_double_are_settled():
    """Weights 2^50 + r/n: the largest double is often not the largest weight, so doubles alone may not choose."""
    draw = random.Random(12)
    mistaken = 0
    for _ in range(50):
        counts = [draw.randrange(200, 512) for _ in range(40)]
        totals = [F(2**50 * n + draw.randrange(n)) for n in counts]
        weights = [total / n for total, n in zip(totals, counts, strict=True)]
        assert weight_ladder(separate(totals), heads(*counts), base=EQUAL).rung(0) == max(weights)
        doubles = np.array([float(total) for total in totals]) / np.array(counts)
        mistaken += weights[int(doubles.argmax())] != max(weights)
    assert mistaken > 0


BROKEN = {
    "length": {"total": np.array([3])},
    "rising": {"largest": np.array([[1, 2], [0, 0]])},
    "negative": {"largest": np.array([[2, -1], [0, 0]])},
    "too many": {"count": np.array([1, 0])},
    "too few": {"count": np.array([3, 0])},
    "rest": {"total": np.array([4, 0])},
    "nothing left": {"total": np.array([2, 0])},
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_tally_that_contradicts_itself_is_refused_without_saying_a_number(how):
    right = {"count": np.array([2, 0]), "total": np.array([3, 0]), "matching": np.array([0, 0])}
    right["largest"] = np.array([[2, 1], [0, 0]])
    assert "3" not in repr(Tally(**right))
    with pytest.raises(ValueError, match=r"^[^0-9]+$"):
        Tally(**(right | BROKEN[how]))


def test_other_tables_and_bounds_are_refused():
    with pytest.raises(ValueError, match="same base cells"):
        heads(1, 2, 3).merged(PAIR)
    with pytest.raises(ValueError, match="strategy's bins"):
        weight_ladder(PAIR, heads(1, 2, 3), base=EQUAL)
    with pytest.raises(ValueError, match="publicly agreed"):
        weight_ladder(PAIR, heads(1, 2), base=THREE)
    for low, high in ((0, 0), (2, 1)):
        with pytest.raises(PlanError):
            numeric_reach(F(low), F(high))
    with pytest.raises(PlanError):
        rungs_needed(beta=F(1, 8), rows=0)
