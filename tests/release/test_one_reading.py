"""Whether a release is made does not hang on one respondent: frames with and without an odd cell, to the end.

The naive twin refuses by the type of a column, as was once done here.
"""

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.survey import Survey
from tests.tables import ADD, book, make_plan

CODEBOOK = book(
    {
        "size": {"kind": "integer", "bounds": [0, 9]},
        "day": {"kind": "categorical", "levels": ["2026-01-01", "2026-01-02"]},
    }
)
DAYS = [datetime(2026, 1, 1), datetime(2026, 1, 2)] * 10
FRAMES: dict[str, tuple[Any, Any]] = {
    "category": (
        pd.Series([1, 2] * 10, dtype="category"),
        pd.Series([1, 2] * 9 + [1, "x"], dtype="category"),
    ),
    "truth": (pd.Series([True, False] * 10), pd.Series([True, False] * 9 + [True, None])),
    "half": (pd.Series([1, 2] * 10, dtype="float16"), pd.Series([1, 2] * 9 + [1, "?"])),
    "complex": (pd.Series([1.0, 2.0] * 10), pd.Series([1.0, 2.0] * 9 + [1.0, 2j])),
}


def released(size: Any, day: Any, folder: Path) -> list[str]:
    """The files of a release from the frame, and what was charged."""
    folder.mkdir()
    ledger = Ledger.create(folder / "l.db", dataset="tiny", change=ADD, unit="epsilon", budget="9")
    plan = make_plan([{"total": "size"}, {"table": ["day"]}], CODEBOOK, change=ADD)
    survey = Survey(pd.DataFrame({"size": size, "day": day}), codebook=CODEBOOK)
    Curator(ledger).release(plan, survey, folder / "out")
    return [*sorted(path.name for path in (folder / "out").iterdir()), str(ledger.spent)]


# covers T31 T13
@pytest.mark.parametrize("kind", FRAMES)
def test_a_release_is_made_with_and_without_the_odd_cell(kind: str, tmp_path: Path):
    plain, odd = FRAMES[kind]
    others = pd.Series([*DAYS[:-1], "someday"])
    made = [released(plain, DAYS, tmp_path / "a"), released(odd, others, tmp_path / "b")]
    assert made[0] == made[1] and made[0][-1] == "2"


@pytest.mark.parametrize("kind", ["category", "truth", "half", "complex"])
def test_refusing_by_type_tells_of_the_odd_cell(kind: str):
    """Naive: a column of numbers takes NumPy's numbers, and nothing else."""

    def refuses(cells: Any) -> bool:
        held = cells.cat.categories if hasattr(cells, "cat") else cells
        return np.asarray(held).dtype.kind not in "biuf"

    plain, odd = FRAMES[kind]
    assert refuses(plain) != refuses(odd)
