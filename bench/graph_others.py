"""mbi's mirror descent on given measurements; run by an interpreter that has it (see graph.py)."""

import json
import resource
import sys
import time

import numpy as np
from mbi import Domain, estimation
from mbi.marginal_loss import LinearMeasurement


def main() -> None:
    """Marginals of the measured sets into a file; seconds and memory, compiling included, as JSON."""
    given, places, deviation = np.load(sys.argv[1]), json.loads(sys.argv[3]), float(sys.argv[4])
    domain = Domain([str(i) for i in range(len(given["shape"]))], given["shape"].tolist())
    cliques = [tuple(map(str, each)) for each in places]
    measured = [
        LinearMeasurement(given[f"table{i}"].ravel(), clique, stddev=deviation)
        for i, clique in enumerate(cliques)
    ]
    total, passes, new = float(given["total"]), int(given["passes"]), int(given["new"])
    options = {"known_total": total, "iters": passes}
    estimator = estimation.MirrorDescent()
    if new:
        options["warm_start"] = estimator.estimate(domain, measured[:-new], **options)
    wall, cpu = time.perf_counter(), time.process_time()
    model = estimator.estimate(domain, measured, **options)
    tables = {f"table{i}": np.asarray(model.project(clique).values) for i, clique in enumerate(cliques)}
    took = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    np.savez(sys.argv[2], **tables)
    print(json.dumps({**took, "mebibytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
