"""Pages of survey-intervals, domains and add-up: what they tell is what was run, and cases keep to their goals."""

import json
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "lab"
FIELDS = {"case", "leading", "interval", "level", "coverage", "width_ratio", "runs"}


@pytest.mark.parametrize("name", ["survey-intervals", "domains", "add-up"])
def test_the_page_tells_what_was_run(name: str) -> None:
    """Every line of the table is a row of the JSON beside it, and every row a line; all keep to their goals."""
    rows = json.loads((DOCS / f"{name}.json").read_text())["rows"]
    told = []
    for row in rows:
        assert set(row) >= FIELDS and row["runs"] >= (400 if row["leading"] else 100)
        of = f", {row['of']}" if "of" in row else ""
        width = "" if row["width_ratio"] is None else f"{row['width_ratio']:.2f}"
        told.append(
            f"| {row['case']}{of} | {'yes' if row['leading'] else 'no'} | {row['interval']} | "
            f"{100 * row['coverage']:.1f} | {width} | {row['runs']} |"
        )
        if row["interval"] in ("privacy", "total"):
            assert row["coverage"] >= 0.935
        if row["leading"]:
            assert row["coverage"] <= 0.985 and row["width_ratio"] <= 1.3
    lines = (DOCS / f"{name}.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("|")][2:] == told
