"""The fence around DuckDB (R12): named files only, no extensions, a private spill folder, settings locked."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import duckdb
from sqlglot import exp

from reticent.engine.sources import DuckTable, ParquetFiles, Source


def fenced(source: Source, spill: Path | None, threads: int, memory: str) -> Any:
    """A connection that can reach the declared files and nothing else, with its settings locked."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        },
    )
    settings: dict[str, object] = {
        "threads": threads,
        "memory_limit": memory,
        "preserve_insertion_order": False,
        "python_enable_replacements": False,
        "error_on_division_by_zero": False,
        # A Parquet file says what its lowest and highest values are. Where it is wrong, the optimiser would
        # believe it and leave out our clamps (B076).
        "disabled_optimizers": "statistics_propagation",
        "enable_progress_bar": False,
        "temp_directory": str(spill) if spill is not None else "",
    }
    for key, value in settings.items():
        connection.execute(f"SET {key} = $1", [value])
    if isinstance(source, DuckTable):
        connection.execute("ATTACH $1 AS held (READ_ONLY)".replace("$1", _quoted(str(source.path))))
    paths = source.paths if isinstance(source, ParquetFiles) else ()
    connection.execute("SET allowed_paths = $1", [[str(path) for path in paths]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _quoted(path: str) -> str:
    return exp.Literal.string(path).sql("duckdb")


def private_folder() -> Path:
    """A folder of our own for spilling, 0700; what a killed run of this user left behind goes first."""
    root = Path(tempfile.gettempdir())
    for old in root.glob(f"reticent-{os.getuid()}-*"):
        process = old.name.split("-")[2]
        if not process.isdigit() or not Path(f"/proc/{process}").exists():
            shutil.rmtree(old, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"reticent-{os.getuid()}-{os.getpid()}-", dir=root))
