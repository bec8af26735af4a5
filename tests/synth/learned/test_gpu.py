"""The step that is timed on a GPU gives the library's whole numbers, and says what it could not do."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from reticent.synth.base import MissingMethod
from reticent.synth.learned.gradient import EXPONENTIALS, ChainGradient, ChainLayout
from reticent.synth.marginals.study import plain
from tests.synth.standins import toy

SCRIPT = Path(__file__).parents[3] / "bench" / "learned_gpu.py"
SIZES = (3, 2, 4, 5)
DOMAIN = toy(list(SIZES))


@pytest.fixture(scope="module")
def script():
    """The script as a module; it stands by itself and is in no package."""
    spec = importlib.util.spec_from_file_location("learned_gpu", SCRIPT)
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def library(step, cells: np.ndarray, missing: int) -> np.ndarray:
    """The library's sum of the same rows, where the script has it."""
    layout = ChainLayout.of(plain(DOMAIN, MissingMethod.AVAILABLE))
    weights, totals = (np.zeros(layout.parameters, dtype=np.int64) for _ in range(2))
    lines = [[*range(own.start), sum(SIZES)] for own in step.slices]
    for place, own in enumerate(step.slices):
        layout.block(weights, place)[:] = step.weights[lines[place], own]
    silent = np.array([axis.silence for axis in DOMAIN.axes])[:, None]
    rows = np.where(cells == missing, silent, cells).astype(np.uint8)
    ChainGradient(layout=layout, weights=weights).add(rows, totals)
    found = np.zeros(step.weights.shape, dtype=np.int64)
    for place, own in enumerate(step.slices):
        found[lines[place], own] = layout.block(totals, place)
    return found


def test_it_is_the_librarys_step(script) -> None:
    """20,000 rows, so several blocks; products with later columns, which no weight stands for, are left aside."""
    step, cells = script.made(SIZES), script.cells_of(20_000, SIZES)
    assert (step.table == EXPONENTIALS).all()
    found, expected = script.in_numpy(step, cells), library(step, cells, script.MISSING)
    is_weight = np.zeros(found.shape, dtype=bool)
    for own in step.slices:
        is_weight[: own.start, own] = True
    assert np.abs(expected).max() > 1_000_000
    assert (found[is_weight] == expected[is_weight]).all()
    assert (script.in_numpy(step, cells[:, ::-1]) == found).all()


def test_what_is_missing_is_said_in_a_line(script, monkeypatch, capsys) -> None:
    """Without PyTorch the step is timed by NumPy alone, and nothing fails; without time nothing is begun."""
    monkeypatch.setattr(script, "torch", None)
    for budget, is_timed in (("60", True), ("0.000001", False)):
        monkeypatch.setattr(sys, "argv", ["learned_gpu.py", "500", "--budget", budget])
        assert script.main() == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line["on"] for line in lines] == ["torch, cuda", "numpy", "torch, cpu"]
        assert lines[0]["left out"] == "PyTorch is not installed"
        assert lines[1].get("equal", False) is is_timed
