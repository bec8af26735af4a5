"""Synthetic rows in a release: packed into one line of text, and back into CSV, Parquet and Arrow, always the same bytes.

Everything here comes after the noise. Of a column with n codes the numbers 0 to n - 1 are codes counted from its lowest,
n is a missing answer and n + 1 a question that was not asked. CSV is written column by column: many rows, few different
texts.
"""

import binascii
import io
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import ReticentError
from reticent.exact import show
from reticent.privacy.claim import Claim
from reticent.schema import Levels, Number
from reticent.synth.domain import HOLE, UNASKED, Rows
from reticent.synth.lists import Lists, lists_section

if TYPE_CHECKING:
    from reticent.plan.synth import Synth


WIDTHS = (np.uint8, np.uint16, np.uint32, np.uint64)
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthTable:
    """What was drawn: one table of codes, or one for each completed copy, the promise, and the noisy size."""

    claim: Claim
    respondents: int
    tables: tuple[Rows, ...] = field(repr=False)
    told: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What the release says besides: the noisy tables behind the rows, and answers from them."""


def described(synth: "Synth", made: SynthTable, files: Sequence[str]) -> dict[str, Any]:
    """What a release says of a synthetic table, the rows included."""
    columns = [synth.domain.schema.coded[name] for name in synth.domain.columns]
    return {
        "name": synth.name,
        "words": synth.words(),
        "method": synth.method.name,
        "missing": synth.holes.value,
        "missing_words": synth.missing_words(),
        "guarantee": {"words": str(made.claim), **made.claim.as_dict()},
        "rows": synth.rows,
        "bins": synth.bins,
        "point_masses": {name: list(values) for name, values in synth.point_masses.items()},
        "copies": synth.copies,
        "never": list(synth.never),
        "determines": dict(synth.determines),
        **({"denial": synth.denial_words()} if synth.rules.denials else {}),
        "respondents": made.respondents,
        "columns": [_column(column, synth.domain.schema.headers[column.name]) for column in columns],
        "files": list(files),
        **made.told,
        "tables": [_packed(rows, columns) for rows in made.tables],
    }


def synths_section(
    synths: "Sequence[Synth]", made: Mapping[str, SynthTable], release_id: str
) -> dict[str, Any]:
    """The synthetic tables of a release, files counted over all of them; one without any does not speak of them."""
    told: list[dict[str, Any]] = []
    for synth in synths:
        first = 1 + sum(len(each["files"]) for each in told)
        told.append(described(synth, made[synth.name], synth.files(release_id, first)))
    return {"synth": told} if told else {}


def _column(column: Levels | Number, header: str) -> dict[str, Any]:
    common = {"name": column.name, "header": header, "low": column.low, "high": column.high}
    if isinstance(column, Levels):
        return {**common, "levels": list(column.levels), **(_scale(column) if column.ordered else {})}
    return {**common, "grid": show(column.grid, digits=18), "unit": column.unit}


def _scale(column: Levels) -> dict[str, Any]:
    """The order of levels, and their places on a scale where they have any: for questions to the release."""
    places = [show(position, digits=18) for position in column.positions]
    return {"ordered": True, **({"positions": places} if places else {})}


def _packed(rows: Rows, columns: Sequence[Levels | Number]) -> str:
    parts = []
    for column in columns:
        size = column.high - column.low + 1
        codes = rows[column.name]
        numbers = np.where(codes == HOLE, size, np.where(codes == UNASKED, size + 1, codes - column.low))
        parts.append(numbers.astype(_width(size)).tobytes())
    return b64encode(zlib.compress(b"".join(parts))).decode()


def _width(size: int) -> np.dtype[Any]:
    kind = next(kind for kind in WIDTHS if size + 1 <= np.iinfo(kind).max)
    return np.dtype(kind).newbyteorder("<")


def unpacked(table: Mapping[str, Any], copy: int = 0) -> list[Numbers]:
    """The numbers of every column of one table. A file that does not hold what it says is refused."""
    widths = [_width(column["high"] - column["low"] + 1) for column in table["columns"]]
    sizes = [table["rows"] * width.itemsize for width in widths]
    data = _inflated(table["tables"][copy], sum(sizes))
    found, start = [], 0
    for width, size in zip(widths, sizes, strict=True):
        found.append(np.frombuffer(data[start : start + size], dtype=width).astype(np.int64))
        start += size
    return found


def _inflated(text: str, size: int) -> bytes:
    data, inflater = b"", zlib.decompressobj()
    with suppress(zlib.error, binascii.Error):
        data = inflater.decompress(b64decode(text, validate=True), size + 1)
    if len(data) != size or not inflater.eof:
        raise ReticentError("holds synthetic rows that are not whole", field="release")
    return data


def to_arrow(table: Mapping[str, Any], copy: int = 0) -> pa.Table:
    """The rows as an Arrow table: levels as text, numbers as numbers, other cells empty."""
    pairs = zip(table["columns"], unpacked(table, copy), strict=True)
    return pa.table({column["header"]: _array(column, numbers) for column, numbers in pairs})


def _array(column: Mapping[str, Any], numbers: Numbers) -> pa.Array:
    is_absent = numbers > column["high"] - column["low"]
    kept = np.where(is_absent, 0, numbers)
    if "levels" in column:
        return pa.array(column["levels"], pa.string()).take(pa.array(kept, mask=is_absent))
    grid, codes = Fraction(column["grid"]), kept + column["low"]
    if grid.denominator == 1:
        return pa.array(codes * grid.numerator, mask=is_absent)
    # Divided by the denominator, not multiplied by a rounded grid: a cent is the double nearest to it.
    return pa.array(codes * float(grid.numerator) / grid.denominator, mask=is_absent)


def to_parquet(table: Mapping[str, Any], copy: int = 0) -> bytes:
    """The same as a Parquet file."""
    out = io.BytesIO()
    pq.write_table(to_arrow(table, copy), out, compression="zstd")
    return out.getvalue()


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


def measured_section(lists: Lists | None) -> dict[str, Any]:
    """What a release says of the noisy tables, their numbers packed; nothing where none were kept."""
    if lists is None:
        return {}
    words, numbers = lists_section(lists)
    packed = b64encode(zlib.compress(np.ascontiguousarray(numbers, dtype="<f8").tobytes())).decode()
    axes = [
        {"starts": list(axis.key.starts), "answers": axis.answers, "unasked": axis.has_unasked}
        for axis in lists.domain.axes
    ]
    return {"measured": {"axes": axes, **words, "numbers": packed}}
