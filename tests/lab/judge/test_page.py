"""The page for the lab shows the truth and says so; the page for publication was made without it."""

import numpy as np
import pytest

from reticent.lab.judge.distances import distances
from reticent.lab.judge.page import (
    CONFIDENTIAL,
    cell_labels,
    columns,
    judge_page,
    pair_associations,
    public_page,
)
from reticent.lab.trials.tables import cells_of, with_missing
from reticent.synth.domain import domain_of


@pytest.fixture(scope="module")
def lost(census) -> np.ndarray:
    return np.random.default_rng(1).random(census.codes.shape) < 0.2


def test_the_page_of_the_lab_says_what_it_is_and_prints_what_was_measured(census, lost, shuffled):
    page = judge_page(census, lost, shuffled, title="A <trial>").decode()
    found = distances(census.cells(), cells_of(shuffled, census.domain()), census.domain())
    assert CONFIDENTIAL in page and "A &lt;trial&gt;" in page and "<trial>" not in page
    assert all(f"{value:.4f}" in page for value in found.values())
    assert page.count("<figure") == 1 + len(census.columns) and "http://" not in page.replace(
        "http://www.w3.org", ""
    )


def test_the_page_for_publication_depends_on_the_synthetic_rows_alone(census, shuffled):
    """There is no way to hand it the truth; it holds no banner and no distance."""
    page = public_page(shuffled, census.domain(), title="Synthetic", promise="epsilon 1").decode()
    assert (
        page == public_page(shuffled.copy(), census.domain(), title="Synthetic", promise="epsilon 1").decode()
    )
    assert "epsilon 1" in page and CONFIDENTIAL not in page and "distance" not in page


def test_bars_are_shares_of_those_who_answered_or_were_not_asked(census, lost):
    """Each table's bars add up to one, silence or not: naive shares of all rows would not."""
    domain = census.domain()
    shown = {"truth": census.cells(), "answered": cells_of(with_missing(census.codes, lost), domain)}
    for chart in columns(shown, domain, by="truth"):
        rows = chart.spec["data"]["values"]
        for name in shown:
            assert abs(sum(row["value"] for row in rows if row["table"] == name) - 1) < 1e-9, chart.title


def test_a_heap_is_named_by_its_value_and_a_bin_by_its_first(census):
    domain = domain_of(census.schema, ["hours", "sex"], point_masses={"hours": ["40"]})
    hours = cell_labels(domain.axes[0], domain)
    assert hours[:2] == ["0 …", "7 …"] and "40" in hours and "41 …" in hours and hours[-1] == "not asked"
    assert not any("…" in label for label in cell_labels(domain.axes[1], domain))


def test_associations_are_one_for_equal_columns_and_small_for_shuffled_ones(census, shuffled):
    domain = census.domain()
    sex, race = domain.columns.index("sex"), domain.columns.index("race")
    copied = cells_of(shuffled, domain)
    rows = pair_associations(copied, domain).spec["data"]["values"]
    values = {(row["x"], row["y"]): row["value"] for row in rows}
    assert values["sex", "race"] < 0.1 and len(rows) == 11 * 10
    copied[:, race] = copied[:, sex]
    rows = pair_associations(copied, domain).spec["data"]["values"]
    assert abs({(r["x"], r["y"]): r["value"] for r in rows}["sex", "race"] - 1) < 1e-9
