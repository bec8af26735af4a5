"""The one protocol behind which confidential rows live."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reticent.engine.results import Tallies
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Aggregate, Key
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema

if TYPE_CHECKING:
    from reticent.engine.coded import CodedRows


class Engine(Protocol):
    """Holds rows and answers wants. Opening one looks at the header only.

    `files` are where its rows come from, with the table of a database.
    `check` raises SourceError when the header does not fit the codebook. `tally` reads the rows, a constant
    number of times however much is wanted, looks only at the piece that `lot` draws where one is given,
    carries out `repair` first, and raises EngineError with a constant text when it cannot. `coded` reads them once
    and holds them as cells of `keys` within its block.
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

    def close(self) -> None: ...
