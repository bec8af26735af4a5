"""Boxes around the true line for `model-workers`, a panel for every level of schooling."""

from typing import Any

import pyarrow as pa

from reticent.lab.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.summary import groups
from reticent.report.marks import Spec

WORDS = (
    "22,241 workers of the American Community Survey; who kept the wage back is their own. Epsilon is that of all five "
    "answers; a line gets half of it."
)


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """One chart: each level, method and epsilon."""
    runs, found = len(outcomes["run"].unique()), list(groups(outcomes))
    rows: list[dict[str, Any]] = []
    for query in dict.fromkeys(key["query"] for key, _ in found):
        for key, lines in found:
            if key["query"] == query:
                error = 100 * (lines["estimate"] / lines["truth"] - 1)
                label = f"{key['method']}, {key['epsilon']:g}"
                rows.append(box(error, panel=query, label=label, noisy=key["method"] != "available"))
    made = titled(boxes(rows), "Mean wage by schooling", WORDS, f"{runs:,} runs. {BOX_WORDS}")
    return {"model-workers": made}
