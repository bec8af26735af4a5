"""The experiments: the split adds up, the truth is the textbook's, exact items are what is printed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from reticent.cli import lab as door
from reticent.errors import PlanError
from reticent.lab import tenasks
from reticent.lab.experiments import EXPERIMENTS, find, noise_in_context, noise_laws
from reticent.lab.noise import NoNoise
from reticent.lab.run.experiment import OURS, Experiment, Outcome, table_of
from reticent.lab.run.summary import SOURCES, cross_terms, groups, only, rows_of
from reticent.lab.world.design import simple

SIZE, ROWS, RUNS = 20_000, 2_000, 24
CONTEXT = noise_in_context.experiment(size=SIZE, rows=ROWS, epsilons=("10",))


@pytest.fixture(scope="module")
def outcomes() -> pa.Table:
    """A small state, a tenth of it sampled, 24 runs at epsilon 10."""
    return table_of({index: CONTEXT.run(index, CONTEXT.seed_of(index, 1)) for index in range(RUNS)})


def errors(outcomes: pa.Table) -> dict[tuple[str, str], np.ndarray]:
    return {(k["method"], k["query"]): v["estimate"] - v["truth"] for k, v in groups(outcomes)}


def gap(outcomes: pa.Table, query: str, parts: tuple[str, ...] = SOURCES) -> float:
    """Mean square of the whole less those of its parts, in Monte Carlo standard errors of that difference."""
    found = errors(outcomes)
    left = found[OURS, query] ** 2 - sum(found[part, query] ** 2 for part in parts)
    return float(abs(left.mean()) / (left.std(ddof=1) / np.sqrt(len(left)) or 1))


INNOCENT = ("adults", "married, of adults", "bachelor, of 25 and over", "employed, of adults", "mean hours")


def test_errors_add_up_run_by_run(outcomes):
    found = errors(outcomes)
    for query in tenasks.ASKS:
        whole = found[OURS, query]
        parts = sum(found[part, query] for part in SOURCES)
        assert np.allclose(parts, whole, rtol=0, atol=1e-5 + 1e-9 * np.abs(whole).max())


def test_squared_errors_add_up_within_monte_carlo_error(outcomes):
    """Where silence does not depend on the answer, cross terms are chance: five standard errors."""
    assert all(gap(outcomes, query) < 5 for query in INNOCENT)


def test_a_split_that_forgets_a_part_does_not_add_up(outcomes):
    """The naive twins: nonresponse forgotten for wages, sampling forgotten for adults."""
    assert gap(outcomes, "wages paid", ("sampling", "privacy")) > 5
    assert gap(outcomes, "adults", ("nonresponse", "privacy")) > 3.5


def test_cross_terms_close_the_split(outcomes):
    rows = {(r["method"], r["query"]): r for r in rows_of(CONTEXT, outcomes) if "item" not in r}
    for query in tenasks.ASKS:
        crossed = [r["value"] for r in cross_terms(outcomes, whole=OURS) if r["query"] == query]
        squares = [rows[part, query]["rmse"] ** 2 for part in SOURCES]
        assert len(crossed) == 3
        assert np.isclose(sum(squares) + sum(crossed), rows[OURS, query]["rmse"] ** 2, rtol=1e-4)


def test_sampling_swamps_noise_from_the_epsilon_told(outcomes):
    """At ten times that epsilon the noise has a tenth of the sampling error, by the errors of the same runs."""
    found = {row["query"]: row for row in noise_in_context.swamped(outcomes)}
    assert set(found) == set(tenasks.ASKS) and {row["printed"] for row in found.values()} == {0.05}
    made = errors(outcomes)
    noise, sampling = (np.sqrt(np.mean(made[part, "adults"] ** 2)) for part in ("privacy", "sampling"))
    assert np.isclose(found["adults"]["value"], 1.0 * noise / sampling)  # a tenth of the plan's epsilon of 10


def test_error_bars_cover_the_same_respondents_without_noise(outcomes):
    """At least 95 %: of 240 intervals, fewer than 214 would be a chance of 1e-4."""
    lines = only(outcomes, method="privacy").to_pylist()
    assert len(lines) == 240
    assert sum(line["low"] <= line["truth"] <= line["high"] for line in lines) >= 214


def test_total_margins_are_there_where_the_release_has_one(outcomes):
    rows = {r["query"]: r for r in rows_of(CONTEXT, only(outcomes, method=OURS)) if "item" not in r}
    with_margin = {query for query, row in rows.items() if row["coverage"] is not None}
    shares = {q for q, ask in tenasks.ASKS.items() if "proportion" in ask}
    assert with_margin == shares | {"mean hours", tenasks.MEDIAN}


STEPS = {tenasks.MEDIAN: 500, tenasks.SPREAD: 0.25}
"""A median is the nearest candidate; squares are taken about a mean rounded to a whole hour, half an hour off at most."""


def test_without_noise_and_silence_the_pipeline_gives_the_textbooks_answers():
    """On the complete state, to a millionth, or to the step that an ask declares."""
    world = noise_in_context.world(SIZE, ROWS, ("10",))
    found = tenasks.answers(world.census_plans["10"], world.census, NoNoise())
    for name, truth in world.truth.items():
        assert abs(found[name] - truth) <= STEPS.get(name, 1e-6 * truth), name


def test_the_weights_of_the_sample_fit_the_codebook():
    world = noise_in_context.world(SIZE, ROWS, ("10",))
    weights = simple(world.state, size=ROWS, seed=1).weights()
    assert weights.max() / 100 == world.plans["10"].schema.columns["weight"].upper == SIZE / ROWS


def test_the_plan_has_ten_asks_and_costs_what_it_says():
    made = tenasks.plan("0.3", size=SIZE, rows=ROWS)
    assert len(made.asks) == 10 and made.cost == made.cap


def test_a_run_depends_on_its_seed_alone(outcomes):
    again = table_of({3: CONTEXT.run(3, CONTEXT.seed_of(3, 1))}).drop_columns(["seconds"])
    assert again.equals(only(outcomes, run=3).drop_columns(["seconds"]).combine_chunks())


# Summary rows on numbers small enough to check by hand.


def lines(estimates: list[float], **rest) -> pa.Table:
    made = {
        i: [Outcome(method="m", query="q", truth=10.0, estimate=x, low=x - 1, high=x + 1, **rest)]
        for i, x in enumerate(estimates)
    }
    return table_of(made)


PLAIN = Experiment(name="plain", title="", source="", run=noise_laws.run)


def test_summary_rows_by_hand():
    (row,) = rows_of(PLAIN, lines([10, 12, 9, 13], epsilon=1.0, seconds=0.5))
    assert (row["truth"], row["bias"], row["medae"], row["coverage"]) == (10, 1, 1.5, 0.5)
    assert np.isclose(row["sd"], np.sqrt(10 / 3)) and np.isclose(row["rmse"], np.sqrt(14 / 4))
    assert np.isclose(row["bias_se"], row["sd"] / 2) and row["coverage_se"] == 0.25
    assert (row["seconds"], row["epsilon"]) == (0.5, 1)


def test_one_run_has_no_spread_and_says_so():
    (row,) = rows_of(PLAIN, lines([10]))
    assert row["sd"] is row["bias_se"] is row["rmse_se"] is None and row["rmse"] == 0
    json.dumps(row, allow_nan=False)


# Exact numbers.


@pytest.fixture(scope="module")
def laws() -> list[Outcome]:
    return noise_laws.run(0, 0)


def is_vector(value: float, vector: float) -> bool:
    """Equal to the last digit that is given, of nine or of six."""
    digits = 9 if f"{vector:.9f}"[-3:] != "000" else 6
    return f"{value:.{digits}f}" == f"{vector:.{digits}f}"


def test_every_constant_is_that_of_our_statements(laws):
    assert len(laws) == len({line.item for line in laws}) == 117
    assert [line.item for line in laws if not is_vector(line.value, line.vector)] == []
    assert not is_vector(laws[0].value * (1 + 1e-6), laws[0].vector)
    assert all(line.printed is None for line in laws)  # no document prints them


# The command.


def test_the_command_prints_one_object(tmp_path, laws):
    call = CliRunner().invoke(door.app, ["run", "noise-laws", "--out", str(tmp_path), "--json"])
    made = json.loads(call.output)
    assert call.exit_code == 0 and set(made) == {"name", "runs", "rows"}
    assert (made["name"], made["runs"], len(made["rows"])) == ("noise-laws", 1, 117)
    assert all(set(row) == {"item", "value", "vector"} for row in made["rows"])


def test_the_command_lists_every_experiment_with_its_source():
    said = CliRunner().invoke(door.app, ["list"]).output
    assert all(e.name in said and e.title in said and e.source in said for e in EXPERIMENTS.values())
    assert "Example" in CliRunner().invoke(door.app, ["run", "--help"]).output


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(PlanError, match="did you mean 'noise-in-context'"):
        find("noise-in-contxt")
    line = "from reticent.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", line, "lab", "run", "os.path"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: NAME: no experiment is called 'os.path'; see reticent lab list\n"


# The page that tells what was found.

DOCS = Path(__file__).parents[2] / "docs" / "lab"
COLUMNS = [("sampling", None), ("nonresponse", None), *(("privacy", e) for e in (0.1, 0.3, 1.0, 3.0, 10.0))]
COLUMNS += [(OURS, 1.0)]


def wrong_cells(page: str, rows: list[dict[str, object]]) -> list[tuple[str, str]]:
    """Cells of the page's first table that are not the root mean square error in per cent of the truth."""
    found = {(r["method"], r["query"], r["epsilon"]): r for r in rows if "item" not in r}
    wrong = []
    for query in tenasks.ASKS:
        (line,) = [text for text in page.splitlines() if text.startswith(f"| {query} |")][:1]
        truth = found["sampling", query, None]["truth"]
        cells = [cell.strip() for cell in line.split("|")[3:-1]]
        right = [f"{100 * found[method, query, e]['rmse'] / truth:.2f}" for method, e in COLUMNS]
        wrong += [(query, cell) for cell, text in zip(cells, right, strict=True) if cell != text]
    return wrong


def test_the_page_prints_the_numbers_that_were_measured():
    page, made = (
        (DOCS / "noise-in-context.md").read_text(),
        json.loads((DOCS / "noise-in-context.json").read_text()),
    )
    assert made["name"] == "noise-in-context" and f"{made['runs']:,} runs" in page
    assert wrong_cells(page, made["rows"]) == []
    assert wrong_cells(page.replace("| adults | 396,916 | 0.", "| adults | 396,916 | 1."), made["rows"])
