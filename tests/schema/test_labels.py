"""Labels, groups of codes, and texts that differ in case or spacing: what a codebook may say of levels."""

from typing import Any

import pyarrow as pa
import pytest

from reticent.engine.confidential import read
from reticent.engine.open import open_engine
from reticent.engine.sources.open import open_frame
from reticent.engine.sql import build as sql
from reticent.errors import PlanError, SchemaError
from reticent.plan.digest import plan_digest
from reticent.plan.partition import _binds
from reticent.schema import Levels, Schema
from reticent.schema.bind import bind
from reticent.schema.codebook import schema_from
from reticent.schema.columns import canonical
from reticent.schema.parse import parse

SURVEY = {"name": "x", "unit": "row"}


def schema(column: dict[str, Any]) -> Schema:
    return schema_from({"survey": SURVEY, "columns": {"a": {"kind": "categorical", **column}}})


def levels(column: dict[str, Any]) -> Levels:
    made = schema(column).columns["a"]
    assert isinstance(made, Levels)
    return made


def codes(column: dict[str, Any], cells: list[Any]) -> list[int | None]:
    """What the engine makes of the cells."""
    book, engine = schema(column), open_engine(open_frame(pa.table({"a": cells})))
    try:
        found = read(engine, book, ["a"], lambda _, rows: sql.select([sql.column("c_a")], rows))
    finally:
        engine.close()
    return [code for (code,) in found]


def test_groups_alone_are_the_levels_in_their_order() -> None:
    made = levels({"groups": {"south": ["3"], "north": ["1", "2"]}})
    assert made.levels == ("south", "north")
    assert made.members == (("3",), ("1", "2"))


def test_codes_in_no_group_stay_levels_where_they_stood() -> None:
    made = levels({"levels": ["1", "2", "3", "4"], "groups": {"mid": ["2", "3"]}})
    assert made.levels == ("1", "mid", "4")


@pytest.mark.parametrize("cells", [["1", "02", "3", "4", "mid", None], [1, 2, 3, 4, 9, None]])
def test_a_group_is_met_by_its_codes_and_not_by_its_name(cells: list[Any]) -> None:
    """Texts and numbers alike; the name of a group in the file is no answer."""
    found = codes({"levels": ["1", "2", "3", "4"], "groups": {"mid": ["2", "3"]}}, cells)
    assert found == [0, 1, 1, 2, None, None]


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"groups": {"a": ["1"], "b": ["1"]}}, "each code in one group"),
        ({"groups": {"a": []}}, "at least one code"),
        ({"levels": ["1", "2"], "groups": {"a": ["7"]}}, "'7', which is not among the levels"),
        ({"levels": ["1", "2"], "groups": {"2": ["1"]}}, "rename the group"),
        ({"groups": {"a": ["1"], "b": ["01"]}}, "mean the same"),
        (
            {"kind": "ordinal", "levels": ["1", "2", "3"], "groups": {"ends": ["1", "3"]}},
            "not neighbours",
        ),
        ({"levels": ["1"], "labels": {"2": "two"}}, "labels '2'"),
        ({"levels": ["a", "A"], "ignore": ["case"]}, "mean the same"),
        ({"levels": ["a b", "a  b"], "ignore": ["spacing"]}, "mean the same"),
        ({"levels": ["a"], "missing_codes": ["A"], "ignore": ["case"]}, "also a missing code"),
        ({"levels": ["a"], "ignore": ["accents"]}, "'case', 'spacing' or both"),
        ({"levels": ["a"], "labels": {"a": "x\x1b[2J"}}, "control character"),
        ({"kind": "integer", "bounds": [0, 9], "labels": {"1": "one"}}, "does not go with"),
        ({"kind": "date"}, "make a column of numbers"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_way_out(column: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        schema(column)


def test_a_condition_by_a_label_is_told_the_code() -> None:
    """Plans go by codes; who writes the label is shown the way."""
    held = schema({"levels": ["1", "2"], "labels": {"1": "Legal", "2": "Not legal"}}).coded
    with pytest.raises(PlanError, match="'Legal' is the label of '1'"):
        bind(parse("a = 'Legal'", field="where"), held, field="where")
    with pytest.raises(PlanError, match="its levels are '1', '2'"):
        bind(parse("a = 'legal'", field="where"), held, field="where")


SPELLED = [
    "Full time",
    " full  TIME",
    "FULL\tTIME ",
    "fulltime",
    "Ärzte",
    "äRZTE",
    "true",
    "TRUE",
    "1E+05",
    "İ",
]


@pytest.mark.parametrize("ignore", [[], ["case"], ["spacing"], ["case", "spacing"]])
@pytest.mark.parametrize("text", [False, True])
def test_the_engine_reads_a_text_as_the_codebook_means_it(ignore: list[str], text: bool) -> None:
    """For every combination: the level whose meaning the cell has, by Python's rule and by SQL's."""
    column = {"levels": ["full time", "Ärzte", "TRUE", "1e+05"], "ignore": ignore, "text": text}
    made = levels(column)
    meaning = {made.meaning(level): code for code, level in enumerate(made.levels)}
    assert codes(column, SPELLED) == [meaning.get(made.meaning(cell)) for cell in SPELLED]


def test_without_the_switch_case_counts_and_with_it_it_does_not() -> None:
    column = {"levels": ["full time"]}
    assert codes(column, SPELLED[:3]) == [None, None, None]
    assert codes({**column, "ignore": ["case", "spacing"]}, SPELLED[:3]) == [0, 0, 0]


def test_a_meaning_is_its_own_meaning() -> None:
    made = levels({"levels": ["Full time", "Ärzte"], "ignore": ["case", "spacing"]})
    assert all(made.meaning(made.meaning(cell)) == made.meaning(cell) for cell in SPELLED)
    assert made.meaning("017") == canonical("017") == "17"


def test_digest_knows_the_order_of_groups_and_their_codes() -> None:
    """The order is that of levels, so another order is another plan; a code added is another plan."""
    one, other = {"n": ["1"], "s": ["2"]}, {"s": ["2"], "n": ["1"]}
    more = {"n": ["1", "3"], "s": ["2"]}
    digests = {_digest({"kind": "categorical", "groups": groups}) for groups in (one, other, more)}
    assert len(digests) == 3
    assert _digest({"kind": "categorical", "groups": dict(one)}) in digests


def _digest(column: dict[str, Any]) -> str:
    plan = {
        "survey": {"source": "a", "codebook": "b", "ledger": "c"},
        "release": {"id": "r"},
        "protect": {"change": "one respondent added or removed", "epsilon": "1"},
    }
    return plan_digest(plan, {"survey": SURVEY, "columns": {"a": column}})


def test_partition_is_bound_to_groups_and_not_to_labels() -> None:
    def bound(column: dict[str, Any]) -> str:
        book = {"survey": SURVEY, "columns": {"a": {"kind": "categorical", **column}}}
        return _binds(schema_from(book), book)

    plain = {"groups": {"n": ["1"], "s": ["2"]}}
    assert bound(plain) == bound({**plain, "labels": {"n": "North"}})
    assert bound(plain) != bound({"groups": {"s": ["2"], "n": ["1"]}})
    assert bound(plain) != bound({**plain, "ignore": ["case"]})


def beside(*columns: tuple[str, dict[str, Any]], csv: dict[str, str] | None = None) -> Schema:
    """Columns that are all read from the header `a`."""
    held = {name: {"source": "a", **column} for name, column in columns}
    return schema_from({"survey": {**SURVEY, **({"csv": csv} if csv else {})}, "columns": held})


REGION = ("region", {"kind": "categorical", "levels": ["1", "2", "3"]})
AREA = ("area", {"kind": "categorical", "groups": {"north": ["1", "2"], "south": ["3"]}})
BANDS = ("band", {"kind": "integer", "bounds": [1, 3]})


@pytest.mark.parametrize(
    "written", [pa.table({"a": ["1", "2", "3", None]}), pa.table({"a": [1, 2, 3, None]})]
)
def test_a_recode_stands_beside_its_original(written: pa.Table) -> None:
    """One column of the file, read three ways."""
    book, engine = beside(REGION, AREA, BANDS), open_engine(open_frame(written))
    names = ["c_region", "c_area", "c_band"]
    try:
        engine.check(book)
        found = read(
            engine, book, list(book.columns), lambda _, rows: sql.select([sql.column(n) for n in names], rows)
        )
    finally:
        engine.close()
    assert found == [(0, 0, 1), (1, 0, 2), (2, 1, 3), (None, None, None)]


def test_an_identifier_shares_its_header_with_nobody() -> None:
    """What is never asked about is asked about under no other name."""
    with pytest.raises(SchemaError, match="never asked about"):
        schema_from(
            {
                "survey": {"name": "x", "unit": "who", "at_most": 2},
                "columns": {
                    "who": {"kind": "identifier", "source": "a"},
                    "region": {"source": "a", **REGION[1]},
                },
            }
        )


def test_a_header_whose_numbers_are_rewritten_is_no_source_of_levels() -> None:
    with pytest.raises(SchemaError, match="keep one"):
        beside(REGION, BANDS, csv={"decimal": ","})
    assert beside(REGION, BANDS, csv={"separator": ";"}).columns
