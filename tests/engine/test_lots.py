"""Pieces by a keyed lot: every respondent in exactly one, whatever a plan asks, and each as likely as its share."""

from collections import Counter
from hashlib import sha256
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from reticent.engine.sources.open import open_frame
from reticent.engine.sql.sampling import BITS, Lot
from reticent.engine.wants import Key, Rows, Sum, Table
from reticent.prepare.repair import NO_REPAIR, Edit, Repair
from reticent.schema import Schema
from reticent.schema.bind import Is
from reticent.schema.codebook import schema_from
from tests.engine.test_tally import book, native, opened, some_people

pytestmark = pytest.mark.usefixtures("every_engine")

KEY = "ab" * 32
AGES = Table(rows=Rows(), keys=(Key(column="age", silent=True),))
COLUMNS = {"x": {"kind": "integer", "bounds": [0, 999]}, "y": {"kind": "integer", "bounds": [0, 1]}}
EACH = Table(rows=Rows(), keys=(Key(column="x"),))


def plain(unit: str = "row", at_most: int = 1) -> Schema:
    columns = {**COLUMNS, **({unit: {"kind": "identifier"}} if unit != "row" else {})}
    return schema_from({"survey": {"name": "s", "unit": unit, "at_most": at_most}, "columns": columns})


def pieces(table: pa.Table, schema: Schema, lots: list[Lot], want: Table = EACH, repair: Repair = NO_REPAIR):
    with opened(open_frame(table)) as engine:
        return [engine.tally(schema, [want], repair, lot).tables[want].cells for lot in lots]


def ranks(n: int, sizes: list[int], key: str = KEY) -> list[Lot]:
    ends = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    assert ends[-1] == n
    return [Lot(key=key, first=a, last=b) for a, b in pairwise(ends)]


def chances(parts: int, key: str = KEY) -> list[Lot]:
    ends = [(i << BITS) // parts for i in range(parts + 1)]
    return [Lot(key=key, first=a, last=b, chance=True) for a, b in pairwise(ends)]


def test_every_respondent_is_in_one_piece_of_the_declared_size():
    table = pa.table({"x": list(range(60)), "y": [0] * 60})
    found = pieces(table, plain(), ranks(60, [10, 20, 30]))
    assert [sum(cells) for cells in found] == [10, 20, 30]
    assert [sum(column) for column in zip(*found, strict=True)][:60] == [1] * 60


def test_equal_records_are_dealt_out_like_others():
    """Forty of one kind: a running number tells them apart, and no piece gets them all."""
    table = pa.table({"x": [7] * 40, "y": [1] * 40})
    found = [cells[7] for cells in pieces(table, plain(), ranks(40, [20, 20]))]
    assert found == [20, 20]
    parts = [cells[7] for cells in pieces(table, plain(), chances(4))]
    assert sum(parts) == 40 and max(parts) < 30


def test_all_rows_of_a_respondent_go_together():
    """Three rows each, two kept: sizes count respondents; who has no identifier is one of their own."""
    who = [f"p{i}" for i in range(20) for _ in range(3)] + [None] * 4
    table = pa.table({"x": [i // 3 for i in range(60)] + [900, 901, 902, 903], "y": [0] * 64, "who": who})
    found = pieces(table, plain("who", 2), ranks(24, [6, 18]))
    for cells in found:
        assert set(cells[:20]) <= {0, 2}
    respondents = [sum(count > 0 for count in cells) for cells in found]
    assert respondents == [6, 18]


@pytest.mark.parametrize("unit", [("row", 1), ("pid", 2)])
def test_pieces_do_not_depend_on_the_plan_the_order_or_the_threads(unit):
    """Other wants, an edit, shuffled rows: the same people; the naive twin, cut by place in the file, is not so."""
    schema, dice = book(*unit), Random(3)
    people = some_people(dice, 200)
    lots = chances(3)
    first = pieces(native(people), schema, lots, AGES)
    edit = Repair(edits=(Edit(column="rooms", code=1, when=Is("rooms", "missing"), replaces=False),))
    assert pieces(native(people), schema, lots, AGES, edit) == first
    with opened(open_frame(native(people)), 1) as engine:
        heads = [engine.tally(schema, [Sum(rows=Rows())], NO_REPAIR, lot).statistics for lot in lots]
    assert [each[Sum(rows=Rows())] for each in heads] == [sum(cells) for cells in first]
    dice.shuffle(people)
    assert pieces(native(people), schema, lots, AGES) == first
    naive = [
        pieces(native(people[i::3]), schema, [Lot(key=KEY, first=0, last=10**6)], AGES)[0] for i in range(3)
    ]
    assert naive != first


def test_another_respondent_leaves_the_lots_of_the_others_alone():
    """One of fifty replaced: by chance, nobody else changes piece."""
    rows = list(range(50))
    before = pieces(pa.table({"x": rows, "y": [0] * 50}), plain(), chances(5))
    after = pieces(pa.table({"x": [999, *rows[1:]], "y": [0] * 50}), plain(), chances(5))
    assert [cells[1:50] for cells in before] == [cells[1:50] for cells in after]


def test_who_has_no_identifier_is_numbered_among_their_equals_alone():
    """One of them behind three with the same codes: the lot of the first such record, under twelve keys. The naive twin
    counts all four, and the record is in another piece than alone."""
    everybody = pa.table({"x": [7] * 4, "y": [0] * 4, "who": ["a", "b", "c", None]})
    named, alone = everybody.slice(0, 3), everybody.slice(3)
    schema, twin = plain("who"), 0
    for trial in range(12):
        lots = chances(4, f"{trial:064x}")
        whole, some, one = ([c[7] for c in pieces(rows, schema, lots)] for rows in (everybody, named, alone))
        assert [a - b for a, b in zip(whole, some, strict=True)] == one == by_label(f"{trial:064x}|r|7|0||1")
        twin += by_label(f"{trial:064x}|r|7|0||4") != one
    assert twin > 0


def by_label(text: str) -> list[int]:
    """Which of four pieces by chance the label is in."""
    place = int(sha256(text.encode()).hexdigest()[:15], 16) * 4 >> BITS
    return [int(piece == place) for piece in range(4)]


def test_every_record_is_as_likely_in_every_piece():
    """Eight records, 400 keys, pieces of 2 and 6: each is in the first 100 times on average. 51 to 149 for all of
    them fails with chance below 8 x 2e-8; a cut without a key gives 0 or 400."""
    table = pa.table({"x": list(range(8)), "y": [0] * 8})
    seen: Counter[int] = Counter()
    with opened(open_frame(table)) as engine:
        for trial in range(400):
            lot = Lot(key=f"{trial:064x}", first=0, last=2)
            cells = engine.tally(plain(), [EACH], NO_REPAIR, lot).tables[EACH].cells
            seen.update(i for i in range(8) if cells[i])
    assert all(51 <= seen[i] <= 149 for i in range(8))


def test_the_key_is_in_no_repr():
    assert KEY not in repr(Lot(key=KEY, first=0, last=1))


def changed(before: list[list[int]], after: list[list[int]]) -> list[tuple[int, int]]:
    """For every piece, how many records it loses and how many it gains."""
    pairs = [list(zip(a, b, strict=True)) for a, b in zip(before, after, strict=True)]
    return [(sum(max(0, a - b) for a, b in each), sum(max(0, b - a) for a, b in each)) for each in pairs]


def one_replaced(lots: list[Lot], values: range) -> list[list[tuple[int, int]]]:
    """What happens to every piece, under one known key, when one record of forty, in the first piece, becomes another."""
    rows = list(range(40))
    before = pieces(pa.table({"x": rows, "y": [0] * 40}), plain(), lots)
    rows.remove(next(x for x in rows if before[0][x]))
    found = []
    for value in values:
        after = pieces(pa.table({"x": [value, *rows], "y": [0] * 40}), plain(), lots)
        found.append(changed(before, after))
    return found


def test_with_the_key_known_one_replaced_answer_changes_many_pieces_of_fixed_size():
    """The twin of 'one respondent is in one piece only': given the key, one record is exchanged in each piece between
    the old lot and the new one. So the claim has to name the key."""
    found = one_replaced(ranks(40, [8] * 5), range(900, 912))
    assert all(each in ((0, 0), (1, 1)) for one in found for each in one)
    touched = [sum(each == (1, 1) for each in one) for one in found]
    assert max(touched) >= 4 and touched != [1] * len(touched)


def test_with_the_key_known_one_replaced_answer_changes_two_pieces_by_chance():
    """And one who comes changes one, which therefore needs no secret."""
    found = one_replaced(chances(5), range(900, 906))
    assert {tuple(sorted(each for each in one if each != (0, 0))) for one in found} <= {
        ((0, 1), (1, 0)),
        ((1, 1),),
    }
    rows = list(range(40))
    before = pieces(pa.table({"x": rows, "y": [0] * 40}), plain(), chances(5))
    after = pieces(pa.table({"x": [*rows, 950], "y": [0] * 41}), plain(), chances(5))
    assert sorted(changed(before, after)) == [(0, 0)] * 4 + [(0, 1)]
