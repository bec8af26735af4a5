"""Spark for tests: whether it is here, a session of two cores, and engines on files."""

import atexit
import importlib.util
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow.parquet as pq

from reticent.engine.open import open_engine
from reticent.engine.sources.open import RemoteTable
from reticent.engine.spark.session import ALONE, OURS, unheard
from tests.engine.spark import lake

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for sessions in which nothing runs for long: code is compiled once, and plainly."""


def why_not() -> str:
    """Why Spark cannot be tried here; empty where it can."""
    if importlib.util.find_spec("pyspark") is None:
        return "needs pyspark: pip install --require-hashes -r requirements/spark.lock"
    return "" if shutil.which("java") else "needs a Java runtime, 17 or later"


@cache
def small_session() -> Any:
    """One for the process, as small as can be."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tests")
    small = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": QUICK,
    }
    for name, value in (OURS | ALONE | small | lake.SETTINGS).items():
        builder = builder.config(name, value)
    with unheard():
        return builder.getOrCreate()


def opened(session: Any, path: Path, partitions: int) -> Any:
    """An engine on the rows of a Parquet file, spread over so many partitions."""
    frame = session.read.parquet(str(path))
    if partitions != 2:
        frame = frame.repartition(partitions)
    return open_engine(RemoteTable(engine="spark", given=frame))


def held(table: Any) -> Any:
    """The rows of an Arrow table as a frame of the small session, by way of a file, as a cluster has them."""
    path = Path(mkdtemp(prefix="reticent-spark-tests-")) / "rows.parquet"
    atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
    pq.write_table(table, path)
    return small_session().read.parquet(str(path))
