"""A simulated atlas of opportunity: people in many small tracts, with the true line of every tract in hand.

Everybody in it is made up. A person has a parents' rank x and an own rank y, both in [0, 1] on a grid of 0.0001; in a
tract y lies about a line whose height at x = 0.25 falls with the tract's share of single parents. Few people of a
tract are asked for a birth in their teens, and few of those say yes; that too goes with the share.
Tracts come in blocks, each with its own random stream, so a small atlas is the beginning of a large one.
"""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from reticent.lab.tracts import BLOCK, STEPS, TractBlock, Tracts, blocks, starts_of
from reticent.smallcells.points import GridPoints

TRACTS = 73_000  # with ten million people
BLOCKS_PER_GROUP = 8  # in a file, half a million people to a row group
SCHEMA = pa.schema(
    [("tract", pa.int32()), ("parent_rank", pa.float64()), ("child_rank", pa.float64()), ("birth", pa.int8())]
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atlas:
    """The truth, everybody's two ranks as points, and for those who were asked whether there was a birth."""

    tracts: Tracts
    ranks: GridPoints
    births: GridPoints

    def events(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """How many births each tract has."""
        return np.diff(starts_of(self.births.y)[self.births.starts])


def codebook(tracts: int = TRACTS) -> str:
    """The codebook of an atlas, as TOML."""
    ranks = "".join(
        f'\n[columns.{name}]\nkind = "decimal"\nbounds = [0, 1]\ngrid = "0.0001"\n'
        for name in ("parent_rank", "child_rank")
    )
    return (
        "# The codebook of the simulated atlas. Every person it describes is made up.\n"
        '[survey]\nname = "atlas"\nunit = "row"\n'
        f'\n[columns.tract]\nkind = "integer"\nbounds = [1, {tracts}]\n{ranks}'
        '\n[columns.birth]\nkind = "integer"\nbounds = [0, 1]\n'
    )


def atlas(tracts: int = TRACTS, *, seed: int) -> Atlas:
    """The first `tracts` tracts of the atlas with this seed."""
    parts = list(blocks(tracts, seed))
    names = [each.name for each in fields(Tracts)]
    truth = Tracts(**{name: np.concatenate([getattr(part.tracts, name) for part in parts]) for name in names})
    x, y = np.divmod(np.concatenate([part.ranks for part in parts]), STEPS + 1)
    births = np.concatenate([part.births for part in parts])
    return Atlas(
        tracts=truth,
        ranks=GridPoints(starts=starts_of(truth.people), x=x, y=y, x_steps=STEPS, y_steps=STEPS),
        births=GridPoints(
            starts=starts_of(truth.asked), x=np.zeros_like(births), y=births, x_steps=1, y_steps=1
        ),
    )


def write_people(path: str | Path, tracts: int = TRACTS, *, seed: int) -> None:
    """The same people in a Parquet file, a few blocks at a time, each block in no order."""
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        for number, block in enumerate(blocks(tracts, seed)):
            group.append(_rows(block, number * BLOCK, np.random.default_rng([seed, 1 + number, 1])))
            if len(group) == BLOCKS_PER_GROUP:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))


def _rows(block: TractBlock, before: int, rng: np.random.Generator) -> pa.RecordBatch:
    """The people of a block, shuffled; whoever was not asked has no answer on births."""
    tracts = block.tracts
    owner = np.repeat(np.arange(len(tracts.people)), tracts.people)
    # Any of a tract's people may be the ones who are asked: ranks are put in a drawn order before the first are taken.
    ranks = block.ranks[np.lexsort((rng.random(len(owner)), owner))]
    is_asked = np.arange(len(owner)) - starts_of(tracts.people)[owner] < tracts.asked[owner]
    birth = np.zeros(len(owner), dtype=np.int8)
    birth[is_asked] = block.births
    mixed = rng.permutation(len(owner))
    x, y = np.divmod(ranks[mixed], STEPS + 1)
    columns = [
        pa.array((before + 1 + owner[mixed]).astype(np.int32)),
        pa.array(x / STEPS),
        pa.array(y / STEPS),
        pa.array(birth[mixed], mask=~is_asked[mixed]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
