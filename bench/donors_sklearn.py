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
    fitted = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(features[~silent])
    fitted.kneighbors(asking[:1], return_distance=False)  # warm
    wall, cpu = time.perf_counter(), time.process_time()
    fitted.kneighbors(asking[:sample], return_distance=False)
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps({**took, "recipients": len(asking)}))


if __name__ == "__main__":
    main()
