"""How long it takes to import the package and to ask the command for help.

Run as `python -m bench.start`. Best of three fresh interpreters; the promise is about processor time.
"""

import os
import subprocess
import sys
import time
from typing import Any

CASES = [
    ("python", ["-c", "pass"], 0.5),
    ("import reticent", ["-c", "import reticent"], 0.5),
    ("reticent --help", ["-c", "from reticent.cli import main; main()", "--help"], 1.0),
    ("reticent release --help", ["-c", "from reticent.cli import main; main()", "release", "--help"], 1.0),
]


def measure(arguments: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of the best of three fresh interpreters."""
    found = []
    for _ in range(3):
        wall, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        found.append((time.perf_counter() - wall, cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def run() -> list[dict[str, Any]]:
    """One row for each way to start."""
    rows = []
    for name, arguments, most in CASES:
        wall, cpu = measure(arguments)
        rows.append({"name": name, "wall": wall, "cpu": cpu, "most": most, "ok": cpu < most})
    return rows


def main() -> None:
    """Print the table."""
    print(f"{'start':<26}{'wall s':>10}{'cpu s':>10}{'at most':>10}{'ok':>8}")
    for row in run():
        print(f"{row['name']:<26}{row['wall']:>10.2f}{row['cpu']:>10.2f}{row['most']:>10.2f}{row['ok']!s:>8}")


if __name__ == "__main__":
    main()
