"""Spark sessions behind a fence: what a session's logs may hold is settled before a row is read.

A session of ours has neither UI nor event log, and its driver says nothing. One that the curator configured is asked for
both, and refused where its UI or event log is on, unless `spark.reticent.logs` is `accepted` there. Statements run in a
session beside it, with settings of their own, so that no view or function of the curator's is met by name and no setting of
the curator's is changed. Master, jars and options are the curator's: none comes from a plan.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reticent.errors import SourceError

SETTINGS = {
    "spark.sql.ansi.enabled": "true",  # what cannot be exact raises
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.session.collation.default": "UTF8_BINARY",
    "spark.sql.execution.arrow.pyspark.selfDestruct.enabled": "false",
    "spark.sql.debug.maxToStringFields": "0",
    "spark.sql.crossJoin.enabled": "true",
}
"""Of the session beside the curator's. Each is read back: one that cannot be set is refused."""

OURS = {
    "spark.ui.enabled": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.ui.enabled": "false",
}
"""Of a session that we start, whatever the cluster's defaults are."""

ALONE = {
    "spark.master": "local[*]",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
"""Where no cluster is configured: this machine, which nobody else can reach."""

ACCEPTED, STAGE = "spark.reticent.logs", "spark.reticent.stage"
NO_SPARK = "needs pyspark 4 and a Java runtime; pip install 'reticent[spark]', and Java 17 or later"


def configured() -> bool:
    """Whether the curator's environment describes a cluster."""
    return any(
        os.environ.get(name) for name in ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "MASTER")
    )


@contextmanager
def unheard() -> Iterator[None]:
    """What is started meanwhile has no standard error, now and later: Spark writes there what a cast could not read."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


@contextmanager
def unwarned() -> Iterator[None]:
    """Without Spark's words on the next pandas, which nobody here uses with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def own_session() -> Any:
    """The session that the curator's configuration describes (SPARK_HOME, SPARK_CONF_DIR), with UI and event log off."""
    if os.environ.get("SPARK_REMOTE"):
        raise SourceError(
            "Spark Connect sends rows through a server of its own; unset SPARK_REMOTE", field="source"
        )
    session = None
    with suppress(Exception):  # what Java or a missing package says may name the machine's paths
        with unwarned():
            from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("reticent")
        for name, value in (OURS | ({} if configured() else ALONE)).items():
            builder = builder.config(name, value)
        with unheard(), unwarned():
            session = builder.getOrCreate()
    if session is None:
        raise SourceError(NO_SPARK, field="source")
    return session


def beside(session: Any) -> Any:
    """A session of our own on the cluster of `session`, fenced."""
    context = getattr(session, "sparkContext", None) if hasattr(session, "_jsparkSession") else None
    if context is None:
        raise SourceError("is a Spark Connect session; use a classic one", field="source")
    check_logs(context)
    close_folders(context)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):  # they print the text of an error
        logging.getLogger(name).disabled = True
    ours = session.newSession()
    for name, value in SETTINGS.items():
        with suppress(Exception):
            ours.conf.set(name, value)
        if ours.conf.get(name, None) != value:
            raise SourceError(f"the cluster does not let {name} be {value}", field="source")
    return ours


def check_logs(context: Any) -> None:
    """Refuse a cluster whose UI or event log would hold row counts of every step, unless its curator accepts that."""
    settings = context.getConf()
    if settings.get(ACCEPTED, "") == "accepted":
        return
    for name, default, what in (
        ("spark.ui.enabled", "true", "a UI"),
        ("spark.eventLog.enabled", "false", "an event log"),
    ):
        if settings.get(name, default).lower() != "false":
            raise SourceError(
                f"the session keeps {what}, which shows how many rows each step has; set {name} to false, or "
                f"{ACCEPTED} to accepted where only those see it who may see the rows",
                field="source",
            )


def close_folders(context: Any) -> None:
    """Let nobody else into the folders where a session of this machine keeps what it sorts: Spark leaves them open to all."""
    if not is_alone(context):
        return
    closed = False
    with suppress(Exception):  # what it says names the machine's paths
        for folder in sorted_in(context):
            with suppress(FileNotFoundError):  # of a session that has ended meanwhile
                if folder.stat().st_uid == os.getuid():
                    folder.chmod(0o700)
                    closed = True
    if not closed:
        raise SourceError(
            "the session's folders for temporary files cannot be closed to others; start it as the same user",
            field="source",
        )


def sorted_in(context: Any) -> list[Path]:
    """The folders of a session of this machine for what it sorts; those of this user's other sessions may be among them."""
    roots = context._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(context._jsc.sc().conf())
    return [folder for root in list(roots) for folder in Path(str(root)).glob("blockmgr-*")]


def is_alone(context: Any) -> bool:
    """Whether a session is of this machine alone."""
    return str(context.master).startswith("local[") or context.master == "local"


class Quiet:
    """The driver's own log, silenced while rows are read: what Spark says of a failure may hold a respondent's answer."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._level: str | None = None

    def __enter__(self) -> None:
        with suppress(Exception):
            logger = self._context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
            self._level = str(logger.getLevel().toString())
            self._context.setLogLevel("OFF")

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self._context.setLogLevel(self._level or "OFF")


def stage_root(context: Any) -> str | None:
    """Where a cluster stages codes: a folder of its file system that the curator named. None on one machine."""
    named = context.getConf().get(STAGE, "")
    if named:
        return str(named)
    if is_alone(context):
        return None
    raise SourceError(
        f"rows are read once, and their codes staged where all executors see them; set {STAGE} to a private folder "
        "of the cluster's file system",
        field="source",
    )
