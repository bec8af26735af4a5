"""The trial tables: declared before any row is read, all rows inside what is declared, masks that never move."""

import tomllib
from importlib.resources import files

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.lab.trials import masks, tables
from reticent.schema.codebook import schema_from
from reticent.synth.domain import HOLE, UNASKED

SHAPES = {"adult": (30_162, 15), "bank": (45_211, 17), "br2000": (38_000, 14), "national": (15_012, 19)}
REAL = [
    pytest.param(name, marks=pytest.mark.skipif(not tables.at_hand(name), reason="the rows are not here"))
    for name in SHAPES
]


@pytest.mark.parametrize("name", SHAPES)
def test_codebooks_are_whole_without_any_row(name):
    text = files("reticent.lab.trials").joinpath(f"{name}.codebook.toml").read_text(encoding="utf-8")
    schema = schema_from(tomllib.loads(text))
    assert len(schema.coded) == SHAPES[name][1] and tables.TARGETS[name] in schema.coded


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_every_complete_row_fits_its_codebook(name):
    """As many rows as the paper has, so nothing fell outside levels or bounds."""
    table = tables.trial(name)
    assert table.codes.shape == SHAPES[name] and (table.codes > UNASKED).all()
    assert (table.cells() < np.array([axis.answers for axis in table.domain().axes])).all()


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_published_masks_are_used_where_they_are(name):
    if masks.published(tables.trial(name), "MCAR", 0.2) is None:
        pytest.skip("the masks are not here")
    found = masks.mask(name, "MCAR", 0.2)
    assert found.shape == SHAPES[name] and abs(found.mean() - 0.2) < 0.002
    assert masks.published(tables.trial(name), "MCAR", 0.123) is None


@pytest.mark.data
@pytest.mark.skipif(not tables.at_hand(tables.WORKERS), reason="the rows are not here")
def test_the_workers_silence_is_their_own():
    """All fit their codebook; wages are left out by 23 in 100, sex by hardly anybody, hours and class of worker together."""
    table, flags = tables.trial(tables.WORKERS), masks.mask(tables.WORKERS, masks.FLAGS, 0.0)
    assert table.codes.shape == flags.shape == (22_241, 13) and (table.codes > UNASKED).all()
    lost = {name: flags[:, place] for place, name in enumerate(table.columns)}
    assert [round(float(lost[name].mean()), 3) for name in ("WAGP", "RAC1P", "SEX")] == [0.23, 0.013, 0.0]
    assert np.corrcoef(lost["WKHP"], lost["COW"])[0, 1] > 0.75


def test_the_census_is_always_there_and_nothing_in_it_is_silent():
    census = tables.trial("census", rows=500)
    assert census.codes.shape == (500, 11) and not (census.codes == HOLE).any()
    age, wage = (census.codes[:, census.columns.index(name)] for name in ("age", "wage"))
    assert np.array_equal(wage == UNASKED, age < 15)


def test_rows_outside_levels_and_bounds_are_holes():
    """A level that is no level, a number too large, a null."""
    import pyarrow as pa

    from reticent.lab.trials.tables import codes_of

    schema = schema_from(
        {
            "survey": {"name": "toy", "unit": "row"},
            "columns": {
                "a": {"kind": "categorical", "levels": ["x", "y"]},
                "b": {"kind": "decimal", "bounds": ["0", "1"], "grid": "0.1"},
            },
        }
    )
    table = pa.table({"a": ["y", "q", None], "b": [0.3, 7.0, None]})
    assert codes_of(table, schema, ("a", "b")).tolist() == [[1, 3], [HOLE, HOLE], [HOLE, HOLE]]


@pytest.mark.parametrize("kind", masks.KINDS)
def test_a_mask_is_one_fixed_draw_that_spares_the_unasked(kind):
    """Two draws alike, another rate another draw; the rate of 2,000 rows within five standard errors of a cell's."""
    census = tables.trial("census", rows=2_000)
    first, again = (masks.drawn(census, kind, 0.2) for _ in range(2))
    assert np.array_equal(first, again) and not (first & (census.codes == UNASKED)).any()
    assert not np.array_equal(first, masks.drawn(census, kind, 0.1))
    lost = first.any(axis=0)
    asked = census.codes != UNASKED
    rates = (first.sum(axis=0) / asked.sum(axis=0))[lost]
    assert np.abs(rates - 0.2).max() < 5 * np.sqrt(0.16 / asked.sum(axis=0).min()) + 0.02
    assert lost.sum() == {"MCAR": 11, "MAR": 6, "MNAR": 11}[kind]


def test_an_unknown_table_is_refused_with_its_neighbour_named():
    with pytest.raises(PlanError, match="adult"):
        tables.trial("adlut")
