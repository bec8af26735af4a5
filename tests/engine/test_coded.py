"""Rows held as cells: tables are what one would count by hand, and a row is mapped by itself."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine import coded
from reticent.engine.coded import LocalCodedRows, shuffled
from reticent.engine.sources.open import open_frame
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Key, Rows, Table
from reticent.errors import EngineError, PlanError
from reticent.prepare.repair import Donors, Edit, RegressionLine, Repair, Term
from reticent.schema import Schema
from reticent.schema.bind import MISSING, STRUCTURAL, CodeIn
from reticent.schema.codebook import schema_from
from reticent.synth.base import Conditional
from reticent.synth.domain import domain_of
from tests.engine import slow
from tests.engine.opening import open_any
from tests.engine.test_tally import book, native, some_people

pytestmark = pytest.mark.usefixtures("every_engine")

COLUMNS = ("region", "rooms", "age", "job", "hours", "income")


class Replayed:
    """Bits of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)

    def take(self, n: int) -> int:
        return self.dice.getrandbits(n) if n else 0


def keys_of(schema: Schema, columns: Sequence[str] = COLUMNS, bins: int = 4) -> tuple[Key, ...]:
    return tuple(axis.key for axis in domain_of(schema, columns, bins=bins).axes)


def cells_by_hand(schema: Schema, rows: Sequence[slow.Row], keys: Sequence[Key]) -> list[tuple[int, ...]]:
    """Every row's cells, one at a time."""

    def cell(key: Key, code: object) -> int:
        if code is MISSING or code is STRUCTURAL:
            return key.answers(schema) + (code is STRUCTURAL)
        low = schema.coded[key.column].low
        return sum(code >= start for start in key.starts) - 1 if key.starts else code - low

    return [tuple(cell(key, row[key.column]) for key in keys) for row in rows]


def table_by_hand(
    cells: Sequence[tuple[int, ...]], places: Sequence[int], shape: Sequence[int]
) -> np.ndarray:
    table = np.zeros(shape, np.int64)
    for place, count in Counter(tuple(row[p] for p in places) for row in cells).items():
        table[place] = count
    return table


def all_sets(width: int) -> list[tuple[int, ...]]:
    """Every set of up to three columns, one in reverse, and everybody."""
    return [(), *(s for k in (1, 2, 3) for s in combinations(range(width), k)), (4, 1)]


@pytest.mark.parametrize(("unit", "at_most"), [("row", 1), ("pid", 1), ("pid", 2)])
def test_tables_are_what_one_would_count_by_hand(unit: str, at_most: int):
    """All tables of up to three columns, universes and identifiers included, silence and unasked told apart."""
    schema, people = book(unit, at_most), some_people(Random(1), 200)
    keys = keys_of(schema)
    clean = slow.clean(schema, people, schema.in_universe_order)
    cells = cells_by_hand(schema, clean, keys)
    sizes = [key.size(schema) for key in keys]
    engine = open_any(open_frame(native(people)))
    with engine.coded(schema, keys) as held:
        found = held.count(all_sets(len(keys)))
    for places, table in zip(all_sets(len(keys)), found, strict=True):
        assert (table == table_by_hand(cells, places, [sizes[p] for p in places])).all()
    engine.close()


def test_tables_agree_with_grouping_sets_after_edits_and_in_a_piece():
    """The other road through the engine: the same repair, the same lot, SQL's own grouping."""
    schema, people = book(), some_people(Random(2), 300)
    repair = Repair(edits=(Edit(column="rooms", code=2, when=CodeIn("age", ((0, 15),)), replaces=False),))
    lot = Lot(key="k", first=0, last=2**59, chance=True)
    keys = keys_of(schema)
    engine = open_any(open_frame(native(people)))
    want = Table(rows=Rows(), keys=keys[1:4])
    tallied = engine.tally(schema, [want], repair, lot).tables[want].cells
    with engine.coded(schema, keys, repair, lot) as held:
        (table,) = held.count([(1, 2, 3)])
    assert table.ravel().tolist() == list(tallied) and 0 < table.sum() < 300
    engine.close()


def test_lines_fill_gaps_before_cells_are_counted():
    """With and without draws; a row's draws are made once, so tables of one column agree."""
    schema, people = book(), some_people(Random(3), 100)
    keys = keys_of(schema, ("age", "rooms"))
    low, high = schema.coded["age"].low, schema.coded["age"].high
    term = Term(column="rooms", slope=1 << 32, low=0, high=2, gap=1)
    line = RegressionLine(column="age", low=low, high=high, base=20 << 32, terms=(term,))
    drawn = RegressionLine(
        column="age",
        low=low,
        high=high,
        base=20 << 32,
        terms=(term,),
        spread=1 << 20,
        draw=lambda n: np.arange(n, dtype=np.int32),
    )
    engine = open_any(open_frame(native(people)))
    for each in (line, drawn):
        with engine.coded(schema, keys, Repair(lines=(each,))) as held:
            both, age = held.count([(0, 1), (0,)])
        assert age[4] == 0 and (both.sum(axis=1) == age).all() and age.sum() == 100
    engine.close()


def blocks(rows: np.ndarray, sizes: Sequence[int], silences: Sequence[int], **given: int) -> LocalCodedRows:
    cut = [np.ascontiguousarray(part.T) for part in np.array_split(rows, given.pop("blocks", 3))]
    return LocalCodedRows(sizes=sizes, silences=silences, blocks=cut, **given)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_threads_and_blocks_change_nothing(kind: type):
    """20,000 rows, more than one stretch, columns of up to 300 cells where two bytes hold them."""
    sizes = (5, 300 if kind is np.uint16 else 200, 3)
    dice = np.random.default_rng(4)
    rows = np.column_stack([dice.integers(0, size, 20_000) for size in sizes]).astype(kind)
    sets = [(), (0,), (0, 1), (1, 0), (2, 1, 0)]
    for threads, parts in ((1, 1), (2, 3), (3, 2)):
        found = blocks(rows, sizes, (4, 2, 2), threads=threads, blocks=parts).count(sets)
        for places, table in zip(sets, found, strict=True):
            whole = (
                np.ravel_multi_index(rows[:, places].T, [sizes[p] for p in places])
                if places
                else rows[:, 0] * 0
            )
            assert (table.ravel() == np.bincount(whole, minlength=table.size)).all()


def test_wide_columns_take_two_bytes():
    """A column of 400 levels: a byte would wrap, and level 300 would be counted as level 44."""
    levels = [f"l{i}" for i in range(400)]
    schema = schema_of(
        wide={"kind": "categorical", "levels": levels}, two={"kind": "integer", "bounds": [0, 1]}
    )
    frame = pa.table({"wide": ["l300", "l44", None], "two": [0, 1, 1]})
    engine = open_any(open_frame(frame))
    with engine.coded(schema, keys_of(schema, ("wide", "two"))) as held:
        (table,) = held.count([(0, 1)])
    assert table[300, 0] == table[44, 1] == table[400, 1] == 1 and table.sum() == 3
    engine.close()


def schema_of(**columns: dict[str, object]) -> Schema:
    return schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns})


TINY = np.array(
    [(0, 0), (1, 2), (2, 1), (2, 2), (0, 1), (1, 3)], np.uint8
)  # silence: 2 and 2; 3 is not asked
SIZES, SILENCES = (3, 4), (2, 2)
FILLS = (
    Conditional(place=0, given=(), table=np.array([0.25, 0.75, 0.0])),
    Conditional(place=1, given=(0,), table=np.array([[0.5, 0.5, 0, 0], [0.0, 1.0, 0, 0], [1.0, 0, 0, 0]])),
)


def test_complete_rows_have_no_silent_cell_and_may_be_unasked():
    held = blocks(TINY, SIZES, SILENCES)
    (table,) = held.complete().count([(0, 1)])
    assert table.sum() == 3 and table[0, 0] == table[0, 1] == table[1, 3] == 1


def test_one_record_moves_one_cell_of_every_table():
    """Every row removed in turn; of complete and of filled rows too, the bits of the others as they are."""
    sets = [(), (0,), (1,), (0, 1)]
    for gone in range(len(TINY)):
        left = np.delete(TINY, gone, axis=0)
        for way in ("as they are", "complete", "filled"):
            more, fewer = (_made(rows, way, skip) for rows, skip in ((TINY, None), (left, gone)))
            for a, b in zip(more.count(sets), fewer.count(sets), strict=True):
                assert (a >= b).all() and (a - b).sum() == (
                    1 if way != "complete" or _whole(TINY[gone]) else 0
                )


def _whole(row: np.ndarray) -> bool:
    return all(cell != silent for cell, silent in zip(row, SILENCES, strict=True))


def _made(rows: np.ndarray, way: str, gone: int | None) -> LocalCodedRows:
    held = LocalCodedRows(
        sizes=SIZES, silences=SILENCES, blocks=[np.ascontiguousarray(row[:, None]) for row in rows]
    )
    if way == "filled":
        return held.filled(FILLS, ByRow(len(TINY), gone))
    return held.complete() if way == "complete" else held


@dataclass
class ByRow:
    """Bits that belong to a row's place in the whole table: one row for each block, two fills for each row."""

    rows: int
    gone: int | None
    asked: int = -1

    def take(self, n: int) -> int:
        self.asked += 1
        row, fill = divmod(self.asked, len(FILLS))
        row += self.gone is not None and row >= self.gone
        return Random(f"{row}/{fill}").getrandbits(n) if n else 0


def test_fills_have_their_law_and_never_draw_what_has_no_chance():
    """40,000 silent cells; each share within 6 standard deviations: a false alarm below 1e-7. Others stay."""
    rows = np.repeat(TINY, 20_000, axis=0)
    both, first = blocks(rows, SIZES, SILENCES).filled(FILLS, Replayed(5)).count([(0, 1), (0,)])
    assert both[2].sum() == 0 and both[:, 2].sum() == 0
    assert both[1, 3] == 20_000
    # (2, 1) and (2, 2) were silent in the first column, and (1, 2) in the second, whose line gives 1 for sure
    drawn = first[0] - 40_000
    assert abs(drawn - 10_000) < 6 * (40_000 * 3 / 16) ** 0.5
    assert both[1, 0] == 0


def test_a_fill_sees_the_cells_that_were_filled_before_it():
    """Fills in the other order look at a silent cell: another line, and another law."""
    rows = np.tile(np.array([[2, 2]], np.uint8), (1_000, 1))
    later = blocks(rows, SIZES, SILENCES).filled(FILLS[::-1], Replayed(6)).count([(1,)])[0]
    assert later.tolist() == [1_000, 0, 0, 0]  # the line of a silent first column


class Naive(LocalCodedRows):
    """The shipped mistake: a missing cell counted as the first category."""

    def count(self, sets):
        zeroed = [
            np.where(block == np.array(SILENCES)[:, None], 0, block).astype(np.uint8) for block in self._held
        ]
        return LocalCodedRows(sizes=SIZES, silences=SILENCES, blocks=zeroed).count(sets)


def test_silence_is_never_the_first_answer():
    """The naive twin gives the first level people who said nothing."""
    honest = blocks(TINY, SIZES, SILENCES).count([(0,)])[0]
    naive = Naive(sizes=SIZES, silences=SILENCES, blocks=[np.ascontiguousarray(TINY.T)]).count([(0,)])[0]
    assert honest.tolist() == [2, 2, 2] and naive.tolist() != honest.tolist()


def test_nothing_of_the_rows_is_told_and_all_is_forgotten():
    """No repr, no error text; what was made from the rows goes with them."""
    schema, people = book(), some_people(Random(7), 50)
    engine = open_any(open_frame(native(people)))
    with engine.coded(schema, keys_of(schema)) as held:
        whole = held.complete()
        assert "uint8" not in repr(held) and "[" not in repr(held) and not hasattr(held, "__len__")
    for gone in (held, whole):
        with pytest.raises(EngineError) as told:
            gone.count([(0,)])
        assert str(told.value) == "the rows are no longer held; count within the engine's own block"
    with pytest.raises(PlanError):
        blocks(TINY, SIZES, SILENCES).filled([Conditional(place=0, given=(), table=np.ones(2))], Replayed(1))
    engine.close()


class Filled:
    """Says every row's first cell is 1, whatever it was."""

    def fill(self, block: np.ndarray, words: np.ndarray) -> None:
        block[0] = 1


def test_of_rows_filled_again_and_again_two_copies_are_held_and_all_are_forgotten():
    """Twelve fills in turn, as of twelve columns; the naive twin keeps each copy until the last, and holds twelve."""
    cells = np.zeros((8, 50_000), np.uint8)

    def peak(kept: list[LocalCodedRows] | None) -> float:
        first = rows = LocalCodedRows(sizes=(3,) * 8, silences=(2,) * 8, blocks=[cells])
        tracemalloc.start()
        try:
            for _ in range(12):
                rows = rows.redrawn(Filled(), Replayed(1))
                if kept is not None:
                    kept.append(rows)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert rows.count([(0,)])[0].tolist() == [0, 50_000, 0]
        first.close()
        for gone in (first, rows, *(kept or ())):
            with pytest.raises(EngineError, match="no longer held"):
                gone.count([(0,)])
        return most / cells.nbytes

    assert peak(None) < 6  # the words of a fill are eight bytes a row, twice over for a moment
    assert peak([]) > 12


def test_what_cannot_be_coded_is_refused_before_a_row_is_read():
    """Donors, keys without a cell for silence, too many cells, no column."""
    schema = book()
    engine = open_any(open_frame(native(some_people(Random(8), 5))))
    engine._connection.close()  # whoever reads a row now, fails otherwise
    donors = Repair(donors=(Donors(column="income", near=(), defaults=(0,)),))
    wide = schema_of(long={"kind": "integer", "bounds": [0, 70_000]})
    for given in (
        (schema, keys_of(schema), donors),
        (schema, (Key(column="age"),), Repair()),
        (schema, (), Repair()),
        (wide, (Key(column="long", silent=True),), Repair()),
    ):
        with pytest.raises(PlanError), engine.coded(*given):
            pass
    many = LocalCodedRows(sizes=(2**14,) * 2, silences=(0, 0), blocks=[])
    with pytest.raises(PlanError, match="cells at once"):
        many.count([(0, 1)])


def rows_in(batches: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return [tuple(row) for batch in batches for row in batch.T.tolist()]


@pytest.mark.parametrize(("size", "parts"), [(1, 3), (7, 3), (100, 1), (1_000, 4)])
def test_batches_hold_every_row_once_in_an_order_of_the_bits(size: int, parts: int):
    """100 rows from several blocks; the same bits give the same order whatever the cells, other bits another."""
    rows = np.column_stack([np.arange(100), np.arange(100) % 7]).astype(np.uint8)
    held = blocks(rows, (100, 7), (0, 0), blocks=parts)
    found = list(held.batches(size, Replayed(1)))
    assert [batch.shape[1] for batch in found[:-1]] == [size] * (len(found) - 1)
    assert sorted(rows_in(found)) == sorted(map(tuple, rows.tolist())) and len(found) == -(-100 // size)
    other = blocks(rows[::-1], (100, 7), (0, 0), blocks=1).batches(size, Replayed(1))
    assert [row[0] for row in rows_in(list(other))] == [99 - row[0] for row in rows_in(found)]
    assert rows_in(list(held.batches(size, Replayed(2)))) != rows_in(found)


def test_every_order_of_batches_is_as_likely():
    """24 orders of four rows, 4,800 seeds: 200 each, within 6 standard deviations; a false alarm below 5e-8."""
    held = blocks(np.arange(4, dtype=np.uint8)[:, None], (4,), (0,))
    seen = Counter(tuple(rows_in(list(held.batches(2, Replayed(seed))))) for seed in range(4_800))
    assert len(seen) == 24 and max(abs(times - 200) for times in seen.values()) < 6 * 200**0.5


def test_equal_keys_are_drawn_anew():
    """Sorted as they are, equal keys would keep the order of the file."""

    class Tied:
        words = [2**64 - 1] * 3 + [3, 2, 1]

        def take(self, n: int) -> int:
            some, self.words = self.words[: n // 64], self.words[n // 64 :]
            return int.from_bytes(b"".join(word.to_bytes(8, "little") for word in some))

    assert shuffled(3, Tied()).tolist() == [2, 1, 0]


def test_a_record_more_changes_two_batches_at_most(monkeypatch: pytest.MonkeyPatch):
    """All 120 orders of five records, batches of two: it stands for one record, which the last batch then has. That each
    order of the other four comes up five times makes it a coupling. The naive one leaves the record out, and all behind
    it move up."""
    rows, orders = np.arange(5, dtype=np.uint8)[:, None], Counter[tuple[int, ...]]()

    def batches(order: Sequence[int]) -> list[set[int]]:
        monkeypatch.setattr(coded, "shuffled", lambda n, bits: np.array(order))
        found = blocks(rows, (5,), (0,)).batches(2, Replayed(0))
        return [set(batch.ravel().tolist()) for batch in found] + [set[int]()] * 2

    farthest = 0
    for order in permutations(range(5)):
        left = [order[-1] if row == 4 else row for row in order[:-1]]
        orders[tuple(left)] += 1
        pairs = list(zip(batches(order), batches(left), strict=False))
        changed = [pair for pair in pairs if pair[0] != pair[1]]
        assert len(changed) <= 2 and all(len(a - b) <= 1 and len(b - a) <= 1 for a, b in changed)
        naive = zip(batches(order), batches([row for row in order if row != 4]), strict=False)
        farthest = max(farthest, sum(a != b for a, b in naive))
    assert set(orders.values()) == {5} and farthest == 3


def test_batches_are_refused_or_end_with_the_rows():
    held = blocks(TINY, SIZES, SILENCES)
    with pytest.raises(PlanError, match="1 or more"):
        held.batches(0, Replayed(1))
    left = held.batches(2, Replayed(1))
    next(left)
    held.close()
    with pytest.raises(EngineError, match="no longer held"):
        next(left)
    assert list(LocalCodedRows(sizes=(2,), silences=(0,), blocks=[]).batches(3, Replayed(1))) == []
