"""Which caps for the levels of capped donors: the bias that coarser matching leaves, and the noise that larger caps cost.

The state of `donors-income`, a quarter of whom keep their wage to themselves. Four levels: five attributes, four, three,
everybody. Each scheme fills the same gaps, five donors for each recipient; `no noise` is its filling against the truth, the
others are its answers at epsilon 1 and 0.25. `hubs` is the nearest donor of all, without noise.
"""

from functools import cache, partial

import numpy as np

from reticent.lab.experiments.donors_income import BARE, value_of, world
from reticent.lab.noise import NoNoise, QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.world import workers
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey

CAPS = ((1, 1, 1, 1), (2, 1, 1, 1), (3, 1, 1, 1), (2, 2, 1, 1), (3, 2, 1, 1), (4, 2, 1, 1))
EPSILONS, DRAWS = ("0.25", "1"), 5
HUBS = "hubs"


@cache
def plan_of(size: int, caps: tuple[int, ...], epsilon: str) -> Plan:
    """All six asks at `epsilon`, with these caps from the finest level on."""
    order = workers.ORDER
    on = [order, order[:4], order[:3], []]
    match = [{"on": each, "serve": cap} for each, cap in zip(on, caps, strict=True)]
    return workers.plan(size, epsilon=epsilon, capped=True, match=match)


def run(index: int, seed: int, *, size: int) -> list[Outcome]:
    """One draw of silence: every scheme without noise, and some draws of noise at each epsilon."""
    shared, rng = world(size), np.random.default_rng(seed)
    engine = Survey(workers.declared(workers.silent(shared.state, seed=index)), codebook={}, threads=1).open()
    found: list[Outcome] = []

    def add(method: str, epsilon: str, answers: dict[str, float]) -> None:
        found.extend(
            Outcome(
                method=method,
                query=query,
                epsilon=float(epsilon),
                truth=shared.truth[query],
                estimate=value,
            )
            for query, value in answers.items()
        )

    try:
        nearest = workers.plan(size, epsilon="1")
        tallies = engine.tally(nearest.schema, wants_of(nearest), nearest.repair)
        add(HUBS + BARE, "1", _values(nearest, tallies, NoNoise()))
        for caps in CAPS:
            name, plan = ", ".join(map(str, caps)), plan_of(size, caps, "1")
            tallies = engine.tally(plan.schema, wants_of(plan), plan.repair)
            add(name + BARE, "1", _values(plan, tallies, NoNoise()))
            for epsilon in EPSILONS:
                for _ in range(DRAWS):
                    add(name, epsilon, _values(plan_of(size, caps, epsilon), tallies, QuickNoise(rng)))
    finally:
        engine.close()
    return found


def _values(plan: Plan, tallies: object, noise: object) -> dict[str, float]:
    answers = evaluate(plan, tallies, noise)  # type: ignore[arg-type]
    return {name: value_of(answer) for name, answer in answers.items()}


def experiment(*, size: int = 500_000) -> Experiment:
    """Half a million people, a draw of silence for each run."""
    return Experiment(
        name="donors-caps",
        title="Caps of capped donors: the bias of coarser levels, and noise",
        source="THEORY 11.4, the choice of caps",
        run=partial(run, size=size),
        params={"size": size, "caps": CAPS, "epsilons": EPSILONS, "draws": DRAWS},
        runs=40,
        batch=4,
    )
