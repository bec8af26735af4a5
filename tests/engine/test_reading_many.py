"""What a cell means follows from the cell and the codebook, whatever type its column has (T31, T32).

The reference in `reading_reference.py` reads one Python value; `carriers.py` holds the same values in every column
type of pandas, Polars and Arrow. The naive twin at the end reads as types suggest, and the same tests reject it.
"""

from datetime import datetime
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reticent.engine.sources import open_frame
from reticent.schema import Levels, Number
from reticent.schema.columns import Identifier
from tests.engine import reading_reference as reference
from tests.engine.carriers import everywhere, readings

EXAMPLES = settings(max_examples=400, derandomize=True, database=None)
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
@settings(EXAMPLES, max_examples=60)
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
