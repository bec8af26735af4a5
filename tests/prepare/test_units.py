"""Sampling units: read off the codebook, each in one pair and one group, whatever the strata look like."""

from collections import Counter
from typing import Any

import pytest

from reticent.errors import PlanError, SchemaError
from reticent.prepare.units import SamplingUnits, units_of
from reticent.schema.codebook import schema_from


def schema(psu: dict[str, Any] | None = None, stratum: dict[str, Any] | None = None) -> Any:
    columns: dict[str, Any] = {"x": {"kind": "integer", "bounds": [0, 9]}}
    if psu is not None:
        columns["p"] = {"kind": "categorical", "role": "psu", **psu}
    if stratum is not None:
        columns["s"] = {"kind": "categorical", "role": "stratum", **stratum}
    return schema_from({"survey": {"name": "tiny", "unit": "row"}, "columns": columns})


def test_units_with_names_of_their_own() -> None:
    """The stratum of each is listed; the order is the codebook's."""
    units = units_of(schema({"levels": ["a", "b", "c", "d"], "strata": ["n", "s", "n", "s"]}))
    assert units is not None and units.columns == ("p",)
    assert units.strata == (0, 1, 0, 1) and units.cells == (0, 1, 2, 3)
    assert units.pairs == ((0, 2), (1, 3))


def test_units_numbered_within_strata() -> None:
    """Those that were drawn, and no other: a unit that is not there would count as one without spread."""
    units = units_of(schema({"levels": [1, 2, 3], "drawn": [2, 3]}, {"levels": ["n", "s"]}))
    assert units is not None and units.columns == ("s", "p")
    assert units.strata == (0, 0, 1, 1, 1) and units.cells == (0, 1, 3, 4, 5)
    all_of_them = units_of(schema({"levels": [1, 2]}, {"levels": ["n", "s"]}))
    assert all_of_them is not None and all_of_them.cells == (0, 1, 2, 3)


def test_without_a_psu_there_are_no_units() -> None:
    assert units_of(schema(None, {"levels": ["n", "s"]})) is None


@pytest.mark.parametrize(
    "strata",
    [(0, 0), (0, 1), (0, 0, 0), (0, 0, 0, 1, 1, 1), (0, 1, 2, 3, 4), (0,) * 101, tuple(range(7)) * 3],
)
def test_every_unit_is_in_one_pair_and_one_group(strata: tuple[int, ...]) -> None:
    units = SamplingUnits(columns=("p",), strata=strata, cells=tuple(range(len(strata))))
    held = Counter(unit for pair in units.pairs for unit in pair if unit is not None)
    assert held == dict.fromkeys(range(len(strata)), 1)
    assert sum(other is None for _, other in units.pairs) == len(strata) % 2
    group, sign = units.dealt(units.groups)
    for one, other in units.pairs:
        assert other is None or (group[one] == group[other] and sign[one] == -sign[other])
    assert set(abs(sign)) == {1}
    sizes = Counter(int(group[one]) for one, _ in units.pairs)
    assert max(sizes.values()) - min(sizes.values()) <= 1 and len(sizes) == units.groups


def test_only_the_left_over_cross_strata() -> None:
    units = SamplingUnits(columns=("p",), strata=(0, 0, 0, 1, 1, 1, 2, 2), cells=tuple(range(8)))
    crossing = [
        pair for pair in units.pairs if pair[1] is not None and units.strata[pair[0]] != units.strata[pair[1]]
    ]
    assert crossing == [(2, 5)] and units.single == 0


def test_groups_are_as_many_as_stated() -> None:
    assert SamplingUnits(columns=("p",), strata=(0,) * 30, cells=tuple(range(30))).groups == 15
    assert SamplingUnits(columns=("p",), strata=(0,) * 100, cells=tuple(range(100))).groups == 25
    units = SamplingUnits(columns=("p",), strata=(0,) * 200, cells=tuple(range(200)))
    assert units.groups == 50
    with pytest.raises(PlanError, match="at most as many"):
        units.dealt(101)


def test_dealing_depends_on_public_words_alone() -> None:
    one, two = (SamplingUnits(columns=("p",), strata=(0,) * 40, cells=tuple(range(40)), name=n) for n in "ab")
    assert (one.dealt(10)[0] == one.dealt(10)[0]).all()
    assert (one.dealt(10)[0] != two.dealt(10)[0]).any()


@pytest.mark.parametrize(
    "psu, stratum, says",
    [
        ({"levels": ["a", "b"], "strata": ["n"]}, None, "one stratum for each level"),
        ({"levels": ["a", "b"], "strata": ["n", "n"], "drawn": [1]}, {"levels": ["n"]}, "one of them"),
        ({"levels": ["a", "b"], "drawn": [3]}, {"levels": ["n"]}, "more units than levels"),
        ({"levels": ["a", "b"], "strata": ["n", "s"]}, {"levels": ["n"]}, "names 's', which is no level"),
        ({"kind": "integer", "bounds": [0, 9]}, None, "is 'categorical' for a primary sampling unit"),
        ({"role": "stratum", "levels": ["a"], "strata": ["n"]}, None, "role = 'psu'"),
    ],
)
def test_units_that_are_no_public_list_are_refused(psu: Any, stratum: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        schema(psu, stratum)


def test_two_columns_of_one_role_are_refused() -> None:
    part = {"kind": "categorical", "role": "psu", "levels": ["a", "b"]}
    two = schema_from({"survey": {"name": "t", "unit": "row"}, "columns": {"p": part, "q": part}})
    with pytest.raises(PlanError, match="both have the role 'psu'"):
        units_of(two)


@pytest.mark.parametrize(
    "stratum, says", [(None, "declare it"), ({"levels": ["n", "s"]}, "for each of the 2")]
)
def test_numbers_drawn_go_with_the_strata(stratum: Any, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        units_of(schema({"levels": ["a", "b"], "drawn": [2]}, stratum))


def test_a_single_unit_is_no_design() -> None:
    with pytest.raises(PlanError, match="from 2 to"):
        units_of(schema({"levels": ["a"]}))
