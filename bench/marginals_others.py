"""mbi's `project` for all pairs of columns; run by an interpreter that has it (see marginals.py)."""

import json
import sys
import time
from itertools import combinations

import numpy as np
from mbi import Dataset, Domain


def main() -> None:
    """The tables into a file, and the best time as JSON."""
    cells = np.load(sys.argv[1])
    names = [str(place) for place in range(len(cells))]
    domain = Domain(names, [int(column.max()) + 1 for column in cells])
    rows = Dataset(dict(zip(names, cells, strict=True)), domain)
    took = []
    for _ in range(int(sys.argv[3])):
        start = time.perf_counter()
        found = [np.asarray(rows.project(pair).values) for pair in combinations(names, 2)]
        took.append(time.perf_counter() - start)
    np.savez(sys.argv[2], **{f"table{i}": table for i, table in enumerate(found)})
    print(json.dumps({"seconds": min(took)}))


if __name__ == "__main__":
    main()
