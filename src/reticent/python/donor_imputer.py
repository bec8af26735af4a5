"""Donor imputation of a frame, for the curator's own use, in scikit-learn's manner. Not a release."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.engine.open import open_engine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError, SchemaError
from reticent.files import read_toml
from reticent.plan.capped import read_shares
from reticent.plan.repairs import read_repairs
from reticent.prepare.repair import Repair
from reticent.python.charging import Params
from reticent.python.frames import FrameOutput, headers_of
from reticent.schema import Levels, Number, Schema
from reticent.schema.codebook import schema_from
from reticent.schema.schema import ROW


class DonorImputer(FrameOutput, Params):
    """Fill the gaps of a frame from donors, as the first ring of a release of a plan would.

    CONFIDENTIAL: what comes out are respondents' answers, their donors' among them. It is not a release: it is
    charged to no ledger, carries no guarantee, and is for the curator's own eyes. To publish from filled data,
    write the same words as an `[[impute]]` of a plan.

    `codebook` is a file or a dictionary. The other arguments are the keys of `method = "donors"` in a plan; `edits`
    are its `[[edit]]` sections, carried out first. Arguments are checked when it is fitted.

    **Parameters**

    - `codebook`: a file or a dictionary.
    - `column`: what is filled.
    - `columns`: several columns, in place of `column`.
    - `match`: attributes to match on: names, or dictionaries with `groups` or `by`; or levels with `on` and `serve`.
    - `default`: the value of a recipient whom nobody serves; with hubs, of public donors who stand last.
    - `together`: fill the columns from one donor, who answered them all.
    - `bound`: `"capped"`, or `"hubs"` for the nearest donor; the arguments below go with hubs.
    - `k`: how many nearest donors a recipient has.
    - `scheme`: `"nearest"`, `"mean"` or `"majority"`.
    - `distance`: `"declared"`, or `"one-hot euclidean"`.
    - `edits`: `[[edit]]` sections, carried out first.
    - `missing`: the shares of missing answers that the plan expects; caps that are not said follow from them.

    >>> imputer = DonorImputer("survey.codebook.toml", column="wage", match=["age", "sex"])  # doctest: +SKIP
    >>> imputer.fit_transform(frame)  # doctest: +SKIP
    """

    _NAMES = (
        *(
            "codebook",
            "column",
            "columns",
            "match",
            "default",
            "together",
            "bound",
            "k",
            "scheme",
            "distance",
        ),
        *("edits", "missing"),
    )

    def __init__(
        self,
        codebook: str | PathLike[str] | Mapping[str, Any],
        *,
        column: str | None = None,
        columns: Sequence[str] | None = None,
        match: Sequence[Any] = (),
        default: Any = None,
        together: bool = False,
        bound: str | None = None,
        k: int = 1,
        scheme: str | None = None,
        distance: str = "declared",
        edits: Sequence[Mapping[str, Any]] = (),
        missing: Mapping[str, Any] | None = None,
    ) -> None:
        self.codebook, self.column, self.columns, self.match = codebook, column, columns, match
        self.default, self.together, self.bound, self.missing = default, together, bound, missing
        self.k, self.scheme, self.distance, self.edits = k, scheme, distance, edits

    def fit(self, frame: Any, y: None = None) -> "DonorImputer":
        """Check the arguments against the codebook and the frame's header. Donors are found when transforming."""
        schema, _ = self._read()
        engine = open_engine(open_frame(frame))
        try:
            engine.check(schema)
        finally:
            engine.close()
        headers = headers_of(frame) or []
        self.n_features_in_, self.feature_names_in_ = len(headers), np.asarray(headers, dtype=object)
        return self

    def transform(self, frame: Any) -> Any:
        """The columns under the headers they came with, gaps filled, and a mark `<header>_filled` for each filled.

        A frame of the same kind as the one given (or what `set_output` asks for), in its order, with its types where these can
        hold the answers; answers outside the codebook are missing. Columns that the codebook does not declare stay as they are,
        where a row is a respondent. Where a respondent may have several rows they are left out, and those rows are kept that a
        release would keep.
        """
        schema, repair = self._read()
        held = open_frame(frame)
        engine = open_engine(held)
        try:
            engine.check(schema)
            coded = engine.filled(schema, repair)
        finally:
            engine.close()
        filled = _decoded(coded, schema)
        for name, column in _undeclared(held.table, schema).items():
            filled = filled.append_column(name, column)
        return self._as_given(frame, _in_order(filled, headers_of(frame)))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The headers of what `transform` gives back, in its order."""
        schema, repair = self._read()
        declared = [schema.headers[name] for name in schema.coded]
        given = list(getattr(self, "feature_names_in_", declared))
        others = (
            set(given) - {column.source for column in schema.columns.values()}
            if schema.unit == ROW
            else set()
        )
        kept = [name for name in given if name in declared or name in others]
        more = [name for name in declared if name not in kept]
        filled = [f"{schema.headers[name]}_filled" for name in schema.coded if name in repair.filled()]
        return np.asarray([*kept, *more, *filled], dtype=object)

    def fit_transform(self, frame: Any, y: None = None) -> Any:
        """Both at once."""
        return self.fit(frame).transform(frame)

    def _read(self) -> tuple[Schema, Repair]:
        book = self.codebook
        data = read_toml(Path(book), error=SchemaError) if isinstance(book, str | PathLike) else dict(book)
        schema = schema_from(data)
        keys = ("column", "columns", "scheme", "default", "bound")
        said = {name: getattr(self, name) for name in keys if getattr(self, name) is not None}
        said |= {"columns": list(self.columns)} if self.columns is not None else {}
        said |= {"together": True} if self.together else {}
        said |= {"k": self.k} if self.k != 1 else {}
        said |= {"distance": self.distance} if self.distance != "declared" else {}
        donors = {"method": "donors", "match": list(self.match), **said}
        shares = read_shares(self.missing, schema)
        made = read_repairs([donors], schema, edited=[*map(dict, self.edits)], shares=shares)
        if made.models:
            raise PlanError(
                "is released first, and here nothing is released; give a public value", field="default"
            )
        return schema, made.repair


def _decoded(coded: pa.Table, schema: Schema) -> pa.Table:
    """Codes as answers: levels by name, whole numbers as integers, others as doubles; marks as they are."""
    answers = {schema.headers[name]: _answers(coded[name], column) for name, column in schema.coded.items()}
    marks = {_marked(name, schema): coded[name] for name in coded.column_names if name not in schema.coded}
    return pa.table({**answers, **marks})


def _undeclared(rows: pa.Table, schema: Schema) -> dict[str, pa.ChunkedArray]:
    """The columns that the codebook does not speak of, where every row stays in its place."""
    known = {column.source for column in schema.columns.values()} | set(schema.headers.values())
    others = [name for name in rows.column_names if name not in known]
    return {name: rows[name] for name in others} if schema.unit == ROW else {}


def _marked(mark: str, schema: Schema) -> str:
    """The mark of a filled column under the header that the column came with."""
    name = mark.removesuffix("_filled")
    return f"{schema.headers[name]}_filled" if name in schema.columns else mark


def _in_order(table: pa.Table, headers: list[str] | None) -> pa.Table:
    """The columns in the order of the frame, marks behind them."""
    first = [name for name in headers or [] if name in table.column_names]
    return table.select([*first, *(name for name in table.column_names if name not in first)])


def _answers(codes: pa.ChunkedArray, column: Levels | Number) -> pa.ChunkedArray:
    if isinstance(column, Levels):
        return pa.chunked_array([pa.array(column.levels).take(codes.combine_chunks().cast(pa.int64()))])
    if column.grid.denominator == 1:
        return pc.multiply(codes.cast(pa.int64()), column.grid.numerator)
    # Divided by the denominator, not multiplied by a rounded grid: a cent is the double nearest to it.
    steps = pc.multiply(codes.cast(pa.int64()), column.grid.numerator)
    return pc.divide(steps.cast(pa.float64()), np.float64(column.grid.denominator))
