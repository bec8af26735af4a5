"""A simulated survey for donors: six matching attributes in 57,600 declared cells, a tenth of incomes missing."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.people import OUT
from reticent.plan.capped import ladder_of, levels_of
from reticent.prepare.repair import CappedDonors, Default, Donors, Match, Repair
from reticent.schema import Schema
from reticent.schema.codebook import schema_from

SEED, CHUNK, MISSING = 2026, 1_000_000, 0.1
STARTS = (0, 18, 25, 35, 45, 55, 65, 75, 85)
LEVELS = {
    "sex": ["female", "male"],
    "schooling": ["none", "primary", "lower", "upper", "trade", "bachelor", "master"],
    "marital": ["single", "married", "divorced", "widowed"],
    "work": ["employed", "self-employed", "unemployed", "retired", "other"],
    "region": ["north", "east", "south", "west", "centre", "islands", "capital"],
}
ORDERED = ("schooling",)
SHARES = {
    "sex": [0.51, 0.49],
    "schooling": [0.02, 0.08, 0.2, 0.3, 0.15, 0.17, 0.08],
    "marital": [0.38, 0.44, 0.11, 0.07],
    "work": [0.53, 0.07, 0.04, 0.24, 0.12],
    "region": [0.2, 0.18, 0.17, 0.15, 0.15, 0.05, 0.1],
}


def schema() -> Schema:
    """The codebook: 10 x 3 x 8 x 5 x 6 x 8 = 57,600 cells, silence included."""
    columns: dict[str, dict[str, object]] = {"age": {"kind": "integer", "bounds": [0, 99]}}
    for name, levels in LEVELS.items():
        columns[name] = {"kind": "ordinal" if name in ORDERED else "categorical", "levels": levels}
    columns["income"] = {"kind": "integer", "bounds": [0, 200_000]}
    return schema_from({"survey": {"name": "donors", "unit": "row"}, "columns": columns})


def repair() -> Repair:
    """Income from one donor, matched on all six."""
    near = (Match(column="age", starts=STARTS), *(Match(column=name) for name in LEVELS))
    return Repair(donors=(Donors(column="income", near=near, defaults=(0,)),), key="bench")


def capped(rings: int = 1) -> Repair:
    """The same with capped donors, as a plan has them by itself: the ladder and the caps for a tenth of answers missing."""
    near = (Match(column="age", starts=STARTS), *(Match(column=name) for name in LEVELS))
    on = ladder_of(near)
    levels = levels_of(on, [None] * len(on), Fraction(1, 10))
    return Repair(
        capped=(CappedDonors(columns=("income",), levels=levels, defaults=(Default(code=0),)),),
        rings=rings,
        key="bench",
    )


def parquet(rows: int) -> Path:
    """`rows` respondents, made once and kept."""
    path = OUT / f"donors-{rows}.parquet"
    if path.exists():
        return path
    OUT.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, _people(1, 0).schema, compression="zstd") as writer:
        for start in range(0, rows, CHUNK):
            writer.write_table(_people(min(CHUNK, rows - start), start), row_group_size=122_880)
    return part.rename(path)


def _people(count: int, start: int) -> pa.Table:
    rng = np.random.default_rng([SEED, start])
    columns: dict[str, pa.Array] = {"age": pa.array(rng.integers(0, 95, count).astype(np.int16))}
    for name, levels in LEVELS.items():
        codes = rng.choice(len(levels), count, p=SHARES[name]).astype(np.int8)
        columns[name] = pa.DictionaryArray.from_arrays(codes, levels)
    income = np.minimum(rng.lognormal(10, 0.7, count), 200_000).astype(np.int32)
    columns["income"] = pa.array(income, mask=rng.random(count) < MISSING)
    return pa.table(columns)
