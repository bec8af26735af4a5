"""SPSS, Stata and SAS files through pyreadstat (the extra `files`). Codes stay codes; labels are not applied."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from reticent.engine.frames import from_pandas
from reticent.errors import SourceError

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}


def read_statistical(path: Path) -> pa.Table:
    """The rows as an Arrow table."""
    frame, _ = _read(path)
    return from_pandas(frame)


def read_labels(path: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[Any, str]]]:
    """From the header alone: types, labels and value labels by column. No row is read."""
    _, meta = _read(path, metadataonly=True)
    labels = {n: t or "" for n, t in zip(meta.column_names, meta.column_labels, strict=True)}
    return dict(meta.readstat_variable_types), labels, dict(meta.variable_value_labels)


def _read(path: Path, **options: Any) -> tuple[Any, Any]:
    try:
        import pyreadstat
    except ImportError:
        raise SourceError("needs the extra 'files': pip install 'reticent[files]'", field="source") from None
    result: tuple[Any, Any] | None = None
    with suppress(Exception):  # of any kind: its text may hold part of the file
        result = getattr(pyreadstat, READERS[path.suffix.lower()])(str(path), **options)
    if result is None:
        raise SourceError(f"cannot be read as a {path.suffix.lower()} file", field="source")
    return result
