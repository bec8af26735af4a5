"""Tables that stay where they are: a PostgreSQL service or the curator's Spark session, and the name of the relation.

A plan says no more than that. Hosts, users, passwords, masters and jars never come from a plan, whose author may be
hostile, nor from an argument, which the process list shows: libpq's service file has them, or the session.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reticent.errors import SourceError

POSTGRES, SPARK = "postgres", "spark"
_SERVICE = re.compile(r"postgres:[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteTable:
    """A `relation` that the `engine` of that name reads: of a `service`, or over what the curator `given`s: a connection, a
    session or its frame."""

    engine: str
    relation: str = ""
    service: str = ""
    given: Any = field(default=None, repr=False)


def is_remote(source: str) -> bool:
    """Whether a plan's `source` names a table elsewhere and no file."""
    return source == SPARK or _SERVICE.fullmatch(source) is not None


def located(folder: Path, source: str) -> str:
    """The `source` of a plan that stands in `folder`: a path from here, or the same words where it is elsewhere."""
    return source if is_remote(source) else str(folder / source)


def remote_table(source: str, relation: str | None) -> RemoteTable:
    """The table that a plan names, of a `source` that is remote."""
    if not relation:
        raise SourceError("is a database; say which table: relation = 'schema.name'", field="source")
    engine, _, service = source.partition(":")
    return RemoteTable(engine=engine, relation=relation, service=service)


def given_table(rows: Any, relation: str | None) -> RemoteTable | None:
    """The table behind a connection, a session or a frame that the curator opened; None for any other object."""
    module = type(rows).__module__
    if module.startswith("psycopg"):
        if not relation:
            raise SourceError("is a connection; say which table: table = 'schema.name'", field="source")
        return RemoteTable(engine=POSTGRES, relation=relation, given=rows)
    if module.startswith("pyspark"):
        return RemoteTable(engine=SPARK, relation=relation or "", given=rows)
    return None
