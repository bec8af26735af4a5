"""Open an engine on a source. The one place where a source finds the engine that reads it."""

from collections.abc import Callable

from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import Source

Opener = Callable[[Source, int | None], CuratorEngine]


def _local(source: Source, threads: int | None) -> CuratorEngine:
    from reticent.engine.duckdb.engine import DuckDBEngine  # loaded only where rows are opened

    return DuckDBEngine(source, threads=threads)


LOCAL = "local"
ENGINES: dict[str, Opener] = {LOCAL: _local}


def open_engine(source: Source, *, threads: int | None = None, engine: str = LOCAL) -> CuratorEngine:
    """An engine on the rows of `source`. It looks at the header now and at the rows when asked.

    `threads` bounds how many work at once, all cores where it is None; `engine` is a name in `ENGINES`.
    """
    return ENGINES[engine](source, threads)
