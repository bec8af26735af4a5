"""A survey: rows somewhere, and the codebook that says what they mean. Making one reads nothing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from reticent.engine.duckdb import DuckDBEngine
from reticent.engine.sources import open_frame, open_path
from reticent.errors import SchemaError
from reticent.publicfiles import check_apart, identities, identity
from reticent.release.plan import Plan, plan_from
from reticent.tomlfile import read_toml


@dataclass(frozen=True, slots=True)
class Survey:
    """`rows` is a path, a glob, a pandas or Polars frame, or an Arrow table; `codebook` a codebook file or dictionary.

    >>> survey = Survey("survey.parquet", codebook="survey.codebook.toml")  # doctest: +SKIP
    """

    rows: Any = field(repr=False)
    codebook: str | PathLike[str] | dict[str, Any]
    relation: str | None = None
    threads: int | None = None

    def open(self) -> DuckDBEngine:
        """An engine on the rows. It looks at the header now and at the rows when asked."""
        if isinstance(self.rows, str | PathLike):
            source = open_path(str(self.rows), table=self.relation)
        else:
            source = open_frame(self.rows)
        return DuckDBEngine(source, threads=self.threads)

    def check_apart(self, plan: Plan) -> None:
        """Refuse rows that the plan took for one of its public files, before anything is charged (T33)."""
        if isinstance(self.rows, str | PathLike):
            check_apart(plan.files, str(self.rows))

    def plan(
        self,
        release_id: str,
        *,
        epsilon: str,
        statistics: Sequence[dict[str, Any]] = (),
        cells: Sequence[dict[str, Any]] = (),
        synth: Sequence[dict[str, Any]] = (),
        **sections: Any,
    ) -> Plan:
        """A plan written in Python. `statistics`, `cells`, `synth` and further `sections` are what a plan file would hold."""
        protect = {
            "change": "one respondent added or removed",
            "epsilon": epsilon,
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
