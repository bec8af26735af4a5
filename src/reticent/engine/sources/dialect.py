"""CSV dialects: separator, decimal comma, thousands mark and code page, as the codebook declares them.

Everything here is a function of one cell and the codebook, total, and done before a cell is read: a number written
`1.234,5` becomes the text `1234.5`. A code page is one in which every byte is a character by itself, so that no broken
byte reaches over into the next cell or record (R01).
"""

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from reticent.schema.schema import CsvDialect

MARKS = (";", "\t", "|", ",")
NO_NUMBER = "\N{REPLACEMENT CHARACTER}"


def transcoded(chunk: bytes, encoding: str) -> bytes:
    """The bytes as UTF-8. What is no character of the code page becomes U+FFFD, in its own place."""
    return chunk if encoding == "utf-8" else chunk.decode(encoding, errors="replace").encode()


def plain_numbers(cells: pa.Array, dialect: CsvDialect) -> pa.Array:
    """Numbers as they are written everywhere else: no thousands mark, a point before the decimals.

    A cell that is not written so in this dialect, such as `3.5` where the comma is declared, is no number: a mark before it
    says so, and it counts as missing. Thousands begin with no zero: `0,500` is a half in another dialect, and no 500 in this.
    """
    if not dialect.has_numbers:
        return cells
    mark, point = (_one_of(text) for text in (dialect.thousands, dialect.decimal))
    whole = f"[1-9][0-9]{{0,2}}({mark}[0-9]{{3}})+|[0-9]+" if mark else "[0-9]+"
    pattern = f"^[ \\t]*[+-]?(({whole})({point}[0-9]*)?|{point}[0-9]+)([eE][+-]?[0-9]+)?[ \\t]*$"
    bare = pc.replace_substring(cells, dialect.thousands, "") if mark else cells
    bare = pc.replace_substring(bare, dialect.decimal, ".")
    is_number = pc.match_substring_regex(cells, pattern)
    holds_point = pc.match_substring(cells, ".")
    if dialect.decimal != ".":
        cells = pc.if_else(holds_point, pc.binary_join_element_wise(NO_NUMBER, cells, ""), cells)
    return pc.if_else(is_number, bare, cells)


def _one_of(text: str) -> str:
    """The mark as a pattern: one character, taken literally."""
    return f"[{text}]" if text else ""


def looks_separated_by(header: Collection[str]) -> str:
    """The mark by which a header of a single name looks separated; nothing where it looks whole."""
    if len(header) != 1:
        return ""
    (name,) = header
    return max(MARKS, key=name.count) if any(mark in name for mark in MARKS) else ""
