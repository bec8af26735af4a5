"""The protocols behind which confidential rows live: what a release may ask, and what only the curator may."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from reticent.engine.results import Tallies
from reticent.engine.sql.build import Values
from reticent.engine.sql.clean import Clean
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Aggregate, Key
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

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


class CuratorEngine(Engine, Protocol):
    """CONFIDENTIAL: an engine that also shows its curator what the rows hold. No release asks for this.

    `types` has our word for the type of every header, and `base` selects from the source with its columns under
    plain names. `fetch` runs a statement made on that, and `read_clean` one made on the clean rows of `columns`, read
    as a tally reads them. `fingerprint` is equal for the same rows in any order and from any file; `filled` are all
    rows as codes after `repair`, in the source's order.
    """

    @property
    def types(self) -> Mapping[str, str]: ...

    def base(self, headers: Sequence[str], values: Values) -> tuple[exp.Select, Mapping[str, str]]: ...

    def fetch(self, statement: exp.Select, values: Values) -> list[tuple[Any, ...]]: ...

    def read_clean(
        self, schema: Schema, columns: Sequence[str], build: Callable[[Clean, exp.Select], exp.Select]
    ) -> list[tuple[Any, ...]]: ...

    def fingerprint(self, schema: Schema) -> str: ...

    def filled(self, schema: Schema, repair: Repair) -> "pa.Table": ...
