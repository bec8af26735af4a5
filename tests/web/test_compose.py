"""Plans composed by forms, and their text: what a form writes a plan takes, what it changes is what was meant, and whatever no
form writes is listed and shown."""

from urllib.parse import unquote

import pytest

from reticent.errors import PlanError, ReticentError
from reticent.lab.demo import demo_survey
from reticent.lab.demo import plan as plan_text
from reticent.schema import read_schema
from reticent.web import compose, forms, planning
from reticent.web.asked import Asked
from reticent.web.desk import Desk
from reticent.web.foreseeing import TOTAL, TOTAL_IF, ahead
from reticent.web.sections import sections
from reticent.web.session import Sessions
from tests.web.house import CODEBOOK, PLAN
from tests.web.plans import PLANS, state, text_of


@pytest.fixture
def schema(tmp_path):
    (tmp_path / "c.toml").write_text(CODEBOOK)
    return read_schema(tmp_path / "c.toml")


FORMS = [
    ({"kind": "count", "epsilon": "0.1"}, {"count": "*"}),
    ({"kind": "mean", "column": "wage", "epsilon": "0.1", "where-column": "job", "where-sign": "=", "where-value": "yes"},
     {"mean": "wage", "where": "job = 'yes'"}),
    ({"kind": "proportion", "epsilon": "0.1", "share-column": "age", "share-sign": ">=", "share-value": "18"},
     {"proportion": "age >= 18"}),
    ({"kind": "median", "column": "wage", "step": "10", "epsilon": "0.1"}, {"median": "wage", "step": "10"}),
    ({"kind": "total", "column": "wage", "by": "job", "epsilon": "0.1"}, {"total": "wage", "by": ["job"]}),
    ({"kind": "table", "sides": "job", "epsilon": "0.1"}, {"table": ["job"]}),
    ({"kind": "difference", "first": "everybody", "second": "share employed", "epsilon": "0.1"},
     {"difference": ["everybody", "share employed"]}),
    ({"kind": "ratio", "first": "share employed", "second": "everybody", "epsilon": "0.1", "where-words": "age > 3"},
     {"ratio": ["share employed", "everybody"]}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "query"), FORMS)
def test_a_form_writes_a_statistic_that_a_plan_takes(town, schema, form, query):
    """And taking it out again gives the text that was there."""
    given = {name: [value] for name, value in form.items()}
    text = compose.with_block(PLAN, compose.statistic(given, schema))
    assert compose.plan_data(text)["statistic"][2]["query"] == query
    found = ahead(text, town / "town.toml", 0.05)
    assert found.problem == "" and len(found.statistics) == 3
    assert compose.without_block(text, "statistic", 2) == PLAN
    assert len(found.statistics["everybody"].points) == 5


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("impute", {"method": "donors", "filled": "wage", "match": "job", "default": "100"}),
        ("synth", {"method": "independent", "rows": "10", "epsilon": "0.2", "columns": "job"}),
        ("weight", {"column": "job", "totals": "500 700"}),
        ("cells", {"y": "wage", "cell": "job", "epsilon": "0.5"}),
        ("regression", {"y": "wage", "x": "age", "epsilon": "0.5", "where-words": "job = 'yes'"}),
        (
            "tables",
            {
                "margins": "job age; age",
                "bins": "age 0 15 65 99",
                "epsilon": "0.5",
                "where-words": "wage > 5",
            },
        ),
    ],
)
def test_every_form_writes_what_a_plan_takes(town, schema, what, form):
    text = compose.with_block(PLAN, forms.ADDED[what]({n: [v] for n, v in form.items()}, schema))
    if what == "weight":  # somebody has to use them
        user = {"kind": ["count"], "epsilon": ["0.1"], "weight": ["poststratified"]}
        text = compose.with_block(text, compose.statistic(user, schema))
    assert ahead(text, town / "town.toml").problem == ""


BARE = PLAN.replace('design_effect = "1.5"\n', "")


def test_a_design_is_declared_or_bought_and_never_both(town, schema):
    declared = compose.with_block(BARE, forms.sampling_design({"design_effect": ["1.5"]}, schema))
    here, bare = (ahead(text, town / "town.toml") for text in (declared, BARE))
    assert here.problem == "" and "design" in [each.section for each in here.sections]
    assert here.statistics["share employed"].total.startswith("± ")
    assert bare.statistics["share employed"].total == "not asked for"
    bought = forms.sampling_design({"items": ["share employed"], "epsilon": ["0.2"]}, schema)
    assert compose.plan_data(bought) == {"design": {"items": ["share employed"], "epsilon": "0.2"}}
    assert "primary sampling units" in ahead(compose.with_block(BARE, bought), town / "town.toml").problem
    for form in ({}, {"items": ["share employed"], "design_effect": ["1.5"], "epsilon": ["0.2"]}):
        with pytest.raises(PlanError):
            forms.sampling_design(form, schema)
    with pytest.raises(PlanError):
        compose.with_block(declared, bought)


def test_the_total_margin_where_the_design_is_bought(tmp_path):
    """What is not known yet is told as for a simple random sample, and says so; of means nothing is."""
    demo_survey(tmp_path, rows=100)
    text = plan_text(rows=20_000)
    found = ahead(text, tmp_path / "plan.toml")
    share, mean = (found.statistics[name] for name in ("employed adults", "mean wage, employed"))
    noise, total = (float(each.removeprefix("± ")) for each in (share.margin, share.total))
    assert found.problem == "" and total == pytest.approx(
        (noise**2 + 1.96**2 * 0.25 / 20_000) ** 0.5, rel=0.02
    )
    assert (share.total_of, mean.total_of) == (TOTAL_IF, TOTAL) and mean.total == "with the release"
    declared = '[design]\ndesign_effect = "2"\n'
    text = text.replace(
        '[design]\nitems = ["employed adults", "hours not answered"]\nepsilon = "0.2"\n', declared
    )
    known = ahead(text, tmp_path / "plan.toml").statistics["employed adults"]
    assert known.total_of == TOTAL and float(known.total.removeprefix("± ")) > 1.2 * total


def test_the_total_margin_of_an_expected_count(town):
    """1.96 sqrt(1.5 * 800 * (1 - 800 / 2000)) = 52.6 of sampling; at an epsilon of 50 there is next to no noise."""
    asked = (
        "[[statistic]]\nname = 'employed'\nquery = { count = '*', where = \"job = 'yes'\" }\nepsilon = 50\n"
    )
    text = PLAN.replace("epsilon = 2\n", "epsilon = 60\naccept_large = true\n")
    found = ahead(compose.with_block(text, asked + "expect = { value = 800 }\n"), town / "town.toml")
    assert (
        found.problem == "" and abs(float(found.statistics["employed"].total.removeprefix("± ")) - 52.6) < 0.5
    )
    assert (
        ahead(compose.with_block(text, asked), town / "town.toml").statistics["employed"].total
        == "with the release"
    )


def test_margins_and_bins_are_columns_and_edges(schema):
    for form in (
        {},
        {"margins": "job; nobody"},
        {"margins": "age", "bins": "age 0"},
        {"margins": "age", "bins": "age 0 x"},
    ):
        given = {"epsilon": ["1"], **{name: [value] for name, value in form.items()}}
        with pytest.raises(ReticentError):
            forms.margin_tables(given, schema)


def test_an_epsilon_is_changed_in_place_and_comments_stay():
    text = compose.with_value(PLAN, ("statistic", 1, "epsilon"), "0.25")
    assert text == PLAN.replace("job = 'yes'\" }\nepsilon = 0.5", "job = 'yes'\" }\nepsilon = 0.25")
    with pytest.raises(PlanError):
        compose.with_value(PLAN, ("statistic", 5, "epsilon"), "0.25")
    with pytest.raises(PlanError):
        compose.with_value(PLAN, ("statistic", 1, "epsilon"), "1 #")


@pytest.mark.parametrize("value", ['x"\ny = 1', "a'b", "[[statistic]]", "</textarea>", "\\", "é"])
def test_no_value_writes_another_section(schema, value):
    """Whatever is typed stays inside its quotes, or is refused."""
    form = {"kind": ["count"], "epsilon": ["0.1"], "name": [value], "where-words": [value]}
    try:
        text = compose.with_block(PLAN, compose.statistic(form, schema))
    except PlanError:
        return
    data = compose.plan_data(text)
    assert len(data["statistic"]) == 3 and data["statistic"][2]["name"] == value


@pytest.mark.parametrize("kind", [*compose.FIELDS])
def test_a_form_in_a_plan_in_rho_asks_in_rho(schema, kind):
    form = {
        "kind": [kind],
        "column": ["wage"],
        "step": ["10"],
        "at": ["0.25"],
        "sides": ["job"],
        "epsilon": ["0.01"],
    }
    form |= {"share-words": ["age > 3"], "first": ["a"], "second": ["b"], compose.UNIT: ["rho"]}
    (made,) = compose.plan_data(compose.statistic(form, schema))["statistic"]
    assert made.get("rho") == (None if kind in compose.FREE else "0.01") and "epsilon" not in made


@pytest.fixture(scope="module")
def desk(tmp_path_factory) -> Desk:
    return Desk(state(tmp_path_factory.mktemp("state")))


def asked_of(desk: Desk, name: str, **form: str) -> Asked:
    return Asked(
        desk=desk,
        sessions=Sessions(tell=lambda _: None),
        params={"plan": f"{name}.toml"},
        form={key: [value] for key, value in form.items()},
    )


@pytest.mark.parametrize("name", PLANS)
def test_every_product_is_listed_with_its_preview(desk, name):
    """Each section by its name, each amount with a field; and what the preview says of it stands on the page."""
    data = compose.plan_data(text_of(name))
    page = planning.show_plan(asked_of(desk, name)).body.decode()
    found = ahead(text_of(name), desk.folder / f"{name}.toml")
    assert found.problem == "" and 'class="problem"' not in page
    listed = [
        *data.get(name, []),
        *data.get("statistic", []),
        *data.get("impute", []),
        *data.get("synth", []),
    ]
    for each in (each for each in listed if isinstance(each, dict)):
        assert unescaped(f">{each.get('name') or each['column']}</h3>") in unescaped(page)
    for each in sections(data):
        assert not each.amount or f'name="amount-{each.id}" value="{each.amount}"' in page
    for key in ("tables", "regression", "cells", "synth"):
        assert (key in data) == bool(found.lines.get(key))
    assert ("ρ " in page) == ("rho" in data["protect"])


def unescaped(text: str) -> str:
    return text.replace("&#39;", "'").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize("name", PLANS)
def test_every_amount_is_moved_where_it_stands(desk, name):
    """A field that was changed changes its amount in the text and nothing else; so does the cap, in its unit."""
    before = compose.plan_data(text_of(name))
    for each in sections(before):
        if not each.amount:
            continue
        got = planning._with_amounts(text_of(name), {f"amount-{each.id}": ["0.0123"]}, before)
        after = compose.plan_data(got)
        inner = after
        for step in each.at[:-1]:
            inner = inner[step]
        assert inner.pop(each.at[-1]) == "0.0123"
        inner[each.at[-1]] = each.amount
        assert after == before
    unit = "rho" if "rho" in before["protect"] else "epsilon"
    got = compose.plan_data(planning._with_amounts(text_of(name), {"cap": ["3"]}, before))
    assert got["protect"] == {**before["protect"], unit: "3"}


@pytest.mark.parametrize("name", PLANS)
def test_every_section_can_be_taken_out(desk, name):
    before = compose.plan_data(text_of(name))
    for each in sections(before):
        single = isinstance(before[each.section], dict)
        after = compose.plan_data(
            compose.without_block(text_of(name), each.section, None if single else each.place)
        )
        kept = {key: value for key, value in before.items() if key != each.section}
        rest = (
            []
            if single
            else [other for place, other in enumerate(before[each.section]) if place != each.place]
        )
        assert after == ({**kept, each.section: rest} if rest else kept)


def test_text_and_fields_meet_without_either_being_lost():
    """A changed field counts where the text was left alone; a changed text where both were; a moved section keeps its own."""
    base = compose.plan_data(PLAN)
    field = {"amount-statistic-0": ["0.7"]}
    first = compose.plan_data(planning._with_amounts(PLAN, field, base))["statistic"]
    assert [str(each["epsilon"]) for each in first] == ["0.7", "0.5"]
    typed = PLAN.replace("epsilon = 0.5", "epsilon = 0.9", 1)
    assert planning._with_amounts(typed, field, base) == typed
    assert planning._with_amounts(PLAN, {"amount-statistic-0": ["0.5"]}, base) == PLAN
    with pytest.raises(PlanError):
        planning._with_amounts(PLAN, {"amount-statistic-0": ["-1"]}, base)


HOSTILE = {
    "an endless number": "[[statistic]]\nname = 1e999999\nquery = { x = [" + "1e999999, " * 40_000 + "] }\n",
    "names that are no names": "[[statistic]]\nname = [1]\n[release]\nid = { a = 1 }\ntitle = 1979-05-27\n",
    "sections that are none": "statistic = 5\nweight = 'x'\nprotect = []\nsurvey = [1]\nsynth = [1, 'a', []]\n",
    "deep": "a = " + "[" * 99 + "]" * 99 + "\n[[statistic]]\nquery = " + "[" * 90 + "]" * 90 + "\n",
    "wide": "[[impute]]\n" + "".join(f"k{n} = 1\n" for n in range(30_000)),
    "many": "".join(f"[[edit]]\nif = '{n}'\n" for n in range(20_000)),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_text_is_listed_in_little_room_and_time(tmp_path, kind):  # covers W14 W16
    """What its author wrote is cut, not spelled out: a number of a million digits is some characters in TOML."""
    found = ahead(HOSTILE[kind], tmp_path / "x.toml")
    assert found.problem and all(len(each.told) <= 300 and len(each.name) <= 300 for each in found.sections)


def naive_written(value) -> str:
    """The naive twin: every digit."""
    return f"{value:f}"


def test_the_naive_writing_fills_the_page():
    (value,) = compose.plan_data("x = [1e99999]")["x"]
    assert len(naive_written(value)) > 90_000


def test_a_hostile_name_leads_back_to_its_own_page(tmp_path):
    """A plan's name is a part of addresses: it stands there encoded, whatever letters it has."""
    (tmp_path / "Größe (1).toml").write_text(PLAN)
    (tmp_path / "town.codebook.toml").write_text(CODEBOOK)
    desk = Desk(tmp_path)
    page = planning.show_plan(
        Asked(desk=desk, sessions=Sessions(tell=lambda _: None), params={"plan": "Größe (1).toml"})
    ).body.decode()
    (address,) = {part.partition('"')[0] for part in page.split('data-look="')[1:]}
    assert address.isascii() and unquote(address) == "/plans/Größe (1).toml/look"
