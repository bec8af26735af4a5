"""A folder with a small survey, the desk on it as a process of its own, and a plain client that says exactly what it sends."""

import http.client
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.reduction import DupFd
from pathlib import Path
from urllib.parse import urlencode

from reticent.workflow.opening import Opening, open_by_plan

PLAN = """format = 2

[survey]
source = "town.csv"
codebook = "town.codebook.toml"
ledger = "town.ledger.db"

[release]
id = "town-1"
title = "A first release from the town"

[expect]
rows = 2000
design_effect = "1.5"

[protect]
change = "one respondent added or removed"
epsilon = 2

# How many there are.
[[statistic]]
name = "everybody"
query = { count = "*" }
epsilon = 0.5

[[statistic]]
name = "share employed"
query = { proportion = "job = 'yes'" }
epsilon = 0.5
interval = { level = 0.95 }
"""
CODEBOOK = """format = 2

[survey]
name = "town-2026"
title = "The town"
unit = "row"

[columns.age]
kind = "integer"
label = "Age in years"
bounds = [0, 99]

[columns.job]
kind = "categorical"
label = "<img src=x onerror=alert(1)>"
levels = ["yes", "no"]
labels = { yes = "<img src=x onerror=alert(2)>", no = "no" }

[columns.wage]
kind = "integer"
label = "Wage"
bounds = [0, 1000]
"""
LONG = 300
"""Seconds to wait for what must come: only a broken desk waits that long, however busy the machine."""
MARK = "77123"  # a cell that does not fit: it may stand on no page


def fill(folder: Path, rows: int = 400) -> Path:
    """A plan, a codebook and rows, some of them missing and one that does not fit."""
    (folder / "town.toml").write_text(PLAN)
    (folder / "town.codebook.toml").write_text(CODEBOOK)
    lines = [f"{20 + n % 60},{'yes' if n % 3 else 'no'},{'' if n % 5 == 0 else n % 900}" for n in range(rows)]
    (folder / "town.csv").write_text("\n".join(["age,job,wage", f"40,{MARK}x,1", *lines, ""]))
    return folder


def open_ledger(folder: Path) -> None:
    """With a budget of 5."""
    asked = Opening(
        ledger=None, dataset=None, change=None, unit="epsilon", budget="5", outputs=None, separate=False
    )
    open_by_plan(asked, folder / "town.toml")


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str
    body: bytes = field(repr=False, default=b"")


@dataclass
class Running:
    """The desk as a process, and what it printed."""

    process: "Forked | subprocess.Popen[str]"
    port: int
    token: str
    cookie: str = ""

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Just these headers, and a Host unless one is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            given = {"Host": self.host, **(headers or {})}
            if body or method == "POST":
                given.setdefault("Content-Length", str(len(body)))
            for name, value in given.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            got = connection.getresponse()
            data = got.read()
            return Answer(
                got.status, {k.lower(): v for k, v in got.getheaders()}, data.decode("utf-8", "replace"), data
            )
        finally:
            connection.close()

    def login(self) -> None:
        got = self.send("GET", f"/login?token={self.token}")
        assert got.status == 303, got
        self.cookie = got.headers["set-cookie"].partition(";")[0]

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, headers={"Cookie": self.cookie, **headers})

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """As a form of the desk's own page sends it."""
        given = {
            "Cookie": self.cookie,
            "Origin": self.origin,
            "Content-Type": "application/x-www-form-urlencoded",
            **headers,
        }
        return self.send("POST", path, urlencode({"word": self.word(), **fields}).encode(), given)

    def word(self) -> str:
        return re.search(r'name="word" value="([^"]+)"', self.get("/").text)[1]

    def field(self, path: str, name: str) -> str:
        return re.search(rf'name="{name}" value="([^"]*)"', self.get(path).text)[1]

    def stop(self, sign: int = signal.SIGINT) -> int:
        self.process.send_signal(sign)
        try:
            return self.process.wait(LONG)
        finally:
            self.process.stdout.close()
            self.process.stderr.close()


PAGELESS = "from reticent.web.worker import Worker\nmade = Worker.__init__\nWorker.__init__ = lambda self: made(self, endings=())\n"
"""Files that are drawn of a release take a process each; only some tests want them."""

SIGNALLED = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL); signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Tests may run where these are ignored, as under `nohup` or behind `&`, and a process inherits that."""

READY = multiprocessing.get_context("forkserver")
READY.set_forkserver_preload(["reticent.cli.main", "reticent.web.serve", "tests.web.house"])
"""Importing takes longer than most tests: a process that has done it is copied for each desk."""


class Forked:
    """A desk in a copy of a process that has imported everything, with the members of a `Popen` that tests use."""

    def __init__(self, code: str, words: tuple[str, ...]) -> None:
        pipes = [os.pipe() for _ in range(2)]
        sent = [_Sent(write) for _, write in pipes]
        self._process = READY.Process(target=_forked, args=(code, words, sent), daemon=True)
        self._process.start()
        for _, write in pipes:
            os.close(write)
        self.stdout, self.stderr = (os.fdopen(read, "r") for read, _ in pipes)
        self.pid = self._process.pid

    def send_signal(self, sign: int) -> None:
        os.kill(self.pid, sign)

    def wait(self, seconds: float) -> int:
        self._process.join(seconds)
        if self._process.exitcode is None:
            self._process.kill()
            raise TimeoutError("the desk did not stop")
        return self._process.exitcode

    def communicate(self, timeout: float) -> tuple[str, str]:
        self.wait(timeout)
        return self.stdout.read(), self.stderr.read()


class _Sent:
    """A descriptor on its way to another process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self):
        return _received, (DupFd(self.number),)


def _received(sent) -> int:
    return sent.detach()


def _forked(code: str, words: tuple[str, ...], ends: list[int]) -> None:
    for place, end in enumerate(ends, 1):
        os.dup2(end, place)
        os.close(end)
    sys.stdout, sys.stderr = (os.fdopen(place, "w", closefd=False) for place in (1, 2))
    sys.argv = ["reticent", *words]
    exec(code, {"__name__": "desk"})  # noqa: S102 - a test's own lines


def start(
    folder: Path,
    *words: str,
    pages: bool = False,
    before: str = "",
    environment: Mapping[str, str] | None = None,
) -> Running:
    """Start the desk, after some lines of a test's own, and read its first line; with an environment, in a new process."""
    code = SIGNALLED + ("" if pages else PAGELESS) + before + "\nfrom reticent.cli import main; main()"
    given = ("serve", str(folder), *words)
    process: Forked | subprocess.Popen[str] = (
        Forked(code, given)
        if environment is None
        else subprocess.Popen(
            [sys.executable, "-c", code, *given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )
    )
    assert select.select([process.stdout], [], [], LONG)[0], "the desk did not start"
    line = process.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/login\?token=([\w-]{43})\n", line)
    assert found, (line, process.stderr.read())
    return Running(process, int(found[1]), found[2])
