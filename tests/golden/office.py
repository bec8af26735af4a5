"""Run the command line on a plan with frozen noise, and keep what must not change of what it leaves behind."""

import re
from hashlib import sha256
from pathlib import Path

from reticent.lab import demo
from tests.badinput.house import Seen, run
from tests.golden.frozen import frozen
from tests.golden.town import rows_csv

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
ROWS = 400
PLANS = ("demo", *sorted(path.stem for path in (HERE / "plans").glob("*.toml")))

VARIES = re.compile(r'"(ledger|hash|previous|reticent|engine)": "[^"]*"|"(largest_error)": [0-9.e+-]+')
"""The ledger's own name and hashes, which hold the clock; versions of software; what rounding leaves of a raked table."""
SOLVED = re.compile(r'"(intercept|slope|residual_sd)": (-?[0-9.e+-]+)')
"""Coefficients come from a solver in floating point, whose last digits depend on the processor: ten digits are kept."""


def made(name: str, folder: Path) -> dict[str, str]:
    """By file name: the preview as the terminal shows it, the release's JSON, and digests of everything else."""
    plan = _furnished(name, folder)
    preview = _said(run("preview", str(plan)))
    _said(run("ledger", "open", "--plan", str(plan), "--epsilon", "100"))
    with frozen(name):
        shown = _shown(_said(run("release", str(plan), "--data", str(folder / "rows.csv"))))
    shown = shown.replace(str(folder), "FOLDER")  # which is another one every time
    written = {path.name: steady(path.read_text("utf-8")) for path in _texts(folder / "releases")}
    whole = next(file for file in written if file.endswith(".json"))
    others = {"terminal": shown, **{file: text for file, text in written.items() if file != whole}}
    digests = [f"{sha256(text.encode()).hexdigest()}  {file}\n" for file, text in others.items()]
    return {
        f"{name}.preview.txt": preview,
        f"{name}.json": written[whole],
        f"{name}.digests.txt": "".join(digests),
    }


def _texts(folder: Path) -> list[Path]:
    """The release's files but for Parquet, whose bytes are another library's affair."""
    return [path for path in sorted(folder.iterdir()) if path.suffix in (".json", ".csv")]


def steady(text: str) -> str:
    """A release without what must vary."""
    text = VARIES.sub(lambda found: f'"{found[1] or found[2]}": "*"', text)
    return SOLVED.sub(lambda found: f'"{found[1]}": {float(found[2]):.10g}', text)


def _furnished(name: str, folder: Path) -> Path:
    """The plan, its codebook and the rows in a folder of their own."""
    plan = folder / "plan.toml"
    text = demo.plan(rows=ROWS) if name == "demo" else (HERE / "plans" / f"{name}.toml").read_text("utf-8")
    plan.write_text(text, encoding="utf-8")
    codebook = (HERE / "survey.codebook.toml").read_text("utf-8")
    (folder / "survey.codebook.toml").write_text(codebook + demo.GROUPS * (name == "demo"), encoding="utf-8")
    (folder / "rows.csv").write_text(rows_csv(ROWS), encoding="utf-8")
    return plan


def _said(seen: Seen) -> str:
    if seen.status or seen.err:
        raise RuntimeError(seen.err)
    return seen.out


def _shown(text: str) -> str:
    """Without the lines that name the folder."""
    named = ("report:", "note: `reticent check")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(named))
