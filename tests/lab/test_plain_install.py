"""What a plain install has is enough for the demo: the tests' own environment holds more, and would hide what is missing."""

import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = """
import sys
class Fence:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Fence())
"""


def kept_out() -> set[str]:
    """Modules that are installed here and stand in no line of the demo's lock."""
    text = (ROOT / "requirements" / "demo.lock").read_text("utf-8")
    locked = {_plain(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)}
    owned = packages_distributions().items()
    return {
        module for module, owners in owned if not {_plain(owner) for owner in owners} & {*locked, "reticent"}
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def run(code: str, *words: str) -> subprocess.CompletedProcess:
    fenced = FENCE.format(missing=sorted(kept_out())) + code
    return subprocess.run([sys.executable, "-c", fenced, *words], capture_output=True, text=True, check=False)


def test_the_fence_keeps_out_what_only_tests_install():
    got = run("import scipy")
    assert got.returncode == 1
    assert "No module named 'scipy'" in got.stderr


def test_the_demo_runs_on_a_plain_install(tmp_path):
    got = run(
        "from reticent.cli import main; main()", "demo", "--out", str(tmp_path / "demo"), "--rows", "500"
    )
    assert got.returncode == 0, got.stderr
    assert list((tmp_path / "demo" / "releases").glob("*.html"))


def test_all_public_names_are_there_on_a_plain_install():
    got = run("import reticent; assert [getattr(reticent, name) for name in dir(reticent)]")
    assert got.returncode == 0, got.stderr
