"""What may leave an engine. Confidential until noise is added, so no value is ever part of a repr."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reticent.engine.wants import Bins, PointsByCell, Ring, Sum, Table


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointTable:
    """The points of every declared cell: an ordered cell table.

    Cell g of the codebook holds points `starts[g]` to `starts[g + 1]`, sorted by (x, y), each in grid steps from
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

    Where recipients have a donor in each of several rings, all of it is of the rows as the first ring completes them, and
    `fractions` has the sums and tables added over the completions of all rings.
    """

    statistics: SufficientStatistics
    tables: Mapping[Table, ContingencyTable]
    rings: Mapping[Ring, RingTable] = field(default_factory=dict, repr=False)
    points: Mapping[PointsByCell, PointTable] = field(default_factory=dict, repr=False)
    bins: Mapping[Bins, BinTable] = field(default_factory=dict, repr=False)
    fractions: "Tallies | None" = field(default=None, repr=False)


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
