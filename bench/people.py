"""Simulated respondents who did not answer everything, written once under bench/out and kept."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from reticent.lab.demo import RATES
from reticent.lab.world.nonresponse import apply, clustered
from reticent.lab.world.state import SCHEMA, write_people

OUT = Path(__file__).parent / "out"
SEED = 2026


def parquet(rows: int) -> Path:
    """`rows` people of the simulated state in native types, reluctant ones with several answers missing."""
    path = OUT / f"people-{rows}.parquet"
    if path.exists():
        return path
    OUT.mkdir(exist_ok=True)
    whole, part = OUT / f"state-{rows}.parquet", path.with_suffix(".part")
    write_people(whole, rows, SEED)
    complete = pq.ParquetFile(whole)
    with pq.ParquetWriter(part, SCHEMA, compression="zstd") as writer:
        for group in range(complete.num_row_groups):
            people = complete.read_row_group(group)
            writer.write_table(apply(people, clustered(people, RATES, correlation=0.5, seed=SEED + group)))
    whole.unlink()
    return part.rename(path)


def csv(rows: int) -> Path:
    """The same people as text."""
    path = OUT / f"people-{rows}.csv"
    if path.exists():
        return path
    part = path.with_suffix(".part")
    source = pq.ParquetFile(parquet(rows))
    with pa_csv.CSVWriter(part, plain(SCHEMA)) as writer:
        for group in range(source.num_row_groups):
            writer.write_table(source.read_row_group(group).cast(plain(SCHEMA)))
    return part.rename(path)


def plain(schema: pa.Schema) -> pa.Schema:
    """The same columns, levels as texts."""
    return pa.schema([pa.field(f.name, _plain(f.type)) for f in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
