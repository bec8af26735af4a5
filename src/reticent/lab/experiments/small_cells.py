"""Predictions in small cells: what each method costs in error, and what suppression costs in bias.

A fixed simulated atlas; each run draws the noise anew. Errors are those of single tracts with at least 20 people, a
fixed sample of them taken evenly along their size, beside two truths:

    beside its own people   released - the tract's own estimate without noise          noise alone
    beside the truth        released, kept within 0 and 1 - the tract's true height    sampling and noise

The interval beside its own people is the published one; beside the truth it is the usual one from the published
standard error, where a method publishes that. `births` is the slope of rates of births on shares of single parents
over tracts; `reliability` has the reliability before the noise for its truth. `seconds` is the processor time of
one whole table.

Error against epsilon, the scatter with and without suppression, and the log-log envelope, as the paper draws them.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.lab.cells import (
    ATLAS_SEED,
    ESTIMATOR,
    LEAST,
    METHODS,
    AtlasWorld,
    CellRun,
    Method,
    birth_rates,
    facts,
    mos,
    suppressed,
    world,
)
from reticent.lab.noise import SeededBits
from reticent.lab.papers.suppress import (
    FewEvents,
    Scatter,
    binned_scatter,
    draw_envelope,
    draw_scatters,
    log_envelope,
    reliability,
    scatters,
)
from reticent.lab.run.experiment import OURS, Experiment, Outcome, Row
from reticent.lab.run.figures import ORANGE, titled
from reticent.lab.run.summary import groups
from reticent.lab.world import atlas as lab
from reticent.lab.world.atlas import MORE_BIRTHS, TRACTS
from reticent.report.marks import BLUE, GREY, Spec
from reticent.smallcells.estimators import Floats

COLOURS = {
    "mos": GREY,
    "mos by state": "#999999",
    "smooth": "#56B4E9",
    OURS: BLUE,
    "pooled": "#CC79A7",
    "theil-sen": ORANGE,
}
OWN, TRUE = "beside its own people", "beside the truth"
PANELS = {OWN: "Noise alone", TRUE: "Sampling and noise, kept within 0 and 1"}
DOTS = 1_500  # in the envelope


def figures(outcomes: pa.Table, *, seed: int, tracts: int) -> dict[str, Spec]:
    """The three charts by the names of their files."""
    made = lab.atlas(tracts, seed=seed)
    said = f"{len(made.tracts.people):,} simulated tracts with {int(made.tracts.people.sum()):,} people."
    runs = len(outcomes["run"].unique())
    everything, kept = _scatters(made)
    return {
        "small-cells-error": titled(
            _errors(outcomes),
            "Error of a tract's prediction against epsilon",
            f"{said} Root mean square over tracts with at least {LEAST} people and {runs} runs; both axes are "
            "logarithmic. Dashed: sampling error without any noise. Epsilon of mos and smooth is that of the "
            "estimates, of the others that of the whole table; mos promises nothing.",
        ),
        "small-cells-scatter": titled(
            draw_scatters(everything, kept, x="share of single parents", y="rate of births"),
            "Births against single parents, with and without suppression",
            f"{said} Means within twenty bins of tracts, without noise. Suppression withholds tracts with 1 to 4 "
            f"births and keeps those with none: the slope over tracts is {kept.slope:.3f} instead of "
            f"{everything.slope:.3f}. No epsilon, one atlas.",
            width=70,
        ),
        "small-cells-envelope": titled(
            _envelope(made),
            "Local sensitivity of the prediction at 0.25 and the envelope chi / N",
            f"{said} {DOTS:,} of them are drawn, taken evenly along their size, and the one on the envelope. "
            "Simulated: of real people neither could be shown.",
            width=70,
        ),
    }


def _errors(outcomes: pa.Table) -> Spec:
    """A line for each method in two panels, and the sampling error where there is no epsilon."""
    rows: list[dict[str, Any]] = []
    alone = 0.0
    for key, lines in groups(outcomes.filter(outcomes["method"].is_valid())):
        rmse = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        if key["query"] in PANELS and key["epsilon"] is not None:
            rows.append(
                {
                    "panel": PANELS[key["query"]],
                    "method": key["method"],
                    "epsilon": key["epsilon"],
                    "rmse": rmse,
                }
            )
        elif key["query"] == TRUE:
            alone = rmse
    panels = [
        {
            "title": {"text": title, "anchor": "start"},
            **_panel([r for r in rows if r["panel"] == title], alone),
        }
        for title in PANELS.values()
    ]
    return {"hconcat": panels, "resolve": {"scale": {"color": "shared"}}}


def _panel(rows: list[dict[str, Any]], alone: float) -> Spec:
    x = {
        "field": "epsilon",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": sorted({row["epsilon"] for row in rows}), "format": "~g"},
    }
    y = {
        "field": "rmse",
        "type": "quantitative",
        "title": "root mean square error",
        "scale": {"type": "log", "nice": False},
        "axis": {"values": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5], "format": "~g"},
    }
    shown = [name for name in COLOURS if any(row["method"] == name for row in rows)]
    colour = {
        "field": "method",
        "type": "nominal",
        "scale": {"domain": shown, "range": [COLOURS[name] for name in shown]},
        "legend": {"title": None, "orient": "bottom", "columns": 3},
    }
    rule = {"mark": {"type": "rule", "strokeDash": [5, 4]}, "encoding": {"y": {"datum": alone}}}
    lines = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": True},
        "encoding": {"x": x, "y": y, "color": colour},
    }
    return {"width": 300, "height": 320, "layer": [lines, rule]}


def _scatters(made: lab.Atlas) -> tuple[Scatter, Scatter]:
    """Rates of births in all tracts where somebody was asked, and in those that suppression leaves."""
    asked = made.tracts.asked > 0
    return scatters(made.tracts.single[asked], made.tracts.asked[asked], made.events()[asked], FewEvents())


def _envelope(made: lab.Atlas) -> Spec:
    """Some tracts evenly along their size, and the one that sets chi."""
    rows = [row for row in log_envelope(made.ranks, Fraction(1, 4)) if row["size"] >= LEAST]
    rows.sort(key=lambda row: row["size"])
    product = [row["size"] * row["local"] for row in rows]
    chi = max(product)
    places = set(np.linspace(0, len(rows) - 1, min(DOTS, len(rows))).astype(int).tolist())
    places.add(product.index(chi))
    drawn = draw_envelope([{**rows[i], "envelope": chi / rows[i]["size"]} for i in sorted(places)])
    for layer in drawn["layer"]:
        layer["encoding"]["x"]["title"] = "people in the tract"
        layer["encoding"]["y"]["title"] = "local sensitivity"
    return drawn


EPSILONS = ("0.5", "1", "2", "4", "8")
SHOWN = 2_000  # tracts whose errors are kept
BIRTHS, RELIABILITY = "births", "reliability"
NORMAL = 1.959963985  # half of the usual interval of 95 %, in standard errors


def run(index: int, seed: int, *, tracts: int, shown: int, epsilons: tuple[str, ...]) -> list[Outcome]:
    """Every method at every epsilon, each with bits of its own; what has no noise is there once."""
    shared = world(tracts, shown)
    state = tuple(shared.atlas.tracts.state.tolist())
    methods: dict[str, Method] = {**METHODS, "mos by state": partial(mos, groups=state)}
    outcomes = [*facts(shared), *_without_noise(shared)] if index == 0 else []
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
