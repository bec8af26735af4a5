"""Ways in which people do not answer. Each gives a mask: a table of booleans, true where the answer is lost.

An empty cell of the table given is a question that was not asked, so no mask touches it, and the rate `p` of
a column is a share of the cells that could be answered. The names and forms are those of the literature on
missing data: completely at random, at random, and not at random in four ways.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.errors import PlanError
from reticent.lab.homes import Array
from reticent.missing.chances import in_tail, logistic
from reticent.missing.reluctance import latent_share, normal_quantile

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
    """Not at random: probability logistic in the cell's own value, `slope` per standard deviation.

    Categorical values count by a random effect per level. `p` is the column's mean probability.
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
    """Reluctant people skip many questions: each column has its own rate, losses go together.

    A respondent has one latent reluctance, shared by all questions. Its weight is set so that the mean
    correlation over pairs of columns is `correlation`; real surveys show 0.4 to 0.8.
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
    """The table with every cell emptied that some mask marks."""
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
