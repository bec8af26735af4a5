"""Engines by name. Which one the tests of this folder open is settled by the fixture `every_engine`."""

from reticent.engine.open import ENGINES, LOCAL
from reticent.engine.protocol import CuratorEngine
from reticent.engine.sources.open import Source

NAMES = (LOCAL,)  # engines that read any source; the others meet tests/engine/conformance
now = [LOCAL]


def open_any(source: Source, *, threads: int | None = None) -> CuratorEngine:
    """The engine whose turn it is, on the rows of `source`."""
    return ENGINES[now[0]](source, threads)
