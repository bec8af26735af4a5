"""The model-imputation experiment: what its lines mean, and that the page tells what was measured."""

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent.lab.experiments import find, model_example
from reticent.lab.experiments import model_imputation as lab
from reticent.lab.experiments.model_imputation import figures
from reticent.lab.noise import NoModelNoise, QuickModelNoise
from reticent.lab.papers.strategies import both_stages, fill_exactly, query_only_published
from reticent.lab.run.experiment import Outcome, table_of
from reticent.lab.run.summary import rows_of
from reticent.models.sums import Centred

DOCS = Path(__file__).parents[2] / "docs" / "lab"
SMALL = {"n": (500,), "predictors": (1,), "variance": (0.3,), "epsilon": ("10",), "split": ("0.9",)}


@pytest.fixture(scope="module")
def lines() -> list[Outcome]:
    """One run with short sweeps."""
    whole, lab.SWEEPS = lab.SWEEPS, SMALL
    try:
        return lab.run(0, 7)
    finally:
        lab.SWEEPS = whole


def test_the_true_mean_is_one_half_in_every_setting() -> None:
    """400,000 rows each: six standard errors of at most 0.5/sqrt(n); those who answered are far off, and noticed."""
    for setting in (lab.PUBLISHED, lab.ImputationSetting(predictors=5), lab.ImputationSetting(variance=1.0)):
        drawn = lab.sample(
            lab.ImputationSetting(n=400_000, predictors=setting.predictors, variance=setting.variance),
            np.random.default_rng(1),
        )
        assert abs(drawn.y.mean() - lab.TRUTH) < 6 * 0.5 / 400_000**0.5
        assert abs(np.nanmean(drawn.told) - lab.TRUTH) > 6 * 0.5 / 400_000**0.5
        assert abs(np.isnan(drawn.told).mean() - 0.5) < 6 * 0.5 / 400_000**0.5


def test_a_run_has_every_method_at_every_setting(lines: list[Outcome]) -> None:
    """Floors where rows are drawn anew; one stage where the split plays a part in it; both stages everywhere."""
    both = {f"both/{name}" for name in (*lab.ESTIMATORS, "multiple")}
    found: dict[tuple[str | None, float | None], set[str | None]] = {}
    for line in lines:
        found.setdefault((line.query, line.epsilon), set()).add(line.method)
    assert found["mean of y", None] == {"no-missing", "nonprivate"}
    assert found["mean of y", 10.0] == {"available", "query-only", *both}
    assert found["mean of y", 1.0] == {"available", "query-only", lab.STRATEGY_II, *both}
    assert found["mean of y, n = 500", None] == {"no-missing", "nonprivate"}
    assert found["mean of y, split = 0.9", 1.0] == both
    assert {"mean of y, predictors = 1", "mean of y, variance = 0.3"} <= {query for query, _ in found}
    alone = [line for line in lines if line.method != "both/multiple"]
    assert all(0 <= (line.estimate or 0) <= 1 for line in alone)
    for line in lines:
        assert (line.low is None) == (line.method != "both/multiple")


def test_strategy_ii_is_as_published() -> None:
    """Its error about the filled mean has the scale (missing + 1)/n over epsilon: 300 draws, mean size within 5 errors."""
    drawn, shape = lab.sample(lab.PUBLISHED, np.random.default_rng(3)), lab.design(2)
    filled, missing = fill_exactly(shape, drawn.x, drawn.told)
    noise, scale = QuickModelNoise(np.random.default_rng(4)), (missing + 1) / 10_000
    told = [
        float(query_only_published(shape, drawn.x, drawn.told, epsilon=Fraction(8), noise=noise).mean)
        for _ in range(300)
    ]
    size = np.abs(np.array(told) - filled.mean() / 2048).mean() * 8
    assert abs(size / scale - 1) < 5 / 300**0.5 and abs(size / (2 * scale) - 1) > 5 / 300**0.5


def test_proposition_3_2_is_attained_and_never_passed() -> None:
    for line in model_example.run(0, 0):
        if line.as_printed is not None:
            assert line.value == pytest.approx(line.as_printed)
    assert model_example.largest_move([0.0, 1.0, 1.0, 0.5], answered=2) < 3 / 4


def test_sweeps_are_made_in_every_fifth_run() -> None:
    assert {line.query for line in lab.run(1, 7)} == {"mean of y"}


def test_rows_carry_their_setting(lines: list[Outcome]) -> None:
    rows = rows_of(find("model-imputation"), table_of({0: lines}))
    told = {(r["n"], r["predictors"], r["variance"], r["split"]) for r in rows if "n" in r}
    assert {(10_000, 2, 0.1, 0.5), (10_000, 2, 0.1, 0.9)} <= told
    listed = {setting.query for setting in lab.settings()}
    assert all("n" in row for row in rows if row["query"] in listed)
    assert len(listed) == 1 + sum(len(v) for k, v in lab.SWEEPS.items() if k != "epsilon")


def test_without_noise_both_stages_are_least_squares() -> None:
    """To one step of the grid, 1/2048; a line through the wrong rows is noticed."""
    drawn, shape = lab.sample(lab.PUBLISHED, np.random.default_rng(3)), lab.design(2)
    found = both_stages(
        shape, drawn.x, drawn.told, epsilon=Fraction(1), estimator=Centred(), noise=NoModelNoise()
    )
    exact = fill_exactly(shape, drawn.x, drawn.told)[0].mean() / 2048
    assert abs(float(found.mean) - exact) < 1 / 2048
    assert abs(float(np.nanmean(drawn.told)) - exact) > 1 / 2048


def test_our_estimator_is_within_a_hundredth() -> None:
    """400 draws; its rmse is near 0.0085, so that of a sample exceeds 0.010 with chance below 1e-6."""
    rng, shape = np.random.default_rng(4), lab.design(2)
    errors = []
    for _ in range(400):
        drawn = lab.sample(lab.PUBLISHED, rng)
        found = both_stages(
            shape, drawn.x, drawn.told, epsilon=Fraction(1), estimator=Centred(), noise=QuickModelNoise(rng)
        )
        errors.append(float(found.mean) - lab.TRUTH)
    assert np.sqrt(np.mean(np.square(errors))) < 0.010


def test_quick_noise_has_the_stated_scale_and_no_other() -> None:
    """20,000 draws each; means within six standard errors, and a scale five per cent off is noticed."""
    noise, n = QuickModelNoise(np.random.default_rng(5)), 20_000
    far = np.array(
        [
            np.linalg.norm(noise.spherical([0, 0, 0], sensitivity=1000, epsilon=Fraction(1, 2)))
            for _ in range(n)
        ]
    )
    wide = np.array(noise.gaussian_many([0] * n, sensitivity=1000, rho=Fraction(1, 8)), dtype=float)
    for found, scale, spread in (
        (far.mean() / 3, 2000, 2000 * 3**0.5 / 3),
        (np.abs(wide).mean() * (np.pi / 2) ** 0.5, 2000, 2000 * (np.pi / 2 - 1) ** 0.5),
    ):
        error = 6 * spread / n**0.5
        assert abs(found - scale) < error
        assert abs(found - 1.05 * scale) > error and abs(found - 0.95 * scale) > error


def test_charts_are_drawn(lines: list[Outcome]) -> None:
    made = figures(table_of({0: lines, 1: lab.run(1, 8)}))
    assert set(made) == {"model-imputation", "model-bias-and-spread", "model-sweeps"}
    panels = {row["panel"] for row in made["model-sweeps"]["data"]["values"]}
    assert panels == set(lab.SWEEPS)


# The page that tells what was found.


def wrong_cells(page: str, rows: list[dict[str, object]]) -> list[str]:
    """Methods of the page's first table whose bias, spread or error is not what was measured."""
    found = {r["method"]: r for r in rows if r["query"] == "mean of y" and r["epsilon"] in (None, 1.0)}
    told = dict(re.findall(r"^\| `([a-z/-]+)` \| (.*) \|$", page, re.MULTILINE))
    right = {m: " | ".join(f"{r[k]:.4f}" for k in ("bias", "sd", "rmse")) for m, r in found.items()}
    return [method for method in right if told.get(method) != right[method]]


def test_the_page_prints_the_numbers_that_were_measured() -> None:
    page = (DOCS / "model-imputation.md").read_text()
    made = json.loads((DOCS / "model-imputation.json").read_text())
    assert made["runs"] == 500 and "500 runs" in page
    assert wrong_cells(page, made["rows"]) == []
    assert wrong_cells(page.replace("| `available` | -0.0", "| `available` | 0.0"), made["rows"])
    best = min(r["rmse"] for r in made["rows"] if r["method"].startswith("both/") and r["epsilon"] == 1.0
               and r["query"] == "mean of y")  # fmt: skip
    assert best <= 0.010
