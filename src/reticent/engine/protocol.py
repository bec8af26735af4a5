"""The protocols behind which confidential rows live: what a release may ask, and what only the curator may.

Below them are those of work on every row: donors matched, a draw for each row, rows held as cells, points sorted by cell.
Today's engine does all four in local arrays. One that must not send its rows does them by statements of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from reticent.engine.sql.build import Dialect, Values
from reticent.engine.sql.clean import Clean, RowView
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Aggregate, Key, PointsByCell, Tallies
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from reticent.engine.donors.filling import DonorSql
    from reticent.engine.donors.matching import ClassTable, MatchPlan


class Engine(Protocol):
    """Holds rows and answers wants. Opening one looks at the header only.

    `files` are where its rows come from, with the table of a database.
    `check` raises SourceError when the header does not fit the codebook. `tally` reads the rows, a constant
    number of times however much is wanted, looks only at the piece that `lot` draws where one is given,
    carries out `repair` first, and raises EngineError with a constant text when it cannot. `coded` reads them once
    and holds them as cells of `keys` within its block. `stand_in` is an engine without rows that refuses what this one
    cannot do, to try a plan on before anything is charged; None where it can do all.
    """

    @property
    def version(self) -> str: ...

    @property
    def files(self) -> tuple[tuple[Path, str], ...]: ...

    def check(self, schema: Schema) -> None: ...

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Aggregate],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies: ...

    def coded(
        self, schema: Schema, keys: Sequence[Key], repair: Repair = NO_REPAIR, lot: Lot | None = None
    ) -> "AbstractContextManager[CodedRows]": ...

    def stand_in(self) -> "Engine | None": ...

    def close(self) -> None: ...


class CuratorEngine(Engine, Protocol):
    """CONFIDENTIAL: an engine that also shows its curator what the rows hold. No release asks for this.

    `types` has our word for the type of every header, `dialect` the words of its statements, and `base` selects from the source with its columns under
    plain names. `fetch` runs a statement made on that, and `read_clean` one made on the clean rows of `columns`, read
    as a tally reads them. `fingerprint` is equal for the same rows in any order and from any file; `filled` are all
    rows as codes after `repair`, in the source's order.
    """

    @property
    def types(self) -> Mapping[str, str]: ...

    @property
    def dialect(self) -> Dialect: ...

    def base(self, headers: Sequence[str], values: Values) -> tuple[exp.Select, Mapping[str, str]]: ...

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]: ...

    def read_clean(
        self, schema: Schema, columns: Sequence[str], build: Callable[[Clean, exp.Select], exp.Select]
    ) -> list[tuple[Any, ...]]: ...

    def fingerprint(self, schema: Schema) -> str: ...

    def filled(self, schema: Schema, repair: Repair) -> "pa.Table": ...


Whole = NDArray[np.int64]
Cells = NDArray[np.uint8] | NDArray[np.uint16]
Places = tuple[int, ...]


class Tables(Protocol):
    """Tables of the engine's own, for the time of one reading: made by a statement, given, asked and dropped."""

    def make(self, name: str, statement: str, values: Values | None = None) -> None: ...

    def give(self, name: str, table: "pa.Table", *, more: bool = False) -> None: ...

    def ask(self, statement: str) -> dict[str, Whole]: ...

    def drop(self, name: str) -> None: ...


class LocalTables(Tables, Protocol):
    """Tables of an engine on this side: `folder` is private, for what does not fit into memory, and `in_blocks` gives the
    lines of a statement that is never NULL some at a time, as columns; one block at least, and it may be empty."""

    @property
    def folder(self) -> Path | None: ...

    def in_blocks(self, statement: str, values: Values) -> Iterator[dict[str, NDArray[Any]]]: ...


class LotTables(Tables, Protocol):
    """Tables of an engine elsewhere, from which records come a lot at a time."""

    def hold(self, name: str, statement: str, values: Values | None = None) -> None:
        """The lines of a statement under a name, for as long as a reading lasts."""

    def records_at_most(self) -> int:
        """CONFIDENTIAL: about how many records there are, where that is known without reading them; else 0."""

    def lot(self, names: Sequence[str], source: str) -> dict[str, Whole]:
        """Columns of whole numbers, never NULL, of rows that the caller knows to be few enough to be held."""

    def seek(self, name: str, column: str) -> None:
        """Let rows of a table, which lie in the order of a column, be found by it."""


class DonorMatcher(Protocol):
    """Donor matching: where every record stands on the ring, and which donors it meets there.

    `place` makes PEOPLE of PACKED, with an id and a place for each record, and drops PACKED. `match` makes TAKEN, TIED
    and GAPS of PEOPLE, as `Matches` has them, for the one column that `column` speaks of.
    """

    def place(self, tables: Tables, words: Sequence[str], key: str) -> None: ...

    def match(self, tables: Tables, column: "DonorSql", plan: "MatchPlan", classes: "ClassTable") -> None: ...


class RowDraws(Protocol):
    """Stochastic imputation: DRAWS has a line for each row of HELD, by its number, and in it a number from each of
    `draws`, under the name `z` and its place. No other row has a part in a row's numbers."""

    def draw(self, tables: Tables, draws: Mapping[int, Callable[[int], NDArray[Any]]]) -> None: ...


class Fill(Protocol):
    """How a silent cell is drawn from cells of its own row: a line of `table` for each cell of those in `given`."""

    @property
    def place(self) -> int: ...

    @property
    def given(self) -> Places: ...

    @property
    def table(self) -> NDArray[np.float64]: ...


class Fair(Protocol):
    """A source of fair bits."""

    def take(self, n: int) -> int: ...


class RowFill(Protocol):
    """How missing cells of rows are drawn, each from its own row: `fill` is given a block of rows, a line for each column,
    and a word of 64 fair bits for each row, and writes into the block."""

    def fill(self, block: Cells, words: NDArray[np.uint64]) -> None: ...


class RowSum(Protocol):
    """A list of whole numbers made of each row by itself, to be added up: the gradient of a model, for one.

    `add` is given a block of rows, a line for each column, and adds the list of each to `totals`, `length` numbers long.
    """

    @property
    def length(self) -> int: ...

    def add(self, block: Cells, totals: Whole) -> None: ...


class CodedRows(Protocol):
    """CONFIDENTIAL: encoded rows, each its cell in every column, that can be counted or passed over many times."""

    def count(self, sets: Sequence[Places]) -> list[Whole]:
        """For each set of columns its table over all their cells, exactly, all by one pass."""
        ...

    def complete(self) -> "CodedRows":
        """Only the rows without a silent cell."""
        ...

    def filled(self, fills: Sequence[Fill], bits: Fair) -> "CodedRows":
        """The rows with silent cells drawn, one fill after the other: each row uses only itself."""
        ...

    def redrawn(self, fill: "RowFill", bits: Fair) -> "CodedRows":
        """The rows with missing cells drawn by `fill`: each row uses only itself and bits of its own."""
        ...

    def summed(self, work: "RowSum") -> Whole:
        """The sum over all rows of what `work` makes of each, exactly."""
        ...

    def sampled_sum(self, work: "RowSum", rate: Fraction, bits: Fair) -> Whole:
        """The same over a Poisson sample: every row is in by a coin of its own, with chance `rate`."""
        ...

    def batches(self, size: int, bits: Fair) -> Iterator[Cells]:
        """All rows once, in an order that `bits` alone settle, `size` at a time: a line for each column.

        The last batch may be smaller. How many there are says how many rows there are: CONFIDENTIAL.
        """
        ...

    def close(self) -> None:
        """Forget the rows, and all that were made from them."""
        ...


class PlaceLines(Protocol):
    """Where numbers of points come from: all at once, or counted and in order.

    `in_order` gives the lines of a statement of two columns, a number `p0` and how many rows `n` have it, by number: a batch
    at a time, each forgotten before the next. A cell has `places` numbers.
    """

    def fetch_columns(self, statement: exp.Select, values: Values) -> dict[str, Whole]: ...

    def in_order(self, lines: exp.Select, values: Values, places: int) -> Iterator[Whole]: ...


class CellPoints(Protocol):
    """The points of every declared cell, sorted within it: a table of them, or what the fold of a want makes of them."""

    def tables(
        self, on: PlaceLines, cells: RowView, rows: exp.Select, wants: Sequence[PointsByCell], values: Values
    ) -> dict[PointsByCell, Any]: ...
