"""A simulated atlas of opportunity: people in many small tracts, with the true line of every tract in hand.

Everybody in it is made up. A person has a parents' rank x and an own rank y, both in [0, 1] on a grid of 0.0001; in a
tract y lies about a line whose height at x = 0.25 falls with the tract's share of single parents. Few people of a
tract are asked for a birth in their teens, and few of those say yes; that too goes with the share.
Tracts come in blocks, each with its own random stream, so a small atlas is the beginning of a large one.

How the people of the simulated atlas are drawn: a block of tracts at a time, each from its own random stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.smallcells.points import GridPoints

STATES = 50
BLOCK = 500
STEPS = 10_000  # of both ranks
AT = 0.25
MEDIAN, SPREAD, LARGEST = 101.0, 0.8, 5_000  # of the sizes of tracts, log-normal: 138 people on average
LOOSENESS = 2.4  # of ranks: the smaller, the nearer to the ends
FEWEST, MORE_BIRTHS = 0.02, 0.1  # births without single parents, and how many more where all are single

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tracts:
    """What is true of each tract. `prediction` is the height of its line at 0.25, `births` the rate of births.

    State and share of single parents are public; `people` live there, `asked` of them are asked about a birth.
    """

    state: Whole
    single: Floats
    prediction: Floats
    slope: Floats
    births: Floats
    people: Whole
    asked: Whole

    def first(self, count: int) -> "Tracts":
        """The first tracts alone."""
        return Tracts(**{each.name: getattr(self, each.name)[:count] for each in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TractBlock:
    """Some tracts and their people: ranks as x (STEPS + 1) + y and births as 0 and 1, both sorted in each tract."""

    tracts: Tracts
    ranks: Whole
    births: Whole


def blocks(tracts: int, seed: int) -> Iterator[TractBlock]:
    """Blocks of tracts, the last one cut to measure."""
    if tracts < 1 or seed < 0:
        raise PlanError("an atlas needs a tract, and a seed of 0 or more.", field="tracts")
    better = np.random.default_rng([seed, 0]).normal(0, 0.02, STATES)
    for first in range(0, tracts, BLOCK):
        rng = np.random.default_rng([seed, 1 + first // BLOCK])
        yield _cut(_block(rng, better), tracts - first)


def starts_of(sizes: Whole) -> Whole:
    """Where each tract's people begin, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(sizes)])


def _block(rng: np.random.Generator, better: Floats) -> TractBlock:
    shares = 1 / np.arange(1, STATES + 1) ** 0.7  # a few large states, many small ones
    state = rng.choice(STATES, BLOCK, p=shares / shares.sum())
    single = rng.beta(2, 4, BLOCK)
    people = np.clip(MEDIAN * np.exp(rng.normal(0, SPREAD, BLOCK)), 1, LARGEST).astype(np.int64)
    found = Tracts(
        state=state,
        single=single,
        prediction=np.clip(0.5 - 0.25 * single + better[state] + rng.normal(0, 0.035, BLOCK), 0.2, 0.65),
        slope=np.clip(rng.normal(0.32, 0.08, BLOCK), 0.05, 0.45),
        births=np.minimum(1, (FEWEST + MORE_BIRTHS * single) * rng.gamma(8, 1 / 8, BLOCK)),
        people=people,
        asked=rng.binomial(people, rng.beta(1.5, 13.5, BLOCK)),
    )
    return TractBlock(tracts=found, ranks=_ranks(found, rng), births=_births(found, rng))


def _ranks(tracts: Tracts, rng: np.random.Generator) -> Whole:
    """Everybody's two ranks. The mean of y at x is on the tract's line, but for rounding to the grid."""
    owner = np.repeat(np.arange(BLOCK), tracts.people)
    middle = np.clip(0.62 - 0.45 * tracts.single + rng.normal(0, 0.06, BLOCK), 0.12, 0.88)[owner]
    x = _rank(rng, middle)
    y = _rank(rng, tracts.prediction[owner] + tracts.slope[owner] * (x / STEPS - AT))
    wide = (STEPS + 1) ** 2
    in_order: Whole = np.sort(owner * wide + x * (STEPS + 1) + y) % wide
    return in_order


def _rank(rng: np.random.Generator, mean: Floats) -> Whole:
    """A beta number of this mean, in steps."""
    return np.rint(STEPS * rng.beta(LOOSENESS * mean, LOOSENESS * (1 - mean))).astype(np.int64)


def _births(tracts: Tracts, rng: np.random.Generator) -> Whole:
    events = rng.binomial(tracts.asked, tracts.births)
    owner = np.repeat(np.arange(BLOCK), tracts.asked)
    place = np.arange(len(owner)) - starts_of(tracts.asked)[owner]
    return np.asarray(place >= (tracts.asked - events)[owner], dtype=np.int64)


def _cut(block: TractBlock, tracts: int) -> TractBlock:
    """The first tracts of a block."""
    kept = block.tracts.first(tracts)
    return TractBlock(
        tracts=kept, ranks=block.ranks[: kept.people.sum()], births=block.births[: kept.asked.sum()]
    )


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
