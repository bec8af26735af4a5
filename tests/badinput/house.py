"""A small statistics office in a folder: plan, codebook, rows, ledger, and the command line run inside it."""

import contextlib
import csv
import hashlib
import io
import json
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

from reticent.cli import main
from reticent.privacy.ledger import Ledger

CODEBOOK = """
[survey]
name = "town-2026"
unit = "row"

[columns.age]
kind = "integer"
bounds = [0, 99]

[columns.rent]
kind = "decimal"
bounds = ["-100", "1000"]
grid = "0.5"

[columns.sex]
kind = "categorical"
levels = ["f", "m"]

[columns.weight]
kind = "decimal"
role = "weight"
bounds = ["0", "10"]
grid = "0.01"
"""

PLAN = """
[survey]
source = "rows.csv"
codebook = "town.codebook.toml"
ledger = "town.ledger.db"

[release]
id = "town-1"

[expect]
rows = 80

[protect]
change = "one respondent added or removed"
epsilon = "20"

[[statistic]]
name = "everybody"
query = { count = "*" }
epsilon = "4"

[[statistic]]
name = "mean rent of adults"
query = { mean = "rent", where = "age >= 18", centre = "400" }
epsilon = "6"

[[statistic]]
name = "weighted women"
query = { count = "*", where = "sex = 'f'", weight = "weight" }
epsilon = "4"

[[statistic]]
name = "age by sex"
query = { table = ["sex", "age"], bins = { age = [0, 18, 65, 99] } }
epsilon = "6"
"""

NO_PAGES: tuple[str, ...] = ()  # the report is drawn in tests of its own; here it would only cost time

HEADER = "age,rent,sex,weight"
GOOD = "34,420.5,f,1.25"


def rows(count: int = 80) -> list[str]:
    """Good lines, all alike enough that their answers are public for the purposes of a test."""
    return [
        f"{20 + i % 60},{300 + i}.5,{'fm'[i % 2]},{1 + i % 3}.25"
        for i in range(count)
    ]  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """Everything a run shows: its status and its two streams."""

    status: int
    out: str
    err: str


def bare(text: str) -> str:
    """Text without numbers, rules and runs of white space."""
    return re.sub(r"[\s━─]+", " ", re.sub(r"-?[0-9][0-9,]*(\.[0-9]+)?", "#", text))


class House:
    """A folder in which a release would succeed, until a test spoils something."""

    def __init__(self, folder: Path, *, plan: str = PLAN, codebook: str = CODEBOOK) -> None:
        self.folder, self.out = folder, folder / "releases"
        self.out.mkdir()
        self.plan, self.codebook = folder / "plan.toml", folder / "town.codebook.toml"
        self.rows, self.ledger = folder / "rows.csv", folder / "town.ledger.db"
        self.plan.write_text(plan, encoding="utf-8")
        self.codebook.write_text(codebook, encoding="utf-8")
        self.fill(rows())
        self.open_ledger()

    def open_ledger(self, budget: str = "1000", change: str = "one respondent added or removed") -> None:
        Ledger.create(self.ledger, dataset="town-2026", change=change, unit="epsilon", budget=budget)

    def fill(self, lines: Sequence[str], *, header: str = HEADER) -> None:
        self.rows.write_text("\n".join([header, *lines, ""]), encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        """Change the plan in one place."""
        text = self.plan.read_text(encoding="utf-8")
        assert text.count(old) >= 1, old
        self.plan.write_text(text.replace(old, new, 1), encoding="utf-8")

    def edit_codebook(self, old: str, new: str) -> None:
        text = self.codebook.read_text(encoding="utf-8")
        assert text.count(old) >= 1, old
        self.codebook.write_text(text.replace(old, new, 1), encoding="utf-8")

    def release(self, *arguments: str) -> Seen:
        return run("release", str(self.plan), *arguments)

    def check(self, *arguments: str) -> Seen:
        return run("check", str(self.plan), *arguments)

    @property
    def spent(self) -> Fraction:
        return Ledger.open(self.ledger).spent

    def digests(self) -> dict[str, str]:
        """Every file of the ledger and of the output folder, by its content."""
        kept = [*self.folder.glob("town.ledger.db*"), *self.out.rglob("*")]
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in kept
            if path.is_file() and not path.is_symlink()
        }

    def made(self) -> dict[str, str]:
        """The files of the release by name, each as its shape: keys and words, without numbers."""
        return {path.name: _shape_of(path) for path in sorted(self.out.iterdir())}


def _shape_of(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        return json.dumps(_structure(json.loads(text)), sort_keys=True)
    return "\n".join("|".join(map(bare, line)) for line in csv.reader(text.splitlines()))


def _structure(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _structure(inner) for key, inner in value.items() if key != "receipt"}
    if isinstance(value, list):
        return [_structure(inner) for inner in value]
    return "#" if isinstance(value, int | float) and not isinstance(value, bool) else value


def run(*arguments: str, columns: int = 400, pages: Sequence[str] | None = None) -> Seen:
    """The command line in this process, as it would be called; the report's drawings are left out unless asked for."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["reticent", *arguments]),
        patch.dict("os.environ", {"COLUMNS": str(columns), "TERM": "dumb"}),
        patch("reticent.cli.plans.drawn", lambda: NO_PAGES if pages is None else tuple(pages)),
        _signals_kept(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Seen(status, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def assert_refused(seen: Seen, *words: str, status: int = 2) -> None:
    """One line `error: field: what to do`, the status, nothing on the other stream."""
    assert seen.status == status, seen
    assert seen.out == "", seen
    assert re.fullmatch(r"error: [^\n]+: [^\n]+\n", seen.err), seen
    assert "Traceback" not in seen.err and "internal:" not in seen.err, seen
    for word in words:
        assert word in seen.err, (word, seen.err)


def assert_untouched(house: House, before: dict[str, str]) -> None:
    """No file made, none changed: ledger and output folder are as they were, byte for byte."""
    assert house.digests() == before
