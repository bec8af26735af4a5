"""One fenced connection to Spark: headers read, codes staged once, tables made, given, asked and dropped.

Tables of a reading are folders that the cluster writes; they are made of the staged codes alone, by statements that give the
same rows whenever a part of one is made again. What reaches this side passes one gate, `taken`.
"""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.duckdb.engine import private_folder
from reticent.engine.sources.open import RemoteTable
from reticent.engine.spark.session import Quiet, beside, own_session, stage_root, unwarned
from reticent.engine.spark.words import SPARK
from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Values
from reticent.errors import EngineError, SourceError

T = TypeVar("T")
UNREAD = "the rows could not be read to the end; look at the cluster, then resume the release"
CHANGED = "the files changed while they were read; let nobody write to them, then resume the release"
ROWS, KEYS, PLACES = "rows_", "keys_", "places_"
SLICE = 2**18  # lines of a slice, about: what is held here at a time


NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*(?:[.][A-Za-z_][A-Za-z0-9_]*){0,3})(?:@([0-9]{1,19}))?")
"""A table, and the version of it where its format keeps versions (Delta, Iceberg): `census.people@12`."""


def is_path(relation: str) -> bool:
    """Whether a relation is Parquet in the cluster's file system, and no table of its catalog."""
    return "/" in relation or relation.lower().endswith((".parquet", ".pq"))


def check_relation(source: RemoteTable) -> None:
    """A relation is the plain name of a table, or a path without wildcards."""
    relation = source.relation
    if source.given is not None and hasattr(source.given, "sparkSession"):
        return
    if is_path(relation):
        if re.search(r"[\x00-\x1f{}\[\]*?`]", relation):
            raise SourceError("is a path without wildcards", field="relation")
    elif NAME.fullmatch(relation) is None:
        raise SourceError(
            "is the name of a table, such as schema.name or schema.name@12, or a path to Parquet",
            field="relation",
        )


def read_at(session: Any, relation: str) -> Any:
    """The frame of a relation: Parquet, a table, or a table at the version that its format keeps under that number."""
    named = NAME.fullmatch(relation)
    if is_path(relation) or named is None:
        return session.read.parquet(relation)
    table, version = named.groups()
    return (
        session.table(table)
        if version is None
        else session.sql(f"SELECT * FROM {table} VERSION AS OF {version}")
    )


def word_of(kind: Any) -> str:
    """Our word for a type of Spark's."""
    name = kind.typeName()
    if name in ("byte", "short", "integer", "long"):
        return "integer"
    if name in ("float", "double"):
        return "float"
    if name == "decimal":
        return f"decimal{kind.scale}" if kind.precision <= 15 else "decimal"
    if name in ("string", "char", "varchar", "void"):
        return "text"
    return {"boolean": "boolean", "date": "date", "timestamp_ntz": "date"}.get(name, "other")


class SparkConnection:
    """What is behind the fence. Whatever fails there is told in one constant text."""

    def __init__(self, source: RemoteTable) -> None:
        self._source = source
        check_relation(source)
        given = source.given
        self._given_frame = given if hasattr(given, "sparkSession") else None
        self._session = beside(own_session() if given is None else getattr(given, "sparkSession", given))
        self._context = self._session.sparkContext
        root = stage_root(self._context)
        self._frame = self._quiet(self._opened, "cannot be read as a table or Parquet of the cluster")
        self.types: Mapping[str, str] = {
            field.name: word_of(field.dataType) for field in self._frame.schema.fields
        }
        self._check_headers()
        self._local = private_folder() if root is None else None
        self._folder = f"{root or self._local}/reticent-{uuid4().hex}"
        self._tables: dict[str, str] = {}
        self._made = 0
        self.taken: list[int] = []
        """How many cells each statement has sent to this side: a test compares them with what the codebook allows."""
        self.lots: list[int] = []
        """How many records came here in each lot."""

    @property
    def version(self) -> str:
        return f"spark {self._session.version}"

    @property
    def files(self) -> tuple[tuple[Path, str], ...]:
        """None of this machine."""
        return ()

    def close(self) -> None:
        """Forget tables and staged codes. The curator's session goes on."""
        for name in list(self._tables):
            self.drop(name)
        self._remove(self._folder)
        if self._local is not None:
            shutil.rmtree(self._local, ignore_errors=True)

    def base(
        self, headers: Sequence[str], values: Values, source: Any = None, *, line: bool = False
    ) -> tuple[exp.Select, Mapping[str, str]]:
        """FROM the source, its columns under plain names: SQL never sees a header."""
        if line:
            raise SourceError("rows of a cluster have no order; use a file or a frame", field="source")
        names = {header: f"h{place}" for place, header in enumerate(headers)}
        chosen = [self._cell(header).alias(name) for header, name in names.items()]
        self._frame.select(*chosen).createOrReplaceTempView(ROWS)
        return exp.select().from_(exp.Table(this=sql.name(ROWS))), names

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]:
        found = self._taken(SPARK.printed(statement, copy=False), values)
        columns = [_plain(column) for column in found.columns]
        return list(zip(*columns, strict=True)) if columns else []

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, NDArray[np.int64]]:
        """The same as arrays, for a statement that is never NULL."""
        return _arrays(self._taken(SPARK.printed(statement, copy=False), values))

    def in_order(self, lines: exp.Select, values: Values, places: int) -> Iterator[NDArray[np.int64]]:
        """The lines in a table of the cluster, and from there a slice at a time: some whole cells, or one."""
        try:
            self.make(PLACES, SPARK.printed(lines.order_by(sql.column("p0")), copy=False), values)
            each = self.ask(
                f"SELECT cell, count(*) AS n FROM (SELECT p0 DIV {places} AS cell FROM {PLACES}) t GROUP BY cell"
            )
            order = np.argsort(each["cell"])
            for first, last in sliced(each["cell"][order], each["n"][order]):
                here = f"p0 >= {first * places} AND p0 < {last * places}"
                found = self.ask(f"SELECT p0, n FROM {PLACES} WHERE {here}")
                yield np.stack([found["p0"], found["n"]])[:, np.argsort(found["p0"])]
        finally:
            self.drop(PLACES)

    def fetch_blocks(self, statement: exp.Select, values: Values) -> list[NDArray[Any]]:
        raise SourceError("rows of a cluster stay there", field="source")

    def make(self, name: str, statement: str, values: Values | None = None) -> None:
        """The lines of a statement, written into a folder of ours, and a view of them: no later plan holds how they were made."""
        self.drop(name)
        self._made += 1
        path = f"{self._folder}/{name}{self._made}"

        def made() -> str:
            frame = self._frame_of(statement, values)
            frame.write.parquet(path)
            self._session.read.schema(frame.schema).parquet(path).createOrReplaceTempView(name)
            return path

        self._tables[name] = self._quiet(made)

    def hold(self, name: str, statement: str, values: Values | None = None) -> None:
        """A view of the lines of a statement over staged codes, which are the same whenever they are made again."""
        self.drop(name)

        def held() -> str:
            self._frame_of(statement, values).createOrReplaceTempView(name)
            return ""

        self._tables[name] = self._quiet(held)

    def give(self, name: str, table: pa.Table, *, more: bool = False) -> None:
        """`table`, which is of a size that the codebook or a lot settles, under that name; with `more`, behind what is there.

        The driver holds one of them. Several are files.
        """

        def given() -> str:
            frame = self._session.createDataFrame(table)
            path = self._written(name) if more else ""
            if path:
                frame.write.mode("append").parquet(path)
                frame = self._session.read.schema(frame.schema).parquet(path)
            frame.createOrReplaceTempView(name)
            return path

        if not more:
            self.drop(name)
        self._tables[name] = self._quiet(given)

    def _written(self, name: str) -> str:
        """The folder of a table that was given."""
        path = self._tables[name]
        if not path:
            self._made += 1
            path = f"{self._folder}/{name}{self._made}"
            self._session.table(name).write.parquet(path)
        return path

    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]:
        """The columns of a statement without parameters that is never NULL."""
        return _arrays(self._taken(statement, None))

    def lot(self, names: Sequence[str], source: str) -> dict[str, NDArray[np.int64]]:
        """Columns that are never NULL, of rows that the caller knows to be few enough to be held."""
        listed = ", ".join(f"CAST({name} AS BIGINT) AS {name}" for name in names)
        found = self._quiet(lambda: self._session.sql(f"SELECT {listed} FROM {source}").toArrow())
        self.lots.append(found.num_rows)
        return _arrays(found)

    def records_at_most(self) -> int:
        """Not known before they are read."""
        return 0

    def seek(self, name: str, column: str) -> None:
        """Files say which values they hold: what lies in order is found by that."""

    def drop(self, name: str) -> None:
        path = self._tables.pop(name, None)
        with suppress(Exception):
            self._session.catalog.dropTempView(name)
        if path:
            self._remove(path)

    def stage(self, name: str, statement: exp.Select, values: Values) -> None:
        """The lines of a statement over the source: one reading, which all others are made of.

        Of a table with versions one reading sees one of them; files that changed meanwhile are found by their names, sizes
        and times.
        """
        before = self._quiet(self._listed)
        self.make(name, SPARK.printed(statement, copy=False), values)
        if self._quiet(self._listed) != before:
            raise EngineError(CHANGED, field="source")

    def _remove(self, path: str) -> None:
        """A folder of ours, in whichever file system it is."""
        with suppress(Exception):
            found = self._context._jvm.org.apache.hadoop.fs.Path(path)
            found.getFileSystem(self._context._jsc.hadoopConfiguration()).delete(found, True)

    def _opened(self) -> Any:
        """The source as a frame of our session. Only its header is looked at."""
        if self._given_frame is not None:
            name = f"reticent_{uuid4().hex}"
            self._given_frame.createGlobalTempView(name)
            return self._session.table(f"global_temp.{name}")
        return read_at(self._session, self._source.relation)

    def _check_headers(self) -> None:
        lower = [name.lower() for name in self.types]
        twice = next((name for name in self.types if lower.count(name.lower()) > 1), None)
        if twice is not None or len(self.types) < len(self._frame.schema.fields):
            raise SourceError(
                f"has two columns that differ in case at most: {twice}; rename one", field="source"
            )

    def _cell(self, header: str) -> Any:
        """A column of the source; text by its bytes, and missing where they are not UTF-8."""
        from pyspark.sql import functions

        cell = functions.col("`" + header.replace("`", "``") + "`")
        if self.types[header] != "text":
            return cell
        return functions.expr(
            "try_validate_utf8(CAST(`" + header.replace("`", "``") + "` AS STRING) COLLATE UTF8_BINARY)"
        )

    def _listed(self) -> list[tuple[str, int, int]]:
        """Names, sizes and times of the files that are read, where the source has files."""
        found = []
        configuration = self._context._jsc.hadoopConfiguration()
        for name in self._frame.inputFiles():
            path = self._context._jvm.org.apache.hadoop.fs.Path(name)
            status = path.getFileSystem(configuration).getFileStatus(path)
            found.append((name, status.getLen(), status.getModificationTime()))
        return sorted(found)

    def _frame_of(self, statement: str, values: Values | None) -> Any:
        """The frame of a statement. Keys are a row of a table, so that no plan of Spark's shows them."""
        bound = dict(values.bound) if values is not None else {}
        secrets = sorted(values.secrets) if values is not None else []
        if secrets:
            keys = pa.table({name: [str(bound.pop(name))] for name in secrets})
            self._session.createDataFrame(keys).createOrReplaceTempView(KEYS)
            for name in secrets:
                statement = re.sub(rf":{name}\b", f"(SELECT {name} FROM {KEYS})", statement)
        return self._session.sql(statement, args=bound or None)

    def _taken(self, statement: str, values: Values | None) -> pa.Table:
        """The one gate through which anything reaches this side."""
        found = self._quiet(lambda: self._frame_of(statement, values).toArrow())
        self.taken.append(found.num_rows * max(1, found.num_columns))
        return found

    def _quiet(self, work: Any, refused: str | None = None) -> Any:
        """What `work` gives. What Spark says of a failure may hold a respondent's answer, so nobody hears it."""
        found = None
        with Quiet(self._context), unwarned(), suppress(Exception):
            found = work()
        if found is None and refused is not None:
            raise SourceError(refused, field="source")
        if found is None:
            raise EngineError(UNREAD, field="source")
        return found


def sliced(cells: NDArray[np.int64], lines: NDArray[np.int64]) -> list[tuple[int, int]]:
    """From which cell to which each slice goes: whole cells with about `SLICE` lines together, or one cell.

    `cells` rise, and those that are not named have no line.
    """
    found, upto = list[tuple[int, int]](), np.cumsum(lines)
    first = 0
    while first < len(cells):
        room = SLICE + (int(upto[first - 1]) if first else 0)
        last = max(first + 1, int(np.searchsorted(upto, room, side="right")))
        found.append((int(cells[first]), int(cells[last - 1]) + 1))
        first = last
    return found


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Whole numbers as Python has them, whatever their width."""
    found = column.to_pylist()
    return (
        [int(each) if each is not None else None for each in found]
        if pa.types.is_decimal(column.type)
        else found
    )


def _arrays(found: pa.Table) -> dict[str, NDArray[np.int64]]:
    return {
        name: np.asarray(_plain(found[name]), np.int64)
        if pa.types.is_decimal(found[name].type)
        else found[name].to_numpy().astype(np.int64)
        for name in found.column_names
    }
