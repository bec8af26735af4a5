"""What is shipped: the same bytes from every build, and a bill of materials that is the lock's."""

import importlib.util
import io
import json
import sys
import time
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
EPOCH = 1_790_000_000


def _tool(file: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sbom = _tool("sbom.py", "sbom")
wheel = _tool("wheel.py", "build_wheel")
PINS = sbom.read_lock((ROOT / sbom.LOCK).read_text())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Two builds under different circumstances, found alike."""
    return wheel.build_twice(ROOT, tmp_path_factory.mktemp("builds"), epoch=EPOCH)


# --- S04: every build alike -------------------------------------------------------------------------------------


def test_two_builds_are_alike_in_every_bit(built: dict[str, bytes]) -> None:  # covers S04
    """Folder, user mask, zone, language, hash seed and age of the files differ; sdist and wheel do not."""
    assert sorted(name.rsplit(".", 1)[1] for name in built) == ["gz", "whl"]
    (data,) = wheel.wheels(built).values()
    assert {each.date_time for each in data.infolist()} == {time.gmtime(EPOCH)[:6]}


def zipped(folder: Path) -> bytes:
    """The naive way: an archive of the files as they lie there, with their times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return out.getvalue()


def test_the_comparison_sees_an_archive_that_keeps_times_and_places(tmp_path: Path) -> None:  # covers S04
    """Naive twins: `zip -r`, a build that writes down its folder, and one file fewer."""
    made = []
    for name, age in (("a", 0), ("b", 10**6)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.py").write_text("x = 1\n")
        wheel.os.utime(tmp_path / name / "x.py", (EPOCH - age, EPOCH - age))
        made.append({"x.whl": zipped(tmp_path / name)})
    assert wheel.unequal(*made) == ["x.whl differs from build to build"]
    assert wheel.unequal(made[0], {}) and not wheel.unequal(made[0], made[0])
    assert not wheel.places(made[0], tmp_path)
    (tmp_path / "a" / "made.py").write_text(f"HERE = {str(tmp_path)!r}\n")
    assert wheel.places({"x.whl": zipped(tmp_path / "a")}, tmp_path)


def test_changes_that_are_not_committed_are_not_shipped(tmp_path: Path) -> None:
    """The time inside is that of the last commit, so it must be the commit that is built."""
    with pytest.raises(wheel.BuildError, match="no git checkout"):
        wheel.last_commit(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.org"]
    (tmp_path / "x").write_text("1")
    for words in (["init", "-q"], ["add", "x"], ["commit", "-q", "-m", "x", "--no-gpg-sign"]):
        wheel.subprocess.run([*git, *words], check=True, capture_output=True)
    assert wheel.last_commit(tmp_path) > EPOCH - 10**9
    (tmp_path / "y").write_text("2")
    with pytest.raises(wheel.BuildError, match="not committed"):
        wheel.last_commit(tmp_path)


# --- S03: the bill of materials -----------------------------------------------------------------------------------


def test_the_bill_is_the_locks_and_travels_inside_the_wheel(built: dict[str, bytes]) -> None:  # covers S03
    (data,) = wheel.wheels(built).values()
    (place,) = [name for name in data.namelist() if name.endswith(".cdx.json")]
    assert ".dist-info/sboms/" in place
    assert data.read(place) == (ROOT / sbom.SBOM).read_bytes() == sbom.made()
    told = json.loads(data.read(place))
    assert (told["bomFormat"], told["specVersion"]) == ("CycloneDX", "1.6")
    assert {each["purl"] for each in told["components"]} == {pin.purl for pin in PINS}
    refs = [each["bom-ref"] for each in (told["metadata"]["component"], *told["components"])]
    assert len(set(refs)) == len(refs) == len(PINS) + 1


def test_the_bill_is_what_is_installed() -> None:  # covers S03
    """Each part in its version; and the lock of the tests pins it as the lock of the demo does."""
    wrong = list(sbom.differs_from_installed(PINS, [], sbom.installed()))
    assert [each for each in wrong if "is pinned" in each] == []
    dev = {(pin.purl, pin.digests) for pin in sbom.read_lock((ROOT / sbom.DEV_LOCK).read_text())}
    assert {(pin.purl, pin.digests) for pin in PINS} <= dev


@pytest.mark.parametrize("change", ["version", "digest", "dropped", "added"])
def test_a_bill_of_another_lock_is_noticed(change: str, built: dict[str, bytes]) -> None:  # covers S03
    """Naive twin: a bill that was right once and was not made anew."""
    told = json.loads(sbom.made())
    first = told["components"][0]
    match change:
        case "version":
            first["version"] += ".1"
        case "digest":
            first["externalReferences"][0]["hashes"].pop()
        case "dropped":
            told["components"].remove(first)
        case "added":
            told["components"].append({**first, "name": "another"})
    assert sbom.differs_from_lock(sbom.serialized(told)) and not sbom.differs_from_lock(sbom.made())


def test_a_wheel_without_its_bill_or_with_a_stale_one_is_refused(
    built: dict[str, bytes], tmp_path: Path
) -> None:
    """And so is one that is not pure Python."""
    (name,) = (each for each in built if each.endswith(".whl"))
    assert wheel.lacking(built, ROOT) == []
    assert wheel.lacking({"x-py3-none-any.whl": zipped(tmp_path)}, ROOT)
    assert wheel.lacking({name.replace("any", "linux_x86_64"): built[name]}, ROOT)
    (tmp_path / "requirements").mkdir()
    (tmp_path / sbom.LOCK).write_text("numpy==1 --hash=sha256:" + "0" * 64 + "\n")
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    assert any("does not carry the bill" in each for each in wheel.lacking(built, tmp_path))


def test_what_is_installed_otherwise_is_named() -> None:
    """A part missing, in another version, or in no lock; parts for other systems are not missed."""
    one, other = (sbom.Pin(name=n, version="1", marker="", digests=("0" * 64,)) for n in ("one", "other"))
    never = sbom.Pin(name="never", version="1", marker="python_version < '3'", digests=("0" * 64,))

    def wrong(**here: str) -> list[str]:
        return list(sbom.differs_from_installed([one, never], [other], here))

    assert wrong(one="1", other="1", pip="26") == []
    assert len(wrong(one="2")) == 2 and len(wrong(other="1")) == 1
    assert wrong(one="1", stranger="3") == ["stranger: 3 is installed and in no lock"]


@pytest.mark.parametrize(
    "line", ["numpy>=2", "numpy==2", "-r other.lock", "numpy==2 --hash=md5:00", "numpy @ file:///x"]
)
def test_a_lock_that_does_not_pin_with_digests_is_refused(line: str) -> None:  # covers S01
    with pytest.raises(ValueError, match="not a pin with digests"):
        sbom.read_lock(line)
