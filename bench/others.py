"""What users would pick instead lives in environments of its own, made here once and kept."""

import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path


def installed(folder: Path, packages: Sequence[str]) -> bool:
    """Whether `packages` are in the environment at `folder`, after trying to put them there."""
    ready = folder / "ready"
    if ready.exists() and ready.read_text() == " ".join(packages):
        return True
    try:
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages]
        subprocess.run(pip, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    ready.write_text(" ".join(packages))
    return True
