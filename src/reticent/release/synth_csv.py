"""Synthetic rows as CSV, column by column: many rows, few different texts. The same table is the same bytes."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.decimals import show
from reticent.release.synth_table import Numbers, unpacked

PLAIN = 6  # digits after the point up to which Arrow writes a decimal without a power of ten
FIRES = ("=", "+", "-", "@", "\t", "\r")


def to_csv(table: Mapping[str, Any], copy: int = 0) -> bytes:
    """The rows under the survey's own headers. Text that a spreadsheet would execute is defused (T28)."""
    columns = table["columns"]
    pairs = zip(columns, unpacked(table, copy), strict=True)
    found = [_words(column, n) if "levels" in column else _decimals(column, n) for column, n in pairs]
    if len(columns) == 1:
        found = [pc.if_else(pc.equal(found[0], ""), '""', found[0])]  # an empty line is no row
    lines = pc.binary_join_element_wise(*found, ",").to_pylist()
    return "\n".join([",".join(_quoted(str(column["header"])) for column in columns), *lines, ""]).encode()


def _words(column: Mapping[str, Any], numbers: Numbers) -> pa.Array:
    """Levels as they stand in a file, nothing where nobody answered or was asked."""
    levels = pa.array([*map(_quoted, column["levels"]), ""], pa.string())
    return levels.take(pa.array(np.minimum(numbers, len(column["levels"]))))


def _decimals(column: Mapping[str, Any], numbers: Numbers) -> pa.Array:
    """The same for numbers, digit for digit: whole steps of a power of ten, written as decimals."""
    grid, is_absent = Fraction(column["grid"]), numbers > column["high"] - column["low"]
    digits = next(k for k in range(19) if 10**k % grid.denominator == 0)
    worth, codes = int(grid * 10**digits), np.where(is_absent, 0, numbers) + column["low"]
    if digits > PLAIN or max(abs(column["low"]), abs(column["high"]), 1) * worth >= 2**62:
        slow = [show(int(code) * grid, digits=18) for code in codes]
        return pc.if_else(pa.array(is_absent), "", pa.array(slow, pa.string()))
    steps = codes * worth
    whole = np.stack([steps, steps >> 63], axis=1).astype("<i8")  # two words: a decimal has 128 bits
    exact = pa.Array.from_buffers(pa.decimal128(38, digits), len(steps), [None, pa.py_buffer(whole)])
    texts = exact.cast(pa.string())
    texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".") if digits else texts
    return pc.if_else(pa.array(is_absent), "", texts)


def _quoted(text: str) -> str:
    if text.startswith(FIRES):
        text = f"'{text}"
    return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\n\r') else text
