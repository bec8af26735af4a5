"""What the desk does with plans, ledgers and files: what the command line does, once, and nothing else."""

import json
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

import pytest

from reticent.plan.plan import read_plan
from reticent.privacy.ledger import ApproverKey, Ledger, SignOff
from reticent.privacy.ledger.approvals import approver_file
from reticent.web import budgets, publishing
from reticent.web.asked import Asked
from reticent.web.desk import Desk
from reticent.web.session import Sessions
from reticent.web.worker import FAILED
from reticent.workflow.approving import sign_plan, standing
from tests.web.house import CODEBOOK, LONG, MARK, PLAN, Forked, Running, fill, start

TOWN = "/plans/town.toml"


def spent(folder: Path) -> str:
    return str(Ledger.open(folder / "town.ledger.db").spent)


def charges(folder: Path) -> int:
    return sum(entry.kind == "reserve" for entry in Ledger.open(folder / "town.ledger.db").entries())


def wait(desk: Running, path: str = f"{TOWN}/progress", seconds: float = LONG) -> str:
    """The progress page once nothing moves on it."""
    end = time.monotonic() + seconds
    while "data-poll" in (text := desk.get(path).text) and time.monotonic() < end:
        time.sleep(0.2)
    return text


def test_clicks_reloads_and_tabs_charge_once(town):  # covers W15 L06
    """Eight posts of one form at the same time, from four tabs, and two more afterwards."""
    desk = start(town)
    try:
        desk.login()
        digest = desk.field(f"{TOWN}/confirm", "digest")
        with ThreadPoolExecutor(4) as tabs:
            got = list(tabs.map(lambda _: desk.post(f"{TOWN}/release", {"digest": digest}), range(8)))
        assert {each.status for each in got} == {303}
        assert "Published" in wait(desk)
        assert [desk.post(f"{TOWN}/release", {"digest": digest}).status for _ in range(2)] == [303, 303]
        assert charges(town) == 1 and spent(town) == "1"
        files = desk.get("/releases").text
        assert "town-1/json" in files and "Published" in desk.get(f"{TOWN}/progress").text
    finally:
        desk.stop()


def test_what_was_not_seen_is_not_released(town):  # covers W15
    """The plan changes between the page and the click: nothing is charged."""
    desk = start(town)
    try:
        desk.login()
        digest = desk.field(f"{TOWN}/confirm", "digest")
        (town / "town.toml").write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.9"))
        assert desk.post(f"{TOWN}/release", {"digest": digest}).status == 409
        assert charges(town) == 0
    finally:
        desk.stop()


SLOW = (
    "import time, reticent.release.curator as c; run = c.run_plan\n"
    "def slow(*a, **k):\n    time.sleep(600)\nc.run_plan = slow\n"
)


def test_a_desk_killed_in_the_middle_leaves_one_charge_and_offers_to_resume(town):  # covers W15 L03 L04
    first = start(town, before=SLOW)
    first.login()
    first.post(f"{TOWN}/release", {"digest": first.field(f"{TOWN}/confirm", "digest")})
    while not charges(town):
        time.sleep(0.1)
    first.stop(signal.SIGKILL)
    assert charges(town) == 1 and not list(town.glob("releases/*"))
    desk = start(town)
    try:
        desk.login()
        page = desk.get(f"{TOWN}/confirm").text
        assert "Resume town-1" in page and "Charge" not in page
        desk.post(f"{TOWN}/release", {"digest": desk.field(f"{TOWN}/confirm", "digest")})
        assert charges(town) == 1 and not list(town.glob("releases/*"))
        desk.post(f"{TOWN}/resume", {"digest": desk.field(f"{TOWN}/confirm", "digest")})
        assert "Published" in wait(desk)
        assert charges(town) == 1 and spent(town) == "1"
    finally:
        desk.stop()


STILL = """
import reticent.privacy.ledger.entries as entries
from reticent.release.curator import Curator
from tests.golden.frozen import frozen
entries.clock = lambda: "2026-01-01T00:00:00+00:00"
release = Curator.release
def still(*given, **named):
    with frozen("desk"):
        return release(*given, **named)
Curator.release = still
"""
"""The clock of the ledger stands still, and every draw of a release repeats."""
COMPOSED = [
    {"do": "add:statistic", "kind": "count", "epsilon": "0.1", "by": "job", "where-column": "age", "where-sign": ">=", "where-value": "18"},
    {"do": "add:statistic", "kind": "mean", "column": "wage", "epsilon": "0.2", "name": "wage <b>&\"'"},
    {"do": "add:impute", "method": "donors", "filled": "wage", "match": "job", "default": "100"},
    {"do": "add:edit", "if-column": "wage", "if-sign": ">", "if-value": "900", "then": "job", "value": "yes"},
    {"do": "add:statistic", "kind": "count", "epsilon": "0.05", "by": "age", "bins": "age 0 50 99", "expect-value": "200"},
    {"do": "add:expect", "rows": "400", "design_effect": "1.5", "missing": "wage 0.2"},
    {"do": "add:tables", "margins": "job age; age", "bins": "age 0 15 65 99", "epsilon": "0.3"},
    {"do": "add:regression", "y": "age", "x": "job", "epsilon": "0.2"},
    {"do": "add:synth", "method": "independent", "rows": "50", "epsilon": "0.2", "columns": "job"},
    {"do": "save", "amount-statistic-0": "0.4"},
    {"do": "use:statistic:1:0.35"},
    {"do": "save", "expected-statistic-0": "400"},
]  # fmt: skip


def test_the_command_line_releases_what_the_page_composed_to_the_same_bytes(town):
    """The plan is what the page wrote. Same rows, ledger and draws: every file, and every entry of the ledger, is the same."""
    desk = start(town, before=STILL)
    desk.login()
    for form in COMPOSED:
        got = desk.post(TOWN, {"base": desk.field(TOWN, "base"), **form})
        assert got.status == 303, got.text
    before = {path: path.read_bytes() for path in town.iterdir() if path.is_file()}
    digest = desk.field(f"{TOWN}/confirm", "digest")
    assert desk.post(f"{TOWN}/release", {"digest": digest}).status == 303
    by_desk = outcome(town)
    assert "Published" in wait(desk)
    desk.stop()
    shutil.rmtree(town / "releases")
    for path in town.iterdir():
        if path not in before:
            path.unlink()
        elif path.read_bytes() != before[path]:
            path.write_bytes(before[path])
    code = f"{STILL}\nimport reticent.cli.plans as plans\nplans.drawn = tuple\nfrom reticent.cli import main; main()"
    command = Forked(code, ("release", str(town / "town.toml")))
    assert command.wait(LONG) == 0
    assert outcome(town) == by_desk and len(by_desk) > 5


def outcome(folder: Path) -> dict[str, bytes]:
    """Every published file once all are there, and the entries of the ledger. Nothing is asked of the desk: that would draw."""
    end = time.monotonic() + LONG
    while (book := Ledger.open(folder / "town.ledger.db")).state("town-1") != "published":
        assert time.monotonic() < end, "it was never published"
        time.sleep(0.1)
    files = {path.name: path.read_bytes() for path in (folder / "releases").iterdir()}
    return {**files, "entries": repr([(each.kind, each.hash) for each in book.entries()]).encode()}


def test_two_people_sign_and_then_it_goes(tmp_path):
    """Anna at the desk with her key, Ben by a line that he signed elsewhere."""
    pytest.importorskip("cryptography")
    fill(tmp_path)
    anna, ben = ApproverKey.make(), ApproverKey.make()
    anna.save(tmp_path / "anna.key")
    people = SignOff(needed=2, approvers={"Anna": anna.public, "Ben": ben.public})
    facts = {"dataset": "town-2026", "change": "one respondent added or removed", "unit": "epsilon"}
    book = Ledger.create(tmp_path / "town.ledger.db", **facts, budget="5", sign_off=people)
    line = json.dumps(sign_plan(read_plan(tmp_path / "town.toml"), book, ben).as_dict())
    desk = start(tmp_path, "--key", str(tmp_path / "anna.key"))
    try:
        desk.login()
        page = desk.get(f"{TOWN}/confirm").text
        digest = desk.field(f"{TOWN}/confirm", "digest")
        assert "0 of 2" in page and "Approve as Anna" in page and "and release" not in page
        assert desk.post(f"{TOWN}/release", {"digest": digest}).status == 303
        assert "asks for 2 approvals" in wait(desk) and charges(tmp_path) == 0
        forged = json.dumps({**json.loads(line), "by": "Anna"})
        assert desk.post(f"{TOWN}/approve", {"digest": digest, "approval": forged}).status == 422
        assert desk.post(f"{TOWN}/approve", {"digest": digest}).status == 303
        assert desk.post(f"{TOWN}/approve", {"digest": digest, "approval": line}).status == 303
        assert "2 of 2" in desk.get(f"{TOWN}/confirm").text
        desk.post(f"{TOWN}/release", {"digest": digest})
        assert "Published" in wait(desk)
        receipt = json.loads((tmp_path / "releases/town-1.json").read_text())["receipt"]
        assert receipt["approved_by"] == ["Anna", "Ben"]
    finally:
        desk.stop()


@pytest.fixture
def signed(tmp_path):
    """A desk at which Anna sits, on a ledger that asks for her and Ben, and the line that Ben has signed."""
    pytest.importorskip("cryptography")
    fill(tmp_path)
    anna, ben = ApproverKey.make(), ApproverKey.make()
    facts = {"dataset": "town-2026", "change": "one respondent added or removed", "unit": "epsilon"}
    people = SignOff(needed=2, approvers={"Anna": anna.public, "Ben": ben.public})
    book = Ledger.create(tmp_path / "town.ledger.db", **facts, budget="5", sign_off=people)
    line = sign_plan(read_plan(tmp_path / "town.toml"), book, ben).as_dict()
    return Desk(tmp_path, key=anna), line


def approved(desk: Desk, line: object = None) -> tuple[int, int]:
    """The status of an approval, as a line or by this desk's key, and how many there are then."""
    whole = desk.whole(desk.plan("town.toml"))
    sent = {} if line is None else {"approval": line if isinstance(line, str) else json.dumps(line)}
    status = publishing.approve(asked_of(desk, digest=whole.digest, **sent)).status_code
    return status, len(standing(whole, desk.ledger(whole))[0])


def test_one_person_approves_once(signed):  # covers W15
    """However often, and by whichever door."""
    desk, line = signed
    assert [approved(desk, line)[1] for _ in range(2)] == [1, 1]
    assert [approved(desk)[1] for _ in range(2)] == [2, 2]
    assert approved(desk, {**line, "signature": line["signature"].upper()}) == (422, 2)


FORGED = {
    "in another's name": lambda line: {**line, "by": "Anna"},
    "by nobody who may": lambda line: {**line, "by": "Eve"},
    "another signature": lambda line: {**line, "signature": "0" * 128},
    "a bit of it": lambda line: {**line, "signature": ("1" if line["signature"][0] != "1" else "2") + line["signature"][1:]},
    "at another price": lambda line: {**line, "amount": "0.5"},
    "at the same price in other digits": lambda line: {**line, "amount": "1.0"},
    "for another release": lambda line: {**line, "release": "town-2"},
    "for another plan": lambda line: {**line, "plan": "0" * 64},
    "with half of its fields": lambda line: {"by": "Ben"},
    "of numbers": lambda line: {**line, "amount": 1},
    "no object": lambda line: [line],
    "no JSON": lambda line: "Ben approves",
    "deep JSON": lambda line: "[" * 900,
    "markup": lambda line: {**line, "by": "<img src=x onerror=alert(1)>"},
}  # fmt: skip


@pytest.mark.parametrize("kind", FORGED)
def test_a_forged_approval_is_refused_and_counts_for_nothing(signed, kind):  # covers W15
    desk, line = signed
    assert approved(desk, FORGED[kind](line)) == (422, 0)
    assert approved(desk, line) == (
        303,
        1,
    )  # and nothing but the forgery was wrong


def test_who_has_approved_a_plan_has_not_approved_what_became_of_it(signed):  # covers W15
    """Both sign, then an epsilon moves: nobody has approved that, the old lines do not either, and nothing is charged."""
    desk, line = signed
    approved(desk, line)
    assert approved(desk) == (303, 2)
    (desk.folder / "town.toml").write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.4", 1))
    changed = desk.whole(desk.plan("town.toml"))
    page = publishing.confirm(asked_of(desk)).body.decode()
    assert "Sign-off: 0 of 2" in page and "and release" not in page
    assert approved(desk, line) == (422, 0)
    publishing.release(asked_of(desk, digest=changed.digest))
    while (job := desk.worker.job(changed)) is None or job.is_running:
        time.sleep(0.05)
    assert "2 approvals" in job.problem and charges(desk.folder) == 0
    (desk.folder / "town.toml").write_text(PLAN)  # as it was approved
    assert "Sign-off: 2 of 2" in publishing.confirm(asked_of(desk)).body.decode()


def test_two_names_with_one_key_are_one_person(tmp_path):
    """A ledger is not opened for them."""
    pytest.importorskip("cryptography")
    folder, key = fill(tmp_path), ApproverKey.make()
    for name in ("Anna", "Ben"):
        (folder / f"{name}.pub").write_bytes(approver_file(name, key.public))
    asked = asked_of(Desk(folder), budget="5")
    got = budgets.open_ledger(
        replace(asked, form={**asked.form, "sign-off": ["2"], "approver": ["Anna.pub", "Ben.pub"]})
    )
    assert got.status_code == 409 and "a key of their own" in got.body.decode()
    assert not (folder / "town.ledger.db").exists()


def test_a_ledger_is_opened_with_sign_off(tmp_path):
    """By keys that lie in the folder, and by no other file."""
    pytest.importorskip("cryptography")
    folder = fill(tmp_path)
    for name in ("Anna", "Ben"):
        (folder / f"{name}.pub").write_bytes(approver_file(name, ApproverKey.make().public))
    desk = start(folder)
    try:
        desk.login()
        assert "Anna.pub" in desk.get(f"{TOWN}/budget").text
        refused = (
            {"sign-off": "2", "approver": "Anna.pub"},
            {"sign-off": "1"},
            {"approver": "Anna.pub"},
            {"sign-off": "1", "approver": "../Anna.pub"},
            {"sign-off": "1", "approver": "town.csv"},
        )
        for each in refused:
            assert desk.post(f"{TOWN}/ledger", {"budget": "5", **each}).status == 409
            assert not (folder / "town.ledger.db").exists()
        given = {"budget": "5", "sign-off": "1", "approver": "Ben.pub"}
        assert desk.post(f"{TOWN}/ledger", given).status == 303
        assert "needs 1 approval, by any of: Ben" in desk.get(f"{TOWN}/budget").text
        assert "0 of 1" in desk.get(f"{TOWN}/confirm").text
    finally:
        desk.stop()


def test_two_tabs_do_not_overwrite_each_other(town):
    desk = start(town)
    try:
        desk.login()
        base = desk.field(TOWN, "base")
        one, other = PLAN.replace("A first", "One"), PLAN.replace("A first", "Another")
        assert desk.post(TOWN, {"do": "save", "base": base, "text": one.replace("\n", "\r\n")}).status == 303
        got = desk.post(TOWN, {"do": "save", "base": base, "text": other})
        assert got.status == 422 and "changed elsewhere" in got.text and "Another release" in got.text
        assert (town / "town.toml").read_text() == one
    finally:
        desk.stop()


def test_a_second_release_waits_for_the_first(town):  # covers W13 W15
    """Another plan is confirmed, or another file with the same id, while one is on its way: refused in words, charged once."""
    (town / "other.toml").write_text(PLAN.replace("town-1", "town-2"))
    (town / "same.toml").write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.4"))
    desk = start(town, before=SLOW)
    try:
        desk.login()
        digests = {
            name: desk.field(f"/plans/{name}.toml/confirm", "digest") for name in ("town", "other", "same")
        }
        assert desk.post(f"{TOWN}/release", {"digest": digests["town"]}).status == 303
        while not charges(town):
            time.sleep(0.1)
        for name in ("other", "same"):
            got = desk.post(f"/plans/{name}.toml/release", {"digest": digests[name]})
            assert got.status == (409 if name == "other" else 303)
        assert "town-1 is on its way" in desk.get("/plans/other.toml/confirm").text
        assert "belongs to another plan" in desk.get("/plans/same.toml/progress").text
        assert (
            "steps" in desk.get(f"{TOWN}/progress").text
            and "and release" not in desk.get(f"{TOWN}/confirm").text
        )
        assert charges(town) == 1
    finally:
        desk.stop(signal.SIGKILL)


def test_the_plan_that_was_seen_is_the_one_that_is_charged(town, monkeypatch):  # covers W15
    """Also where the file changes between the look at it and the charge."""
    begun = []
    desk = Desk(town)
    monkeypatch.setattr(desk.worker.__class__, "begin", lambda self, ready: begun.append(ready.plan.digest))
    seen = read_plan(town / "town.toml")
    shown = publishing._as_shown

    def then_changed(asked):
        whole = shown(asked)
        (town / "town.toml").write_text(PLAN.replace("epsilon = 0.5", "epsilon = 0.9"))
        return whole

    monkeypatch.setattr(publishing, "_as_shown", then_changed)
    publishing.release(asked_of(desk, digest=seen.digest))
    assert begun == [seen.digest]


def asked_of(desk: Desk, **form: str) -> Asked:
    return Asked(
        desk=desk,
        sessions=Sessions(tell=lambda _: None),
        params={"plan": "town.toml"},
        form={name: [value] for name, value in form.items()},
    )


def test_a_ledger_that_is_gone_is_told_and_nothing_else(town):  # covers W12 W15
    """Removed between the page and the click: no charge, no crash, and the way to a new one."""
    desk = start(town)
    try:
        desk.login()
        digest = desk.field(f"{TOWN}/confirm", "digest")
        for path in town.glob("town.ledger.db*"):
            path.unlink()
        got = desk.post(f"{TOWN}/release", {"digest": digest})
        assert got.status == 409 and "there is no ledger" in got.text and str(town) not in got.text
        for path in ("confirm", "budget", "progress"):
            got = desk.get(f"{TOWN}/{path}")
            assert got.status in (200, 409) and "there is no ledger" in got.text
        assert desk.get("/releases").status == desk.get("/").status == 200
        assert not (town / "releases").exists()
    finally:
        desk.stop()


FAILING = """
import reticent.release.curator as curator, reticent.web.surveying as surveying
run = curator.run_plan
def failing(*given, **named):
    run(*given, **named)
    raise {kind}("77123 of the rows")
curator.run_plan = surveying.check_rows = failing
"""


@pytest.mark.parametrize("kind", ["ValueError", "MemoryError", "KeyError", "OSError"])
def test_what_fails_after_rows_were_read_says_the_same_whatever_they_hold(town, kind):  # covers W08 W12
    """The text of an error may hold a cell. None is shown, and none is printed."""
    desk = start(town, before=FAILING.format(kind=kind))
    desk.login()
    got = desk.post(f"{TOWN}/missing", {})
    assert got.status == 500 and MARK not in got.text and "something failed" in got.text
    desk.post(f"{TOWN}/release", {"digest": desk.field(f"{TOWN}/confirm", "digest")})
    page = wait(desk)
    assert MARK not in page and "Resume town-1" in page and charges(town) == 1
    assert (FAILED if kind != "MemoryError" else "not enough memory") in page
    desk.process.send_signal(2)
    out, err = desk.process.communicate(timeout=LONG)
    assert err == "" and MARK not in out


READ = """
import os, pathlib, time, reticent.release.curator as curator
run = curator.run_plan
def then_sleep(*given, **named):
    run(*given, **named)
    pathlib.Path(os.environ["TMPDIR"], "ran").touch()
    time.sleep(600)
curator.run_plan = then_sleep
"""


def test_a_killed_desk_leaves_no_cell_behind(town):  # covers W08
    """Killed after the rows were read: nothing on disk holds one but the file of the rows."""
    (town / "tmp").mkdir()
    desk = start(town, before=READ, environment={"TMPDIR": str(town / "tmp")})
    desk.login()
    assert desk.post(f"{TOWN}/missing", {}).status == 200
    desk.post(f"{TOWN}/release", {"digest": desk.field(f"{TOWN}/confirm", "digest")})
    while not (town / "tmp" / "ran").exists():
        time.sleep(0.1)
    desk.stop(signal.SIGKILL)
    files = [path for path in town.rglob("*") if path.is_file() and path.name != "town.csv"]
    assert len(files) >= 4 and not [path for path in files if MARK.encode() in path.read_bytes()]


HELD = """
import pathlib, time, reticent.web.planning as planning, reticent.web.surveying as surveying
def held(*given):
    while not pathlib.Path({0!r}).exists():
        time.sleep(0.1)
planning.rehearse = surveying.check_rows = held
"""
"""Rehearsals and looks at the rows that last until a file is there."""


def test_what_takes_a_while_is_done_one_by_one(town):  # covers W13
    """A second click on a rehearsal, or a look at the rows meanwhile, finds the first at work."""
    desk = start(town, before=HELD.format(str(town / "go")))
    try:
        desk.login()
        with ThreadPoolExecutor(4) as tabs:
            ways = (f"{TOWN}/rehearsal", f"{TOWN}/rehearsal", f"{TOWN}/missing")
            ended = as_completed([tabs.submit(desk.post, way, {}) for way in ways])
            assert [next(ended).result().status for _ in range(2)] == [503, 503]
            (town / "go").touch()
            assert next(ended).result().status != 503
    finally:
        desk.stop()


def test_from_rows_alone_to_a_plan(tmp_path):
    """A folder that holds a file of rows: a plan, a drafted codebook, its editing, and a ledger."""
    fill(tmp_path)
    (tmp_path / "town.toml").unlink()
    (tmp_path / "town.codebook.toml").unlink()
    desk = start(tmp_path)
    try:
        desk.login()
        frame = {
            "id": "new-1",
            "rows": "town.csv",
            "change": "one respondent added or removed",
            "epsilon": "1",
        }
        assert desk.post("/plans", frame).headers["location"] == "/plans/new-1.toml/survey"
        assert desk.post("/plans/new-1.toml/survey", {}).status == 303
        page = desk.get("/plans/new-1.toml/codebook")
        assert "TODO" in page.text and "TODO left, in lines" in page.text
        base = desk.field("/plans/new-1.toml/codebook", "base")
        saved = desk.post("/plans/new-1.toml/codebook", {"do": "save", "base": base, "text": CODEBOOK})
        assert saved.status == 303
        assert "3 columns, unit row; finished" in desk.get("/plans/new-1.toml/codebook").text
        form = {
            "do": "add:statistic",
            "kind": "count",
            "epsilon": "0.5",
            "base": desk.field("/plans/new-1.toml", "base"),
        }
        assert desk.post("/plans/new-1.toml", form).status == 303
        assert desk.post("/plans/new-1.toml/ledger", {"budget": "3"}).status == 303
        assert "Charge 0.5 and release" in desk.get("/plans/new-1.toml/confirm").text
        rehearsed = desk.post("/plans/new-1.toml/rehearsal", {})
        assert rehearsed.status == 200 and "Rehearsal" in rehearsed.text
    finally:
        desk.stop()
