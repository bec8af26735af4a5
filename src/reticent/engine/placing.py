"""Everybody gets a place on the circle, some cells at a time: what is held in arrays has a limit."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from reticent.engine.circle import LOT, lots
from reticent.engine.labels import labelled
from reticent.engine.rings import PACKED, PEOPLE
from reticent.errors import EngineError

T = TypeVar("T")
EVERY_CELL = (0, 2**31 - 1)


class Tables(Protocol):
    """What an engine offers here: tables made, given, asked and dropped."""

    def make(self, name: str, statement: str) -> None: ...

    def give(self, name: str, table: pa.Table, *, more: bool = False) -> None: ...

    def ask(self, statement: str) -> dict[str, NDArray[np.int64]]: ...

    def drop(self, name: str) -> None: ...


def place_people(tables: Tables, words: Sequence[str], key: str) -> None:
    """PEOPLE: the records in PACKED, which is dropped, with their places."""
    for part, (first, last) in enumerate(_runs(tables)):
        found = tables.ask(f"SELECT * FROM {PACKED} WHERE cell0 BETWEEN {first} AND {last}")
        tables.give(PEOPLE, quietly(labelled, found, words, key), more=part > 0)
    tables.drop(PACKED)


def _runs(tables: Tables) -> list[tuple[int, int]]:
    """All cells at once where records are few; else runs of cells that hold few enough."""
    (records,) = tables.ask(f"SELECT count(*) AS n FROM {PACKED}")["n"]
    if records <= LOT:
        return [EVERY_CELL]
    found = tables.ask(f"SELECT cell0 AS cell, count(*) AS n FROM {PACKED} GROUP BY cell0")
    return lots(found["cell"], found["n"])


def quietly(work: Callable[..., T], *given: object) -> T:
    """What `work` gives. Where memory is short, how much it wanted is not told: that depends on the rows."""
    found = None
    with suppress(MemoryError):
        found = work(*given)
    if found is None:
        raise EngineError("the rows do not fit into memory; free some", field="source")
    return found
