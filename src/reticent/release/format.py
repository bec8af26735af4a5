"""What a reader of a release has to know of it: its format, what an interval covers, and its CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

FORMAT = "reticent-release/2"
COVERS = "privacy noise"
"""What a statistic's interval covers, and nothing else."""


def tidy_csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    """Lines under a header. Text that a spreadsheet would execute is defused by a leading quote (T28)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_defused(value) for value in line] for line in lines)
    return out.getvalue().encode()


def _defused(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return "" if value is None else value
