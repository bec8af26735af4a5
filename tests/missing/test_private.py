"""The private description: replayed on every neighbour, never further apart than paid for, and close to the truth."""

from fractions import Fraction

import numpy as np
import pytest

from reticent.engine.confidential import Patterns
from reticent.errors import PlanError
from reticent.lab.masks import clustered
from reticent.lab.noise import QuickNoise
from reticent.missing import private
from reticent.missing.describe import describe, patterns_of
from reticent.missing.private import describe_private, margin, public_columns
from reticent.noise.source import SystemNoise
from reticent.privacy.claim import Change
from reticent.schema.codebook import schema_from
from tests.doubles import FrozenNoise, ZeroNoise
from tests.missing.tiny import NAMES, arrays, pairs, schema, worst

EPSILON = Fraction(1, 2)
DECLARED = (("pay",), ("age", "pay"))


def run(rows, noise, change=Change.ADD_REMOVE, at_most=1, patterns=DECLARED):
    found = patterns_of(arrays(rows)[1], NAMES)
    return describe_private(
        found, schema(at_most), epsilon=EPSILON, noise=noise, patterns=patterns, change=change
    )


def loss(compared, **options):
    def calls(rows):
        noise = FrozenNoise()
        run(rows, noise, **options)
        return noise.calls

    return worst(calls, compared)


@pytest.mark.parametrize("patterns", [(), DECLARED])
@pytest.mark.parametrize("change", Change)
def test_no_neighbour_is_further_away_than_paid_for_and_one_is_as_far(change, patterns):
    """All 27 kinds of row, added, removed or exchanged. # covers T08"""
    replaced = change is Change.REPLACE
    found = loss(pairs(replaced=replaced), change=change, patterns=patterns)
    assert found <= EPSILON
    assert replaced or found == EPSILON


def test_a_respondent_with_two_rows_is_covered_too():
    assert loss(pairs(replaced=False, records=2), at_most=2) == EPSILON


@pytest.mark.parametrize("change", Change)
def test_noise_for_one_missing_answer_a_row_would_be_caught(change, monkeypatch):
    """The naive twin forgets that a row can miss every answer, and scales each column's noise as if it were alone."""
    exact = FrozenNoise.laplace_many

    def careless(self, answers, *, sensitivity, epsilon):
        return exact(self, answers, sensitivity=max(1, sensitivity // 3), epsilon=epsilon)

    monkeypatch.setattr(FrozenNoise, "laplace_many", careless)
    assert loss(pairs(replaced=change is Change.REPLACE), change=change) > EPSILON


def test_nothing_is_told_but_what_the_noise_gave():
    """One transcript for two surveys: one description. # covers T20 T22"""
    script = [(4, 5, 6), (7, 8, 9, 10), (11, 12, 13)]
    one, other = (
        run(rows, FrozenNoise(prescribed=script)) for rows in ([(0, None, 1)], [(None, 1, None)] * 8)
    )
    assert one == other and (one.missing, one.per_row, one.declared) == tuple(script)


def test_without_noise_it_is_the_description():
    mask = clustered(500, [0.1, 0.2, 0.3], np.random.default_rng(2), correlation=0.4).mask
    found = patterns_of(mask, NAMES)
    told = describe_private(found, schema(), epsilon=EPSILON, noise=ZeroNoise(), patterns=DECLARED)
    plain = describe(found)
    assert told.rows == 500 and told.per_row == plain.per_row
    assert np.allclose(list(told.rates.values()), plain.rates)
    assert told.complete == plain.complete and abs(told.independent - plain.independent) < 1e-12
    exactly = [(mask == flags).all(axis=1).sum() for flags in ([0, 0, 1], [1, 0, 1])]
    assert told.declared == (*exactly, 500 - sum(exactly))
    assert not told.is_private


def test_noise_has_the_scale_that_is_told_and_no_exact_number_escapes():
    """6,000 counts: their mean absolute noise within 6.5 standard errors of what the scale says, false alarm 1e-9."""
    found = patterns_of(arrays([(0, None, 1)] * 40)[1], NAMES)
    noise = QuickNoise(np.random.default_rng(3))
    drawn = [describe_private(found, schema(), epsilon=EPSILON, noise=noise).missing for _ in range(2_000)]
    off = np.abs(np.array(drawn) - np.array([0, 40, 0]))
    scale = 3 / (0.75 * float(EPSILON))
    q = np.exp(-1 / scale)
    mean, square = 2 * q / (1 - q * q), 2 * q / (1 - q) ** 2
    error = np.sqrt((square - mean**2) / 6_000)
    assert abs(off.mean() - mean) < 6.5 * error
    assert not abs(off.mean() - 0.8 * mean) < 6.5 * error


def test_a_margin_holds_at_its_level():
    """Against the law summed term by term; one step less would not do."""
    for scale in (Fraction(1, 5), Fraction(1), Fraction(8), Fraction(250)):
        q = np.exp(-1 / float(scale))
        for level in (0.5, 0.9, 0.95, 0.999):
            t = margin(scale, level)
            inside = [(1 - q) / (1 + q) * (1 + 2 * sum(q**k for k in range(1, n + 1))) for n in (t, t - 1)]
            assert inside[0] >= level - 1e-12
            assert t == 0 or inside[1] < level
    with pytest.raises(PlanError):
        margin(Fraction(1), 1.0)


def test_the_claim_says_what_was_spent():
    told = run([(0, None, 1)] * 5, SystemNoise(), change=Change.REPLACE)
    assert str(told.claim) == "0.5-DP, one respondent's answers replaced, exact"
    assert told.claim.rests_on[0][1] == private.PAGE and told.is_private


def test_columns_chosen_by_looking_are_refused():
    """Only those that had a gap, as `check` lists them, are not the columns of the codebook."""
    gappy = Patterns(columns=("pay",), counts=((frozenset({"pay"}), 3),))
    with pytest.raises(PlanError, match="before a row is read"):
        describe_private(gappy, schema(), epsilon=EPSILON, noise=SystemNoise())
    assert describe_private(gappy, schema(), epsilon=EPSILON, noise=SystemNoise(), columns=("pay",)).columns


@pytest.mark.parametrize("patterns", [(("pay",), ("pay",)), (("height",),)])
def test_patterns_that_are_no_sets_of_the_columns_are_refused(patterns):
    with pytest.raises(PlanError, match="patterns"):
        run([(0, 0, 0)], ZeroNoise(), patterns=patterns)


def test_weights_are_not_described():
    columns = {
        "age": {"kind": "integer", "bounds": [0, 9]},
        "w": {"kind": "integer", "bounds": [0, 9], "role": "weight"},
    }
    made = schema_from({"survey": {"name": "t", "unit": "row"}, "columns": columns})
    assert public_columns(made) == ("age",)


def test_an_empty_survey_is_described_like_any_other():
    """Nothing fails because there is nobody, and rates are rates."""
    told = run([], SystemNoise())
    assert len(told.missing) == 3 and all(0 <= rate <= 1 for rate in told.rates.values())
