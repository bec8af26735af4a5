"""Figures 4.1 to 4.3 of the document, and bias against spread, from the outcomes of `noise-in-context`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.experiment import OURS, Row
from reticent.lab.figures import BOX_WORDS, ORANGE, bias_against_spread, box, boxes, titled
from reticent.lab.summary import Floats, groups
from reticent.lab.tenasks import UNITS
from reticent.report.marks import BLUE, GREY, Spec

SAMPLE, SILENT = "sample", "+ nonresponse"
Lines = tuple[tuple[str, str], ...]  # the method, and what a line without noise is called


def figures(outcomes: pa.Table, *, size: int, rows: int) -> dict[str, Spec]:
    """The four charts by the names of their files."""
    found = list(groups(outcomes))
    runs = len(outcomes["run"].unique())
    said = f"{size:,} simulated people"
    drawn = f"A simple sample of {rows:,} of {said}"
    budget = "Epsilon is that of a plan of ten asks, a tenth for each."
    close = f"{runs:,} runs. {BOX_WORDS}"
    noise, inside, against = (
        boxes(_boxes(found, lines))
        for lines in (
            (("noise alone", ""),),
            (("sampling", SAMPLE), ("sampling and noise", "")),
            (("sampling", SAMPLE), ("nonresponse", SILENT), (OURS, "")),
        )
    )
    return {
        "noise-alone": titled(noise, "Noise alone", f"All of {said}, everybody answers. {budget}", close),
        "noise-in-sample": titled(
            inside, "Noise inside the error of a 10 % sample", f"{drawn}, everybody answers. {budget}", close
        ),
        "noise-in-context": titled(
            against,
            "Noise, sampling and nonresponse against the truth",
            f"{drawn}; reluctant people skip several questions, the well paid their wage. {budget}",
            close,
        ),
        "bias-and-spread": _bias(found, runs, drawn),
    }


def _boxes(found: list[tuple[Row, dict[str, Floats]]], lines: Lines) -> Iterator[dict[str, Any]]:
    """Panel by panel, the lines in their order and the epsilons falling: more private downwards."""
    truths = {k["query"]: v["truth"][0] for k, v in found if k["method"] in ("sampling", OURS)}
    for query, truth in truths.items():
        for method, label in lines:
            mine = [(k["epsilon"], v) for k, v in found if (k["method"], k["query"]) == (method, query)]
            for epsilon, values in sorted(mine, key=lambda one: -(one[0] or 0)):
                yield box(
                    100 * (values["estimate"] / truth - 1),
                    panel=f"{query} ({_said(truth, UNITS[query])})",
                    label=label or f"epsilon {epsilon:g}",
                    noisy=not label,
                )


def _said(truth: float, unit: str) -> str:
    return f"{100 * truth:.1f} %" if unit == "share" else f"{truth:,.{1 if truth < 1000 else 0}f} {unit}"


def _bias(found: list[tuple[Row, dict[str, Floats]]], runs: int, drawn: str) -> Spec:
    kinds = {
        "sampling": GREY,
        "nonresponse": ORANGE,
        "privacy at epsilon 1": BLUE,
        "privacy at epsilon 0.1": "#56B4E9",
    }
    truths = {k["query"]: v["truth"][0] for k, v in found if k["method"] == "sampling"}
    rows = []
    for key, lines in found:
        kind = key["method"] + (f" at epsilon {key['epsilon']:g}" if key["epsilon"] else "")
        if kind in kinds:
            error = 100 * (lines["estimate"] - lines["truth"]) / truths[key["query"]]
            one = {"kind": kind, "label": key["query"], "spread": float(np.std(error))}
            rows.append({**one, "bias": float(abs(np.mean(error)))})
    return titled(
        bias_against_spread(rows, kinds=kinds, runs=runs),
        "Bias against spread of each source of error",
        f"{drawn}; one point for each ask and source. {runs:,} runs.",
        "On the solid line bias equals spread; below the dashed one it cannot be told from chance. "
        "Asks are named where the bias is above three times the spread.",
        width=85,
    )
