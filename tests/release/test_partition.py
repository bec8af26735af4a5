"""Releases of one piece, and claims about the frame: what is read, how it is scaled, charged and told."""

from fractions import Fraction

import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError
from reticent.preview.preview import expectations
from reticent.privacy.ledger import Ledger
from reticent.privacy.sampling import amplified
from reticent.release.curator import Curator
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.doubles import ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan

COLUMNS = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "age": {"kind": "integer", "bounds": [0, 99]},
    "w": {"kind": "integer", "bounds": [0, 4], "role": "weight"},
}
ROWS = pa.table({"sex": ["f", "m"] * 30, "age": [(7 * i) % 100 for i in range(60)], "w": [1, 2, 3] * 20})
QUERIES = [
    {"count": "*", "where": "sex = 'f'"},
    {"total": "age"},
    {"mean": "age"},
    {"table": ["sex"]},
    {"difference": ["ask 1", "ask 0"]},
]


def plan_of(number: int = 1, *, change: str = REPLACE, codebook=None, queries=None, **section):
    pieces = {
        "name": "purposes",
        "piece": number,
        **({} if "shares" in section else {"pieces": 3}),
        **section,
    }
    known = {"sample_size": 60} if change == REPLACE else {}
    release_id = section.pop("release_id", f"piece-{number}")
    pieces.pop("release_id", None)
    return make_plan(
        queries or QUERIES,
        codebook or book(COLUMNS, **known),
        change=change,
        release_id=release_id,
        partition=pieces,
    )


def answers_of(plan, key: str = "ab" * 32):
    engine = DuckDBEngine(open_frame(ROWS), threads=1)
    try:
        tallies = engine.tally(plan.schema, wants_of(plan), plan.repair, plan.partition.lot(key))
        return evaluate(plan, tallies, ZeroNoise())
    finally:
        engine.close()


@pytest.mark.parametrize("shares", [None, ["0.2", "0.3", "0.5"]])
def test_scaled_pieces_average_to_the_whole(shares):
    """Without noise, pieces weighted by their shares give the survey's own counts and totals; means stay means."""
    given = {"shares": shares} if shares else {}
    plans = [plan_of(number, **given) for number in (1, 2, 3)]
    found = [answers_of(plan) for plan in plans]
    for ask, whole in (("ask 0", 30), ("ask 1", sum(ROWS["age"].to_pylist()))):
        each = [a[ask].estimates[0].value * p.partition.share for p, a in zip(plans, found, strict=True)]
        assert sum(each) == whole
    margins = [sum(e.value for e in a["ask 3"].estimates) for a in found]
    assert margins == [60, 60, 60]
    assert all(0 <= a["ask 2"].estimates[0].value <= 99 for a in found)
    assert found[0]["ask 4"].estimates[0].value == (
        found[0]["ask 1"].estimates[0].value - found[0]["ask 0"].estimates[0].value
    )


def test_error_bars_are_scaled_with_what_they_hold():
    whole = make_plan(QUERIES, book(COLUMNS, sample_size=60), change=REPLACE)
    plain, cut = expectations(whole), expectations(plan_of())
    assert cut[0].margin == 3 * plain[0].margin and cut[3].margin == 3 * plain[3].margin
    answer = answers_of(plan_of())["ask 0"].estimates[0]
    low, high = answer.interval(Fraction(95, 100))
    assert high - low == 2 * cut[0].margin


def test_every_piece_is_charged_its_full_price_and_the_most_counts(tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=REPLACE, unit="epsilon", budget="4")
    survey = Survey(ROWS, codebook=book(COLUMNS, sample_size=60))
    for number in (1, 2):
        made = Curator(ledger).release(plan_of(number), survey, tmp_path / "out")
        assert ledger.spent == 4
        told = made.document
        assert told["piece"]["number"] == number and told["receipt"]["piece"] == f"{number} of purposes"
        assert (
            told["guarantee"]["about"] == "the incomplete data held" and told["guarantee"]["epsilon"] == "4"
        )
        frame = told["frames"][0]
        assert frame["about"] == "the frame it was drawn from" and "nobody knows" in frame["secret"]
        assert Fraction(frame["epsilon"]) == amplified(epsilon=Fraction(4), rate=Fraction(1, 3))
        assert ledger.key("purposes") not in made.to_bytes().decode()


@pytest.mark.parametrize(
    ("match", "section"),
    [
        ("pieces = 10", {"pieces": None}),
        ("add up to 1", {"shares": ["0.5", "0.4"]}),
        ("between 0 and 1", {"shares": ["1", "0"]}),
        ("numbered", {"number": 4}),
        ("is one of", {"draw": "by region"}),
        ("not a known key", {"seed": 7}),
        ("without respondents", {"pieces": 61}),
        ("presume how many", {"change": ADD, "draw": "fixed sizes"}),
    ],
)
def test_what_has_no_theorem_is_refused(match, section):
    with pytest.raises(PlanError, match=match):
        plan_of(section.pop("number", 1), **section)


def test_a_public_size_is_not_that_of_a_piece():
    with pytest.raises(PlanError, match="whole survey"):
        make_plan(
            [{"mean": "age"}],
            book(COLUMNS, sample_size=60),
            change=REPLACE,
            asks={0: {"size": 60}},
            partition={"name": "p", "pieces": 2, "piece": 1},
        )


def test_one_by_one_needs_no_public_size():
    """Against adding or removing, the same piece promises less about itself and more about everybody."""
    plan = plan_of(change=ADD)
    assert plan.partition.piece.draw == "each on their own" and abs(plan.partition.scale - 3) < Fraction(
        1, 2**50
    )
    secret, claim = plan.frames[0]
    assert claim.epsilon < plan.cost and "nothing is released from the others" in secret


def test_the_codebook_binds_the_cut_and_places_of_files_do_not():
    other = {**COLUMNS, "age": {"kind": "integer", "bounds": [0, 98]}}
    one, two = plan_of(), plan_of(codebook=book(other, sample_size=60))
    assert one.partition.piece.binds != two.partition.piece.binds
    assert one.partition.piece.binds == plan_of(2).partition.piece.binds


# --- samples ------------------------------------------------------------------------------------------------------


def sampled(change: str = REPLACE, queries=None, columns=None, **section):
    known = {"sample_size": 60} if change == REPLACE else {}
    queries = queries or QUERIES[:2]
    return make_plan(queries, book(columns or COLUMNS, **known), change=change, sample=section)


def test_a_simple_sample_is_amplified_after_composing_and_the_charge_is_not():
    plan = sampled(design="simple", frame=600)
    assert plan.cost == 2 and plan.claim.epsilon == 2
    ((secret, claim),) = plan.frames
    assert claim.epsilon == amplified(epsilon=Fraction(2), rate=Fraction(1, 10))
    # The naive twin amplifies each ask and adds: less, and no promise.
    assert claim.epsilon > 2 * amplified(epsilon=Fraction(1), rate=Fraction(1, 10))
    assert "nobody knows who was drawn" in secret


def test_one_by_one_is_amplified_against_adding_or_removing():
    plan = sampled(ADD, design="poisson", rate="0.1")
    assert plan.frames[0][1].epsilon == amplified(epsilon=Fraction(2), rate=Fraction(1, 10))


def test_a_piece_of_a_sample_is_a_smaller_sample():
    plan = make_plan(
        QUERIES[:2],
        book(COLUMNS, sample_size=60),
        change=REPLACE,
        sample={"design": "simple", "frame": 600},
        partition={"name": "p", "pieces": 3, "piece": 1},
    )
    assert plan.frames[0][1].epsilon == amplified(epsilon=Fraction(2), rate=Fraction(1, 30))


@pytest.mark.parametrize(
    ("match", "section"),
    [
        ("moves a respondent to another stratum", {"design": "stratified", "frame": 600}),
        ("cluster", {"design": "cluster", "frame": 600}),
        ("is none of", {"design": "convenience", "frame": 600}),
        ("public size of the frame", {"design": "simple", "rate": "0.1"}),
        ("smaller than the sample", {"design": "simple", "frame": 59}),
        ("goes with", {"design": "simple", "frame": 600, "change": ADD}),
        ("goes with", {"design": "poisson", "rate": "0.1"}),
        ("a decimal up to 1", {"design": "poisson", "rate": "2", "change": ADD}),
        ("base weight", {"design": "simple", "frame": 600, "queries": [{"count": "*", "weight": "w"}]}),
        (
            "is a stratum",
            {
                "design": "simple",
                "frame": 600,
                "columns": {**COLUMNS, "sex": {**COLUMNS["sex"], "role": "stratum"}},
            },
        ),
        (
            "drawn together",
            {
                "design": "simple",
                "frame": 600,
                "columns": {**COLUMNS, "sex": {**COLUMNS["sex"], "role": "psu"}},
            },
        ),
    ],
)
def test_designs_without_a_theorem_are_refused_with_the_reason(match, section):
    with pytest.raises(PlanError, match=match):
        sampled(section.pop("change", REPLACE), **section)


def test_sample_and_pieces_are_drawn_alike():
    with pytest.raises(PlanError, match="different ways"):
        make_plan(
            QUERIES[:1],
            book(COLUMNS, sample_size=60),
            change=REPLACE,
            sample={"design": "simple", "frame": 600},
            partition={"name": "p", "pieces": 3, "piece": 1, "draw": "each on their own"},
        )


def test_the_reading_binds_the_cut(monkeypatch):
    """Another rule for cells, or a column that is text now, deals other lots: refused under the same name."""
    # covers T32
    plain = plan_of().partition.piece.binds
    as_text = {**COLUMNS, "sex": {**COLUMNS["sex"], "text": True}}
    assert plan_of(codebook=book(as_text, sample_size=60)).partition.piece.binds != plain
    monkeypatch.setattr("reticent.plan.partition.READING", 2)
    assert plan_of().partition.piece.binds != plain
