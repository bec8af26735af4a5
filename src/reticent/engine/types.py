"""What a header says of each column: our word for its type. No row is read."""

import duckdb
import pyarrow as pa
from pyarrow.parquet import read_schema
from sqlglot import exp

from reticent.engine.fence import fenced
from reticent.engine.sources import ParquetFiles, Source
from reticent.engine.streams import Stream
from reticent.errors import SourceError

WHOLE = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"})
UNSIGNED = frozenset(
    {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
)  # UHUGEINT is summed in doubles: refused


DATES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"})


def types_of(source: Source) -> dict[str, str]:
    """Header names and our word for each type: integer, float, decimal, text, boolean, date or other."""
    if isinstance(source, Stream):
        return {name: _word(_arrow_name(kind)) for name, kind in source.types().items()}
    described = None
    try:
        with fenced(source, None, 1, "256MiB") as connection:
            if isinstance(source, ParquetFiles):
                _check_headers(source)
                found = connection.execute(
                    "DESCRIBE SELECT * FROM read_parquet($1)", [[str(p) for p in source.paths]]
                )
            else:
                table = exp.to_identifier(source.table, quoted=True).sql("duckdb")
                found = connection.execute(f"DESCRIBE held.main.{table}")
            described = {row[0]: _word(row[1]) for row in found.fetchall()}
    except (duckdb.Error, pa.ArrowException, OSError):
        pass  # its text may quote the file
    if described is None:
        kind = "Parquet" if isinstance(source, ParquetFiles) else "a DuckDB database with that table"
        raise SourceError(f"cannot be read as {kind}", field="source")
    return described


def _check_headers(source: ParquetFiles) -> None:
    """One header for all files, no name twice. DuckDB would rename the second, and meet other files too late."""
    first, *others = (read_schema(path).remove_metadata() for path in source.paths)
    if any(other != first for other in others):
        raise SourceError("the files do not have the same header", field="source")
    twice = next((name for name in first.names if first.names.count(name) > 1), None)
    if twice is not None:
        raise SourceError(f"has the column {twice!r} twice; rename one of them", field="source")


def _word(kind: str) -> str:
    kind = kind.upper()
    if kind in WHOLE | UNSIGNED:
        return "integer"
    if kind in ("FLOAT", "DOUBLE"):
        return "float"
    if kind.startswith("DECIMAL"):
        width, scale = (int(part) for part in kind.removeprefix("DECIMAL(").rstrip(")").split(","))
        return f"decimal{scale}" if width <= 15 else "decimal"
    if kind == "VARCHAR" or kind.startswith("ENUM"):
        return "text"
    if kind in DATES:
        return "date"
    return {"BOOLEAN": "boolean", '"NULL"': "text", "NULL": "text"}.get(kind, "other")


def _arrow_name(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "BIGINT"
    if pa.types.is_floating(kind):
        return "DOUBLE"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "VARCHAR"
    return {"bool": "BOOLEAN", "null": "NULL"}.get(str(kind), "other")
