"""Plans composed by forms, and their text: what a form writes a plan takes, what it changes is what was meant, and whatever no
form writes is listed and shown."""

from urllib.parse import unquote

import pytest

from reticent.errors import PlanError, ReticentError
from reticent.lab.demo import demo_survey
from reticent.lab.demo import plan as demo_plan
from reticent.schema import read_schema
from reticent.web import compose, forms, plan_text, planning
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
    ({"kind": "mean", "column": "wage", "by": "age", "bins": "age 0 15 65 99", "centre": "300", "epsilon": "0.1"},
     {"mean": "wage", "centre": "300", "by": ["age"], "bins": {"age": ["0", "15", "65", "99"]}}),
    ({"kind": "table", "sides": "age", "bins": "age 0 50 99", "epsilon": "0.1"},
     {"table": ["age"], "bins": {"age": ["0", "50", "99"]}}),
    ({"kind": "difference", "first": "everybody", "second": "share employed", "epsilon": "0.1"},
     {"difference": ["everybody", "share employed"]}),
    ({"kind": "ratio", "first": "share employed", "second": "everybody", "epsilon": "0.1", "where-words": "age > 3"},
     {"ratio": ["share employed", "everybody"]}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "query"), FORMS)
def test_a_form_writes_a_statistic_that_a_plan_takes(town, schema, form, query):
    """And taking it out again gives the text that was there."""
    given = {name: [value] for name, value in form.items()}
    text = plan_text.with_block(PLAN, compose.statistic(given, schema))
    assert plan_text.plan_data(text)["statistic"][2]["query"] == query
    found = ahead(text, town / "town.toml", 0.05)
    assert found.problem == "" and len(found.statistics) == 3
    assert plan_text.without_block(text, "statistic", 2) == PLAN
    assert len(found.statistics["everybody"].points) == 5


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("impute", {"method": "donors", "filled": "wage", "match": "job", "default": "100"}),
        ("impute", {"method": "regression", "filled": "wage", "from": "age", "epsilon": "0.2"}),
        ("edit", {"if-column": "wage", "if-sign": ">", "if-value": "0", "then": "job", "value": "yes"}),
        ("edit", {"if-words": "age < 15", "then": "wage", "value": "missing", "replace": "yes"}),
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
    text = plan_text.with_block(PLAN, forms.ADDED[what]({n: [v] for n, v in form.items()}, schema))
    if what == "weight":  # somebody has to use them
        user = {"kind": ["count"], "epsilon": ["0.1"], "weight": ["poststratified"]}
        text = plan_text.with_block(text, compose.statistic(user, schema))
    assert ahead(text, town / "town.toml").problem == ""


def test_donors_agree_in_the_order_of_the_fields(town, schema):
    """Not in that of the codebook: the last is given up first. A number is grouped where a width stands beside it."""
    form = {
        "method": ["donors"],
        "filled": ["wage"],
        "match": ["job", "", "age", ""],
        "width": ["", "", "10", ""],
    }
    made = forms.ADDED["impute"](form, schema)
    (found,) = plan_text.plan_data(made)["impute"]
    assert found["match"] == ["job", {"column": "age", "by": "10"}]
    assert ahead(plan_text.with_block(PLAN, made), town / "town.toml").problem == ""
    with pytest.raises(PlanError, match="most important first"):
        forms.ADDED["impute"]({**form, "match": ["", ""]}, schema)


CROSSED = {
    "column": ["job", "age", ""],
    "missing": ["no", "", ""],
    "bins": ["age 0 50 99"],
    "totals": [
        "yes,0 to under 50,100\r\nyes,50 to 99,300\r\n\r\nno, 0 to under 50, 80\r\nno,50 to 99,90\r\n"
    ],
}


def test_totals_are_known_for_every_combination(town, schema):
    """Of two columns, one of them a number in bins; as a spreadsheet has them. Who did not say is where most are, or as told."""
    text = plan_text.with_block(PLAN, forms.weighting(CROSSED, schema))
    weight = plan_text.plan_data(text)["weight"]
    assert (
        weight["totals"][1] == {"job": "yes", "age": "50 to 99", "total": 300} and len(weight["totals"]) == 4
    )
    assert [each["missing"] for each in weight["by"]] == ["no", "50 to 99"]
    user = {"kind": ["count"], "epsilon": ["0.1"], "weight": ["poststratified"]}
    text = plan_text.with_block(text, compose.statistic(user, schema))
    assert ahead(text, town / "town.toml").problem == ""
    lost = {**CROSSED, "totals": [CROSSED["totals"][0].replace("no,50 to 99,90", "")]}
    text = plan_text.with_block(PLAN, forms.weighting(lost, schema) + "\n" + compose.statistic(user, schema))
    assert "has no total" in ahead(text, town / "town.toml").problem
    tabbed = {**CROSSED, "totals": [CROSSED["totals"][0].replace(", ", ",").replace(",", "\t")]}
    assert forms.weighting(tabbed, schema) == forms.weighting(CROSSED, schema)


@pytest.mark.parametrize(
    "totals", ["", "yes,100", "yes,0 to under 50,many", "1 2 3 4", "yes,a\x00b,3", "," * 100_001]
)
def test_totals_that_are_none_are_refused_in_words(schema, totals):
    with pytest.raises(PlanError):
        forms.weighting({**CROSSED, "totals": [totals]}, schema)


def test_a_share_of_nobody_and_bins_that_are_lacking_are_refused_in_words(schema):
    for form in (
        {"kind": ["proportion"], "epsilon": ["0.1"]},
        {"kind": ["count"], "epsilon": ["0.1"], "by": ["age"]},
        {"kind": ["table"], "epsilon": ["0.1"], "sides": ["job", "age"]},
        {"kind": ["count"], "epsilon": ["0.1"], "by": ["job"], "expect-value": ["many"]},
    ):
        with pytest.raises(PlanError):
            compose.statistic(form, schema)
    for form in ({"then": ["job"], "value": ["yes"]}, {"if-words": ["age > 3"], "then": ["job"]}):
        with pytest.raises(PlanError):
            forms.edit(form, schema)


def test_a_median_buys_its_interval_and_a_mean_says_what_it_expects(town, schema):
    ranked = {"kind": ["median"], "column": ["wage"], "step": ["10"], "epsilon": ["0.2"], "interval": ["0.1"]}
    mean = {
        "kind": ["mean"],
        "column": ["wage"],
        "epsilon": ["0.2"],
        "expect-value": ["400"],
        "expect-size": ["900"],
    }
    text = PLAN
    for form in (ranked, mean):
        text = plan_text.with_block(text, compose.statistic(form, schema))
    found = ahead(text, town / "town.toml", 0.05)
    last = plan_text.plan_data(text)["statistic"][2:]
    assert found.problem == "" and last[0]["interval"] == {"epsilon": "0.1"}
    assert last[1]["expect"] == {"value": "400", "size": 900}
    assert [each.wanted != "" for each in found.statistics.values()][2:] == [False, True]


EXPECTED = """format = 2
[expect] # guesses
rows = 2000  # from the register
design_effect = "1.5"
# What follows.
[protect]
epsilon = 1
"""


def test_what_is_expected_is_written_key_by_key_and_comments_stay(schema):
    form = {
        "rows": ["3000"],
        "design_effect": [""],
        "mean_weight": ["12.5"],
        "missing": ["wage 0.2; age 0.1"],
    }
    text = plan_text.with_keys(EXPECTED, ("expect",), forms.expectation(form, schema))
    assert text == EXPECTED.replace("2000", "3000").replace(
        'design_effect = "1.5"\n', 'mean_weight = "12.5"\nmissing = { wage = "0.2", age = "0.1" }\n'
    )
    assert planning._expect(text) == {
        "rows": "3000",
        "mean_weight": "12.5",
        "design_effect": "",
        "missing": "wage 0.2; age 0.1",
    }
    same = forms.expectation({key: [each] for key, each in planning._expect(text).items()}, schema)
    assert plan_text.with_keys(text, ("expect",), same) == text
    bare = plan_text.with_keys("format = 2\n", ("expect",), forms.expectation({"rows": ["5"]}, schema))
    assert plan_text.plan_data(bare)["expect"] == {"rows": 5}
    assert plan_text.with_keys("format = 2\n", ("expect",), forms.expectation({}, schema)) == "format = 2\n"
    for odd in ("expect = 5\n", "expect = []\n", "expect = { rows = 5 }\n", "[expect.missing]\nwage = 0.1\n"):
        with pytest.raises(PlanError, match="no form can change"):
            plan_text.with_keys(odd, ("expect",), {"missing": {"wage": "0.3"}})
    for form in (
        {"rows": ["many"]},
        {"missing": ["nobody 0.1"]},
        {"missing": ["wage"]},
        {"design_effect": ["x"]},
    ):
        with pytest.raises(ReticentError):
            forms.expectation(form, schema)


def test_what_is_assumed_of_a_count_is_shown(tmp_path):
    """The expected rows, or their weight, of everybody; an even share in a domain. How many a condition keeps is not known, nor
    what nobody said of a weight: the rows in its place gave too small an epsilon for the one, too large a one for the other."""
    folder = state(tmp_path)
    ways = {
        '"*"': "20000",
        '"*", where = "age >= 75"': "",
        '"*", weight = "weight"': "",
        '"*", by = ["sex"]': "6666",  # who did not say is a domain, too
    }
    for query, assumed in ways.items():
        text = text_of("waves").replace('"*", where = "age >= 18"', query)
        found = ahead(text, folder / "waves.toml", 0.05).statistics["adults"]
        assert (found.assumed, bool(found.wanted)) == (assumed, bool(assumed)), query
    weighted = text_of("waves").replace('where = "age >= 18"', 'weight = "weight"')
    weighted = weighted.replace("[expect]\n", '[expect]\nmean_weight = "20"\n')
    assert ahead(weighted, folder / "waves.toml", 0.05).statistics["adults"].assumed == "400000"
    (folder / "waves.toml").write_text(text_of("waves").replace(', where = "age >= 18"', ""))
    page = planning.show_plan(asked_of(Desk(folder), "waves")).body.decode()
    assert 'value="" placeholder="20000" title="Assumed where nothing is typed"' in page
    assert "Assumed" not in planning.show_plan(asked_of(Desk(folder), "donors")).body.decode()


def test_a_weighted_share_is_previewed_twice_on_the_page(tmp_path):
    """At the mean weight that is expected and at the bound, as a table among the lines: the page failed on it."""
    folder = state(tmp_path)
    weighted = text_of("waves").replace(
        '{ count = "*", where = "age >= 18" }', '{ proportion = "age >= 18", weight = "weight" }'
    )
    weighted = weighted.replace("[expect]\n", '[expect]\nmean_weight = "20"\n')
    (folder / "waves.toml").write_text(weighted)
    page = planning.show_plan(asked_of(Desk(folder), "waves")).body.decode()
    assert "at a mean weight of 20" in page and "proportion" in weighted


def test_an_expected_value_has_a_field_of_its_own():
    """Typed, it stands in the text; what else is expected stays; emptied, it goes. A changed text is left alone."""
    base = plan_text.plan_data(PLAN)
    field = {"expected-statistic-0": ["900"]}
    text = planning._with_amounts(PLAN, field, base)
    assert (
        plan_text.plan_data(text)["statistic"][0]["expect"] == {"value": "900"}
        and "# How many there are." in text
    )
    assert planning._with_amounts(text, {"expected-statistic-0": [""]}, plan_text.plan_data(text)) == PLAN
    sized = PLAN.replace("epsilon = 0.5\n", "epsilon = 0.5\nexpect = { value = 0.25, size = 40 }\n", 1)
    text = planning._with_amounts(sized, {**field, "expect-size": ["7"]}, plan_text.plan_data(sized))
    assert plan_text.plan_data(text)["statistic"][0]["expect"] == {"value": "900", "size": 40}
    assert planning._with_amounts(sized, field, base) == sized
    odd = PLAN.replace("epsilon = 0.5\n", "epsilon = 0.5\nexpect = 5\n", 1)
    text = planning._with_amounts(odd, field, plan_text.plan_data(odd))
    assert plan_text.plan_data(text)["statistic"][0]["expect"] == {"value": "900"}
    with pytest.raises(PlanError):
        planning._with_amounts(PLAN, {"expected-statistic-0": ["x"]}, base)


BARE = PLAN.replace('design_effect = "1.5"\n', "")


def test_a_design_is_declared_or_bought_and_never_both(town, schema):
    declared = plan_text.with_block(BARE, forms.sampling_design({"design_effect": ["1.5"]}, schema))
    here, bare = (ahead(text, town / "town.toml") for text in (declared, BARE))
    assert here.problem == "" and "design" in [each.section for each in here.sections]
    assert here.statistics["share employed"].total.startswith("± ")
    assert bare.statistics["share employed"].total == "not asked for"
    bought = forms.sampling_design({"items": ["share employed"], "epsilon": ["0.2"]}, schema)
    assert plan_text.plan_data(bought) == {"design": {"items": ["share employed"], "epsilon": "0.2"}}
    assert "primary sampling units" in ahead(plan_text.with_block(BARE, bought), town / "town.toml").problem
    for form in ({}, {"items": ["share employed"], "design_effect": ["1.5"], "epsilon": ["0.2"]}):
        with pytest.raises(PlanError):
            forms.sampling_design(form, schema)
    with pytest.raises(PlanError):
        plan_text.with_block(declared, bought)


def test_the_total_margin_where_the_design_is_bought(tmp_path):
    """What is not known yet is told as for a simple random sample, and says so; of means nothing is."""
    demo_survey(tmp_path, rows=100)
    text = demo_plan(rows=20_000)
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
    found = ahead(plan_text.with_block(text, asked + "expect = { value = 800 }\n"), town / "town.toml")
    assert (
        found.problem == "" and abs(float(found.statistics["employed"].total.removeprefix("± ")) - 52.6) < 0.5
    )
    assert (
        ahead(plan_text.with_block(text, asked), town / "town.toml").statistics["employed"].total
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
    text = plan_text.with_value(PLAN, ("statistic", 1, "epsilon"), "0.25")
    assert text == PLAN.replace("job = 'yes'\" }\nepsilon = 0.5", "job = 'yes'\" }\nepsilon = 0.25")
    with pytest.raises(PlanError):
        plan_text.with_value(PLAN, ("statistic", 5, "epsilon"), "0.25")
    with pytest.raises(PlanError):
        plan_text.with_value(PLAN, ("statistic", 1, "epsilon"), "1 #")


@pytest.mark.parametrize("value", ['x"\ny = 1', "a'b", "[[statistic]]", "</textarea>", "\\", "é"])
def test_no_value_writes_another_section(schema, value):
    """Whatever is typed stays inside its quotes, or is refused."""
    form = {"kind": ["count"], "epsilon": ["0.1"], "name": [value], "where-words": [value]}
    try:
        text = plan_text.with_block(PLAN, compose.statistic(form, schema))
    except PlanError:
        return
    data = plan_text.plan_data(text)
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
    (made,) = plan_text.plan_data(compose.statistic(form, schema))["statistic"]
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
    data = plan_text.plan_data(text_of(name))
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
    before = plan_text.plan_data(text_of(name))
    for each in sections(before):
        if not each.amount:
            continue
        got = planning._with_amounts(text_of(name), {f"amount-{each.id}": ["0.0123"]}, before)
        after = plan_text.plan_data(got)
        inner = after
        for step in each.at[:-1]:
            inner = inner[step]
        assert inner.pop(each.at[-1]) == "0.0123"
        inner[each.at[-1]] = each.amount
        assert after == before
    unit = "rho" if "rho" in before["protect"] else "epsilon"
    got = plan_text.plan_data(planning._with_amounts(text_of(name), {"cap": ["3"]}, before))
    assert got["protect"] == {**before["protect"], unit: "3"}


@pytest.mark.parametrize("name", PLANS)
def test_every_section_can_be_taken_out(desk, name):
    before = plan_text.plan_data(text_of(name))
    for each in sections(before):
        single = isinstance(before[each.section], dict)
        after = plan_text.plan_data(
            plan_text.without_block(text_of(name), each.section, None if single else each.place)
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
    base = plan_text.plan_data(PLAN)
    field = {"amount-statistic-0": ["0.7"]}
    first = plan_text.plan_data(planning._with_amounts(PLAN, field, base))["statistic"]
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
    (value,) = plan_text.plan_data("x = [1e99999]")["x"]
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
