"""What is wrong in a plan of estimates or donors is refused before a row is read, with the sentence that says what to write."""

from copy import deepcopy
from typing import Any

import pytest

from reticent.errors import ReticentError
from reticent.plan.plan import plan_from

BOOK: dict[str, Any] = {
    "survey": {"name": "town", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "school": {"kind": "ordinal", "levels": ["low", "mid", "high"]},
        "age": {"kind": "integer", "bounds": [0, 99]},
        "wage": {"kind": "integer", "bounds": [0, 90000]},
        "w": {"kind": "decimal", "bounds": [0, 4], "grid": "0.5", "role": "weight"},
    },
}
PLAN: dict[str, Any] = {
    "survey": {"source": "rows", "codebook": "codebook", "ledger": "ledger"},
    "release": {"id": "x"},
    "protect": {"change": "one respondent added or removed", "epsilon": "10"},
}
RHO = {"protect": {"change": "one respondent added or removed", "measure": "zcdp", "rho": "0.5"}}
DONORS = {"method": "donors", "column": "wage", "match": ["school", "sex"]}
HUBS = {**DONORS, "bound": "hubs"}
BINS = {"wage": [0, 10000, 90000]}
KNOWN = {
    "totals": [{"sex": "f", "total": 5}, {"sex": "m", "total": 6}],
    "by": [{"column": "sex", "missing": "f"}],
}


def ask(**query: Any) -> dict[str, Any]:
    return {"query": query, "epsilon": "1"}


def matched(*levels: Any) -> list[dict[str, Any]]:
    return [{"method": "donors", "column": "wage", "match": list(levels)}]


CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "a domain that is not declared": (
        [ask(mean="age", by=["town"])],
        {},
        "declare it there, with its levels",
    ),
    "a number without bins": ([ask(mean="wage", by=["age"])], {}, "say bins = { age ="),
    "a level that is not declared": ([ask(mean="age", where="sex = 'x'")], {}, "its levels are 'f', 'm'"),
    "a cell that is not declared": (
        [ask(table=["sex"]), {"query": {"share": "a0", "of": {"sex": "x"}}}],
        {},
        "its cells are f, m",
    ),
    "by a column that the nearest fill": (
        [ask(mean="age", by=["wage"], bins=BINS)],
        {"impute": [HUBS]},
        "leave bound = 'hubs' out",
    ),
    "of a column that the nearest fill": (
        [ask(mean="wage", by=["sex"])],
        {"impute": [HUBS]},
        "leave bound = 'hubs'",
    ),
    "a table of it": ([ask(table=["wage"], bins=BINS)], {"impute": [HUBS]}, "leave bound = 'hubs' out"),
    "a quantile of averages": (
        [ask(median="wage", step="1000")],
        {"impute": [{**HUBS, "k": 2}]},
        "leave bound = 'hubs' out",
    ),
    "a quantile of too many candidates": ([ask(median="wage", step="1")], {"impute": [HUBS]}, "larger step"),
    "too many domains": (
        [
            ask(
                mean="wage",
                by=["age", "wage2"],
                bins={"age": list(range(100)), "wage2": list(range(0, 90001, 500))},
            )
        ],
        {},
        "use wider bins",
    ),
    "too many candidates": (
        [ask(median="wage", step="2", by=["age"], bins={"age": list(range(100))})],
        {},
        "use a larger step",
    ),
    "design without units": (
        [ask(proportion="sex = 'f'")],
        {"design": {"items": ["a0"], "epsilon": "1"}},
        "write design_effect",
    ),
    "two units": ([{**ask(count="*"), "rho": "0.1"}], {}, "one statistic has one unit"),
    "two units in rho": ([{**ask(count="*"), "rho": "0.1"}], RHO, "one statistic has one unit"),
    "rho in a plan in epsilon": ([{"query": {"count": "*"}, "rho": "0.1"}], {}, 'goes with measure = "zcdp"'),
    "an interval in another unit": (
        [{"query": {"median": "age", "step": "1"}, "rho": "0.1", "interval": {"epsilon": "0.1"}}],
        RHO,
        "write both in one",
    ),
    "caps off the rows": (
        [ask(mean="wage")],
        {"impute": matched({"on": ["sex"], "serve": "auto"})},
        "write serve = 2",
    ),
    "levels off the rows": (
        [ask(mean="wage")],
        {"impute": [{**DONORS, "match": "auto"}]},
        "list attributes, the most important first",
    ),
    "matching on itself": (
        [ask(mean="wage")],
        {"impute": matched("wage", "sex")},
        "match on columns that no donor fills",
    ),
    "matching on a column filled beside": (
        [ask(mean="wage")],
        {
            "impute": [
                DONORS,
                {"method": "donors", "column": "age", "match": [{"column": "wage", "by": "1000"}]},
            ]
        },
        "match on columns that no donor fills",
    ),
    "the mean of the nearest": ([ask(mean="wage")], {"impute": [{**DONORS, "k": 5}]}, "write donors = 5"),
    "a majority": (
        [ask(mean="wage")],
        {"impute": [{**DONORS, "scheme": "majority"}]},
        "write bound = 'hubs'",
    ),
    "a distance": (
        [ask(mean="wage")],
        {"impute": [{**DONORS, "distance": "one-hot"}]},
        "write bound = 'hubs'",
    ),
    "silence in a filled column": (
        [ask(count="*", where="wage is missing")],
        {"impute": [DONORS]},
        "ask it in a release without this repair",
    ),
    "a filled stratifier": (
        [ask(count="*", weight="poststratified")],
        {
            "impute": [{"method": "donors", "column": "sex", "match": ["school"]}],
            "weight": {**KNOWN, "factors": {"epsilon": "1"}},
        },
        "weight by columns that nobody fills",
    ),
    "donors beside confidential weights": (
        [ask(mean="wage", weight="poststratified")],
        {"impute": [DONORS], "weight": KNOWN},
        "write factors = { epsilon = '0.2' }",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_that_is_wrong_says_what_to_write(name: str) -> None:
    asks, sections, words = CASES[name]
    book = deepcopy(BOOK)
    book["columns"]["wage2"] = {"kind": "integer", "bounds": [0, 90000]}
    listed = [{"name": f"a{place}", **each} for place, each in enumerate(asks)]
    with pytest.raises(ReticentError) as refusal:
        plan_from({**PLAN, **sections, "statistic": listed}, book)
    assert words in str(refusal.value)


UNITS: dict[str, tuple[dict[str, Any], str]] = {
    "read off the rows": ({"kind": "categorical", "levels": "rows"}, "lists every primary sampling unit"),
    "not listed": ({"kind": "categorical"}, "read off the rows, the list would tell"),
    "an identifier": ({"kind": "identifier"}, "with every one that was drawn in levels"),
    "a number": ({"kind": "integer", "bounds": [1, 9]}, "with every one that was drawn in levels"),
}


@pytest.mark.parametrize("name", UNITS)
def test_units_that_are_not_declared_are_refused(name: str) -> None:
    column, words = UNITS[name]
    book = deepcopy(BOOK)
    book["columns"]["unit"] = {**column, "role": "psu"}
    with pytest.raises(ReticentError, match=words):
        plan_from({**PLAN, "statistic": [{"name": "a", **ask(count="*")}]}, book)
