"""Proof pages: there is one for every guarantee, each has its six headings, and each is signed for the code as it is."""

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.tables import ADD, REPLACE, every_plan

ROOT = Path(__file__).resolve().parents[1]
HEADINGS = ("Guarantee", "Adjacency", "Theorem", "(Proof|Argument)", "Assumes", "Keeps back")
PAGE = re.compile(r"proofs/[\w/]+\.md")


def _sign() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sign", ROOT / "tools" / "sign.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sign = _sign()


def _named(page: Path) -> list[str]:
    return str(sign.first_line(page)["names"]).split()


def _covers(signed: str, name: str) -> bool:
    """The definition itself, the class it stands in, or the methods in which a class keeps its promise."""
    return signed == name or name.startswith(f"{signed}.") or signed.startswith(f"{name}.")


def _guaranteed() -> Iterator[tuple[str, str]]:
    """Every definition of the library whose docstring states a guarantee, and that docstring."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        yield from _in(ast.parse(path.read_text()), f"{module}:")


def _in(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    for inner in getattr(node, "body", []):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(inner) or ""
            if re.search(r"^Guarantee\s", text, re.MULTILINE):
                yield prefix + inner.name, text
            yield from _in(inner, f"{prefix}{inner.name}.")


GUARANTEED = dict(_guaranteed())


def test_every_page_is_signed_for_the_code_as_it_is():
    """If this names a page: read page and code again, mend, then `python tools/sign.py PAGE`."""
    assert [str(page.relative_to(ROOT)) for page in sign.stale()] == []


@pytest.mark.parametrize("page", sign.pages(), ids=lambda page: str(page.relative_to(ROOT / "proofs")))
def test_every_page_has_its_six_headings_in_order(page: Path):
    text = page.read_text()
    found = [re.search(rf"\*\*{heading}[.:]?\*\*", text) for heading in HEADINGS]
    assert all(found), [h for h, match in zip(HEADINGS, found, strict=True) if not match]
    places = [match.start() for match in found if match]
    assert places == sorted(places)


def test_every_page_that_is_spoken_of_exists():
    """In docstrings, in parts, in claims: a reader who follows a name finds a page."""
    spoken = {name for path in (ROOT / "src").rglob("*.py") for name in PAGE.findall(path.read_text())}
    for change in (ADD, REPLACE):
        spoken |= {page for _, page in every_plan(change=change).claim.rests_on}
    assert len(spoken) > 15
    assert sorted(name for name in spoken if not (ROOT / name).is_file()) == []


def test_pages_speak_only_of_pages_that_exist():
    for page in (*sign.pages(), ROOT / "proofs" / "README.md"):
        assert [name for name in PAGE.findall(page.read_text()) if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("name", GUARANTEED)
def test_every_guarantee_is_proved_on_the_page_it_names(name: str):
    """And the page's signature covers the very function, so that a change of it is noticed."""
    pages = [ROOT / page for page in PAGE.findall(GUARANTEED[name])]
    assert pages, "states a guarantee without naming a page"
    assert any(_covers(signed, name) for page in pages if page.is_file() for signed in _named(page))


def test_some_guarantees_were_found():
    """The search above is not empty by mistake."""
    assert {"reticent.answer.parts:measure", "reticent.sensitivity.bounds:bound_rank"} <= set(GUARANTEED)


def test_a_changed_function_makes_its_page_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The naive twin: half the sensitivity, in a copy of the code. Words and layout may change; code may not."""
    copy = tmp_path / "copied_parts.py"
    source = (ROOT / "src/reticent/answer/parts.py").read_text()
    copy.write_text(source)
    page = tmp_path / "proofs" / "parts.md"
    page.parent.mkdir()
    page.write_text("<!-- proves copied_parts:measure copied_parts:_shift sha256: -->\n# A page\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sign, "ROOT", tmp_path)
    importlib.invalidate_caches()
    assert sign.stale() == [page]  # not signed yet
    sign.sign(page)
    assert sign.stale() == []
    copy.write_text(source.replace("One integer of grid steps", "One whole number of steps") + "\n\n\n")
    assert sign.stale() == []
    naive = source.replace(
        ">> shift, ceil(bound.bound / 2**shift)", ">> shift, ceil(bound.bound / 2**shift / 2)"
    )
    assert naive != source
    copy.write_text(naive)
    assert sign.stale() == [page]
    elsewhere = source.replace("max(0, int(bound.bound).bit_length() - FINE)", "0")
    assert elsewhere != source
    copy.write_text(elsewhere)
    assert sign.stale() == [page]  # the second name on the line is watched too


def test_a_page_follows_code_that_moved_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Into another file, and under another name where it is given; the naive twin changed a constant on the way."""
    folder = tmp_path / "src" / "rooms"
    folder.mkdir(parents=True)
    (tmp_path / "proofs").mkdir()
    old, new, page = folder / "old.py", folder / "new.py", tmp_path / "proofs" / "page.md"
    source = "def scale(bound):\n    return _twice(bound)\n\n\ndef _twice(x):\n    return 2 * x\n"
    old.write_text(source)
    page.write_text("<!-- proves rooms.old:scale rooms.old:_twice sha256: -->\n# A page\n")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.setattr(sign, "ROOT", tmp_path)
    importlib.invalidate_caches()
    sign.sign(page)
    old.unlink()
    for text, renamed, follows in (
        (source.replace("2 * x", "1 * x"), {}, False),
        (source.replace("_twice", "_double"), {}, False),
        (source.replace("_twice", "_double").replace("2 * x", "x"), {"_double": "_twice"}, False),
        (source.replace("_twice", "_double"), {"_double": "_twice"}, True),
        (source.replace("_twice", "_double").replace("bound", "limit"), {"limit": "bound"}, True),
    ):
        new.write_text(text)
        importlib.invalidate_caches()
        sign._defined.cache_clear()
        before = page.read_text()
        assert sign.follow(page, renamed) is follows
        assert (page.read_text() != before) is follows
    assert _named(page) == ["rooms.new:scale", "rooms.new:_double"]
    assert sign.stale() == []
    sign._defined.cache_clear()


def test_the_tool_says_what_may_be_written_and_names_a_page_that_is_not_there(capsys):
    """A status of its own, no traceback, and nothing signed."""
    assert sign.main(["--help"]) == 0 and "--moved" in capsys.readouterr().out
    assert sign.main(["proofs/nowhere.md"]) == 2 and "no such page" in capsys.readouterr().out
