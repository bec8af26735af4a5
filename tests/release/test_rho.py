"""Plans in rho, and waves of a panel: one unit each, charged exactly, refused before the charge with what to write instead."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import BudgetError, LedgerError, PlanError
from reticent.plan.plan import Plan, plan_from
from reticent.preview.units import in_both_units, unit_line
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.release import Release
from reticent.release.survey import Survey
from reticent.report.page import page
from tests.tables import ADD, REPLACE, book

COUNT = {"count": "*", "where": "age >= 30"}
DONORS = {"method": "donors", "column": "pay", "match": ["sex"], "bound": "hubs"}
ROWS = "sex,age,pay,w\n" + "".join(f"{'fmx'[i % 3]},{20 + i % 50},{i % 90},{1 + i % 3}\n" for i in range(60))


def data(*asks: dict[str, Any], protect: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    named = [{"name": f"ask {place}", "query": COUNT, **ask} for place, ask in enumerate(asks)]
    return {
        "survey": {"source": "rows.csv", "codebook": "codebook.toml", "ledger": "ledger.db"},
        "release": {"id": more.pop("id", "r1")},
        "protect": {"change": ADD, "measure": "zcdp", "rho": "1", **(protect or {})},
        "statistic": named,
        **more,
    }


def planned(*asks: dict[str, Any], codebook: Any = None, **more: Any) -> Plan:
    return plan_from(data(*asks, **more), codebook or book())


def ledger_at(folder: Path, budget: str = "1", unit: str = "rho", change: str = ADD) -> Ledger:
    return Ledger.create(folder / "ledger.db", dataset="tiny", change=change, unit=unit, budget=budget)


def survey(folder: Path, name: str = "rows.csv") -> Survey:
    (folder / name).write_text(ROWS)
    return Survey(folder / name, codebook=book())


def published(plan: Plan, folder: Path, ledger: Ledger, name: str = "rows.csv") -> Release:
    return Curator(ledger).release(plan, survey(folder, name), folder / "out")


# covers L12 T17
def test_pure_statistics_of_a_plan_in_rho_are_charged_their_square_over_two(tmp_path):
    """Statistic by statistic: 0.3 and 0.1 cost 0.045 + 0.005, beside a Gaussian one; not half the square of their sum."""
    plan = planned({"epsilon": "0.3"}, {"epsilon": "0.1"}, {"rho": "0.02"})
    assert plan.unit == "rho" and plan.cost == Fraction("0.07") < Fraction("0.4") ** 2 / 2 + Fraction("0.02")
    ledger = ledger_at(tmp_path)
    told = published(plan, tmp_path, ledger).document
    assert ledger.spent == Fraction("0.07") and told["receipt"]["unit"] == "rho"
    assert told["guarantee"]["rho"] == told["receipt"]["charged"] == "0.07"
    assert [each["guarantee"]["measure"] for each in told["statistics"]] == ["pure", "pure", "zcdp"]
    mechanisms = [part["mechanism"] for each in told["statistics"] for part in each["parts"]]
    assert mechanisms == ["discrete Laplace", "discrete Laplace", "discrete Gaussian"]
    assert (
        told["statistics"][2]["parts"][0]["rho"] == "0.02"
        and "epsilon" not in told["statistics"][2]["parts"][0]
    )
    ledger.verify([told["receipt"]])


def test_a_plan_that_is_pure_throughout_is_still_counted_in_rho():
    """The naive twin composes pure claims to their sum of epsilon and charges that as rho."""
    plan = planned({"epsilon": "0.3"}, {"epsilon": "0.1"})
    assert plan.claim.measure == "zcdp" and plan.claim.rho == plan.cost == Fraction("0.05") != Fraction("0.4")


def test_the_same_plan_again_is_not_charged_and_gives_the_same_bytes(tmp_path):
    plan, ledger = planned({"rho": "0.1"}), ledger_at(tmp_path)
    first = published(plan, tmp_path, ledger).to_bytes()
    assert published(plan, tmp_path, ledger).to_bytes() == first and ledger.spent == Fraction("0.1")


def test_epsilon_is_shown_at_the_declared_delta_and_stored_nowhere(tmp_path):
    """In words, on the page, by `ledger spent`; in no field of the release and in no entry of the ledger."""
    plan, ledger = planned({"rho": "0.08"}, protect={"delta": "0.00001"}), ledger_at(tmp_path)
    release = published(plan, tmp_path, ledger)
    guarantee = release.document["guarantee"]
    assert guarantee["words"].endswith(", 0.00001)-DP") and "that is (1." in guarantee["words"]
    assert "epsilon" not in guarantee and "delta" not in guarantee
    assert ", 0.00001)-differential privacy" in page(release).decode()
    kept = [entry.body for entry in ledger.entries() if entry.kind == "reserve"]
    assert kept[0]["claim"]["rho"] == "0.08" and "epsilon" not in kept[0]["claim"]


TWO_UNITS = [
    ({"rho": "0.1", "epsilon": "0.1"}, {}, "statistic[0].rho", "one unit"),
    (
        {"rho": "0.1"},
        {"measure": "epsilon", "rho": None, "epsilon": "1"},
        "statistic[0].rho",
        'measure = "zcdp"',
    ),
    ({}, {}, "statistic[0].rho", "give it rho"),
    ({"epsilon": "0.1"}, {"epsilon": "1"}, "protect.epsilon", "write rho in place"),
    ({"epsilon": "0.1"}, {"rho": None}, "protect.rho", "write the budget"),
    ({"epsilon": "0.1"}, {"measure": "epsilon"}, "protect.rho", 'goes with measure = "zcdp"'),
    ({"epsilon": "0.1"}, {"measure": "zCDP"}, "protect.measure", "is one of epsilon, zcdp"),
    ({"rho": "0.1"}, {"rho": "50"}, "protect.rho", "accept_large"),
    ({"rho": "0.1"}, {"delta": "0.5"}, "protect.delta", "one in a hundred"),
    ({"rho": "0.1"}, {"delta": "1e-6"}, "protect.delta", "decimal"),
    ({"rho": "2"}, {}, "protect.rho", "the plan needs 2"),
    ({"rho": "0.1", "interval": {"rho": "0.1"}}, {}, "statistic[0].interval.rho", "is not needed"),
    (
        {"query": {"median": "age", "step": "5"}, "rho": "0.1", "interval": {"epsilon": "0.1"}},
        {},
        "statistic[0].interval.epsilon",
        "another unit than its statistic",
    ),
]


# covers L12
@pytest.mark.parametrize(("ask", "protect", "field", "said"), TWO_UNITS)
def test_two_units_are_refused_with_what_to_write(ask, protect, field, said):
    """From public words, before a ledger or a row is looked at."""
    given = data(ask)
    given["protect"] = {
        key: each for key, each in {**given["protect"], **protect}.items() if each is not None
    }
    with pytest.raises(PlanError) as refused:
        plan_from(given, book())
    assert refused.value.field == field and said in str(refused.value)


@pytest.mark.parametrize(
    ("query", "more"),
    [({"mean": "pay"}, {"impute": [DONORS]}), ({"count": "*", "where": "pay > 20"}, {"impute": [DONORS]})],
)
def test_noise_scaled_by_a_smooth_bound_keeps_epsilon(query, more):
    """rho is refused, and says what to write; with epsilon it is charged the square over two, its interval included."""
    with pytest.raises(PlanError, match="give it epsilon") as refused:
        planned({"query": query, "rho": "0.1"}, **more)
    assert refused.value.field == "statistic[0].rho"
    plan = planned({"query": query, "epsilon": "0.4", "interval": {"epsilon": "0.2"}}, **more)
    assert plan.cost == Fraction("0.6") ** 2 / 2


def test_pieces_of_a_survey_are_refused_in_rho():
    """Before the charge, with the way out: a ledger counts pieces in epsilon."""
    with pytest.raises(PlanError, match="pieces of a survey are counted in epsilon") as refused:
        planned({"rho": "0.1"}, partition={"name": "p", "pieces": 2, "piece": 1})
    assert refused.value.field == "partition"


def test_what_has_a_delta_or_promises_nothing_is_refused_in_rho():
    synth = {
        "name": "rows",
        "method": "independent",
        "rows": 5,
        "epsilon": "1",
        "delta": "0.000001",
        "columns": ["sex"],
    }
    with pytest.raises(PlanError, match="delta of its own") as refused:
        planned({"rho": "0.1"}, synth=[synth])
    assert refused.value.field == "synth"
    with pytest.raises(PlanError, match="does not go with rho"):
        planned({"rho": "0.1"}, synth=[{**synth, "epsilon": None, "rho": "0.1"}])


def test_a_synthetic_table_in_rho_is_charged_what_its_accountant_takes(tmp_path):
    """No second accountant: its rho is the claim and the charge, and it runs."""
    synth = {"name": "rows", "method": "mst", "rows": 20, "rho": "0.1", "columns": ["sex", "age"]}
    plan = planned({"rho": "0.02"}, synth=[synth])
    assert plan.cost == Fraction("0.12")
    ledger = ledger_at(tmp_path)
    told = published(plan, tmp_path, ledger).document
    assert ledger.spent == Fraction("0.12") and told["guarantee"]["rho"] == "0.12"


@pytest.mark.parametrize("change", [ADD, REPLACE])
def test_tables_that_add_up_have_gaussian_noise_for_their_length_in_rho(tmp_path, change):
    """Charged once, with sigma = length / sqrt(2 rho / k) each: the root of two where answers are replaced, not two."""
    asked = {"name": "t", "margins": [["sex"], ["age"]], "bins": {"age": [0, 30, 60, 100]}, "rho": "0.5"}
    asked |= {"add_up": False}
    codebook = book() if change == ADD else book(sample_size=60)
    plan = planned(codebook=codebook, protect={"change": change}, tables=[asked])
    (table,) = plan.products[-1].tables
    for part in table.parts(plan.schema, plan.neighbours):
        parts = len(table.parts(plan.schema, plan.neighbours))
        length = 2**0.5 if change == REPLACE else 1.0
        assert part.is_gaussian and part.sd == pytest.approx(length / (1.0 / parts) ** 0.5, rel=1e-4)
    ledger = ledger_at(tmp_path, change=change)
    rows = Survey(_file(tmp_path), codebook=codebook)
    told = Curator(ledger).release(plan, rows, tmp_path / "out").document
    assert ledger.spent == Fraction("0.5") and told["guarantee"]["rho"] == "0.5"
    assert told["tables"][0]["rho"] == "0.5" and "rho" in told["tables"][0]["measured"][0]
    assert in_both_units(plan).rho == Fraction("0.5")


@pytest.mark.parametrize(("plan_unit", "ledger_unit"), [("rho", "epsilon"), ("epsilon", "rho")])
def test_a_plan_and_a_ledger_of_two_units_do_not_meet(tmp_path, plan_unit, ledger_unit):
    """Refused before the charge; nothing is written into the ledger or out."""
    protect = {} if plan_unit == "rho" else {"measure": "epsilon", "rho": None, "epsilon": "1"}
    given = data({plan_unit: "0.1"}, protect=protect)
    given["protect"] = {key: each for key, each in given["protect"].items() if each is not None}
    ledger = ledger_at(tmp_path, unit=ledger_unit)
    with pytest.raises(PlanError, match="use a ledger") as refused:
        published(plan_from(given, book()), tmp_path, ledger)
    assert refused.value.field == "unit" and ledger.spent == 0 and len(list(ledger.entries())) == 1


def test_a_second_ledger_in_the_other_unit_is_refused_for_the_same_file(tmp_path):
    """L13 in both units: another unit is no other budget."""
    ledger = ledger_at(tmp_path)
    published(planned({"rho": "0.1"}), tmp_path, ledger)
    other = Ledger.create(tmp_path / "other.db", dataset="other", change=ADD, unit="epsilon", budget="1")
    with pytest.raises(LedgerError, match=r"belongs to ledger\.db"):
        other.check_alone([(tmp_path / "rows.csv", "")])


# --- waves -----------------------------------------------------------------------------------------------------------------


def wave(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "at_most": 2, "of": 4, **more}


def test_waves_are_charged_to_one_lifetime_budget(tmp_path):
    """Four waves of 0.1 cost 0.2 in all; receipts, page and `ledger spent` say what that rests on."""
    ledger = ledger_at(tmp_path, "0.2")
    for quarter in range(4):
        plan = planned({"rho": "0.1"}, id=f"q{quarter}", wave=wave(f"2026q{quarter}"))
        release = published(plan, tmp_path, ledger, f"rows{quarter}.csv")
    assert ledger.spent == Fraction("0.2")
    receipt = release.document["receipt"]
    assert receipt["counted"] == "0" and "by design of the sample" in receipt["wave"]
    assert release.document["wave"]["at_most"] == 2 and "by design of the sample" in page(release).decode()
    shown = CliRunner().invoke(app, ["ledger", "spent", str(tmp_path / "ledger.db")])
    assert "2026q3 0.1; the 2 most costly count: by design of the sample" in shown.output
    with pytest.raises(BudgetError):
        published(planned({"rho": "0.01"}, id="all"), tmp_path, ledger, "rows.csv")


def test_a_wave_twice_is_refused_before_the_charge(tmp_path):
    """By its name, unless that is meant; by its file under another name, always."""
    ledger = ledger_at(tmp_path)
    published(planned({"rho": "0.1"}, wave=wave("a")), tmp_path, ledger, "a.csv")
    for given, said in ((wave("a"), "again = true"), (wave("b"), "released as wave 'a'")):
        with pytest.raises(PlanError, match=said):
            published(planned({"rho": "0.1"}, id="r2", wave=given), tmp_path, ledger, "a.csv")
        assert ledger.state("r2") == "none" and ledger.spent == Fraction("0.1")
    published(planned({"rho": "0.1"}, id="r2", wave=wave("a", again=True)), tmp_path, ledger, "a.csv")
    assert ledger.spent == Fraction("0.2")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"at_most": 0}, "wave.at_most"),
        ({"at_most": 5}, "wave.at_most"),
        ({"of": 0}, "wave.of"),
        ({"at_most": "rows"}, "wave.at_most"),
        ({"name": "a\nb"}, "wave.name"),
        ({"column": "wave"}, "wave.column"),
    ],
)
def test_a_wave_is_a_few_words_and_nothing_read_off_rows(given, field):
    with pytest.raises(PlanError) as refused:
        planned({"rho": "0.1"}, wave=wave("a") | given)
    assert refused.value.field == field


def test_waves_in_epsilon_and_without_pieces(tmp_path):
    """The design holds in either unit; a piece of a wave is refused."""
    protect = {"change": REPLACE, "epsilon": "1", "measure": "epsilon"}
    given = data({"epsilon": "0.5"}, wave=wave("a"))
    given["protect"] = protect
    plan = plan_from(given, book(sample_size=60))
    ledger = ledger_at(tmp_path, unit="epsilon", change=REPLACE)
    published_one = Curator(ledger).release(
        plan, Survey(_file(tmp_path), codebook=book(sample_size=60)), tmp_path / "out"
    )
    assert "stays in the same ones" in published_one.document["receipt"]["wave"]
    cut = {"name": "cut", "pieces": 2, "piece": 1}
    with pytest.raises(PlanError, match="another piece in each") as refused:
        plan_from({**given, "partition": cut}, book(sample_size=60))
    assert refused.value.field == "wave"


def _file(folder: Path) -> Path:
    (folder / "rows.csv").write_text(ROWS)
    return folder / "rows.csv"


# --- which unit ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("many", "cheaper"), [(1, "epsilon"), (5, "epsilon"), (40, "rho"), (100, "rho")])
def test_a_preview_says_which_unit_costs_less(many, cheaper):
    """A few counts are cheaper in epsilon, dozens in rho, whichever unit the plan is in (THEORY 16.2)."""
    one, each = planned(*[{"rho": "0.0025"}] * many), {"epsilon": "0.1"}
    given = data(*[each] * many)
    given["protect"] = {"change": ADD, "epsilon": "20"}
    other = plan_from(given, book())
    assert in_both_units(one) == in_both_units(other)
    assert in_both_units(other).epsilon == Fraction(many, 10) and in_both_units(one).rho == many * Fraction(
        "0.0025"
    )
    for plan in (one, other):
        expected = f"{cheaper} costs less here" if plan.unit == cheaper else f"{cheaper} would cost less"
        assert expected in unit_line(plan)


def test_a_preview_in_rho_reads_no_row_and_names_its_units(tmp_path):
    (tmp_path / "codebook.toml").write_text(
        '[survey]\nname = "tiny"\nunit = "row"\n[columns.age]\nkind = "integer"\nbounds = [0, 99]\n'
    )
    (tmp_path / "plan.toml").write_text(
        'format = 2\n[survey]\nsource = "rows.csv"\ncodebook = "codebook.toml"\nledger = "l.db"\n[release]\nid = "r"\n'
        f'[protect]\nchange = "{ADD}"\nmeasure = "zcdp"\nrho = "0.5"\n[wave]\nname = "a"\nat_most = 1\nof = 2\n'
        '[[statistic]]\nname = "n"\nquery = { count = "*" }\nrho = "0.1"\nexpect = { value = 100 }\n'
    )
    told = CliRunner().invoke(app, ["preview", str(tmp_path / "plan.toml"), "--target", "cv=1%"]).output
    assert "cost rho = 0.1, that is (" in told and "units: noise of this size costs rho = 0.1" in told
    assert "rho for target" in told and "wave a: over a lifetime the 1 most costly of 2 waves count" in told
    plain = json.loads(CliRunner().invoke(app, ["preview", str(tmp_path / "plan.toml"), "--json"]).output)
    assert plain["units"]["counted_in"] == "rho" and plain["statistics"][0]["rho"] == "0.1"
    assert plain["wave"]["of"] == 2
