"""Ways in which people do not answer. Each gives a mask: a table of booleans, true where the answer is lost.

An empty cell of the table given is a question that was not asked, so no mask touches it, and the rate `p` of
a column is a share of the cells that could be answered. The names and forms are those of the literature on
missing data: completely at random, at random, and not at random in four ways.

Missingness learned from real flags: fit on some households, judge on others, draw afresh for every run.

Each item's flag is a logistic regression. The four forms differ in what it may look at: nothing (the rate),
the answers of the record, the flags before it (people who skip one question skip the next), or both. By the
chain rule the forms are laws of the whole record, so their log losses can be compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import PlanError
from reticent.lab.masks import in_tail, latent_share, logistic, normal_quantile
from reticent.lab.world.state import LEVELS, YEARS, Array

SELF_SLOPE = 1.5


def mcar(table: pa.Table, p: float, *, seed: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Completely at random: every cell on its own with probability `p`."""
    lots = _lots(table, columns, [p], seed)
    return _mask(table, {name: lot < p for name, lot in lots.items()})


def mar(table: pa.Table, p: float, *, seed: int, columns: Sequence[str] | None = None) -> pa.Table:
    """At random: half of the columns, chosen by the seed, stay complete and drive the loss of the others.

    A driven column is lost with probability sigmoid(w·x + b): w normal, w·x of unit variance over the
    complete columns x, and b such that the column's mean probability is `p`.
    """
    lots = _lots(table, columns, [p], seed)
    rng = np.random.default_rng([seed, 1])
    complete, driven = _split(rng, list(lots), len(lots) // 2)
    hits = {name: lots[name] < chance for name, chance in _driven(table, complete, driven, p, rng)}
    return _mask(table, {name: hits.get(name, np.zeros(table.num_rows, dtype=bool)) for name in lots})


def mnar(table: pa.Table, p: float, *, seed: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Not at random: three columns in ten drive the loss of the others as in `mar`, then are lost `mcar`."""
    lots = _lots(table, columns, [p], seed)
    rng = np.random.default_rng([seed, 1])
    drivers, driven = _split(rng, list(lots), 3 * len(lots) // 10)
    chances = dict(_driven(table, drivers, driven, p, rng))
    return _mask(table, {name: lot < chances.get(name, p) for name, lot in lots.items()})


def self_masking(
    table: pa.Table, p: float, *, seed: int, columns: Sequence[str] | None = None, slope: float = SELF_SLOPE
) -> pa.Table:
    """Missing not at random: the probability is logistic in the cell's own value.

    Categorical values count by a random effect per level. `p` is the column's mean probability.

    **Parameters**

    - `table`: the complete answers.
    - `p`: the mean probability of a column.
    - `seed`: of the draw.
    - `columns`: which lose answers, all where not said.
    - `slope`: for each standard deviation of the value.
    """
    lots = _lots(table, columns, [p], seed)
    rng = np.random.default_rng([seed, 1])
    hits = {}
    for name, lot in lots.items():
        asked = table[name].is_valid().to_numpy()
        hits[name] = lot < logistic(slope * _scores(table[name], rng), asked, p)
    return _mask(table, hits)


def quantile_masking(
    table: pa.Table,
    p: float,
    *,
    seed: int,
    columns: Sequence[str],
    share: float = 0.5,
    side: Literal["upper", "lower", "both"] = "upper",
) -> pa.Table:
    """Not at random: only the `share` of cells at one end, or both, is ever lost, so at rate p / share.

    Ties are kept together: cells equal to the threshold are lost with the probability that keeps the rate.
    """
    if not 0 <= p <= share <= 1:
        raise PlanError("the rate is at most the share of cells that may be lost, both in [0, 1].", field="p")
    hits = {}
    for name, lot in _lots(table, columns, [p, share], seed).items():
        asked = table[name].is_valid().to_numpy()
        values = _numbers(table[name])
        tails = np.zeros(len(values))
        for sign, part in {"upper": [(1, 1.0)], "lower": [(-1, 1.0)], "both": [(1, 0.5), (-1, 0.5)]}[side]:
            tails += in_tail(sign * values, asked, part * share)
        hits[name] = lot * share < p * tails
    return _mask(table, hits)


def clustered(table: pa.Table, rates: Mapping[str, float], *, correlation: float, seed: int) -> pa.Table:
    """Correlated item nonresponse: reluctant people skip many questions, each column at its own rate.

    A respondent has one latent reluctance, shared by all questions. Its weight is set so that the mean
    correlation over pairs of columns is `correlation`; real surveys show 0.4 to 0.8.

    **Parameters**

    - `table`: the complete answers.
    - `rates`: for each column, the share that is lost.
    - `correlation`: of the flags, the mean over pairs of columns.
    - `seed`: of the draw.
    """
    weight = latent_share(list(rates.values()), correlation)
    rng = np.random.default_rng([seed, 2])
    reluctance = np.sqrt(weight) * rng.normal(size=table.num_rows)
    hits = {}
    for name, rate in rates.items():
        whim = np.sqrt(1 - weight) * rng.normal(size=table.num_rows)
        hits[name] = reluctance + whim > normal_quantile(1 - rate)
    return _mask(table, hits)


def apply(table: pa.Table, *masks: pa.Table) -> pa.Table:
    """Item nonresponse applied: the table with every cell emptied that some mask marks.

    **Parameters**

    - `table`: the complete answers.
    - `masks`: tables of flags, true where an answer is lost.
    """
    for mask in masks:
        for name in mask.column_names:
            # Taking an empty position gives an empty cell, whatever the column's type.
            keep = pa.array(np.arange(table.num_rows), mask=mask[name].to_numpy())
            table = table.set_column(table.column_names.index(name), name, table[name].take(keep))
    return table


def _mask(table: pa.Table, hits: Mapping[str, Array]) -> pa.Table:
    """The mask of these hits, with the cells taken out that were empty before."""
    return pa.table({name: hit & table[name].is_valid().to_numpy() for name, hit in hits.items()})


def _lots(table: pa.Table, columns: Sequence[str] | None, rates: list[float], seed: int) -> dict[str, Array]:
    """A uniform draw per cell; a column's draws depend on the seed and its place, never on a value."""
    names = list(table.column_names if columns is None else columns)
    if unknown := set(names) - set(table.column_names):
        raise PlanError(f"no column is called {min(unknown)}.", field="columns")
    if any(not 0 <= rate <= 1 for rate in rates):
        raise PlanError("a rate lies between 0 and 1.", field="p")
    rng = np.random.default_rng([seed, 0])
    return {name: rng.random(table.num_rows) for name in names}


def _split(rng: np.random.Generator, names: list[str], count: int) -> tuple[list[str], list[str]]:
    """`count` names at random, and the others."""
    chosen = set(rng.permutation(len(names))[:count].tolist())
    return [n for i, n in enumerate(names) if i in chosen], [
        n for i, n in enumerate(names) if i not in chosen
    ]


def _driven(
    table: pa.Table, drivers: list[str], driven: list[str], p: float, rng: np.random.Generator
) -> Iterator[tuple[str, Array]]:
    """For every driven column, the probability of loss that the drivers give each cell."""
    x = np.column_stack([np.zeros(table.num_rows), *(_scores(table[name], rng) for name in drivers)])
    for name in driven:
        pull = (x * rng.normal(size=x.shape[1])).sum(axis=1)
        yield name, logistic(pull / (pull.std() or 1), table[name].is_valid().to_numpy(), p)


def _scores(column: pa.ChunkedArray, rng: np.random.Generator) -> Array:
    """The column on a common scale: mean 0, variance 1 over its filled cells, 0 where it is empty."""
    values = _numbers(column, rng)
    filled = ~np.isnan(values)
    spread = values[filled].std() if filled.any() else 0.0
    return np.where(filled, values - values[filled].mean(), 0) / spread if spread else np.zeros(len(values))


def _numbers(column: pa.ChunkedArray, rng: np.random.Generator | None = None) -> Array:
    """The column as floats, empty cells as nan; a level's number is its random effect."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        if rng is None:
            raise PlanError("only a numeric column has quantiles.", field="columns")
        levels = pc.unique(column.drop_null()).sort()
        column = pa.array(rng.normal(size=len(levels))).take(pc.index_in(column, levels, skip_nulls=True))
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)


RIDGE = 1.0
STEPS = 40
AGES = (20, 50)  # the flags are of workers of these ages; others are treated like the nearest


class Form(Enum):
    """What a flag may depend on."""

    RATE = "rate"
    ANSWERS = "answers"
    FLAGS = "flags"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Silence:
    """A fitted law of which items a record leaves unanswered."""

    form: Form
    items: tuple[str, ...]
    coefficients: tuple[Array, ...]

    def chances(self, answers: pa.Table, flags: Array) -> Array:
        """Probability of every flag, given what its form looks at; `flags` has a column per item."""
        x = features(answers)
        columns = [
            sigmoid(_regressors(self.form, x, flags[:, :j]) @ beta)
            for j, beta in enumerate(self.coefficients)
        ]
        return np.column_stack(columns)

    def draw(self, table: pa.Table, *, seed: int) -> pa.Table:
        """A fresh mask of the table's items; a question that was not asked is never lost."""
        rng, x = np.random.default_rng([seed, 3]), features(table)
        flags = np.zeros((table.num_rows, len(self.items)), dtype=bool)
        for j, item in enumerate(self.items):
            lost = rng.random(table.num_rows) < self._chance(j, x, flags)
            flags[:, j] = lost & table[item].is_valid().to_numpy()
        return pa.table(dict(zip(self.items, flags.T, strict=True)))

    def _chance(self, j: int, x: Array, flags: Array) -> Array:
        seen = _regressors(self.form, x, flags[:, :j])
        return sigmoid(np.einsum("ni,i->n", seen, self.coefficients[j]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How a law fares on records it has not seen."""

    log_loss: float
    auc: dict[str, float]
    complete: float
    complete_drawn: float


def fit(answers: pa.Table, flags: pa.Table, form: Form) -> Silence:
    """Fit one logistic regression per item, in the order of the flags' columns."""
    if answers.num_rows != flags.num_rows or answers.num_rows == 0:
        raise PlanError("answers and flags need the same rows, at least one.", field="flags")
    x, y = features(answers), matrix(flags)
    betas = [logistic_regression(_regressors(form, x, y[:, :j]), y[:, j]) for j in range(y.shape[1])]
    return Silence(form, tuple(flags.column_names), tuple(betas))


def validate(
    answers: pa.Table, flags: pa.Table, form: Form, *, seed: int, held: float = 0.3
) -> tuple[Silence, Score]:
    """Out-of-sample check of a nonresponse model: fit without a share of the households, and score on those.

    **Parameters**

    - `answers`: the complete answers.
    - `flags`: true where an answer is lost.
    - `form`: what a flag may depend on.
    - `seed`: of the split.
    - `held`: the share of households that is scored.
    """
    homes, at = np.unique(answers["household"].to_numpy(), return_inverse=True)
    out = (np.random.default_rng(seed).random(len(homes)) < held)[at]
    law = fit(answers.filter(pa.array(~out)), flags.filter(pa.array(~out)), form)
    return law, score(law, answers.filter(pa.array(out)), flags.filter(pa.array(out)), seed=seed)


def score(law: Silence, answers: pa.Table, flags: pa.Table, *, seed: int) -> Score:
    """Joint log loss per record in nats, AUC per item, and the share of complete records, real and drawn."""
    y, drawn = matrix(flags), matrix(law.draw(answers, seed=seed))
    chances = law.chances(answers, y)
    loss = -np.where(y, np.log(chances), np.log1p(-chances)).sum(axis=1).mean()
    return Score(
        log_loss=float(loss),
        auc={item: auc(chances[:, j], y[:, j]) for j, item in enumerate(law.items)},
        complete=float(np.mean(~y.any(axis=1))),
        complete_drawn=float(np.mean(~drawn.any(axis=1))),
    )


def auc(chance: Array, flag: Array) -> float:
    """The probability that a flagged record was given the larger chance, ties counting half."""
    _, at, counts = np.unique(chance, return_inverse=True, return_counts=True)
    midranks = (np.cumsum(counts) - (counts - 1) / 2)[at]
    ones, zeros = int(flag.sum()), int((~flag).sum())
    if not ones or not zeros:
        return float("nan")
    return float((midranks[flag].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def logistic_regression(x: Array, y: Array) -> Array:
    """Logistic regression by Newton's method, with a ridge on all but the first column, the constant."""
    rate = (y.sum() + 0.5) / (len(y) + 1)
    beta = np.zeros(x.shape[1])
    beta[0] = np.log(rate / (1 - rate))
    ridge = np.full(x.shape[1], RIDGE)
    ridge[0] = 1e-3  # an item nobody skipped still gets a finite rate
    for _ in range(STEPS):
        chance = sigmoid(np.einsum("ni,i->n", x, beta))
        # einsum adds in one order on one thread, so a fit is the same beside any number of workers.
        curve = np.einsum("ni,nj->ij", x * (chance * (1 - chance))[:, None], x) + np.diag(ridge)
        step = np.linalg.solve(curve, np.einsum("ni,n->i", x, y - chance) - ridge * beta)
        beta = beta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-8:
            break
    return beta


def features(answers: pa.Table) -> Array:
    """What a flag may know of a record: age, its square, years of schooling, and who the person is.

    An empty answer adds nothing. Wage and hours are left out: where they are flagged, they were filled in.
    """
    age = np.clip(_filled(answers["age"], 35), *AGES)
    steps = pc.index_in(answers["schooling"].cast(pa.string()), pa.array(LEVELS["schooling"]))
    years = YEARS[_filled(steps, 5).astype(int)]
    columns = [np.ones(len(age)), (age - 35) / 15, ((age - 35) / 15) ** 2, (years - 12) / 4]
    for name in ("sex", "race", "marital", "relationship"):
        text = answers[name].cast(pa.string())
        columns += [_filled(pc.equal(text, level), 0) for level in LEVELS[name][1:]]
    return np.column_stack(columns)


def sigmoid(x: Array) -> Array:
    """The logistic function, kept off 0 and 1 so that its logarithms are finite."""
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -30, 30))))


def matrix(flags: pa.Table) -> Array:
    """The flags as a boolean array, a column per item."""
    return np.column_stack([flags[name].to_numpy() for name in flags.column_names])


def _filled(column: pa.ChunkedArray, default: float) -> Array:
    """The column as floats with a value in its empty cells."""
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float(default)).to_numpy(), dtype=float)


def _regressors(form: Form, x: Array, earlier: Array) -> Array:
    """The columns a form looks at, the constant first."""
    seen = x if form in (Form.ANSWERS, Form.BOTH) else x[:, :1]
    return np.column_stack([seen, earlier]) if form in (Form.FLAGS, Form.BOTH) else seen
