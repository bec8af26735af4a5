"""The R of docs/howto/r-and-stata.md, run by Debian's R where it is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.lab.demo import demo_survey

PAGE = Path(__file__).parents[1] / "docs" / "howto" / "r-and-stata.md"
PLAN = """
[survey]
source = "survey.parquet"
codebook = "survey.codebook.toml"
ledger = "survey.ledger.db"

[release]
id = "from-r-1"

[protect]
change = "one respondent added or removed"
epsilon = 1

[[statistic]]
name = "region by sex"
query = { table = ["region", "sex"] }
epsilon = 0.5
"""


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed (Debian: r-base-core)")
def test_the_blocks_of_the_page_run_in_r(tmp_path: Path) -> None:
    demo_survey(tmp_path, rows=500)
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    command = tmp_path / "bin" / "reticent"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "from reticent.cli import main; main()" "$@"\n',
        encoding="utf-8",
    )
    command.chmod(0o755)
    blocks = re.findall(r"```r\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    script = tmp_path / "page.R"
    script.write_text(
        "\n".join([*blocks, "stopifnot(nrow(wide) >= 4, all(is.finite(wide)))"]), encoding="utf-8"
    )
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["Rscript", "--vanilla", str(script)],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "privacy_low" in done.stdout


def test_the_page_has_blocks_to_run() -> None:
    assert PAGE.read_text(encoding="utf-8").count("```r\n") == 2
