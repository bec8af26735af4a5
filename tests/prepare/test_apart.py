"""Two fillings of one row: never farther apart than is said, and sometimes just as far."""

from dataclasses import replace
from random import Random

from reticent.prepare.repair import SCALE, WHOLE, Chances, PredictorCells, RegressionLine, apart
from tests.engine.test_predict import by_hand, line

CORNERS = [
    {"age": age, "job": job, "hours": hours, "pay": pay}
    for age in (None, 18, 99)
    for job in (None, 1, 2)
    for hours in (None, -20, 80)
    for pay in (None, 10)
]


def moved(each: RegressionLine, rng: Random) -> RegressionLine:
    """The line with other coefficients, near its own."""
    near = rng.choice([1, 1 << 20, 1 << SCALE - 3])
    terms = tuple(replace(term, slope=term.slope + rng.randint(-near, near)) for term in each.terms)
    return replace(each, base=each.base + rng.randint(-near, near), terms=terms)


def test_no_row_is_filled_farther_apart() -> None:
    """200 chains of two lines and their neighbours, all corners of the answers. The naive twin leaves out that hours were
    filled otherwise before pay was, and is too small for some."""
    rng, naive_fails, attained = Random(1), 0, 0
    for seed in range(200):
        one = (line("hours", seed), line("pay", seed + 1_000))
        two = tuple(moved(each, rng) for each in one)
        bound = apart(one, two)
        alone = apart(one[1:], two[1:])["pay"]
        for column in ("hours", "pay"):
            codes = zip(by_hand(CORNERS, one), by_hand(CORNERS, two), strict=True)
            found = max(abs(a[column] - b[column]) for a, b in codes if a[column] is not None)
            assert found <= bound[column]
            attained += found == bound[column] > 0
            naive_fails += column == "pay" and found > alone
    assert attained > 0 and naive_fails > 0


def test_equal_lines_are_nowhere_apart_and_chances_follow_their_sides() -> None:
    same = (line("hours", 1), line("pay", 2))
    assert apart(same, same) == {"hours": 0, "pay": 0}
    job = Chances(
        column="job", low=0, high=2, sides=(PredictorCells(column="hours"),), steps=((0,), (WHOLE,))
    )
    other = replace(same[0], base=same[0].base + (5 << SCALE))
    assert apart((same[0], job), (other, job)) == {"hours": 5, "job": 2}
    assert apart((job,), (job,)) == {"job": 0}
