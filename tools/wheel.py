"""Build the sdist and the wheel twice, under different circumstances, and keep them if their bytes are equal.

    python tools/wheel.py dist       # from a clean checkout; offline, with the hatchling of the lock

The time inside is that of the last commit (SOURCE_DATE_EPOCH). The second build has another folder, user mask, time zone,
language, hash seed and age of files. The wheel is pure Python, carries the bill of materials of the lock, and does not name
the folder it was built in.
"""

import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import sbom  # beside this file

ROOT = Path(__file__).resolve().parents[1]
PARTS = (
    "src",
    "proofs",
    "requirements",
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    ".gitignore",
)
ONCE = {"TZ": "UTC", "LC_ALL": "C", "PYTHONHASHSEED": "1"}
AGAIN = {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "2"}
Built = dict[str, bytes]


class BuildError(Exception):
    """Why nothing is kept."""


def last_commit(root: Path) -> int:
    """The time of the last commit; a checkout with changes has none."""
    if _git(root, "status", "--porcelain"):
        raise BuildError("there are changes that are not committed; commit or put them away first")
    return int(_git(root, "log", "-1", "--format=%ct"))


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError("this is no git checkout, so there is no time of a last commit")
    return done.stdout.strip()


def build(root: Path, into: Path, *, epoch: int, around: Mapping[str, str], umask: int, age: int) -> Built:
    """Copy the sources to `into`, `age` seconds old, and build there: file names and their bytes."""
    copy = into / "copy"
    for part in PARTS:
        target = copy / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (root / part).is_dir():
            shutil.copytree(root / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(root / part, target)
    for path in copy.rglob("*"):
        os.utime(path, (epoch - age, epoch - age))
    environment = {**os.environ, **around, "SOURCE_DATE_EPOCH": str(epoch)}
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(into / "dist")]
    done = subprocess.run(
        command, cwd=copy, env=environment, umask=umask, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(f"hatchling failed: {done.stderr.strip()[-2000:]}")
    return {path.name: path.read_bytes() for path in sorted((into / "dist").iterdir())}


def build_twice(root: Path, scratch: Path, *, epoch: int) -> Built:
    """The files of two builds, if they are alike in every bit and hold what they should."""
    one = build(root, scratch / "a", epoch=epoch, around=ONCE, umask=0o022, age=0)
    two = build(root, scratch / "another-folder", epoch=epoch, around=AGAIN, umask=0o077, age=10**6)
    wrong = [*unequal(one, two), *places(one, scratch), *lacking(one, root)]
    if wrong:
        raise BuildError("; ".join(wrong))
    return one


def unequal(one: Built, two: Built) -> list[str]:
    """Files that are not in both builds with the same bytes."""
    return [
        f"{name} differs from build to build" for name in sorted(one | two) if one.get(name) != two.get(name)
    ]


def places(built: Built, scratch: Path) -> list[str]:
    """Members of a wheel that name the folder they were built in."""
    return [
        f"{name}: {member} names the folder it was built in"
        for name, data in wheels(built).items()
        for member in data.namelist()
        if str(scratch.resolve()).encode() in data.read(member)
    ]


def lacking(built: Built, root: Path) -> list[str]:
    """A wheel that is not pure, or without the bill of the lock."""
    found = wheels(built)
    wrong = [] if len(found) == 1 else [f"there are {len(found)} wheels"]
    for name, data in found.items():
        bills = [member for member in data.namelist() if ".dist-info/sboms/" in member]
        if not name.endswith("-py3-none-any.whl"):
            wrong.append(f"{name} is not pure Python")
        if [data.read(member) for member in bills] != [sbom.made(root)]:
            wrong.append(f"{name} does not carry the bill of {sbom.LOCK}; run tools/sbom.py")
        wrong += [each for member in bills for each in sbom.differs_from_lock(data.read(member), root)]
    return wrong


def wheels(built: Built) -> dict[str, zipfile.ZipFile]:
    return {n: zipfile.ZipFile(io.BytesIO(data)) for n, data in built.items() if n.endswith(".whl")}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    out = Path(arguments[0])
    try:
        with tempfile.TemporaryDirectory() as scratch:
            built = build_twice(ROOT, Path(scratch), epoch=last_commit(ROOT))
    except BuildError as problem:
        sys.stderr.write(f"error: {problem}\n")
        return 1
    out.mkdir(exist_ok=True)
    for name, data in built.items():
        (out / name).write_bytes(data)
        sys.stdout.write(f"{hashlib.sha256(data).hexdigest()}  {out / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
