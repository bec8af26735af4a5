"""What the curator sees in `check`: missingness and misfits, counted again by hand."""

import pandas as pd
import pyarrow as pa
import pytest

from reticent.engine.confidential import coarse_identifiers, inspect, patterns
from reticent.engine.sources.open import open_frame
from reticent.schema.codebook import schema_from
from tests.engine.opening import open_any

pytestmark = pytest.mark.usefixtures("every_engine")

CODEBOOK = {
    "survey": {"name": "tiny", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9"]},
        "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 15"},
        "pay": {"kind": "decimal", "bounds": ["0", "100"], "grid": "0.5", "universe": "age >= 15"},
    },
}
#         adult   child  no age  odd job   too old  silent
ROWS = {
    "age": ["30", "7", "-9", "40", "200", "50"],
    "job": ["yes", "yes", "no", "maybe", "no", ""],
    "pay": ["12.5", "1", None, "1e9", "-3", None],
}


@pytest.fixture
def engine():
    made = open_any(open_frame(pa.table(ROWS)))
    yield made
    made.close()


def test_findings_count_every_kind_of_cell(engine):
    """Missing codes are missing, children are not asked, 200 is clamped, "maybe" does not fit."""
    # covers R01
    found = {f.column: f for f in inspect(engine, schema_from(CODEBOOK))}
    shown = {
        name: (f.rows, f.answered, f.missing, f.not_asked, f.clamped, f.unfit, f.examples)
        for name, f in found.items()
    }
    assert shown == {
        "age": (6, 5, 1, 0, 1, 0, ()),
        "job": (6, 3, 2, 1, 0, 1, ("maybe",)),
        "pay": (6, 3, 2, 1, 2, 0, ()),
    }


def test_findings_keep_silent_when_printed(engine):
    """A finding that reaches a log by accident shows a column's name and nothing else."""
    shown = " ".join(repr(f) for f in inspect(engine, schema_from(CODEBOOK)))
    assert "maybe" not in shown and "rows=" not in shown and "age" in shown


def test_patterns_say_what_goes_missing_together(engine):
    """Structural cells are not missing; the flags' correlation equals the textbook's."""
    found = patterns(engine, schema_from(CODEBOOK), ["age", "job", "pay"])
    assert dict(found.counts) == {
        frozenset(): 3,
        frozenset({"age", "pay"}): 1,
        frozenset({"job"}): 1,
        frozenset({"job", "pay"}): 1,
    }
    assert found.rows == 6 and found.share("pay") == 2 / 6
    # job missing 2/6, pay missing 2/6, both 1/6: (1/6 - 1/9) / (2/9) = 1/4
    assert found.correlation("job", "pay") == pytest.approx(0.25)
    assert "3" not in repr(found)


def test_findings_read_a_frame_as_a_release_does():
    """Padded levels, 17.0 and "017", a missing code as a double, a truth value among ages: as the codebook says."""
    # covers T31
    book = {
        "survey": {"name": "tiny", "unit": "row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 99], "missing_codes": ["-9"]},
            "grade": {"kind": "categorical", "levels": ["01", "02"], "missing_codes": ["09"]},
        },
    }
    cells = {"age": [17.0, "017", -9.0, True, "1e3", float("nan")], "grade": [1, "2.0", 9, "?", None, " "]}
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in cells.items()})
    made = open_any(open_frame(frame))
    found = {
        f.column: (f.answered, f.missing, f.clamped, f.unfit, f.examples)
        for f in inspect(made, schema_from(book))
    }
    made.close()
    assert found == {"age": (3, 3, 1, 1, ("true",)), "grade": (2, 4, 0, 1, ("?",))}


@pytest.mark.parametrize(
    ("cells", "literal", "rows"),
    [
        ([2**53, 2**53 + 1, 7], False, 2),
        ([2.0**53, 2.0**60, 7.5, None], False, 2),
        (["9007199254740993", " 9007199254740992 ", "17", "a", ""], False, 2),
        (["9007199254740993", "9007199254740992"], True, 0),
        ([2.0**53, 3.0], True, 1),
        ([2**53 - 1, -(2**53)], False, 1),
        ([True, False], False, 0),
    ],
)
def test_identifiers_that_floating_point_cannot_tell_apart_are_counted(cells, literal, rows):
    """Whatever the column's type; as text that the codebook leaves alone, every one is itself."""
    pid = {"kind": "identifier", **({"text": True} if literal else {})}
    book = {
        "survey": {"name": "tiny", "unit": "pid"},
        "columns": {"pid": pid, "age": CODEBOOK["columns"]["age"]},
    }
    made = open_any(open_frame(pa.table({"pid": cells, "age": [30] * len(cells)})))
    assert coarse_identifiers(made, schema_from(book)) == rows
    alone = {"survey": {"name": "tiny", "unit": "row"}, "columns": {"age": book["columns"]["age"]}}
    assert coarse_identifiers(made, schema_from(alone)) == 0
    made.close()
