"""Point masses: every code in one cell, a heap alone in its own, drawn exactly; what does not fit is refused by name."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.schema.codebook import schema_from
from reticent.synth.base import Conditional, MissingMethod
from reticent.synth.domain import MOST, Domain, bins, decode, domain_of, encode, with_point_masses
from reticent.synth.marginals.privbayes import ladders
from reticent.synth.network import Network
from reticent.synth.saved import load, save
from tests.noise.seeded import SeededBits

COLUMNS = {
    "gain": {"kind": "integer", "bounds": [-20, 99999]},
    "rent": {"kind": "decimal", "bounds": [0, "50"], "grid": "0.25"},
    "rooms": {"kind": "integer", "bounds": [1, 9]},
    "sex": {"kind": "categorical", "levels": ["m", "f"]},
}
SCHEMA = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS})


def cells_of(domain: Domain, column: str) -> list[range]:
    """The codes of every cell of a column."""
    axis = domain.axes[domain.columns.index(column)]
    starts, widths = bins(axis, domain.schema)
    return [
        range(start, start + width) for start, width in zip(starts.tolist(), widths.tolist(), strict=True)
    ]


def is_partition(cells: list[range], low: int, high: int) -> bool:
    """Every code in one cell, no cell empty."""
    return all(cells) and [code for cell in cells for code in cell] == list(range(low, high + 1))


def naive(starts: tuple[int, ...], heaps: list[int], high: int) -> tuple[int, ...]:
    """The twin that adds two starts for each heap and looks no further."""
    return tuple(sorted([*starts, *heaps, *(code + 1 for code in heaps)]))


def split(starts: tuple[int, ...], high: int) -> list[range]:
    return [range(a, b) for a, b in zip(starts, (*starts[1:], high + 1), strict=True)]


@given(
    low=st.integers(-30, 30),
    codes=st.integers(17, 90),
    count=st.integers(2, 16),
    picks=st.sets(st.integers(0, 89), min_size=1, max_size=12),
)
def test_cells_part_the_codes_and_each_heap_is_alone(
    low: int, codes: int, count: int, picks: set[int]
) -> None:
    """Any heaps: first and last codes, neighbours, and codes at which a bin begins anyway among them."""
    high = low + codes - 1
    heaps = sorted({low + pick % codes for pick in picks})
    book = {"x": {"kind": "integer", "bounds": [low, high]}}
    schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": book})
    cells = cells_of(domain_of(schema, bins=count, point_masses={"x": heaps}), "x")
    assert is_partition(cells, low, high)
    assert all(range(code, code + 1) in cells for code in heaps)
    assert {cell.start for cell in cells_of(domain_of(schema, bins=count), "x")} <= {c.start for c in cells}
    assert len(cells) <= count + 2 * len(heaps)


@pytest.mark.parametrize("heaps", [[7], [0, 1], [5]])
def test_the_naive_starts_are_no_partition(heaps: list[int]) -> None:
    """The last code, two neighbours, a heap where a bin begins: the twin fails each, ours none."""
    starts, high = (0, 3, 5), 7
    assert is_partition(split(with_point_masses(starts, heaps, high), high), 0, high)
    assert not is_partition(split(naive(starts, heaps, high), high), 0, high)


def test_a_heap_is_drawn_exactly_and_comes_back() -> None:
    """Its cell gives its code and no other; without the heap 4,000 draws have other codes, or chance is below 1e-99."""
    domain = domain_of(SCHEMA, point_masses={"gain": ["0"], "rent": ["12.50", 50]})
    for column, code in (("gain", 0), ("rent", 50), ("rent", 200)):
        axis = domain.axes[domain.columns.index(column)]
        (cell,) = encode(np.array([code]), axis, SCHEMA)
        rows = np.zeros((4_000, 4), int)
        rows[:, domain.columns.index(column)] = cell
        assert set(decode(rows, domain, SeededBits(1))[column].tolist()) == {code}
        equal = domain_of(SCHEMA)
        (cell,) = encode(np.array([code]), equal.axes[equal.columns.index(column)], SCHEMA)
        rows[:, domain.columns.index(column)] = cell
        assert set(decode(rows, equal, SeededBits(1))[column].tolist()) != {code}


def test_a_column_that_is_not_binned_stays_as_it_is() -> None:
    assert domain_of(SCHEMA, point_masses={"rooms": [3]}) == domain_of(SCHEMA)


WRONG = {
    "levels": ({"sex": ["m"]}, "sex has levels"),
    "unknown column": ({"gian": [0]}, "'gian' is not among the columns.*gain"),
    "below": ({"gain": ["-21"]}, "-21 is no value of gain, which runs from -20 to 99999"),
    "above": ({"rent": ["50.25"]}, "50.25 is no value of rent, which runs from 0 to 50"),
    "off the grid": ({"rent": ["0.3"]}, "0.3 is no value of rent, which has the grid 0.25"),
    "no number": ({"gain": ["none"]}, "no decimal"),
    "truth": ({"gain": [True]}, "no decimal"),
    "power": ({"gain": ["1e3"]}, "no decimal"),
    "twice": ({"rent": ["1", "1.00"]}, "names a value of rent twice"),
    "none": ({"gain": []}, f"lists 1 to {MOST} values"),
    "text": ({"gain": "0"}, f"lists 1 to {MOST} values"),
    "too many": ({"gain": list(range(MOST + 1))}, f"lists 1 to {MOST} values"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_refused(wrong: str) -> None:
    heaps, match = WRONG[wrong]
    with pytest.raises(PlanError, match=match) as refused:
        domain_of(SCHEMA, point_masses=heaps)
    assert refused.value.field == "point_masses"


def test_a_column_that_is_left_out_has_no_heap() -> None:
    with pytest.raises(PlanError, match="'gain' is not among"):
        domain_of(SCHEMA, ["sex", "rent"], point_masses={"gain": [0]})


def test_a_saved_model_keeps_its_heaps(tmp_path) -> None:
    """Bins come back as they were, without a word about heaps; a model without them as ever."""
    for name, heaps in (("with", {"gain": [0, 5], "rent": [0]}), ("without", {})):
        domain = domain_of(SCHEMA, point_masses=heaps)
        steps = [np.full(size, 1 / size) for size in domain.shape]
        network = Network(
            domain=domain,
            steps=tuple(Conditional(place=i, given=(), table=table) for i, table in enumerate(steps)),
            total=1.0,
            claim=Claim(measure="pure", epsilon=Fraction(1)),
        )
        save(network, tmp_path / name)
        assert load(tmp_path / name, SCHEMA).domain == domain


def test_coarser_levels_still_hold_every_cell_once() -> None:
    """What PrivBayes makes its parents of: each level groups all cells, heaps with their neighbours."""
    domain = domain_of(SCHEMA, point_masses={"gain": [0, 40], "rent": [0, 50]})
    for axis, ladder in zip(domain.axes, ladders(domain, MissingMethod.VALUES), strict=True):
        for level in ladder:
            into = level.side.into
            assert (into >= 0).all() and set(into.tolist()) == set(range(level.size))
            assert (np.diff(into[: axis.answers]) >= 0).all()
