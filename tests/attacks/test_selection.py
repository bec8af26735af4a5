"""Quantiles at the edges: whatever the table, a candidate comes back, evenly where nothing tells them apart."""

import math
import re
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from reticent.noise.source import SystemNoise
from reticent.release.statistics import evaluate
from tests.audit import ALARM
from tests.doubles import FrozenNoise
from tests.tables import ADD, REPLACE, book, make_plan, plain_tallies

COLUMNS = {
    "x": {"kind": "integer", "bounds": [0, 1000]},
    "w": {"kind": "integer", "bounds": [0, 2**53], "role": "weight"},
}
TABLES = {
    "nobody": [],
    "one": [{"x": 500, "w": 1}],
    "all alike": [{"x": 0, "w": 1}] * 50,
    "both ends": [{"x": 0, "w": 2**53}, {"x": 1000, "w": 2**53}] * 20,
    "weights far apart": [{"x": 0, "w": 2**53}] * 30 + [{"x": 1000, "w": 1}],
    "no weight": [{"x": i, "w": 0} for i in range(40)],
    "silent": [{"x": None, "w": None}] * 5,
}
QUERIES = [
    {"median": "x", "step": "1"},
    {"median": "x", "step": "1000"},
    {"quantile": "x", "at": "0.000001", "step": "10", "weight": "w"},
    {"quantile": "x", "at": "0.999999", "step": "10", "weight": "w"},
]
BARS = {i: {"interval": {"epsilon": "0.3", "level": "0.9"}} for i in (0, 2)}


# covers T18
@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_a_quantile_within_the_bounds(table, change) -> None:
    """A thousand candidates or two, scores 2^53 apart or equal, nobody at all: never an error."""
    plan = make_plan(QUERIES, book(COLUMNS), change=change, epsilon="20", asks=BARS)
    for answer in evaluate(plan, plain_tallies(plan, TABLES[table]), SystemNoise()).values():
        (estimate,) = answer.estimates
        low, high = estimate.interval(Fraction(9, 10))
        assert 0 <= low <= estimate.value <= high <= 1000


def softmax(scores: list[int], rate: float) -> list[float]:
    """The twin: no maximum removed."""
    weights = [math.exp(rate * score) for score in scores]
    return [weight / sum(weights) for weight in weights]


# covers T18
@pytest.mark.parametrize("shift", [0, 10**300, -(10**300)])
def test_scores_far_from_zero_are_chosen_from_alike(shift) -> None:
    """The median's own scores, shifted: the best candidate of all alike stays the sure one. Softmax fails."""
    plan = make_plan([{"median": "x", "step": "100"}], book(COLUMNS), epsilon="20")
    noise = FrozenNoise()
    evaluate(plan, plain_tallies(plan, TABLES["all alike"] * 10), noise)
    scores = [score + shift for score in noise.calls[0].answers]
    chosen = {SystemNoise().select(scores, sensitivity=1, epsilon=Fraction(20)) for _ in range(50)}
    assert chosen == {0}  # the next score is 500 lower, at a rate of 10
    if shift:
        with pytest.raises((OverflowError, ZeroDivisionError)):
            softmax(scores, 10.0)


# covers T18
def test_ties_are_even() -> None:
    """2,000 medians of nobody over 11 candidates: every candidate within exact binomial bounds, alarm 1e-9 in all."""
    plan = make_plan([{"median": "x", "step": "100"}], book(COLUMNS))
    nobody = plain_tallies(plan, [])
    drawn = Counter(
        int(evaluate(plan, nobody, SystemNoise())["ask 0"].estimates[0].value) for _ in range(2000)
    )
    low, high = binom.ppf([ALARM / 22, 1 - ALARM / 22], 2000, 1 / 11)
    assert set(drawn) <= set(range(0, 1001, 100))
    assert all(low <= drawn[value] <= high for value in range(0, 1001, 100))
    first = Counter([0] * 2000)  # the twin takes the first of the best
    assert not all(low <= first[value] <= high for value in range(0, 1001, 100))


# covers T18
def test_the_chance_of_a_candidate_moves_by_at_most_epsilon() -> None:
    """Exact chances of permute-and-flip on every neighbour of small tables: the log ratio stays within epsilon.

    With the factor 2 in the exponent forgotten the same check fails.
    """
    plan = make_plan([{"median": "x", "step": "500"}], book(COLUMNS), epsilon="1")
    values = [0, 500, 1000]
    tables = [
        [{"x": v, "w": 1} for v in held] for held in ([], [0], [0, 1000], [0, 500, 1000, 1000], [0] * 4)
    ]
    worst = {"ours": 0.0, "twin": 0.0}
    for rows in tables:
        for more in values:
            calls = []
            for table in (rows, [*rows, {"x": more, "w": 1}]):
                noise = FrozenNoise()
                evaluate(plan, plain_tallies(plan, table), noise)
                calls.append(noise.calls[0])
            for name, rate in (("ours", 0.5), ("twin", 1.0)):
                a, b = (chances(call.answers, rate / call.sensitivity) for call in calls)
                worst[name] = max(worst[name], float(np.max(np.abs(np.log(a) - np.log(b)))))
    assert worst["ours"] <= 1 + 1e-9 < worst["twin"]


def chances(scores: tuple[int, ...], rate: float) -> np.ndarray:
    """Each candidate's chance: it falls heads, and is taken evenly among those that do."""
    p = np.exp(rate * (np.array(scores) - max(scores)))
    found = np.zeros(len(p))
    for heads in range(1, 2 ** len(p)):
        is_head = np.array([heads >> i & 1 for i in range(len(p))], dtype=bool)
        found[is_head] += np.prod(np.where(is_head, p, 1 - p)) / is_head.sum()
    return found


def test_words_of_the_interval_do_not_depend_on_rows() -> None:  # covers T11
    """What the release says of a quantile's rank is public: it is the same for every table."""
    plan = make_plan([{"median": "x", "step": "1"}], book(COLUMNS))
    said = {
        re.sub(r"\s+", " ", evaluate(plan, plain_tallies(plan, rows), SystemNoise())["ask 0"].meaning)
        for rows in TABLES.values()
    }
    assert len(said) == 1
