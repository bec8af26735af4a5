"""scikit-learn's nearest neighbours by brute force, for a sample of recipients. Run by `bench.donors`, in its own environment."""

import json
import sys
import time

import numpy as np
import pyarrow.parquet as pq
from sklearn.neighbors import NearestNeighbors

NEAR = ("age", "sex", "schooling", "marital", "work", "region")


def main() -> None:
    """Print how long the sample took, and how many recipients there are."""
    path, sample = sys.argv[1], int(sys.argv[2])
    table = pq.read_table(path)
    columns = [table[name].combine_chunks() for name in NEAR]
    codes = [c.indices.to_numpy() if hasattr(c, "indices") else c.to_numpy() for c in columns]
    features = np.stack([code / max(1, code.max()) for code in codes], axis=1)
    silent = table["income"].combine_chunks().is_null().to_numpy(zero_copy_only=False)
    asking = features[silent]
    start = time.perf_counter()
    fitted = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(features[~silent])
    fitted.kneighbors(asking[:sample], return_distance=False)
    print(json.dumps({"seconds": time.perf_counter() - start, "recipients": len(asking)}))


if __name__ == "__main__":
    main()
