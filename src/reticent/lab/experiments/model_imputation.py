"""The simulation of *Imputation under differential privacy*: one mean, many ways to fill its gaps.

Predictors are uniform, the response is their mean plus normal noise, clipped to [0, 1]; it is missing with
probability equal to the first predictor. By symmetry its true mean is 1/2, whatever the setting. Rows are
replaced, and their number is public.

    no-missing    the sample mean, had everybody answered; no privacy
    nonprivate    gaps filled by least squares; no privacy
    available     those who answered, noisy
    query-only    gaps filled by least squares without noise, and all noise at the end (THEORY 7.2)
    query-only/published   the same with Laplace noise for (missing + 1) times the sensitivity: strategy (ii); no promise
    both/NAME     a private line by estimator NAME, then a noisy mean of the filled rows
    both/multiple five completed data sets from one private line, by Rubin's rules, with an interval of 95 %

Each run has the published setting. Every fifth run goes on to the sweeps, one thing changed at a time.

The pictures of `model-imputation`: boxes around the true line, and small multiples of error along each sweep.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.lab.noise import QuickModelNoise, SeededBits
from reticent.lab.papers.objective import Objective
from reticent.lab.papers.robust import Robust
from reticent.lab.papers.strategies import (
    available_cases,
    both_stages,
    fill_exactly,
    multiple_mean,
    query_only,
    query_only_published,
)
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.figures import BOX_WORDS, bias_against_spread, box, boxes, titled
from reticent.lab.run.summary import Floats, groups
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.fit import Estimator
from reticent.models.perturbed import Output
from reticent.models.privgene import PrivGene
from reticent.models.sums import AdaSSP, Centred, Functional
from reticent.report.marks import BLUE, GREY, IN_ORDER, Spec

MEAN, STRATEGY_II = "mean of y", "query-only/published"
USUAL = {"n": 10_000.0, "predictors": 2.0, "variance": 0.1, "epsilon": 1.0, "split": 0.5}
COLOURS = {
    "no-missing": "#BBBBBB",
    "available": GREY,
    "query-only": "#000000",
    "both/functional": "#E69F00",
    "both/objective": "#009E73",
    "both/output": "#CC79A7",
    "both/privgene": "#56B4E9",
    "both/robust": "#D55E00",
    "both/adassp": "#F0E442",
    "both/centred": BLUE,
    "both/adassp-delta": "#882255",
    "both/multiple": "#117733",
}
WHO = (
    "Predictors are uniform, y is their mean plus normal noise, clipped to [0, 1], and missing with probability "
    "equal to the first predictor. Rows are replaced; their number is public."
)
Found = list[tuple[Row, dict[str, Floats]]]


def figures(outcomes: pa.Table) -> dict[str, Spec]:
    """Boxes at the published setting, bias against spread there, and the sweeps."""
    found, runs = list(groups(outcomes)), len(outcomes["run"].unique())
    usual = [(k, v) for k, v in found if k["query"] == MEAN and k["epsilon"] in (None, 1.0)]
    where = f"{WHO} 10,000 rows, two predictors, epsilon 1, half of it for the line."
    points = [_point(key, lines) for key, lines in usual]
    kinds = {"without privacy": GREY, "one stage": "#D55E00", "both stages": BLUE}
    made = {
        "model-imputation": titled(
            boxes(_boxes(usual)), "The mean of y by every method", where, f"{runs:,} runs. {BOX_WORDS}"
        ),
        "model-bias-and-spread": titled(
            _named(bias_against_spread(points, kinds=kinds, runs=runs), points),
            "Bias against spread",
            where,
            f"{runs:,} runs. On the solid line they are equal; below the dashed one chance explains a bias.",
        ),
    }
    swept = list(_swept(found))
    if len({line["panel"] for line in swept}) > 1:
        words = "Root mean squared error against the setting; one thing changes at a time, every fifth run."
        made["model-sweeps"] = titled(_lines(swept), "Where each method wins", WHO, words)
    return made


def _boxes(found: Found) -> Iterator[dict[str, Any]]:
    """Query-only has a panel beside the others, since it would hide them."""
    for panel, kept in (("all but query-only", False), ("query-only", True)):
        for key, lines in found:
            if key["method"].startswith("query-only") == kept:
                error = 100 * (lines["estimate"] / lines["truth"] - 1)
                yield box(error, panel=panel, label=key["method"], noisy=key["method"].startswith("both/"))


def _point(key: Row, lines: dict[str, Floats]) -> dict[str, Any]:
    error, method = 100 * (lines["estimate"] / lines["truth"] - 1), str(key["method"])
    kind = "both stages" if method.startswith("both/") else "one stage"
    kind = "without privacy" if key["epsilon"] is None else kind
    spread = float(np.std(error, ddof=1)) if len(error) > 1 else 0.0
    return {"kind": kind, "label": method, "spread": spread, "bias": float(abs(error.mean()))}


def _named(spec: Spec, points: list[dict[str, Any]]) -> Spec:
    """Every point with its name beside it, in place of the few that the chart would name."""
    layers = [layer for layer in spec["layer"] if layer["mark"]["type"] != "text"]
    x, y = ({**layers[0]["encoding"][axis]} for axis in ("x", "y"))
    values = [{**point, "label": point["label"].removeprefix("both/")} for point in points]
    mark = {"type": "text", "align": "left", "dx": 8, "fontSize": 12, "color": "black"}
    words = {
        "data": {"values": [each for each in values if each["spread"] > 0 and each["bias"] > 0]},
        "mark": mark,
        "encoding": {"x": x, "y": y, "text": {"field": "label"}},
    }
    return {**spec, "layer": [*layers, words]}


def _swept(found: Found) -> Iterator[dict[str, Any]]:
    """One line for each panel and method, the published setting in every panel."""
    for key, lines in found:
        if key["method"] not in COLOURS:
            continue
        rmse = float(np.sqrt(np.mean((lines["estimate"] - lines["truth"]) ** 2)))
        told = {"method": key["method"], "rmse": rmse}
        name, _, value = str(key["query"]).removeprefix(f"{MEAN}, ").partition(" = ")
        if value:
            yield {**told, "panel": name, "x": float(value)}
        elif key["epsilon"] in (None, 1.0):
            yield from ({**told, "panel": panel, "x": usual} for panel, usual in USUAL.items())
        else:
            yield {**told, "panel": "epsilon", "x": key["epsilon"]}


def _lines(rows: list[dict[str, Any]]) -> Spec:
    log = {"type": "log", "nice": False}
    header = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold", "labelFontSize": 13}
    legend = {"title": None, "orient": "bottom", "columns": 4, "labelLimit": 300}
    colour = {"domain": list(COLOURS), "range": list(COLOURS.values())}
    return {
        "data": {"values": [{**row, "place": place} for place, row in enumerate(rows)]},
        "facet": {"field": "panel", "type": "nominal", "sort": IN_ORDER, "header": header},
        "columns": 3,
        "spec": {
            "width": 200,
            "height": 180,
            "mark": {"type": "line", "point": True, "strokeWidth": 1.5},
            "encoding": {
                "x": {
                    "field": "x",
                    "type": "quantitative",
                    "title": None,
                    "scale": log,
                    "axis": {"tickCount": 4},
                },
                "y": {"field": "rmse", "type": "quantitative", "title": "rmse", "scale": log},
                "color": {"field": "method", "type": "nominal", "scale": colour, "legend": legend},
            },
        },
        "resolve": {"scale": {"x": "independent"}, "axis": {"x": "independent"}},
    }


TRUTH = 0.5
EVERY = 5  # runs from one with sweeps to the next
DELTA = Fraction(1, 10**6)
COPIES, LEVEL = 5, 0.95


ESTIMATORS: dict[str, tuple[Estimator, Fraction | None]] = {
    "functional": (Functional(), None),
    "objective": (Objective(), None),
    "output": (Output(), None),
    "privgene": (PrivGene(), None),
    "robust": (Robust(), None),
    "adassp": (AdaSSP(), None),
    "centred": (Centred(), None),
    "robust-delta": (Robust(), DELTA),
    "adassp-delta": (AdaSSP(), DELTA),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ImputationSetting:
    """One simulated survey, the whole epsilon and the share of it that buys the line."""

    n: int = 10_000
    predictors: int = 2
    variance: float = 0.1
    epsilon: str = "1"
    split: str = "0.5"

    @property
    def query(self) -> str:
        """The mean, and in what the setting differs from the published one; epsilon stands beside it."""
        usual = asdict(ImputationSetting())
        told = [f"{k} = {v}" for k, v in asdict(self).items() if k != "epsilon" and v != usual[k]]
        return ", ".join(["mean of y", *told])

    @property
    def carried(self) -> dict[str, Any]:
        """What a row of the summary says of it."""
        return {
            "n": self.n,
            "predictors": self.predictors,
            "variance": self.variance,
            "split": float(self.split),
        }


PUBLISHED = ImputationSetting()
SWEEPS: dict[str, tuple[Any, ...]] = {
    "n": (500, 1_000, 3_000, 30_000, 100_000),
    "predictors": (1, 5, 10, 20),
    "variance": (0.01, 0.03, 0.3, 1.0),
    "epsilon": ("0.1", "0.3", "3", "10"),
    "split": ("0.1", "0.3", "0.7", "0.9"),
}


def settings() -> Iterator[ImputationSetting]:
    """The published one, then the sweeps about it."""
    yield PUBLISHED
    for name, values in SWEEPS.items():
        yield from (replace(PUBLISHED, **{name: value}) for value in values)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskedSample:
    """Predictors, the response, and the response as it is told; NaN where it is not."""

    x: Floats
    y: Floats
    told: Floats


def sample(setting: ImputationSetting, rng: np.random.Generator) -> MaskedSample:
    """One simulated survey."""
    x = rng.random((setting.n, setting.predictors))
    y = np.clip(x.mean(axis=1) + rng.normal(0, setting.variance**0.5, setting.n), 0, 1)
    return MaskedSample(x=x, y=y, told=np.where(rng.random(setting.n) < x[:, 0], np.nan, y))


def design(predictors: int) -> RegressionDesign:
    """Everything lies between 0 and 1."""
    columns = [Bounded.between(name, Fraction(0), Fraction(1)) for name in _names(predictors)]
    return RegressionDesign(predictors=tuple(columns[:-1]), response=columns[-1])


def _names(predictors: int) -> list[str]:
    return [*(f"x{i + 1}" for i in range(predictors)), "y"]


def run(index: int, seed: int) -> list[Outcome]:
    """The published setting by every method; in every fifth run the sweeps too."""
    rng = np.random.default_rng(seed)
    first = sample(PUBLISHED, rng)
    # A stream of its own, so that the other methods draw what they drew before it was there.
    aside = rng.spawn(1)[0]
    lines = [*_floors(PUBLISHED, first), *_private(PUBLISHED, first, rng), _as_published(first, aside)]
    for setting in settings() if index % EVERY == 0 else ():
        if setting.query != PUBLISHED.query and setting.split == PUBLISHED.split:
            drawn = sample(setting, rng)
            lines += [*_floors(setting, drawn), *_private(setting, drawn, rng)]
        elif setting != PUBLISHED:
            lines += _private(setting, first, rng)
    return lines


def _floors(setting: ImputationSetting, drawn: MaskedSample) -> Iterator[Outcome]:
    """Two means without privacy."""
    shape = design(setting.predictors)
    filled, _ = fill_exactly(shape, drawn.x, drawn.told)
    found = {"no-missing": drawn.y.mean(), "nonprivate": filled.mean() * float(shape.response.grid)}
    for method, value in found.items():
        yield Outcome(method=method, query=setting.query, truth=TRUTH, estimate=float(value))


def _private(setting: ImputationSetting, drawn: MaskedSample, rng: np.random.Generator) -> Iterator[Outcome]:
    """Every private method on the same rows."""
    shape, noise = design(setting.predictors), QuickModelNoise(rng)
    epsilon, share = Fraction(setting.epsilon), Fraction(setting.split)
    if setting.split == PUBLISHED.split:
        yield _line(
            "available", setting, lambda: available_cases(shape, drawn.told, epsilon=epsilon, noise=noise)
        )
        yield _line(
            "query-only",
            setting,
            lambda: query_only(shape, drawn.x, drawn.told, epsilon=epsilon, noise=noise),
        )
    for name, (estimator, delta) in ESTIMATORS.items():

        def both(estimator: Estimator = estimator, delta: Fraction | None = delta) -> Any:
            return both_stages(
                shape,
                drawn.x,
                drawn.told,
                epsilon=epsilon,
                delta=delta,
                share=share,
                estimator=estimator,
                noise=noise,
            )

        yield _line(f"both/{name}", setting, both)
    yield _multiple(setting, drawn, rng)


def _as_published(drawn: MaskedSample, rng: np.random.Generator) -> Outcome:
    """Strategy (ii) of the document, at its setting."""
    shape, epsilon, noise = design(PUBLISHED.predictors), Fraction(PUBLISHED.epsilon), QuickModelNoise(rng)
    return _line(
        STRATEGY_II,
        PUBLISHED,
        lambda: query_only_published(shape, drawn.x, drawn.told, epsilon=epsilon, noise=noise),
    )


def _multiple(setting: ImputationSetting, drawn: MaskedSample, rng: np.random.Generator) -> Outcome:
    start = process_time()
    found = multiple_mean(
        design(setting.predictors),
        drawn.x,
        drawn.told,
        epsilon=Fraction(setting.epsilon),
        share=Fraction(setting.split),
        copies=COPIES,
        bits=SeededBits(rng),
        noise=QuickModelNoise(rng),
    ).combined
    low, high = found.interval(LEVEL)
    return Outcome(
        method="both/multiple",
        query=setting.query,
        epsilon=float(setting.epsilon),
        truth=TRUTH,
        estimate=found.value,
        low=low,
        high=high,
        seconds=process_time() - start,
    )


def _line(method: str, setting: ImputationSetting, made: Any) -> Outcome:
    start = process_time()
    value = float(made().mean)
    return Outcome(
        method=method,
        query=setting.query,
        epsilon=float(setting.epsilon),
        truth=TRUTH,
        estimate=value,
        seconds=process_time() - start,
    )


def experiment() -> Experiment:
    """The simulation as published, and its sweeps."""
    return Experiment(
        name="model-imputation",
        title="Filling gaps from a private line: every estimator against the truth",
        source="Imputation under differential privacy, the simulation; THEORY 7",
        run=run,
        params={
            "published": asdict(PUBLISHED),
            "sweeps": SWEEPS,
            "every": EVERY,
            "methods": list(ESTIMATORS),
        },
        runs=500,
        batch=25,
        figures=figures,
        carried={setting.query: setting.carried for setting in settings()},
    )
