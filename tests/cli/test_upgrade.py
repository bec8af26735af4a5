"""`reticent upgrade`: in place with the old file kept, or beside; all files or none; and twice is once."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import PlanError

BEFORE = Path(__file__).parents[1] / "fixtures" / "format-1"
FILES = ("released.toml", "every.toml", "codebook.toml")


@pytest.fixture
def held(tmp_path):
    for name in FILES:
        shutil.copy(BEFORE / name, tmp_path / name)
    return tmp_path


def ran(*words):
    return CliRunner().invoke(app, ["upgrade", *map(str, words)])


def test_files_are_rewritten_and_the_old_ones_kept(held):
    paths = [held / name for name in FILES]
    first = ran(*paths)
    assert first.exit_code == 0 and first.stdout.count("rewritten; the old one is") == 3
    for path in paths:
        assert path.with_name(path.name + ".bak").read_bytes() == (BEFORE / path.name).read_bytes()
    new = [path.read_bytes() for path in paths]
    again = ran(*paths)
    assert again.exit_code == 0 and again.stdout.count("today's words already") == 3
    assert [path.read_bytes() for path in paths] == new
    assert CliRunner().invoke(app, ["preview", str(held / "released.toml")]).exit_code == 0


def test_a_folder_takes_the_new_files(held):
    (held / "new").mkdir()
    assert ran(held / "released.toml", "--out", held / "new").exit_code == 0
    assert (held / "released.toml").read_bytes() == (BEFORE / "released.toml").read_bytes()
    assert "[[statistic]]" in (held / "new" / "released.toml").read_text()
    assert not (held / "released.toml.bak").exists()


def test_all_files_or_none(held):
    """One that is refused, or whose copy would lie over another file, leaves the others as they were."""
    (held / "bad.toml").write_text("[tool]\nx = 1\n")
    made = ran(held / "released.toml", held / "bad.toml")
    assert isinstance(made.exception, PlanError) and "neither a plan nor a codebook" in str(made.exception)
    (held / "every.toml.bak").write_text("mine")
    made = ran(held / "released.toml", held / "every.toml")
    assert isinstance(made.exception, PlanError) and "never overwritten" in str(made.exception)
    assert (held / "every.toml.bak").read_text() == "mine"
    for name in FILES:
        assert (held / name).read_bytes() == (BEFORE / name).read_bytes()


def test_the_codebook_may_lie_elsewhere(held):
    """Without it nobody knows whether a column that a model fills is a number."""
    text = (held / "every.toml").read_text().replace('fill = "mode"\ngroups = 5\n', "")
    (held / "every.toml").write_text(text)
    (held / "away").mkdir()
    (held / "codebook.toml").rename(held / "away" / "codebook.toml")
    assert "name it with --codebook" in str(ran(held / "every.toml").exception)
    assert ran(held / "every.toml", "--codebook", held / "away" / "codebook.toml").exit_code == 0
    assert 'method = "classes"      # levels: chances' in (held / "every.toml").read_text()


def test_the_mark_and_the_line_ends_of_other_systems_stay(held):
    path = held / "released.toml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert ran(path).exit_code == 0
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf#") and b"[[statistic]]\r\n" in data


def test_help_shows_an_example():
    assert "Example: reticent upgrade plan.toml" in CliRunner().invoke(app, ["upgrade", "--help"]).stdout
