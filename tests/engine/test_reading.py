"""What a cell means follows from the cell and the codebook, whatever type its column has (T31, T32).

The reference in `reading_reference.py` reads one Python value; `carriers.py` holds the same values in every column
type of pandas, Polars and Arrow. The naive twin at the end reads as types suggest, and the same tests reject it.
"""

from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reticent.engine.sources.open import open_frame
from reticent.errors import SchemaError
from reticent.schema import Levels, Number
from reticent.schema.columns import Identifier, canonical
from tests.engine import reading_reference as reference
from tests.engine.carriers import everywhere, readings

pytestmark = pytest.mark.usefixtures("every_engine")

EXAMPLES = settings(
    max_examples=12, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
ODD_TEXTS = [
    "?",
    "",
    " ",
    "NaN",
    "1e1",
    "1e+16",
    "1E5",
    " 17",
    "017",
    "17.0",
    "+17",
    "-0",
    ".5",
    "5.",
    "é",
    "0x10",
    "1_0",
]
ODD_TEXTS += [
    "inf",
    "-Infinity",
    "True",
    "false",
    "2026-01-01",
    "2026-01-01 00:00:00",
    "2026-02-30T10:30:00.500",
    "17\n",
]
HUGE = [
    10**400,
    -(10**400),
    2**53 + 1,
    2**63,
    10**18,
    1e308,
    float("inf"),
    5e-324,
    1e16,
    123456789012345680000.0,
]

grids = st.sampled_from(["1", "0.01", "0.5", "5", "0.25", "0.1", "2.5", "0.000001", "0.000000000001", "1000"])
halves = st.builds(lambda n, g: n * float(Fraction(g)) / 2, st.integers(-400, 400), grids)
numbers = st.one_of(
    st.integers(-300, 300),
    halves,
    st.decimals(-200, 200, places=3).map(float),
    st.floats(allow_nan=False),
    st.floats(-1e4, 1e4),
    st.sampled_from(HUGE),
)
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text("0123456789.+-eE \t", max_size=8), st.text(max_size=3))
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 1, 1)).map(lambda d: d.replace(fold=0))
alike = [numbers, st.integers(-(2**62), 2**62), st.booleans(), moments, texts]
mixed = st.one_of(numbers, st.booleans(), moments, texts)


def columns_of(cell: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.one_of(st.none(), cell), min_size=1, max_size=6)


cells = st.one_of(*map(columns_of, alike), columns_of(mixed))


@st.composite
def quantities(draw: st.DrawFn) -> Number:
    """A column of numbers: any grid, bounds near and far, missing codes among them."""
    grid = Fraction(draw(grids))
    low = draw(st.integers(-1000, 1000))
    steps = draw(st.sampled_from([3, 200, 10**5, 2**40]))
    whole = grid.denominator == 1 and draw(st.booleans())
    missing = draw(st.lists(st.sampled_from(["-9", "99", "0.5", "1e3", "9999999999999999"]), max_size=2))
    bounds = {"lower": low * grid, "upper": (low + steps) * grid}
    return Number(name="x", source="x", grid=grid, whole=whole, missing=tuple(missing), **bounds)


LEVELS = st.sampled_from(
    [
        "1",
        "02",
        "003.0",
        "1.5",
        "-7",
        "f",
        " m",
        "1E5",
        "1e+16",
        "true",
        "FALSE",
        "2026-01-01",
        "2026-02-03 10:30:00",
        "é",
    ]
)


@st.composite
def categories(draw: st.DrawFn) -> Levels:
    levels = draw(st.lists(LEVELS, min_size=1, max_size=6, unique=True))
    return Levels(name="x", source="x", levels=tuple(levels))


def agree(found: dict[str, list[Any]], wanted: list[Any]) -> list[str]:
    """The carriers that read something else."""
    return [carrier for carrier, read in found.items() if read != wanted]


# covers T31
@given(column=quantities(), held=cells)
@example(
    column=Number(name="x", source="x", lower=Fraction(0), upper=Fraction(9), grid=Fraction("0.01")),
    held=[0.005, 1.005, 2.675],
)
@EXAMPLES
def test_a_number_has_one_code_in_every_carrier(column: Number, held: list[Any]):
    assert agree(everywhere(held, column), [reference.number_code(column, cell) for cell in held]) == []


# covers T31
@given(
    column=categories(),
    held=columns_of(st.one_of(mixed, LEVELS, st.sampled_from([1, 2, 2.0, 3.0, 1.5, -7.0]))),
)
@EXAMPLES
def test_an_answer_has_one_level_in_every_carrier(column: Levels, held: list[Any]):
    assert agree(everywhere(held, column), [reference.level_code(column, cell) for cell in held]) == []


# covers T32 B056 B057
@given(held=cells)
@EXAMPLES
def test_an_identifier_names_one_respondent_in_every_carrier(held: list[Any]):
    column = Identifier(name="x", source="x")
    assert agree(everywhere(held, column), [reference.identifier(cell) for cell in held]) == []


# covers T31
@given(st.integers(0, 2**20), st.floats(-1e9, 1e9))
@settings(EXAMPLES, max_examples=25)
def test_the_tolerance_covers_every_double(step: int, near: float):
    """Next to the edge between two steps: on it, a double below and above, and where twelve decimals end."""
    grid = Fraction(3, 8)
    column = Number(name="x", source="x", lower=-16 * grid, upper=2**20 * grid, grid=grid)
    edge = float((step + Fraction(1, 2)) * grid)
    around = [
        nextafter(edge, -inf),
        edge,
        nextafter(edge, inf),
        edge + 4e-13,
        edge - 4e-13,
        edge - 6e-13,
        near,
    ]
    found = readings(open_frame(pa.table({"x": around})), column, ["x"])["x"]
    assert found == [reference.number_code(column, x) for x in around]


# --- identifiers and levels, said plainly ----------------------------------------------------------------------------------

SEVENTEEN: list[Any] = [
    17,
    17.0,
    "17",
    " 17",
    "017",
    "17.0",
    "+17",
    "1.7e+01",
    "17\t",
    Decimal("17.00"),
    17 + 0j,
]


# covers T32
def test_seventeen_is_one_respondent_and_one_level():
    frame = open_frame(pd.DataFrame({"x": pd.Series(SEVENTEEN, dtype=object)}))
    assert set(readings(frame, Identifier(name="x", source="x"), ["x"])["x"]) == {"17"}
    ages = Levels(name="x", source="x", levels=("16", "17"))
    assert set(readings(frame, ages, ["x"])["x"]) == {1}


def test_text_counts_letter_by_letter_where_the_codebook_says_so():
    """A number in a column of numbers is then its plain digits."""
    cells = ["17", "017", "17.0", " 17", 17, 17.0, True, "True", None, ""]
    frame = open_frame(pd.DataFrame({"x": pd.Series(cells, dtype=object)}))
    named = readings(frame, Identifier(name="x", source="x", literal=True), ["x"])["x"]
    assert named == ["17", "017", "17.0", "17", "17", "17", "true", "True", None, None]
    levels = Levels(name="x", source="x", levels=("17", "017", "true"), literal=True)
    assert readings(frame, levels, ["x"])["x"] == [0, 1, None, None, 0, 0, 2, None, None, None]
    table = open_frame(pa.table({"x": [17, 18], "y": [17.0, 1.5]}))
    assert readings(table, levels, ["x", "y"]) == {"x": [0, None], "y": [0, None]}


def test_long_identifiers_are_doubles_unless_they_are_text():
    """A frame with one missing identifier holds no more than a double, so nothing else does either."""
    near = [2**53 + 1, float(2**53), str(2**53 + 1), str(2**53)]
    frame = open_frame(pd.DataFrame({"x": pd.Series(near, dtype=object)}))
    assert len(set(readings(frame, Identifier(name="x", source="x"), ["x"])["x"])) == 1
    digits = open_frame(pa.table({"x": [str(2**53 + 1), str(2**53)]}))
    assert len(set(readings(digits, Identifier(name="x", source="x", literal=True), ["x"])["x"])) == 2


def test_only_ascii_blanks_are_trimmed():
    cells = ["\u00a017", "17\u2003", "\n17", "17\r", "\x0b17", "17"]
    table = open_frame(pa.table({"x": cells}))
    named = readings(table, Identifier(name="x", source="x"), ["x"])["x"]
    assert named == cells
    age = Number(name="x", source="x", lower=Fraction(0), upper=Fraction(99), whole=True)
    assert readings(table, age, ["x"])["x"] == [None] * 5 + [17]


def test_codes_with_a_letter_stay_texts():
    """1E5 and 12e7 are nobody's numbers among levels and identifiers; 1e+05 is what R prints for 100000."""
    assert [canonical(text) for text in ("1E5", "12e7", "1e5")] == ["1E5", "12e7", "1e5"]
    assert canonical("1e+05") == canonical("100000") == "100000"


@pytest.mark.parametrize(
    "levels", [("1", "01"), ("1.1", "1.10"), ("true", "True"), ("2026-01-01", "2026-01-01 00:00:00")]
)
def test_levels_that_mean_the_same_are_refused_with_the_way_out(levels: tuple[str, ...]):
    with pytest.raises(SchemaError, match="text = true"):
        Levels(name="x", source="x", levels=levels)
    assert Levels(name="x", source="x", levels=levels, literal=True).levels == levels


def test_a_missing_code_is_met_by_its_meaning():
    with pytest.raises(SchemaError, match="missing code"):
        Levels(name="x", source="x", levels=("1", "2"), missing=("01",))


@pytest.mark.parametrize("hold", [lambda t: t, lambda t: pl.from_arrow(t), lambda t: t.to_pandas()])
def test_half_floats_are_numbers(hold: Any):
    """They were charged, and then no engine could read them."""
    # covers T31
    table = pa.table({"x": pa.array([1.5, None, 70.0], pa.float16())})
    column = Number(name="x", source="x", lower=Fraction(0), upper=Fraction(50), grid=Fraction(1, 2))
    assert readings(open_frame(hold(table)), column, ["x"])["x"] == [3, None, 100]
