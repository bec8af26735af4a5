"""A simulated state of any size, with the truth in hand. Every person in it is made up.

People come in fixed blocks, each with its own random stream. So a seed gives the same people (under the same
NumPy; another may round a dollar differently), a small state is the beginning of a large one, and a state
larger than memory can be written block by block.
`state.codebook.toml` beside this file is the codebook.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reticent.errors import PlanError
from reticent.lab.homes import LEVELS, Array
from reticent.lab.lives import NULL, draw_lives

BLOCK = 1 << 16
BLOCKS_PER_GROUP = 8  # in a file, half a million rows to a row group
CENTS = pa.decimal128(7, 2)
AGE_GROUPS = ((0, 14), (15, 24), (25, 44), (45, 64), (65, 99))

# What a respondent is asked, in the order of the questionnaire; the other columns belong to the design.
ANSWERS = (
    "age",
    "sex",
    "race",
    "marital",
    "relationship",
    "schooling",
    "employment",
    "hours",
    "wage",
    "rent",
)

_TYPES = {"tract": pa.int32(), "age": pa.int16(), "hours": pa.int16(), "wage": pa.int32()}
SCHEMA = pa.schema(
    [("person_id", pa.int64()), ("household", pa.int64())]
    + [
        (name, pa.dictionary(pa.int8(), pa.string()) if name in LEVELS else _TYPES[name])
        for name in ("region", "tract", "stratum", *ANSWERS[:-1])
    ]
    + [("rent", CENTS), ("weight", CENTS)]
)


def codebook() -> str:
    """The state's codebook, as TOML."""
    return files("reticent.lab").joinpath("state.codebook.toml").read_text(encoding="utf-8")


def people(n: int, *, seed: int) -> pa.Table:
    """The first `n` people of the state with this seed. Everybody stands for themselves: the weight is 1."""
    return pa.Table.from_batches(_blocks(n, seed), schema=SCHEMA)


def write_people(path: str | Path, n: int, seed: int) -> None:
    """Write `people(n, seed=seed)` to a Parquet file, holding only a few blocks in memory."""
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        for block in _blocks(n, seed):
            group.append(block)
            if len(group) == BLOCKS_PER_GROUP:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        if group:
            writer.write_table(pa.Table.from_batches(group))


def cents(values: Array) -> pa.Array:
    """Whole hundredths as exact decimals of two digits."""
    # A decimal of 128 bits is the number itself and its sign, low half first.
    halves = np.empty((len(values), 2), dtype="<i8")
    halves[:, 0] = values
    halves[:, 1] = -(values < 0).astype(np.int8)
    return pa.Array.from_buffers(CENTS, len(values), [None, pa.py_buffer(halves)])


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTotals:
    """What an office would know of the state from elsewhere: counts of the whole population."""

    persons: int
    by_age_sex: dict[tuple[str, str], int]
    by_region: dict[str, int]


def known_totals(state: pa.Table) -> KnownTotals:
    """Counts by age group and sex, and by region, of a complete population."""
    lowest = np.array([low for low, _ in AGE_GROUPS])
    group = np.searchsorted(lowest, state["age"].to_numpy(), side="right") - 1
    sex = _codes(state["sex"], LEVELS["sex"])
    region = np.bincount(_codes(state["region"], LEVELS["region"]), minlength=4)
    both = np.bincount(2 * group + sex, minlength=2 * len(lowest)).reshape(-1, 2)
    return KnownTotals(
        persons=state.num_rows,
        by_age_sex={
            (f"{low}-{high}", level): int(both[g, s])
            for g, (low, high) in enumerate(AGE_GROUPS)
            for s, level in enumerate(LEVELS["sex"])
        },
        by_region={level: int(region[r]) for r, level in enumerate(LEVELS["region"])},
    )


def _codes(column: pa.ChunkedArray, levels: tuple[str, ...]) -> Array:
    """Positions of the values among the levels; the column has no nulls."""
    codes: Array = pc.index_in(column.cast(pa.string()), pa.array(levels)).to_numpy()
    return codes


def _blocks(n: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Blocks of people, the last one cut to measure."""
    if n < 0 or seed < 0:
        raise PlanError("a state needs a number of people and a seed, both 0 or more.", field="people")
    for start in range(0, n, BLOCK):
        yield _block(start, seed).slice(0, n - start)


def _block(start: int, seed: int) -> pa.RecordBatch:
    """The block of people that begins after person `start`."""
    person = draw_lives(np.random.default_rng([seed, start // BLOCK]), BLOCK)
    person["person_id"] = np.arange(start + 1, start + BLOCK + 1)
    person["household"] = start + 1 + person["household"]  # a block has fewer homes than people
    columns = [_column(field.name, field.type, person) for field in SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _column(name: str, kind: pa.DataType, person: dict[str, Array]) -> pa.Array:
    """One coded column as Arrow holds it."""
    if name == "weight":
        return cents(np.full(BLOCK, 100))
    values = person[name]
    if name == "rent":
        return cents(values)
    empty = values == NULL
    if name in LEVELS:
        return pa.DictionaryArray.from_arrays(
            pa.array(values.astype(np.int8), mask=empty), list(LEVELS[name])
        )
    return pa.array(values.astype(kind.to_pandas_dtype()), mask=empty)
