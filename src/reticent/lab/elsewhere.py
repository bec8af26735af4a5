"""Put the rows of the demonstration into PostgreSQL or name them to Spark, and write the plan that reads them there.

    reticent lab elsewhere demo spark
    reticent lab elsewhere demo postgres OWNER READER schema.name

OWNER is a service whose role may make the table, READER the one that the plan names; see the how-to pages on both. The rows
are simulated: nobody in them is real.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from reticent.errors import PlanError, SourceError
from reticent.files import write_new
from reticent.services import connected

WORDS = "say: DEMO spark, or DEMO postgres OWNER READER schema.name"


def main(words: list[str]) -> Path:
    """Place the rows and write the plan, whose path comes back."""
    if len(words) == 2 and words[1] == "spark":
        rows = (Path(words[0]) / "survey.parquet").resolve()
        return _write_plan(Path(words[0]), "spark", "spark", str(rows))
    if len(words) == 5 and words[1] == "postgres":
        folder, _, owner, reader, relation = words
        load(Path(folder) / "survey.parquet", owner, relation)
        return _write_plan(Path(folder), "postgres", f"postgres:{reader}", relation)
    raise PlanError(WORDS)


def load(rows: Path, service: str, relation: str) -> None:
    """The rows of a Parquet file in a new table, which everybody who may use its schema can read."""
    from psycopg import sql

    table = pq.read_table(rows)
    name = sql.Identifier(*relation.split("."))
    kinds = [sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(_kind(f.type))) for f in table.schema]
    with connected(service, refused=SourceError, field="OWNER") as connection:
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(name, sql.SQL(", ").join(kinds)))
        with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(name)) as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "bigint"
    if pa.types.is_floating(kind):
        return "double precision"
    return f"numeric({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else "text"


def _write_plan(folder: Path, name: str, source: str, relation: str) -> Path:
    """The demonstration's plan with other rows, under a release and a ledger of its own."""
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    text = text.replace('source = "survey.parquet"', f'source = "{source}"\nrelation = "{relation}"')
    text = text.replace('ledger = "survey.ledger.db"', f'ledger = "{name}.ledger.db"')
    text = text.replace('id = "demo-1"', f'id = "demo-{name}"')
    write_new(folder / f"{name}.toml", text.encode(), private=False)
    return folder / f"{name}.toml"
