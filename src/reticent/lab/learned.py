"""Missingness learned from real flags: fit on some households, judge on others, draw afresh for every run.

Each item's flag is a logistic regression. The four forms differ in what it may look at: nothing (the rate),
the answers of the record, the flags before it (people who skip one question skip the next), or both. By the
chain rule the forms are laws of the whole record, so their log losses can be compared.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import PlanError
from reticent.lab.homes import LEVELS, Array
from reticent.lab.lives import YEARS

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
    betas = [logistic(_regressors(form, x, y[:, :j]), y[:, j]) for j in range(y.shape[1])]
    return Silence(form, tuple(flags.column_names), tuple(betas))


def validate(
    answers: pa.Table, flags: pa.Table, form: Form, *, seed: int, held: float = 0.3
) -> tuple[Silence, Score]:
    """Fit without a share of the households, and score on those."""
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


def logistic(x: Array, y: Array) -> Array:
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
