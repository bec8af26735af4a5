"""Run the measurements: `python -m bench [names] [--json] [--large] [--only WORDS]`."""

import argparse
import json
import os
from importlib import import_module

NAMES = (
    "tally",
    "start",
    "noise",
    "raking",
    "cells",
    "donors",
    "models",
    "model_rows",
    "graph",
    "marginals",
    "synth",
    "engines",
    "learned",
)
PARTS = "of `synth` one line, such as mbi/aim; of `engines` words with commas, such as spark,margins"


def main() -> None:
    """All measurements, or the named ones, as tables or as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of: {', '.join(NAMES)}; all where left out")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--large", action="store_true", help="the largest sizes, too, where there are some")
    parser.add_argument("--only", metavar="WORDS", help=f"a part of one measurement: {PARTS}")
    chosen = parser.parse_args()
    if chosen.large:
        os.environ["RETICENT_BENCH_LARGE"] = "1"
    if chosen.only:
        if len(chosen.names) != 1 or chosen.names[0] not in ("synth", "engines"):
            parser.error(f"--only takes {PARTS}")
        os.environ["RETICENT_BENCH_ONLY"] = chosen.only
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"there is no measurement {min(unknown)!r}; choose from {', '.join(NAMES)}")
    modules = {name: import_module(f"bench.{name}") for name in chosen.names or NAMES}
    if chosen.json:
        print(json.dumps({name: module.run() for name, module in modules.items()}, indent=2))
        return
    for name, module in modules.items():
        print(f"\n{name}\n{'=' * len(name)}")
        module.main()


if __name__ == "__main__":
    main()
