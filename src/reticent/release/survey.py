"""A survey: rows somewhere, and the codebook that says what they mean. Making one reads nothing.

`simulate` makes rows up from the codebook alone, so that a plan can be tried before it is charged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.open import open_engine
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.arrow import ArrowRows
from reticent.engine.sources.open import TEXT_FILES, given_table, open_frame, open_source
from reticent.errors import SchemaError
from reticent.exact import show
from reticent.files import read_toml
from reticent.plan.plan import Plan, plan_from
from reticent.schema import Levels, Number, Schema
from reticent.schema.codebook import schema_from
from reticent.schema.columns import Column
from reticent.schema.public_files import check_apart, identities, identity


@dataclass(frozen=True, slots=True)
class Survey:
    """A survey: the rows of a sample, and the codebook that says what they mean. Making one reads nothing.

    **Parameters**

    - `rows`: a path, a glob, a pandas or Polars frame, an Arrow table; `postgres:SERVICE` or a psycopg connection; `spark` or
      a Spark frame.
    - `codebook`: a codebook file, or a dictionary that says the same.
    - `relation`: which table to read, where `rows` is a database; `schema.name` on a server.
    - `threads`: how many the engine may use; all of the machine's where not said.
    - `table`: another word for `relation`.

    >>> survey = Survey("survey.parquet", codebook="survey.codebook.toml")  # doctest: +SKIP
    """

    rows: Any = field(repr=False)
    codebook: str | PathLike[str] | dict[str, Any]
    relation: str | None = None
    threads: int | None = None
    table: str | None = None

    def open(self) -> CuratorEngine:
        """An engine on the rows. It looks at the header now and at the rows when asked."""
        if isinstance(self.rows, str | PathLike):
            return open_engine(self._source(), threads=self.threads)
        elsewhere = given_table(self.rows, self._relation)
        return open_engine(elsewhere or open_frame(self.rows), threads=self.threads)

    def _source(self) -> Any:
        """The source that `rows` names; CSV as the codebook says, where it says how that is written."""
        schema = None
        if str(self.rows).lower().endswith(TEXT_FILES):
            book = self.book()
            schema = schema_from(book) if (book.get("survey") or {}).get("csv") else None
        return open_source(str(self.rows), table=self._relation, schema=schema)

    @property
    def _relation(self) -> str | None:
        return self.relation if self.table is None else self.table

    def check_apart(self, plan: Plan) -> None:
        """Refuse rows that the plan took for one of its public files, before anything is charged (T33)."""
        if isinstance(self.rows, str | PathLike):
            check_apart(plan.files, str(self.rows))

    def plan(
        self,
        release_id: str,
        *,
        epsilon: str,
        delta: str | None = None,
        statistics: Sequence[dict[str, Any]] = (),
        cells: Sequence[dict[str, Any]] = (),
        synth: Sequence[dict[str, Any]] = (),
        **sections: Any,
    ) -> Plan:
        """A plan written in Python. `statistics`, `cells`, `synth` and further `sections` are what a plan file would hold.

        **Parameters**

        - `release_id`: the id of the release, which is also the name of its files.
        - `epsilon`: the privacy budget of the whole plan, a decimal as text.
        - `delta`: its delta, where a synthetic table has one.
        - `statistics`: the `[[statistic]]` sections, as dictionaries.
        - `cells`: the `[[cells]]` sections.
        - `synth`: the `[[synth]]` sections.
        - `sections`: any other section by its name, such as `impute`, `weight` or `expect`.
        """
        protect = {
            "change": "one respondent added or removed",
            "epsilon": epsilon,
            **({"delta": delta} if delta is not None else {}),
            **sections.pop("protect", {}),
        }
        release = {"id": release_id, **sections.pop("release", {})}
        survey = {"source": "rows", "codebook": "codebook", "ledger": "ledger"}
        held = {"statistic": list(statistics), **({"cells": list(cells)} if cells else {})}
        held |= {"synth": list(synth)} if synth else {}
        data = {"survey": survey, "release": release, "protect": protect, **held, **sections}
        return plan_from(data, self.book())

    def book(self) -> dict[str, Any]:
        """The codebook as a dictionary."""
        if isinstance(self.codebook, dict):
            return self.codebook
        if isinstance(self.rows, str | PathLike) and identity(str(self.codebook)) in identities(
            str(self.rows)
        ):
            raise SchemaError("is the rows; name the codebook, which is another file", field="codebook")
        return read_toml(Path(self.codebook), error=SchemaError)


MISSING = 0.1
ROWS = 1_000


def simulate(schema: Schema, rows: int | None) -> ArrowRows:
    """Every column uniform over its domain, a tenth of the cells missing. Nothing here resembles anybody."""
    count = min(rows or ROWS, 1_000_000)
    generator = np.random.default_rng()  # not noise: these rows are made up and protect nobody
    columns: dict[str, pa.Array] = {}
    # Of several columns that are read from one header the finest is written.
    for column in sorted(schema.columns.values(), key=_size):
        silent = generator.random(count) < MISSING
        if isinstance(column, Levels):
            codes = pa.array(generator.integers(0, len(column.levels), count), mask=silent)
            columns[column.source] = pa.array(_written(column)).take(codes)
        elif isinstance(column, Number):
            columns[column.source] = _numbers(column, generator, count, silent)
        else:
            columns[column.source] = pa.array(np.arange(count).astype(str))
    return ArrowRows(pa.table(columns))


def _size(column: Column) -> int:
    return column.high - column.low if isinstance(column, Levels | Number) else 0


def _written(column: Levels) -> list[str]:
    """Every level as a file has it: itself, or the first member of its group."""
    return [members[0] for members in column.members] or list(column.levels)


def _numbers(column: Number, generator: Any, count: int, silent: Any) -> pa.Array:
    codes = generator.integers(column.low, column.high + 1, count)
    if column.grid == 1:
        return pa.array(codes, mask=silent)
    known, places = np.unique(codes, return_inverse=True)
    words = pa.array([show(int(code) * column.grid) for code in known])
    return words.take(pa.array(places, mask=silent))
