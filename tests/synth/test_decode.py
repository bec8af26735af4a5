"""Decoding: inside the bin, evenly, on the grid, and back again."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.schema.codebook import schema_from
from reticent.synth.domain import HOLE, UNASKED, Domain, bins, decode, domain_of, encode, to_arrow
from tests.noise.seeded import SeededBits

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "sex": {"kind": "categorical", "levels": ["m", "f"], "missing_codes": ["9"]},
    "wage": {
        "kind": "decimal",
        "bounds": [0, "1000.5"],
        "grid": "0.01",
        "universe": "age >= 15",
        "source": "PWAGE",
    },
    "size": {"kind": "integer", "bounds": [-500, 500], "grid": 100},
}


def survey(bins: int = 16) -> Domain:
    return domain_of(schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS}), bins=bins)


def every_cell(domain: Domain, times: int) -> np.ndarray:
    """Each cell of each column, `times` over."""
    most = max(domain.shape)
    return np.array([[i % size for size in domain.shape] for i in range(most * times)])


@given(bins=st.integers(2, 40), seed=st.integers(0, 99))
def test_codes_are_declared_and_cells_come_back(bins: int, seed: int) -> None:
    """Every cell of every column, at every number of bins: the code is within the bounds and of that very cell."""
    domain = survey(bins)
    cells = every_cell(domain, 3)
    rows = decode(cells, domain, SeededBits(seed))
    for place, axis in enumerate(domain.axes):
        codes, column = rows[axis.column], domain.schema.coded[axis.column]
        answered = codes > UNASKED
        assert ((column.low <= codes) & (codes <= column.high))[answered].all()
        assert (answered == (cells[:, place] < axis.answers)).all()
        assert (encode(codes, axis, domain.schema) == cells[:, place]).all()
        assert ((codes == HOLE) == (cells[:, place] == axis.silence)).all()


def even(codes: np.ndarray, low: int, width: int) -> bool:
    """All codes of a bin, each within six deviations of its share: chance of a false alarm below 2e-9 a code."""
    found = np.bincount(codes - low, minlength=width)
    expected = len(codes) / width
    return len(found) == width and bool((abs(found - expected) < 6 * np.sqrt(expected)).all())


def test_answers_are_even_inside_the_bin_and_midpoints_are_not() -> None:
    """12,000 draws from each of 16 bins; the naive twin writes mid-points."""
    domain = survey()
    axis = domain.axes[0]
    starts, widths = bins(axis, domain.schema)
    for cell in range(axis.answers):
        cells = np.tile([cell, 0, 0, 0], (12_000, 1))
        codes = decode(cells, domain, SeededBits(cell))["age"]
        assert even(codes, starts[cell], widths[cell])
        assert not even(np.full(12_000, starts[cell] + widths[cell] // 2), starts[cell], widths[cell])


def test_bins_cover_every_code_once() -> None:
    domain = survey()
    for axis in domain.axes:
        starts, widths = bins(axis, domain.schema)
        column = domain.schema.coded[axis.column]
        covered = np.concatenate([np.arange(s, s + w) for s, w in zip(starts, widths, strict=True)])
        assert covered.tolist() == list(range(column.low, column.high + 1))


def test_the_table_reads_back_to_the_same_codes() -> None:
    """Numbers on their grid by the one rounding rule, levels as text, the rest empty, the survey's own headers."""
    domain = survey()
    rows = decode(every_cell(domain, 20), domain, SeededBits(1))
    table = to_arrow(rows, domain.schema)
    assert table.column_names == ["age", "sex", "PWAGE", "size"]
    assert set(table["sex"].to_pylist()) == {"m", "f", None}
    for name, header in (("age", "age"), ("wage", "PWAGE"), ("size", "size")):
        grid = domain.schema.number(name, field="").grid
        back = [
            None if value is None else int((Fraction(value) / grid + Fraction(1, 2)) // 1)
            for value in table[header].to_pylist()
        ]
        assert back == [None if code <= UNASKED else code for code in rows[name].tolist()]


def test_no_row_gives_no_row() -> None:
    domain = survey()
    assert to_arrow(decode(np.zeros((0, 4), int), domain, SeededBits(0)), domain.schema).num_rows == 0


@pytest.mark.parametrize("bound", [2**53 - 1, 2**53])
def test_the_widest_bins_stay_inside(bound: int) -> None:
    """Codes near 2**53, where doubles end."""
    book = {
        "survey": {"name": "s", "unit": "row"},
        "columns": {"x": {"kind": "integer", "bounds": [0, bound]}},
    }
    domain = domain_of(schema_from(book), bins=2)
    codes = decode(np.full((4000, 1), 1), domain, SeededBits(2))["x"]
    starts, widths = bins(domain.axes[0], domain.schema)
    assert starts[1] <= codes.min() <= codes.max() <= starts[1] + widths[1] - 1 == bound
