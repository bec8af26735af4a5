"""The same integers as from local rows, to the last digit, in any order and in any number of partitions; and no more of them
reach this side than the codebook allows."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.open import open_engine
from reticent.engine.sources.open import open_frame
from reticent.engine.sql.blocks import FEW_CELLS, cover, covering
from reticent.engine.sql.keyed import normal_table
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Aggregate, Key, Rows, Table, Unserved
from reticent.errors import PlanError
from reticent.prepare.repair import CappedDonors, Default, Donors, Edit, Match, MatchLevel, Repair
from reticent.schema import Schema
from reticent.schema.bind import CodeIn, Is
from tests.engine import test_bins, test_coded, test_points, test_predict, test_tally
from tests.engine.slow import some_sum, some_table


def people(seed: int, count: int = 150) -> pa.Table:
    some = test_tally.some_people(Random(seed), count)
    return test_tally._arrow(some, numbers="exact", words=pa.string(), truths=pa.bool_())


def wants_of(seed: int, schema: Schema) -> list[Aggregate]:
    dice = Random(seed)
    found: list[Aggregate] = [
        *(some_sum(dice, schema) for _ in range(5)),
        *(some_table(dice, schema) for _ in range(4)),
    ]
    return [*found, *test_bins.some_bins(dice, schema)[:2], *test_points.some_points(dice, schema)[:1]]


def told(found: Any) -> list[Any]:
    """All numbers of a tally."""
    parts = [list(found.statistics.sums.values()), [table.cells for table in found.tables.values()]]
    parts += [test_bins.listed(table) for table in found.bins.values()]
    parts += [test_points.listed(table) for table in found.points.values()]
    return [*parts, dict(found.unserved), *([told(found.fractions)] if found.fractions else [])]


def capped(rings: int) -> Repair:
    levels = (
        MatchLevel(on=(Match(column="region"), Match(column="vote")), serve=2),
        MatchLevel(on=(Match(column="region"),), serve=1),
        MatchLevel(serve=1),
    )
    group = CappedDonors(
        columns=("age", "rooms"), levels=levels, defaults=(Default(code=40), Default(code=1))
    )
    edit = Edit(column="vote", when=CodeIn("region", ((0, 0),)), code=1)
    return Repair(edits=(edit,), capped=(group,), rings=rings, key="k")


@pytest.mark.parametrize(("unit", "repair"), [(("row", 1), Repair()), (("pid", 2), capped(2))])
def test_tallies_are_those_of_local_rows_in_any_partitions(
    engine_on: Any, unit: tuple[str, int], repair: Repair
):
    """1, 2 and 8 partitions, the rows shuffled in between."""
    table, schema = people(4), test_tally.book(*unit)
    wants = [*wants_of(7, schema), *([Unserved(column="age")] if repair.capped else [])]
    local = open_engine(open_frame(table), threads=1)
    expected = told(local.tally(schema, wants, repair))
    for partitions in (1, 2, 8):
        order = np.random.default_rng(partitions).permutation(len(table))
        engine = engine_on(table.take(pa.array(order)), partitions)
        assert told(engine.tally(schema, wants, repair)) == expected
    local.close()


def test_draws_are_a_function_of_the_rows_and_the_key(engine_on: Any):
    """The same in any partitions, the next for another key, and with the law that is said: quantiles of the normal."""
    people = [{"age": 30, "job": 1, "hours": hours, "pay": None} for hours in range(40) for _ in range(25)]
    table, found = test_predict.arrow(people), []
    line = test_predict.line("pay", 1)
    flat = replace(line, base=50 << 32, terms=(), spread=10 << 16)
    for seed, partitions in ((1, 1), (1, 8), (2, 2)):
        numbers = np.random.default_rng(seed)
        drawn = replace(flat, draw=lambda n, numbers=numbers: numbers.integers(0, 2**19, n).astype(np.int32))
        tally = engine_on(table, partitions).tally(
            test_predict.SCHEMA, test_predict.WANTS, Repair(lines=(drawn,))
        )
        found.append([tally.statistics[want] for want in test_predict.WANTS])
    assert found[0] == found[1] != found[2]
    for (
        total,
        _,
        squares,
        _,
    ) in found:  # 1000 codes of mean 49.5 (a floor) and deviation 10: five standard errors
        assert abs(total / 1000 - 49.5) < 5 * 10 / 1000**0.5
        assert abs(squares / 1000 - 49.5**2 - 100) < 5 * 1000 / 1000**0.5
    middle = normal_table()["z"].to_numpy() / 2**16
    assert abs(middle.mean()) < 1e-9 and 0.9999 < middle.var() < 1 and len(set(middle)) > 2**15


def test_pieces_are_those_of_local_rows(engine_on: Any):
    table, schema = people(5), test_tally.book("pid", 2)
    wants = wants_of(8, schema)[:6]
    engine, local = engine_on(table), open_engine(open_frame(table), threads=1)
    lots = (
        Lot(key="k", first=20, last=60),
        Lot(key="k", last=2**59, chance=True),
        Lot(key="", column="region", codes=(1,)),
    )
    for lot in lots:
        assert told(engine.tally(schema, wants, lot=lot)) == told(local.tally(schema, wants, lot=lot))
    assert engine.fingerprint(schema) == local.fingerprint(schema)
    local.close()


def test_rows_as_cells_are_counted_where_they_are(engine_on: Any):
    """Margins, those of complete rows, and a pass in slices."""
    table, schema = people(6), test_tally.book()
    keys = test_coded.keys_of(schema)
    sets = [*test_coded.all_sets(len(keys))]
    local = open_engine(open_frame(table), threads=1)
    with local.coded(schema, keys) as here, engine_on(table).coded(schema, keys) as there:
        for one, other in ((here, there), (here.complete(), there.complete())):
            pairs = zip(one.count(sets), other.count(sets), strict=True)
            assert all(a.shape == b.shape and (a == b).all() for a, b in pairs)
        batches = list(there.batches(40, Fair()))
        assert [each.shape[1] for each in batches] == [40, 40, 40, 30]
        rows = [tuple(row) for batch in batches for row in batch.T.tolist()]
        assert sorted(rows) == sorted(
            tuple(row) for batch in here.batches(64, Fair()) for row in batch.T.tolist()
        )
        assert rows != sorted(rows)
    local.close()


class Fair:
    """Bits that are the same in every run."""

    def take(self, n: int) -> int:
        return Random(n).getrandbits(n)


def test_no_more_reaches_this_side_than_the_codebook_allows(engine_on: Any):
    """Ten times the rows send no more cells than declared ones. Points by row, the naive twin, send ten times as many."""
    schema = test_tally.book()
    wants = [want for want in wants_of(9, schema) if not isinstance(want, Table)]
    tables = [
        Table(rows=Rows(), keys=(Key(column=a, silent=True), Key(column="job", silent=True)))
        for a in ("region", "vote")
    ]
    blocks = covering(tables, schema)
    cells = sum(int(np.prod([key.size(schema) + 1 for key in block.keys])) for block in blocks)
    places = sum(want.size(schema) for want in wants if hasattr(want, "axes"))
    kept = sum(want.size(schema) * (6 + want.kept) for want in wants if hasattr(want, "kept"))
    most = 3 * cells + 2 * places + kept + len(wants)
    for count in (150, 1500):
        engine = engine_on(people(3, count))
        engine.tally(schema, [*wants, *tables], replace(capped(1)))
        assert 0 < sum(engine.taken) <= 4 * most
        assert (
            sum(engine.lots) <= count
        )  # beside them records once, in lots that conformance/test_lots.py measures


def test_blocks_hold_every_set_and_stay_small():
    """105 pairs of fifteen columns in a few blocks; a set that is larger alone has its own."""
    sizes = [3, 2, 9, 7, 5, 4, 8, 12, 6, 3, 2, 15, 10, 4, 5]
    pairs = [(a, b) for a in range(15) for b in range(a)]
    blocks = cover(pairs, lambda place: sizes[place])
    assert sorted(member for _, members in blocks for member in members) == list(range(105))
    assert all(set(pairs[member]) <= set(keys) for keys, members in blocks for member in members)
    assert all(np.prod([sizes[key] for key in keys]) <= FEW_CELLS for keys, _ in blocks) and len(blocks) <= 25
    (alone,) = cover([("vast", "wide")], lambda name: 2**10)
    assert alone == (["vast", "wide"], [0])


def test_what_cannot_be_done_is_refused_by_name_before_a_row_is_read(engine_on: Any):
    engine, schema = engine_on(people(1)), test_tally.book()
    donors = Repair(donors=(Donors(column="age", near=(Match(column="region"),), defaults=(40,)),), key="k")
    wanted = [Table(rows=Rows(where=Is("age", "answered")), keys=(Key(column="region"),))]
    for refusing in (engine, engine.stand_in()):
        with pytest.raises(PlanError, match="donors are capped"):
            refusing.tally(schema, wanted, donors)
        with pytest.raises(PlanError, match="donors are capped"), refusing.coded(schema, (), donors):
            pass
    assert engine.taken == []
