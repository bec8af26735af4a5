"""Write the expected files anew, for changes that are meant to change a release.

    python -m tests.golden                  # names the files that differ
    python -m tests.golden --write "why"    # writes them, and puts the reason at the head of reasons.md

The reason is for whoever reads the history: which released bytes changed, and why they had to. It goes into the commit
with the files. A move of code changes none.
"""

import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tests.golden.office import EXPECTED, PLANS, made


def everything() -> dict[str, str]:
    """Every file of every plan."""
    found: dict[str, str] = {}
    for name in PLANS:
        with tempfile.TemporaryDirectory() as folder:
            found |= made(name, Path(folder))
    return found


def differing(found: dict[str, str]) -> list[str]:
    """Names of files that are new, changed, or no longer made."""
    kept = {path.name: path.read_text(encoding="utf-8") for path in EXPECTED.glob("*.*")}
    return sorted(name for name in {*found, *kept} if found.get(name) != kept.get(name))


def write(found: dict[str, str], why: str) -> None:
    """Replace the expected files, and note the reason."""
    changed = differing(found)
    EXPECTED.mkdir(exist_ok=True)
    for name in changed:
        if name in found:
            (EXPECTED / name).write_text(found[name], encoding="utf-8")
        else:
            (EXPECTED / name).unlink()
    note = f"- {datetime.now(UTC):%Y-%m-%d}: {why} ({len(changed)} files)\n"
    reasons = EXPECTED.with_name("reasons.md")
    earlier = reasons.read_text(encoding="utf-8").partition("\n\n")[2] if reasons.is_file() else ""
    reasons.write_text(f"# Why the expected files were written anew\n\n{note}{earlier}", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            names = differing(everything())
            print(*names, sep="\n")
            sys.exit(bool(names))
        case ["--write", why] if why.strip():
            write(everything(), why.strip())
        case _:
            sys.exit(str(__doc__))
