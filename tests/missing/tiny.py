"""Tiny surveys and all their neighbours, for the private descriptions: every row is one of a few."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np

from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from tests.doubles import Call

NAMES = ("age", "sex", "pay")
CELLS = (None, 0, 1)
ROWS = tuple(product(CELLS, repeat=3))
Rows = tuple[tuple[int | None, ...], ...]


def schema(at_most: int = 1) -> Schema:
    columns = {name: {"kind": "integer", "bounds": [0, 1]} for name in NAMES}
    survey = {"name": "tiny", "unit": "row"}
    if at_most > 1:
        columns["id"] = {"kind": "identifier"}
        survey = {"name": "tiny", "unit": "id", "at_most": at_most}
    return schema_from({"survey": survey, "columns": columns})


def arrays(rows: Sequence[tuple[int | None, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Codes, 0 where missing, and the mask."""
    mask = np.array([[cell is None for cell in row] for row in rows], dtype=bool).reshape(len(rows), 3)
    codes = np.array([[cell or 0 for cell in row] for row in rows], dtype=np.int64).reshape(len(rows), 3)
    return codes, mask


def pairs(*, replaced: bool, records: int = 1) -> Iterator[tuple[Rows, Rows]]:
    """A small survey without the respondent, and the same with one of every kind; or with one kind and with another."""
    others: Rows = ((0, None, 1), (1, 1, 1))
    owned = list(combinations_with_replacement(ROWS[::2] if records > 1 else ROWS, records))
    for one in owned:
        yield others, others + one
        if replaced:
            yield from ((others + one, others + other) for other in owned)


def worst(run: Callable[[Rows], list[Call]], compared: Iterable[tuple[Rows, Rows]]) -> Fraction:
    """The largest loss over pairs of surveys: along one transcript, each call's distance over its scale, summed."""
    known: dict[Rows, list[Call]] = {}
    largest = Fraction(0)
    for pair in compared:
        first, second = (known.setdefault(rows, known.get(rows) or run(rows)) for rows in pair)
        assert [call.parameters for call in first] == [call.parameters for call in second]
        parts = [a.distance(b) * a.epsilon / a.sensitivity for a, b in zip(first, second, strict=True)]
        largest = max(largest, sum(parts, Fraction(0)))
    return largest
