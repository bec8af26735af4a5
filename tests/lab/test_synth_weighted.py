"""`lab run synth-weighted`: a small run of the simulated census, and the page held to the numbers beside it."""

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pytest

from reticent.lab.experiments import find
from reticent.lab.experiments.synth_weighted import METHODS, STRATEGIES, experiment, pieces_of
from reticent.lab.run.experiment import COLUMNS

DOCS = Path(__file__).parents[2] / "docs" / "lab"
NAMES = {
    "adult": "Adult",
    "adult_pgm": "`adult_pgm`",
    "bank": "Bank",
    "br2000": "BR2000",
    "national": "National",
    "census": "census",
    "workers": "workers",
}


@pytest.fixture(scope="module")
def rows():
    found = json.loads((DOCS / "synth-weighted.json").read_text())["rows"]
    return {(row["dataset"], row["mask"], row["method"], row["strategy"]): row for row in found}


def both(row) -> str:
    return f"{row['tvd1']:.4f} / {row['tvd2']:.4f}"


def page_lines(rows) -> list[str]:
    """Every number of the page's tables, line by line."""
    made = []
    for dataset, name in NAMES.items():
        found = [rows[dataset, "none", method, "no-missing"] for method in METHODS]
        told, runs = " | ".join(map(both, found)), ", ".join(str(row["runs"]) for row in found)
        made.append(f"| {name} | {told} | {runs} |")
    for method in METHODS:
        for dataset, mask in dict.fromkeys((key[0], key[1]) for key in rows if key[2] == method):
            if mask == "none":
                continue
            found = [rows[dataset, mask, method, strategy] for strategy in STRATEGIES]
            own = rows[dataset, "none", method, "no-missing"]["tvd2"]
            runs = ", ".join(str(row["runs"]) for row in found)
            alone = rows[dataset, mask, "independent", "available"]
            told = " | ".join(map(both, found))
            made.append(
                f"| {NAMES[dataset]} | {mask} | {both(alone)} | {told} | {found[2]['tvd2'] / own:.2f} | {runs} |"
            )
    return made


def test_the_page_tells_what_was_run(rows):
    """Every line of its tables, and no number that is not in the JSON."""
    page = (DOCS / "synth-weighted.md").read_text().splitlines()
    told = [line for line in page if line.startswith("| ") and " / ." in line.replace("0.", ".")]
    assert told == page_lines(rows)


def test_no_piece_is_missing(rows):
    wanted = {tuple(piece.split("/")) for name in NAMES for piece in pieces_of(name)}
    assert {(d, m, method, s) for d, m, method, s in rows} == wanted


def test_a_fifth_missing_costs_at_most_a_quarter(rows):
    """Of `aim`, beside its own distance on complete rows; and the public benchmark is below .035."""
    for dataset in ("adult", "bank", "br2000"):
        own = rows[dataset, "none", "aim", "no-missing"]["tvd2"]
        assert rows[dataset, "MCAR", "aim", "response-weighted"]["tvd2"] <= 1.25 * own
    assert rows["adult_pgm", "MCAR", "aim", "response-weighted"]["tvd2"] <= 0.035
    silent = [rows["br2000", "MAR", "aim", strategy]["tvd2"] for strategy in STRATEGIES]
    assert silent[2] <= min(silent[:2])


def test_on_a_real_silence_weights_take_most_of_the_bias(rows):
    """Of tables by `aim` and all pairs the answers that were really left out cost least where cells are weighted by who answers."""
    for method in ("aim", "pairs"):
        left, filled, weighted = (
            rows["workers", "flags", method, strategy]["tvd2"] for strategy in STRATEGIES
        )
        assert weighted < filled < left
    own = rows["workers", "none", "aim", "no-missing"]["tvd2"]
    assert rows["workers", "flags", "aim", "response-weighted"]["tvd2"] <= 1.25 * own


def test_weighted_cells_are_never_worse_than_independent_columns(rows):
    for (dataset, mask, _method, strategy), row in rows.items():
        if strategy == "response-weighted":
            assert row["tvd2"] < rows[dataset, mask, "independent", "available"]["tvd2"]


def test_a_small_run_of_the_census():
    small = experiment(("census",), rows=400, runs=1)
    at = small.pieces.index("census/MAR/mst/response-weighted")
    made = small.run(at, 1)
    table = pa.Table.from_pylist([{**asdict(each), "run": at} for each in made], schema=COLUMNS)
    (row,) = small.told(table)
    assert (row["dataset"], row["mask"], row["method"], row["strategy"]) == (
        "census",
        "MAR",
        "mst",
        "response-weighted",
    )
    assert 0 < row["tvd1"] < row["tvd2"] < 1 and row["runs"] == 1 and row["tvd2_sd"] is None


def test_it_is_among_the_experiments():
    assert find("synth-weighted").pieces == experiment().pieces
