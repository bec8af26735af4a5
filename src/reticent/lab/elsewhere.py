"""Put the rows of the demonstration into PostgreSQL or name them to Spark, and write the plan that reads them there.

    reticent lab elsewhere demo spark
    reticent lab elsewhere demo postgres OWNER READER schema.name

OWNER is a service whose role may make the table, READER the one that the plan names, whose role is granted to read it; see
the how-to pages on both. The rows are simulated: nobody in them is real.
"""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reticent.engine.sources.open import relation_of
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
        _check_free(Path(folder) / "postgres.toml")
        load(Path(folder) / "survey.parquet", owner, reader, relation)
        return _write_plan(Path(folder), "postgres", f"postgres:{reader}", relation)
    raise PlanError(WORDS)


def _check_free(path: Path) -> None:
    """Refuse before a table is made what would be refused after it."""
    if path.exists():
        raise SourceError(f"has a {path.name} already; remove it to make the table anew", field="DEMO")


def load(rows: Path, owner: str, reader: str, relation: str) -> None:
    """The rows of a Parquet file in a new table, which the role behind the service `reader` can read, and only read."""
    if not rows.is_file():
        raise SourceError(
            f"has no {rows.name}; make it with `reticent demo --out {rows.parent}`", field="DEMO"
        )
    with connected(reader, refused=SourceError, field="READER") as connection:
        ((role,),) = connection.execute("SELECT session_user").fetchall()
    problem = ""
    with connected(owner, refused=SourceError, field="OWNER") as connection:
        import psycopg  # an extra, and here by now

        try:
            _make_table(connection, pq.read_table(rows), relation, role)
        except psycopg.Error as error:  # the rows are simulated, yet hosts and users are not
            problem = _problem(error, relation)
            connection.rollback()
    if problem:
        raise SourceError(problem, field="OWNER")


def _make_table(connection: Any, table: pa.Table, relation: str, role: str) -> None:
    """All in one transaction, so that a table is made whole and readable, or not at all."""
    from psycopg import sql

    schema, name = relation_of(relation)
    made, granted = sql.Identifier(schema, name), sql.Identifier(role)
    kinds = [sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(_kind(f.type))) for f in table.schema]
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(made, sql.SQL(", ").join(kinds)))
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(made)) as copy:
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            copy.write_row(row)
    connection.execute(sql.SQL("GRANT SELECT ON {} TO {}").format(made, granted))
    ((usable, owns),) = connection.execute(
        "SELECT has_schema_privilege(%s, %s, 'USAGE'), pg_has_role(%s, session_user, 'MEMBER')",
        [role, schema, role],
    ).fetchall()
    if owns:
        raise SourceError("has the role that makes the table; name one that can only read", field="READER")
    if not usable:
        raise SourceError(
            f"may not use the schema; GRANT USAGE ON SCHEMA {schema} to its role, then try again",
            field="READER",
        )


def _problem(error: Any, relation: str) -> str:
    """Why there is no table, in words that say what to do."""
    from psycopg import errors

    schema = relation.partition(".")[0]
    if isinstance(error, errors.DuplicateTable):
        return f"{relation} exists already and was left as it is; name another, or drop it"
    if isinstance(error, errors.InvalidSchemaName):
        return f"there is no schema {schema}; let an administrator make it: CREATE SCHEMA"
    if isinstance(error, errors.InsufficientPrivilege):
        return f"its role may make no table in the schema {schema}; GRANT USAGE, CREATE on the schema to it"
    return f"the server did not make {relation}; see that it is up and has disk left, and try again"


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
