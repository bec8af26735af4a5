"""Masks by name, for trials.

Chances of not answering: logistic in a pull with a stated mean rate, or for the tail of a column alone.

Masks driven by other columns: completely at random, at random, not at random. For trials, on rows whose truth is known.

A mask is true where an answer is lost. `values` are codes, a row for each respondent and a column for each question.
Codes of `nominal` columns have no order, so each level counts by a normal effect of its own. Scales are those of the
sample at hand: a mask is made where the truth is known and never for a release. Cells outside `asked` are not lost,
and the rate of a column is a share of its asked cells.

Masks that depend on the very answer that is lost: logistic in it, or for one end of the column alone. For trials.

How strongly a shared reluctance must weigh for skipped questions to have a stated correlation.

One factor: question j is skipped when sqrt(w) u + sqrt(1 - w) e_j passes the quantile of its rate, u and e_j
standard normal. Given u the questions are independent, so the chance of skipping two is one integral.

Masks in which answers of one respondent go missing together, as they do in real surveys. For trials.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FINEST_HALVINGS = 64  # of an interval about 130 wide: as fine as doubles get


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), which never overflows."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def logistic(pull: Floats, asked: Flags, rate: float) -> Floats:
    """sigmoid(pull + b), with b by bisection such that the mean over the asked cells is `rate`."""
    if rate in (0, 1) or not asked.any():
        return np.full(len(pull), float(rate))
    low, high = -60.0 - np.abs(pull).max(), 60.0 + np.abs(pull).max()
    for _ in range(FINEST_HALVINGS):
        b = (low + high) / 2
        too_many = np.mean(sigmoid(pull[asked] + b)) > rate
        low, high = (low, b) if too_many else (b, high)
    return sigmoid(pull + b)


def in_tail(values: Floats, asked: Flags, share: float) -> Floats:
    """1 for the largest `share` of the asked cells, 0 for the rest, between for those at the threshold."""
    if not asked.any() or share == 0:
        return np.zeros(len(values))
    edge = np.quantile(values[asked], 1 - share, method="higher")
    above, at = values > edge, values == edge
    part = (share * asked.sum() - above[asked].sum()) / max(at[asked].sum(), 1)
    return np.where(above, 1.0, np.where(at, np.clip(part, 0, 1), 0.0))


def standard(values: Floats, asked: Flags) -> Floats:
    """Mean 0 and variance 1 over the asked cells, in the sample at hand; 0 where nothing varies or nobody was asked."""
    if not asked.any():
        return np.zeros(len(values))
    spread = float(values[asked].std())
    return np.where(asked, values - values[asked].mean(), 0.0) / spread if spread else np.zeros(len(values))


Codes = NDArray[np.integer]
Rng = np.random.Generator


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrivenMask:
    """A mask, the columns whose values drive it, and those that stay complete, by number."""

    mask: Flags = field(repr=False)
    drivers: tuple[int, ...] = ()
    complete: tuple[int, ...] = ()


def mcar(shape: tuple[int, int], rate: float, rng: Rng) -> DrivenMask:
    """Completely at random: every cell of every column on its own."""
    check_rate(rate)
    return DrivenMask(mask=rng.random(shape) < rate)


def mar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    """At random: half of the columns (rounded down), by lot, stay complete and drive the loss of the others.

    A driven column is lost with probability sigmoid(w·x + b) of the complete ones: w normal and scaled such that
    w·x has unit variance, b such that the column's mean is `rate`. So about half of `rate` of all cells is lost.
    """
    lots, asked, drivers, driven = _drawn(values, rate, asked, values.shape[1] // 2, rng)
    chances = driven_by(values, drivers, driven, rate, rng, nominal=nominal, asked=asked)
    mask = np.zeros(values.shape, dtype=bool)
    mask[:, driven] = lots[:, driven] < chances
    return DrivenMask(mask=mask & asked, drivers=drivers, complete=drivers)


def mnar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    """Not at random: three columns in ten (rounded down), by lot, drive the others as in `mar`, then are lost `mcar`."""
    lots, asked, drivers, driven = _drawn(values, rate, asked, 3 * values.shape[1] // 10, rng)
    chances = np.full(values.shape, float(rate))
    chances[:, driven] = driven_by(values, drivers, driven, rate, rng, nominal=nominal, asked=asked)
    return DrivenMask(mask=(lots < chances) & asked, drivers=drivers)


def driven_by(
    values: Codes,
    drivers: Sequence[int],
    driven: Sequence[int],
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags,
) -> Floats:
    """For every cell of the `driven` columns, the probability of loss that the drivers give it."""
    x = np.column_stack(
        [np.zeros(len(values)), *(scores(values[:, k], asked[:, k], rng, k in nominal) for k in drivers)]
    )
    chances = np.zeros((len(values), len(driven)))
    for place, column in enumerate(driven):
        pull = (x * rng.normal(size=x.shape[1])).sum(
            axis=1
        )  # in one order, so that equal rows get equal pulls
        chances[:, place] = logistic(pull / (pull.std() or 1), asked[:, column], rate)
    return chances


def scores(column: Codes, asked: Flags, rng: Rng, is_nominal: bool) -> Floats:
    """A column on a common scale: mean 0, variance 1 over its asked cells."""
    numbers = np.asarray(column, dtype=float)
    if is_nominal:
        levels, place = np.unique(column, return_inverse=True)
        numbers = rng.normal(size=len(levels))[place]
    return standard(numbers, asked)


def check_rate(rate: float) -> None:
    """Refuse what is no share."""
    if not 0 <= rate <= 1:
        raise PlanError("a rate lies between 0 and 1.", field="rate")


def asked_of(values: Codes, asked: Flags | None) -> Flags:
    """Which cells could be answered: all of them where nothing is said."""
    return np.ones(values.shape, dtype=bool) if asked is None else np.asarray(asked, dtype=bool)


def _drawn(
    values: Codes, rate: float, asked: Flags | None, count: int, rng: Rng
) -> tuple[Floats, Flags, tuple[int, ...], tuple[int, ...]]:
    """A uniform draw for each cell, who was asked, `count` columns by lot, and the others."""
    check_rate(rate)
    lots = rng.random(values.shape)
    chosen = set(rng.permutation(values.shape[1])[:count].tolist())
    every = range(values.shape[1])
    others = tuple(k for k in every if k not in chosen)
    return lots, asked_of(values, asked), tuple(k for k in every if k in chosen), others


SLOPE = 1.5

Side = Literal["upper", "lower", "both"]
_TAILS: dict[str, tuple[tuple[int, float], ...]] = {
    "upper": ((1, 1.0),),
    "lower": ((-1, 1.0),),
    "both": ((1, 0.5), (-1, 0.5)),
}


def self_masking(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    slope: float = SLOPE,
) -> DrivenMask:
    """Not at random: probability logistic in the cell's own value, `slope` for each standard deviation."""
    check_rate(rate)
    lots, asked = rng.random(values.shape), asked_of(values, asked)
    chances = np.empty(values.shape)
    for k in range(values.shape[1]):
        own = scores(values[:, k], asked[:, k], rng, k in nominal)
        chances[:, k] = logistic(slope * own, asked[:, k], rate)
    return DrivenMask(mask=(lots < chances) & asked, drivers=tuple(range(values.shape[1])))


def quantile(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    share: float = 0.5,
    side: Side = "upper",
) -> DrivenMask:
    """Not at random: only the `share` of a column at one end, or both, is ever lost, so there at rate / share.

    Ties are kept together: cells equal to the threshold are lost with the probability that keeps the rate. Columns
    without an order have no end and stay complete.
    """
    check_rate(rate)
    if not rate <= share <= 1 or share == 0:
        raise PlanError("the rate is at most the share of cells that may be lost.", field="rate")
    lots, asked = rng.random(values.shape), asked_of(values, asked)
    tails = np.zeros(values.shape)
    ordered = tuple(k for k in range(values.shape[1]) if k not in nominal)
    for k in ordered:
        for sign, part in _TAILS[side]:
            tails[:, k] += in_tail(sign * np.asarray(values[:, k], dtype=float), asked[:, k], part * share)
    complete = tuple(sorted(set(range(values.shape[1])) - set(ordered)))
    return DrivenMask(mask=(lots * share < rate * tails) & asked, drivers=ordered, complete=complete)


_NORMAL = NormalDist()
_GRID = np.linspace(-8, 8, 641)
_DENSITY = np.exp(-_GRID * _GRID / 2) / np.exp(-_GRID * _GRID / 2).sum()
_CDF_AT = np.linspace(-9, 9, 18001)
_CDF = np.array([_NORMAL.cdf(x) for x in _CDF_AT])


def normal_quantile(p: float) -> float:
    """The standard normal quantile, with its limits at 0 and 1."""
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return np.inf if p >= 1 else -np.inf


def flag_correlations(rates: Sequence[float], weight: float) -> Floats:
    """Correlations of the skip flags, a square matrix, when the shared reluctance has this weight."""
    edge = np.array([normal_quantile(1 - rate) for rate in rates])
    given = np.interp((np.sqrt(weight) * _GRID[:, None] - edge) / np.sqrt(1 - weight), _CDF_AT, _CDF)
    mean = _DENSITY @ given
    joint = (given * _DENSITY[:, None]).T @ given
    spread = np.sqrt(mean * (1 - mean))
    flags = (joint - np.outer(mean, mean)) / np.outer(spread, spread)
    np.fill_diagonal(flags, 1.0)
    return np.asarray(flags)


def latent_share(rates: Sequence[float], correlation: float) -> float:
    """The weight of the shared reluctance at which the mean correlation over pairs is `correlation`."""
    if len(rates) < 2 or not all(0 < rate < 1 for rate in rates):
        raise PlanError(
            "clustering needs two columns or more, with rates above 0 and below 1.", field="rates"
        )
    pairs = np.triu_indices(len(rates), 1)
    low, high = 0.0, 0.99
    most = flag_correlations(rates, high)[pairs].mean()
    if not 0 <= correlation <= most:
        raise PlanError(
            f"the mean correlation is {correlation}, but with these rates it lies between 0 and {most:.2f}; "
            "bring the rates closer together or ask for less.",
            field="correlation",
        )
    for _ in range(50):
        weight = (low + high) / 2
        too_weak = flag_correlations(rates, weight)[pairs].mean() < correlation
        low, high = (weight, high) if too_weak else (low, weight)
    return weight


def clustered(
    rows: int, rates: Sequence[float], rng: Rng, *, correlation: float = 0.6, asked: Flags | None = None
) -> DrivenMask:
    """Reluctant people skip many questions: a column for each rate, and losses that go together.

    A respondent has one latent reluctance, shared by all questions. Its weight is set such that the mean
    correlation of the flags over pairs of columns is `correlation`; real surveys show 0.4 to 0.8.
    """
    weight = latent_share(rates, correlation)
    reluctance = np.sqrt(weight) * rng.normal(size=(rows, 1))
    whims = np.sqrt(1 - weight) * rng.normal(size=(rows, len(rates)))
    mask = reluctance + whims > np.array([normal_quantile(1 - rate) for rate in rates])
    return DrivenMask(mask=mask if asked is None else mask & asked)


def like(
    real: Flags,
    rows: int,
    rng: Rng,
    *,
    classes: NDArray[np.integer] | None = None,
    wanted: NDArray[np.integer] | None = None,
) -> DrivenMask:
    """Like this real mask: each row gets the whole pattern of a real row, drawn with replacement.

    With `classes` (a number for each real row) and `wanted` (one for each row to be made) a row draws among real rows
    of its own class, and among all where there is none.
    """
    if len(real) == 0 or (classes is None) != (wanted is None):
        raise PlanError("has rows, and either both `classes` and `wanted` or neither.", field="real")
    drawn = rng.integers(len(real), size=rows)
    if classes is not None and wanted is not None:
        for each in np.unique(wanted):
            pool, places = np.flatnonzero(classes == each), np.flatnonzero(wanted == each)
            if len(pool):
                drawn[places] = pool[rng.integers(len(pool), size=len(places))]
    mask = np.asarray(real, dtype=bool)[drawn]
    return DrivenMask(mask=mask, complete=tuple(np.flatnonzero(~mask.any(axis=0)).tolist()))


HALVINGS = 16


class Maker(Protocol):
    """Codes, a rate and a generator in; a mask out."""

    def __call__(
        self,
        values: Codes,
        rate: float,
        rng: Rng,
        *,
        nominal: Sequence[int] = (),
        asked: Flags | None = None,
    ) -> DrivenMask: ...


def _mcar(
    values: Codes, rate: float, rng: Rng, *, nominal: Sequence[int] = (), asked: Flags | None = None
) -> DrivenMask:
    rows, columns = values.shape
    return DrivenMask(mask=mcar((rows, columns), rate, rng).mask & asked_of(values, asked))


def _clustered(
    values: Codes,
    rate: float,
    rng: Rng,
    *,
    nominal: Sequence[int] = (),
    asked: Flags | None = None,
    correlation: float = 0.6,
) -> DrivenMask:
    rows, columns = values.shape
    return clustered(rows, [rate] * columns, rng, correlation=correlation, asked=asked)


MAKERS: Mapping[str, Maker] = {
    "mcar": _mcar,
    "mar": mar,
    "mnar": mnar,
    "self-masking": self_masking,
    "quantile": quantile,
    "clustered": _clustered,
}
"""`like` is not among them: a real mask has its own rates."""


def make(name: str, values: Codes, rate: float, rng: Rng, **options: Any) -> DrivenMask:
    """The mask of this name."""
    if name not in MAKERS:
        raise PlanError(f"no mask is called {name[:40]!r}; there are {', '.join(MAKERS)}.", field="mask")
    return MAKERS[name](values, rate, rng, **options)


def rate_leaving(name: str, values: Codes, share: float, *, seed: int, **options: Any) -> float:
    """The rate at which this mask, drawn from `seed`, leaves `share` of the rows complete, to about 1e-5.

    One seed draws the same lots at every rate, so the complete rows fall as the rate rises.
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        rate = (low + high) / 2
        made = make(name, values, rate, np.random.default_rng(seed), **options)
        too_few = float(np.mean(~made.mask.any(axis=1))) < share
        low, high = (low, rate) if too_few else (rate, high)
    return (low + high) / 2
