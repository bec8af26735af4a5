"""Draw one page of a release in a process of its own: JSON comes in, the page goes out, and nothing is said.

`python -m reticent.report.draw .html < ID.json > ID.html` is how `reticent.report.pages` calls it. Whatever goes wrong here, a
renderer that aborts included, costs this process and so this page.
"""

import os
import sys
from collections.abc import Callable, Mapping

from reticent.release.release import Release
from reticent.report.page import page
from reticent.report.sheet import sheet

DRAWN: Mapping[str, Callable[[Release], bytes]] = {".html": page, ".xlsx": sheet}


def main() -> None:
    """The page named by its ending in the first argument. What a renderer prints is kept out of it."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        made = DRAWN[sys.argv[1]](Release.from_bytes(sys.stdin.buffer.read()))
    except Exception:  # noqa: BLE001 - what remains is the status
        sys.exit(1)
    with out:
        out.write(made)


if __name__ == "__main__":
    main()
