"""The points of cells are those one would list by hand: for every source, order of rows and number of threads."""

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.sql.clean import needed
from reticent.engine.sql.points import Tabled, folded, runs
from reticent.engine.wants import PointsByCell, PointTable, Rows
from reticent.errors import EngineError
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from tests.engine import slow
from tests.engine.runs import Watched, cells_of, lines_of
from tests.engine.slow import Raw
from tests.engine.test_tally import SOURCES, book, native, opened, some_people

pytestmark = pytest.mark.usefixtures("every_engine")

Cells = list[list[tuple[int, int]]]


def listed(table: PointTable) -> Cells:
    """The points, cell by cell."""
    pairs = list(zip(table.x.tolist(), table.y.tolist(), strict=True))
    return [pairs[a:b] for a, b in zip(table.starts, table.starts[1:], strict=False)]


def by_hand(schema: Schema, people: list[Raw], want: PointsByCell, wants: list[PointsByCell]) -> Cells:
    """Every row that counts, in its cell, in steps from the lower bounds; cells sorted by x, then y."""
    cells: Cells = [[] for _ in range(want.cells(schema))]
    for row in slow.clean(schema, people, needed(schema, wants)):
        if slow.counts(want.rows, row) and all(isinstance(row[c], int) for c in (want.cell, *want.axes)):
            steps = {c: row[c] - schema.coded[c].low for c in (want.cell, *want.axes)}  # type: ignore[operator]
            cells[steps[want.cell]].append((steps[want.x] if want.x else 0, steps[want.y]))
    return [sorted(cell) for cell in cells]


def some_points(dice: Random, schema: Schema) -> list[PointsByCell]:
    """Cells by level and by number; with an x, without one, and y as its own x."""
    return [
        PointsByCell(rows=slow.some_rows(dice, schema, []), cell="region", x="age", y="income"),
        PointsByCell(rows=slow.some_rows(dice, schema, ["job"]), cell="age", x="income", y="weight"),
        PointsByCell(rows=Rows(), cell="rooms", y="income"),
        PointsByCell(rows=Rows(), cell="hours", x="age", y="age"),
    ]


# covers B018 B019 B056 B057 B069
@pytest.mark.parametrize("unit", [("row", 1), ("pid", 2)], ids=["row", "two"])
@pytest.mark.parametrize("kind", SOURCES)
def test_points_are_those_one_would_list_by_hand(kind: str, unit: tuple[str, int], tmp_path: Path):
    """Missing answers, questions not asked, values outside the bounds, empty cells; 60 people, four wants."""
    schema, dice = book(*unit), Random(f"points {kind} {unit}")
    people, wants = some_people(dice, 60), some_points(dice, schema)
    with opened(SOURCES[kind](people, tmp_path)) as engine:
        found = engine.tally(schema, wants).points
    for want in wants:
        assert listed(found[want]) == by_hand(schema, people, want, wants)


def test_every_declared_cell_is_there_whoever_answered():
    """Nobody at all (B068) and people who answered nothing leave the same empty cells as the codebook has."""
    schema = book()
    want = PointsByCell(rows=Rows(), cell="age", x="age", y="income")
    silent: list[Raw] = [dict.fromkeys(some_people(Random(1), 1)[0])] * 3
    for count in (0, 3):
        with opened(open_frame(native(silent).slice(0, count))) as engine:
            assert listed(engine.tally(schema, [want]).points[want]) == [[]] * 100


# covers T03
def test_no_order_of_rows_and_no_number_of_threads_changes_a_point(tmp_path: Path):
    schema, dice = book(), Random(7)
    people = some_people(dice, 3000)
    want = some_points(dice, schema)[0]
    seen = []
    for threads in (1, 2, 4):
        dice.shuffle(people)
        pq.write_table(native(people), tmp_path / "p.parquet", row_group_size=500)
        with opened(open_path(str(tmp_path / "p.parquet")), threads) as engine:
            table = engine.tally(schema, [want]).points[want]
        seen.append((table.starts.tobytes(), table.x.tobytes(), table.y.tobytes()))
    assert seen[0] == seen[1] == seen[2]


def test_a_text_that_is_not_utf8_is_a_missing_cell_and_nothing_more(tmp_path: Path):
    """The second reader of a Parquet file serves points as it serves sums."""
    columns = {"c": {"kind": "categorical", "levels": ["a", "b"]}, "y": {"kind": "integer", "bounds": [0, 9]}}
    schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})
    raw = pa.array([b"a", b"\xff\xfe", b"b"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"c": raw, "y": pa.array([1, 2, 3])}), tmp_path / "p.parquet")
    want = PointsByCell(rows=Rows(), cell="c", y="y")
    with opened(open_path(str(tmp_path / "p.parquet"))) as engine:
        assert listed(engine.tally(schema, [want]).points[want]) == [[(0, 1)], [(0, 3)]]


def test_the_largest_numbers_still_sort_and_beyond_them_nobody_is_asked():
    """Just below 2^63 places the corners come back; past it the engine refuses, whoever is there (T05)."""
    for top, works in ((2**30 - 2, True), (2**30 - 1, False)):
        columns = {
            "c": {"kind": "integer", "bounds": [-1, 6]},
            "x": {"kind": "integer", "bounds": [-top, 0]},
            "y": {"kind": "integer", "bounds": [5, top + 5]},
        }
        schema = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})
        rows = {"c": [6, -1, 6, 99], "x": [0, -top, -top, 0], "y": [top + 5, 5, 0, 2 * top]}
        want = PointsByCell(rows=Rows(), cell="c", x="x", y="y")
        assert (want.size(schema) < 2**63) is works
        for table in (pa.table(rows), pa.table(rows).slice(0, 0)):
            with opened(open_frame(table)) as engine:
                if works:
                    cells = listed(engine.tally(schema, [want]).points[want])
                    corners = ([(0, 0)], [(0, 0), (top, top), (top, top)]) if table.num_rows else ([], [])
                    assert (cells[0], cells[7]) == corners
                else:
                    with pytest.raises(EngineError, match="too many places"):
                        engine.tally(schema, [want])


def test_a_table_of_points_shows_no_point():
    table = PointTable(
        want=PointsByCell(rows=Rows(), cell="c", y="y"),
        starts=np.array([0, 1]),
        x=np.array([0]),
        y=np.array([4711]),
    )
    assert "4711" not in repr(table) and "array" not in repr(table)


GRID = {
    "c": {"kind": "integer", "bounds": [3, 9]},
    "x": {"kind": "integer", "bounds": [0, 4]},
    "y": {"kind": "integer", "bounds": [-2, 3]},
}
SCHEMA = schema_from({"survey": {"name": "s", "unit": "row"}, "columns": GRID})
PAIRS, ALONE = PointsByCell(rows=Rows(), cell="c", x="x", y="y"), PointsByCell(rows=Rows(), cell="c", y="y")


@pytest.mark.parametrize("want", [PAIRS, ALONE], ids=["pairs", "y alone"])
def test_runs_are_whole_cells_in_order_wherever_batches_end(
    want: PointsByCell, monkeypatch: pytest.MonkeyPatch
):
    """400 surveys in batches of any length: the runs are the cells one would list, each cell in one run, empty ones too.

    A run has no more points and cells than it may, or is one cell, and is the same as without batches.
    """
    dice, size = Random(f"runs {want.x}"), want.places(SCHEMA)
    for _ in range(400):
        monkeypatch.setattr("reticent.engine.sql.points.RUN", most := dice.choice((1, 4, 20, 1000)))
        numbers = [dice.randrange(want.size(SCHEMA)) for _ in range(dice.choice((0, 1, 5, 60)))]
        if dice.random() < 0.3:  # most in one cell
            numbers += [3 * size + dice.randrange(size) for _ in range(40)]
        lines = lines_of(numbers)
        cuts = sorted(dice.choices(range(lines.shape[1] + 1), k=dice.randrange(6)))
        found = [cells_of(run) for run in runs(SCHEMA, want, np.split(lines, cuts, axis=1))]
        y_size = 6
        expected = [
            [(n % size // y_size, n % y_size) for n in sorted(numbers) if n // size == cell]
            for cell in range(7)
        ]
        assert [list(cell) for run in found for cell in run] == expected
        assert all(len(run) == 1 or len(run) + sum(map(len, run)) <= most for run in found)
        assert [cells_of(run) for run in runs(SCHEMA, want, [lines])] == found


def test_no_more_is_held_than_a_batch_and_a_cell(monkeypatch: pytest.MonkeyPatch):
    """Of 210 batches of a line, those of one cell and one more are there when cells are handed over; of seven batches one."""
    watched, size = Watched(), PAIRS.places(SCHEMA)
    monkeypatch.setattr("reticent.engine.sql.points.RUN", 1)
    want = PointsByCell(rows=Rows(), cell="c", x="x", y="y", fold=watched)
    lines = lines_of([n for n in range(7 * size) for _ in range(3)])
    batches = (lines[:, at : at + 1].copy() for at in range(lines.shape[1]))
    found = folded(SCHEMA, [want], watched.watch(batches))[want]
    assert [len(cell) for run in found for cell in run] == [3 * size] * 7
    assert len(watched.blocks) == 7 * size and max(watched.held) <= size + 1
    watched = Watched()
    want = PointsByCell(rows=Rows(), cell="c", x="x", y="y", fold=watched)
    batches = (lines[:, at : at + size].copy() for at in range(0, lines.shape[1], size))
    folded(SCHEMA, [want], watched.watch(batches))
    assert len(watched.blocks) == 7 and max(watched.held) <= size


def test_lines_out_of_order_are_refused_and_not_miscounted():
    for wrong in ([[[5, 4], [1, 1]]], [[[5], [1]], [[4], [1]]]):
        with pytest.raises(EngineError, match="out of order"):
            list(runs(SCHEMA, PAIRS, [np.array(block) for block in wrong]))


def test_wants_of_the_same_points_are_read_once_whatever_is_made_of_them():
    """Two folds and a table of one cloud: one statement, and each has all cells."""
    people = some_people(Random(5), 60)
    schema = book()
    plain = PointsByCell(rows=Rows(), cell="region", x="age", y="income")
    wants = [
        plain,
        *(PointsByCell(rows=Rows(), cell="region", x="age", y="income", fold=Watched()) for _ in "ab"),
    ]
    statements = []
    with opened(open_frame(native(people))) as engine:
        fetch = engine.fetch_columns
        engine.fetch_columns = lambda *given: statements.append(given) or fetch(*given)  # type: ignore[method-assign,func-returns-value]
        found = engine.tally(schema, wants).points
    for want in wants[1:]:
        assert [cell for run in found[want] for cell in run] == cells_of(found[plain])
    assert len(found) == 3 and len(statements) == 1


def test_a_table_is_the_runs_one_after_the_other(monkeypatch: pytest.MonkeyPatch):
    lines = lines_of(list(range(0, 7 * PAIRS.places(SCHEMA), 2)))
    one = list(runs(SCHEMA, PAIRS, [lines]))
    monkeypatch.setattr("reticent.engine.sql.points.RUN", 3)
    few = list(runs(SCHEMA, PAIRS, [lines]))
    assert len(one) == 1 and len(few) == 7
    for name in ("starts", "x", "y"):
        assert (getattr(Tabled().joined(few), name) == getattr(Tabled().joined(one), name)).all()
    assert len(Tabled().joined(few).x) == lines.shape[1]
