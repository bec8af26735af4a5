"""The lab's domains and tables that add up: every case runs, rows say what they should, and twins are worse."""

from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest

from reticent.lab.experiments import add_up, domains
from reticent.lab.run.experiment import COLUMNS, Outcome

FIELDS = {"case", "leading", "interval", "level", "coverage", "width_ratio", "runs"}


def rows_of(made, outcomes: list[list[Outcome]]):
    """As the runner would hand them over."""
    lines = [{**asdict(one), "run": i} for i, each in enumerate(outcomes) for one in each]
    return made.told(pa.Table.from_pylist(lines, schema=COLUMNS))


@pytest.mark.parametrize(
    "case", ["5000, count", "5000, share", "5000, median", "5000, rate", "5000, share, apart"]
)
def test_a_case_by_domain_tells_its_rows(case):
    """Three samples: privacy and, where it is known, total; five regions each."""
    made = domains.experiment()
    place, size = domains.CASES.index(case), len(domains.CASES)
    rows = rows_of(made, [made.run(place + i * size, seed=i) for i in range(3)])
    assert {row["case"] for row in rows} == {case}
    assert "privacy" in {row["interval"] for row in rows}
    for row in rows:
        assert set(row) >= FIELDS and row["runs"] == 3 and row["estimates"] == 5
        assert 0.4 <= row["coverage"] <= 1


def test_a_run_is_a_function_of_its_seed():
    assert domains.run(1, 7) == domains.run(1, 7) != domains.run(1, 8)


@pytest.mark.parametrize("case", list(add_up.CASES))
def test_a_case_of_tables_tells_cells_and_totals(case):
    """Twelve tables: intervals hold most counts. What is made to agree errs less than noisy tables at even shares."""
    made = add_up.experiment()
    place, size = list(add_up.CASES).index(case), len(add_up.CASES)
    rows = rows_of(made, [made.run(place + i * size, seed=i) for i in range(12)])
    assert {row["of"] for row in rows} == {"cells", "totals"}
    cells = next(row for row in rows if row["of"] == "cells")
    assert cells["coverage"] > 0.9
    gain = cells["error_over_even_shares"]
    assert gain < 1 if add_up.CASES[case].add_up else gain == pytest.approx(1, abs=0.1)
    assert np.isfinite(cells["width_ratio"])
