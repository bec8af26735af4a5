"""The files of a release's synthetic tables: each as CSV and as Parquet, numbered over all of them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from reticent.release.release import Release
from reticent.release.synth_csv import to_csv
from reticent.release.synth_table import to_parquet

WRITERS: Mapping[str, Callable[[Mapping[str, Any], int], bytes]] = {".csv": to_csv, ".parquet": to_parquet}


def synth_pages(count: int) -> dict[str, Callable[[Release], bytes]]:
    """By ending: `.1.synth.csv`, `.1.synth.parquet`, and so on for `count` tables."""
    return {
        f".{number}.synth{ending}": partial(_page, number=number, write=write)
        for number in range(1, count + 1)
        for ending, write in WRITERS.items()
    }


def _page(release: Release, *, number: int, write: Callable[[Mapping[str, Any], int], bytes]) -> bytes:
    tables = [
        (table, copy) for table in release.document.get("synth", []) for copy in range(len(table["tables"]))
    ]
    return write(*tables[number - 1])
