"""The model-workers experiment: methods pay alike, and without noise they are what a textbook says of the same rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from reticent.lab.experiments import model_workers as lab
from reticent.lab.experiments.model_workers import figures
from reticent.lab.run.experiment import table_of
from reticent.lab.world import workers as wages
from reticent.lab.world.workers import data_folder
from reticent.privacy.claim import amount

DOCS = Path(__file__).parents[2] / "docs" / "lab"


@pytest.mark.parametrize("epsilon", lab.EPSILONS)
def test_every_method_costs_the_same(epsilon: str) -> None:
    plans = {name: lab.plan(epsilon, fill) for name, fill in lab.METHODS.items()}
    assert all(plan.cost == amount(epsilon) for plan in plans.values())
    assert not plans["available"].models
    assert plans["line"].models[0].epsilon == amount(epsilon) / 2


@pytest.mark.skipif(data_folder() is None, reason="the workers' records are not part of this package")
def test_a_run_has_a_line_for_every_method_level_and_epsilon() -> None:
    lines = lab.run(0, 1)
    keys = {(line.method, line.query, line.epsilon) for line in lines}
    assert len(keys) == len(lines) == len(lab.METHODS) * len(lab.LEVELS) * len(lab.EPSILONS)
    table = wages.complete(wages.WORKERS, seed=0)
    wage, schooling = table["wage"].to_numpy(), np.array(table["schooling"].to_pylist())
    assert lab.truth()["bachelor"] == wage[schooling == "bachelor"].mean()
    assert set(figures(table_of({0: lines}))) == {"model-workers"}


def test_the_page_prints_the_numbers_that_were_measured() -> None:
    page = (DOCS / "model-imputation.md").read_text()
    made = json.loads((DOCS / "model-workers.json").read_text())
    found = {(r["query"], r["method"], r["epsilon"]): r for r in made["rows"]}

    def row(level: str) -> str:
        cells = [found[level, m, e] for e in (1.0, 4.0) for m in lab.METHODS]
        told = [f"{c['rmse']:,.0f} ({100 * c['coverage']:.0f} %)" for c in cells]
        return f"| {level} | {cells[0]['truth']:,.0f} | " + " | ".join(told) + " |"

    lines = set(page.splitlines())
    assert made["runs"] == 200 and {row(level) for level in lab.LEVELS} <= lines
    found["graduate", "line", 1.0]["rmse"] += 1  # a number that the page does not print is noticed
    assert row("graduate") not in lines
