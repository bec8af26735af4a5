"""Plant one bug at a time and see that the tests notice: the promises of the library, tried on its own code.

    python tools/mutants.py                 # all of them; exit 1 if any survives
    python tools/mutants.py --list          # names, files, and why each breaks a promise
    python tools/mutants.py --only NAME     # one or several, each with its own --only
    python tools/mutants.py -j 2            # two at a time

The bugs are in `tools/mutants.toml`. Each is made in a copy of the repository, never in the working tree, and only the tests
that are expected to kill it are run. They are run without the bug first: a test that fails anyway kills nothing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tools" / "mutants.toml"
COPIED = (
    "src",
    "tests",
    "tools",
    "proofs",
    "docs",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "mkdocs.yml",
)
LIMIT = 600
"""Seconds for the tests of one bug. Tests that do not end say nothing: the machine may be slow."""

PASSED, FAILED, UNENDED = 0, 1, 124  # pytest's words for the first two; others say that nothing was found out


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One planted bug: in `file`, `old` becomes `new`. It breaks a promise because of `why`; `tests` should notice."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]

    def planted(self, text: str) -> str:
        """The source with the bug. What is replaced stands there exactly once."""
        if text.count(self.old) != 1 or self.old == self.new:
            raise LookupError(f"{self.name}: its old text occurs {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def read_list(path: Path = LIST) -> list[Mutant]:
    """All planted bugs, in the order of the file; names are used once."""
    found = [
        Mutant(**{**each, "tests": tuple(each["tests"])})
        for each in tomllib.loads(path.read_text())["mutant"]
    ]
    if len({each.name for each in found}) < len(found):
        raise LookupError("two mutants have one name")
    return found


def copied(to: Path) -> Path:
    """The repository as it is; times are kept, so that modules that were compiled need not be again."""
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, to / name)
        elif (ROOT / name).exists():
            shutil.copy2(ROOT / name, to / name)
    # Tests that start Python put the root on its path: there, too, the copy is found before what is installed.
    (to / "reticent").symlink_to(to / "src" / "reticent")
    return to


def tested(folder: Path, tests: Sequence[str], *options: str, limit: int | None = LIMIT) -> tuple[int, str]:
    """The status and the last words of pytest in a copy, whose own source is imported."""
    names = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
    values = (f"{folder / 'src'}{os.pathsep}{folder}", "1", "")
    call = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *tests]
    try:
        done = subprocess.run(
            call,
            cwd=folder,
            env={**os.environ, **dict(zip(names, values, strict=True))},
            capture_output=True,
            check=False,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return UNENDED, "did not end"
    lines = (done.stdout + done.stderr).strip().splitlines()
    named = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (named or lines or ["said nothing"])[-1]


def verdict(mutant: Mutant) -> tuple[str, str]:
    """`killed`, `survived`, or `broken` where the tests could not be run at all, with the last words."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = copied(Path(name))
        file = folder / mutant.file
        file.write_text(mutant.planted(file.read_text()))
        for old in file.parent.glob(f"__pycache__/{file.stem}.*"):
            old.unlink()
        status, words = tested(folder, mutant.tests, "-x")
    return {PASSED: "survived", FAILED: "killed"}.get(status, "broken"), words


def sound(mutants: Sequence[Mutant]) -> tuple[int, str]:
    """The same tests without any bug: they pass, or say nothing about bugs."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        return tested(copied(Path(name)), tests, limit=None)


def chosen(names: Sequence[str] | None) -> list[Mutant]:
    """The mutants of these names, or all."""
    found = read_list()
    unknown = set(names or ()) - {each.name for each in found}
    if unknown:
        raise SystemExit(f"no such mutant: {', '.join(sorted(unknown))}; see --list")
    return [each for each in found if names is None or each.name in names]


def tried(mutants: Sequence[Mutant], jobs: int) -> bool:
    """Try them all and print a line for each; whether every one was killed."""
    status, words = sound(mutants)
    if status != PASSED:
        print(f"the tests fail without any bug: {words}")
        return False
    killed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, (end, words) in zip(mutants, pool.map(verdict, mutants), strict=True):
            killed += end == "killed"
            print(f"{end:9} {mutant.name}: {words if end != 'killed' else mutant.why}", flush=True)
    print(f"{killed} of {len(mutants)} killed")
    return killed == len(mutants)


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant one bug at a time and see that the tests notice.")
    parser.add_argument("--list", action="store_true", help="print the bugs and stop")
    parser.add_argument("--only", action="append", metavar="NAME", help="this bug alone; may be given again")
    parser.add_argument("-j", type=int, default=1, dest="jobs", metavar="N", help="so many at a time")
    asked = parser.parse_args()
    mutants = chosen(asked.only)
    if asked.list:
        for each in mutants:
            print(f"{each.name}\n    {each.file}\n    {each.why}")
        return 0
    return 0 if tried(mutants, max(1, asked.jobs)) else 1


if __name__ == "__main__":
    sys.exit(main())
