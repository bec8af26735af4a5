"""Write files so that each is there whole or not at all, and none that we publish is ever replaced (R15).

A file is written under a temporary name in its own folder, flushed, and then *linked* to its name: linking
fails where the name is taken, which renaming would not. The folder is flushed last. Texts name a file by its
last part only, never by where it lies on the machine.
"""

import errno
import glob
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from reticent.errors import PlanError, ResourceError, ReticentError

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
