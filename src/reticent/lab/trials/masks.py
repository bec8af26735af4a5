"""Which answers are taken away: one fixed draw for each table, kind and rate, so that repeats differ in the noise alone.

Where the masks that were published with *Differentially private data generation with missing data* are at hand they are used;
else they are drawn by the same rules (see `reticent.missing`).
"""

from functools import cache

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.lab.masks import make
from reticent.lab.trials.tables import FILES, READ, WORKERS, Trial, data_folder, trial
from reticent.schema import Levels
from reticent.synth.domain import UNASKED

Mask = NDArray[np.bool_]
KINDS = ("MCAR", "MAR", "MNAR")
FLAGS = "flags"
"""Which answers of the workers were filled in by the Census Bureau, at the rates that there were."""
SEED = 1


@cache
def mask(name: str, kind: str, rate: float, *, rows: int | None = None) -> Mask:
    """True where the answer of this table is lost; who was not asked has nothing to lose."""
    table = trial(name, rows=rows)
    if kind == FLAGS:
        return allocated(table)[: len(table.codes)]
    found = published(table, kind, rate) if rows is None else None
    return drawn(table, kind, rate) if found is None else found


def allocated(table: Trial) -> Mask:
    """Where the workers gave no answer of their own: a real silence, in which the answers of one respondent go together."""
    flags = pq.read_table(data_folder() / f"{READ[WORKERS]}.parquet")
    return np.stack([flags[name].fill_null(False).to_numpy() for name in map(_flag, table.columns)], axis=1)


def _flag(column: str) -> str:
    """The Census Bureau's name of a column's flag."""
    stem = column.replace("RAC1P", "RAC")
    return f"F{stem}" if stem.endswith("P") else f"F{stem}P"


def published(table: Trial, kind: str, rate: float) -> Mask | None:
    """The mask that was published with the paper, where it is at hand."""
    file = data_folder() / "paper_masks" / f"{table.name}_{kind}_{rate:g}.parquet"
    if table.name not in FILES or not file.is_file():
        return None
    flags = pq.read_table(file)
    sources = [table.schema.columns[name].source for name in table.columns]
    return np.stack([flags[source].to_numpy() for source in sources], axis=1).astype(bool)


def drawn(table: Trial, kind: str, rate: float) -> Mask:
    """The mask that we draw ourselves, from a seed that is a function of the table, the kind and the rate."""
    words = f"{table.name} {kind} {rate:g}".encode()
    rng = np.random.default_rng([SEED, int.from_bytes(words, "big")])
    asked = table.codes != UNASKED
    values = np.where(asked, table.codes, 0)
    made = make(kind.lower(), values, rate, rng, nominal=_nominal(table), asked=asked)
    return np.asarray(made.mask)


def _nominal(table: Trial) -> list[int]:
    columns = [table.schema.coded[name] for name in table.columns]
    return [place for place, c in enumerate(columns) if isinstance(c, Levels) and not c.ordered]
