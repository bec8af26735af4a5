"""The command line end to end: help with an example, statuses, one line, and every door onto a plan."""

import json
import os
import pty
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from reticent.cli.main import app
from reticent.cli.show import show_coarse, show_lines
from reticent.privacy.ledger import Ledger
from reticent.release.product import Grid
from tests.badinput.house import House, assert_refused, run
from tests.doubles import passed

COMMAND = [sys.executable, "-c", "from reticent.cli import main; main()"]


def commands(command=None, path=()) -> list[tuple[str, ...]]:
    """Every command, as the words that call it."""
    command = command or typer.main.get_command(app)
    inner = getattr(command, "commands", {})
    below = [words for name, each in inner.items() for words in commands(each, (*path, name))]
    return below or [path]


def test_the_commands_of_the_design_are_there():
    words = {" ".join(path) for path in commands()}
    assert {"preview", "rehearse", "check", "release", "resume", "demo", "codebook draft"} <= words
    assert {f"ledger {name}" for name in ("open", "show", "spent", "verify", "note")} <= words


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_has_an_example_that_names_the_command(path):
    seen = run(*path, "--help")
    assert (seen.status, seen.err) == (0, "")
    assert re.search(rf"Examples?: reticent {' '.join(path)}\b", " ".join(seen.out.split()))


@pytest.mark.parametrize("group", [[], ["ledger"], ["codebook"], ["lab"]], ids=" ".join)
def test_a_list_of_commands_tells_whole_sentences(group):
    """None is cut off in the middle with dots."""
    listed = run(*group, "--help").out.partition("Commands:")[2]
    assert listed and "..." not in listed


@pytest.mark.parametrize("words", [[], ["ledger"], ["codebook"]])
def test_a_group_without_a_command_explains_itself(words):
    seen = run(*words)
    assert "Usage" in seen.out + seen.err and "Traceback" not in seen.out + seen.err
    assert seen.status in (0, 2)


def cpu_of(*arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*COMMAND, *arguments], check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize(("said", "expected"), [(None, "1"), ("3", "3")])
def test_products_of_matrices_take_one_thread_unless_the_caller_says_otherwise(said, expected):
    """NumPy reads it when it is loaded: not before the command has begun."""
    code = (
        "import os, sys\nfrom reticent.cli import main\nassert 'numpy' not in sys.modules\n"
        "try:\n    main()\nexcept SystemExit:\n    print(os.environ['OPENBLAS_NUM_THREADS'])"
    )
    kept = {key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"}
    around = kept if said is None else {**kept, "OPENBLAS_NUM_THREADS": said}
    words = [sys.executable, "-c", code, "--version"]
    done = subprocess.run(words, check=True, capture_output=True, timeout=60, text=True, env=around)
    assert done.stdout.split()[-1] == expected


@pytest.mark.parametrize("arguments", [["--help"], ["release", "--help"], ["--version"]], ids=" ".join)
def test_help_costs_less_than_a_second(arguments):
    """CPU time, and the better of two, so that a busy machine does no harm."""
    assert min(cpu_of(*arguments), cpu_of(*arguments)) < 1


def test_the_version():
    assert re.fullmatch(r"reticent [0-9]+\.[0-9]+\.[0-9]+\n", run("--version").out)


@pytest.fixture
def house(tmp_path) -> House:
    return House(tmp_path)


# covers R16
def test_every_status(house, monkeypatch):
    """0 released, 2 refused, 3 over budget, 4 resource, 5 ledger, 130 interrupted; each failure is one line."""
    assert house.release().status == 0
    assert_refused(run("release", "nowhere.toml"), status=2)
    house.edit('id = "town-1"', 'id = "town-2"')
    assert (
        run(
            *("ledger", "open", str(house.folder / "small.db"), "--dataset", "town-2026", "--epsilon", "1"),
            "--separate-budget",
        ).status
        == 0
    )
    assert_refused(house.release("--ledger", str(house.folder / "small.db")), "epsilon", "1", status=3)
    assert_refused(house.release("--ledger", str(house.folder / "none.db")), "ledger", status=5)
    for problem, status in ((MemoryError(), 4), (KeyboardInterrupt(), 130), (ValueError("34,420.5,f"), 4)):
        with monkeypatch.context() as patch:
            patch.setattr(
                "reticent.workflow.releasing.read_plan",
                lambda path, problem=problem, **_: (_ for _ in ()).throw(problem),
            )
            seen = house.release("--debug")
        assert seen.status == status and seen.out == ""
        assert re.fullmatch(r"error: [^\n]+: [^\n]+\n", seen.err) and "420.5" not in seen.err


def test_the_same_release_again_is_the_same_bytes_and_no_charge(house):  # covers L06 T30
    assert house.release().status == 0
    before = house.digests()
    assert house.release().status == 0
    assert house.digests() == before and house.spent == 20
    house.edit('epsilon = "4"', 'epsilon = "3"')
    assert_refused(house.release(), "another plan")
    assert house.digests() == before


def test_preview_reads_no_row_and_charges_nothing(house):
    house.rows.unlink()
    before = house.digests()
    seen = run("preview", str(house.plan), "--target", "cv=5%")
    assert (seen.status, seen.err) == (0, "") and "no row was read" in seen.out
    assert "epsilon for target" in seen.out
    seen = run("preview", str(house.plan), "--json")
    document = json.loads(seen.out)
    assert document["release"] == "town-1" and document["guarantee"]["epsilon"] == "20"
    assert document["statistics"][0]["name"] == "everybody"
    assert house.digests() == before


def test_rehearse_needs_no_data_and_is_marked(house):
    house.rows.unlink()
    before = house.digests()
    seen = run("rehearse", str(house.plan))
    assert (seen.status, seen.err) == (0, "") and seen.out.startswith("REHEARSAL")
    assert house.digests() == before
    trial = house.folder / "trial"
    trial.mkdir()
    seen = run("rehearse", str(house.plan), "--out", str(trial))
    assert seen.status == 0
    (page,) = trial.iterdir()
    assert page.name == "rehearsal-town-1.html" and house.digests() == before


def test_check_is_confidential_and_writes_a_note_of_digests_alone(house):
    house.fill(["34,1,f,1", "x,1,f,1", "500,,q,1"])
    before, names = house.digests(), set(os.listdir(house.folder))
    seen = house.check()
    assert (seen.status, seen.err) == (0, "") and seen.out.startswith("CONFIDENTIAL")
    assert "'x'" in seen.out and "'q'" in seen.out
    note = house.folder / ".reticent-checked"
    assert (
        re.fullmatch(r"[0-9a-f]{64}\n", note.read_text(encoding="ascii")) and note.stat().st_mode & 0o077 == 0
    )
    note.unlink()
    assert house.digests() == before and set(os.listdir(house.folder)) == names
    elsewhere = house.folder / "elsewhere.csv"
    house.rows.rename(elsewhere)
    assert_refused(house.check(), "source")
    assert house.check("--data", str(elsewhere)).status == 0


def test_check_warns_of_identifiers_that_floating_point_makes_one(capsys):
    """Two respondents who would be one. Where there are none, nothing is said."""
    show_coarse("pid", 0)
    assert capsys.readouterr().out == ""
    show_coarse("pid", 2)
    assert "pid: 2 rows" in (told := capsys.readouterr().out) and "text = true" in told


def test_resume_finishes_what_was_cut_off(house, monkeypatch):  # covers L04 L05
    assert_refused(run("resume", "town-1", "--plan", str(house.plan)), status=5)
    with monkeypatch.context() as patch:
        passed(patch)
        patch.setattr(
            "reticent.release.statistics.evaluate_sampled",
            lambda *a, **k: (_ for _ in ()).throw(MemoryError()),
        )
        assert house.release().status == 4
    assert house.spent == 20
    assert_refused(house.release(), "resume town-1", status=5)
    assert_refused(run("resume", "town-2", "--plan", str(house.plan)), "ID", status=2)
    assert run("resume", "town-1", "--plan", str(house.plan)).status == 0
    assert house.spent == 20 and {p.name for p in house.out.iterdir()} == {"town-1.json", "town-1.csv"}


def test_a_second_resume_without_an_answer_needs_a_new_charge(house, monkeypatch):  # covers L04
    with monkeypatch.context() as patch:
        passed(patch)
        patch.setattr(
            "reticent.release.statistics.evaluate_sampled",
            lambda *a, **k: (_ for _ in ()).throw(MemoryError()),
        )
        assert house.release().status == 4
        assert run("resume", "town-1", "--plan", str(house.plan)).status == 4
    assert_refused(run("resume", "town-1", "--plan", str(house.plan)), "resumed once", status=5)
    assert not list(house.out.iterdir())


def test_the_ledger_commands(tmp_path):
    path = str(tmp_path / "acs.db")
    assert run("ledger", "open", path, "--dataset", "acs", "--epsilon", "2.5").out.startswith("opened acs.db")
    assert_refused(run("ledger", "open", path, "--dataset", "acs", "--epsilon", "9"), status=5)
    assert run("ledger", "spent", path).out == "acs: epsilon 0 spent of 2.5, 2.5 left\n"
    assert run("ledger", "note", path, "audited").out == "noted\n"
    assert run("ledger", "note", path, "a new wave", "--raise-to", "3").status == 0
    assert run("ledger", "spent", path).out == "acs: epsilon 0 spent of 3, 3 left\n"
    shown = run("ledger", "show", path).out.splitlines()
    assert [line.split()[1] for line in shown] == ["open", "note", "note"]
    assert "whole" in run("ledger", "verify", path).out


def test_a_ledger_in_rho_shows_epsilon_at_one_delta(tmp_path):
    """Computed when it is shown, for the delta that is asked for, and nowhere kept."""
    path = str(tmp_path / "acs.db")
    assert run("ledger", "open", path, "--dataset", "acs", "--rho", "0.5").status == 0
    told = run("ledger", "spent", path).out.splitlines()
    assert told[0] == "acs: rho 0 spent of 0.5, 0.5 left"
    assert told[1] == "spent: rho = 0, that is (0, 0.000001)-DP"
    assert told[2].startswith("budget: rho = 0.5, that is (5.") and told[2].endswith(", 0.000001)-DP")
    other = run("ledger", "spent", path, "--delta", "0.001").out.splitlines()
    assert other[2].endswith(", 0.001)-DP") and other[2] != told[2]
    assert_refused(run("ledger", "spent", path, "--delta", "1e-6"), "decimal", status=2)
    assert "DP" not in run("ledger", "show", path).out


def test_a_ledger_is_verified_with_the_receipts_that_were_published(house):  # covers L09 L10
    kept = house.ledger.read_bytes(), (house.folder / "town.ledger.db.head").read_bytes()
    assert house.release().status == 0
    seen = run("ledger", "verify", str(house.ledger), "--receipts", str(house.out))
    assert seen.status == 0 and "1 receipt agrees" in seen.out
    house.ledger.write_bytes(kept[0])
    (house.folder / "town.ledger.db.head").write_bytes(kept[1])
    assert_refused(run("ledger", "verify", str(house.ledger), "--receipts", str(house.out)), status=5)


def test_a_codebook_is_drafted_from_the_header_alone(house):
    house.fill(["34,secret-answer,f,1"])
    seen = run("codebook", "draft", str(house.rows))
    assert (seen.status, seen.err) == (0, "") and "secret-answer" not in seen.out
    for column in ("age", "rent", "sex", "weight"):
        assert f"[columns.{column}]" in seen.out
    target = house.folder / "draft.toml"
    assert run("codebook", "draft", str(house.rows), "--out", str(target)).status == 0
    assert_refused(run("codebook", "draft", str(house.rows), "--out", str(target)), "never overwritten")
    assert_refused(
        run("codebook", "check", str(target)), "survey.unit", "draft.toml: not finished", "TODO left"
    )
    seen = run("codebook", "check", str(house.codebook))
    assert seen.out == "town-2026: 4 columns, unit row; finished\n"


def test_the_demo_and_its_second_run(tmp_path, monkeypatch):
    """With the report this time; the second run gives the same bytes and no charge."""
    from reticent.cli import plans

    pages = plans.drawn()
    out = tmp_path / "demo"

    def demo():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.badinput.house.NO_PAGES", pages)
            return run("demo", "--out", str(out), "--rows", "300")

    seen = demo()
    assert (seen.status, seen.err) == (0, "") and seen.out.splitlines()[-1].startswith("report: ")
    report = Path(seen.out.splitlines()[-1].removeprefix("report: "))
    assert report.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    before = {path.name: path.read_bytes() for path in (out / "releases").iterdir()}
    spent = Ledger.open(out / "survey.ledger.db").spent
    assert demo().status == 0
    assert {path.name: path.read_bytes() for path in (out / "releases").iterdir()} == before
    assert Ledger.open(out / "survey.ledger.db").spent == spent
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    assert_refused(run("demo", "--out", str(tmp_path / "mine")), "out")


def test_progress_only_where_somebody_watches(house):
    """Nothing on the error stream when it is no terminal; a bar, and no number of rows, when it is one."""
    done = subprocess.run([*COMMAND, "release", str(house.plan)], check=True, capture_output=True, timeout=60)
    assert done.stderr == b""
    house.edit('id = "town-1"', 'id = "town-2"')
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [*COMMAND, "release", str(house.plan)], stdout=subprocess.DEVNULL, stderr=theirs
        ) as child:
            os.close(theirs)
            shown = b""
            while chunk := _read(ours):
                shown += chunk
        assert child.returncode == 0
    finally:
        os.close(ours)
    assert b"releasing" in shown and b"80" not in re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", shown)


def _read(handle: int) -> bytes:
    try:
        return os.read(handle, 65536)
    except OSError:  # the other end is closed
        return b""


def test_no_number_on_the_terminal_is_cut_off(capsys, monkeypatch):
    """A table that does not fit gives its numbers their room; where even they do not fit, it is wider than the terminal."""
    numbers = ("12,626,708,250", "12,357,092,339 to 12,896,324,160", "11,381,982,432 to 13,871,434,068")
    grid = Grid(
        headings=("name", "value", "noise", "total", "mark"),
        rows=[("of all adults " * 2, *numbers, "use with caution")],
    )
    for room in (200, 80, 40):
        monkeypatch.setenv("COLUMNS", str(room))
        show_lines([grid])
        said = capsys.readouterr().out
        assert "…" not in said and all(word in said for each in numbers for word in each.split())
        assert room < 80 or max(map(len, said.splitlines())) <= room
