"""A plan that names the rows, or another confidential file, as one of its public files (T33)."""

import ast
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError, ReticentError
from reticent.plan.plan import read_plan
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.survey import Survey
from reticent.schema.public_files import PublicCell, PublicFiles
from tests.badinput.house import CODEBOOK, PLAN, House, Seen, assert_refused, run

MARK = "Zebedee"  # stands in every confidential cell
ROWS_HEADER = "age,rent,sex,weight,total"
BY = '[[weight.by]]\ncolumn = "sex"\nmissing = "f"\n'
CELLS = (
    '[[cells]]\nname = "seen"\ncell = "sex"\ny = "age"\nestimate = { mean = true }\nmethod = "observed"\n'
    'accept_observed = true\nepsilon = "1"\ncount_epsilon = "1"\n'
)
WEIGHED = """
[[statistic]]
name = "men of the town"
query = { count = "*", where = "sex = 'm'", weight = "w" }
epsilon = "1"

"""
RAKE = f'[weight]\nname = "w"\ntotals = "rake"\n{BY}[weight.rake]\nepsilon = "0.1"\n'
KINDS = {
    "weight.totals": f'[weight]\nname = "w"\ntotals = "FILE"\n{BY}',
    "weight.strategy[0].totals": f'[weight]\nname = "w"\n{BY}[[weight.strategy]]\nname = "s"\nby = ["sex"]\ntotals = "FILE"\n',
    "weight.rake.margin[0].totals": f'{RAKE}[[weight.rake.margin]]\nby = ["sex"]\ntotals = "FILE"\n',
    "cells[0].groups.file": f'{CELLS}groups = {{ file = "FILE", cell = "sex", group = "rent" }}\n',
    "survey.codebook": "",
}
"""Every section of a plan that names a file, by the field a refusal speaks of."""


def plan_naming(name: str, kind: str) -> str:
    """A plan in which the section of this kind names the file."""
    if kind == "survey.codebook":
        return PLAN.replace("town.codebook.toml", name)
    return (
        PLAN.replace('epsilon = "6"', 'epsilon = "2"')
        + WEIGHED * ("weight" in kind)
        + KINDS[kind].replace("FILE", name)
    )


def office(folder: Path) -> House:
    """A house whose rows hold the mark in every cell, and every other name by which they can be reached."""
    house = House(folder)
    house.rows.write_text("\n".join([ROWS_HEADER, *[",".join([MARK] * 5)] * 3, ""]), encoding="utf-8")
    (folder / "linked.csv").symlink_to("rows.csv")
    os.link(house.rows, folder / "hard.csv")
    (folder / "here").symlink_to(".", target_is_directory=True)
    (folder / "sub").mkdir()
    os.link(house.rows, folder / "sub" / "copy.csv")
    return house


ALIASES = (
    "rows.csv",
    "./rows.csv",
    ".//rows.csv",
    "here/rows.csv",
    "here/here/rows.csv",
    "linked.csv",
    "hard.csv",
)
SOURCES = ("rows.csv", "linked.csv", "sub/copy.csv", "here/row?.csv", "[r]ows.*")


@contextmanager
def watched() -> Iterator[list[str]]:
    """The names of all files that Python opens meanwhile."""
    found: list[str] = []

    def noted(plain: Callable[..., Any]) -> Callable[..., Any]:
        def opening(name: Any, *rest: Any, **more: Any) -> Any:
            found.extend([os.fsdecode(name)] if isinstance(name, str | bytes | os.PathLike) else [])
            return plain(name, *rest, **more)

        return opening

    with (
        patch("os.open", noted(os.open)),
        patch("io.open", noted(open)),
        patch("builtins.open", noted(open)),
    ):
        yield found


def told(kind: str) -> str:
    """The place as the terminal tells it: a section by its name."""
    return kind.replace("cells[0]", "cells 'seen'")


def reached(seen: Seen, opened: list[str], house: House) -> list[str]:
    """What went wrong: the rows were opened, or their words were shown, or nothing was refused."""
    rows = os.stat(house.rows)
    there = [name for name in opened if os.path.exists(name) and os.path.samestat(os.stat(name), rows)]
    wrong = ["opened"] if there else []
    wrong += ["shown"] if MARK in seen.out + seen.err else []
    return wrong + (["let through"] if seen.status == 0 else [])


def attempts(house: House, kind: str, name: str) -> Iterator[tuple[Seen, list[str]]]:
    """Every command that reads a plan and promises to be silent about rows."""
    house.plan.write_text(plan_naming(name, kind), encoding="utf-8")
    for command in ("preview", "rehearse", "release"):
        with watched() as opened:
            seen = run(command, str(house.plan))
        yield seen, list(opened)


# covers T33
@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_are_no_public_file_under_any_name(kind, tmp_path):
    """Refused with one text, before they are opened and before anything is charged."""
    house = office(tmp_path)
    before, texts = house.digests(), set()
    for name in ALIASES:
        for seen, opened in attempts(house, kind, name):
            assert_refused(seen, told(kind))
            assert not reached(seen, opened, house), (name, seen)
            texts.add(seen.err)
    assert texts == {f"error: {told(kind)}: holds the rows; name a public file, which is another one\n"}
    assert house.digests() == before


# covers T33
@pytest.mark.parametrize("source", SOURCES)
def test_a_source_under_another_name_or_a_glob_is_the_same_file(source, tmp_path):
    house = office(tmp_path)
    for kind in KINDS:
        text = plan_naming("./hard.csv", kind).replace('source = "rows.csv"', f'source = "{source}"')
        house.plan.write_text(text, encoding="utf-8")
        with watched() as opened:
            seen = run("preview", str(house.plan))
        assert_refused(seen, told(kind), "holds the rows")
        assert not reached(seen, opened, house)


# covers T33
@pytest.mark.parametrize("kind", KINDS)
def test_rows_given_on_the_command_line_are_compared_too(kind, tmp_path, monkeypatch):
    """The plan's own source is another file, and the rows come by --data: absolute, relative, by a link, by a glob."""
    house = office(tmp_path)
    (tmp_path / "other.csv").write_text(ROWS_HEADER, encoding="utf-8")
    house.plan.write_text(
        plan_naming("hard.csv", kind).replace('"rows.csv"', '"other.csv"'), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path / "sub")
    before = house.digests()
    for data in (str(house.rows), "../rows.csv", str(tmp_path / "linked.csv"), str(tmp_path / "r*s.csv")):
        for command in ("release", "check", "missing", "synth"):
            with watched() as opened:
                seen = run(command, str(house.plan), "--data", data)
            assert_refused(seen, told(kind), "holds the rows")
            assert not reached(seen, opened, house)
    assert house.digests() == before


# covers T33
@pytest.mark.parametrize("name", ["town.ledger.db", "./town.ledger.db", "ledger-link", "town.ledger.db.head"])
def test_the_ledger_is_no_public_file(name, tmp_path):
    """It keeps the keys of partitions."""
    house = office(tmp_path)
    (tmp_path / "ledger-link").symlink_to("town.ledger.db")
    for kind in KINDS:
        for seen, _ in attempts(house, kind, name):
            assert_refused(seen, told(kind), "holds the ledger")
    house.plan.write_text(PLAN.replace('"rows.csv"', f'"{name}"'), encoding="utf-8")
    assert_refused(run("release", str(house.plan)), "survey.source", "holds the ledger")


# covers T33
def test_a_database_of_rows_and_its_log_are_no_public_files(tmp_path):
    house = office(tmp_path)
    base = tmp_path / "rows.duckdb"
    duckdb.connect(str(base)).execute("create table people (age integer)").close()
    (tmp_path / "rows.duckdb.wal").write_text(MARK, encoding="utf-8")
    os.link(base, tmp_path / "public.csv")
    for name in ("public.csv", "rows.duckdb.wal"):
        text = plan_naming(name, "weight.totals").replace('source = "rows.csv"', 'source = "rows.duckdb"')
        house.plan.write_text(text, encoding="utf-8")
        assert_refused(run("preview", str(house.plan)), "weight.totals", "holds the rows")


# covers T33
def test_python_compares_the_rows_of_a_survey_with_the_files_of_the_plan(tmp_path):
    """Plan and survey meet only at the curator, who refuses before the charge."""
    house = office(tmp_path)
    (tmp_path / "totals.csv").write_text("sex,total\nf,10\nm,12\n", encoding="utf-8")
    house.plan.write_text(plan_naming("totals.csv", "weight.totals"), encoding="utf-8")
    plan, ledger = read_plan(house.plan), Ledger.open(house.ledger)
    survey = Survey(tmp_path / "here" / "totals.csv", codebook=house.codebook)
    for run_ in (Curator(ledger).release, Curator(ledger).resume):
        with pytest.raises(PlanError, match="holds the rows"):
            run_(plan, survey, house.out)
    assert ledger.spent == 0
    with pytest.raises(ReticentError, match="is the rows"):
        Survey(house.rows, codebook=tmp_path / "linked.csv").book()


# --- the naive guard ------------------------------------------------------------------------------------------------------


def by_spelling(files: PublicFiles, name: str, *, field: str) -> Path:
    """The guard that only compares how two names are written."""
    if name == "rows.csv":
        raise PlanError("holds the rows", field=field)
    return files.folder / name


# covers T33
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "survey.codebook"])
def test_a_guard_that_compares_spellings_is_noticed(kind, tmp_path):
    """It stops one name of seven; behind the others the rows are opened."""
    house = office(tmp_path)
    found = {}
    with (
        patch.object(PublicFiles, "check", by_spelling),
        patch.object(PublicFiles, "_check_apart", lambda *_: None),
    ):
        for name in ALIASES:
            seen, opened = next(attempts(house, kind, name))
            found[name] = reached(seen, opened, house)
    assert not found.pop("rows.csv")
    assert all("opened" in wrong for wrong in found.values())


# covers T33
def test_a_guard_that_compares_spellings_publishes_answers_as_names_of_groups(tmp_path):
    house = office(tmp_path)
    house.rows.write_text(f"{ROWS_HEADER}\n1,{MARK},f,1,1\n1,{MARK}s,m,1,1\n", encoding="utf-8")
    with (
        patch.object(PublicFiles, "check", by_spelling),
        patch.object(PublicFiles, "_check_apart", lambda *_: None),
    ):
        seen, opened = next(attempts(house, "cells[0].groups.file", "./rows.csv"))
    assert reached(seen, opened, house) == ["opened", "shown", "let through"]


# --- texts, and what leaves -----------------------------------------------------------------------------------------------

GOOD_FILES = {
    "weight.totals": "sex,total\nf,10\nm,12\n",
    "weight.rake.margin[0].totals": "sex,total\nf,10\nm,12\n",
    "cells[0].groups.file": "sex,rent\nf,north\nm,south\n",
}


def spoilt(text: str, line: int, cell: int, how: str) -> str:
    """A public file with one cell, one line or the header spoilt by the mark."""
    lines = [each.split(",") for each in text.splitlines()]
    row = lines[line % len(lines)]
    if how == "cell":
        row[cell % len(row)] = MARK
    elif how == "twice":
        lines.append([MARK if place == cell % len(row) else each for place, each in enumerate(row)])
    elif how == "more":
        row.append(MARK)
    elif how == "quote":
        row[0] = f'"{MARK}'
    else:
        lines.append(list(lines[1]))
        lines[1][cell % len(row)] = MARK
    return "\n".join(map(",".join, lines))


def text_of(read: Callable[[], object]) -> str:
    try:
        read()
    except ReticentError as problem:
        return str(problem)
    return ""


# covers T33
@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(GOOD_FILES)),
    line=st.integers(0, 2),
    cell=st.integers(0, 1),
    how=st.sampled_from(["cell", "twice", "more", "quote", "moved"]),
)
def test_no_text_quotes_a_cell_of_a_file(tmp_path_factory, kind, line, cell, how):
    """Whatever is wrong with a file that turns out to be confidential, the refusal says where and not what."""
    folder = tmp_path_factory.mktemp("texts")
    text = plan_naming("public.csv", kind)
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    (folder / "town.codebook.toml").write_text(CODEBOOK, encoding="utf-8")
    (folder / "public.csv").write_text(GOOD_FILES[kind], encoding="utf-8")
    assert read_plan(folder / "plan.toml").files  # nothing else is wrong with it
    (folder / "public.csv").write_text(spoilt(GOOD_FILES[kind], line, cell, how), encoding="utf-8")
    assert MARK not in text_of(lambda: read_plan(folder / "plan.toml"))


# covers T33
def test_a_text_that_quotes_its_cell_would_be_noticed(tmp_path):
    """Totals that do not know a file's cell from a plan's word quote it, as they did; and so may any text of a `str`."""
    house = office(tmp_path)
    (tmp_path / "public.csv").write_text(f"sex,total\nf,10\n{MARK},12\n", encoding="utf-8")
    house.plan.write_text(plan_naming("public.csv", "weight.totals"), encoding="utf-8")
    with patch("reticent.plan.totals._is_read", return_value=False):
        assert MARK in text_of(lambda: read_plan(house.plan))
    assert text_of(lambda: read_plan(house.plan)).startswith(
        "weight.totals, line 3: sex has no bin of that name"
    )


# covers T33
def test_a_cell_of_a_file_says_where_it_stands_and_not_what_it_holds():
    """However it is shown; compared and hashed it is the text it holds."""
    cell = PublicCell(MARK, 3, "sex")
    assert MARK in f"{str(cell)!r}"  # a text that has forgotten its file
    assert MARK not in f"{cell} {cell!r} {cell:>10} {[cell]} {(cell,)}" and "line 3" in f"{cell}"
    assert cell == MARK and json.dumps({"a": cell}) == json.dumps({"a": MARK})


# covers T33
def test_another_confidential_file_as_a_codebook_is_not_quoted(tmp_path):
    house = office(tmp_path)
    for words in (
        f"{MARK},1\n",
        f"a = {{ {MARK} = 1, {MARK} = 2 }}\n",
        f"[{MARK}]\n[{MARK}]\n",
        f'a = "{MARK}\\q"\n',
    ):
        (tmp_path / "other.toml").write_text(words, encoding="utf-8")
        for seen, _ in attempts(house, "survey.codebook", "other.toml"):
            assert_refused(seen, "other.toml", "not valid TOML", "line")
            assert MARK not in seen.err


# covers T33
def test_what_a_file_publishes_is_shown_before_and_recorded_after(tmp_path):
    """Another confidential file beside the plan is no file of rows to a machine; to a curator it is, at a glance."""
    house = House(tmp_path)
    (tmp_path / "towns.csv").write_text(f"sex,rent\nf,{MARK}\nm,south\n", encoding="utf-8")
    house.plan.write_text(plan_naming("towns.csv", "cells[0].groups.file"), encoding="utf-8")
    words = f"will be published from towns.csv (names of groups): {MARK}, south\n"
    told = [
        {
            "file": "towns.csv",
            "for": "cells[0].groups.file",
            "what": "names of groups",
            "published": [MARK, "south"],
        }
    ]
    assert words in run("preview", str(house.plan)).out
    assert json.loads(run("preview", str(house.plan), "--json").out)["public_files"] == told
    assert words in run("rehearse", str(house.plan)).out
    seen = house.release()
    assert seen.status == 0 and seen.out.startswith(words)
    assert json.loads((house.out / "town-1.json").read_text(encoding="utf-8"))["public_files"] == told


# covers T33
def test_totals_from_a_file_are_shown_and_those_of_the_plan_are_not(tmp_path):
    house = House(tmp_path)
    (tmp_path / "totals.csv").write_text(GOOD_FILES["weight.totals"], encoding="utf-8")
    house.plan.write_text(plan_naming("totals.csv", "weight.totals"), encoding="utf-8")
    assert (
        "will be published from totals.csv (totals, or sums of them): 10, 12\n"
        in run("preview", str(house.plan)).out
    )
    listed = '[{ sex = "f", total = 10 }, { sex = "m", total = 12 }]'
    house.plan.write_text(plan_naming("x", "weight.totals").replace('"x"', listed), encoding="utf-8")
    seen = run("preview", str(house.plan))
    assert seen.status == 0 and "will be published" not in seen.out


# --- the one door ---------------------------------------------------------------------------------------------------------

SOURCE = Path(__file__).parents[2] / "src" / "reticent"
MAY_OPEN = {
    "schema/public_files.py": "what a plan names",
    "files.py": "plan and codebook, which a plan names through the door; what is written, and read back",
    "engine/sources/csv.py": "rows",
    "engine/sources/arrow.py": "rows",
    "cli/main.py": "closed streams",
    "workflow/releasing.py": "the codebook's text, for a digest, and the note of digests beside the plan",
    "cli/codebook.py": "a codebook that the command line names, to count what is TODO",
    "engine/spark/session.py": "where a session's own words go, which is nowhere",
    "report/printed.py": "the PDF that a browser has printed",
    "cli/report.py": "a release that the command line names",
    "cli/upgrade.py": "plans and codebooks that the command line names",
    "release/curator.py": "a published file, to compare its digest",
    "privacy/ledger/store.py": "the head of a ledger",
    "privacy/ledger/sqlite.py": "the ledger, and what is mounted",
    "privacy/ledger/book.py": "receipts in the folder of releases",
    "privacy/ledger/origins.py": "the mark of a charge beside the rows",
    "privacy/ledger/approvals.py": "keys that the command line names",
    "cli/approving.py": "signatures that the command line names",
    "report/draw.py": "its standard input, a published release",
    "synth/saved.py": "a model that Python names",
    "web/app.py": "style sheets and the script that come with the package",
    "web/desk.py": "plans of the curator's folder, to list and change them",
    "web/handing.py": "a published file, compared with the digest that its ledger holds",
    "web/peer.py": "the system's list of sockets",
    "web/surveying.py": "a codebook of the curator's folder, to show and change it",
}
OPENERS = {
    "open",
    "fdopen",
    "read_text",
    "read_bytes",
    "read_csv",
    "memory_map",
    "loadtxt",
    "genfromtxt",
    "fromfile",
}


def opens_files(text: str) -> bool:
    """Whether code opens a file by its name, as far as its words tell."""
    if not any(word in text for word in OPENERS):
        return False
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in OPENERS:
                return True
            if isinstance(called, ast.Attribute) and called.attr in OPENERS - {"open"}:
                return True
            owner = called.value if isinstance(called, ast.Attribute) and called.attr == "open" else None
            if isinstance(owner, ast.Name) and owner.id in ("os", "io", "path", "file"):
                return True
    return False


# covers T33
def test_a_new_kind_of_public_file_cannot_forget_the_door():
    """No other module opens files; one that would, as groups and totals did, is noticed."""
    paths = [path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "lab"]
    found = {str(p.relative_to(SOURCE)) for p in paths if opens_files(p.read_text(encoding="utf-8"))}
    assert found <= set(MAY_OPEN), sorted(found - set(MAY_OPEN))
    assert opens_files('text = (folder / name).read_text(encoding="utf-8-sig")')
