"""A whole release as the system sees it: charge on disk, then rows, then answer on disk, then names of files."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reticent.lab.demo import demo_survey
from reticent.plan.plan import read_plan
from reticent.privacy.ledger import Ledger

pytestmark = [
    pytest.mark.trace,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]
CALLS = "trace=openat,read,pread64,readv,preadv,mmap,fsync,fdatasync,unlink,link,linkat,rename"
FOOTER = 80 * 1024  # to find a Parquet header, DuckDB asks for the last 16 KiB and Arrow for the last 64
COMMAND = "from reticent.cli import main; main()"
UNDRAWN = (
    "from reticent.cli import plans; plans.drawn = tuple\n"  # what happens before the answer needs no page
)
NAIVE = """
import sys
from reticent.engine.duckdb.engine import DuckDBEngine
plain = DuckDBEngine.check
def check(self, schema):
    # The naive twin: look at the rows first, charge afterwards.
    from reticent.engine.wants import Rows, Sum
    self.tally(schema, [Sum(rows=Rows(answered=("wage",)), value="wage", power=1)])
    plain(self, schema)
DuckDBEngine.check = check
from reticent.cli import main
main()
"""


@pytest.fixture(scope="module")
def survey(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    demo_survey(folder, rows=40_000)
    return folder


def traced(survey: Path, folder: Path, script: str) -> list[str]:
    """The calls of one release, in order, each as a line that names the file."""
    shutil.copytree(survey, folder)
    (folder / "out").mkdir()
    plan = read_plan(folder / "plan.toml")
    Ledger.create(
        folder / plan.ledger, dataset=plan.schema.name, change=plan.change.value, unit="epsilon", budget="10"
    )
    log = folder / "calls.log"
    release = ["release", str(folder / "plan.toml"), "--out", str(folder / "out")]
    command = ["strace", "-f", "-y", "-e", CALLS, "-o", str(log), sys.executable, "-c", script, *release]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0
    return log.read_text().splitlines()


def places(lines: list[str], pattern: str) -> list[int]:
    return [place for place, line in enumerate(lines) if re.search(pattern, line)]


def bytes_read(lines: list[str]) -> int:
    """What reads of the data file were given, in bytes; a call that another thread cut in two counts where it ends."""
    total, waiting = 0, set[str]()
    for line in lines:
        thread = line.split(maxsplit=1)[0]
        if re.search(r"read\w*\(\d+<[^>]*survey\.parquet>", line):
            waiting.add(thread)
        if thread in waiting and (ended := re.search(r"\) *= (\d+)$", line)):
            total += int(ended[1])
            waiting.discard(thread)
    return total


def test_the_charge_is_on_disk_before_a_row_is_read(survey, tmp_path):
    """Before the reserve is flushed only the header is looked at; the naive twin reads on."""
    # covers L01 R09
    seen = {}
    for name, script in (("ours", UNDRAWN + COMMAND), ("naive", UNDRAWN + NAIVE)):
        lines = traced(survey, tmp_path / name, script)
        reserved = places(lines, r"fdatasync\(\d+<[^>]*survey\.ledger\.db>\) *= 0")[0]
        seen[name] = bytes_read(lines[:reserved])
        assert bytes_read(lines[reserved:]) > FOOTER  # the rows are read afterwards, by both
    assert 0 < seen["ours"] <= FOOTER < seen["naive"]


def test_no_file_has_a_name_before_the_answer_is_on_disk(survey, tmp_path):
    """Journal gone once: reserved. Twice: committed. Then outputs are linked. Thrice: published. Then the page is."""
    # covers L02 R15 T35
    lines = traced(survey, tmp_path / "run", COMMAND)
    _, committed, published = places(lines, r'unlink\("[^"]*survey\.ledger\.db-journal"\) *= 0')
    named = places(lines, r"link(at)?\(.*demo-1\.(json|csv|html)\"")
    assert len(named) == 3 and committed < min(named)
    (page,) = places(lines, r"link(at)?\(.*demo-1\.html\"")
    assert published < page and max(place for place in named if place != page) < published
