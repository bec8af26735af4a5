"""The same bytes before the noise, whichever engine reads: poison rows x column types x repairs x units x lots."""

from copy import deepcopy
from dataclasses import dataclass
from random import Random
from secrets import randbits
from typing import Any

import numpy as np
import pytest

from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Key, Unserved
from tests.engine.conformance.cases import TABLES, book, canonical, repairs, wants_of

ROWS = 150
REPAIRS = ("none", "edits", "lines", "draws", "capped", "rings")
LOTS = {
    "all": None,
    "chance": Lot(key="ab" * 32, first=0, last=2**59, chance=True),
    "rank": Lot(key="cd" * 32, first=10, last=60),
    "column": Lot(key="", column="few", codes=(0, 2)),
}


def compared(remote: Any, local: Any, table: Any, schema: Any, wants: Any, repair: Any, lot: Any) -> None:
    here = local(table).tally(schema, wants, deepcopy(repair), lot)
    there = remote(table).tally(schema, wants, deepcopy(repair), lot)
    assert canonical(there) == canonical(here)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("repair", REPAIRS)
def test_repairs(remote: Any, local: Any, kind: str, repair: str):
    """Every type of column under every repair."""
    dice, schema = Random(f"{kind} {repair}"), book()
    table = TABLES[kind](dice, ROWS)
    if repair == "draws" and remote(table).version.startswith("spark"):
        pytest.skip("Spark draws by keyed digests, with a law of their own: tests/engine/spark")
    wants = wants_of(dice, schema)
    if repair in ("capped", "rings"):
        wants += [Unserved(column="size"), Unserved(column="thirds")]
    compared(remote, local, table, schema, wants, repairs(dice, schema)[repair], None)


@pytest.mark.parametrize("lot", LOTS)
@pytest.mark.parametrize("at_most", [2])
def test_units_and_lots(remote: Any, local: Any, lot: str, at_most: int):
    """Respondents with several rows, some without a name, in pieces."""
    dice, schema = Random(f"{lot} {at_most}"), book("pid", at_most)
    table = TABLES["texts"](dice, ROWS)
    for repair in ("none", "capped"):
        compared(
            remote, local, table, schema, wants_of(dice, schema), repairs(dice, schema)[repair], LOTS[lot]
        )


def test_shuffled_rows_change_nothing(remote: Any):
    dice, schema = Random(3), book()
    table = TABLES["texts"](dice, ROWS)
    wants, repair = wants_of(dice, schema), repairs(dice, schema)["rings"]
    order = dice.sample(range(ROWS), ROWS)
    one, other = (remote(each).tally(schema, wants, repair) for each in (table, table.take(order)))
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize("repair", ["none", "lines", "capped"])
def test_rows_as_cells(remote: Any, local: Any, repair: str):
    """Margins, and those of complete rows alone; of no columns how many rows there are, and of no sets nothing."""
    dice, schema = Random(f"coded {repair}"), book()
    table = TABLES["texts"](dice, ROWS)
    keys = [Key(column="age", starts=(0, 18, 65), silent=True)]
    keys += [Key(column=name, silent=True) for name in ("few", "job", "many")]
    sets = [(0,), (1, 2), (0, 1, 3), (3,), ()]
    found = []
    for open_it in (local, remote):
        with open_it(table).coded(schema, keys, repairs(dice, schema)[repair]) as rows:
            found.append([*rows.count(sets), *rows.complete().count(sets)])
            assert list(rows.count([])) == []
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))


class Chance:
    """Fair bits of the system."""

    def take(self, n: int) -> int:
        return randbits(n)


class Products:
    """How many rows there are, and the sums of the first two columns' cells and of their product."""

    length = 3

    def add(self, block: Any, totals: Any) -> None:
        one, other = block[:2].astype(np.int64)
        totals += [len(one), one.sum(), (one * other).sum()]


class ByWord:
    """A silent cell of the first column, by the word of its row."""

    def fill(self, block: Any, words: Any) -> None:
        block[0] = np.where(block[0] == 4, words % np.uint64(4), block[0])


def test_sums_over_rows_and_rows_drawn_on_this_side(remote: Any, local: Any):
    """Sums are the local ones. Redrawn rows lack nothing, are the same at every pass, and keep what was answered."""
    dice, schema = Random(12), book()
    table = TABLES["texts"](dice, ROWS)
    keys = [Key(column="few", silent=True), Key(column="job", silent=True)]
    with local(table).coded(schema, keys) as here, remote(table).coded(schema, keys) as there:
        assert (there.summed(Products()) == here.summed(Products())).all()
        made, sets = there.redrawn(ByWord(), Chance()), [(0, 1), (1,)]
        expected, one, two = here.count(sets), made.count(sets), made.count(sets)
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert one[0][4].sum() == 0 and (one[1] == expected[1]).all() and (one[0][:4] >= expected[0][:4]).all()


def test_a_filled_row_is_the_same_at_every_pass(remote: Any):
    """Draws are a function of the row's place and a key: counted twice, the tables are the same, and nobody is silent."""

    @dataclass
    class Even:
        place: int
        given: tuple[int, ...]
        table: Any

    dice, schema = Random(8), book()
    keys = [Key(column="few", silent=True)]
    with remote(TABLES["texts"](dice, ROWS)).coded(schema, keys) as rows:
        filled = rows.filled([Even(0, (), np.array([1.0, 1.0, 1.0, 1.0, 0.0]))], Chance())
        (one,), (two,) = filled.count([(0,)]), filled.count([(0,)])
    assert (one == two).all() and one[4] == 0 and one.sum() == ROWS
