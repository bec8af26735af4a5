"""A small town whose release is struck by faults, on whichever engine."""

from typing import Any

import pyarrow as pa

BOOK = {
    "format": 2,
    "survey": {"name": "town", "unit": "row", "at_most": 1},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 99]},
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "pay": {"kind": "integer", "bounds": [0, 100]},
    },
}
PEOPLE = pa.table(
    {
        "age": pa.array([i % 100 for i in range(500)], pa.int32()),
        "sex": [("f", "m", None)[i % 3] for i in range(500)],
        "pay": pa.array([None if i % 7 == 0 else i % 101 for i in range(500)], pa.int64()),
    }
)
ASKS = [{"name": "n", "query": {"count": "*"}, "epsilon": "0.5"}]


def estimate(made: Any) -> float:
    return float(made["n"][0]["value"])
