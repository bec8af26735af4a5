"""Capped donors for ten and a hundred million respondents: growth of time, and the peak of memory.

Run as `python -m bench.donors_large`; some minutes, and five gigabytes of disk for the file and what is put aside. Like
`bench.donors`, but one go each: a second one would take as long again.
"""

from typing import Any

from bench import survey
from bench.donors import MORE, TOTAL, grown
from bench.tally import show

MOST, MOST_GIB = 100_000_000, 2.0


def run() -> list[dict[str, Any]]:
    """A row for each size."""
    found = grown((MORE, MOST), [TOTAL], survey.capped(), most=1)
    return [{**row, "ok": bool(row["ok"] and row["peak_gib"] <= MOST_GIB)} for row in found]


if __name__ == "__main__":
    show(run())
