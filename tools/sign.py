"""Check or sign proof pages: the first line of each holds a digest of the code it proves.

    python tools/sign.py            # names pages whose code has changed, exit 1 if any
    python tools/sign.py PAGE ...   # signs these pages, after you have read code and page again
    python tools/sign.py --moved    # after code moved: names on first lines follow it, if it is the code that was signed
    python tools/sign.py --moved NEW=OLD ...   # the same, where names in the code became others on the way

The first line reads `<!-- proves reticent.noise.laplace:add_laplace sha256:... -->`; several names may be
listed, separated by spaces, and the digest then covers their sources in that order. What is digested is
the syntax tree without docstrings, so that a change of wording or layout does not break a signature. It does not hold
where the code stands, so code that moved without a change has its digest still. `--moved` signs nothing else: a page
whose code differs in more than its place, and the new names given, is named and left alone.
"""

import ast
import hashlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from math import prod
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"<!-- proves (?P<names>[\w.: ]+) sha256:(?P<digest>[0-9a-f]*) -->")
MOST_CHOICES = 1_000


def _definition(name: str) -> ast.AST:
    module, _, qualified = name.partition(":")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise LookupError(f"{name}: no such module")
    node: ast.AST = ast.parse(Path(spec.origin).read_text())
    for part in qualified.split("."):
        body = getattr(node, "body", [])
        found = [n for n in body if getattr(n, "name", None) == part]
        if not found:
            raise LookupError(f"{name}: no such definition")
        node = found[-1]
    return node


def _without_docstrings(node: ast.AST) -> ast.AST:
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                inner.body = body[1:] or [ast.Pass()]  # type: ignore[attr-defined]
    return node


def digest(names: str, old: Mapping[str, str] | None = None) -> str:
    """The digest of the definitions in `names`, as `module:qualified.name` separated by spaces.

    With `old`, the digest of the same code before some of its names became others.
    """
    trees = (_named(_without_docstrings(_definition(name)), old or {}) for name in names.split())
    return hashlib.sha256("\n".join(map(ast.dump, trees)).encode()).hexdigest()


def _named(node: ast.AST, old: Mapping[str, str]) -> ast.AST:
    """The tree with names as they were before, wherever a name can stand."""
    for inner in ast.walk(node):
        for field in ("id", "name", "attr", "arg"):
            word = getattr(inner, field, None)
            if isinstance(word, str) and word in old:
                setattr(inner, field, old[word])
    return node


def first_line(page: Path) -> re.Match[str]:
    line = page.read_text().split("\n", 1)[0]
    match = LINE.fullmatch(line)
    if match is None:
        raise LookupError(f"{page.name}: the first line does not say what the page proves")
    return match


def pages() -> list[Path]:
    return sorted(p for p in (ROOT / "proofs").rglob("*.md") if p.name != "README.md")


def sign(page: Path) -> None:
    names = first_line(page)["names"]
    rest = page.read_text().split("\n", 1)[1]
    page.write_text(f"<!-- proves {names} sha256:{digest(names)} -->\n{rest}")


def follow(page: Path, old: Mapping[str, str]) -> bool:
    """Let the names on the first line follow code that moved; whether it is the code that was signed.

    A name is looked for where it stood, and else wherever the package defines it. Only a choice of places at which the
    code has the signed digest is accepted, and then signed as it stands now.
    """
    match = first_line(page)
    choices = [_places(name, old) for name in match["names"].split()]
    if prod(map(len, choices)) > MOST_CHOICES:
        return False
    for chosen in map(" ".join, product(*choices)):
        if digest(chosen, old) == match["digest"]:
            rest = page.read_text().split("\n", 1)[1]
            page.write_text(f"<!-- proves {chosen} sha256:{digest(chosen)} -->\n{rest}")
            return True
    return False


def _places(name: str, old: Mapping[str, str]) -> list[str]:
    """Where a definition may stand now: where it stood, or anywhere under the name it has or was given."""
    try:
        _definition(name)
    except (LookupError, ModuleNotFoundError):
        wanted = name.partition(":")[2]
        return [
            place for place in _defined() if place.partition(":")[2] == wanted or _was(place, old) == wanted
        ]
    return [name]


def _was(place: str, old: Mapping[str, str]) -> str:
    return ".".join(old.get(part, part) for part in place.partition(":")[2].split("."))


@cache
def _defined() -> tuple[str, ...]:
    """Every function, class and method of the package, as `module:qualified.name`."""
    found: list[str] = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                inner = [n.name for n in node.body if isinstance(n, ast.FunctionDef)]
                found += [f"{module}:{node.name}", *(f"{module}:{node.name}.{name}" for name in inner)]
    return tuple(found)


def stale() -> list[Path]:
    """Pages whose code is no longer the code that was signed."""
    return [p for p in pages() if (m := first_line(p))["digest"] != digest(m["names"])]


def follow_all(renamed: Sequence[str]) -> list[Path]:
    """Let every page follow; those that could not, since more than the place of their code changed."""
    old = dict(pair.split("=") for pair in renamed)
    return [page for page in pages() if not follow(page, old)]


def main(arguments: Sequence[str]) -> int:
    """What the first lines of this file say; the status."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    if arguments[:1] == ["--moved"]:
        left = follow_all(arguments[1:])
    else:
        nowhere = [argument for argument in arguments if not Path(argument).is_file()]
        if nowhere:
            print(f"{nowhere[0]}: no such page; --help says what may be written")
            return 2
        for argument in arguments:
            sign(Path(argument))
        left = [] if arguments else stale()
    for page in left:
        print(f"{page.relative_to(ROOT)}: the code it proves has changed; read both again and sign")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
