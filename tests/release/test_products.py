"""Products register, and nobody enumerates them: a kind that the library has never heard of is charged, made, told and shown."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from reticent.cli.show import show_preview, show_release
from reticent.engine.open import Nobody
from reticent.engine.wants import Aggregate, Rows, Sum
from reticent.errors import PlanError
from reticent.plan.budgets import Product
from reticent.plan.plan import Plan
from reticent.plan.products import PRODUCTS
from reticent.plan.sections import PlanSections
from reticent.preview import products as foreseen
from reticent.preview.foreseen import Foreseen
from reticent.privacy.claim import Claim
from reticent.privacy.ledger import Ledger
from reticent.release import release as registered
from reticent.release.curator import Curator
from reticent.release.product import Grid, PlanRun, Producer, ReleasedSection, Result
from reticent.release.release import Release, files_of, planned_files
from reticent.release.run import run_plan, try_plan
from reticent.release.survey import Survey
from reticent.report import pages
from reticent.report.charts import specs
from reticent.report.drawing import Drawing
from reticent.report.page import page
from tests.tables import REPLACE, book

EVERYBODY = Sum(rows=Rows())
ASK = {"name": "people", "query": {"count": "*"}, "epsilon": "1"}
CELLS = {
    "name": "pay by sex",
    "cell": "sex",
    "y": "age",
    "estimate": {"mean": True},
    "method": "smooth",
    "epsilon": "2",
}
SYNTH = {"name": "rows", "method": "independent", "rows": 5, "epsilon": "1", "columns": ["sex"]}
ROWS = pa.table({"sex": ["f", "m", "x"], "age": [30, 40, 50], "pay": [1.0, 2.0, 3.0], "w": [1.0, 1.0, 1.0]})


def planned(**sections: Any) -> Plan:
    given = {"statistics": [ASK], "cells": [CELLS], "synth": [SYNTH], **sections}
    return Survey(ROWS, codebook=book()).plan("p-1", epsilon="10", **given)


# --- a kind of its own ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads(Product):
    """A noisy number of rows, by another name."""

    section: ClassVar[str] = "heads"
    noun: ClassVar[str] = "a head count"
    budgets: Mapping[str, Fraction]
    reserved: Mapping[str, Fraction]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.budgets)

    @property
    def observed(self) -> Mapping[str, Fraction]:
        return self.reserved

    def claims(self, plan: Plan) -> tuple[Claim, ...]:
        ground = (("counting heads", "proofs/answer/count.md"),)
        return tuple(
            Claim(measure="pure", epsilon=each, change=plan.change, rests_on=ground)
            for each in self.budgets.values()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsResult(Result):
    asked: Heads
    plan: Plan
    counts: Mapping[str, int]

    @property
    def epsilon(self) -> Fraction:
        return sum((*self.asked.budgets.values(), *self.asked.reserved.values()), Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        return self.asked.claims(self.plan)

    def document(self) -> dict[str, Any]:
        return {"heads": [{"name": name, "count": count} for name, count in self.counts.items()]}


class HeadsProducer(Producer[Heads]):
    __slots__ = ()

    @property
    def endings(self) -> tuple[str, ...]:
        return (".heads.txt",)

    def check(self) -> None:
        if any(budget > 100 for budget in self.asked.budgets.values()):
            raise PlanError("is more than heads are worth; take less", field="heads")

    def wants(self) -> Sequence[Aggregate]:
        return [EVERYBODY]

    def run(self, on: PlanRun) -> HeadsResult:
        exact = on.tallies.statistics[EVERYBODY]
        counts = {
            name: on.noise.laplace(exact, sensitivity=Fraction(1), epsilon=epsilon)
            for name, epsilon in self.asked.budgets.items()
        }
        return HeadsResult(asked=self.asked, plan=on.plan, counts=counts)


def heads_txt(document: Mapping[str, Any]) -> bytes:
    return "".join(f"{each['name']}\n" for each in document["heads"]).encode()


def files(document: Mapping[str, Any]) -> dict[str, Callable[[Mapping[str, Any]], bytes]]:
    return {".heads.txt": heads_txt}


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two lines that a kind adds to the release."""
    monkeypatch.setitem(registered.PRODUCERS, Heads, HeadsProducer)  # type: ignore[arg-type]
    told = ReleasedSection(rows=lambda table: [dict(table)], files=files)
    monkeypatch.setitem(registered.RELEASED, "heads", told)  # type: ignore[arg-type]


def drawing() -> Drawing:
    return Drawing(
        heading="Heads",
        template="synth.html.j2",
        view=lambda document: {
            "asked": [(h["name"], "how many <heads>") for h in document["heads"]],
            "tables": [],
        },
        lines=lambda document: iter(
            [Grid(headings=("heads",), rows=[("[bold]many",)]), "heads were counted"]
        ),
        charts=lambda document: iter(
            [("Heads", "heads", ("One bar.", {"mark": "bar", "data": {"values": []}}))]
        ),
        uses=("Count heads with care.",),
    )


def with_heads(plan: Plan, epsilon: str = "0.5", **reserved: str) -> Plan:
    amounts = {name: Fraction(amount) for name, amount in reserved.items()}
    return replace(
        plan, products=(*plan.products, Heads(budgets={"heads": Fraction(epsilon)}, reserved=amounts))
    )


def test_a_kind_that_was_registered_goes_all_the_way(tmp_path):
    """Charged with the rest, tried on nobody, made, told in its own section, written as its own file, had by its name."""
    plan = with_heads(planned())
    assert plan.cost == planned().cost + Fraction(1, 2)
    ledger = Ledger.create(
        tmp_path / "l.db", dataset=plan.schema.name, change=plan.change.value, unit="epsilon", budget="20"
    )
    heard: list[str] = []
    release = Curator(ledger).release(
        plan, Survey(ROWS, codebook=book()), tmp_path / "out", step=heard.append
    )
    assert ledger.spent == plan.cost
    assert {"people", "pay by sex", "rows"} <= set(heard)
    assert [each["name"] for each in release["heads"]] == ["heads"]
    assert (tmp_path / "out" / "p-1.heads.txt").read_bytes() == b"heads\n"
    assert list(files_of(release)) == list(planned_files(plan))
    assert "counting heads" in str(release.document["guarantee"]["rests_on"])


def test_what_ran_spent_what_every_product_was_given():
    plan = with_heads(planned(), reserve="0.25")
    done = run_plan(plan, Nobody(), None)
    assert done.epsilon == plan.cost == Fraction("1") + 2 + 1 + Fraction("0.5") + Fraction("0.25")


def test_the_guarantee_is_that_of_every_product():
    plan = with_heads(planned())
    told = run_plan(plan, Nobody(), None).to_document(plan, receipt=None, engine="nobody")
    assert Fraction(told["guarantee"]["epsilon"]) == plan.claim.epsilon == plan.cost
    proofs = {ground["proof"] for ground in told["guarantee"]["rests_on"]}
    for product in plan.products:
        assert {page for claim in product.claims(plan) for _, page in claim.rests_on} <= proofs


def test_a_section_that_was_registered_is_shown_everywhere(monkeypatch, capsys):
    """On the page, escaped; in the pictures; on the terminal, after a preview and after a release."""
    plan = with_heads(planned(cells=(), synth=()))
    made = Release(run_plan(plan, Nobody(), None).to_document(plan, receipt=None, engine="nobody"))
    assert "many &lt;heads&gt;" not in page(made).decode()
    monkeypatch.setitem(pages.DRAWN, "heads", drawing())
    text = page(made).decode()
    assert "many &lt;heads&gt;" in text and "How heads may be used" in text
    assert [chart.title for chart in specs(made)][-1] == "Heads"
    show_release(made)
    said = capsys.readouterr().out
    assert "[bold]many" in said and "heads were counted" in said
    seen = Foreseen(key="heads", told=[{"name": "heads"}], lines=["heads will be counted"])
    monkeypatch.setitem(foreseen.FORESEEN, Heads, lambda asked, plan, cv: seen)
    show_preview(plan, "", as_json=False)
    assert "heads will be counted" in capsys.readouterr().out
    show_preview(plan, "", as_json=True)
    assert json.loads(capsys.readouterr().out)["heads"] == [{"name": "heads"}]


def test_a_product_is_refused_before_the_charge():
    with pytest.raises(PlanError, match="more than heads are worth"):
        try_plan(with_heads(planned(), epsilon="101"))


def test_what_is_not_asked_for_is_not_spoken_of():
    """A plan with one product holds that one, and its document no section of another."""
    plan = planned(cells=(), synth=())
    assert [product.section for product in plan.products] == ["statistic"]
    told = Release(run_plan(plan, Nobody(), None).to_document(plan, receipt=None, engine="nobody"))
    assert not {"cells", "synth", "weights", "models", "heads"} & set(told.document)
    assert list(files_of(told)) == [".json", ".csv"]


# --- what the plan says of its products -----------------------------------------------------------------------------------


def test_every_section_that_is_read_as_a_product_is_a_section_of_a_plan():
    """A line in the registry without a key in `PlanSections` could never be asked for."""
    assert set(PRODUCTS) <= set(PlanSections.model_fields)
    assert all(type(product) in registered.PRODUCERS for product in planned().products)


@pytest.mark.parametrize("twice", ["cells", "synth"])
def test_no_two_products_share_a_name(twice):
    section = {**(CELLS if twice == "cells" else SYNTH), "name": "people"}
    with pytest.raises(PlanError, match="a statistic is called 'people' too") as refused:
        planned(**{twice: [section]})
    assert refused.value.field == f"{twice}[0].name"


def test_tables_share_no_name_either():
    with pytest.raises(PlanError, match="a table is called 'rows' too"):
        planned(cells=[{**CELLS, "name": "rows"}])


def test_a_plan_that_asks_nothing_is_told_what_it_could_ask():
    with pytest.raises(
        PlanError,
        match=r"add a \[\[statistic\]\], \[\[cells\]\], \[\[tables\]\], \[\[regression\]\] or \[\[synth\]\]",
    ):
        planned(statistics=(), cells=(), synth=())


def test_weights_without_a_statistic_are_refused():
    weight = {
        "by": [{"column": "sex", "missing": "f"}],
        "totals": [{"sex": each, "total": "9"} for each in "fmx"],
    }
    with pytest.raises(PlanError, match="no statistic says weight"):
        planned(statistics=(), weight=weight, expect={"rows": 3})


@pytest.mark.parametrize("product", ["cells", "synth"])
def test_a_piece_by_values_takes_only_what_is_proved_for_it(product):
    """Against replacing, one respondent can leave the piece: statistics are proved for it, other products are not."""
    given = {"statistics": [ASK], "cells": (), "synth": ()} | {
        product: [CELLS if product == "cells" else SYNTH]
    }
    section = {
        "partition": {"name": "sexes", "by": "sex", "piece": "f"},
        "protect": {"change": REPLACE},
    }
    with pytest.raises(PlanError, match="not proved for both"):
        Survey(ROWS, codebook=book(sample_size=3)).plan("p-1", epsilon="10", **given, **section)
