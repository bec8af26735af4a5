"""What the desk hands out and lists: files that were published and no others, plans and ledgers of its folder and no others."""

import os
from pathlib import Path

import pytest

from reticent.errors import LedgerError
from reticent.privacy.ledger import Ledger
from reticent.web import budgets, handing, surveying
from reticent.web.asked import Asked
from reticent.web.desk import Desk, NoSuchError
from reticent.web.session import Sessions
from reticent.workflow.releasing import check_rows, get_ready
from tests.web.house import CODEBOOK, MARK, PLAN, fill, open_ledger


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Path:
    """A folder with one release in it."""
    folder = fill(tmp_path_factory.mktemp("published"))
    open_ledger(folder)
    get_ready(folder / "town.toml").run()
    return folder


def asked_of(folder: Path, **params: str) -> Asked:
    given = {"ledger": "town.ledger.db", "release": "town-1", "plan": "town.toml", **params}
    return Asked(desk=Desk(folder), sessions=Sessions(tell=lambda _: None), params=given)


def test_a_file_is_handed_out_as_it_was_published(published):  # covers W10
    for ending, kind in (("json", "application/json"), ("csv", "text/csv; charset=utf-8")):
        got = handing.download(asked_of(published, ending=ending))
        assert got.body == (published / f"releases/town-1.{ending}").read_bytes()
        assert got.headers["content-disposition"] == f'attachment; filename="town-1.{ending}"'
        assert got.headers["content-type"] == kind


@pytest.mark.parametrize("ending", ["html", "xlsx"])
def test_a_page_is_drawn_from_what_was_published_and_never_read(published, ending):  # covers W10
    """Whatever lies in its place, a link to another file for one, goes to nobody."""
    pytest.importorskip("xlsxwriter")
    before = handing.download(asked_of(published, ending=ending)).body
    place = published / f"releases/town-1.{ending}"
    place.symlink_to(published / "town.csv")
    try:
        assert handing.download(asked_of(published, ending=ending)).body == before
        assert MARK.encode() not in before
    finally:
        place.unlink()


@pytest.mark.parametrize("how", ["changed", "a link", "gone", "a folder"])
def test_another_file_under_its_name_is_not_handed_out(published, how):  # covers W10 W11
    place = published / "releases/town-1.csv"
    kept = place.read_bytes()
    place.unlink()
    if how == "changed":
        place.write_bytes(kept + b"\n")
    elif how == "a link":
        (published / "aside.csv").write_bytes(kept)
        place.symlink_to(published / "aside.csv")
    elif how == "a folder":
        place.mkdir()
    try:
        with pytest.raises((LedgerError, NoSuchError)):
            handing.download(asked_of(published, ending="csv"))
    finally:
        place.rmdir() if how == "a folder" else place.unlink(missing_ok=True)
        place.write_bytes(kept)


@pytest.mark.parametrize(
    "params",
    [
        {"ending": "toml"},
        {"ending": "../town.csv"},
        {"ending": "ledger.db"},
        {"ending": "json", "release": "town-2"},
        {"ending": "json", "release": "../town"},
        {"ending": "json", "ledger": "town.ledger.db.head"},
        {"ending": "json", "ledger": "/etc/passwd"},
        {"ending": "json", "ledger": ""},
    ],
)
def test_nothing_else_can_be_named(published, params):  # covers W10 W11
    with pytest.raises(NoSuchError):
        handing.download(asked_of(published, **params))


def test_links_are_no_plans_but_rows_may_be_linked(tmp_path):  # covers W11
    """A plan is written, so a link would write elsewhere; rows are read alone, and large files are kept where they are."""
    outside = tmp_path / "outside"
    folder = tmp_path / "folder"
    for each in (outside, folder):
        each.mkdir()
    fill(outside)
    (folder / "real.toml").write_text(PLAN)
    for name in ("town.toml", "town.codebook.toml", "town.csv"):
        (folder / name).symlink_to(outside / name)
    os.mkfifo(folder / "pipe.toml")
    (folder / "dir.toml").mkdir()
    (folder / "loop.toml").symlink_to(folder / "loop.toml")
    desk = Desk(folder)
    assert [each.name for each in desk.plans()] == ["real.toml"] and desk.codebooks() == []
    assert desk.rows() == ["town.csv"] and desk.unseen() == 5


def test_names_of_any_letters_are_listed_and_odd_ones_counted(tmp_path):
    for name in (
        "Bevölkerung 2026.csv",
        "人口.parquet",
        "a;b.csv",
        ".hidden.csv",
        "x\u202ey.csv",
        "new\nline.csv",
    ):
        (tmp_path / name).write_text("a\n1\n")
    desk = Desk(tmp_path)
    assert desk.rows() == ["Bevölkerung 2026.csv", "人口.parquet"] and desk.unseen() == 4


def test_a_ledger_on_a_server_is_asked_by_its_own_plan_alone(tmp_path, monkeypatch):
    """The pages that list everything ask no server: whoever wrote a plan that lies there would choose it."""
    fill(tmp_path)
    (tmp_path / "town.toml").write_text(PLAN.replace("town.ledger.db", "postgres:office/town"))
    asked = []

    def opened(path, **_):
        asked.append(str(path))
        raise LedgerError("the server does not answer")

    monkeypatch.setattr(Ledger, "open", opened)
    assert "on a server" in surveying.home(asked_of(tmp_path)).body.decode()
    listed = handing.releases(asked_of(tmp_path)).body.decode()
    assert "town.toml/budget" in listed and asked == []
    assert "the server does not answer" in budgets.budget(asked_of(tmp_path)).body.decode()
    assert asked == ["postgres:office/town"]


def test_doubts_on_the_page_quote_no_cell(tmp_path):  # covers W08
    """On the terminal they name the text that was met; a page may be left open."""
    fill(tmp_path)
    (tmp_path / "town.codebook.toml").write_text(
        CODEBOOK.replace('"yes", "no"', '"zzYes", "no"').replace("yes =", "zzYes =")
    )
    (tmp_path / "town.toml").write_text(PLAN.replace("'yes'", "'zzYes'"))
    rows = (tmp_path / "town.csv").read_text().replace("yes", "zzYES")
    (tmp_path / "town.csv").write_text(rows)
    open_ledger(tmp_path)
    asked = asked_of(tmp_path)
    page = surveying.look_at_rows(asked).body.decode()
    words = [each.words for each in check_rows(tmp_path / "town.toml", asked.desk.whole(asked.plan)).doubts]
    assert any("zzYES" in each for each in words)
    assert "zzYES" not in page and MARK not in page and "zzYes" in page and "case or spacing" in page


def test_the_survey_says_what_the_codebook_says(tmp_path):
    """Universe, groups, labels, missing codes, roles, and columns that no file holds."""
    fill(tmp_path)
    (tmp_path / "town.codebook.toml").write_text(
        CODEBOOK
        + """
universe = "age >= 15"
missing_codes = ["-9"]

[columns.area]
kind = "categorical"
source = "job"
groups = { north = ["1", "2"], south = ["3"] }

[columns.dealt]
kind = "categorical"
role = "psu"
dealt = 20
""".replace('source = "job"', 'source = "area code"')
    )
    page = surveying.survey(asked_of(tmp_path)).body.decode()
    for said in (
        "age &gt;= 15",
        "missing codes -9",
        "from 1, 2",
        "called area code in the file",
        "20 groups",
        ">psu<",
    ):
        assert said in page, said
    assert "made by the codebook" in page and "not found" in page and "1 respondent" not in page
