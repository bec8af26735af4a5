"""MST and AIM of dpmm with their defaults, one process; run by an interpreter that has it (see synth.py)."""

import json
import os
import sys
import time

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM

SEED = 2026


def main():
    """Drawn rows into a file; seconds of the processor as JSON."""
    given = np.load(sys.argv[2])
    rows, shape = given["rows"], given["shape"].tolist()
    names = [str(place) for place in range(len(shape))]
    frame = pd.DataFrame({name: rows[:, place] for place, name in enumerate(names)})
    cpu = time.process_time()
    options = {"epsilon": 1.0, "delta": 1e-6, "n_jobs": 1}
    if sys.argv[1] == "aim":
        options["max_model_size"] = float(os.environ.get("RETICENT_BENCH_MIB", "80"))
    model = {"mst": MSTGM, "aim": AIMGM}[sys.argv[1]](**options)
    model.set_random_state(np.random.RandomState(SEED))
    model.set_domain(dict(zip(names, shape, strict=True)))
    model.fit(frame)
    made = model.generate(n_records=len(rows))
    took = time.process_time() - cpu
    np.save(sys.argv[3], made[names].to_numpy().astype(np.int64))
    print(json.dumps({"cpu": took}))


if __name__ == "__main__":
    main()
