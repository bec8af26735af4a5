"""Stochastic imputation with draws that follow the row, for replays on neighbours.

Draws are independent and every row has its own, so that between neighbours they may be paired as one likes: by row, so that
common rows have the same. Pairing them by number would not do: numbers follow the rows' codes, and a new row shifts all
behind it.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.sql.predict import DRAWS, HELD, NUMBER, LocalDraws
from reticent.lab.noise import SeededBits


def follow_rows(patch: pytest.MonkeyPatch) -> None:
    """From now on a draw depends on the row, on how many like it came before, and on the call alone."""
    calls = iter(range(10**6))

    def draw(self: LocalDraws, tables: Any, draws: Mapping[int, Any]) -> None:
        rows = tables.table(f'SELECT * FROM "{HELD}" ORDER BY "{NUMBER}"')
        words = list(map(repr, rows.drop_columns([NUMBER]).to_pylist()))
        found = {NUMBER: rows[NUMBER].combine_chunks()}
        for place, law in draws.items():
            found[f"z{place}"] = pa.array(_numbers(next(calls), words, law), pa.int32())
        tables.give(DRAWS, pa.table(found))

    patch.setattr(LocalDraws, "draw", draw)


def _numbers(call: int, words: list[str], law: Any) -> list[int]:
    """One draw of the law for each row."""
    met, found = Counter[str](), []
    for word in words:
        met[word] += 1
        seed = int.from_bytes(hashlib.sha256(f"{call} {word} {met[word]}".encode()).digest()[:8])
        found.append(int(law.func(1, bits=SeededBits(np.random.default_rng(seed)))[0]))
    return found
