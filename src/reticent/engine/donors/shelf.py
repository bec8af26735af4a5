"""Columns of whole numbers put aside in blocks, each in the order of a key, and read again by ranges of that key.

Blocks are arrays while there is room in memory; beyond that they are written to a file in the engine's private folder. The
file has no name, so nobody else finds it, and it is gone when it is closed or the process ends, however it ends. What a range
holds does not depend on blocks or on where they are.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np

from reticent.engine.donors.circle import Whole
from reticent.errors import EngineError

HELD = 2**28  # bytes of all shelves of a reading that stay in memory
STEP = 2**10  # records from one fence to the next
FULL = "what is put aside could not be kept; free memory or disk"


class Room:
    """Memory for what is put aside, and the private folder for what does not fit; no folder, and all is held."""

    def __init__(self, folder: Path | None) -> None:
        self.folder, self.left = folder, HELD

    def holds(self, size: int) -> bool:
        """Whether so many bytes stay in memory. If so, they are taken off."""
        if self.folder is not None and size > self.left:
            return False
        self.left -= size
        return True


class Written(NamedTuple):
    """A column in a file: where it begins, its type, how many numbers it has."""

    offset: int
    kind: "np.dtype[Any]"
    length: int


class Shelf:
    """Blocks of columns. With a `key`, the name of a column, each block is put in its order.

    Guarantee   what is between two keys is, as a set of records, a function of the set of records that were added.
    Adjacency   any: nothing is computed of the numbers.
    Theorem     none is needed.
    Proof       proofs/engine/capped.md
    Assumes     a file gives back what was written.
    Keeps back  all of it.
    """

    def __init__(self, room: Room, key: str | None = None) -> None:
        self.room, self.key = room, key
        self.sizes: list[int] = []
        self._blocks = list[dict[str, Whole | Written]]()
        self._fences = list[Whole | None]()
        self._file: IO[bytes] | None = None
        self._end = self._held = 0

    def add(self, columns: Mapping[str, Whole]) -> None:
        """One block more."""
        size = sum(each.nbytes for each in columns.values())
        fence = None
        if self.room.holds(size):
            self._held += size
            self._blocks.append(dict(columns))  # put in order when a part of it is wanted
        else:
            if self.key is not None:
                columns, fence = _in_order(columns, self.key)
            self._blocks.append({name: self._write(each) for name, each in columns.items()})
        self._fences.append(fence)
        self.sizes.append(len(next(iter(columns.values()))))

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._blocks[0])

    def block(self, place: int, names: Sequence[str] | None = None) -> dict[str, Whole]:
        """Columns of one block, all where none are named."""
        return self._read(place, names, 0, self.sizes[place])

    def between(self, low: int, high: int, names: Sequence[str] | None = None) -> dict[str, Whole]:
        """Columns of all records whose keys are from `low` to `high`, blocks one after the other."""
        if self.key is None:
            raise ValueError("blocks without a key are read whole")
        parts = [self._between(self.key, place, low, high, names) for place in range(len(self._blocks))]
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _between(
        self, by: str, place: int, low: int, high: int, names: Sequence[str] | None
    ) -> dict[str, Whole]:
        fence, size, key = self._fences[place], self.sizes[place], self._blocks[place][by]
        if fence is None and not isinstance(key, Written):
            if not size or (low <= key.min() and key.max() <= high):
                return self._read(place, names, 0, size)
            columns, fence = _in_order(self._read(place, None, 0, size), by)
            self._blocks[place], self._fences[place] = dict(columns), fence
        start, stop = 0, size
        if fence is not None:
            start = max(0, int(np.searchsorted(fence, low, side="left")) - 1) * STEP
            stop = min(size, int(np.searchsorted(fence, high, side="right")) * STEP)
        keys = self._read(place, [by], start, max(start, stop))[by]
        first, last = np.searchsorted(keys, low, side="left"), np.searchsorted(keys, high, side="right")
        return self._read(place, names, start + int(first), start + int(last))

    def close(self) -> None:
        """Forget all of it."""
        if self._file is not None:
            self._file.close()
        self.room.left += self._held
        self.sizes, self._blocks, self._fences, self._file = [], [], [], None
        self._end = self._held = 0

    def _read(self, place: int, names: Sequence[str] | None, start: int, stop: int) -> dict[str, Whole]:
        block = self._blocks[place]
        chosen = block if names is None else {name: block[name] for name in names}
        return {
            name: self._load(each, start, stop) if isinstance(each, Written) else each[start:stop]
            for name, each in chosen.items()
        }

    def _write(self, column: Whole) -> Written:
        done = False
        with suppress(OSError):
            if self._file is None:
                self._file = TemporaryFile(dir=self.room.folder, buffering=0)  # noqa: SIM115  closed by close()
            given = np.ascontiguousarray(column).view(np.uint8).data
            at = self._end
            while given:
                sent = os.pwrite(self._file.fileno(), given, at)
                given, at = given[sent:], at + sent
            done = True
        if not done:
            raise EngineError(FULL, field="source")
        written = Written(self._end, column.dtype, len(column))
        self._end = at
        return written

    def _load(self, column: Written, start: int, stop: int) -> Whole:
        found: Whole = np.empty(stop - start, column.kind)
        taken, at, got = found.view(np.uint8).data, column.offset + start * column.kind.itemsize, 1
        with suppress(OSError):
            while taken and got and self._file is not None:
                got = os.preadv(self._file.fileno(), [taken], at)
                taken, at = taken[got:], at + got
        if taken:
            raise EngineError(FULL, field="source")
        return found


def _in_order(columns: Mapping[str, Whole], by: str) -> tuple[Mapping[str, Whole], Whole]:
    """The columns in the order of one of them, and the fences in that."""
    order = _order(columns[by])
    found = columns if order is None else {name: each[order] for name, each in columns.items()}
    return found, found[by][::STEP].copy()


def _order(key: Whole) -> Whole | None:
    """The records in the order of a key that is not below 0; None where they are in it."""
    if not (key[1:] < key[:-1]).any():
        return None
    index = len(key).bit_length()
    if int(key.max()).bit_length() + index > 64:
        return np.argsort(key, kind="stable")
    both = key.astype(np.uint64) << np.uint64(index)
    both |= np.arange(len(key), dtype=np.uint64)
    both.sort()
    both &= np.uint64(2**index - 1)
    return both.view(np.int64)
