"""Tables that add up with weights: base weights, and weights to known totals by released factors, each with its bound."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.answer.add_up import MarginAnswer, MarginTables, answer_tables
from reticent.engine.wants import SufficientStatistics, Tallies
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.preview.products import foresee_plan
from reticent.release.product import PlanRun
from reticent.release.run import run_plan
from reticent.release.statistics import StatisticsProducer
from reticent.release.survey import Survey
from reticent.release.tables import TablesProducer
from tests.doubles import FrozenNoise, ZeroNoise
from tests.release.test_factors import ASKS, BOOK, WEIGHT, Told, people
from tests.tables import ADD, REPLACE, Row, _table, book, cells_of, make_plan

COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "job": {"kind": "categorical", "levels": ["yes", "no"]},
    "w": {"kind": "decimal", "bounds": [0, 3], "grid": "0.5", "role": "weight"},
}
MARGINS = [["sex", "job"]]
CODES: list[Row] = [
    {"sex": s, "job": j, "w": w} for s, j, w in product((0, 1, None), (0, None), (0, 1, 6, None))
]


def plan_of(change: str = ADD, **keys: Any) -> Plan:
    section = {"name": "t", "margins": MARGINS, "epsilon": "1", "weight": "w", **keys}
    return make_plan([], book(COLUMNS), change=change, tables=[section])


def asked_of(plan: Plan) -> MarginTables:
    found = plan.product(AddUpTables)
    assert found is not None
    return found.tables[0]


def made(plan: Plan, rows: Sequence[Row], noise: Noise) -> MarginAnswer:
    asked, schema = asked_of(plan), plan.schema
    cells = [cells_of(row, schema) for row in rows]
    tables = {want: _table(want, cells, schema) for want in asked.wants(schema, plan.neighbours)}
    tallies = Tallies(statistics=SufficientStatistics(sums={}), tables=tables)
    return answer_tables(asked, tallies, noise, schema=schema, neighbours=plan.neighbours)


def pairs(change: str) -> Iterator[tuple[list[Row], list[Row]]]:
    others = [[each] for each in CODES] if change == REPLACE else [[]]
    for mine, theirs in product([[each] for each in CODES], others):
        yield [*CODES[2:5], *mine], [*CODES[2:5], *theirs]


@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("options", [{}, {"whole": False}, {"add_up": False}], ids=str)
def test_a_respondent_of_any_weight_costs_one_epsilon_at_most(change: str, options: dict[str, Any]) -> None:
    """Every record that may come, go or be exchanged; the heaviest attains it. Noise for one respondent would not do."""
    plan, losses = plan_of(change, **options), []
    for one, other in pairs(change):
        first = FrozenNoise()
        seen = made(plan, one, first)
        second = FrozenNoise(prescribed=first.outputs)
        assert made(plan, other, second).margins == seen.margins
        (here,), (there,) = first.calls, second.calls
        assert here.parameters == there.parameters
        losses.append(here.epsilon * Fraction(here.distance(there)) / here.sensitivity)
        naive = here.sensitivity / 6
    assert max(losses) == 1 and any(loss * 6 > 1 and naive for loss in losses)


def test_without_noise_they_are_sums_of_weight() -> None:
    """Half steps of weight stay exact in numbers that are not whole, and round to whole numbers that add up."""
    rows = [{"sex": 0, "job": 0, "w": 3}, {"sex": 0, "job": 1, "w": 5}, {"sex": 1, "job": 1, "w": 6}]
    exact, whole = (made(plan_of(whole=option), rows, ZeroNoise()) for option in (False, True))
    cells = {line.cell: line for line in exact.margins[0]}
    assert cells[("sex", "f"), ("job", "yes")].value == pytest.approx(1.5)
    assert cells[("sex", "(all)"), ("job", "(all)")].value == pytest.approx(7)
    rounded = {line.cell: line for line in whole.margins[0]}
    assert all(float(line.value).is_integer() for line in rounded.values())
    assert sum(line.value for cell, line in rounded.items() if "(all)" not in dict(cell).values()) == 7
    assert "the weight of the same respondents" in exact.meaning
    for line in whole.margins[0]:
        assert line.low <= max(0.0, cells[line.cell].value) <= line.high


def released(rows: pa.Table, noise: Noise) -> tuple[Plan, dict[str, Any]]:
    survey = Survey(rows, codebook=BOOK)
    tables = [{"name": "t", "margins": [["region", "sex"]], "weight": "poststratified", "epsilon": "1"}]
    plan = survey.plan(
        "r-1", epsilon="30", statistics=ASKS[:1], weight=WEIGHT, tables=tables, protect={"accept_large": True}
    )
    engine = survey.open()
    statistics, asked = plan.products
    producers: list[Any] = [StatisticsProducer(statistics, plan), TablesProducer(asked, plan)]  # type: ignore[arg-type]
    wants = [want for producer in producers for want in producer.wants()]
    try:
        tallies = engine.tally(plan.schema, wants, plan.repair)
    finally:
        engine.close()
    on = PlanRun(
        plan=plan,
        engine=engine,
        lot=None,
        noise=noise,
        bits=None,  # type: ignore[arg-type]
        step=lambda _: None,
        repair=plan.repair,
        tallies=tallies,
    )
    done = producers[0].run(on)
    found = producers[1].run(PlanRun(**{**{n: getattr(on, n) for n in on.__slots__}, "results": (done,)}))
    return plan, found.document()["tables"][0]


def test_released_factors_make_the_weights_of_a_table() -> None:
    """By hand: post-stratified to 6,000 women and 4,000 men, to the rounding of factors and of whole numbers."""
    rows = people()
    w, woman = rows["w"].to_numpy(), np.asarray(rows["sex"].to_pylist()) == "f"
    north = np.asarray(rows["region"].to_pylist()) == "n"
    post = w * np.where(woman, 6000 / w[woman].sum(), 4000 / w[~woman].sum())
    _, told = released(rows, ZeroNoise())
    cells = {tuple(line["cell"].values()): line["value"] for line in told["margins"][0]["lines"]}
    assert cells["n", "f"] == pytest.approx(post[north & woman].sum(), abs=6)
    assert cells["(all)", "f"] == pytest.approx(6000, abs=6) and told["unit"] == "respondents, weighted"


def test_neighbours_share_every_call_and_the_table_moves_by_its_bound_at_most() -> None:
    """Along transcripts with small and with large bins: all removals of 10 people."""
    rows = people(10)
    for bins in ((-7, 3), (900, 700)):
        noise = Told(bins)
        released(rows, noise)
        for place in range(len(rows)):
            other = Told(bins)
            released(pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)]), other)
            for one, two in zip(noise.calls, other.calls, strict=True):
                assert one.parameters == two.parameters and one.distance(two) <= one.sensitivity


def test_they_have_total_intervals_where_the_design_knows_the_weight() -> None:
    units = {"kind": "categorical", "role": "psu", "dealt": 20}
    codebook = {**BOOK, "columns": {**BOOK["columns"], "unit": units}}
    asks = [{"name": "women", "query": {"proportion": "sex = 'f'", "weight": "w"}, "epsilon": "2"}]
    tables = [{"name": "t", "margins": [["region"]], "weight": "w", "epsilon": "5"}]
    given: Any = {"statistics": asks, "tables": tables, "protect": {"accept_large": True}}
    survey = Survey(people(), codebook=codebook)
    bought = survey.plan("r-1", epsilon="30", design={"items": ["women"], "epsilon": "2"}, **given)
    declared = survey.plan("r-1", epsilon="30", design={"design_effect": "1"}, expect={"rows": 1500}, **given)
    found = []
    for plan in (bought, declared):
        engine = survey.open()
        try:
            found.append(
                run_plan(plan, engine, None).to_document(plan, receipt=None, engine="test")["tables"][0]
            )
        finally:
            engine.close()
    assert found[0]["margins"][0]["lines"][0]["total_margin"] > 0 and "empty" not in found[0]["total"]
    assert "buy the design factor" in found[1]["total"]["empty"]


def test_previews_tell_the_noise_of_weights() -> None:
    """Six times that of respondents, half steps of a weight of three at most."""
    plain, heavy = (
        next(iter(foresee_plan(plan))).told[0]["margins"][0]["margin"]
        for plan in (plan_of(weight=None), plan_of())
    )
    assert 2.5 * plain < heavy < 3.5 * plain


@pytest.mark.parametrize(
    ("weight", "keys", "words"),
    [
        ({}, {"weight": "x"}, "weight"),
        ({}, {"weight": "gone"}, "weight"),
        ({"totals": WEIGHT["totals"], "by": WEIGHT["by"]}, {"weight": "poststratified"}, "write factors"),
    ],
)
def test_other_weights_are_refused(weight: dict[str, Any], keys: dict[str, Any], words: str) -> None:
    tables = [{"name": "t", "margins": [["region"]], "epsilon": "1", **keys}]
    sections = {"weight": weight} if weight else {}
    with pytest.raises(PlanError, match=words):
        Survey(people(), codebook=BOOK).plan(
            "r-1", epsilon="3", statistics=ASKS[:1] if weight else [], tables=tables, **sections
        )


def test_a_weight_of_too_many_steps_is_refused() -> None:
    fine = {**BOOK, "columns": {**BOOK["columns"], "w": {**BOOK["columns"]["w"], "grid": "0.0000001"}}}
    tables = [{"name": "t", "margins": [["region"]], "epsilon": "1", "weight": "w"}]
    with pytest.raises(PlanError, match=r"coarser grid for it, such as 0\.000001"):
        Survey(people(), codebook=fine).plan("r-1", epsilon="3", tables=tables)
