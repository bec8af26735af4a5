"""A preview says what will be run, and which epsilon would do, without a row."""

from math import hypot

import pytest

from reticent.preview.preview import expectations
from reticent.release.statistics import evaluate
from tests.doubles import ZeroNoise
from tests.tables import EVERY_KIND, book, make_plan, plain_tallies

EXPECT = {"value": "20", "size": 400}


@pytest.mark.parametrize("grid", ["0.25", "0.000001"])
def test_the_parts_of_a_preview_are_those_that_are_run(grid):
    """Scale, step and budget of every part; squares, bounded about a mean not yet released, at most as foreseen."""
    columns = book()["columns"]
    fine = book({**columns, "w": {**columns["w"], "grid": grid}})
    plan = make_plan(EVERY_KIND, fine)
    answers = evaluate(plan, plain_tallies(plan, []), ZeroNoise())
    for expectation in expectations(plan):
        for foreseen, run in zip(expectation.parts, answers[expectation.name].parts, strict=True):
            if run.what == "squares about the mean":
                assert (foreseen.what, foreseen.epsilon) == (
                    run.what,
                    run.epsilon,
                ) and run.bound <= foreseen.bound
            else:
                assert foreseen == run


@pytest.mark.parametrize("query", [{"mean": "pay", "centre": "0"}, {"count": "*"}, {"variance": "age"}])
def test_the_epsilon_for_a_target_reaches_it_and_less_does_not(query):
    """The count's noise is in it: forgetting it, as a naive twin does, falls short for a mean far from its centre."""
    plan = make_plan([query], asks={0: {"expect": EXPECT}})
    wanted = plan.routes[0].epsilon_for(0.05)

    def parts(epsilon: float):
        ask = {"expect": EXPECT, "epsilon": f"{epsilon:.9f}"}
        return expectations(make_plan([query], asks={0: ask}))[0].parts

    def cv(epsilon: float) -> float:
        made = parts(epsilon)
        noise = made[0].sd / 20 if "count" in query else hypot(made[-1].sd, 20 * made[0].sd) / 400 / 20
        return noise

    assert cv(float(wanted)) <= 0.05 * 1.001 and cv(float(wanted) / 2) > 0.05
    if "mean" in query:
        naive = parts(1.0)[-1].sd / 400 / 20 / 0.05  # the sum's noise alone
        assert cv(naive) > 0.05 * 1.001
