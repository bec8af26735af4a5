"""A small session of Spark on this machine, for as long as the tests run."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.spark.engine import SparkEngine
from tests.engine.spark.sessions import opened, small_session, why_not


@pytest.fixture(scope="session")
def session() -> Any:
    if why := why_not():
        pytest.skip(why)
    return small_session()


@pytest.fixture
def engine_on(session: Any, tmp_path: Path) -> Iterator[Callable[..., SparkEngine]]:
    """Opens an engine on a table, in so many partitions; all are closed at the end."""
    made: list[SparkEngine] = []

    def open_it(table: pa.Table, partitions: int = 2) -> SparkEngine:
        path = tmp_path / f"{len(made)}.parquet"
        pq.write_table(table, path)
        made.append(opened(session, path, partitions))
        return made[-1]

    yield open_it
    for engine in made:
        engine.close()
