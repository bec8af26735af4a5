"""The trial tables by name: their codebooks are written here, their rows are read from a data folder.

The folder is named by RETICENT_DATA or found beside the repository. The census is simulated and always there.

Rows as codes of a codebook, and codes as cells of a domain. What is in here is for trials, with the truth in hand.
"""

import os
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from reticent.errors import PlanError, nearest
from reticent.lab.world import state
from reticent.noise.bits import Bits
from reticent.schema import Levels, Number, Schema
from reticent.schema.codebook import schema_from
from reticent.synth.domain import BINS, HOLE, UNASKED, Domain, PointMasses, decode, domain_of, encode

Codes = NDArray[np.int64]
Cells = NDArray[np.int32]
Kept = NDArray[np.bool_]
"""Which rows of a table are kept."""


def codes_of(table: pa.Table, schema: Schema, columns: tuple[str, ...]) -> Codes:
    """Rows by columns. What is null, no level or out of bounds is a hole; a null outside its universe is one too."""
    coded = [_codes(table[schema.columns[name].source], schema.coded[name]) for name in columns]
    return np.stack(coded, axis=1)


def _codes(values: pa.ChunkedArray, column: Levels | Number) -> Codes:
    if isinstance(column, Levels):
        found = pc.index_in(values.cast(pa.string()), pa.array(column.levels))
        return np.asarray(pc.fill_null(found.cast(pa.int64()), HOLE), dtype=np.int64)
    steps = np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan)) / float(column.grid)
    inside = (steps > column.low - 0.5) & (steps < column.high + 0.5)
    return np.where(inside, np.floor(np.where(inside, steps, 0) + 0.5), HOLE).astype(np.int64)


def cells_of(codes: Codes, domain: Domain) -> Cells:
    """Each code in its cell: an answer's bin, silence, or not asked."""
    placed = [encode(codes[:, place], axis, domain.schema) for place, axis in enumerate(domain.axes)]
    return np.stack(placed, axis=1).astype(np.int32)


def decoded(cells: Cells, domain: Domain, bits: Bits) -> Codes:
    """Cells as codes again, each drawn evenly inside its bin: what would be published."""
    rows = decode(cells, domain, bits)
    return np.stack([rows[name] for name in domain.columns], axis=1)


def with_missing(codes: Codes, mask: NDArray[np.bool_]) -> Codes:
    """The answers that `mask` takes away are holes. Who was not asked stays so."""
    return np.where(mask & (codes != UNASKED), HOLE, codes)


CENSUS = "census"
FILES = {"adult": "adult", "bank": "bank", "br2000": "br2000", "national": "national_paper"}
NAMES = (CENSUS, *FILES)
CODED = "adult_pgm"
"""Adult as the authors of AIM have it, on its full domain: a public benchmark."""
FULL = {CODED: 100}
"""Tables whose numbers have a cell for every code unless bins are said, and how many bins leave them so."""
WORKERS = "workers"
"""Workers whose silence is known: the Census Bureau's flags say which of their answers it filled in."""
READ = {**FILES, CODED: CODED, WORKERS: "pums2016_workers"}
TARGETS = {CENSUS: "employment", "adult": "income", "bank": "y", "br2000": "a8", "national": "OWN_RENT"}
PEOPLE, CENSUS_SEED = 20_000, 1
ASKED = ("region", *state.ANSWERS)  # of the census; a tract is too fine to be a level


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One table with nothing missing. `codes` has a row for each respondent and a column for each of `columns`.

    Numbers among `heaps` have a bin of their own when rows are made; there are none unless they are said.
    """

    name: str
    schema: Schema
    columns: tuple[str, ...]
    codes: Codes = field(repr=False)
    point_masses: PointMasses = field(default_factory=dict)

    def domain(self, bins: int | None = None) -> Domain:
        bins = bins or FULL.get(self.name, BINS)
        return domain_of(self.schema, self.columns, bins=bins, point_masses=self.point_masses)

    def cells(self, bins: int | None = None) -> Cells:
        return cells_of(self.codes, self.domain(bins))

    def only(self, kept: NDArray[np.bool_] | slice) -> "Trial":
        """Some of the rows."""
        return replace(self, codes=self.codes[kept])


def data_folder() -> Path:
    """Where the tables lie, if they do."""
    beside = Path(__file__).parents[4] / ".." / "shared" / "data"
    return Path(os.environ.get("RETICENT_DATA", beside)).resolve()


def at_hand(name: str) -> bool:
    """Whether the rows of this table can be read here."""
    return name == CENSUS or (data_folder() / f"{READ[name]}.parquet").is_file()


def trial(name: str, *, rows: int | None = None) -> Trial:
    """The table of this name: its complete rows in the order of the file, or the first `rows` of them."""
    known = (CENSUS, *READ)
    if name not in known:
        raise PlanError(f"no trial is called {name[:80]!r}{nearest(name, known)}", field="dataset")
    whole = _census(rows or PEOPLE) if name == CENSUS else _read(name)
    return whole if rows is None else whole.only(slice(rows))


@cache
def _read(name: str) -> Trial:
    path = data_folder() / f"{READ[name]}.parquet"
    if not path.is_file():
        raise PlanError(f"needs {path.name}; name its folder in RETICENT_DATA", field="dataset")
    text = files("reticent.lab.trials").joinpath(f"{name}.codebook.toml").read_text(encoding="utf-8")
    schema = schema_from(tomllib.loads(text))
    columns = tuple(schema.coded)
    codes = codes_of(pq.read_table(path), schema, columns)
    return Trial(name=name, schema=schema, columns=columns, codes=codes[(codes != HOLE).all(axis=1)])


@cache
def _census(rows: int) -> Trial:
    """The first people of a simulated state. Where one of them has no answer, the question was not asked."""
    schema = schema_from(tomllib.loads(state.codebook()))
    people: pa.Table = state.people(rows, seed=CENSUS_SEED)
    codes = codes_of(people, schema, ASKED)
    return Trial(name=CENSUS, schema=schema, columns=ASKED, codes=np.where(codes == HOLE, UNASKED, codes))
