"""Residuals of binned numbers: exact sums, moves of one record by brute force, replays on neighbours, and twins that fall."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.schema.codebook import schema_from
from reticent.synth import residuals
from reticent.synth.base import MissingMethod
from reticent.synth.domain import Domain, domain_of
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.residuals import column_residual, fine_axes, pair_residual, with_fine_axes
from reticent.synth.spending import Accountant, RowSums
from tests.synth.replay import APPROXIMATE, PURE, RHO, faults
from tests.synth.standins import ArrayCounts, FrozenSynthNoise

HELD = (MissingMethod.AVAILABLE, MissingMethod.VALUES)


def town(bounds: tuple[int, int] = (0, 11), *, bins: int = 3) -> Domain:
    """A category, a number in bins, and one whose question not everybody is asked."""
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "age": {"kind": "integer", "bounds": list(bounds)},
        "hours": {"kind": "integer", "bounds": [0, 9], "universe": "sex = 'f'"},
    }
    return domain_of(schema_from({"survey": {"name": "town", "unit": "row"}, "columns": columns}), bins=bins)


def rows(domain: Domain, count: int, seed: int) -> tuple[ArrayCounts, np.ndarray]:
    """Random answers, silence and the unasked, as cells of the wider domain; and the codes behind them."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 2, count), rng.integers(0, 12, count), rng.integers(0, 10, count)]
    silent = [rng.random(count) < 0.2 for _ in codes]
    return held(domain, codes, silent), np.stack(codes)


def held(domain: Domain, codes: list[np.ndarray], silent: list[np.ndarray]) -> ArrayCounts:
    unasked = (codes[0] == 1) & ~silent[0]
    wide = with_fine_axes(domain)
    cells = []
    for axis, code, is_silent in zip(
        wide.axes, [*codes, codes[1], codes[2]], [*silent, silent[1], silent[2]], strict=True
    ):
        starts = np.array(axis.key.starts or range(axis.answers))
        cell = np.searchsorted(starts, code, side="right") - 1
        cell = np.where(is_silent, axis.silence, cell)
        cells.append(np.where(unasked, axis.unasked, cell) if axis.has_unasked else cell)
    return ArrayCounts(np.stack(cells, axis=1), wide)


def test_residuals_give_back_what_bins_take():
    """Midpoints and residuals together are the sum of answers, digit for digit, in all and by another column."""
    domain = town()
    counts, codes = rows(domain, 60, 1)
    age = fine_axes(domain)[0]
    is_answered = counts.cells[:, 1] < domain.axes[1].answers
    midpoints = (age.ends / 2)[np.where(is_answered, counts.cells[:, 1], 0)]
    told = column_residual(counts, age).sums[0] / 2
    assert told == (codes[1][is_answered] - midpoints[is_answered]).sum()
    by = pair_residual(counts, age, 0, np.array([0, 1, -1]), 2).sums / 2
    for sex in (0, 1):
        here = is_answered & (counts.cells[:, 0] == sex)
        assert by[sex] == (codes[1][here] - midpoints[here]).sum()


@pytest.mark.parametrize("bins", [2, 3, 5])
def test_one_record_moves_one_entry_by_at_most_the_bound(bins):
    """Every possible record of the town, added to an empty survey; some record attains the bound."""
    domain = town(bins=bins)
    none = ArrayCounts(np.zeros((0, 5), dtype=np.int64), with_fine_axes(domain))
    for place, fine in enumerate(fine_axes(domain)):
        sizes, moved = [], []
        for sex, age, hours in product(range(2), range(12), range(10)):
            codes = [np.array([sex]), np.array([age]), np.array([hours])]
            one = held(domain, codes, [np.array([False])] * 3)
            move = column_residual(one, fine).sums - column_residual(none, fine).sums
            by = pair_residual(one, fine, 0, np.array([0, 1, -1]), 2).sums
            sizes.append(int(np.abs(move).max()))
            moved.append(int((by != 0).sum()))
        assert max(sizes) == fine.most, place
        assert max(moved) == 1


def test_wide_numbers_are_summed_in_round_steps():
    """More codes than two bytes hold: steps of 1, 2, 5, 10, ...; the bound has room for their rounding."""
    schema = {
        "survey": {"name": "w", "unit": "row"},
        "columns": {"wage": {"kind": "integer", "bounds": [0, 200_000]}},
    }
    (wage,) = fine_axes(domain_of(schema_from(schema)))
    assert wage.step == 10
    assert wage.axis.answers <= residuals.MOST_FINE
    assert wage.most == 12_501 - 1 + 10
    wide = {**schema, "columns": {"wage": {"kind": "integer", "bounds": [0, 2**32]}}}
    with pytest.raises(PlanError, match="coarser grid"):
        fine_axes(domain_of(schema_from(wide)))


METHODS = (
    AllPairs(most_pairs=1, iterations=5, last=5),
    MST(residuals=True, iterations=5),
    AIM(residuals=True, last=5, iterations=5),
)


@pytest.mark.parametrize("spend", [PURE, APPROXIMATE, RHO, replace(RHO, change=Change.REPLACE)], ids=str)
@pytest.mark.parametrize("holes", HELD)
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_replay_on_neighbours(method, holes, spend):
    """Same calls, same parameters, moves within what is stated, and nothing kept that the noise did not let out."""
    domain = town()
    counts, _ = rows(domain, 7, 3)
    others = [counts.without(row) for row in range(3)]
    if spend.change is Change.REPLACE:
        counts = replace(counts, cells=counts.cells.copy())
        others = [
            ArrayCounts(np.vstack([counts.cells[:-1], [line]]), counts.domain) for line in counts.cells[:4]
        ]
    assert faults(method, counts, holes, spend, domain, others) == []


def test_the_replay_catches_residuals_without_a_bound(monkeypatch):
    """The twin: residuals from the bottom of the column, not from midpoints, under the bound of midpoints."""
    monkeypatch.setattr(
        residuals,
        "_difference",
        lambda steps, cells, fine: np.tensordot(fine.doubled(), steps[: fine.axis.answers], axes=1),
    )
    domain = town()
    counts, _ = rows(domain, 7, 3)
    assert "moves further than it says" in faults(METHODS[0], counts, HELD[0], APPROXIMATE, domain)


@pytest.mark.parametrize("change", list(Change))
@pytest.mark.parametrize("spend", [PURE, RHO], ids=["pure", "rho"])
def test_the_length_of_a_list_covers_every_move(spend, change):
    """All pairs of records, each in one cell and one sum of either sign: brute force against the stated sensitivity."""
    noise = FrozenSynthNoise()
    accountant = Accountant(spend=replace(spend, change=change), noise=noise)
    records = [(cell, entry, size) for cell in range(3) for entry in range(2) for size in (-7, 0, 7)]
    lists = []
    for given in [None, *records]:
        table, sums = np.zeros(3, np.int64), np.zeros(2, np.int64)
        if given is not None:
            table[given[0]], sums[given[1]] = 1, given[2]
        accountant.measure_with_sums(table, [RowSums(sums=sums, most=7)], amount=accountant.total / 100)
        lists.append(np.array(noise.met[-1].answers, dtype=float))
    pairs = product(lists, lists) if change is Change.REPLACE else ((lists[0], other) for other in lists)
    norm = 1 if spend.is_pure else 2
    longest = max(float(np.linalg.norm(one - other, norm)) for one, other in pairs)
    stated = noise.met[-1].sensitivity
    assert longest <= stated < longest + 2  # and it is not wasteful


def test_sums_cost_a_few_percent_more_noise():
    """With residuals a cell's noise grows by the root of 1 + 0.09, and not more than the rounding of it."""
    noise = FrozenSynthNoise()
    plain, more = (
        Accountant(spend=RHO, noise=noise).measure_with_sums(
            np.zeros(3, np.int64), sums, amount=Fraction("0.01")
        )
        for sums in ([], [RowSums(sums=np.zeros(1, np.int64), most=3125)])
    )
    assert more.deviation / plain.deviation == pytest.approx(sqrt(1.09), rel=2e-3)
    assert more.sum_deviations[0] * 0.3 / 3125 == pytest.approx(more.deviation, rel=2e-3)


@pytest.mark.parametrize("holes", [MissingMethod.COMPLETE, MissingMethod.RANDOM, MissingMethod.MODEL])
def test_rows_that_are_changed_first_are_refused(holes):
    with pytest.raises(PlanError, match="changes rows"):
        METHODS[0].check(town(), holes, APPROXIMATE)
