"""Little's test: against a published number, a case that can be worked by hand, and its own level and power."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, multivariate_normal

from reticent.lab.masks import make
from reticent.missing.little import (
    Little,
    PatternMoments,
    chi_square_tail,
    little,
    moments_from,
    moments_of,
    normal_law,
)
from tests.missing.worlds import codes

# New York air, May to September 1973 (Chambers, Cleveland, Kleiner and Tukey 1983): ozone, sun, tenths of wind, heat,
# month and day, as pattern (bit i where column i is missing), rows, sums, and sums of products.
# fmt: off
AIR = [
    (3, 2, (0, 0, 223, 113, 10, 32),
     (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 26849, 12568, 1115, 2875, 6385, 565, 1819, 50, 160, 754)),
    (1, 35, (0, 6633, 3572, 2770, 225, 584),
     (0, 0, 0, 0, 0, 0, 1518521, 695959, 529912, 42453, 98367, 403648, 279845, 22981, 58982, 221526, 17927, 45522,
      1477, 3770, 12606)),
    (2, 5, (214, 0, 407, 398, 34, 32),
     (12498, 0, 15663, 17791, 1607, 1128, 0, 0, 0, 0, 0, 39315, 31166, 2602, 2575, 32022, 2764, 2501, 242, 205, 234)),
    (0, 111, (4673, 20513, 11033, 8635, 801, 1770),
     (318531, 979803, 384717, 387893, 34492, 74350, 4704801, 1993549, 1623865, 146932, 322057, 1235871, 839745, 78495,
      177631, 681731, 62936, 136812, 6019, 12760, 36564)),
]
# fmt: on


def test_a_published_case():
    """The R package naniar documents 35.106 with 14 degrees of freedom and p = 0.001418 for these data."""
    found = little(moments_from(AIR, 6))
    assert (found.freedom, found.patterns) == (14, 4)
    assert abs(found.statistic - 35.106) < 5e-4
    assert abs(found.p - 0.001418) < 5e-7


def test_one_complete_column_and_one_with_gaps_by_hand():
    """Then d2 is the square between the two groups' means of the complete column over its variance: 1215/388 here."""
    x, y = [1, 2, 3, 4, 9], [2, 1, 5, 0, 0]
    mask = np.array([[False, False]] * 3 + [[False, True]] * 2)
    mean, first, second = Fraction(19, 5), Fraction(2), Fraction(13, 2)
    variance = sum((v - mean) ** 2 for v in map(Fraction, x)) / 5
    by_hand = (3 * (first - mean) ** 2 + 2 * (second - mean) ** 2) / variance
    assert by_hand == Fraction(1215, 388)
    found = little(moments_of(np.column_stack([x, y]), mask))
    assert (found.freedom, found.patterns) == (1, 2)
    assert abs(found.statistic - float(by_hand)) < 1e-6
    assert abs(found.p - chi2.sf(float(by_hand), 1)) < 1e-6


def test_the_law_has_the_greatest_likelihood():
    """No step in any direction raises the likelihood of the observed cells, computed row by row from the density."""
    values, rng = codes(60, 3, seed=5).astype(float), np.random.default_rng(5)
    mask = make("mar", values.astype(np.int64), 0.4, rng).mask
    found, _ = moments_of(values.astype(np.int64), mask).standard()
    mean, covariance = normal_law(found)
    seen = np.where(mask, np.nan, values)
    scaled = (seen - np.round(np.nanmean(seen, axis=0))) / np.nanstd(seen, axis=0)

    def likelihood(m, c):
        kept = [(row[~gap], ~gap) for row, gap in zip(scaled, mask, strict=True)]
        return sum(multivariate_normal.logpdf(x, m[o], c[np.ix_(o, o)]) for x, o in kept)

    best = likelihood(mean, covariance)
    for _ in range(40):
        step = 0.02 * rng.normal(size=(4, 3))
        moved = covariance + (step[1:] + step[1:].T) / 2
        assert likelihood(mean + step[0], moved) < best


def test_moments_are_all_that_is_needed():
    """Rows in another order, in other units and about another level give the same test."""
    values, mask = (
        codes(400, 4, seed=6),
        make("mcar", codes(400, 4, seed=6), 0.2, np.random.default_rng(6)).mask,
    )
    order = np.random.default_rng(1).permutation(400)
    plain = little(moments_of(values, mask))
    moved = little(moments_of(values[order] * 7 + 10**12, mask[order]))
    assert abs(plain.statistic - moved.statistic) < 1e-6 * plain.statistic


def test_columns_that_never_vary_and_rows_without_answers_change_nothing():
    values, mask = (
        codes(300, 3, seed=8),
        make("mcar", codes(300, 3, seed=8), 0.2, np.random.default_rng(8)).mask,
    )
    plain = little(moments_of(values, mask))
    padded = np.column_stack([values, np.full(300, 5)])
    wider = little(moments_of(padded, np.column_stack([mask, np.zeros(300, dtype=bool)])))
    empty = little(
        moments_of(np.vstack([values, values[:9]]), np.vstack([mask, np.ones((9, 3), dtype=bool)]))
    )
    assert abs(plain.statistic - wider.statistic) < 1e-6 and plain.freedom == wider.freedom
    assert abs(plain.statistic - empty.statistic) < 1e-6 and plain.freedom == empty.freedom


def test_a_column_that_repeats_another_in_other_units_changes_nothing():
    """Years of schooling and their code, say: as two columns they would be singular, and counted twice."""
    values = codes(300, 3, seed=8)
    mask = make("mcar", values, 0.2, np.random.default_rng(8)).mask
    plain = little(moments_of(values, mask))
    twice = little(moments_of(np.column_stack([values, 3 * values[:, 1] - 7]), mask[:, [0, 1, 2, 1]]))
    near = values[:, 1] + (np.arange(300) % 30 == 0)
    thrice = little(moments_of(np.column_stack([values, near]), mask[:, [0, 1, 2, 1]]))
    assert abs(plain.statistic - twice.statistic) < 1e-9 and plain.freedom == twice.freedom
    assert thrice.freedom > plain.freedom  # a column that differs in ten rows is a column


def test_nothing_to_compare_gives_one():
    """A complete table, a table without rows, and columns that never vary."""
    whole = moments_of(codes(50, 3, seed=9), np.zeros((50, 3), dtype=bool))
    flat = moments_of(np.ones((50, 2), dtype=np.int64), np.eye(50, 2, dtype=bool))
    none = PatternMoments(
        observed=np.zeros((0, 2), dtype=bool),
        rows=np.zeros(0, dtype=np.int64),
        sums=np.zeros((0, 2)),
        products=np.zeros((0, 2, 2)),
    )
    for moments in (whole, flat, none):
        assert little(moments).p == 1.0


@pytest.mark.parametrize("freedom", [1, 2, 14, 230, 4302])
def test_the_tail_is_that_of_chi_square(freedom):
    for times in (0.5, 0.9, 1.0, 1.1, 2.0):
        exact = chi2.sf(times * freedom, freedom)
        assert abs(chi_square_tail(times * freedom, freedom) - exact) <= 1e-9 * exact


def uniform(p: list[float]) -> bool:
    """Kolmogorov's distance from the uniform law within what Massart's bound allows with a false alarm of 1e-9."""
    n = len(p)
    steps = np.arange(n + 1) / n
    ordered = np.sort(p)
    distance = max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max())
    return bool(distance <= np.sqrt(np.log(2e9) / (2 * n)))


def test_p_is_uniform_under_missing_completely_at_random():
    """150 tables of 300 rows. A twin that counts every pattern as if it showed every column is rejected."""
    found = []
    for seed in range(150):
        values = codes(300, 3, seed=seed)
        found.append(little(moments_of(values, make("mcar", values, 0.2, np.random.default_rng(seed)).mask)))
    assert uniform([each.p for each in found])

    def careless(each: Little) -> float:
        return chi_square_tail(each.statistic, 3 * (each.patterns - 1))

    assert not uniform([careless(each) for each in found])


def test_missing_at_random_is_noticed():
    """2,000 rows, ten masks; under the null one p below 1e-6 has chance 1e-5."""
    values = codes(2_000, 6, seed=3)
    for seed in range(10):
        mask = make("mar", values, 0.2, np.random.default_rng(seed)).mask
        assert little(moments_of(values, mask)).p < 1e-6


def test_a_column_that_hides_itself_and_nothing_else_is_not_noticed():
    """What the page says the test cannot do: 40 columns lost by their own value, unrelated to the other; p stays uniform."""
    rng, found = np.random.default_rng(4), []
    for _ in range(40):
        values = rng.integers(0, 50, size=(400, 2))
        mask = np.column_stack([np.zeros(400, dtype=bool), (values[:, 1] > 30) & (rng.random(400) < 0.7)])
        found.append(little(moments_of(values, mask)).p)
    assert uniform(found)


def test_nothing_read_off_rows_is_in_a_repr():
    found = little(moments_from(AIR, 6))
    assert repr(found) == "Little()" and "318531" not in repr(moments_from(AIR, 6))
