"""Check or sign proof pages: the first line of each holds a digest of the code it proves.

    python tools/sign.py            # names pages whose code has changed, exit 1 if any
    python tools/sign.py PAGE ...   # signs these pages, after you have read code and page again

The first line reads `<!-- proves reticent.noise.laplace:add_laplace sha256:... -->`; several names may be
listed, separated by spaces, and the digest then covers their sources in that order. What is digested is
the syntax tree without docstrings, so that a change of wording or layout does not break a signature.
"""

import ast
import hashlib
import importlib.util
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"<!-- proves (?P<names>[\w.: ]+) sha256:(?P<digest>[0-9a-f]*) -->")


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


def digest(names: str) -> str:
    """The digest of the definitions in `names`, as `module:qualified.name` separated by spaces."""
    text = "\n".join(ast.dump(_without_docstrings(_definition(name))) for name in names.split())
    return hashlib.sha256(text.encode()).hexdigest()


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


def stale() -> list[Path]:
    """Pages whose code is no longer the code that was signed."""
    return [p for p in pages() if (m := first_line(p))["digest"] != digest(m["names"])]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        for argument in sys.argv[1:]:
            sign(Path(argument))
    else:
        for page in stale():
            print(f"{page.relative_to(ROOT)}: the code it proves has changed; read both again and sign")
        sys.exit(bool(stale()))
