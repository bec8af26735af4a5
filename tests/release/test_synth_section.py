"""A `[[synth]]` section is judged before a row is read: every key wrong once, each refused by its name."""

from typing import Any

import pytest

from reticent.errors import PlanError
from reticent.plan.plan import SUFFIX, Plan, only_synth
from tests.release.synthetic import COLUMNS, TABLE, plan, survey
from tests.tables import book, cell_tables, synths_of

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"name": ""}, r"synth\[0\]\.name"),
    "name of controls": ({"name": "a\x1b[2J"}, r"synth\[0\]\.name: holds a control"),
    "name too long": ({"name": "a" * 201}, r"synth\[0\]\.name"),
    "unknown method": ({"method": "ami"}, r"synth\[0\]\.method: .*aim"),
    "method of another type": ({"method": 3}, r"synth\[0\]\.method"),
    "unknown holes": ({"missing": "availble"}, r"synth\[0\]\.missing: .*did you mean 'available'"),
    "no rows": ({"rows": 0}, r"synth\[0\]\.rows"),
    "rows as text": ({"rows": "200"}, r"synth\[0\]\.rows"),
    "rows by half": ({"rows": 1.5}, r"synth\[0\]\.rows"),
    "too many values": (
        {"rows": 5_000_001},
        r"synth\[0\]\.rows: rows x columns x copies is above 20,000,000",
    ),
    "too many copies": (
        {"missing": "category", "copies": 100, "rows": 50_001},
        r"synth\[0\]\.rows: rows x columns x copies",
    ),
    "epsilon as a double": ({"epsilon": 1.0}, r"synth\[0\]\.epsilon: a binary double"),
    "no epsilon": ({"epsilon": "0"}, r"synth\[0\]\.epsilon"),
    "negative epsilon": ({"epsilon": "-1"}, r"synth\[0\]\.epsilon"),
    "delta as number": ({"delta": 0.1}, r"synth\[0\]\.delta"),
    "large delta": ({"delta": "0.011"}, r"synth\[0\]\.delta: is above 0\.01"),
    "no column": ({"columns": []}, r"synth\[0\]\.columns"),
    "unknown column": ({"columns": ["aeg"]}, r"synth\[0\]\.columns: no column 'aeg'.*'age'"),
    "column twice": ({"columns": ["age", "age"]}, r"synth\[0\]\.columns"),
    "one bin": ({"bins": 1}, r"synth\[0\]\.bins"),
    "too many bins": ({"bins": 1001}, r"synth\[0\]\.bins"),
    "heap of levels": ({"point_masses": {"sex": ["f"]}}, r"synth\[0\]\.point_masses: sex has levels"),
    "heap beyond the bounds": (
        {"point_masses": {"age": ["100"]}},
        r"synth\[0\]\.point_masses: 100 is no value of age",
    ),
    "heap off the grid": ({"point_masses": {"pay": ["0.1"]}}, r"synth\[0\]\.point_masses: .* the grid 0\.25"),
    "heap of another column": ({"point_masses": {"aeg": ["1"]}}, r"synth\[0\]\.point_masses: .*'age'"),
    "heap as text": ({"point_masses": {"age": "1"}}, r"synth\[0\]\.point_masses"),
    "too many heaps": (
        {"point_masses": {"pay": list(range(101))}},
        r"synth\[0\]\.point_masses: lists 1 to 100",
    ),
    "copies of nothing": ({"copies": 2}, r"synth\[0\]\.copies: goes with missing = 'category', whose"),
    "negative copies": ({"missing": "category", "copies": -1}, r"synth\[0\]\.copies"),
    "broken rule": ({"never": ["age <"]}, r"synth\[0\]\.never"),
    "rule of another column": ({"never": ["height > 2"]}, r"synth\[0\]\.never"),
    "rules without a row": ({"never": ["age >= 0"]}, r"synth\[0\]\.never: .*no row"),
    "rule as text": ({"never": "age > 3"}, r"synth\[0\]\.never"),
    "unknown settler": ({"determines": {"height": "age"}}, r"synth\[0\]\.determines"),
    "circle": ({"determines": {"age": "sex", "sex": "age"}}, r"synth\[0\]\.determines: goes round"),
    "map of nothing": ({"known": {"sex": {"f": "yes"}}}, r"synth\[0\]\.known"),
    "map of another word": (
        {"determines": {"sex": "job"}, "known": {"sex": {"x": "yes"}}},
        r"synth\[0\]\.known",
    ),
    "unknown key": ({"size": 3}, r"synth\[0\]\.size: is not a known key"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_every_key_is_refused_by_its_name(wrong: str):
    """covers B001: nothing but the plan is looked at; there is no file to read."""
    section, match = WRONG[wrong]
    with pytest.raises(PlanError, match=match):
        plan(section)


def test_what_belongs_together_is_seen_together():
    """Names, the cap, the plan's delta, and how many sections there may be."""
    with pytest.raises(PlanError, match=r"protect\.epsilon: is 0\.5, but the plan needs 1"):
        plan({}, epsilon="0.5")
    with pytest.raises(PlanError, match=r"protect\.delta: the tables need 0\.000001"):
        plan({"delta": "0.000001"})
    with pytest.raises(PlanError, match=r"protect\.delta: does not go with pure noise"):
        plan({}, protect={"delta": "0.000001"})
    with pytest.raises(PlanError, match=r"synth\[1\]\.name: two sections are called 'people'"):
        plan({}, {})
    with pytest.raises(PlanError, match=r"synth\[0\]\.name: a statistic is called 'people' too"):
        plan({}, statistics=[{"name": "people", "query": {"count": "*"}, "epsilon": "1"}])
    with pytest.raises(PlanError, match="synth: has more than 20 entries"):
        plan(*({"name": f"t{i}", "epsilon": "0.1"} for i in range(21)))


@pytest.mark.parametrize("method", ["independent", "privbayes", "mst", "aim"])
def test_every_method_has_a_plan_a_claim_and_a_cost(method: str):
    """With delta and, where it is left out, pure."""
    for given in ({}, {"delta": "0.000001"}):
        made = plan({"method": method, **given}, **({"protect": given} if given else {}))
        assert made.cost == made.claim.epsilon == 1
        assert made.claim.measure == ("approximate" if given else "pure")
        assert made.claim.rests_on and method in synths_of(made)[0].words()


def test_the_default_columns_are_all_but_weights_and_identifiers():
    made = plan({}, codebook=book(COLUMNS, unit="pid"))
    assert synths_of(made)[0].domain.columns == ("age", "sex", "job", "pay")


def test_words_of_a_plan_change_its_digest_and_places_do_not():
    digests = {plan({"rows": rows}).digest for rows in (200, 201)}
    assert len(digests) == 2 and plan({}).digest in digests


def test_heaps_have_cells_of_their_own_and_are_told():
    """Ages are in 16 bins; 40 splits one into three. What was declared is in the digest and in the words."""
    made = plan({"point_masses": {"age": ["40"], "pay": ["0.00", 20]}})
    equal, heaped = synths_of(plan({}))[0], synths_of(made)[0]
    assert dict(zip(equal.domain.columns, equal.domain.shape, strict=True))["age"] == 17
    assert dict(zip(heaped.domain.columns, heaped.domain.shape, strict=True))["age"] == 19
    assert heaped.point_masses == {"age": ["40"], "pay": ["0", "20"]} and heaped.claim == equal.claim
    assert made.digest != plan({}).digest


def whole(**sections: Any) -> dict[str, Any]:
    return {
        "release": {"id": "p"},
        "protect": {"change": "c", "epsilon": "9", "delta": "0.1"},
        "synth": [dict(TABLE)],
        **sections,
    }


def test_the_synthetic_part_of_a_plan_is_the_plan_or_another_one():
    """Alone it stays as it is. Beside asks it is left alone under another id, and a delta of others goes with them."""
    alone = whole()
    assert only_synth(alone) == alone
    for section in ("statistic", "cells", "weight"):
        part = only_synth(whole(**{section: [{"name": "n"}]}))
        assert section not in part and part["release"]["id"] == f"p{SUFFIX}"
        assert part["synth"] == [TABLE] and "delta" not in part["protect"]
    kept = only_synth({**whole(statistic=[{}]), "synth": [{**TABLE, "delta": "0.1"}]})
    assert kept["protect"]["delta"] == "0.1"


def test_a_plan_of_synthetic_tables_alone_is_a_plan():
    made: Plan = plan({})
    assert made.asks == cell_tables(made) == () and made.claims == (synths_of(made)[0].claim,)
    with pytest.raises(
        PlanError,
        match=r"asks nothing; add a \[\[statistic\]\], \[\[cells\]\], \[\[tables\]\], \[\[regression\]\] or \[\[synth\]\]",
    ):
        survey().plan("s", epsilon="1")
