"""What base cells hold is what one would add up by hand: for every source, order of rows and number of threads."""

from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.sources.open import open_frame, open_path
from reticent.engine.sql.clean import needed
from reticent.engine.sql.tallies import check_bins
from reticent.engine.wants import Bins, BinTable, Key, Rows
from reticent.errors import PlanError
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from tests.engine import slow
from tests.engine.slow import Raw
from tests.engine.test_tally import SOURCES, book, native, opened, some_people

pytestmark = pytest.mark.usefixtures("every_engine")

KEYS = (Key(column="region"), Key(column="age", starts=(0, 18, 65)))


def listed(table: BinTable) -> list[object]:
    return [getattr(table, name).tolist() for name in ("count", "total", "matching", "largest")]


def by_hand(schema: Schema, people: list[Raw], want: Bins, wants: list[Bins]) -> list[object]:
    """Record by record: its cell, those who did not say in the declared one; its weight, none or 0 is no record."""
    size = want.size(schema)
    weights: list[list[int]] = [[] for _ in range(size)]
    matching = [0] * size
    for row in slow.clean(schema, people, needed(schema, wants)):
        weight = 1 if want.weight is None else row[want.weight]
        if not isinstance(weight, int) or weight < 1:
            continue
        cell = 0
        for key, silent in zip(want.keys, want.silent, strict=True):
            place = slow.place(key, row[key.column], schema)
            cell = cell * key.size(schema) + (silent if place is None else place)
        weights[cell].append(weight)
        value = 1 if want.value is None else row[want.value]
        if slow.counts(want.rows, row) and isinstance(value, int):
            matching[cell] += weight * value
    largest = [(sorted(each, reverse=True) + [0] * want.kept)[: want.kept] for each in weights]
    return [[len(each) for each in weights], [sum(each) for each in weights], matching, largest]


def some_bins(dice: Random, schema: Schema) -> list[Bins]:
    """Two of one base, one of equal weights, one over everybody."""
    base = {"keys": KEYS, "silent": (2, 1), "weight": "weight", "kept": 4}
    return [
        Bins(rows=slow.some_rows(dice, schema, []), value="income", **base),  # type: ignore[arg-type]
        Bins(rows=slow.some_rows(dice, schema, ["job"]), **base),  # type: ignore[arg-type]
        Bins(rows=slow.some_rows(dice, schema, []), keys=KEYS[:1], silent=(0,), value="hours"),
        Bins(rows=Rows(), keys=(), silent=(), weight="weight", kept=2),
    ]


# covers B018 B019 B056 B057 B069 B094
@pytest.mark.parametrize("unit", [("row", 1), ("pid", 2)], ids=["row", "two"])
@pytest.mark.parametrize("kind", SOURCES)
def test_base_cells_hold_what_one_would_add_up(kind: str, unit: tuple[str, int], tmp_path: Path):
    """Missing stratifiers, values and weights, questions not asked, values outside the bounds; 80 people."""
    schema, dice = book(*unit), Random(f"bins {kind} {unit}")
    people, wants = some_people(dice, 80), some_bins(dice, schema)
    with opened(SOURCES[kind](people, tmp_path)) as engine:
        found = engine.tally(schema, wants).bins
    for want in wants:
        assert listed(found[want]) == by_hand(schema, people, want, wants)


# covers T03
def test_no_order_of_rows_and_no_number_of_threads_changes_a_cell(tmp_path: Path):
    schema, dice = book(), Random(8)
    people = some_people(dice, 3000)
    want = some_bins(dice, schema)[0]
    seen = []
    for threads in (1, 2, 4):
        dice.shuffle(people)
        pq.write_table(native(people), tmp_path / "p.parquet", row_group_size=500)
        with opened(open_path(str(tmp_path / "p.parquet")), threads) as engine:
            seen.append(listed(engine.tally(schema, [want]).bins[want]))
    assert seen[0] == seen[1] == seen[2]


def test_empty_tables_have_every_cell_and_nobody_in_it():
    schema, want = book(), Bins(rows=Rows(), keys=KEYS, silent=(0, 0), weight="weight", kept=3)
    with opened(open_frame(native(some_people(Random(1), 1)).slice(0, 0))) as engine:
        table = engine.tally(schema, [want]).bins[want]
    assert not any(np.any(getattr(table, name)) for name in ("count", "total", "matching", "largest"))
    assert len(table.count) == 9 and table.largest.shape == (9, 3)


def wide(top: int) -> Schema:
    columns = {
        "w": {"kind": "integer", "bounds": [0, top], "role": "weight"},
        "y": {"kind": "integer", "bounds": [-(2**53), 2**53]},
    }
    return schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})


# covers T05
def test_sums_that_could_pass_62_bits_are_refused_from_public_numbers():
    """Just below, the largest products still come back exactly; just above, nobody is asked."""
    want = Bins(rows=Rows(), keys=(), silent=(), weight="w", value="y", kept=1)
    check_bins(want, wide(2**22 - 1))
    with pytest.raises(PlanError, match="coarser grid"):
        check_bins(want, wide(2**22))
    top = 2**22 - 1
    rows = pa.table({"w": [top] * 3, "y": [2**53] * 3})
    with opened(open_frame(rows)) as engine:
        table = engine.tally(wide(top), [want]).bins[want]
    assert table.matching.tolist() == [3 * top * 2**53] and table.total.tolist() == [3 * top]


def test_too_many_weights_to_keep_are_refused():
    want = Bins(rows=Rows(), keys=KEYS, silent=(0, 0), weight="weight", kept=2**26)
    with pytest.raises(PlanError, match="fewer"):
        check_bins(want, book())
