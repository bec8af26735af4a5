"""The simulation of *Imputation under differential privacy*: one mean, many ways to fill its gaps.

Predictors are uniform, the response is their mean plus normal noise, clipped to [0, 1]; it is missing with
probability equal to the first predictor. By symmetry its true mean is 1/2, whatever the setting. Rows are
replaced, and their number is public.

    no-missing    the sample mean, had everybody answered; no privacy
    nonprivate    gaps filled by least squares; no privacy
    available     those who answered, noisy
    query-only    gaps filled by least squares without noise, and all noise at the end (THEORY 7.2)
    both/NAME     a private line by estimator NAME, then a noisy mean of the filled rows
    both/multiple five completed data sets from one private line, by Rubin's rules, with an interval of 95 %

Each run has the published setting. Every fifth run goes on to the sweeps, one thing changed at a time.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.lab.experiment import Experiment, Outcome
from reticent.lab.experiments.model_figures import figures
from reticent.lab.quickmodels import QuickModelNoise
from reticent.lab.seeded import SeededBits
from reticent.models.adassp import AdaSSP
from reticent.models.centred import Centred
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.fit import Estimator
from reticent.models.functional import Functional
from reticent.models.multiple import multiple_mean
from reticent.models.objective import Objective
from reticent.models.output import Output
from reticent.models.privgene import PrivGene
from reticent.models.robust import Robust
from reticent.models.strategies import available_cases, both_stages, fill_exactly, query_only

TRUTH = 0.5
EVERY = 5  # runs from one with sweeps to the next
DELTA = Fraction(1, 10**6)
COPIES, LEVEL = 5, 0.95
Floats = NDArray[np.float64]

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
    lines = [*_floors(PUBLISHED, first), *_private(PUBLISHED, first, rng)]
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
