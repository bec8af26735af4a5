"""The page on two naive twins prints what is measured here, where the tables are."""

from pathlib import Path

import numpy as np
import pytest

from reticent.lab.judge.distances import bootstrap, distances, first_for_silence, midpoints, round_trip
from reticent.lab.noise import SeededBits
from reticent.lab.trials.masks import mask
from reticent.lab.trials.tables import FILES, at_hand, cells_of, trial, with_missing

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "naive-twins.md"
NAMES = {"adult": "Adult", "bank": "Bank", "br2000": "BR2000", "national": "National"}
REAL = [
    pytest.param(name, marks=pytest.mark.skipif(not at_hand(name), reason="the rows are not here"))
    for name in FILES
]
pytestmark = pytest.mark.data


def told(found: dict[int, float]) -> str:
    return " / ".join(f"{found[k]:.3f}".removeprefix("0") for k in (1, 2))


@pytest.mark.parametrize("name", REAL)
def test_the_page_prints_what_mid_points_and_first_answers_do(name):
    table = trial(name)
    domain, truth = table.domain(), table.cells()

    def apart(cells: np.ndarray) -> str:
        return told(distances(truth, cells, domain, ways=(1, 2)))

    evenly = cells_of(round_trip(table.codes, domain, SeededBits(np.random.default_rng(2))), domain)
    middles = cells_of(midpoints(table.codes, domain, bins=16), domain)
    holed = cells_of(with_missing(table.codes, mask(name, "MCAR", 0.2)), domain)
    again = cells_of(bootstrap(table.codes, np.random.default_rng(1)), domain)
    assert np.array_equal(evenly, truth)
    lines = PAGE.read_text().splitlines()
    assert any(line.startswith(f"| {NAMES[name]} | {apart(middles)} | 0 / 0 |") for line in lines)
    assert f"| {NAMES[name]} | {apart(first_for_silence(holed, domain))} | {apart(again)} |" in lines


@pytest.mark.skipif(not at_hand("adult"), reason="the rows are not here")
def test_the_page_prints_the_share_that_missing_cells_make():
    table, lost = trial("adult"), mask("adult", "MCAR", 0.2)
    place = table.columns.index("workclass")
    state = table.codes[:, place] == table.schema.coded["workclass"].levels.index("State-gov")
    gone = lost[:, place]
    shares = (state.mean(), state[~gone].mean(), (state | gone).mean())
    page = PAGE.read_text()
    assert all(f"| {share:.4f} |".replace("0.", ".") in page for share in shares)
