"""The one protocol behind which confidential rows live."""

from collections.abc import Sequence
from typing import Protocol

from reticent.engine.lots import Lot
from reticent.engine.results import Tallies
from reticent.engine.wants import Want
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.schema import Schema


class Engine(Protocol):
    """Holds rows and answers wants. Opening one looks at the header only.

    `check` raises SourceError when the header does not fit the codebook. `tally` reads the rows, a constant
    number of times however much is wanted, looks only at the piece that `lot` draws where one is given,
    carries out `repair` first, and raises EngineError with a constant text when it cannot.
    """

    @property
    def version(self) -> str: ...

    def check(self, schema: Schema) -> None: ...

    def tally(
        self,
        schema: Schema,
        wants: Sequence[Want],
        repair: Repair = NO_REPAIR,
        lot: Lot | None = None,
    ) -> Tallies: ...

    def close(self) -> None: ...
