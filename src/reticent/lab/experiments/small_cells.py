"""Predictions in small cells: what each method costs in error, and what suppression costs in bias.

A fixed simulated atlas; each run draws the noise anew. Errors are those of single tracts with at least 20 people, a
fixed sample of them taken evenly along their size, beside two truths:

    beside its own people   released - the tract's own estimate without noise          noise alone
    beside the truth        released, kept within 0 and 1 - the tract's true height    sampling and noise

The interval beside its own people is the published one; beside the truth it is the usual one from the published
standard error, where a method publishes that. `births` is the slope of rates of births on shares of single parents
over tracts; `reliability` has the reliability before the noise for its truth. `seconds` is the processor time of
one whole table.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.lab.atlas import TRACTS
from reticent.lab.cellfacts import ATLAS_SEED, ESTIMATOR, AtlasWorld, facts, printed, world
from reticent.lab.cellmethods import METHODS, CellRun, Method, birth_rates, mos, suppressed
from reticent.lab.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.experiments.small_cells_figures import OWN, TRUE, figures
from reticent.lab.seeded import SeededBits
from reticent.lab.summary import groups
from reticent.lab.tracts import MORE_BIRTHS
from reticent.smallcells.diagnostics import reliability
from reticent.smallcells.fits import Floats
from reticent.smallcells.suppress import FewEvents, binned_scatter

EPSILONS = ("0.5", "1", "2", "4", "8")
SHOWN = 2_000  # tracts whose errors are kept
BIRTHS, RELIABILITY = "births", "reliability"
NORMAL = 1.959963985  # half of the usual interval of 95 %, in standard errors


def run(index: int, seed: int, *, tracts: int, shown: int, epsilons: tuple[str, ...]) -> list[Outcome]:
    """Every method at every epsilon, each with bits of its own; what has no noise is there once."""
    shared = world(tracts, shown)
    state = tuple(shared.atlas.tracts.state.tolist())
    methods: dict[str, Method] = {**METHODS, "mos by state": partial(mos, groups=state)}
    outcomes = [*facts(shared), *printed(), *_without_noise(shared)] if index == 0 else []
    for place, text in enumerate(epsilons):
        epsilon = Fraction(text)
        for number, (name, method) in enumerate(methods.items()):
            start = process_time()
            made = method(shared.atlas.ranks, ESTIMATOR, epsilon, _bits(seed, place, number))
            outcomes += _lines(shared, name, made, epsilon=float(epsilon), seconds=process_time() - start)
        for number, name in enumerate(("mos", OURS), start=len(methods)):
            bits = _bits(seed, place, number)
            rates = birth_rates(shared.atlas.births, epsilon, bits, is_observed=name == "mos")
            outcomes.append(_births(shared, name, rates, epsilon=float(epsilon)))
    return outcomes


def _bits(seed: int, place: int, number: int) -> SeededBits:
    return SeededBits(np.random.default_rng([seed, place, number]))


def _lines(shared: AtlasWorld, name: str, made: CellRun, **rest: Any) -> Iterator[Outcome]:
    """Two lines for each tract that is shown and published, and the reliability over all that are used."""
    nothing = np.full(len(shared.own), np.nan)
    widths = nothing if made.widths is None else made.widths
    reach = nothing if made.errors is None else NORMAL * made.errors
    for g in shared.shown[~np.isnan(made.estimates[shared.shown])].tolist():
        told, truth = float(made.estimates[g]), float(shared.atlas.tracts.prediction[g])
        yield _line(
            told, widths[g], method=name, query=OWN, truth=float(shared.own[g]), estimate=told, **rest
        )
        within = min(1.0, max(0.0, told))
        yield _line(told, reach[g], method=name, query=TRUE, truth=truth, estimate=within, **rest)
    if not made.is_exact:
        before, after = _reliability(shared, made)
        yield Outcome(method=name, query=RELIABILITY, truth=before, estimate=after, **rest)


def _line(told: float, half: float, **rest: Any) -> Outcome:
    """A line with its interval, where there is one."""
    return Outcome(**rest) if np.isnan(half) else Outcome(low=told - half, high=told + half, **rest)


def _reliability(shared: AtlasWorld, made: CellRun) -> tuple[float, float]:
    """Before and after the noise, over the tracts that the method publishes."""
    kept = shared.used[~np.isnan(made.estimates[shared.used])]
    found = reliability(
        variance=float(shared.own[kept].var()),
        sampling=float((shared.sampling[kept] ** 2).mean()),
        noise=float(((made.estimates[kept] - shared.own[kept]) ** 2).mean()),
    )
    return found.before, found.after


def _births(shared: AtlasWorld, name: str, rates: Floats, epsilon: float | None = None) -> Outcome:
    known = ~np.isnan(rates)
    slope = binned_scatter(shared.atlas.tracts.single[known], rates[known]).slope
    return Outcome(method=name, query=BIRTHS, epsilon=epsilon, truth=MORE_BIRTHS, estimate=slope)


def _without_noise(shared: AtlasWorld) -> Iterator[Outcome]:
    """Exact predictions, and the slope of births with and without suppression."""
    exact = _lines(shared, "suppress", suppressed(shared.atlas.ranks, ESTIMATOR))
    yield from (line for line in exact if line.query == TRUE)
    asked, events = shared.atlas.tracts.asked, shared.atlas.events()
    rates = events / np.where(asked > 0, asked, np.nan)
    yield _births(shared, "nothing withheld", rates)
    yield _births(shared, "suppress", np.where(FewEvents().keeps(asked, events), rates, np.nan))


def ratios(outcomes: pa.Table) -> list[Row]:
    """The error by noise of each method in units of that of `mos`."""
    alone = outcomes.filter(pc.equal(outcomes["query"], OWN))
    errors = {(key["method"], key["epsilon"]): v["estimate"] - v["truth"] for key, v in groups(alone)}
    rmse = {key: float(np.sqrt((error**2).mean())) for key, error in errors.items()}
    return [
        {
            "item": f"rmse of {method} over that of mos",
            "query": OWN,
            "epsilon": epsilon,
            "value": value / rmse["mos", epsilon],
        }
        for (method, epsilon), value in rmse.items()
        if method != "mos"
    ]


def experiment(
    *, tracts: int = TRACTS, shown: int = SHOWN, epsilons: tuple[str, ...] = EPSILONS
) -> Experiment:
    """The experiment at any size; the one in the list has all 73,000 tracts."""
    return Experiment(
        name="small-cells",
        title="Predictions for many small tracts: error, coverage and bias of each method",
        source="A practical method to reduce privacy loss when disclosing statistics based on small samples",
        run=partial(run, tracts=tracts, shown=shown, epsilons=epsilons),
        params={"tracts": tracts, "shown": shown, "epsilons": epsilons, "atlas": ATLAS_SEED},
        runs=10,
        batch=1,
        figures=partial(figures, seed=ATLAS_SEED, tracts=tracts),
        more=ratios,
    )
