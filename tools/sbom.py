"""The software bill of materials: every part of an installation from the lock, as CycloneDX 1.6.

    python tools/sbom.py             # writes requirements/reticent.cdx.json from requirements/demo.lock
    python tools/sbom.py --check     # exit 1 if that file, or what is installed here, is not what the locks say

The file holds nothing but what the lock and pyproject.toml hold: no time, no machine, no random number. So the same
lock gives the same bytes. It travels inside the wheel, as PEP 770 has it.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK, DEV_LOCK = "requirements/demo.lock", "requirements/dev.lock"
BESIDE = (DEV_LOCK, *(f"requirements/{name}.lock" for name in ("engines", "spark", "web", "browser")))
"""Locks of what may be installed beside it: tools, and parts that only some tests need."""

SBOM = "requirements/reticent.cdx.json"
OURS = {"reticent", "pip", "setuptools"}
"""What an environment has beside its lock: ourselves, and what makes it."""

PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;]+)(?:\s*;\s*(?P<marker>.+))?")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One line of a lock: a name, a version, where it applies, and the digests that are accepted."""

    name: str
    version: str
    marker: str
    digests: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"

    @property
    def applies(self) -> bool:
        """Whether this interpreter needs it."""
        return not self.marker or Marker(self.marker).evaluate()


def read_lock(text: str) -> list[Pin]:
    """The pins of a lock, in its order. A line that is not understood is refused, not skipped."""
    return [_pin(line) for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def _pin(line: str) -> Pin:
    stated = line.split("--hash", 1)[0].strip()
    found, digests = PIN.fullmatch(stated), HASH.findall(line)
    if found is None or not digests or HASH.sub("", line).strip() != stated:
        raise ValueError(f"not a pin with digests: {stated}")
    name = canonicalize_name(found["name"])
    return Pin(name=name, version=found["version"], marker=found["marker"] or "", digests=tuple(digests))


def bill(pins: list[Pin], project: dict[str, Any]) -> dict[str, Any]:
    """The whole document, a component for each pin."""
    name, version = project["name"], project["version"]
    purl = f"pkg:pypi/{name}@{version}"
    component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    licence = {"licenses": [{"expression": project["license"]}]}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {**component, **licence},
            "properties": [{"name": "reticent:lock", "value": LOCK}],
        },
        "components": [_component(pin) for pin in sorted(pins, key=lambda pin: pin.purl)],
    }


def _component(pin: Pin) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": digest} for digest in sorted(pin.digests)]
    where = {"type": "distribution", "url": f"https://pypi.org/simple/{pin.name}/", "hashes": hashes}
    only = [{"name": "reticent:marker", "value": pin.marker}] if pin.marker else []
    return {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.purl,
        "externalReferences": [where],
        **({"properties": only} if only else {}),
    }


def serialized(document: dict[str, Any]) -> bytes:
    """As JSON, with a line for each component, so that a change of the lock reads as one."""
    lines = ",\n".join(json.dumps(each) for each in document["components"])
    frame = json.dumps({**document, "components": []}, indent=1)
    return frame.replace('"components": []', f'"components": [\n{lines}\n ]').encode() + b"\n"


def made(root: Path = ROOT) -> bytes:
    """The bill of the lock, as its file holds it."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return serialized(bill(read_lock((root / LOCK).read_text()), project))


def pins_of(document: dict[str, Any]) -> set[tuple[str, str, frozenset[str]]]:
    """What a bill says is in it: names, versions and digests."""
    return {
        (
            each["name"],
            each["version"],
            frozenset(h["content"] for h in each["externalReferences"][0]["hashes"]),
        )
        for each in document["components"]
    }


def differs_from_lock(document: bytes, root: Path = ROOT) -> list[str]:
    """What is in the bill and not in the lock, or the other way round; by name."""
    lock = {(p.name, p.version, frozenset(p.digests)) for p in read_lock((root / LOCK).read_text())}
    odd = pins_of(json.loads(document)) ^ lock
    return sorted({f"{name} {version}: bill and lock disagree" for name, version, _ in odd})


def differs_from_installed(pins: list[Pin], beside: list[Pin], here: dict[str, str]) -> Iterator[str]:
    """Where what is installed is not what is pinned: a part missing or other, and parts that no lock knows."""
    for pin in pins:
        if pin.applies and here.get(pin.name) != pin.version:
            yield f"{pin.name}: {pin.version} is pinned, {here.get(pin.name, 'nothing')} is installed"
    known = {(pin.name, pin.version) for pin in (*pins, *beside)}
    for name, version in here.items():
        if name not in OURS and (name, version) not in known:
            yield f"{name}: {version} is installed and in no lock"


def installed() -> dict[str, str]:
    return {canonicalize_name(each.name): each.version for each in distributions()}


def check(root: Path = ROOT) -> list[str]:
    """All that is wrong: the file is not the lock's, or the environment is not."""
    lock = read_lock((root / LOCK).read_text())
    beside = [pin for name in BESIDE for pin in read_lock((root / name).read_text())]
    held = (root / SBOM).read_bytes() if (root / SBOM).is_file() else b""
    stale = [] if held == made(root) else [f"{SBOM} is not what {LOCK} says; run tools/sbom.py"]
    return [*stale, *differs_from_installed(lock, beside, installed())]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    if not arguments:
        (ROOT / SBOM).write_bytes(made())
        return 0
    wrong = check()
    sys.stderr.write("".join(f"error: {each}\n" for each in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
