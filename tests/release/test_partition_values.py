"""Pieces by a column: what is read, what one changed answer moves, what counts, and what the frame is promised."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import exp, log

import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import BudgetError, PlanError
from reticent.preview.preview import expectations
from reticent.privacy.claim import Change, Claim
from reticent.privacy.ledger import Ledger
from reticent.privacy.sampling import amplified, by_values
from reticent.release.curator import Curator
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan

COLUMNS = {
    "region": {"kind": "categorical", "levels": ["north", "south", "west"]},
    "age": {"kind": "integer", "bounds": [40, 99]},
    "w": {"kind": "integer", "bounds": [0, 4], "role": "weight"},
}
QUERIES = [
    {"count": "*", "where": "age > 60"},
    {"total": "age"},
    {"mean": "age"},
    {"table": ["age"], "bins": {"age": [40, 60, 99]}},
    {"median": "age", "step": "5"},
    {"variance": "age"},
]
PEOPLE = [(["north", "south", "west", None][i % 4], 40 + (7 * i) % 60, 1 + i % 4) for i in range(24)]


def rows(people) -> pa.Table:
    region, age, w = zip(*people, strict=True)
    return pa.table({"region": pa.array(region, pa.string()), "age": list(age), "w": list(w)})


def plan_of(
    piece="north", *, change=ADD, queries=None, columns=None, schema=None, release_id=None, **section
):
    options = section.pop("options", {})
    return make_plan(
        queries or QUERIES,
        schema or book(columns or COLUMNS, **({"sample_size": 24} if change == REPLACE else {})),
        change=change,
        release_id=release_id or f"of-{piece}",
        partition={"name": "regions", "by": "region", "piece": piece, **section},
        **options,
    )


def calls_of(plan, people, noise):
    engine = DuckDBEngine(open_frame(rows(people)), threads=1)
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair, plan.partition.lot("ab" * 32))
        return evaluate(plan, tallies, noise)
    finally:
        engine.close()


def test_a_piece_is_those_who_say_so_and_speaks_of_them_alone():
    """Counts of three pieces and of two groups, by hand; nobody without an answer is in any."""
    for piece, levels in (("north", {"north"}), (2, {"south"}), ("west", {"west"})):
        found = calls_of(plan_of(piece), PEOPLE, ZeroNoise())
        assert found["ask 0"].estimates[0].value == sum(r in levels and a > 60 for r, a, _ in PEOPLE)
        assert found["ask 1"].estimates[0].value == sum(a for r, a, _ in PEOPLE if r in levels)
    groups = [["north", "west"], ["south"]]
    found = calls_of(plan_of("west", groups=groups), PEOPLE, ZeroNoise())
    assert found["ask 1"].estimates[0].value == sum(a for r, a, _ in PEOPLE if r in ("north", "west"))
    told = plan_of("west", groups=groups).partition
    assert told.scale == 1 and told.piece.number == 1 and "speaks of those respondents alone" in told.words
    whole = make_plan(QUERIES, book(COLUMNS))
    assert [e.margin for e in expectations(plan_of())] == [e.margin for e in expectations(whole)]


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_a_changed_answer_moves_both_pieces_within_what_their_noise_was_told(change):  # covers T09
    """Every respondent made somebody else, in the same piece, in another or in none: each piece alone stays within
    its bounds. The naive twin, a range of b - a for a total, is passed when somebody leaves."""
    naive_is_passed, others = False, (("north", 99, 1), ("south", 40, 4), (None, 99, 1))
    for piece in ("north", "south"):
        plan, here = plan_of(piece, change=change), FrozenNoise()
        calls_of(plan, PEOPLE, here)
        for who, other in product(range(0, 8, 2 if change == REPLACE else 1), others):
            near = [*PEOPLE[:who], *([other] if change == REPLACE else []), *PEOPLE[who + 1 :]]
            there = FrozenNoise(here.outputs)
            calls_of(plan, near, there)
            for a, b in zip(here.calls, there.calls, strict=True):
                assert a.parameters == b.parameters and a.distance(b) <= a.sensitivity
                naive_is_passed |= a.sensitivity == 99 and a.distance(b) > 99 - 40
    assert naive_is_passed


def test_two_pieces_by_values_lose_the_sum_of_two_where_answers_are_replaced():  # covers T07
    """Two noisy counts, of two regions: the exact loss of a respondent who moves is what the ledger counts, not the most."""
    amounts = [Fraction(1), Fraction(1, 2)]

    def law(counts):
        return {
            seen: -sum(float(e) * abs(s - c) for e, s, c in zip(amounts, seen, counts, strict=True))
            for seen in product(range(-3, 7), repeat=2)
        }

    moved = max(abs(law((2, 1))[o] - law((1, 2))[o]) for o in law((1, 2)))
    came = max(abs(law((2, 1))[o] - law((2, 2))[o]) for o in law((1, 2)))
    claims = [Claim(measure="pure", epsilon=each) for each in amounts]
    assert moved == float(by_values(claims, change=Change.REPLACE, within=amounts).epsilon)
    assert moved == 1.5 and moved > max(amounts)
    assert came <= float(by_values(claims, change=Change.ADD_REMOVE).epsilon) == 1


@pytest.mark.parametrize(("change", "spent"), [(ADD, (1, 1, 2)), (REPLACE, (1, 2, 3))])
def test_the_ledger_counts_the_most_or_two(tmp_path, change, spent):
    """North 1, south 1, north 1 again. What counts is enforced: a budget of less refuses the last."""
    schema = book(COLUMNS, **({"sample_size": 24} if change == REPLACE else {}))
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="tiny", change=change, unit="epsilon", budget=str(spent[-1])
    )
    survey, query = Survey(rows(PEOPLE), codebook=schema), [{"count": "*"}]
    pieces = [("north", "a"), ("south", "b"), ("north", "c")]
    for (piece, name), total in zip(pieces, spent, strict=True):
        made = Curator(ledger).release(
            plan_of(piece, change=change, queries=query, release_id=name), survey, tmp_path / "out"
        )
        assert ledger.spent == total and made.document["piece"]["draw"] == "by values"
        assert "share" not in made.document["piece"] and "frames" not in made.document
    assert ledger.counting() == {
        "regions": "the two largest count together" if change == REPLACE else "the most counts"
    }
    over = plan_of("south", change=change, queries=query * (2 if change == ADD else 1), release_id="d")
    with pytest.raises(BudgetError):
        Curator(ledger).release(over, survey, tmp_path / "out")
    assert Ledger.open(tmp_path / "l.db").spent == spent[-1]


def test_another_column_or_grouping_under_the_same_name_is_refused(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=ADD, unit="epsilon", budget="9")
    survey, query = Survey(rows(PEOPLE), codebook=book(COLUMNS)), [{"count": "*"}]
    Curator(ledger).release(plan_of(queries=query), survey, tmp_path / "out")
    other = plan_of("south", queries=query, groups=[["north", "south"], ["west"]])
    with pytest.raises(PlanError, match="other pieces"):
        Curator(ledger).release(other, survey, tmp_path / "out")


def test_a_sample_cut_by_values_is_amplified_by_its_own_rate_alone():
    plan = plan_of(
        change=REPLACE, queries=QUERIES[:1], options={"sample": {"design": "simple", "frame": 240}}
    )
    ((_, claim),) = plan.frames
    assert claim.epsilon == amplified(epsilon=Fraction(1), rate=Fraction(1, 10))


PERSONS = book({**COLUMNS, "pid": {"kind": "identifier"}}, unit="pid", at_most=2)


@pytest.mark.parametrize(
    ("match", "section"),
    [
        ("no column", {"by": "regoin"}),
        ("no levels", {"by": "age"}),
        ("no level", {"piece": "east"}),
        ("numbered", {"piece": 4}),
        ("in one piece at most", {"groups": [["north"], ["north", "south"]]}),
        ("is in no piece", {"piece": "west", "groups": [["north"], ["south"]]}),
        ("leave pieces", {"pieces": 3}),
        ("it is 'by values'", {"draw": "fixed sizes"}),
        ("goes with draw", {"frame": [1, 2, 3]}),
        ("has a number", {"by": None, "pieces": 3}),
        ("several rows", {"schema": PERSONS}),
        (
            "not proved for both",
            {
                "change": REPLACE,
                "options": {
                    "repair": [{"method": "donors", "bound": "hubs", "column": "age", "match": ["region"]}]
                },
            },
        ),
    ],
)
def test_what_has_no_theorem_is_refused(match, section):
    with pytest.raises(PlanError, match=match):
        plan_of(section.pop("piece", "north"), queries=QUERIES[:1], **section)


# --- a frame cut before the sample was drawn ----------------------------------------------------------------------

FRAME = {"draw": "before the sample", "frame": [100, 60, 80], "sizes": [10, 6, 8], "change": REPLACE}


def test_counts_of_a_piece_of_the_frame_speak_of_the_whole_frame():
    """Ten of a hundred in one piece, of 240 in all: a count is multiplied by 24, whatever the other pieces drew."""
    plan = plan_of(**FRAME)
    found = calls_of(plan, PEOPLE, ZeroNoise())
    assert plan.partition.scale == 24 and plan.rows == 10
    assert found["ask 0"].estimates[0].value == 24 * sum(r == "north" and a > 60 for r, a, _ in PEOPLE)
    assert found["ask 2"].estimates[0].value <= 99
    assert "region is not protected" in plan.partition.words


@pytest.mark.parametrize("role", ["stratum", "psu"])
def test_a_clustered_sample_is_no_simple_one_of_each_piece(role):
    """Respondents who were drawn together have no rate of their own to be amplified by."""
    unit = {"kind": "categorical", "levels": ["1", "2"], "role": role}
    with pytest.raises(PlanError, match="part of the sampling design") as refused:
        plan_of(**FRAME, columns={**COLUMNS, "tract": unit})
    assert refused.value.field == "partition.draw"


def test_the_frame_is_promised_the_rate_of_its_piece_and_more_if_the_cut_is_secret():
    own, alone = plan_of(**FRAME, queries=QUERIES[:2]).frames
    assert own[1].epsilon == amplified(epsilon=Fraction(2), rate=Fraction(1, 10))
    assert alone[1].epsilon == amplified(epsilon=Fraction(2), rate=Fraction(10, 240))
    assert "beside" in own[0] and "nothing is released from the other pieces" in alone[0]
    # Once the cut is known the second is false (enumerated below), so it must say that; the first holds for any cut.
    assert "or who is in which piece" in alone[0] and "nothing is released from the other pieces" in alone[0]
    assert "which piece" not in own[0] and all("this release alone" in each for each, _ in (own, alone))


def response(value, epsilon):
    """Randomised response about one drawn record."""
    true = exp(epsilon) / (1 + exp(epsilon))
    return {value: true, 1 - value: 1 - true}


def of_frame(people, cut, epsilon):
    """The law of both answers when one is drawn from each piece of a known cut."""
    law = {}
    for one, two in product(*cut):
        for a, b in product((0, 1), repeat=2):
            chance = response(people[one], epsilon)[a] * response(people[two], epsilon)[b]
            law[a, b] = law.get((a, b), 0.0) + chance / (len(cut[0]) * len(cut[1]))
    return law


@pytest.mark.parametrize("sizes", [(2, 2), (1, 3)])
def test_exact_loss_of_a_cut_frame_is_what_is_claimed(sizes):  # covers T07
    """Frames of four, all cuts and draws enumerated: known cuts lose the largest of the pieces' own, both released; a
    secret cut with one release loses the share of the whole frame. The naive twin takes that share for both."""
    epsilon, cuts = (
        1.0,
        [(first, tuple(sorted(set(range(4)) - set(first)))) for first in combinations(range(4), sizes[0])],
    )
    known = secret = 0.0
    for here in product((0, 1), repeat=4):
        there = (1 - here[0], *here[1:])
        averaged = [{0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0}]
        for cut in cuts:
            laws = [of_frame(people, cut, epsilon) for people in (here, there)]
            known = max(known, *(abs(log(laws[0][o] / laws[1][o])) for o in laws[0]))
            for law, mean in zip(laws, averaged, strict=True):
                for (a, _), chance in law.items():
                    mean[a] += chance / len(cuts)
        secret = max(secret, *(abs(log(averaged[0][o] / averaged[1][o])) for o in (0, 1)))
    rates = [Fraction(1, size) for size in sizes]
    claim = max(float(amplified(epsilon=Fraction(1), rate=rate)) for rate in rates)
    alone = float(amplified(epsilon=Fraction(1), rate=Fraction(1, 4)))
    assert known <= claim + 1e-11 and secret <= alone + 1e-11
    assert known > alone + 0.1 and known == pytest.approx(claim) and secret == pytest.approx(alone)


def test_a_cut_before_the_draw_and_a_cut_after_it_have_one_law():
    """Frames of four, one drawn for each of two pieces: every ordered pair is as likely either way."""
    before = [
        (a, b) for first in combinations(range(4), 2) for a in first for b in range(4) if b not in first
    ]
    after = list(permutations(range(4), 2))
    assert {pair: before.count(pair) * 12 for pair in set(before)} == {
        pair: after.count(pair) * len(before) for pair in after
    }


@pytest.mark.parametrize(
    ("match", "section"),
    [
        ("fixed sizes", {"change": ADD}),
        ("one number for each of 3", {"sizes": [10, 6]}),
        ("not more than its piece", {"sizes": [10, 6, 81]}),
        ("somebody", {"sizes": [18, 6, 0]}),
        ("do not add up", {"sizes": [10, 6, 9]}),
        ("remove this section", {"options": {"sample": {"design": "simple", "frame": 240}}}),
    ],
)
def test_frames_that_do_not_fit_are_refused(match, section):
    with pytest.raises(PlanError, match=match):
        plan_of(**{**FRAME, "queries": QUERIES[:1], **section})


def test_pieces_of_a_frame_are_charged_to_the_fullest(tmp_path):
    """Nobody changes piece when answers are replaced: the most counts, as by lot."""
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=REPLACE, unit="epsilon", budget="1")
    survey = Survey(rows(PEOPLE), codebook=book(COLUMNS, sample_size=24))
    for piece in ("north", "south", "west"):
        made = Curator(ledger).release(plan_of(piece, queries=QUERIES[:1], **FRAME), survey, tmp_path / "out")
    assert ledger.spent == 1 and len(made.document["frames"]) == 2
