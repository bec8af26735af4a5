"""What may leave an engine. Confidential until noise is added, so no value is ever part of a repr."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reticent.engine.wants import Sum, Table


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallies:
    """Everything one plan needs from the rows."""

    statistics: SufficientStatistics
    tables: Mapping[Table, ContingencyTable]
