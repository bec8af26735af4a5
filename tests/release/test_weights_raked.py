"""Totals raked inside a plan: what is refused, what it costs, how files are read, and a whole release."""

from fractions import Fraction
from random import Random

import pytest

from reticent.errors import PlanError
from reticent.plan.totals import with_totals
from reticent.preview.preview import expectations
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.survey import Survey
from reticent.report.words import handled
from reticent.schema.public_files import PublicFiles
from tests.answer.test_weighted import some_people
from tests.answer.weighing import AGES, COLLAPSE, QUERIES, RAKE, TOTALS, weighted_plan
from tests.tables import ADD, arrow, book

MARGIN = RAKE["margin"]


def plan_of(changed=None, *, queries=QUERIES, **weight):
    section = {"totals": "rake", "rake": {**RAKE, **(changed or {})}, **weight}
    return weighted_plan(weight=section, queries=queries, **({"asks": {}} if len(queries) == 1 else {}))


def test_the_table_is_charged_once_beside_bins_and_asks():
    known, raked = weighted_plan(), plan_of()
    both = plan_of(collapse=COLLAPSE, epsilon="0.25")
    assert raked.cost == known.cost + Fraction("0.5") and both.cost == raked.cost + Fraction("0.25")
    assert both.claim.epsilon == both.cost and both.weight.price == Fraction("0.75")
    assert "proofs/answer/raked.md" in [page for _, page in raked.claim.rests_on]
    assert all(each.margin > 0 for each in expectations(raked)[:2])


def test_what_is_foretold_does_not_hang_on_the_noise():
    """Steps come from the assumed totals: those of the margins alone, with the zeroes at 0."""
    plan = plan_of({"zero": [{"age": AGES[0], "sex": "x"}]})
    (strategy,) = plan.weight.candidates.strategies
    assert strategy.totals[2] == 0 and abs(sum(strategy.totals) - 264) < Fraction(1, 100)


@pytest.mark.parametrize(
    ("match", "rake", "weight"),
    [
        ("goes with", {}, {"totals": TOTALS}),
        ("goes with", {}, {"totals": None}),
        ("goes with", {}, {"rake": None}),
        ("no total", {"margin": [{**MARGIN[0], "totals": MARGIN[0]["totals"][1:]}]}, {}),
        ("no stratifier", {"margin": [{**MARGIN[0], "by": ["pay"]}]}, {}),
        (
            "contradict",
            {"margin": [MARGIN[0], {"by": ["sex"], "totals": [{"sex": s, "total": 9} for s in "fmx"]}]},
            {},
        ),
        ("structural zero", {"zero": [{"sex": "f"}]}, {}),
        ("no bin", {"zero": [{"sex": "z"}]}, {}),
        ("names no bin", {"zero": [{}]}, {}),
        ("every base bin once", {"join": [{"age": [[AGES[0]]]}]}, {}),
        ("0 or more", {"least": "-1"}, {}),
        ("not known before", {}, {"collapse": COLLAPSE, "tolerate": {"chance": "0.1", "gap": "1"}}),
        ("all totals are raked", {}, {"strategy": [{"name": "a", "totals": TOTALS}]}),
        ("epsilon", {"epsilon": "0"}, {}),
        ("not a known key", {"seed": 1}, {}),
    ],
)  # covers B091 B092
def test_what_contradicts_itself_is_refused_from_public_words(match, rake, weight):
    with pytest.raises(PlanError, match=match) as problem:
        plan_of(rake, **weight)
    assert str(problem.value.field).startswith("weight")


def test_margins_may_stand_in_files_beside_the_plan(tmp_path):
    """Written out they are the same plan; the word rake is no file."""
    lines = ["age,total", *(f"{line['age']},{line['total']}" for line in MARGIN[0]["totals"])]
    (tmp_path / "ages.csv").write_text("\n".join(lines))
    raw = {"totals": "rake", "rake": {**RAKE, "margin": [{"by": ["age"], "totals": "ages.csv"}, MARGIN[1]]}}
    read = with_totals(raw, PublicFiles.of(tmp_path, rows=[tmp_path / "rows.parquet"], ledgers=[]))
    assert read["totals"] == "rake"
    assert [(line["age"], int(line["total"])) for line in read["rake"]["margin"][0]["totals"]] == [
        (line["age"], line["total"]) for line in MARGIN[0]["totals"]
    ]
    with pytest.raises(PlanError, match="the rows"):
        with_totals(raw, PublicFiles.of(tmp_path, rows=[tmp_path / "ages.csv"], ledgers=[]))


def test_a_whole_release_tells_the_table_and_how_the_fit_went(tmp_path):
    join = [{"sex": [["f"], ["m", "x"]]}]
    plan = plan_of({"join": join, "least": 1}, base="w", queries=[QUERIES[0]])
    ledger = Ledger.create(tmp_path / "l.db", dataset="tiny", change=ADD, unit="epsilon", budget="10")
    survey = Survey(arrow(some_people(Random(11), 300), plan.schema), codebook=book())
    made = Curator(ledger).release(plan, survey, tmp_path / "out")
    told = made.document["weights"]
    assert ledger.spent == plan.cost == Fraction("1.5") and made.document["guarantee"]["epsilon"] == "1.5"
    raked = told["raked"]
    assert len(raked["noisy_table"]) == 9 and raked["margins"] == [["age"], ["sex"]]
    assert raked["status"] in ("met", "not met", "no cells")
    done = [each for one in handled(made.document) for each in one.sentences]
    assert any(said.lower() == f"{raked['words']}." for said in done)
    said = [*done, *(answer["words"] for answer in made.document["statistics"])]
    assert any("totals raked to known margins by" in each for each in said)
    assert not any("known totals" in each for each in said)  # nobody knows them: they were fitted
    assert abs(sum(map(Fraction, told["totals"])) - 264) < 1
