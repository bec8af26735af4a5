"""Every page is in the navigation, all keep to 120 columns, and what a newcomer reads first works as printed."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import reticent

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIRST = tuple(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))
WRAPPED = sorted({*FIRST, *DOCS.rglob("*.md"), *ROOT.glob("proofs/**/*.md")})
COLUMNS = 120


def listed(nav: object) -> Iterator[str]:
    """The files of a navigation, in order, whatever they are filed under."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for below in nav.values():
            yield from listed(below)
    elif isinstance(nav, list):
        for below in nav:
            yield from listed(below)


def written() -> set[str]:
    """Every page but the proofs, which are a folder of their own with a table of contents."""
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    return {page for page in pages if not page.startswith("proofs/")} | {"proofs/README.md"}


def astray(nav: object, pages: set[str]) -> tuple[list[str], list[str]]:
    """Pages that the navigation forgets, and entries of it without a page."""
    entries = list(listed(nav))
    return sorted(pages - set(entries)), sorted(set(entries) - pages)


def test_the_navigation_lists_every_page_once_and_no_other():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert astray(nav, written()) == ([], [])
    entries = list(listed(nav))
    assert len(entries) == len(set(entries)) > 50


def test_a_forgotten_page_and_a_dead_entry_are_noticed():
    nav = ["index.md", {"How to": ["howto/plan.md", {"More": "howto/gone.md"}]}]
    assert astray(nav, {"index.md", "howto/plan.md", "howto/weights.md"}) == (
        ["howto/weights.md"],
        ["howto/gone.md"],
    )


FENCED = re.compile(r"^[ ]*```.*?^[ ]*```$", re.MULTILINE | re.DOTALL)
AS_THEY_ARE = ("|", "    ", "<!--", "#", "![")
"""Rows of a table, formulas, what a page proves, headings and pictures cannot be wrapped."""


def too_wide(text: str) -> list[str]:
    """Lines of prose beyond the columns."""
    lines = FENCED.sub("", text).splitlines()
    return [line for line in lines if len(line) > COLUMNS and not line.startswith(AS_THEY_ARE)]


def test_pages_are_wrapped():
    pages = {page.relative_to(ROOT): too_wide(page.read_text(encoding="utf-8")) for page in WRAPPED}
    assert len(pages) > 100
    assert {page: lines for page, lines in pages.items() if lines} == {}


def test_a_wide_line_is_noticed():
    code = "```console\n" + "w" * 130 + "\n```\n"
    assert too_wide(code + "x" * 120 + "\n" + "y" * 121 + "\n| " + "z" * 200) == ["y" * 121]


# --- the first page -----------------------------------------------------------------------------------------------------

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ACTIVATE = ". .venv/bin/activate"


def too_early(text: str) -> list[str]:
    """Commands of the library that are printed before an environment has them."""
    lines = [
        line[2:] for block in CONSOLE.findall(text) for line in block.splitlines() if line.startswith("$ ")
    ]
    ready = lines.index(ACTIVATE) if ACTIVATE in lines else len(lines)
    return [line for line in lines[:ready] if line.split()[0] in ("reticent", "python", "pip")]


@pytest.mark.parametrize("name", ["README.md", "docs/start.md"])
def test_commands_are_printed_where_they_can_be_run(name):
    """Where `reticent` is first typed, the environment that has it was made this terminal's own."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "$ reticent " in text and too_early(text) == []


def test_commands_without_an_environment_are_noticed():
    """The naive twin: straight from `make demo` to the command."""
    assert too_early("```console\n$ make demo\n```\n```console\n$ reticent preview p.toml\n```\n") == [
        "reticent preview p.toml"
    ]


def test_what_is_activated_is_what_make_demo_makes():
    """And its last line says how, to those who did not read the page."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^BIN\s*:= \.venv/bin$", makefile, re.MULTILINE)
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe and ". $(BIN)/activate" in recipe[1].splitlines()[-1]


def test_an_activated_environment_has_the_command():
    """In a shell that knows no other, with the environment of these tests in the place of the one that is made."""
    activate = Path(sys.prefix) / "bin" / "activate"
    if not activate.is_file():
        pytest.skip("these tests do not run in a virtual environment")
    script = f'. "{activate}" && command -v reticent && reticent --version'
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    place, version = done.stdout.split("\n")[:2]
    assert Path(place).samefile(Path(sys.prefix) / "bin" / "reticent")
    assert version.endswith(reticent.__version__)


# --- the glossary -------------------------------------------------------------------------------------------------------

ROW = re.compile(r"^\| \*\*.*?\|.*?\| (.*?) \| [^|]* \|$", re.MULTILINE)


def out_of_date(rows: list[str], sources: str) -> list[str]:
    """Keys and Python names of a glossary that the library does not know."""
    words = [
        word
        for row in rows
        for span in re.findall(r"`([^`]+)`", row)
        for word in re.findall(r"[A-Za-z_]+", span)
    ]
    known = set(re.findall(r"[A-Za-z_]+", sources))
    return sorted({word for word in words if word not in known})


def sources() -> str:
    """The library's code without its prose: a word that only docstrings and comments use is no key."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    return re.sub(r'""".*?"""|(?<!["\w])#[^"\n]*$', "", text, flags=re.DOTALL | re.MULTILINE)


def test_the_glossary_names_keys_that_exist():
    """Each key, option and class beside a word is in the library; what is renamed has to be renamed here."""
    rows = ROW.findall((DOCS / "glossary.md").read_text(encoding="utf-8"))
    assert len(rows) > 50
    assert out_of_date(rows, sources()) == []


def test_a_key_of_yesterday_is_noticed():
    rows = ROW.findall(
        '| **donor** | Somebody. | `[[impute]] method = "donors"`, `DonatedFill` | [x](y.md) |\n'
    )
    assert out_of_date(rows, 'method == "donors"; impute') == ["DonatedFill"]


def test_every_word_is_in_the_glossary_once():
    words = re.findall(r"^\| \*\*(.*?)\*\*", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(words) == len(set(words))
