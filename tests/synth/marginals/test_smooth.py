"""Histograms smoothed along their order: nearer to the truth where it is smooth, and never far from where they were."""

import numpy as np
import pytest

from reticent.schema.codebook import schema_from
from reticent.synth.domain import domain_of
from reticent.synth.marginals import smooth as module
from reticent.synth.marginals.smooth import smoothed

DEVIATION = 30.0


def column(cells: int, kind: str = "integer"):
    """A number of so many values, or as many levels in order."""
    levels = {"kind": "ordinal", "levels": [str(i) for i in range(cells)]}
    columns = {"x": {"kind": "integer", "bounds": [0, cells - 1]} if kind == "integer" else levels}
    domain = domain_of(schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns}), bins=cells)
    return domain.axes[0], domain


def bell(cells: int) -> np.ndarray:
    return 600 * np.exp(-0.5 * np.square((np.arange(cells) - cells / 3) / (cells / 6)))


def heaped(cells: int) -> np.ndarray:
    """A tenth of the people at every fifth number, and one at 40 who outdoes all others."""
    made = np.where(np.arange(cells) % 5 == 0, 900.0, 60.0)
    made[40] = 20_000
    return made


def errors(truth: np.ndarray, draws: int = 40) -> tuple[float, float]:
    """Mean distances of noisy and of smoothed histograms."""
    axis, domain = column(len(truth))
    rng = np.random.default_rng(1)
    raw, even = [], []
    for _ in range(draws):
        noisy = truth + rng.normal(0, DEVIATION, len(truth))
        raw.append(np.abs(noisy - truth).sum())
        even.append(np.abs(smoothed(noisy, DEVIATION, axis, domain) - truth).sum())
    return float(np.mean(raw)), float(np.mean(even))


def test_a_smooth_histogram_comes_nearer():
    raw, even = errors(bell(80))
    assert even < 0.75 * raw


def test_a_heap_among_smooth_ones_stays_and_draws_no_neighbour():
    truth = bell(80)
    truth[40] += 20_000
    raw, even = errors(truth)
    assert even < 0.9 * raw
    axis, domain = column(80)
    noisy = truth + np.random.default_rng(2).normal(0, DEVIATION, 80)
    assert smoothed(noisy, DEVIATION, axis, domain)[40] == noisy[40]


def test_without_setting_heaps_aside_the_neighbours_would_suffer(monkeypatch):
    """The twin: one heap, and by Stein's estimate nothing is won any more."""
    truth = bell(80)
    truth[40] += 20_000
    monkeypatch.setattr(module, "APART", np.inf)
    raw, even = errors(truth)
    assert even > 0.95 * raw


@pytest.mark.parametrize("truth", [heaped(99), np.random.default_rng(0).exponential(800, 90)])
def test_where_neighbours_tell_nothing_little_is_lost(truth):
    raw, even = errors(truth)
    assert even < 1.02 * raw


def test_short_numbers_and_levels_are_left_alone():
    noisy = bell(80) + np.random.default_rng(3).normal(0, DEVIATION, 80)
    for cells, kind in ((module.LONG, "integer"), (80, "ordinal")):
        axis, domain = column(cells, kind)
        assert (smoothed(noisy[:cells], DEVIATION, axis, domain) == noisy[:cells]).all()


def test_what_follows_the_answers_stays():
    axis, domain = column(80)
    noisy = np.append(bell(80) + np.random.default_rng(3).normal(0, DEVIATION, 80), 12_345.0)
    made = smoothed(noisy, DEVIATION, axis, domain)
    assert made[80] == 12_345.0 and (made[:80] != noisy[:80]).any()
