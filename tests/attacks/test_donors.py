"""One person in the place of many: donors under attack, from the rows of a survey to what meets the noise."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from reticent.engine.donors import records as labels
from reticent.errors import PlanError
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate
from tests.attacks import donors_naive as naive
from tests.attacks.donors_cubes import CUBES, PAIRS_IN_CUBES, Cube
from tests.attacks.donors_pairs import CROWD, FEW, PAIRS, TWO, Pair
from tests.attacks.donors_surveys import (
    COLUMNS,
    Prescribed,
    alike,
    by_hand,
    calls_of,
    close_engines,
    faults,
    pair_faults,
    person,
    plan_of,
    tallied,
    tally,
)
from tests.doubles import Call
from tests.tables import ADD, REPLACE, Row, book, make_plan

KINDS = {"nearest": (), "mean of three": (), "several": (1, 3)}
"""The asks looked at: all of them, or those that the random surveys leave out."""
ONLY_PAY = [{"method": "donors", "bound": "hubs", "column": "pay", "match": ["site"], "default": 0}]
TOTAL = make_plan([{"total": "pay", "where": "sex = 'f'"}], book(COLUMNS), repair=ONLY_PAY)


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    close_engines()


# covers T08 R08 B096
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_no_answer_moves_further_than_its_bound_says(pair: Pair, kind: str) -> None:
    """54 pairs: every sum of every ask, on both sides, and the bound itself within e^beta."""
    plan = plan_of(kind, change=pair.change, asks=KINDS[kind])
    assert pair_faults(plan, pair.here, pair.there, (2, 400)) == []


# covers T08 R08
@pytest.mark.parametrize("cube", CUBES, ids=lambda cube: f"{cube.kind} {cube.options}")
@pytest.mark.parametrize("change", [ADD, REPLACE], ids=["added", "replaced"])
def test_no_random_pair_moves_further(cube: Cube, change: str) -> None:
    """1,072 pairs in all, seeded: with edits, weights, structural cells, error bars, owners of two records."""
    count, found = cube.faults(change, 3)
    assert count and found == set()
    assert PAIRS_IN_CUBES == 1072


# covers T08
@pytest.mark.parametrize("cube", CUBES[1:], ids=lambda cube: f"{cube.kind} {cube.options}")
def test_the_engine_fills_the_random_surveys_as_defined(cube: Cube) -> None:
    """Those that are tallied by hand above: four of each, also in the engine."""
    plan, groups = plan_of(cube.kind, **cube.options), cube.groups()
    for group in groups[:: len(groups) // 4]:
        rows = cube.survey(group)
        assert alike(plan, tally(plan, rows), by_hand(plan, rows))


# covers T08 T12
def test_how_many_were_silent_is_told_by_no_status_of_a_filled_column() -> None:
    """What was filled is missing no longer: the question would always have the answer nobody, and is refused."""
    with pytest.raises(PlanError, match="without this repair"):
        make_plan([{"count": "*", "where": "pay is missing"}], book(COLUMNS), repair=ONLY_PAY)


# --- twins: the same pairs, and noise for one record ------------------------------------------------------------------


def for_one_record(rows: Sequence[Row]) -> list[Call]:
    """Our own donors, with noise for the record's own pay alone: the total is the third question of the plan."""
    return [replace(calls_of(plan_of("nearest"), rows, 2)[2], sensitivity=naive.OWN, beta=None)]


TWINS = {
    "our donors": for_one_record,
    "mean": lambda rows: naive.naive_calls(naive.mean, rows),
    "regression": lambda rows: naive.naive_calls(naive.regression, rows),
    "hot deck by file order": lambda rows: naive.naive_calls(naive.hot_deck, rows),
    "rotation": lambda rows: naive.naive_calls(naive.rotation, rows),
}
ONE_MORE = [pair for pair in PAIRS if pair.change == ADD]


# covers T08
@pytest.mark.parametrize("twin", TWINS)
def test_noise_for_one_record_is_rejected(twin: str) -> None:
    """Each twin moves too far in several of the pairs above, in all of which our own bound covers."""
    calls = TWINS[twin]
    caught = [pair.name for pair in ONE_MORE if faults(calls(pair.here), calls(pair.there))]
    assert len(caught) >= 2


# covers T08
def test_one_record_at_the_front_of_a_file_moves_everybody_behind_it() -> None:
    """A hot deck in file order: the newcomer stands before the crowd, or after it. Ours does not see the difference."""
    newcomer = person(20, 5)
    front, back = [TWO[1], newcomer, *CROWD], [TWO[1], *CROWD, newcomer]
    filled = [naive.naive_calls(naive.hot_deck, rows)[0].answers for rows in (front, back)]
    assert filled[0][0] - filled[1][0] == 8 * len([row for row in CROWD if row["sex"] == "f"])
    ours = [evaluated(TOTAL, rows) for rows in (front, back)]
    assert ours[0] == ours[1]


# covers T08
def test_donors_who_take_turns_shift_everybody_at_one_newcomer() -> None:
    """The first figure of the paper on how not to do it: 40 donors with one recipient each, women and men in turn.

    One silent respondent at the front and every woman has a man's donor. Noise for all that a donor serves is far
    too little; so is it refused. Our donors serve few, and move by no more than they serve.
    """
    pays = [person(5, (5, -3)[i % 2], sex="m") for i in range(40)]
    silent = [person(5, sex="fm"[i % 2]) for i in range(40)]
    here, there = [*pays, *silent], [person(5, sex="m"), *pays, *silent]
    assert naive.most_served(here) == 1 and naive.most_served(there) == 2
    declared = naive.OWN + 2 * (naive.HIGH - naive.LOW)
    one, other = (naive.naive_calls(naive.rotation, rows, declared) for rows in (here, there))
    assert faults(one, other) and one[0].distance(other[0]) == 20 * 8
    assert pair_faults(TOTAL, here, there, (2,)) == []
    with pytest.raises(PlanError, match="rotation"):
        make_plan([{"total": "pay"}], book(COLUMNS), repair=[{**ONLY_PAY[0], "method": "rotation"}])


def evaluated(plan: Plan, rows: Sequence[Row], output: int = 2) -> list[Call]:
    """As `calls_of`, tallied anew."""
    noise = Prescribed(output)
    evaluate(plan, tally(plan, rows), noise)
    return noise.calls


def one_place(z: Any, number: Any, by: int, c: Any) -> Any:
    """One place on the ring for all: answers decide, the silent come last and all begin with the same donor."""
    return np.zeros_like(number)


# covers T08
def test_a_tie_break_common_to_all_makes_one_donor_serve_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second figure: a star. With a ring the bound hardly grows with the survey, without it as the survey does."""

    def survey(n: int) -> list[Row]:
        cell = [person(5, i % 9 - 3, hours=i % 5, w=i % 4, mood=None) for i in range(n)]
        return cell + [person(5, hours=i % 5, w=i % 4, mood=("low", "mid", "high")[i % 3]) for i in range(n)]

    plan = make_plan(
        [{"count": "*", "where": "pay > 0 and hours >= 0 and mood = 'low'", "weight": "w"}],
        book(COLUMNS),
        repair=[ONLY_PAY[0], {"method": "donors", "bound": "hubs", "column": "mood", "match": ["site"]}],
        epsilon="8",
    )
    ring = [float(evaluated(plan, survey(n))[0].sensitivity) for n in (30, 120)]
    monkeypatch.setattr(labels, "placed", one_place)
    star = [float(evaluated(plan, survey(n))[0].sensitivity) for n in (30, 120)]
    assert ring[1] < 2 * ring[0] and star[1] > 3.5 * star[0] and star[1] > 4 * ring[1]
    few = [*FEW, person(5, 5)]
    assert faults(evaluated(TOTAL, few), evaluated(TOTAL, FEW)) == []  # sound all the same, and of no use


def test_what_is_remembered_of_a_survey_is_what_the_engine_says() -> None:
    """The surveys above are tallied once each: again, and in another order, they give the same exact answers."""
    for kind, asks in KINDS.items():
        plan, rows = plan_of(kind, asks=asks), [*FEW, *TWO]
        assert evaluated(plan, rows[::-1], 3) == calls_of(plan, rows, 3)
        assert tallied(plan, rows) is tallied(plan, rows)
