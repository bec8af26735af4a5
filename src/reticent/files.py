"""Files written whole or not at all, none that we publish ever replaced (R15), TOML read safely, and tidy tables.

A file is written under a temporary name in its own folder, flushed, and then *linked* to its name: linking fails where the
name is taken, which renaming would not. The folder is flushed last. Texts name a file by its last part only, never by
where it lies on the machine. A TOML file that anybody may have written is read within bounds, exactly, and never
executed. A tidy table has a line for each number, and its CSV no formulas.
"""

import csv
import errno
import glob
import io
import os
import secrets
import stat
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from reticent.errors import REQUIRED, PlanError, ResourceError, ReticentError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

PRIVATE, PUBLISHED = 0o600, 0o644

_TAKEN = "{name} exists already and is never overwritten; choose another name or folder, or move it away."
_REFUSED = {
    errno.EEXIST: _TAKEN,
    errno.ENOENT: "the folder of {name} does not exist; make it first.",
    errno.ENOTDIR: "the folder of {name} is not a folder; choose another.",
    errno.EACCES: "the folder of {name} may not be written to; choose another, or ask for the right.",
    errno.EPERM: "the folder of {name} may not be written to; choose another, or ask for the right.",
    errno.ENAMETOOLONG: "{name} is too long for a file name; choose a shorter one.",
    errno.EOPNOTSUPP: "the disk of {name} cannot name a file without replacing another; choose another folder.",
}


def matching(text: str) -> list[str]:
    """The names that a path or a glob stands for, in order; a path is itself, whether there is such a file or not."""
    is_glob = any(char in text for char in "*?[") and not os.path.exists(text)
    return sorted(glob.glob(text)) if is_glob else [text]


def refusal(error: OSError, name: str, *, field: str = "out") -> ReticentError:
    """The error of ours for one of the system's: a matter of the call (2), or of a resource (4)."""
    text = _REFUSED.get(error.errno or 0)
    if text is not None:
        return PlanError(text.format(name=name), field=field)
    return ResourceError(
        f"{name} could not be written: {os.strerror(error.errno or errno.EIO).lower()}; make room and try again.",
        field=field,
    )


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """The system's error as one of ours, which forgets the original and so the machine's paths."""
    problem = None
    try:
        yield
    except OSError as error:
        problem = refusal(error, path.name)
    if problem is not None:
        raise problem


def check_new(path: Path) -> None:
    """Refuse a name that `write_new` would refuse, before anything is charged (B106)."""
    if os.path.lexists(path):
        raise PlanError(_TAKEN.format(name=path.name), field="out")
    code = 0
    if not path.parent.exists():
        code = errno.ENOENT
    elif not path.parent.is_dir():
        code = errno.ENOTDIR
    elif not os.access(path.parent, os.W_OK | os.X_OK):
        code = errno.EACCES
    elif len(os.fsencode(path.name)) > 200:  # the temporary name is longer, and 255 is the usual limit
        code = errno.ENAMETOOLONG
    if code:
        raise refusal(OSError(code, ""), path.name)


def make_folder(path: Path) -> None:
    """A folder that is there already, or is made, and lasts through a power cut."""
    with _told(path):
        if not path.is_dir():
            path.mkdir(exist_ok=True)
            flush_folder(path.parent)


def write_new(path: Path, data: bytes, *, private: bool) -> None:
    """Write `data` to a name that is free; whole or not at all; 0600 if private, 0644 if published."""
    with _told(path):
        with written_beside(path, data, mode=PRIVATE if private else PUBLISHED) as temporary:
            os.link(temporary, path, follow_symlinks=False)
        flush_folder(path.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` in place of a file of the user's own, whole or not at all; its mode stays."""
    with _told(path):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        with written_beside(path, data, mode=mode) as temporary:
            os.replace(temporary, path)
        flush_folder(path.parent)


def holds(path: Path, data: bytes) -> bool:
    """Whether `path` is a plain file with exactly these bytes: a publication that was cut off after naming."""
    try:
        found = os.lstat(path)
        return stat.S_ISREG(found.st_mode) and found.st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


@contextmanager
def written_beside(path: Path, data: bytes, *, mode: int) -> Iterator[Path]:
    """A flushed temporary file with `data` in the folder of `path`; its name is gone afterwards."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write(temporary, data, mode)
        yield temporary
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _write(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)  # says the mode itself, whatever the umask
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Make names given or taken in `folder` last through a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LARGEST_FILE = 2**20
DEEPEST = 100
MOST_POINTS = 20_000  # a key of n dotted parts takes the parser n^2 steps


class Section(BaseModel):
    """A table of a TOML file: nothing unknown, nothing converted behind the writer's back."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


SAID = {
    "missing": REQUIRED,
    "list_type": "is written as a list, [ ... ]; a section of which there may be several in two brackets, [[statistic]]",
}
"""What pydantic finds, in our words."""
BRACKETS = ("Cannot declare", "Cannot overwrite", "Cannot mutate")
"""How the parser begins where a section in one bracket comes a second time."""

DOUBLE = "a binary double is not exact; write a decimal as text, such as '0.5', or as Decimal"


def amount_text(value: object) -> object:
    """A number of a plan as the text it was written as; anything else as it is. A double has lost what was written."""
    if isinstance(value, float):
        raise ValueError(DOUBLE)  # noqa: TRY004 - what pydantic tells of, with the place
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bool | list | dict):
        raise ValueError('write a plain decimal such as 0.5 or "0.5"')  # noqa: TRY004 - as above
    return str(value) if isinstance(value, int) else value


Amount = Annotated[str, BeforeValidator(amount_text)]
"""An exact decimal: 1, 0.5 and "0.5" are taken alike, since TOML is read without doubles."""

Model = TypeVar("Model", bound=Section)


def read_toml(path: Path, *, error: type[ReticentError]) -> dict[str, Any]:
    """The file as a dictionary; decimals stay exact. `error` says what kind of file was refused."""
    path = path if len(path.name) <= 100 else path.with_name(f"{path.name[:100]}...")
    return parse_toml(read_text(path, error=error), path.name, error=error)


def parse_toml(text: str, name: str, *, error: type[ReticentError]) -> dict[str, Any]:
    """The same of a text that is not, or not yet, the file of that `name`."""
    if len(text.encode("utf-8", "replace")) > LARGEST_FILE:
        raise error("is larger than 1 MiB", field=name)
    if _depth(text) > DEEPEST:
        raise error(f"is nested more than {DEEPEST} deep; write it flatter", field=name)
    if text.count(".") > MOST_POINTS:
        raise error(f"holds more than {MOST_POINTS} points; write it shorter", field=name)
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, ValueError, ArithmeticError) as problem:
        is_parsed = isinstance(problem, tomllib.TOMLDecodeError)
        reason = _unquoted(str(problem)) if is_parsed else "a number is too long"
        if is_parsed and str(problem).startswith(BRACKETS):
            reason += "; a section or key stands there twice: of sections there may be several in two brackets, [[statistic]]"
    except RecursionError:
        reason = "it is nested too deep"
    raise error(f"is not valid TOML: {reason[:200]}", field=name)


def _unquoted(reason: str) -> str:
    """The parser's words without what they quote: the file may turn out to hold rows. Line and column stay."""
    words, mark, place = reason.rpartition("(at ")
    quotes = words.replace("'='", "").replace("']'", "").replace("']]'", "")
    return reason if mark and not set(quotes) & {"'", '"'} else f"see {place.removesuffix(')')}"


def read_text(path: Path, *, error: type[ReticentError]) -> str:
    """The text of a plain file of at most 1 MiB."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise error(f"cannot be opened: {os.strerror(problem.errno or 0)}", field=path.name) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise error("is not a file; give the path of one", field=path.name)
    with os.fdopen(handle, "rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise error("is larger than 1 MiB", field=path.name)
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise error("is not UTF-8 text; save it as UTF-8", field=path.name) from None


def _depth(text: str) -> int:
    """An upper bound of the nesting, counted without parsing."""
    deepest = depth = 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest


def fill(
    model: type[Model],
    data: Mapping[str, Any],
    *,
    error: type[ReticentError],
    at: str,
    offered: Collection[str] | None = None,
) -> Model:
    """`data` as a `model`, or one sentence naming the field and the way out; of its own keys only those `offered` are named."""
    try:
        return model.model_validate(dict(data))
    except ValidationError as problem:
        found = problem.errors(include_url=False, include_context=False, include_input=False)
    # A word that is not known explains the one that is missing, not the other way round.
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    place = _place(at, first["loc"])
    if first["type"] == "extra_forbidden":
        word = str(first["loc"][-1])
        known = _fields(model, first["loc"][:-1])
        known = known & set(offered) if offered is not None and len(first["loc"]) == 1 else known
        listed = ", ".join(sorted(known))
        hint = nearest(word, known, cutoff=0.7) or f"; known here: {listed}"
        raise error(f"is not a known key{hint}", field=place)
    said = SAID.get(first["type"]) or first["msg"].removeprefix("Value error, ")
    raise error(said[:300], field=place)


def _place(at: str, parts: tuple[int | str, ...]) -> str:
    """`statistic[0].epsilon`, as a plan's reader would point at it."""
    place = at
    for part in parts:
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
    return place


def _fields(model: type[BaseModel], path: tuple[int | str, ...]) -> set[str]:
    """Names allowed at a place inside `model`, as far as nested models can be followed."""
    for part in path:
        known = {info.alias or name: info.annotation for name, info in model.model_fields.items()}
        inner = (known.get(str(part)), *get_args(known.get(str(part))))
        model = next((m for m in inner if isinstance(m, type) and issubclass(m, BaseModel)), model)
    return {info.alias or name for name, info in model.model_fields.items()}


def tidy_csv(header: Sequence[str], lines: Iterable[Sequence[Any]]) -> bytes:
    """Lines under a header. Text that a spreadsheet would execute is defused by a leading quote (T28)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_defused(value) for value in line] for line in lines)
    return out.getvalue().encode()


def _defused(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return "" if value is None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidy:
    """Released numbers with a line for each: what a CSV, a data frame and a sheet are written from.

    **Fields**

    - `header`: the columns; the first holds the release, the second the statistic or table by its name.
    - `lines`: under them, None where there is nothing.
    - `numbers`: the columns that hold numbers; in all others stands text.
    """

    header: Sequence[str]
    lines: Sequence[Sequence[Any]]
    numbers: frozenset[str]

    def to_csv(self) -> bytes:
        """Text that a spreadsheet would execute is defused by a leading quote (T28)."""
        return tidy_csv(self.header, self.lines)

    def to_arrow(self) -> "pa.Table":
        """Numbers as doubles, all else as text."""
        import pyarrow as pa  # slow to load: only where somebody asks for a frame

        columns = zip(*self.lines, strict=True) if self.lines else ([] for _ in self.header)
        made = {}
        for name, values in zip(self.header, columns, strict=True):
            kind = (float, pa.float64()) if name in self.numbers else (str, pa.string())
            made[name] = pa.array([None if each is None else kind[0](each) for each in values], kind[1])
        return pa.table(made)

    def by_name(self) -> dict[str, list[Sequence[Any]]]:
        """The lines of each statistic or table."""
        found: dict[str, list[Sequence[Any]]] = {}
        for line in self.lines:
            found.setdefault(str(line[1]), []).append(line)
        return found


def is_printable(text: str) -> bool:
    """No control characters, no direction marks, nothing a terminal or a spreadsheet would act on."""
    return all(char.isprintable() for char in text)
