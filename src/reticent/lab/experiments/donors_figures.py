"""Boxes around the true line for `donors-income`, and how wide its error bars are beside an oracle's."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.experiment import OURS, Row
from reticent.lab.figures import BOX_WORDS, box, boxes, titled
from reticent.lab.summary import Floats, groups
from reticent.report.marks import Spec

SHOWN = ("ignore", "published", OURS)
Found = list[tuple[Row, dict[str, Floats]]]


def figures(outcomes: pa.Table, *, size: int) -> dict[str, Spec]:
    """One chart: a panel for every ask. `global` is left out: its boxes would hide all others."""
    found, runs = list(groups(outcomes)), len(outcomes["run"].unique())
    who = f"{size:,} simulated people" if size else "22,241 workers of the American Community Survey"
    words = (
        f"{who}, a quarter of whom do not say their wage. Epsilon is that of one ask. "
        "Published: where it is proved private."
    )
    made = boxes(_boxes(found))
    return {
        "donors-income" if size else "donors-workers": titled(
            made, "Donors' answers against the truth", words, f"{runs:,} runs. {BOX_WORDS}"
        )
    }


def _boxes(found: Found) -> Iterator[dict[str, Any]]:
    """Panel by panel, the methods in their order and the epsilons falling: more private downwards."""
    for query in dict.fromkeys(key["query"] for key, _ in found):
        mine = [(key, lines) for key, lines in found if key["query"] == query and key["method"] in SHOWN]
        for key, lines in sorted(mine, key=lambda one: (SHOWN.index(one[0]["method"]), -one[0]["epsilon"])):
            yield box(
                100 * (lines["estimate"] / lines["truth"] - 1),
                panel=query,
                label=f"{key['method']}, {key['epsilon']:.3g}",
                noisy=key["method"] == OURS,
            )


def widths(outcomes: pa.Table) -> list[Row]:
    """Median width of an error bar over that of an oracle, who knows the law of the error and needs no bar epsilon.

    The oracle's half-width is the quantile of the errors themselves, over all runs of the same ask and epsilon.
    """
    rows: list[Row] = []
    for key, lines in groups(outcomes):
        method = str(key["method"])
        if method.startswith("bar "):
            level = int(method.removeprefix("bar ")) / 100
            oracle = 2 * float(np.quantile(np.abs(lines["estimate"] - lines["truth"]), level))
            ratio = float(np.median(lines["high"] - lines["low"])) / oracle if oracle else float("nan")
            at = {"query": key["query"], "epsilon": key["epsilon"]}
            rows.append({"item": f"width of {method} over an oracle's", **at, "value": ratio})
    return rows
