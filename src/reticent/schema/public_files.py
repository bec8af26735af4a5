"""The one door through which a file that a plan names is read: its codebook, population totals, groups, anything later.

Whoever wrote the plan chose these names, and what such a file holds may be printed and published. So a file is
compared with the confidential ones (the rows, and the ledger with the keys it keeps) before a byte of it is read:
as a file, by device and inode, and not by how its name is spelled. No text quotes a cell; it says the line and the
column. What will be published from a file is told by `Read`, so that a curator sees it before anything leaves.
"""

import csv
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from reticent.errors import PlanError
from reticent.files import matching, read_toml

Identity = tuple[int, int] | str
LARGEST_FILE = 2**26
MOST_SHOWN = 100
ROWS, LEDGER = "the rows", "the ledger"
# What a database keeps beside itself: SQLite's journals, DuckDB's log, and the ledger's head.
COMPANIONS = ("", "-wal", "-shm", "-journal", ".wal", ".head")


class PublicCell(str):
    """A cell of a public file. Shown in a text, it says where it stands and not what it holds."""

    __slots__ = ("column", "line")
    line: int
    column: str

    def __new__(cls, text: str, line: int, column: str) -> Self:
        made = super().__new__(cls, text)
        made.line, made.column = line, column
        return made

    def __repr__(self) -> str:
        return f"(line {self.line})"

    def __format__(self, spec: str) -> str:
        return repr(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A file that a plan names and that was read: by which words, as which file, and what of it will be published."""

    at: str
    name: str
    identity: Identity = field(repr=False)
    what: str = ""
    published: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """For JSON: the name as the plan has it, and every text that leaves."""
        return {"file": self.name, "for": self.at, "what": self.what, "published": list(self.published)}


def identity(path: str | Path) -> Identity:
    """Device and inode, the same for all links to a file; the resolved path where there is no file to ask."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return _resolved(path)
    return (found.st_dev, found.st_ino) if found.st_ino else _resolved(path)


def _resolved(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)


def identities(source: str | Path) -> frozenset[Identity]:
    """All files behind a path or a glob, with what a database keeps beside them."""
    paths = (f"{path}{ending}" for path in matching(str(source)) for ending in COMPANIONS)
    return frozenset(identity(path) for path in paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFiles:
    """The files of one plan: `folder` is where it stands, `confidential` says what no name of it may lead to."""

    folder: Path
    confidential: Mapping[str, frozenset[Identity]] = field(repr=False)
    read: list[Read] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path, *, rows: Iterable[str | Path], ledgers: Iterable[str | Path]) -> "PublicFiles":
        """The door for a plan in `folder` whose rows and ledgers lie at these paths or globs."""
        found = {
            word: frozenset[Identity]().union(*map(identities, paths))
            for word, paths in ((ROWS, rows), (LEDGER, ledgers))
        }
        if found[ROWS] & found[LEDGER]:
            raise PlanError(f"holds {LEDGER}; name {ROWS}", field="survey.source")
        return cls(folder=folder, confidential=found)

    def check(self, name: str, *, field: str) -> Path:
        """The path of the file called `name`, if it is inside the folder by its name and not confidential."""
        outside = name.startswith(("/", "~")) or ".." in name.split("/") or any(c in name for c in "\\$:~\0")
        if not name or outside:
            raise PlanError("stays inside the plan's folder", field=field)
        path = self.folder / name
        self._check_apart(identity(path), field)
        return path

    def _check_apart(self, found: Identity, field: str) -> None:
        for word, held in self.confidential.items():
            if found in held:
                raise PlanError(f"holds {word}; name a public file, which is another one", field=field)

    def toml(self, name: str, *, field: str) -> dict[str, Any]:
        """A TOML file as a dictionary."""
        path = self.check(name, field=field)
        self.read.append(Read(at=field, name=name, identity=identity(path)))
        return read_toml(path, error=PlanError)

    def lines(self, name: str, *, field: str) -> Iterator[dict[str, PublicCell]]:
        """The lines of a CSV file by column, cells stripped. The first line names the columns."""
        text = self._text(self.check(name, field=field), name, field)
        try:
            table = csv.DictReader(io.StringIO(text), strict=True)
            for line in table:
                if None in line or None in line.values():
                    raise PlanError(
                        f"line {table.line_num} has more or fewer cells than the first", field=field
                    )
                yield {
                    str(column).strip(): PublicCell(str(cell).strip(), table.line_num, str(column).strip())
                    for column, cell in line.items()
                }
        except csv.Error:
            raise PlanError("is not a CSV file that can be read to its end", field=field) from None

    def _text(self, path: Path, name: str, field: str) -> str:
        data = self._bytes(path, name, field)
        try:
            if data is not None and len(data) <= LARGEST_FILE:
                return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
        raise PlanError("cannot be read; give a UTF-8 CSV file of at most 64 MiB", field=field)

    def _bytes(self, path: Path, name: str, field: str) -> bytes | None:
        """What an ordinary file holds, up to a byte more than is allowed. What was opened is compared once more."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return None
            opened = (found.st_dev, found.st_ino) if found.st_ino else _resolved(path)
            self._check_apart(opened, field)
            self.read.append(Read(at=field, name=name, identity=opened))
            try:
                return file.read(LARGEST_FILE + 1)
            except OSError:
                return None

    def publish(self, *, field: str, what: str, texts: Iterable[str]) -> None:
        """Say what of the file read last for `field` will be published."""
        place = max(i for i, each in enumerate(self.read) if each.at == field)
        known = self.read[place]
        told = tuple(dict.fromkeys(map(str, texts)))
        self.read[place] = replace(known, what=what, published=told)


def published_words(each: Read, *, most: int = MOST_SHOWN) -> str:
    """What leaves with a file, on one line; of many texts the first, and how many more there are."""
    shown = ", ".join(each.published[:most])
    more = len(each.published) - most
    rest = f" and {more:,} more, which --json lists" if more > 0 else ""
    return f"{each.name} ({each.what}): {shown}{rest}"


def check_apart(read: Iterable[Read], rows: str | Path) -> None:
    """Refuse rows that are one of the files a plan was read with: they were taken for public."""
    held = identities(rows)
    for each in read:
        if each.identity in held:
            raise PlanError(f"holds {ROWS}; name a public file, which is another one", field=each.at)
