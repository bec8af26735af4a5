"""Pages come after publication: whatever kills the renderer, the release is out, charged once, and `resume` draws."""

import os
import signal
import subprocess
import sys
from errno import ENOSPC
from pathlib import Path

import pytest

from reticent import files
from reticent.errors import PlanError
from reticent.plan.plan import read_plan
from reticent.privacy.ledger import Ledger
from reticent.release.curator import Curator
from reticent.release.release import Release
from reticent.release.survey import Survey
from reticent.report import pages
from reticent.report.pages import UNDRAWN, ReportPages
from tests.badinput.house import House, Seen, run

HTML = (".html",)
COPY = ["cat"]  # a renderer that cannot fail: its page is the JSON itself
LITTLE = """
import resource, sys, vl_convert
from reticent.report import draw
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_AS, (held + 2**25, held + 2**25))
sys.argv = ["draw", ".html"]
draw.main()
"""
HALF = "import os, sys; print('<!doctype html><p>half', flush=True); os.kill(os.getpid(), 9)"
DEATHS = {
    "little address space": [sys.executable, "-c", LITTLE],
    "killed": [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"],
    "killed half way": [sys.executable, "-c", HALF],
    "aborted": ["sh", "-c", "ulimit -c 0; kill -ABRT $$"],
    "failed": ["false"],
    "silent": ["true"],
    "missing": ["/nowhere/renderer"],
}


@pytest.fixture
def house(tmp_path, monkeypatch) -> House:
    monkeypatch.setattr("tests.badinput.house.NO_PAGES", HTML)
    return House(tmp_path)


def published(house: House) -> set[str]:
    return {path.name for path in house.out.iterdir()}


def resumed(house: House) -> Seen:
    return run("resume", "town-1", "--plan", str(house.plan))


def holds_out(house: House) -> bool:
    """JSON and CSV are there and are the ledger's answer; the ledger knows; one charge; no page and no half file."""
    ledger = Ledger.open(house.ledger)
    return (
        published(house) == {"town-1.json", "town-1.csv"}
        and (house.out / "town-1.json").read_bytes() == ledger.answer("town-1")
        and ledger.state("town-1") == "published"
        and ledger.spent == 20
    )


@pytest.mark.parametrize("death", DEATHS)
def test_a_renderer_that_dies_costs_the_page_alone(house, monkeypatch, death):
    """Status 0, one clear sentence, everything published; then `resume` draws, without a charge and without rows."""
    # covers T35
    monkeypatch.setattr(pages, "command", lambda ending: DEATHS[death])
    seen = house.release()
    assert seen.status == 0 and holds_out(house)
    assert seen.err.startswith("note: the report could not be drawn") and seen.err.count("\n") == 1
    assert "reticent resume town-1" in seen.err and "town-1.json --as html" in seen.err
    before = house.digests()
    monkeypatch.setattr(pages, "command", lambda ending: COPY)
    house.rows.unlink()
    seen = resumed(house)
    assert (seen.status, seen.err) == (0, "") and "report: " in seen.out
    assert (house.out / "town-1.html").read_bytes() == (house.out / "town-1.json").read_bytes()
    assert {name: digest for name, digest in house.digests().items() if name in before} == before


def test_a_disk_that_is_full_for_the_page_alone(house, monkeypatch):
    """The page is not written, nor half of it."""
    # covers T35 B109
    monkeypatch.setattr(pages, "command", lambda ending: COPY)
    plain = files._write

    def full(path, data, mode):
        if ".html" in path.name:
            path.write_bytes(data[:10])
            raise OSError(ENOSPC, "no space")
        plain(path, data, mode)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_write", full)
        seen = house.release()
    assert seen.status == 0 and "could not be drawn" in seen.err and holds_out(house)
    assert resumed(house).status == 0 and "town-1.html" in published(house)


def test_the_same_release_again_draws_what_is_missing_and_leaves_what_is_there(house, monkeypatch):
    # covers T35 L06
    monkeypatch.setattr(pages, "command", lambda ending: DEATHS["killed"])
    house.release()
    monkeypatch.setattr(pages, "command", lambda ending: COPY)
    assert house.release().status == 0
    before = house.digests()
    monkeypatch.setattr(pages, "command", lambda ending: ["echo", "another version's page"])
    assert house.release().status == 0 and resumed(house).status == 0
    assert house.digests() == before and "releases/town-1.html" in before


def test_killed_while_a_page_is_drawn_the_release_is_out(house):
    """SIGKILL for the command itself, as soon as it starts to draw: published, and resumed without a charge."""
    # covers T35 L03
    script = (
        "import os; from reticent.report import pages;"
        "pages._started = lambda *a: os.kill(os.getpid(), 9);"
        "from reticent.cli import main; main()"
    )
    release = [sys.executable, "-c", script, "release", str(house.plan)]
    done = subprocess.run(release, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL and holds_out(house)
    assert resumed(house).status == 0
    page = (house.out / "town-1.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>") and "<svg" in page


class DrawsFirst(Curator):
    """The naive twin: pages are drawn in this process, before the files have their names."""

    def _publish(self, reservation, out):
        os.kill(os.getpid(), signal.SIGKILL)  # as a renderer does that aborts
        return super()._publish(reservation, out)


def test_drawing_before_publishing_loses_the_release(house):
    """What the others reject: the same death, and nothing of what was paid for is out."""
    # covers T35
    plan = read_plan(house.plan)
    survey = Survey(str(house.rows), codebook=house.codebook)
    child = os.fork()
    if child == 0:
        try:
            DrawsFirst(Ledger.open(house.ledger)).release(plan, survey, house.out)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and house.spent == 20
    assert published(house) == set() and not holds_out(house)


def test_a_page_from_python(house, monkeypatch):
    """The curator of the library does the same, and says so by a warning."""
    # covers T35
    plan, ledger = read_plan(house.plan), Ledger.open(house.ledger)
    survey = Survey(str(house.rows), codebook=house.codebook)
    monkeypatch.setattr(pages, "command", lambda ending: DEATHS["missing"])
    with pytest.warns(UserWarning, match="could not be drawn"):
        made = Curator(ledger, pages=ReportPages()).release(plan, survey, house.out)
    assert holds_out(house) and isinstance(made, Release)
    monkeypatch.setattr(pages, "command", lambda ending: COPY)
    Curator(ledger, pages=ReportPages()).resume(plan, survey, house.out)
    assert "town-1.html" in published(house)


def test_pages_that_raise_stop_nothing(house):
    """Somebody else's pages are let fail as well."""

    class Loud:
        endings = (".html",)

        def draw(self, published: Path) -> None:
            raise RuntimeError("at the worst time")

    survey = Survey(str(house.rows), codebook=house.codebook)
    Curator(Ledger.open(house.ledger), pages=Loud()).release(read_plan(house.plan), survey, house.out)
    assert holds_out(house)


@pytest.mark.parametrize("endings", [".html", (".pdf",), {".html": b"drawn by hand", ".png": b""}])
def test_pages_are_named_by_their_endings(endings):
    with pytest.raises(PlanError, match="pages: are named by their endings"):
        ReportPages(endings=endings)


def test_nothing_of_the_folder_is_loaded_by_the_renderer(house, tmp_path, monkeypatch):
    """A module beside the plan, called as one of ours, is not run by drawing there."""
    marker = tmp_path / "ran"
    for name in ("jinja2", "json", "reticent"):
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "town-1.json").write_text("{}")
    told: list[str] = []
    ReportPages(tell=told.append).draw(tmp_path / "town-1.json")
    assert told == [UNDRAWN] and not marker.exists()
    naive = [word for word in pages.command(".html") if word != "-P"]
    subprocess.run(naive, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert marker.exists()
