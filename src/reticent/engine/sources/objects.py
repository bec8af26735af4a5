"""A Python object as the text that means the same: what cells of mixed or unusual type are brought to.

Cell by cell, and nothing raises. Numbers are written as `number_text` writes the nearest double, truth values as
`true` and `false`, dates as ISO text without midnight, durations as `timedelta` prints them. A cell that is no text
(bytes that are not UTF-8, an object that cannot be printed) is nothing.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, isnan
from numbers import Real

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.schema.columns import moment_text, number_text

Moments = NDArray[np.datetime64]


def as_texts(cells: Iterable[object]) -> pa.Array:
    """The cells as text, null where they are nothing."""
    return pa.array([text_of(cell) for cell in cells], pa.large_string())


def text_of(cell: object) -> str | None:
    """The text that means what the object means; None for nothing."""
    try:
        return _text_of(cell)
    except Exception:  # noqa: BLE001 - a cell may be any object, and may not stop anybody
        return None


def _text_of(cell: object) -> str | None:
    if isinstance(cell, pa.Scalar):
        cell = cell.as_py()
    if cell is None:
        return None
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell).decode("utf-8")
    if isinstance(cell, str):
        return _printable(cell)
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, Real | Decimal | complex | np.number) and not isinstance(cell, np.timedelta64):
        return _number(cell)
    if isinstance(cell, np.timedelta64):
        return _text_of(cell.astype("timedelta64[us]").item())
    if isinstance(cell, np.datetime64 | date | timedelta):
        return _moment(cell)
    return _printable(str(cell))


def _printable(text: str) -> str:
    return text.encode("utf-8").decode("utf-8")  # raises where there is no such text


def _number(cell: object) -> str | None:
    """The nearest double; a complex number without an imaginary part is what pandas makes of a real one."""
    if isinstance(cell, complex | np.complexfloating):
        if cell.imag != 0:
            return None
        cell = cell.real
    try:
        number = float(cell)  # type: ignore[arg-type]
    except OverflowError:
        number = inf if cell > 0 else -inf  # type: ignore[operator]
    return None if isnan(number) else number_text(number)


def _moment(cell: np.datetime64 | date | timedelta) -> str | None:
    if isinstance(cell, timedelta):
        return str(timedelta(days=cell.days, seconds=cell.seconds, microseconds=cell.microseconds))
    if not isinstance(cell, datetime):
        return moments(np.array([cell], "datetime64"))[0]
    if hasattr(cell, "to_datetime64"):  # of pandas: finer than a datetime, and of any year
        return moments(np.array([cell.to_datetime64()]), aware=cell.tzinfo is not None)[0]
    plain = cell if cell.tzinfo is None else cell.astimezone(UTC).replace(tzinfo=None)
    return moments(np.array([plain], "datetime64[us]"), aware=cell.tzinfo is not None)[0]


def moments(cells: Moments, *, aware: bool = False) -> list[str | None]:
    """Dates and times of one column as text, whatever their unit and however far away. Instants are in UTC."""
    if np.datetime_data(cells.dtype)[0] in ("h", "m"):
        cells = cells.astype("datetime64[s]")
    shown = np.where(np.isnat(cells), "", np.datetime_as_string(cells))
    spaced = (str(text).replace("T", " ") for text in shown)
    texts = [moment_text(text) or text or None for text in spaced]
    return [text and _instant(text) for text in texts] if aware else texts


def _instant(text: str) -> str:
    return f"{text} 00:00:00+00:00" if len(text) == len("2026-01-01") else f"{text}+00:00"
