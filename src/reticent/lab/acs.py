"""Real answers and real silence: ACS workers with allocation flags, in the simulated state's words.

The Census Bureau sets a flag where it had to fill an answer in. The records are not part of this package;
they are read from a data folder, named by RETICENT_DATA or found beside the repository.
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILE = "pums2016_workers.parquet"

FLAGS = {
    "age": "FAGEP",
    "sex": "FSEXP",
    "race": "FRACP",
    "marital": "FMARP",
    "relationship": "FRELP",
    "schooling": "FSCHLP",
    "employment": "FESRP",
    "hours": "FWKHP",
    "wage": "FWAGP",
}

# The first words that fit decide; what fits none of them is the last.
_WORDS = {
    "sex": ("SEX", (("female", "f"), ("male", "m"))),
    "race": (
        "RAC1P",
        (("asian", "asian"), ("black", "black"), ("american indian", "native"), ("alaska", "native"),
         ("pacific", "asian"), ("white", "white"), ("", "other")),
    ),
    "marital": (
        "MAR",
        (("never", "never"), ("separated", "separated"), ("divorced", "divorced"), ("widowed", "widowed"),
         ("", "married")),
    ),
    "relationship": (
        "RELP",
        (("reference", "head"), ("husband", "partner"), ("unmarried partner", "partner"), ("in-law", "relative"),
         ("son or daughter", "child"), ("stepson", "child"), ("roommate", "unrelated"), ("roomer", "unrelated"),
         ("nonrelative", "unrelated"), ("group quarters", "unrelated"), ("", "relative")),
    ),
    "schooling": (
        "SCHL",
        (("no high", "some-high"), ("regular high", "high-school"), ("ged", "high-school"),
         ("some college", "some-college"), ("associate", "some-college"), ("bachelor", "bachelor"),
         ("", "graduate")),
    ),
}  # fmt: skip


def data_folder() -> Path | None:
    """Where the real tables lie, or nothing when they are not at hand."""
    beside = Path(__file__).parents[3] / ".." / "shared" / "data"
    folder = Path(os.environ.get("RETICENT_DATA", beside))
    return folder.resolve() if (folder / FILE).is_file() else None


def read_workers(folder: Path) -> tuple[pa.Table, pa.Table]:
    """Answers under the state's names and levels, and a table of flags with the same rows."""
    raw = pq.read_table(folder / FILE)
    answers = {"household": raw["SERIALNO"], "age": raw["AGEP"], "hours": raw["WKHP"], "wage": raw["WAGP"]}
    for name, (source, words) in _WORDS.items():
        answers[name] = _reworded(raw[source], words)
    answers["employment"] = pa.array(["employed"] * raw.num_rows)
    return pa.table(answers), pa.table({name: pc.fill_null(raw[flag], False) for name, flag in FLAGS.items()})


def _reworded(column: pa.ChunkedArray, words: tuple[tuple[str, str], ...]) -> pa.Array:
    """Each long label as the short one whose words it holds."""
    labels = np.unique(column.cast(pa.string()).drop_null().to_numpy(zero_copy_only=False))
    short = [next(to for part, to in words if part in str(label).lower()) for label in labels]
    return pa.array(short).take(pc.index_in(column.cast(pa.string()), pa.array(labels)))
