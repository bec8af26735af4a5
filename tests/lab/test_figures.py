"""The charts draw the outcomes' own numbers, around the truth, and travel without a network."""

import re

import numpy as np
import pytest

from reticent.errors import ReticentError
from reticent.lab.experiments import noise_in_context
from reticent.lab.experiments.noise_in_context import figures as charts_of
from reticent.lab.run import figures
from reticent.lab.run.experiment import Outcome, table_of
from reticent.lab.tenasks import ASKS

METHODS = {"sampling": None, "nonresponse": None, "noise alone": 1.0, "sampling and noise": 1.0}
METHODS |= {"privacy": 0.1, "reticent": 0.1}


@pytest.fixture(scope="module")
def outcomes():
    """Made-up outcomes of the right form: 50 runs, ten asks, every method."""
    rng = np.random.default_rng(3)
    return table_of(
        {
            run: [
                Outcome(method=m, query=q, epsilon=e, truth=100.0, estimate=100 + rng.normal(0.5, 2))
                for m, e in METHODS.items()
                for q in ASKS
            ]
            for run in range(50)
        }
    )


@pytest.fixture(scope="module")
def charts(outcomes):
    return charts_of(outcomes, size=1000, rows=100)


def test_boxes_hold_the_quantiles_of_the_outcomes(charts, outcomes):
    """Each box of the third figure against the table, by another road."""
    rows = charts["noise-in-context"]["data"]["values"]
    assert len(rows) == 30
    frame = outcomes.to_pandas()
    for row in rows:
        method = {"sample": "sampling", "+ nonresponse": "nonresponse"}.get(row["label"], "reticent")
        query = row["panel"].rpartition(" (")[0]
        held = frame[(frame["method"] == method) & (frame["query"] == query)]["estimate"] - 100
        assert [row[k] for k in figures.BOX] == pytest.approx(list(held.quantile(list(figures.BOX.values()))))


def test_the_truth_is_a_line_at_zero(charts):
    for name in ("noise-alone", "noise-in-sample", "noise-in-context"):
        layers = charts[name]["spec"]["layer"]
        assert {"x": {"datum": 0}} in [layer["encoding"] for layer in layers]


def test_bias_against_spread_holds_the_summary(charts, outcomes):
    points = charts["bias-and-spread"]["layer"][2]["data"]["values"]
    frame = outcomes.to_pandas()
    one = next(p for p in points if (p["kind"], p["label"]) == ("sampling", "adults"))
    held = frame[(frame["method"] == "sampling") & (frame["query"] == "adults")]["estimate"] - 100
    assert (one["bias"], one["spread"]) == pytest.approx((abs(held.mean()), held.std(ddof=0)))


def test_every_chart_states_its_data_runs_and_marks(charts):
    for chart in charts.values():
        said = " ".join(chart["title"]["subtitle"])
        assert "1,000 simulated people" in said and "50 runs" in said
    assert "Epsilon is that of a plan" in " ".join(charts["noise-alone"]["title"]["subtitle"])


def test_charts_are_written_as_svg_png_and_page(charts, tmp_path):
    one = {"noise-alone": charts["noise-alone"]}
    written = figures.write(one, tmp_path / "new")
    assert [path.name for path in written] == [f"noise-alone.{ending}" for ending in ("svg", "png", "html")]
    svg, png, page = (path.read_bytes() for path in written)
    assert svg.startswith(b"<svg") and png.startswith(b"\x89PNG") and b"vegaEmbed" in page
    assert not re.search(rb"(?:src|href)=[\"']https?:", page)
    again = figures.write(one, tmp_path / "new")
    assert again[0].read_bytes() == svg and len(list((tmp_path / "new").iterdir())) == 3


def test_without_the_drawing_part_the_way_out_is_said(charts, tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "converter", lambda: None)
    with pytest.raises(ReticentError, match=r"reticent\[report\]"):
        figures.write(charts, tmp_path)


def test_the_experiment_draws_its_figures(outcomes):
    drawn = noise_in_context.experiment().figures(outcomes)
    assert set(drawn) == {"noise-alone", "noise-in-sample", "noise-in-context", "bias-and-spread"}
