"""The pages tell the truth: their examples run, their links lead somewhere, and no machine shows through.

An HTML comment above a code block says what the block is. It does not show on the page.

    <!-- run -->              python or console: run it in the page's folder; a printed output must be the real one
    <!-- file: NAME -->       toml: written to NAME; a codebook or a plan, which must be accepted
    <!-- refused: NAME -->    toml: written to NAME; a plan that must be refused, with the line printed after it
    <!-- columns -->          toml: columns that the demonstration's codebook can take up
    <!-- asks -->             toml: asks that the demonstration's plan can take up
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reticent.errors import PlanError, ReticentError
from reticent.files import read_toml
from reticent.lab.demo import demo_survey
from reticent.plan.plan import plan_from, read_plan
from reticent.release.product import Grid
from reticent.report.pages import KNOWN
from reticent.report.statistics import statistics_lines
from reticent.schema import read_schema
from reticent.schema.codebook import schema_from
from tests.badinput.house import Seen
from tests.badinput.house import run as run_here

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OF_OTHERS = {"predicates.md", "ledger.md", "simulated-state.md"}  # their blocks carry no comments
BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
ROWS = 2_000
NEWCOMERS = {"README.md", "start.md"}  # their commands run as a newcomer's do, each as a process of its own


@dataclass(frozen=True)
class Block:
    mark: str
    info: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(found["mark"] or "", found["info"].strip(), found["text"])


def named(pages: list[Path]) -> list[object]:
    return [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demonstration survey, small, made once."""
    folder = tmp_path_factory.mktemp("survey")
    demo_survey(folder, rows=ROWS)
    return folder


@pytest.fixture
def folder(survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page's own folder: a copy of the survey, and the place where its examples run."""
    place = tmp_path / "page"
    shutil.copytree(survey, place)
    monkeypatch.chdir(place)
    return place


def command(line: str, *, is_apart: bool) -> Seen:
    """One line of a console block, with no shell; `reticent` as a process of its own, or in this one, which loads it once."""
    words = shlex.split(line)
    if words[0] == "reticent" and not is_apart:
        return run_here(*words[1:], columns=100, pages=KNOWN)
    if words[0] == "reticent":
        words = [sys.executable, "-c", "from reticent.cli import main; main()", *words[1:]]
    environment = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, env=environment, check=False)
    return Seen(done.returncode, done.stdout, done.stderr)


def console(text: str, *, is_apart: bool) -> None:
    """Every command of a block succeeds, and prints what the block says it prints."""
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, said = piece.partition("\n")
        done = command(line, is_apart=is_apart)
        assert done.status == 0, f"{line}: {done.err}"
        if said.strip():
            assert done.out.strip() == said.strip(), line


def toml(path: Path) -> dict[str, Any]:
    return read_toml(path, error=PlanError)


def with_asks(text: str) -> None:
    """The demonstration's plan with these asks instead of its own, nothing filled and no design factor."""
    data, codebook = toml(Path("plan.toml")), toml(Path("survey.codebook.toml"))
    del data["design"], data["tables"]
    plan_from(
        {
            **data,
            "edit": [],
            "impute": [],
            "statistic": tomllib.loads(text, parse_float=Decimal)["statistic"],
        },
        codebook,
    )


def with_columns(text: str) -> None:
    codebook = toml(Path("survey.codebook.toml"))
    codebook["columns"].update(tomllib.loads(text)["columns"])
    schema_from(codebook)


def accepted(name: str) -> None:
    """A codebook or a plan, by its name. Paths inside a plan are its own affair."""
    if name.endswith(".codebook.toml"):
        assert read_schema(Path(name)).finished
    else:
        read_plan(Path(name))


def refused(name: str, after: str) -> None:
    """Refused, and in the words that the page prints further down, if it prints any for this file."""
    with pytest.raises(ReticentError) as problem:
        read_plan(Path(name))
    printed = re.search(rf"^\$ reticent \w+ {re.escape(name)}\nerror: (.*)$", after, re.MULTILINE)
    if printed:
        assert problem.value.told == printed[1]


def run(page: Path) -> int:
    """Run what is marked, from the top; how many blocks that were."""
    names: dict[str, object] = {"__name__": "page"}
    count = 0
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        kind, _, name = block.mark.partition(": ")
        if kind in ("file", "refused"):
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(block.text, encoding="utf-8")
            accepted(name) if kind == "file" else refused(name, text)
        elif kind == "columns":
            with_columns(block.text)
        elif kind == "asks":
            with_asks(block.text)
        elif kind == "run" and block.info == "console":
            console(block.text, is_apart=page.name in NEWCOMERS)
        elif kind == "run":
            exec(compile(block.text, page.name, "exec"), names)  # noqa: S102 - our own page
        else:
            continue
        count += 1
    return count


MARKED = [page for page in PAGES if any(block.mark for block in blocks(page))]


@pytest.mark.parametrize("page", named(MARKED))
def test_the_examples_of_a_page_run(page, folder, capsys):
    """In order, in one folder, on the demonstration survey."""
    assert run(page) > 0
    if page == ROOT / "README.md":
        shows_what_a_release_prints(page)


def shows_what_a_release_prints(page: Path) -> None:
    """The README's picture of a terminal: the sentence above the table and its headings are those of the release just made."""
    document = json.loads(Path("first/releases/work-2026-1.json").read_text(encoding="utf-8"))
    first, grid, *_ = statistics_lines(document)
    (shown,) = [block.text for block in blocks(page) if block.info == "text"]
    assert str(first) in " ".join(shown.split())
    assert isinstance(grid, Grid)
    assert {word for head in grid.headings for word in head.split()} <= set(shown.split())
    assert all(str(row[0]) in shown for row in grid.rows) and document["guarantee"]["words"] in shown


def test_pages_that_matter_have_examples_that_run():
    names = {page.relative_to(ROOT).as_posix() for page in MARKED}
    howto = {
        f"docs/howto/{name}.md" for name in ("codebook", "plan", "error-bars", "rehearse", "python", "check")
    }
    assert {"README.md", "docs/start.md", *howto} <= names


@pytest.mark.parametrize("page", named(sorted((ROOT / "docs" / "howto").glob("*.md"))))
def test_unmarked_examples_are_at_least_well_formed(page, folder, capsys):
    """TOML parses. On pages without comments, python runs unless it says no-run."""
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks(page):
        if block.info == "toml":
            tomllib.loads(block.text)
        if page.name in OF_OTHERS and block.info == "python":
            exec(compile(block.text, page.name, "exec"), names)  # noqa: S102 - our own page


def test_an_example_that_does_not_work_is_noticed(folder, tmp_path):
    """The naive twin: a page with a wrong ask, a wrong output, a failing command, and broken code."""
    wrong = {
        "statistic": '<!-- asks -->\n```toml\n[[statistic]]\nname = "a"\nquery = { mean = "x" }\nepsilon = "1"\n```\n',
        "output": "<!-- run -->\n```console\n$ reticent --version\nreticent 9\n```\n",
        "command": "<!-- run -->\n```console\n$ reticent preview nowhere.toml\n```\n",
        "code": "<!-- run -->\n```python\nraise ValueError\n```\n",
        "plan": "<!-- refused: plan.toml -->\n```toml\n" + Path("plan.toml").read_text() + "```\n",
    }
    for name, text in wrong.items():
        page = tmp_path / f"{name}.md"
        page.write_text(text, encoding="utf-8")
        with pytest.raises((AssertionError, ReticentError, ValueError, pytest.fail.Exception)):
            run(page)


def broken_links(page: Path, text: str) -> list[str]:
    """Links to files that are not there. Links to other sites are not followed: tests need no network."""
    outside_code = BLOCK.sub("", text)
    links = (link.partition("#")[0] for link in LINK.findall(outside_code))
    return [link for link in links if link and "://" not in link and not (page.parent / link).exists()]


@pytest.mark.parametrize("page", named(PAGES))
def test_links_between_pages_resolve(page):
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_noticed():
    assert broken_links(ROOT / "README.md", "see [this](docs/nowhere.md)") == ["docs/nowhere.md"]


def test_every_page_can_be_reached():
    """From the index, directly."""
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text(encoding="utf-8"))}
    written = {page for page in PAGES if page.parent.name in ("docs", "howto", "theory", "decisions")}
    assert written - {index} <= linked


MACHINE = re.compile(r"/(?:home|root|work|Users|tmp|mnt)/\w|[A-Z]:\\\\|localhost:\d")


@pytest.mark.parametrize("page", named([*PAGES, *sorted((ROOT / "proofs").glob("**/*.md"))]))
def test_no_page_names_a_place_on_a_machine(page):
    assert MACHINE.findall(page.read_text(encoding="utf-8")) == []


def test_a_machine_path_is_noticed():
    assert MACHINE.search("written to /home/somebody/demo")


def test_each_version_of_the_changelog_opens_with_privacy():
    """What any reader of an old release should know comes first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert versions
    for version in versions:
        assert re.match(r"[^\n]+\n+### Privacy\n", version), version.splitlines()[0]
