"""Points of small cells come from a server a batch at a time, in order, and make what they make of a file's."""

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.wants import PointsByCell, Rows
from reticent.schema.codebook import schema_from
from tests.engine.runs import Watched, cells_of

COLUMNS = {
    "tract": {"kind": "integer", "bounds": [1, 40]},
    "x": {"kind": "integer", "bounds": [0, 30]},
    "y": {"kind": "integer", "bounds": [-5, 25]},
}
SCHEMA = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS})
MOST = 50  # lines of a batch


def people(count: int) -> pa.Table:
    """Respondents of 40 tracts: nobody in the first and the last, a third in one; one in ten did not say y."""
    dice = Random(count)
    rows = [
        {
            "tract": 7 if dice.random() < 1 / 3 else dice.randint(2, 39),
            "x": dice.randint(0, 30),
            "y": None if dice.random() < 0.1 else dice.randint(-5, 25),
        }
        for _ in range(count)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.int64()) for name in COLUMNS]))


@pytest.fixture(params=["two connections", "one"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Batches of `MOST` lines; and whether a server is to be read by one connection alone."""
    monkeypatch.setattr("reticent.engine.postgres.connection.BATCH", MOST)
    monkeypatch.setattr("reticent.engine.spark.connection.SLICE", MOST)
    monkeypatch.setattr("reticent.engine.sql.points.RUN", MOST)
    return request.param == "one"


def test_one_batch_and_one_cell_are_held(remote: Any, local: Any, small: bool):
    """3,000 respondents, in batches of fifty: the cells are those of a file, and when a run of them is handed over no
    more lines are held than those of a batch, a run and the largest cell. Of all lines at once, the naive twin, one batch is everything."""
    table = people(3000)
    here = local(table).tally(SCHEMA, [want := PointsByCell(rows=Rows(), cell="tract", y="y", x="x")])
    expected = cells_of(here.points[want])
    engine, watched = remote(table), Watched()
    engine._no_second = small
    in_order = engine.in_order
    engine.in_order = lambda *given: watched.watch(in_order(*given))
    kept = PointsByCell(rows=Rows(), cell="tract", y="y", x="x", fold=watched)
    found = engine.tally(SCHEMA, [kept]).points[kept]
    assert [cell for run in found for cell in run] == expected and expected[0] == expected[-1] == ()
    largest = max(len(set(cell)) for cell in expected)
    lines = sum(len(set(cell)) for cell in expected)
    assert sum(watched.lines) == lines and len(watched.lines) > 10
    spark = engine.version.startswith("spark")  # there a cell that is larger than a batch comes as one
    assert spark or not small or max(watched.lines) <= MOST
    assert max(watched.lines) <= max(largest, 2 * MOST) < lines / 2
    assert max(watched.held) <= largest + MOST + max(watched.lines)
    if spark:
        assert max(engine.taken) <= 2 * max(largest, MOST, 40)


def test_a_table_is_the_same_wherever_batches_end(remote: Any, local: Any, small: bool):
    """With and without an x, of nobody and of one respondent, too."""
    for count in (0, 1, 400):
        table = people(count)
        wants = [
            PointsByCell(rows=Rows(), cell="tract", y="y", x="x"),
            PointsByCell(rows=Rows(answered=("x",)), cell="tract", y="y"),
        ]
        one, other = (open_it(table).tally(SCHEMA, wants).points for open_it in (local, remote))
        for want in wants:
            for name in ("starts", "x", "y"):
                assert np.array_equal(getattr(one[want], name), getattr(other[want], name))
