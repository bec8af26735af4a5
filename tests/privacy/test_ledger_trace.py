"""The ledger seen from the system: what it flushes before it returns, and faults inside SQLite's own calls."""

import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.privacy.ledgers import make, violation

pytestmark = [
    pytest.mark.trace,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

ROOT = Path(__file__).parents[2]
CHANGING = "write,pwrite64,fsync,fdatasync,rename,link,linkat,unlink,ftruncate,fchmod"
RELEASE = """
import sys
from pathlib import Path
from reticent.errors import ReticentError
from tests.privacy.ledgers import publish_last
try:
    publish_last(Path(sys.argv[1]))
except ReticentError as error:
    sys.exit(error.status)
"""
CHARGE = """
import sys
from pathlib import Path
from reticent.privacy.ledger import Ledger, sqlite
from tests.privacy.ledgers import reserve
if sys.argv[2] == "naive":
    plain = sqlite.connect
    def connect(*given):
        connection = plain(*given)
        connection.execute("PRAGMA synchronous=OFF")
        return connection
    sqlite.connect = connect
ledger = Ledger.open(Path(sys.argv[1]))
open(sys.argv[1] + ".begin", "w").close()
reserve(ledger)
open(sys.argv[1] + ".data", "w").close()
"""


def traced(script: str, *arguments: str, options: list[str]) -> tuple[int, str]:
    """The exit status of a script under strace, and the log."""
    log = Path(arguments[0]).with_suffix(".log")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = ["strace", "-f", "-y", "-o", str(log), *options, sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=60, check=False)
    return done.returncode, log.read_text()


def ledger_flushes(path: Path, how: str) -> int:
    """How often the ledger file was flushed between asking for a charge and opening the data."""
    status, log = traced(CHARGE, str(path), how, options=["-e", "trace=openat,fsync,fdatasync"])
    assert status == 0
    between = log[log.index("a.db.begin") : log.index("a.db.data")]
    return len(re.findall(r"f(?:data)?sync\(\d+<[^>]*/a\.db>\) *= 0", between))


def test_a_charge_is_flushed_before_the_data_are_opened(folder):
    """And it is not where SQLite is left to flush when it likes: the naive twin."""
    # covers L01
    seen = {}
    for how in ("ours", "naive"):
        (folder / how).mkdir()
        make(folder / how / "a.db")
        seen[how] = ledger_flushes(folder / how / "a.db", how)
    assert seen["ours"] >= 1 and seen["naive"] == 0


def points(path: Path) -> list[tuple[str, int]]:
    """Every file-changing call of one release, as (call, how manieth of its kind)."""
    _, log = traced(RELEASE, str(path), options=["-e", f"trace={CHANGING}"])
    calls = re.findall(r"^\d+ +(\w+)\(", log, flags=re.MULTILINE)
    return [(call, number) for call, total in Counter(calls).items() for number in range(1, total + 1)]


def test_faults_inside_sqlite_lose_nothing(folder):
    """SIGKILL, ENOSPC and EIO at calls of one release; 15 of them here, all with RETICENT_FAULTS=all."""
    # covers L03 B109 B110
    (folder / "count").mkdir()
    make(folder / "count" / "a.db", budget="1")
    faults = [
        (call, number, fault)
        for call, number in points(folder / "count" / "a.db")
        for fault in ("signal=SIGKILL", "error=ENOSPC", "error=EIO")
    ]
    assert len(faults) > 100
    chosen = faults if os.environ.get("RETICENT_FAULTS") == "all" else random.Random(5).sample(faults, 15)
    for index, (call, number, fault) in enumerate(chosen):
        path = folder / str(index) / "a.db"
        path.parent.mkdir()
        make(path, budget="1")
        # "+" means from there on; a killed process has no further calls.
        inject = f"inject={call}:{fault}:when={number}" + ("+" if "error" in fault else "")
        status, _ = traced(RELEASE, str(path), options=["-e", f"trace={CHANGING}", "-e", inject])
        assert status in (-9, 137, 4, 0), (call, number, fault, status)
        assert violation(path) == "", (call, number, fault)
        shutil.rmtree(path.parent)
    print(f"faults: {len(chosen)} of {len(faults)}, at {len(faults) // 3} file-changing calls; violations: 0")
