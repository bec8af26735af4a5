"""Direct estimates by generalised least squares: vectors, the normal equations, variances by simulation, and refusals."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.schema.codebook import schema_from
from reticent.synth.answer import answer_directly, answered
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.direct import NoInterval, estimated, shares_of
from reticent.synth.domain import HOLE, domain_of
from reticent.synth.lists import Lists, ListsPart, NoisyList, lists_from, lists_section
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.marginals.study import plain
from reticent.synth.questions import read_question
from reticent.synth.residuals import with_fine_axes
from tests.synth.standins import ArrayCounts, NoSynthNoise, QuickSynthNoise, toy

NONE = np.zeros(0)
SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed(Lists):
    """Lists whose noisy total is a number of the vector."""

    total: float = 100.0
    total_variance: float = 4.0


def measured(places, cells, deviation, left=(), **flags) -> NoisyList:
    return NoisyList(
        places=places,
        cells=np.array(cells, float).ravel(),
        left=np.array(left, float),
        sums=NONE,
        deviation=deviation,
        sum_deviations=NONE,
        **{"is_chosen": False, "is_grouped": len(places) > 1, **flags},
    )


def vector(missing=MissingMethod.VALUES, **more) -> Lists:
    """The first vector: a table of two by two beside its columns."""
    domain, side = toy([2, 2]), np.array([0, 1, -1])
    lists = (
        measured((0,), [58, 43], 4.0),
        measured((1,), [66, 33], 4.0),
        measured((0, 1), [60, -4, 5, 41], 5.0),
    )
    both = (side, side)
    return Fixed(
        domain=domain, missing=missing, plain=both, groups=both, lists=lists, is_gaussian=True, **more
    )


def test_the_first_vector():
    found = estimated(vector(), (0, 1))
    assert found is not None
    assert 100 * found.table == pytest.approx([61.409443, -4.484496, 4.515504, 38.621564], abs=1e-6)
    assert found.positive == pytest.approx([0.598939, 0, 0.03, 0.371061], abs=1e-6)
    corner, row, far = (np.array(q, float) for q in ([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]))

    def covariance(one, other):
        both, apart = (
            found.noise(one + sign * other) - found.scale_noise(one + sign * other) for sign in (1, -1)
        )
        return (both - apart) / 4

    assert 1e4 * covariance(corner, corner) == pytest.approx(9.474101, abs=1e-6)
    assert 1e4 * covariance(corner, row) == pytest.approx(-6.056202, abs=1e-6)
    assert 1e4 * covariance(corner, far) == pytest.approx(3.413495, abs=1e-6)
    assert found.sampling(corner) == pytest.approx(2.402110e-3, rel=1e-6)
    assert found.scale_noise(corner) == pytest.approx(1.434914e-4, rel=1e-6)


def ask(lists, raw, **more):
    return answer_directly(read_question(raw, lists.domain), lists, **more)


def test_the_first_vector_as_answers():
    (cell,) = ask(vector(), {"proportion": "a = '0' and b = '0'"})
    assert (cell.estimate, cell.standard_error) == pytest.approx((0.614094, 0.0591017), abs=1e-6)
    assert (cell.low, cell.high) == pytest.approx((0.498257, 0.729932), abs=2e-6)
    (negative,) = ask(vector(), {"proportion": "a = '0' and b = '1'"})
    assert (negative.low, negative.high) == pytest.approx((0, 0.030780), abs=1e-6)  # never empty
    (above,) = ask(vector(), {"proportion": "not (a = '0' and b = '1')"})
    assert (above.estimate, above.low, above.high) == pytest.approx((1, 1 - above.standard_error, 1))
    assert above.low < 0.97
    lists = vector()
    found = estimated(lists, (0, 1))
    assert found is not None
    x = found.table
    rate = [x[1] / (x[0] + x[1]), x[3] / (x[2] + x[3])]
    (slope,) = ask(
        lists, {"regression": "b = '1'", "on": "a = '1'"}
    )  # on 0 and 1 a slope is a difference of shares
    assert slope.estimate == pytest.approx(rate[1] - rate[0], rel=1e-9)
    assert slope.estimate == pytest.approx(0.974101, abs=1e-6)
    assert slope.noise**2 == pytest.approx(1.072153e-2 + 1.2149e-6, rel=1e-4)
    assert slope.sampling**2 == pytest.approx(1.595184e-3, rel=1e-4)


def test_the_second_vector():
    """Available cells: the share that answered comes from the rows left out."""
    domain, side = toy([2]), np.array([0, 1, -1])
    one = measured((0,), [300, 500], 10.0, left=[190])
    lists = Fixed(
        domain=domain,
        missing=MissingMethod.AVAILABLE,
        plain=(side,),
        groups=(side,),
        lists=(one,),
        is_gaussian=True,
        total=1000.0,
        total_variance=50.0,
    )
    found = shares_of(one, lists)
    assert found.response[0] == pytest.approx(0.81)
    assert found.shares[0] == pytest.approx(0.370370, abs=1e-6)
    p = found.shares[0]
    variance = found.variance[0] + p**2 * found.scale[0] + p * (1 - p) / 810
    assert sqrt(variance) == pytest.approx(0.0217180, abs=1e-6)


def test_least_squares_solve_the_normal_equations():
    """The estimate minimises squares over variances: of the pair, of both columns, and of the total."""
    rng = np.random.default_rng(5)
    domain = toy([3, 4])
    sides = tuple(side.into for side in plain(domain, MissingMethod.AVAILABLE).sides)
    lists = Fixed(
        domain=domain,
        missing=MissingMethod.VALUES,
        plain=sides,
        groups=sides,
        lists=(
            measured((0,), rng.normal(30, 5, 3), 3.0),
            measured((1,), rng.normal(25, 5, 4), 2.0),
            measured((0, 1), rng.normal(8, 5, 12), 5.0),
        ),
        is_gaussian=True,
    )
    found = estimated(lists, (0, 1))
    assert found is not None
    u, a, b = (each.cells / 100 for each in (lists.lists[2], lists.lists[0], lists.lists[1]))
    design = np.vstack(
        [np.eye(12), np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4)), np.ones(12)]
    )
    aims = np.concatenate([u, a, b, [1.0]])
    weights = np.concatenate(
        [np.full(12, 20.0**2), np.full(3, (100 / 3) ** 2), np.full(4, 50.0**2), [50.0**2]]
    )
    normal = np.linalg.solve((design.T * weights) @ design, (design.T * weights) @ aims)
    assert found.table == pytest.approx(normal, abs=1e-12)
    covariance = np.linalg.inv((design.T * weights) @ design)
    for q in rng.normal(size=(5, 12)):
        assert found.noise(q) - found.scale_noise(q) == pytest.approx(float(q @ covariance @ q), rel=1e-9)
        linear = found.linear(q)
        told = sum(
            float(np.square(w).sum()) * v
            for w, v in (
                (linear.weights[(0, 1)], 0.05**2),
                (linear.weights[(0,)], 0.03**2),
                (linear.weights[(1,)], 0.02**2),
                (linear.weights[()], 0.02**2),
            )
        )
        assert told == pytest.approx(float(q @ covariance @ q), rel=1e-9)


def test_with_everybody_answering_available_cells_are_like_any_others():
    found, other = (
        estimated(vector(missing), (0, 1)) for missing in (MissingMethod.VALUES, MissingMethod.AVAILABLE)
    )
    for q in np.random.default_rng(2).normal(size=(20, 4)):
        assert found.sampling(q) == pytest.approx(other.sampling(q), rel=1e-12)


def village(rows: int, seed: int, *, silent: float = 0.0):
    """Sex, region and hours that depend on sex and pile up at 40: cells of the wider domain, and the true numbers."""
    rng = np.random.default_rng(seed)
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "region": {"kind": "categorical", "levels": ["n", "s", "w"]},
        "hours": {"kind": "integer", "bounds": [0, 99]},
    }
    domain = domain_of(schema_from({"survey": {"name": "v", "unit": "row"}, "columns": columns}), bins=8)
    wide = with_fine_axes(domain)
    sex = (rng.random(rows) < 0.4).astype(int)
    region = np.where(sex == 1, rng.integers(0, 2, rows), rng.integers(0, 3, rows))
    hours = np.where(rng.random(rows) < 0.7, 38, rng.integers(0, 50 + 10 * sex, rows))
    codes = [sex, region, hours]
    starts = np.array(domain.axes[2].key.starts)
    cells = [sex, region, np.searchsorted(starts, hours, side="right") - 1, hours]
    lost = [rng.random(rows) < silent for _ in codes]
    lost.append(lost[2])
    held = [np.where(gone, axis.silence, c) for gone, axis, c in zip(lost, wide.axes, cells, strict=True)]
    return domain, ArrayCounts(np.stack(held, axis=1), wide), codes


QUESTIONS = (
    {"proportion": "sex = 'f'"},
    {"proportion": "sex = 'f' and region = 's'"},
    {"proportion": "region = 's'", "where": "sex = 'f'"},
    {"mean": "hours"},
    {"mean": "hours", "where": "sex = 'm'"},
    {"difference": "hours", "between": ["sex = 'm'", "sex = 'f'"]},
    {"regression": "hours", "on": ["sex = 'm'", "region = 's'"]},
    {"logistic": "sex = 'm'", "on": "region = 's'"},
)


def fitted(counts, domain, noise, **more):
    method = AllPairs(most_pairs=0, iterations=1, last=1, **more)
    return method.fit(
        FitTask(counts, domain, MissingMethod.AVAILABLE, SPEND, noise=noise, step=lambda _: None)
    )


def test_without_noise_answers_are_those_of_the_rows():
    """Means of binned numbers included: residuals give back what bins take."""
    domain, counts, (sex, region, hours) = village(3_000, 1)
    lists = fitted(counts, domain, NoSynthNoise()).lists
    (gap,) = ask(lists, {"difference": "hours", "between": ["sex = 'm'", "sex = 'f'"]})
    assert gap.estimate == pytest.approx(hours[sex == 1].mean() - hours[sex == 0].mean(), abs=1e-6)
    (mean,) = ask(lists, {"mean": "hours"})
    assert mean.estimate == pytest.approx(hours.mean(), abs=1e-6)
    (share,) = ask(lists, {"proportion": "region = 's'", "where": "sex = 'f'"})
    assert share.estimate == pytest.approx((region[sex == 0] == 1).mean(), abs=1e-9)
    (slope,) = ask(lists, {"logistic": "sex = 'm'", "on": "region = 's'"})
    odds = [(sex[region == 1] == 1).mean(), (sex[region != 1] == 1).mean()]
    assert slope.estimate == pytest.approx(
        np.log(odds[0] / (1 - odds[0])) - np.log(odds[1] / (1 - odds[1])), abs=1e-6
    )
    several = ask(lists, {"regression": "region = 's'", "on": ["sex = 'm'", "region = 'n'"]})
    x = np.stack([np.ones(3_000), sex == 1, region == 0], axis=1)
    least = np.linalg.lstsq(x, (region == 1).astype(float), rcond=None)[0]
    assert [each.estimate for each in several] == pytest.approx(least[1:], abs=1e-6)


@pytest.mark.parametrize("silent", [0.0, 0.2])
def test_intervals_cover_and_the_midpoints_do_not(silent):
    """120 surveys of 2,000: 8 questions; the chance of a false alarm is below 1e-6 for coverage of 95 %.

    The twin takes the mean of bin midpoints for the mean: it covers next to never.
    """
    domain, counts, _ = village(60_000, 0)
    lists = fitted(counts, domain, NoSynthNoise()).lists
    truth = {q: [a.estimate for a in ask(lists, raw)] for q, raw in enumerate(QUESTIONS)}
    hit, twin, asked, shift = 0, 0, 0, midpoint_bias(lists)
    for run in range(120):
        _, rows, _ = village(2_000, 10_000 + run, silent=silent)
        noisy = fitted(rows, domain, QuickSynthNoise(seed=run)).lists
        for q, raw in enumerate(QUESTIONS):
            for answer, aim in zip(ask(noisy, raw), truth[q], strict=True):
                hit += answer.low <= aim <= answer.high
                asked += 1
                if raw == {"mean": "hours"}:
                    twin += answer.low + shift <= aim <= answer.high + shift
    assert 0.925 <= hit / asked <= 0.985
    assert twin <= 60


def midpoint_bias(lists: Lists) -> float:
    without = replace(
        lists, lists=tuple(replace(each, sums=NONE, sum_deviations=NONE) for each in lists.lists)
    )
    with pytest.raises(NoInterval, match="midpoints") as why:
        ask(without, {"mean": "hours"})
    (right,) = ask(lists, {"mean": "hours"})
    assert why.value.estimate is not None
    return why.value.estimate - right.estimate


REFUSED = {
    "more than two columns": {"proportion": "sex = 'f' and region = 's' and hours < 13"},
    "own bins": {"mean": "hours", "where": "hours < 13"},
}


def test_what_has_no_interval_says_why():
    domain, counts, _ = village(3_000, 1)
    net = fitted(counts, domain, QuickSynthNoise(seed=3))
    for reason, raw in REFUSED.items():
        with pytest.raises(NoInterval, match=reason):
            ask(net.lists, raw)
    few = fitted(village(30, 1)[1], domain, QuickSynthNoise(seed=3)).lists
    with pytest.raises(NoInterval, match="own standard errors"):
        ask(few, {"mean": "hours", "where": "region = 'w'"})
    with pytest.raises(PlanError, match=r"cuts a bin.*those of hours begin at 0, 13, 25"):
        ask(net.lists, {"proportion": "hours < 20"})
    for asked in ("sex is missing", "sex is answered", "not (sex is answered or region = 's')"):
        with pytest.raises(
            NoInterval, match="it asks who answered"
        ):  # of those who answered it would be none, or all
            ask(net.lists, {"proportion": asked})
        (alone,) = answered(
            read_question({"proportion": asked}, domain),
            net.lists,
            lambda: {n: np.zeros(5, np.int64) for n in domain.columns},
        )
        assert alone.is_model_only and np.isnan(alone.estimate)  # synthetic rows are complete
        for cell, is_number in (
            (0, False),
            (HOLE, True),
        ):  # without tables the rows themselves say whether they are
            (alone,) = answered(
                read_question({"proportion": asked}, domain),
                None,
                lambda cell=cell: {n: np.full(5, cell) for n in domain.columns},
            )
            assert np.isfinite(alone.estimate) == is_number
    tree = MST(iterations=1).fit(
        FitTask(
            counts, domain, MissingMethod.AVAILABLE, SPEND, noise=QuickSynthNoise(seed=3), step=lambda _: None
        )
    )
    unmeasured = [pair for pair in ((0, 1), (0, 2), (1, 2)) if not tree.lists.of(pair)]
    assert unmeasured  # a tree leaves one out
    names = [domain.columns[place] for place in unmeasured[0]]
    raw = {"proportion": " and ".join(f"{name} is answered" for name in names)}
    with pytest.raises(NoInterval, match="no table of"):
        ask(tree.lists, raw)
    told = answered(
        read_question(raw, domain), tree.lists, lambda: {n: np.zeros(5, np.int64) for n in domain.columns}
    )
    assert told[0].is_model_only and told[0].low is None


def test_a_complex_design_needs_its_effect():
    lists = vector(is_complex=True)
    with pytest.raises(NoInterval, match="design effect"):
        ask(lists, {"proportion": "a = '0'"})
    (wide,) = ask(lists, {"proportion": "a = '0'"}, design_effect=4.0)
    (narrow,) = ask(vector(), {"proportion": "a = '0'"})
    assert wide.sampling == pytest.approx(2 * narrow.sampling)
    assert wide.noise == narrow.noise


def test_laplace_noise_has_longer_tails():
    (gauss,), (laplace,) = (
        ask(replace(vector(), is_gaussian=law), {"proportion": "a = '0'"}) for law in (True, False)
    )
    assert laplace.high - laplace.low > gauss.high - gauss.low


def test_lists_come_back_from_a_file_and_wrong_ones_do_not():
    domain, counts, _ = village(200, 1)
    lists = fitted(counts, domain, QuickSynthNoise(seed=1)).lists
    words, numbers = lists_section(lists)
    part = ListsPart.model_validate(words)
    again = lists_from(part, numbers, domain, lists.plain)
    assert again is not None
    assert ask(again, {"mean": "hours"}) == ask(lists, {"mean": "hours"})
    for spoiled in (
        {"groups": words["groups"][:-1]},
        {"groups": [[0] * len(side) for side in words["groups"]]},
        {"lists": words["lists"][1:]},
        {"lists": [{**words["lists"][0], "cells": 1}, *words["lists"][1:]]},
        {"lists": [{**words["lists"][0], "deviation": "-1"}, *words["lists"][1:]]},
        {"lists": [{**words["lists"][0], "columns": ["nobody"]}, *words["lists"][1:]]},
    ):
        assert (
            lists_from(ListsPart.model_validate({**words, **spoiled}), numbers, domain, lists.plain) is None
        )
