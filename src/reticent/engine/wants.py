"""What may be asked of an engine, sums over chosen rows and tables over declared cells, and what may leave it.

A want is public: it is made of the plan and the codebook. An engine answers a whole list of wants in a constant number of
passes over the rows. What it gives is confidential until noise is added, so no value is ever part of a repr.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.prepare.repair import Donors, MatchLevel, Repair
from reticent.schema import Levels, Schema
from reticent.schema.bind import Always, Bound
from reticent.schema.replicates import REPLICATE

MOST_CELLS = 1_000_000
MOST_PLACES = 2**63 - 1
ALWAYS = Always()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The rows that count: `where` is true, `known` columns are not missing, `answered` ones hold a code.

    A structural cell (its question was not asked) is not missing, but it holds no code either.
    """

    where: Bound = ALWAYS
    known: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The sum over `rows` of weight x value^power x other, in codes; a plain count when all are left out."""

    rows: Rows
    value: str | None = None
    power: int = 0
    weight: str | None = None
    other: str | None = None

    def by(self, keys: "tuple[Key, ...]") -> "Table":
        """The same sum in every cell of the keys."""
        return Table(
            rows=self.rows,
            keys=keys,
            weight=self.weight,
            value=self.value,
            power=self.power,
            other=self.other,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One side of a table: the levels of a column, its declared bins, or steps along its bounds.

    `starts` are the codes at which bins begin. `step` rounds codes to the nearest multiple counted from the
    lower bound. `silent` adds a cell for missing answers and, where the column has a universe, one for
    respondents who were not asked.
    """

    column: str
    starts: tuple[int, ...] = ()
    step: int | None = None
    silent: bool = False

    def answers(self, schema: Schema) -> int:
        """How many cells hold an answer."""
        column = schema.coded[self.column]
        if self.step is not None:
            return (2 * (column.high - column.low) + self.step) // (2 * self.step) + 1
        return len(self.starts) or column.high - column.low + 1

    def size(self, schema: Schema) -> int:
        return self.answers(schema) + self.silent * (1 + has_universe(schema, self.column))


def keys_of(donors: Donors) -> tuple[Key, ...]:
    """The sides of the domain on which a column's donors are matched: cells are numbered as in a table."""
    return tuple(Key(column=match.column, starts=match.starts, silent=True) for match in donors.near)


def level_keys(level: MatchLevel) -> tuple[Key, ...]:
    """The sides of the partition that a level of capped rings makes; none where everybody is in one cell."""
    return tuple(Key(column=match.column, starts=match.starts, silent=True) for match in level.on)


def has_universe(schema: Schema, column: str) -> bool:
    """Whether a column was asked of a part of the respondents only."""
    return schema.columns[column].universe is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One sum for every declared cell of the keys, empty ones included: a count when nothing is summed.

    What is summed is weight x value^power x other, in codes, as in a `Sum`.
    """

    rows: Rows
    keys: tuple[Key, ...]
    weight: str | None = None
    value: str | None = None
    power: int = 0
    other: str | None = None

    def by(self, keys: tuple[Key, ...]) -> "Table":
        """This table in every cell of the keys, one after the other."""
        return replace(self, keys=(*keys, *self.keys))

    def size(self, schema: Schema) -> int:
        cells = 1
        for key in self.keys:
            cells *= key.size(schema)
        return cells


EVERY_ROW = Rows()
MOST_CODED = 1_000
MOST_CODES = 2**16  # of one column: more do not fit in two bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding(Table):
    """For every row its cell in each key. Answers come first, then silence, then those who were not asked."""

    rows: Rows = EVERY_ROW

    def sizes(self, schema: Schema) -> tuple[int, ...]:
        return tuple(key.size(schema) for key in self.keys)

    def silences(self, schema: Schema) -> tuple[int, ...]:
        """The number of the silent cell of each key."""
        return tuple(key.answers(schema) for key in self.keys)


def check_coding(coding: Coding, schema: Schema, repair: Repair) -> None:
    """Refuse from public numbers what cannot be coded, or what nothing is proved for."""
    if not 1 <= len(coding.keys) <= MOST_CODED:
        raise PlanError(f"rows are coded by 1 to {MOST_CODED} columns", field="columns")
    for key in coding.keys:
        if not key.silent:
            raise PlanError(f"{key.column} has no cell for missing values; give it one", field="columns")
        if key.size(schema) > MOST_CODES:
            raise PlanError(f"{key.column} has more than {MOST_CODES:,} cells; bin it", field="columns")
    if repair.donors:
        raise PlanError(
            "the nearest donors do not go together with counting rows as cells: one answer may stand in several rows, and "
            "nothing here bounds how many; leave missing values to the synthesizer, which fills them after the noise, or "
            "leave bound = 'hubs' out, so that donors are capped",
            field="impute",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ring:
    """The rings of a column that donors fill: donors, and those recipients among `rows`, by heads or by weight.

    `rows` speaks only of columns that donors do not fill. Donors are never restricted.
    """

    column: str
    rows: Rows
    weight: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Whom one donor serves in its own cell, block by block, and recipients of cells without donors, as they are filled.

    Of the ring's recipients, the weight of those among `rows` in each cell of the keys, and of those who are not. Donors fill
    no other column that rows and keys speak of.
    """

    ring: Ring
    rows: Rows
    keys: tuple[Key, ...]

    @property
    def weight(self) -> str | None:
        return self.ring.weight


class CellFold(Protocol):
    """What is made of the points of each cell by itself. The choice is public, what it gives is not.

    Cells come in the codebook's order, some whole cells at a time, and are forgotten: `of` is asked for every such run,
    `joined` for what all of them gave, in order. Where a run ends follows from the points alone, on every engine, and what
    a cell gives does not depend on it, but for bits that are drawn for it.
    """

    def of(self, cells: "PointTable") -> Any: ...

    def joined(self, parts: Sequence[Any]) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsByCell:
    """The points (x, y) of every cell of `cell`, empty ones included; of y alone where there is no `x`.

    A row counts where it is among `rows` and has an answer in all of them. With a `fold` they are not kept: what it
    makes of them is given in their place.
    """

    rows: Rows
    cell: str
    y: str
    x: str | None = None
    fold: CellFold | None = field(default=None, repr=False)

    @property
    def axes(self) -> tuple[str, ...]:
        return (self.y,) if self.x is None else (self.x, self.y)

    def steps(self, schema: Schema, column: str) -> int:
        """Grid steps between the bounds of a column."""
        return schema.coded[column].high - schema.coded[column].low

    def cells(self, schema: Schema) -> int:
        return self.steps(schema, self.cell) + 1

    def size(self, schema: Schema) -> int:
        """How many places there are in all cells together: at most `MOST_PLACES`, or no engine can number them."""
        return self.cells(schema) * self.places(schema)

    def places(self, schema: Schema) -> int:
        """How many there are in one cell."""
        places = 1
        for axis in self.axes:
            places *= self.steps(schema, axis) + 1
        return places


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """For every base cell of `keys`: records, base weights, the `kept` largest of these, and the weight of `rows`.

    Everybody of positive base weight is in a cell; who holds no code in a key is in its cell number `silent`.
    With a `value` the weights of the rows are multiplied by it. Without a `weight` everybody weighs 1.
    """

    rows: Rows
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    value: str | None = None
    weight: str | None = None
    kept: int = 0

    def by(self, keys: tuple[Key, ...]) -> "Bins":
        """The same in every cell of the keys, which have cells for silence."""
        if not all(key.silent for key in keys):
            raise ValueError("keys in front of base cells have a cell for silence")
        return replace(self, keys=(*keys, *self.keys), silent=(*(0,) * len(keys), *self.silent))

    @property
    def base(self) -> tuple[object, ...]:
        """What wants share that are answered by one statement."""
        return self.keys, self.silent, self.weight, self.kept

    def size(self, schema: Schema) -> int:
        cells = 1
        for key in self.keys:
            cells *= key.size(schema)
        return cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """How many recipients of a column no capped donor served, added up over all rings."""

    column: str
    rows: Rows = Rows()


Aggregate = Sum | Table | Ring | Blocks | PointsByCell | Bins | Unserved


def is_replicate(schema: Schema, column: str) -> bool:
    """Whether it is summed as deviations."""
    return schema.coded[column].role == REPLICATE


def is_scored(want: Aggregate, schema: Schema) -> bool:
    """Whether what is summed is the position of a level."""
    return (
        isinstance(want, Sum | Table)
        and want.value is not None
        and isinstance(schema.coded.get(want.value), Levels)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SufficientStatistics:
    """Exact integer sums, one for each `Sum` that was wanted."""

    sums: Mapping[Sum, int] = field(repr=False)

    def __getitem__(self, want: Sum) -> int:
        return self.sums[want]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContingencyTable:
    """One exact integer for every declared cell, in the order of the codebook; absent cells are zero."""

    want: Table
    cells: tuple[int, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RingTable:
    """The donor rings of every declared cell: an ordered cell table.

    `donors` and `recipients` hold one number for each cell of the matching attributes, the last attribute
    fastest; `gaps` one for each donor, cells in order and donors clockwise: the weight of its own cell's
    recipients who come after the donor before and not after this one.
    """

    want: Ring
    donors: NDArray[np.int64] = field(repr=False)
    recipients: NDArray[np.int64] = field(repr=False)
    gaps: NDArray[np.int64] = field(repr=False)


NOBODY_SERVES, NOT_COUNTED = -1, -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockTable:
    """Recipients by the donor who serves them: lines for each block and cell that somebody is in.

    `block` numbers the blocks, and is `NOBODY_SERVES` for recipients of cells without donors; `cell` is `NOT_COUNTED` for
    those who are not among the rows.
    """

    want: Blocks
    block: NDArray[np.int64] = field(repr=False)
    cell: NDArray[np.int64] = field(repr=False)
    weight: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointTable:
    """The points of every declared cell, or of a run of them: an ordered cell table.

    Cell g of the codebook, or of the run, holds points `starts[g]` to `starts[g + 1]`, sorted by (x, y), each in grid steps from
    the lower bounds. Without an x, every x is 0.
    """

    want: PointsByCell
    starts: NDArray[np.int64] = field(repr=False)
    x: NDArray[np.int64] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BinTable:
    """What every base cell of a weighted survey holds: an ordered cell table.

    `count` records of positive base weight, their `total` weight, the `matching` weight of the rows that count
    (whole numbers of any size), and the `largest` base weights of each cell, falling, then zeros.
    """

    want: Bins
    count: NDArray[np.int64] = field(repr=False)
    total: NDArray[np.int64] = field(repr=False)
    matching: NDArray[np.object_] = field(repr=False)
    largest: NDArray[np.int64] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """Everything one plan needs from the rows.

    `points` has a `PointTable` for each want, or what its fold made.

    Where recipients have a donor in each of several rings, all of it is of the rows as the first ring completes them, and
    `fractions` has the sums and tables added over the completions of all rings, and `unserved` how many recipients nobody
    served, all rings together.
    """

    statistics: SufficientStatistics
    tables: Mapping[Table, ContingencyTable]
    rings: Mapping[Ring, RingTable] = field(default_factory=dict, repr=False)
    points: Mapping[PointsByCell, Any] = field(default_factory=dict, repr=False)
    bins: Mapping[Bins, BinTable] = field(default_factory=dict, repr=False)
    fractions: "Tallies | None" = field(default=None, repr=False)
    unserved: Mapping[str, int] = field(default_factory=dict, repr=False)
    blocks: Mapping[Blocks, BlockTable] = field(default_factory=dict, repr=False)


def added(parts: Sequence[tuple[int, Tallies]]) -> Tallies:
    """Sums and tables added up, each part so many times."""
    _, first = parts[0]
    sums = {want: sum(k * part.statistics[want] for k, part in parts) for want in first.statistics.sums}
    tables = {
        want: ContingencyTable(
            want=want,
            cells=tuple(
                sum(k * cell for (k, _), cell in zip(parts, cells, strict=True))
                for cells in zip(*(part.tables[want].cells for _, part in parts), strict=True)
            ),
        )
        for want in first.tables
    }
    return Tallies(statistics=SufficientStatistics(sums=sums), tables=tables)
