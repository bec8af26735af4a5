"""Frames in and out of estimators: the kind, the headers and the index that were given, or what `set_output` asks for."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import pyarrow as pa

from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError

OUTPUTS = ("default", "pandas", "polars", "arrow")


class FrameOutput:
    """Gives back frames: of the kind that was given, or after scikit-learn's `set_output` of another."""

    _output: str = "default"

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` gives back.

        **Parameters**

        - `transform`: `"default"` for the kind that was given, `"pandas"`, `"polars"` or `"arrow"`; None changes nothing.
        """
        if transform is not None and transform not in OUTPUTS:
            raise PlanError(f"is one of {', '.join(OUTPUTS)}", field="transform")
        self._output = transform or self._output
        return self

    def _as_given(self, given: Any, table: pa.Table) -> Any:
        """The table as the kind of frame that was given or asked for; rows keep the index of a pandas frame.

        In a frame of the kind given a column keeps its type, where that can hold every value.
        """
        kind = kind_of(given) if self._output == "default" else self._output
        table = table if kind_of(given) == "array" else _kept_types(given, table)
        if kind == "arrow":
            return table
        if kind == "polars":
            import polars  # the caller's own

            return polars.from_arrow(table)
        made = table.to_pandas()
        index = getattr(given, "index", None)
        if index is not None and not callable(index) and len(made) == len(given):
            made.index = index
        return _as_typed(given, made) if kind == kind_of(given) else made


def _kept_types(given: Any, table: pa.Table) -> pa.Table:
    """The table with the types that its columns came with; one that cannot hold every value is left as it is."""
    given = open_frame(given).table.schema
    for name in set(given.names) & set(table.column_names):
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            kind = given.field(name).type
            cast = table[name].cast(kind, safe=not pa.types.is_floating(kind))
            table = table.set_column(table.column_names.index(name), name, cast)
    return table


def _as_typed(given: Any, made: Any) -> Any:
    """A pandas frame with the dtypes of the one given, such as nullable integers and categories, where they hold every value."""
    for name in set(given.columns) & set(made.columns):
        with suppress(TypeError, ValueError):
            cast = made[name].astype(given[name].dtype)
            if (cast.isna() == made[name].isna()).all() and (cast == made[name]).all():
                made[name] = cast
    return made


def kind_of(given: Any) -> str:
    """`pandas`, `polars`, `arrow`, or `array` for anything else."""
    if isinstance(given, pa.Table):
        return "arrow"
    if type(given).__module__.split(".")[0] == "polars":
        return "polars"
    return "pandas" if hasattr(given, "iloc") else "array"


def headers_of(given: Any) -> list[str] | None:
    """The headers of a frame; None of an array."""
    kind = kind_of(given)
    if kind == "array":
        return None
    return [str(name) for name in (given.column_names if kind == "arrow" else given.columns)]


def places_of(columns: Sequence[int | str], headers: Sequence[str] | None) -> list[int]:
    """Columns by their places, whether given by place or by name."""
    found = []
    for each in columns:
        if not isinstance(each, str):
            found.append(int(each))
        elif headers is None or each not in headers:
            raise PlanError(f"names {each!r}, which is no header of the frame", field="columns")
        else:
            found.append(list(headers).index(each))
    return found
