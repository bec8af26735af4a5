"""Nothing but noise escapes a survey whose gaps were filled: replay, poison, and exact facts beside noisy ones."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from reticent.engine.wants import Tallies
from reticent.noise.source import Noise
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.sensitivity.hubs import HubCache, Hubs
from tests.attacks.donors_cubes import some_person
from tests.attacks.donors_surveys import COLUMNS, EDIT, SITE, close_engines, faults, person, tally
from tests.attacks.replay import Release, Run, run, violations
from tests.attacks.test_charges import RUNS, published, telling
from tests.doubles import FrozenNoise
from tests.tables import Row, book, make_plan, visible

QUERIES: list[dict[str, Any]] = [
    {"total": "pay"},
    {"count": "*", "where": "pay > 0"},
    {"mean": "pay", "where": "sex = 'f'", "weight": "w"},
    {"count": "*", "where": "hours is missing"},
]
BARS: dict[int, dict[str, Any]] = {i: {"interval": {"epsilon": "0.5"}} for i in (0, 2)}
"""Bought for the total and the mean; the count has the total's, lent."""


def plan_of(epsilon: str, *, for_silence: str) -> Plan:
    return make_plan(
        QUERIES,
        book(COLUMNS),
        epsilon=epsilon,
        asks={**BARS, 3: {"epsilon": for_silence}},
        expect={"rows": 40},
        repair=[
            EDIT,
            {"method": "donors", "bound": "hubs", "column": "pay", "match": [SITE, "sex"], "default": 5},
        ],
    )


PLAN = plan_of("2", for_silence="2")
DICE = Random(7)
ORDINARY = [some_person(DICE) for _ in range(35)]
NUMBERS = [math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 5e-324, 4.5, 2.0**53 + 2]
STRANGE: list[Row] = [
    *(person(5, number) for number in NUMBERS),
    *(person(number, 5) for number in NUMBERS),
    *(person(5, None, hours=number) for number in NUMBERS[:4]),
    *(person(5, None, w=number) for number in NUMBERS[:4]),
    *(person(5, 5, sex=word) for word in ("", "F", "new category", "'; --")),
    *(person(5, None, job=word) for word in (None, "maybe", "no")),
    dict.fromkeys(COLUMNS),
    person(None, None, sex=None, hours=None, mood=None, w=None),
]


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    close_engines()


KNOWN: dict[str, Tallies] = {}


def remembering(answer: Callable[[Tallies, Noise], bytes]) -> Release:
    """A release from surveys that are tallied once each."""

    def release(rows: Sequence[Row], noise: Noise) -> bytes:
        if repr(rows) not in KNOWN:
            KNOWN[repr(rows)] = tally(PLAN, rows)
        return answer(KNOWN[repr(rows)], noise)

    return release


def ours(tallies: Tallies, noise: Noise) -> bytes:
    return visible(PLAN, evaluate(PLAN, tallies, noise))


def unseen(tallies: Tallies, noise: Noise) -> bytes:
    """The same meetings with the noise, and no document: intervals of other answers take long to compute."""
    evaluate(PLAN, tallies, noise)
    return b""


def apart(one: Run, other: Run) -> list[str]:
    """What tells two runs along one transcript apart; a bound that was read off the rows is one on both sides."""
    seen = [each for each in violations(one, other) if "moved" not in each]
    return seen + faults(one.calls, other.calls)


def neighbours() -> list[list[Row]]:
    more = [[*ORDINARY, strange] for strange in STRANGE]
    return more + [[*ORDINARY[:i], *ORDINARY[i + 1 :]] for i in range(len(ORDINARY))]


def replayed(
    release: Release, rows: Sequence[Row] = ORDINARY, others: Sequence[Sequence[Row]] | None = None
) -> list[str]:
    """Along the transcript of `rows`, on every neighbour."""
    here, found = run(release, rows), []
    for other in neighbours() if others is None else others:
        found += apart(here, run(release, other, here.outputs))
    return found


def replayed_back(release: Release, others: Sequence[Sequence[Row]]) -> list[str]:
    """Along the transcript of every neighbour, on us."""
    return [each for other in others for each in replayed(release, other, [ORDINARY])]


# covers T06 T10 T13 T20
def test_nothing_but_noisy_answers_tells_neighbours_apart() -> None:
    """70 neighbours, half of them strange in what is matched on, filled, edited or weighted. Both ways; on the way back
    the document is looked at for seven of them. Edits, donors, a bar that was bought and one that was lent."""
    assert len(neighbours()) == 70
    assert replayed(remembering(ours)) == []
    assert replayed_back(remembering(unseen), neighbours()) == []
    assert replayed_back(remembering(ours), neighbours()[::10]) == []
    lent = evaluate(PLAN, tally(PLAN, ORDINARY), FrozenNoise())["ask 1"].estimates[0]
    assert lent.has_interval


# --- classic bugs of imputation, a few lines each ----------------------------------------------------------------------------


def shows_the_scale(tallies: Tallies, noise: Noise) -> bytes:
    """The bound stands beside the answer, as scales of noise usually do."""
    rings = [ring for ring in wants_of(PLAN) if ring in tallies.rings]
    served = [HubCache(tallies, PLAN.schema, PLAN.repair).hubs(ring).first for ring in rings]
    return ours(tallies, noise) + json.dumps(served).encode()


def says_who_is_left(tallies: Tallies, noise: Noise) -> bytes:
    """A remark on how many gaps were filled."""
    filled = sum(int(table.recipients.sum()) for table in tallies.rings.values())
    return ours(tallies, noise) + b"%d gaps" % filled


# covers T20
@pytest.mark.parametrize("bug", [shows_the_scale, says_who_is_left])
def test_replay_rejects_what_imputation_likes_to_tell(bug: Callable[[Tallies, Noise], bytes]) -> None:
    assert replayed(remembering(bug), others=neighbours()[::5])


def less_noise_without_recipients(tallies: Tallies, noise: Noise) -> bytes:
    """Nobody had to be helped, so no donor matters: noise for one record."""
    if not any(table.recipients.any() for table in tallies.rings.values()):
        return b"%d" % noise.laplace(0, sensitivity=5, epsilon=PLAN.asks[0].epsilon)
    return ours(tallies, noise)


# covers T20
def test_replay_rejects_less_noise_where_nothing_was_missing() -> None:
    """A complete survey and one who does not answer: ours makes the same calls for both."""
    complete = [person(i % 7, i % 9 - 3) for i in range(12)]
    others = [[*complete, person()]]
    assert replayed(remembering(less_noise_without_recipients), complete, others)
    assert replayed(remembering(ours), complete, others) == []


# covers T19 T20
def test_replay_rejects_a_bound_that_is_only_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hubs, "serves", lambda self, k: self.reach(self._k0))
    assert any("drifts" in each for each in replayed(remembering(unseen)))


# --- T13: cells of text ------------------------------------------------------------------------------------------------------

TEXT = {name: pa.string() for name in ("site", "pay", "hours", "w")}
WORDS = [
    "a lot", "", "NA", "NaN", "None", ".", "inf", "-Infinity", "1e400", "9" * 5000, "1,5", "1_0", "0x10",
    "\u0663", "\u2212" + "1", "'; drop table people_; --", "=1+1", "5\x006", "{}",
]  # fmt: skip


def text_release(cells: dict[str, str]) -> Release:
    """Everybody's numbers as text, and one more respondent with these cells."""

    def release(rows: Sequence[Row], noise: Noise) -> bytes:
        plain = [
            {k: str(v) if k in TEXT and v is not None else v for k, v in row.items()}
            for row in (*rows, person())
        ]
        return ours(tally(PLAN, [*plain[:-1], {**plain[-1], **cells}], TEXT), noise)

    return release


# covers T13
def test_poison_in_what_is_matched_on_or_filled_looks_like_any_answer() -> None:
    """19 words in the pay and 19 in the site, two at a time: one respondent exchanged for another, and no more."""
    good = run(text_release({"pay": "5"}), ORDINARY[:8])
    for word, other in zip(WORDS, WORDS[::-1], strict=True):
        there = run(text_release({"pay": word, "site": other}), ORDINARY[:8], good.outputs)
        assert there.seen == good.seen
        assert faults(good.calls, there.calls, times=2) == []


def test_naive_code_stops_at_most_of_the_words() -> None:
    """The twin reads with float(): it fails, and so tells that the word is there."""

    def fails(word: str) -> bool:
        try:
            return not math.isfinite(float(word))
        except ValueError:
            return True

    assert sum(map(fails, WORDS)) >= 15


# --- T22: eight releases each -------------------------------------------------------------------------------------------------

LARGE = [
    person(i % 21, None if i % 5 == 0 else i % 9 - 3, sex="fm"[i % 2], hours=i % 5, w=i % 4)
    for i in range(600)
]


# covers T22 R11
def test_no_place_of_a_repaired_release_tells_neighbours_apart_for_certain(folder) -> None:
    """8 releases of each: a place constant on both and different would be exact.

    The limits of the mean's interval are a bound of pay most of the time, on both sides the same one; no other value of
    theirs has a chance above 0.05, and no value of another number one above 0.2 (400 releases were looked at). So a
    false alarm comes below 1e-7.
    """
    plan = plan_of("0.5", for_silence="0.05")
    without = [row for i, row in enumerate(LARGE) if i != 300]
    sides = [
        [published(folder / f"{side}{i}", plan, rows) for i in range(RUNS)]
        for side, rows in enumerate((LARGE, without))
    ]
    assert telling(*sides) == []
    naive = [
        [{**made, "gaps": sum(row["pay"] is None for row in rows)} for made in side]
        for side, rows in zip(sides, (LARGE, without), strict=True)
    ]
    assert telling(*naive) == ["/gaps"]
