"""Every way in which a synthetic table's direct answer has no interval, each with its sentence; and gradients of means."""

from dataclasses import replace

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.schema.codebook import schema_from
from reticent.synth.answer import answer_directly
from reticent.synth.base import FitTask, MissingMethod
from reticent.synth.direct import MeasuredTables, NoInterval
from reticent.synth.domain import domain_of
from reticent.synth.functionals import KINDS
from reticent.synth.lists import as_available
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.questions import read_question
from reticent.synth.registry import with_intervals
from tests.synth.standins import ArrayCounts, NoSynthNoise, QuickSynthNoise, toy
from tests.synth.test_direct import SPEND, village

# covers T20

WEIGHTED = MissingMethod.WEIGHTED


def fitted(counts, domain, noise, method=None):
    """All pairs, nothing fitted; or another method."""
    made = method or AllPairs(most_pairs=0, iterations=1, last=1)
    return made.fit(FitTask(counts, domain, WEIGHTED, SPEND, noise=noise, step=lambda _: None)).lists


def refused(lists, raw, domain, words):
    with pytest.raises(NoInterval, match=words):
        answer_directly(read_question(raw, domain), lists)


def test_a_cell_inside_a_merged_group_is_refused():
    """Levels 3 to 5 of a have nobody in them: MST puts them together, and a pair knows their sum alone."""
    rng = np.random.default_rng(1)
    domain = toy([6, 2])
    counts = ArrayCounts(np.stack([rng.integers(0, 3, 4000), rng.integers(0, 2, 4000)], axis=1), domain)
    lists = fitted(counts, domain, QuickSynthNoise(1), MST(iterations=1))
    assert (np.bincount(lists.groups[0]) > 1).any()
    refused(lists, {"proportion": "a = '4' and b = '1'"}, domain, "put together with others, being rare")


def test_a_filter_that_no_cell_meets_is_refused():
    domain, counts, _ = village(3_000, 1)
    lists = fitted(counts, domain, NoSynthNoise())
    refused(lists, {"proportion": "sex = 'f' and sex = 'm'"}, domain, "no cell of the table meets its filter")


def test_methods_without_lists_and_changed_rows_are_refused():
    domain, counts, _ = village(3_000, 1)
    refused(None, {"proportion": "sex = 'f'"}, domain, "keeps no noisy tables; use mst, aim or pairs")
    filled = replace(fitted(counts, domain, NoSynthNoise()), missing=MissingMethod.RANDOM)
    refused(filled, {"proportion": "sex = 'f'"}, domain, "rows were changed before they were counted")
    with pytest.raises(PlanError, match="keeps no noisy tables"):
        with_intervals("privbayes", None)


def test_a_logistic_coefficient_that_is_hardly_seen_is_refused():
    """Of 6,000 rows 600 have a value of x that tells anything, and nearly all of these answer alike: of 20 noises, 15 or more leave none.

    With half of the rows there, and as many of each answer, all have one.
    """
    columns = {
        "a": {"kind": "categorical", "levels": ["0", "1"]},
        "b": {"kind": "integer", "bounds": [0, 11]},
    }
    domain = domain_of(schema_from({"survey": {"name": "few", "unit": "row"}, "columns": columns}))
    question = read_question({"logistic": "a = '1'", "on": "b"}, domain)

    def reasons(told: int, share: float) -> list[str]:
        x, y = np.zeros(6_000, int), (np.random.default_rng(2).random(6_000) < 0.3).astype(int)
        x[:told], y[:told] = 11, np.arange(told) < share * told
        counts, found = ArrayCounts(np.stack([y, x], axis=1), domain), []
        for seed in range(20):
            try:
                answer_directly(question, fitted(counts, domain, QuickSynthNoise(seed)))
                found.append("")
            except NoInterval as why:
                found.append(why.reason)
        return found

    hardly = reasons(600, 0.99)
    assert sum(map(bool, hardly)) >= 15 and any("straight" in each for each in hardly)
    assert reasons(3_000, 0.5) == [""] * 20


@pytest.mark.parametrize(
    "raw",
    [{"mean": "hours", "where": "sex = 'm'"}, {"difference": "hours", "between": ["sex = 'm'", "sex = 'f'"]}],
)
def test_the_gradient_of_a_mean_has_the_mass_that_residuals_are_divided_by(raw):
    """Against differences, cell by cell. The naive twin, without that part, is off."""
    domain, counts, _ = village(3_000, 1)
    lists = as_available(fitted(counts, domain, NoSynthNoise()))
    question, table = read_question(raw, domain), MeasuredTables(lists).of((0, 2))
    made, kind = KINDS[next(iter(raw))](question, table), KINDS[next(iter(raw))]
    moved = [
        (kind(question, replace(table, table=table.table + 1e-7 * unit)).value - made.value) / 1e-7
        for unit in np.eye(len(table.table))
    ]
    assert np.allclose(moved, made.gradient + made.residual_gradient, atol=1e-3)
    assert not np.allclose(moved, made.gradient, atol=1e-2)
