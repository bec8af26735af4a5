"""Error bars for noise of confidential scale: bought, lent, or not there at all; and what they cost."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from reticent.answer.parts import Answer, HiddenScale, Measurement
from reticent.answer.shares import planned_parts
from reticent.errors import PlanError
from reticent.lab.noise import QuickNoise
from reticent.plan.plan import Plan
from reticent.query.kinds import Derived
from reticent.refine import pivot
from reticent.release.statistics import evaluate, wants_of
from tests.answer.donating import World
from tests.audit import ALARM
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan

COLUMNS = {
    "g": {"kind": "categorical", "levels": ["a", "b"]},
    "y": {"kind": "integer", "bounds": [0, 10]},
    "z": {"kind": "integer", "bounds": [0, 10]},
}
DONORS = [{"method": "donors", "bound": "hubs", "columns": ["y"], "match": ["g"]}]
SIZE = 240
PEOPLE = [
    {"g": i % 2, "y": None if i % 4 == 0 else (7 * i) % 11, "z": (5 * i + i // 7) % 11} for i in range(SIZE)
]
EVERYBODY = tuple(range(SIZE))
LEVEL = Fraction(8, 10)
RUNS = 150


@pytest.fixture(autouse=True)
def remembered(monkeypatch) -> None:
    """Half-widths depend on public numbers alone: equal ones are computed once."""
    monkeypatch.setattr(pivot, "ratio_half_width", lru_cache(100_000)(pivot.ratio_half_width))
    monkeypatch.setattr(pivot, "_NARROWINGS", 12)


def plan_of(queries: Sequence[dict[str, Any]], bars: dict[int, str], **options: Any) -> Plan:
    asks = {i: {"interval": {"level": "0.8"}} for i in range(len(queries))}
    asks |= {i: {"interval": {"level": "0.8", "epsilon": bar}} for i, bar in bars.items()}
    for i, more in options.pop("asks", {}).items():
        asks[i] |= more
    repair = options.pop("repair", DONORS)
    return make_plan(queries, book(COLUMNS), asks=asks, repair=repair, **options)


def answers_of(plan: Plan, noise: Any) -> list[Answer]:
    return list(evaluate(plan, tallies(plan), noise).values())


def tallies(plan: Plan) -> Any:
    return World(plan, PEOPLE).tallies(EVERYBODY)


KINDS: list[dict[str, Any]] = [
    {"count": "*", "where": "y > 4"},
    {"total": "y"},
    {"mean": "y", "centre": "0"},
    {"mean": "z", "centre": "0", "where": "y > 2"},
    {"proportion": "y > 1"},
    {"variance": "y"},
    {"correlation": ["y", "z"]},
]


def too_many(misses: int, runs: int = RUNS) -> bool:
    """Whether so many misses are out of the question at the stated level."""
    return float(binom.sf(misses - 1, runs, float(1 - LEVEL))) < ALARM


@pytest.mark.parametrize("query", KINDS, ids=[" ".join(map(str, each.values())) for each in KINDS])
def test_bought_bars_cover_as_often_as_they_say(query):
    """150 runs at 80 %, seeded; misses as many would come by chance below 1e-9."""
    plan = plan_of([query], {0: "0.5"}, epsilon="2")
    exact, known = answers_of(plan, ZeroNoise())[0].estimates[0].value, tallies(plan)
    noise, misses = QuickNoise(np.random.default_rng(11)), 0
    for _ in range(RUNS):
        estimate = evaluate(plan, known, noise)["ask 0"].estimates[0]
        low, high = estimate.interval(LEVEL)
        assert estimate.has_interval
        misses += not low - Fraction(1, 10**9) <= exact <= high + Fraction(1, 10**9)
    assert not too_many(misses)


def test_a_bar_that_forgets_the_noise_on_the_scale_is_found_out(monkeypatch):
    """The twin: psi taken for ln S. 400 runs."""
    plan = plan_of([{"total": "y"}], {0: "0.1"}, epsilon="2")
    exact, known = answers_of(plan, ZeroNoise())[0].estimates[0].value, tallies(plan)
    noise, misses = QuickNoise(np.random.default_rng(11)), 0
    for _ in range(400):
        answer = evaluate(plan, known, noise)["ask 0"]
        wide = answer.estimates[0].interval(LEVEL)[1] - answer.estimates[0].value
        naive = wide * Fraction(oracle(answer.parts[0]) / bought(answer.parts))
        misses += abs(answer.estimates[0].value - exact) > naive
    assert too_many(misses, 400)


def oracle(part: HiddenScale) -> float:
    """The quantile of Lomax noise alone."""
    m = 8
    return float(1 - LEVEL) ** (-1 / m) - 1


def bought(parts: Sequence[Any]) -> float:
    """The same with the noise on its log scale, by drawing: 200,000 runs."""
    return _bought(float(parts[1].scale * parts[1].unit))


@lru_cache(maxsize=4)
def _bought(spread: float) -> float:
    rng = np.random.default_rng(3)
    x = (rng.random(200_000) ** (-1 / 8) - 1) * np.exp(rng.laplace(scale=spread, size=200_000))
    return float(np.quantile(x, float(LEVEL)))


def test_a_later_ask_over_the_same_recipients_uses_an_earlier_bar_for_nothing():
    """Same rings, beta not smaller; scaled by the larger ratio of constants."""
    queries = [{"count": "*", "where": "y > 4"}, {"total": "y"}, {"count": "*", "where": "y < 3"}]
    answers = answers_of(plan_of(queries, {0: "0.5"}, epsilon="2"), ZeroNoise())
    assert all(answer.estimates[0].has_interval for answer in answers)
    assert [answer.epsilon for answer in answers] == [Fraction(5, 2), 2, 2]
    widths = [each.interval(LEVEL)[1] - each.value for each in (answer.estimates[0] for answer in answers)]
    # Constants 1, 1 and 10, 10: ten times the width, half a step of rounding aside.
    half = Fraction(1, 2)
    assert widths[1] - half == pytest.approx(float(10 * (widths[0] - half)), rel=1e-6)
    assert widths[2] == pytest.approx(float(widths[0]), rel=1e-6)


@pytest.mark.parametrize(
    ("query", "epsilon"),
    [
        ({"total": "y", "where": "g = 'a'"}, "2"),
        ({"count": "*", "where": "z > 4 and y > 4"}, "2"),
        ({"count": "*", "where": "y > 4"}, "1"),
    ],
    ids=["other recipients", "recipients that may be others", "a smaller beta"],
)
def test_nothing_is_lent_where_nothing_follows(query, epsilon):
    """Then there is no interval, and no limit either."""
    plan = plan_of(
        [{"count": "*", "where": "y > 4"}, query], {0: "0.5"}, epsilon="2", asks={1: {"epsilon": epsilon}}
    )
    estimate = answers_of(plan, ZeroNoise())[1].estimates[0]
    assert not estimate.has_interval and estimate.noise_sd is None
    assert estimate.interval(LEVEL)[1] >= 10**30


def test_without_a_bar_quotients_have_their_public_limits_and_derived_asks_none():
    queries = [{"mean": "y"}, {"proportion": "y > 1"}, {"variance": "y"}, {"correlation": ["y", "z"]}]
    plan = plan_of([*queries, {"total": "y"}, {"difference": ["ask 4", "ask 0"]}], {}, epsilon="2")
    answers = answers_of(plan, ZeroNoise())
    assert [answer.estimates[0].interval(LEVEL) for answer in answers[:4]] == [
        (0, 10),
        (0, 1),
        (0, 50),
        (-1, 1),
    ]
    assert not any(answer.estimates[0].has_interval for answer in answers)
    assert answers[5].epsilon == 0 and answers[5].estimates[0].noise_sd is None


@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("bar", ["", "0.5"])
def test_the_parts_are_known_before_a_row_is_read(change, bar):
    """All but the bound of squares and products, which are taken about released means; and none tells a scale."""
    bars = {i: bar for i in range(len(KINDS))} if bar else {}
    plan = plan_of(KINDS, bars, epsilon="2", change=change)
    for ask, answer in zip(plan.asks, answers_of(plan, ZeroNoise()), strict=True):
        foreseen = planned_parts(
            ask.query,
            ask.epsilon,
            ask.bar,
            schema=plan.schema,
            neighbours=plan.neighbours,
            repair=plan.repair,
        )
        known = [(p.what, p.epsilon, p.unit, p.mechanism) for p in foreseen if not is_coarse(p)]
        assert known == [(p.what, p.epsilon, p.unit, p.mechanism) for p in answer.parts if not is_coarse(p)]
        assert len(foreseen) == len(answer.parts) and answer.epsilon == ask.epsilon + ask.bar


def is_coarse(part: Any) -> bool:
    return isinstance(part, Measurement) and part.is_coarse


def test_a_count_that_no_donor_enters_keeps_its_laplace_noise():
    """Under a mean of filled values; not where filled values decide who is a member."""
    plan = plan_of([{"mean": "y", "where": "z > 4"}, {"mean": "z", "where": "y > 4"}], {}, epsilon="2")
    own, decided = answers_of(plan, ZeroNoise())
    assert [type(part) for part in own.parts] == [Measurement, HiddenScale]
    assert [type(part) for part in decided.parts] == [HiddenScale, HiddenScale]


def test_a_public_size_costs_nothing():
    plan = plan_of([{"mean": "y"}], {}, epsilon="2", asks={0: {"size": SIZE}})
    answer = answers_of(plan, ZeroNoise())[0]
    assert [part.what for part in answer.parts] == ["centred sum"]
    assert answer.parts[0].epsilon == 2
    rows = World(plan, PEOPLE).filled(EVERYBODY).values()
    assert answer.estimates[0].value == Fraction(sum(int(row["y"]) for row in rows), SIZE)


def test_asks_that_touch_nothing_filled_are_answered_as_ever():
    """Same calls to the noise, same answers, with and without a repair beside them."""
    queries = [
        {"count": "*", "where": "z > 4"},
        {"mean": "z"},
        {"variance": "z"},
        {"median": "z", "step": "1"},
    ]
    plan, bare = plan_of(queries[:3], {}, epsilon="2"), plan_of(queries[:3], {}, epsilon="2", repair=[])
    one, other = FrozenNoise(), FrozenNoise()
    a, b = evaluate(plan, tallies(plan), one), evaluate(bare, tallies(bare), other)
    assert one.calls == other.calls and all(call.kind == "laplace" for call in one.calls)
    assert [x.estimates[0].value for x in a.values()] == [x.estimates[0].value for x in b.values()]
    assert all(x.estimates[0].noise_sd is not None for x in a.values())
    assert wants_of(plan) == wants_of(bare)


# ---- the published mechanism ----

PUBLISHED = [{**DONORS[0], "bound": "published"}]


def test_the_published_mechanism_runs_from_two_ln_two_on_and_is_refused_below():
    """Of what each part gets, for one record: 1.38 is too little, and so is 2 when a respondent is replaced."""
    query = {"count": "*", "where": "y > 4"}
    plan = plan_of([query], {}, epsilon="1.4", repair=PUBLISHED)
    noise = FrozenNoise()
    answer = evaluate(plan, tallies(plan), noise)["ask 0"]
    assert [call.kind for call in noise.calls] == ["cauchy"]
    assert answer.parts[0].mechanism == "generalised Cauchy" and not answer.estimates[0].has_interval
    for epsilon, change in (("1.38", ADD), ("2.7", REPLACE)):
        with pytest.raises(PlanError, match="2 ln 2"):
            wants_of(plan_of([query], {}, epsilon=epsilon, change=change, repair=PUBLISHED))
    with pytest.raises(PlanError, match="2 ln 2"):  # a quarter goes to the count
        wants_of(plan_of([{"mean": "z", "where": "y > 4"}], {}, epsilon="4", repair=PUBLISHED))
    with pytest.raises(PlanError, match="no interval"):
        wants_of(plan_of([query], {0: "1"}, epsilon="4", repair=PUBLISHED))


def test_the_published_bound_is_one_and_the_busiest_donors_donees():
    """c0 + c1 L_1, at a beta from ln 2 on that its noise can be drawn for."""
    from reticent.noise.source import SystemNoise
    from reticent.sensitivity.hubs import LN2

    plan = plan_of([{"count": "*", "where": "y > 4"}], {}, epsilon="3", repair=PUBLISHED)
    noise = FrozenNoise()
    evaluate(plan, tallies(plan), noise)
    (call,) = noise.calls
    assert call.sensitivity.denominator == 1 and call.sensitivity >= 2
    assert LN2 <= call.beta <= LN2 * Fraction(11, 10)
    assert isinstance(evaluate(plan, tallies(plan), SystemNoise())["ask 0"].estimates[0].value, Fraction)


def test_an_epsilon_too_small_for_any_ladder_is_refused_before_a_row_is_read():
    with pytest.raises(PlanError, match="leaves"):
        wants_of(plan_of([{"total": "y"}], {}, epsilon="0.0001"))


def test_system_noise_answers_every_kind():
    """From the operating system's generator, once."""
    from reticent.noise.source import SystemNoise

    plan = plan_of(KINDS, {0: "0.5"}, epsilon="2")
    answers = answers_of(plan, SystemNoise())
    assert len(answers) == len(KINDS) and not any(isinstance(ask.query, Derived) for ask in plan.asks)
