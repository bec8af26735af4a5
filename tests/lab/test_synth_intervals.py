"""`lab run synth-intervals`: one survey of the simulated census, and what its rows carry."""

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from reticent.lab.experiments import find
from reticent.lab.experiments.synth_intervals import LEADING, PIECES
from reticent.lab.run.experiment import COLUMNS

DOCS = Path(__file__).parents[2] / "docs" / "lab"
ROW = (
    *(
        "dataset",
        "mask",
        "method",
        "query",
        "epsilon",
        "level",
        "leading",
        "coverage",
        "naive",
        "width_ratio",
    ),
    *("measured", "runs"),
)


def test_one_survey_of_the_census():
    """Universes and silence: every kind of question has intervals, which hold nine times in ten over some 150 questions."""
    experiment = find("synth-intervals")
    made = experiment.run(PIECES.index("census/MCAR/pairs/1"), 1)
    table = pa.Table.from_pylist([{**asdict(each), "run": 0} for each in made], schema=COLUMNS)
    rows = experiment.told(table)
    assert all(tuple(row) == ROW for row in rows)
    assert {row["query"] for row in rows} >= {
        "share",
        "mean",
        "two-way cell",
        "difference",
        "slope",
        "logistic slope",
    }
    held = [each.low <= each.truth <= each.high for each in made if each.low is not None]
    assert len(held) > 100
    assert sum(held) >= 0.85 * len(held)


def test_the_cases_that_the_page_leads_with():
    assert {piece.split("/")[2] for piece in LEADING} == {"pairs", "mst", "aim"}
    assert all(piece.startswith("adult/") and piece.endswith("/1") for piece in LEADING)


def test_the_leading_cases_hold():
    """On average over all answers, and over the questions of each kind: at least 93 % in 200 runs."""
    rows = json.loads((DOCS / "synth-intervals.json").read_text())["rows"]
    leading = [row for row in rows if row["leading"]]
    assert {(row["method"], row["mask"]) for row in leading} == {tuple(p.split("/")[2:0:-1]) for p in LEADING}
    for row in leading:
        assert row["runs"] >= 200
        assert row["coverage"] is None or row["coverage"] >= 0.93


def test_the_page_tells_what_was_run():
    """Every line of the table is a row of the JSON beside it, and every row a line."""
    rows = json.loads((DOCS / "synth-intervals.json").read_text())["rows"]
    told = [
        f"| {row['dataset']}, {row['method']}, {row['mask']}, {row['epsilon']:g} | {row['query']} | {100 * row['coverage']:.1f} | "
        f"{100 * row['naive']:.0f} | {row['width_ratio']:.2f} | {100 * row['measured']:.0f} | {row['runs']} |"
        for row in rows
        if row["coverage"] is not None
    ]
    lines = (DOCS / "synth-intervals.md").read_text().splitlines()
    assert [line for line in lines if line.startswith(("| adult,", "| census,", "| national,"))] == told
