"""Four walks through the package: which files a release, a synthesis and a table of small cells go through.

Every Python call inside the package is noted by `sys.setprofile`. All modules are imported first, so that code that runs when
a file is imported is left out. A walk is made once, in a fresh process, so that nothing it would compute is kept from before.
"""

import contextlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "reticent"
ROWS = 5_000
MARK = "walked: "

HEAD = """
[survey]
source = "survey.parquet"
codebook = "survey.codebook.toml"
ledger = "walk.ledger.db"

[release]
id = "walk"

[expect]
rows = 5000

[protect]
change = "one respondent added or removed"
epsilon = "8"
"""
MEAN = """
[[impute]]
method = "donors"
bound = "hubs"
column = "wage"
match = [{ column = "age", by = "10" }, "sex", "employment"]
default = "40000"

[[statistic]]
name = "mean wage"
query = { mean = "wage", where = "employment = 'employed'", centre = "40000" }
epsilon = "1"
interval = { level = 0.95, epsilon = "0.5" }
"""
AIM = """delta = "0.000001"
[[synth]]
name = "people"
method = "aim"
rows = 500
epsilon = "1"
delta = "0.000001"
columns = ["age", "sex", "marital", "employment", "hours"]
"""
CELLS = """
[[cells]]
name = "hours by tract"
cell = "tract"
y = "hours"
x = "age"
estimate = { predict = "40" }
method = "smooth"
epsilon = "4"
count_epsilon = "1"
noise_epsilon = "1"
"""
WALKS = {
    "release, one mean with donors and a bar": MEAN,
    "release, a synthetic table by AIM": AIM,
    "Synthesizer(mst).fit().sample()": "",
    "release, small cells by smooth noise": CELLS,
}
GOALS = (75, 75, 50, 65)


@dataclass(frozen=True, slots=True)
class Walk:
    """What was gone through: files, packages and functions, and how often the way came back into a package."""

    name: str
    files: int
    packages: int
    functions: int
    returns: int


def walks() -> list[Walk]:
    """All four, each in a process of its own."""
    return [_apart(name) for name in WALKS]


def _apart(name: str) -> Walk:
    run = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=False)
    told = next((line for line in run.stdout.splitlines() if line.startswith(MARK)), None)
    if told is None:
        raise SystemExit(f"{name}: the walk failed\n{run.stderr[-2000:]}")
    return Walk(name=name, **json.loads(told.removeprefix(MARK)))


def walk(name: str, folder: Path) -> dict[str, int]:
    """One walk on the demonstration's survey, in this process."""
    for path in sorted(SOURCE.rglob("*.py")):
        with contextlib.suppress(ModuleNotFoundError):  # of an engine whose library is not installed
            import_module(
                ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
            )
    import_module("reticent.lab.demo").demo_survey(folder, rows=ROWS)
    (folder / "walk.toml").write_text(HEAD + WALKS[name], encoding="utf-8")
    if not WALKS[name]:
        return _summary(visited(lambda: _synthesize(folder)))
    command("ledger", "open", "--plan", str(folder / "walk.toml"), "--epsilon", "10")
    return _summary(visited(lambda: command("release", str(folder / "walk.toml"))))


def command(*arguments: str) -> None:
    """The command line in this process."""
    given, sys.argv = sys.argv, ["reticent", *arguments]
    out, said = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            import_module("reticent.cli").main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(said.getvalue()) from None
    finally:
        sys.argv = given


def _synthesize(folder: Path) -> None:
    package, read = import_module("reticent"), import_module("pyarrow.parquet").read_table
    columns = ["age", "sex", "marital", "employment", "hours"]
    given = {"codebook": str(folder / "survey.codebook.toml"), "columns": columns}
    model = package.Synthesizer(method="mst", epsilon="1", delta="0.000001", **given)
    model.fit(read(folder / "survey.parquet")).sample(500)


def visited(run: Callable[[], None]) -> list[CodeType]:
    """The functions of the package that `run` enters, in the order of their first visit."""
    seen: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            seen.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    inside = str(SOURCE)
    return [code for code in seen if code.co_filename.startswith(inside) and code.co_name != "<module>"]


def _summary(codes: list[CodeType]) -> dict[str, int]:
    files = list(dict.fromkeys(Path(code.co_filename).relative_to(SOURCE).as_posix() for code in codes))
    rooms = [file.rpartition("/")[0] for file in files]
    runs = sum(1 for place, room in enumerate(rooms) if not place or rooms[place - 1] != room)
    packages = len(set(rooms))
    return {"files": len(files), "packages": packages, "functions": len(codes), "returns": runs - packages}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        print(MARK + json.dumps(walk(sys.argv[1], Path(made))))
