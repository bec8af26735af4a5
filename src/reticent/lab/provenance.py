"""Which code made a number: one digest over everything that a simulated number can pass through."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable

# They show numbers and make none; and one experiment does not care about another.
BESIDE = ("cli/", "report/", "web/", "lab/figures.py", "lab/summary.py", "lab/experiments/")
PARTS = ("duckdb", "numpy", "pyarrow")


@cache
def code_digest(module: str) -> str:
    """A digest of our sources, of the experiment's own module, and of the versions of the parts that compute."""
    digest = hashlib.sha256()
    own = module.removeprefix("reticent.").replace(".", "/") + ".py"
    for name, text in sorted(_sources(files("reticent"), "")):
        if name == own or not name.startswith(BESIDE):
            digest.update(f"{name}\0{len(text)}\0".encode() + text)
    for part in PARTS:
        digest.update(f"{part} {version(part)}\0".encode())
    return digest.hexdigest()[:16]


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _sources(entry, f"{name}/")
        elif name.endswith((".py", ".toml")):
            yield name, entry.read_bytes()
