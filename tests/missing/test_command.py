"""`reticent missing`: confidential, to the terminal alone."""

from pathlib import Path

from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.lab.demo import demo_survey


def test_the_command_describes_and_tests_and_leaves_nothing_behind(tmp_path: Path):
    """Everything it prints follows a warning, and no file or charge remains."""
    demo_survey(tmp_path, rows=500)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    done = CliRunner().invoke(app, ["missing", str(tmp_path / "plan.toml")])
    assert done.exit_code == 0
    assert done.stdout.startswith("CONFIDENTIAL")
    for words in ("wage", "complete rows", "mean correlation", "Little's test", "proves nothing"):
        assert words in done.stdout
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
