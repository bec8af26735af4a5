"""Measure the package: how many files, how long, how far a walk goes, what is said twice, what nobody reaches.

    python tools/house.py            # everything; the four walks take a minute
    python tools/house.py --still    # all that can be read off the files, in seconds

Each number stands beside the goal it is held to, where it has one.
"""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from statistics import median

from lookalike import blocks
from walks import GOALS, walks

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "reticent"
KINDS = (
    "Count",
    "Total",
    "Mean",
    "Proportion",
    "Variance",
    "Quantile",
    "CrossTabulation",
    "Correlation",
    "Derived",
)
CITED = re.compile(r"THEORY (\d+(?:\.\d+)?)")
MOST_KINDS, MOST_BLOCKS = 4, 60

# Called from Python alone, each for the reader of a page or for a test; no experiment of the lab needs it. The file names it.
FROM_PYTHON = {
    "lab/judge/estimates.py": "src/reticent/lab/judge/page.py",
    "lab/judge/page.py": "docs/howto/synthesis-choice.md",
    "lab/judge/propensity.py": "src/reticent/lab/judge/page.py",
    "lab/papers/classes.py": "proofs/models/classes.md",
    "lab/papers/donors.py": "docs/theory/statements/03-donors.md",
}

Trees = dict[str, ast.Module]


def trees() -> Trees:
    """Every file of the package by its path in it, parsed."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}


def lines_of(path: str) -> int:
    return len((SOURCE / path).read_text("utf-8").splitlines())


def module_of(path: str) -> str:
    return ".".join(("reticent", *Path(path).with_suffix("").parts)).removesuffix(".__init__")


def rooms(files: Trees) -> dict[str, tuple[int, int]]:
    """Files and lines of each package; what stands at the root is one too."""
    found: dict[str, list[int]] = defaultdict(list)
    for path in files:
        found[path.split("/")[0] if "/" in path else "(root)"].append(lines_of(path))
    return {room: (len(sizes), sum(sizes)) for room, sizes in sorted(found.items())}


def imported(tree: ast.AST) -> Iterator[str]:
    """Every name that could be a module, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def started(tree: ast.AST) -> Iterator[str]:
    """Every text that could be a module, as in `python -m reticent.report.draw`."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    yield from (text for text in texts if isinstance(text, str) and text.startswith("reticent."))


def unreached(files: Trees) -> list[str]:
    """Modules that neither a command nor a public name leads to, imported or started by name."""
    by_module = {module_of(path): path for path in files}
    public = [n.value for n in ast.walk(files["__init__.py"]) if isinstance(n, ast.Constant)]
    open_ = [name for name in (*public, "reticent.cli") if name in by_module]
    seen: set[str] = set()
    while open_:
        name = open_.pop()
        if name not in seen:
            seen.add(name)
            above = (name.rsplit(".", k)[0] for k in range(1, name.count(".") + 1))
            tree = files[by_module[name]]
            near = [*imported(tree), *started(tree), *above] if name != "reticent" else []
            open_ += [each for each in near if each in by_module]
    return sorted(by_module[name] for name in by_module if name not in seen | {"reticent"})


def twice(files: Trees) -> dict[str, list[str]]:
    """Public class names that are defined in more than one file."""
    found: dict[str, list[str]] = defaultdict(list)
    for path, tree in files.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def undocumented(files: Trees) -> list[str]:
    """Public classes and functions of a module without a docstring, and modules without one that hold anything."""
    found = [path for path, tree in files.items() if tree.body and not ast.get_docstring(tree)]
    for path, tree in files.items():
        for node in tree.body:
            is_public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if is_public and isinstance(node, ast.FunctionDef | ast.ClassDef) and not ast.get_docstring(node):
                found.append(f"{path}:{node.name}")
    return found


def naming(files: Trees) -> dict[str, int]:
    """How many files name each kind of query: where it is defined, and where it is imported."""
    found: Counter[str] = Counter()
    for tree in files.values():
        names = {f"reticent.query.kinds.{node.name}" for node in tree.body if isinstance(node, ast.ClassDef)}
        named = (names if module_is_kinds(tree) else set()) | set(imported(tree))
        found.update(kind for kind in KINDS if f"reticent.query.kinds.{kind}" in named)
    return {kind: found[kind] for kind in KINDS}


def module_is_kinds(tree: ast.Module) -> bool:
    """Whether the file defines the kinds: the one with most of their classes."""
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return len(own & set(KINDS)) > len(KINDS) // 2


def unresolved() -> int:
    """References that lead nowhere: by tools/references.py where it is there, else those to the theory alone."""
    try:
        resolver = import_module("references")
    except ImportError:
        return _unstated()
    return len(resolver.unresolved())


def _unstated() -> int:
    """How often the theory is cited by a number that no statement in docs/theory has."""
    pages = [*(ROOT / "src").rglob("*.py"), *(ROOT / "proofs").rglob("*.md")]
    pages += [path for path in (ROOT / "docs").rglob("*.md") if "proofs" not in path.parts]
    stated = "\n".join(path.read_text("utf-8") for path in (ROOT / "docs" / "theory").rglob("*.md"))
    known = set(re.findall(r"^(?:#+ |\*\*)(?:\w+ )?(\d+(?:\.\d+)?)\b", stated, re.MULTILINE))
    return sum(number not in known for page in pages for number in CITED.findall(page.read_text("utf-8")))


def show_still(files: Trees) -> None:
    """All that can be read off the files."""
    for room, (count, size) in rooms(files).items():
        print(f"{room:<14}{count:>5} files{size:>8,} lines")
    sizes = {path: lines_of(path) for path in files if not path.endswith("__init__.py")}
    longest = max(sizes, key=lambda path: sizes[path])
    print(f"{'in all':<14}{len(files):>5} files{sum(map(lines_of, files)):>8,} lines")
    print(
        f"a file has {median(sizes.values()):g} lines in the middle; {longest} is longest with {sizes[longest]}"
    )
    lost, doubled, kinds = unreached(files), twice(files), naming(files)
    kept = [f"{path}, from Python by {FROM_PYTHON[path]}" for path in lost if path in FROM_PYTHON]
    lost = [path for path in lost if path not in FROM_PYTHON]
    print(f"modules that nothing reaches: {len(lost)} (goal 0)", *lost, sep="\n  ")
    print(f"modules of the lab for Python alone: {len(kept)}", *kept, sep="\n  ")
    print(f"public class names defined more than once: {len(doubled)} (goal 0)")
    print(" ", ", ".join(f"{name} x{len(paths)}" for name, paths in doubled.items()))
    silent = undocumented(files)
    print(f"public names without a docstring: {len(silent)} (goal 0)", *silent, sep="\n  ")
    print(f"references to the theory that lead nowhere: {unresolved()} (goal 0)")
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
    print(f"files that name a query kind: at most {max(kinds.values())} (goal {MOST_KINDS}): {told}")
    alike = blocks({path: (SOURCE / path).read_text("utf-8") for path in files})
    print(f"look-alike blocks of six lines or more: {len(alike)} (goal {MOST_BLOCKS})")
    by_room = Counter(tuple(sorted({block.one.split("/")[0], block.other.split("/")[0]})) for block in alike)
    print(" ", ", ".join(f"{' and '.join(pair)} {count}" for pair, count in by_room.most_common(8)))


def show_walks() -> None:
    for each, goal in zip(walks(), GOALS, strict=True):
        print(
            f"{each.name}: {each.files} files (goal {goal}), {each.packages} packages, "
            f"{each.functions} functions, {each.returns} returns"
        )


if __name__ == "__main__":
    show_still(trees())
    if "--still" not in sys.argv[1:]:
        show_walks()
