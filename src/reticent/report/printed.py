"""The report as PDF, printed by a browser that is installed: its print style is the page's own, and no part has to be added.

A library would draw the page anew and otherwise. The browser is run without a window, a profile or a network it could need:
the page loads nothing.
"""

import shutil
from pathlib import Path
from subprocess import DEVNULL, SubprocessError, run
from tempfile import TemporaryDirectory

from reticent.errors import ReticentError
from reticent.release.release import Release
from reticent.report.page import page

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "msedge",
)
NONE = (
    "needs Chromium, Chrome or Edge to print the page; install one, or open the HTML report in any browser and print it: its "
    "print style is the same"
)
PATIENCE = 120.0


def browser() -> str | None:
    """A browser that can print without a window, where one is installed."""
    return next((found for name in BROWSERS if (found := shutil.which(name))), None)


def pdf(release: Release) -> bytes:
    """The page of a release as PDF."""
    program = browser()
    if program is None:
        raise ReticentError(NONE, field="--as pdf")
    with TemporaryDirectory() as folder:
        source, target = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_bytes(page(release))
        call = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        call += [f"--user-data-dir={folder}/profile", f"--print-to-pdf={target}", source.as_uri()]
        try:
            run(call, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, timeout=PATIENCE, check=False)
        except (OSError, SubprocessError):
            raise ReticentError(
                "the browser could not be run; open the HTML report and print it", field="--as pdf"
            ) from None
        if not target.is_file():
            raise ReticentError(
                "the browser printed nothing; open the HTML report and print it", field="--as pdf"
            )
        return target.read_bytes()
