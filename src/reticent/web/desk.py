"""The folder that the desk is about: its plans, codebooks, rows and ledgers, each found by listing and never by a path.

A name from a request is looked up among the names that are there. So no request can lead out of the folder (W11).
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from reticent.engine.sources.arrow import READERS
from reticent.engine.sources.open import STATISTICAL, TEXT_FILES, is_remote
from reticent.errors import LedgerError, PlanError, ResourceError, ReticentError, SchemaError, SourceError
from reticent.files import fill, matching, parse_toml, read_text, replace_file, write_new
from reticent.plan.plan import Plan, read_plan
from reticent.plan.sections import SurveySection
from reticent.privacy.ledger import ApproverKey, Ledger
from reticent.privacy.ledger.store import ledger_at, ledger_service
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.schema.public_files import PublicFiles
from reticent.web.worker import Worker

NAME = re.compile(r"\w[\w .,()+@-]{0,149}")
MOST_FILES = 500
ROWS = tuple({*TEXT_FILES, *STATISTICAL, *READERS, ".parquet", ".csv"})


class NoSuchError(ReticentError):
    """What was asked for is not in the folder."""

    status = 404


class ChangedError(ReticentError):
    """Somebody else has changed the file in the meantime."""

    status = 409


@dataclass(slots=True, kw_only=True)
class PlanFile:
    """A plan file as it stands: its text, its TOML, and the plan where it is one."""

    path: Path
    text: str = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def digest(self) -> str:
        """By which the desk notices that the file was changed elsewhere."""
        return text_digest(self.text)

    def named(self, key: str) -> str:
        """A file that the plan names in its `[survey]`; empty where it names none."""
        survey = self.data.get("survey")
        found = survey.get(key) if isinstance(survey, Mapping) else None
        return found if isinstance(found, str) else ""

    @property
    def release_id(self) -> str:
        release = self.data.get("release")
        return str(release.get("id", "")) if isinstance(release, Mapping) else ""

    @property
    def title(self) -> str:
        release = self.data.get("release")
        return str(release.get("title", "") or release.get("id", "")) if isinstance(release, Mapping) else ""


def text_digest(text: str) -> str:
    """Of a file's text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


@dataclass(slots=True)
class Desk:
    """What the pages work on.

    **Parameters**

    - `folder`: where everything is.
    - `key`: with which approvals that are given at this desk are signed.
    - `worker`: runs releases, one at a time.
    """

    folder: Path
    key: ApproverKey | None = field(default=None, repr=False)
    worker: Worker = field(default_factory=Worker, repr=False)
    _saving: Lock = field(default_factory=Lock, repr=False)
    _reading: Lock = field(default_factory=Lock, repr=False)

    def _files(self, ending: str = "") -> Iterator[Path]:
        """Files of the folder by name; a link only where rows may be, which are read and never written."""
        try:
            with os.scandir(self.folder) as found:
                names = sorted(each.name for each in found if _is_plain(each) and NAME.fullmatch(each.name))
        except OSError:
            names = []
        yield from (
            self.folder / name for name in [each for each in names if each.endswith(ending)][:MOST_FILES]
        )

    def _toml(self, key: str, name: str = "") -> Iterator[tuple[Path, str, dict[str, Any]]]:
        """TOML files that hold a section of this name; the one called `name`, where it is given."""
        for path in self._files(".toml"):
            if name and path.name != name:
                continue
            try:
                text = read_text(path, error=PlanError)
                data = parse_toml(text, path.name, error=PlanError)
            except ReticentError:
                continue
            if key in data:
                yield path, text, data

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """What takes a while, one by one: a second click finds the first at work (W13)."""
        if not self._reading.acquire(blocking=False):
            raise ResourceError(
                "something is being read or rehearsed already; wait for its end", field="desk"
            )
        try:
            yield
        finally:
            self._reading.release()

    def plans(self) -> list[PlanFile]:
        """Every plan, by name."""
        return [PlanFile(path=path, text=text, data=data) for path, text, data in self._toml("release")]

    def plan(self, name: str) -> PlanFile:
        """The plan of that name."""
        found = next(self._toml("release", name), None) if name else None
        if found is None:
            raise NoSuchError("there is no such plan here")
        return PlanFile(path=found[0], text=found[1], data=found[2])

    def codebooks(self) -> list[str]:
        """The names of codebooks."""
        return [path.name for path, _, _ in self._toml("columns")]

    def rows(self) -> list[str]:
        """The names of files that may hold rows."""
        return [path.name for path in self._files() if path.name.lower().endswith(ROWS)]

    def rows_of(self, plan: PlanFile) -> str:
        """The path of the file with a plan's rows, or of the first where a glob stands for several: in this folder or below."""
        source = plan.named("source")
        if is_remote(source):
            raise SourceError("is elsewhere; its header is asked for there", field="survey.source")
        try:
            fill(SurveySection, dict(plan.data["survey"]), error=PlanError, at="survey")
        except ReticentError as problem:
            raise SourceError(problem.told, field="") from None
        found = matching(str(self.folder / source))
        if not found or not Path(found[0]).is_file():
            raise SourceError("the file of the rows is not there", field="survey.source")
        return found[0]

    def unseen(self) -> int:
        """How many files that could be plans, codebooks or rows have names that no page can hold, or are too many."""
        try:
            with os.scandir(self.folder) as found:
                names = [each.name for each in found if each.name.lower().endswith((*ROWS, ".toml"))]
        except OSError:
            return 0
        return len(names) - sum(path.name in names for path in self._files())

    def approvers(self) -> dict[str, Path]:
        """Public keys of people who may approve, as `ledger key` writes them, by the name of the file."""
        return {path.name: path for path in self._files(".pub")}

    def save(self, plan: PlanFile, text: str, *, base: str) -> None:
        """Put a new text in the place of a plan's, if it is still the one that was shown."""
        self.put(plan.path, plain_text(text), base=base, error=PlanError)

    def put(self, path: Path, text: str, *, base: str, error: type[ReticentError]) -> None:
        """Put a text in the place of a file's, if that is TOML and the file is still the one that was shown."""
        parse_toml(text, path.name, error=error)
        with self._saving:
            held = read_text(path, error=error)
            if text_digest(held) != base:
                raise ChangedError(
                    "the file was changed elsewhere since this page was shown; look at it again"
                )
            if text != held:
                replace_file(path, text.encode())

    def new_plan(self, name: str, text: str) -> str:
        """Write a plan that was not there; its file's name comes back."""
        target = f"{name}.toml"
        if NAME.fullmatch(target) is None:
            raise PlanError("is letters, digits, '.', '_' and '-'", field="release.id")
        parse_toml(text, target, error=PlanError)
        write_new(self.folder / target, text.encode(), private=False)
        return target

    def schema(self, plan: PlanFile) -> Schema:
        """The codebook that a plan names, read as a plan reads it."""
        name = plan.named("codebook")
        if not name:
            raise SchemaError("name the codebook in [survey]", field="survey.codebook")
        return schema_from(self._public(plan).toml(name, field="survey.codebook"))

    def _public(self, plan: PlanFile) -> PublicFiles:
        named = [plan.named("source") or "rows", plan.named("ledger") or "ledger"]
        rows, ledger = (self.folder / each for each in named)
        return PublicFiles.of(self.folder, rows=[rows], ledgers=[ledger])

    def codebook_path(self, plan: PlanFile) -> Path:
        """Where a plan's codebook is or will be: a plain file of this folder."""
        name = plan.named("codebook")
        if NAME.fullmatch(name) is None or not name.endswith(".toml"):
            raise SchemaError(
                "is edited here only where it is a TOML file in this folder", field="survey.codebook"
            )
        if (self.folder / name).exists():
            self._public(plan).check(name, field="survey.codebook")
        return self.folder / name

    def ledger(self, plan: Plan) -> Ledger:
        """The ledger that a plan is charged to."""
        return Ledger.open(ledger_at(self.folder, plan.ledger))

    def ledger_names(self) -> dict[str, str]:
        """The ledgers that plans here name, by the word that stands for each in an address."""
        named = {each.named("ledger") for each in self.plans()} - {""}
        return {ledger_key(name): name for name in sorted(named)}

    def ledger_called(self, key: str) -> Ledger:
        """The ledger that a word in an address stands for."""
        name = self.ledger_names().get(key)
        if name is None:
            raise NoSuchError("there is no such ledger here")
        return Ledger.open(ledger_at(self.folder, name))

    def ledgers(self) -> dict[str, Ledger]:
        """Every ledger in a file that plans here name and that can be opened, by name. No server is asked."""
        found: dict[str, Ledger] = {}
        for name in self.ledger_names().values():
            if ledger_service(name) is None:
                with suppress(LedgerError):
                    found[name] = Ledger.open(self.folder / name)
        return found

    def whole(self, plan: PlanFile) -> Plan:
        """The plan, read from its file as `reticent release` reads it."""
        return read_plan(plan.path)


def ledger_key(name: str) -> str:
    """The word that stands for a ledger in an address: its name, or a digest of one that is no part of a path."""
    return name if NAME.fullmatch(name) else "ledger-" + hashlib.sha256(name.encode()).hexdigest()[:20]


def _is_plain(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=entry.name.lower().endswith(ROWS))
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode)


def plain_text(text: str) -> str:
    """As a form sends it, with the line ends of a file."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
