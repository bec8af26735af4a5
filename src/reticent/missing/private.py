"""Item nonresponse that may be published: noisy rates, missing answers per row, declared patterns, and a private test of MCAR.

Under MCAR the number of missing answers in a row is independent of every answer in it. Each `Look` is one table, declared
before a row is read, in which that would show: it has a line for 0, 1, 2, ... missing answers and a column for each group
of what was answered. Every group then has the same mean m of missing answers, so A_c - m n_c is zero on average, n_c the
size of group c and A_c its missing answers, noise or no noise. Its variance is s^2 n_c from sampling and v t from the
noise: s^2 the variance of the number missing, v that of one cell's noise, t = sum (r - m)^2 over the lines.

What no such table can show is whether nonresponse depends on the answer that was not given (MNAR), nor a dependence that
cancels within the public groups.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, prod

import numpy as np
from numpy.typing import NDArray

from reticent.engine.confidential import MOST_COLUMNS, Look, Patterns
from reticent.errors import PlanError
from reticent.noise.bits import Bits, words
from reticent.noise.source import Noise
from reticent.privacy.claim import Change, Claim
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours

PAGE = "proofs/missing/private.md"
PER_ROW = Fraction(1, 4)
DECLARED = Fraction(1, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDescription:
    """Noisy counts, which may be published, and what follows from them. Scales are those of the noise, and public.

    `missing` has a number for each column, `per_row` one for 0, 1, 2, ... missing answers in a row, `declared` one for
    each declared pattern and a last one for all other rows. Counts may be negative; shares are cut to [0, 1].
    """

    columns: tuple[str, ...]
    missing: tuple[int, ...]
    per_row: tuple[int, ...]
    declared: tuple[int, ...]
    missing_scale: Fraction
    per_row_scale: Fraction
    declared_scale: Fraction
    claim: Claim
    is_private: bool

    @property
    def rows(self) -> int:
        """The number of rows, from the noisy table; at least 1."""
        return max(1, sum(self.per_row))

    @property
    def rates(self) -> dict[str, float]:
        return {name: _share(n, self.rows) for name, n in zip(self.columns, self.missing, strict=True)}

    @property
    def complete(self) -> float:
        """The share of rows without a missing answer."""
        return _share(self.per_row[0], self.rows)

    @property
    def independent(self) -> float:
        """The share that would be complete if answers were lost independently at the same rates."""
        return prod(1 - rate for rate in self.rates.values())


def public_columns(schema: Schema) -> tuple[str, ...]:
    """What is described where no columns are named: all that can be asked about, but weights."""
    return schema.questions


def describe_private(
    found: Patterns,
    schema: Schema,
    *,
    epsilon: Fraction,
    noise: Noise,
    columns: Sequence[str] | None = None,
    patterns: Sequence[Collection[str]] = (),
    change: Change = Change.ADD_REMOVE,
) -> PrivateDescription:
    """Rates by column, missing answers per row, and how many rows miss exactly each of the declared `patterns`.

    Guarantee   epsilon-DP for one call.
    Adjacency   `change`, for a respondent of at most schema.at_most rows.
    Theorem     a row adds at most 1 to each of d counts, and 1 to one cell of each table; then Laplace noise.
    Proof       proofs/missing/private.md
    Assumes     `columns`, `patterns` and epsilon were fixed without looking at rows; `found` is what the
                engine counted over these very columns.
    Keeps back  every exact count, and which patterns occur beyond the declared ones.
    """
    names = public_columns(schema) if columns is None else tuple(columns)
    wanted = [frozenset(each) for each in patterns]
    _check(found, schema, names, wanted)
    steps = Neighbours(replaced=change is Change.REPLACE, records=schema.at_most).steps
    shares = [1 - PER_ROW - DECLARED * bool(wanted), PER_ROW, DECLARED]
    reach = [len(names) * steps, steps, steps]
    noisy = [
        tuple(noise.laplace_many(exact, sensitivity=bound, epsilon=share * epsilon)) if exact else ()
        for exact, bound, share in zip(_exact(found, wanted), reach, shares, strict=True)
    ]
    scales = [bound / (share * epsilon) for bound, share in zip(reach, shares, strict=True)]
    return PrivateDescription(
        columns=names,
        missing=noisy[0],
        per_row=noisy[1],
        declared=noisy[2],
        missing_scale=scales[0],
        per_row_scale=scales[1],
        declared_scale=scales[2],
        claim=_claim(epsilon, change),
        is_private=noise.is_private,
    )


def margin(scale: Fraction, level: float = 0.95) -> int:
    """The least t such that discrete Laplace noise of this scale stays within t with chance `level` or more."""
    if not 0 < level < 1:
        raise PlanError("a level lies inside (0, 1).", field="level")
    b = float(scale)
    # P(|X| > t) = 2 q^(t+1) / (1 + q) with q = e^(-1/b).
    return max(0, ceil(b * log(2 / ((1 - level) * (1 + exp(-1 / b)))) - 1))


def _exact(found: Patterns, wanted: Sequence[frozenset[str]]) -> tuple[list[int], list[int], list[int]]:
    """Missing answers by column; rows by their number of missing answers; rows by declared pattern, others last."""
    missing = [sum(n for hit, n in found.counts if name in hit) for name in found.columns]
    per_row = [sum(n for hit, n in found.counts if len(hit) == k) for k in range(len(found.columns) + 1)]
    declared = [sum(n for hit, n in found.counts if hit == each) for each in wanted]
    others = [sum(n for hit, n in found.counts if hit not in wanted)] if wanted else []
    return missing, per_row, declared + others


def _claim(epsilon: Fraction, change: Change) -> Claim:
    rests_on = (("the Laplace mechanism, three times", PAGE),)
    return Claim(measure="pure", epsilon=epsilon, change=change, rests_on=rests_on)


def _check(found: Patterns, schema: Schema, names: tuple[str, ...], wanted: Sequence[frozenset[str]]) -> None:
    if not 1 <= len(names) <= MOST_COLUMNS or len(set(names)) < len(names) or set(names) - set(schema.coded):
        raise PlanError(f"names 1 to {MOST_COLUMNS} columns of the codebook, each once.", field="columns")
    if found.columns != names:
        raise PlanError(
            "differ from those that were counted; which columns are described is fixed before a row is read.",
            field="columns",
        )
    if len(set(wanted)) < len(wanted) or any(each - set(names) for each in wanted):
        raise PlanError("are sets of the columns described, each once.", field="patterns")


def _share(part: int, whole: int) -> float:
    return min(1.0, max(0.0, part / whole))


Floats = NDArray[np.float64]

EXACT_TO = 50.0  # smaller Poisson means are drawn from the law itself, larger ones from the normal law


def statistic(tables: Floats, *, variance: float) -> Floats:
    """sum (A_c - m n_c)^2 / V_c with m fitted, for each of several noisy tables; `variance` is that of a cell's noise."""
    missing = np.arange(tables.shape[1], dtype=float)
    size, silent = tables.sum(axis=1), np.einsum("r,brc->bc", missing, tables)
    lines = np.maximum(tables.sum(axis=2), 0.0)
    share = lines / np.maximum(lines.sum(axis=1), 1.0)[:, None]
    mean = share @ missing
    spread = np.maximum(share @ missing**2 - mean**2, 0.0)
    noise = variance * ((missing - mean[:, None]) ** 2).sum(axis=1)
    v = spread[:, None] * np.maximum(size, 0.0) + noise[:, None] + 1e-9
    fitted = (silent * size / v).sum(axis=1) / np.maximum((size**2 / v).sum(axis=1), 1e-9)
    fitted = np.clip(fitted, 0.0, missing[-1])
    return np.asarray(((silent - fitted[:, None] * size) ** 2 / v).sum(axis=1))


def tail(table: Floats, *, scale: float, draws: int, bits: Bits) -> tuple[float, float]:
    """The statistic of a noisy table, and its p: the share of `draws` simulated ones that reach it, itself counted.

    Tables are simulated from the noisy margins, independent, with noise of the same law; released numbers alone.
    """
    variance = laplace_variance(scale)
    seen = float(statistic(table[None], variance=variance)[0])
    lines, groups = np.maximum(table.sum(axis=1), 0.0), np.maximum(table.sum(axis=0), 0.0)
    means = np.outer(lines / max(lines.sum(), 1.0), groups)
    drawn = poisson(means, draws, bits) + laplace((draws, *table.shape), scale, bits)
    reached = int((statistic(drawn, variance=variance) >= seen).sum())
    return seen, (1 + reached) / (1 + draws)


def laplace_variance(scale: float) -> float:
    """The variance of discrete Laplace noise, P(x) ~ e^(-|x| / scale)."""
    q = float(np.exp(-1 / scale))
    return 2 * q / (1 - q) ** 2


def uniforms(shape: tuple[int, ...], bits: Bits) -> Floats:
    """Numbers uniform inside (0, 1). They are part of a p-value and not of the promise, so doubles will do."""
    count = int(np.prod(shape))
    drawn = words(count, bits) >> np.uint64(11) if count else np.zeros(0, dtype=np.uint64)
    return (drawn.astype(np.float64) + 0.5).reshape(shape) * 2.0**-53


def laplace(shape: tuple[int, ...], scale: float, bits: Bits) -> Floats:
    """Discrete Laplace noise: the difference of two geometric numbers."""
    first, second = (np.floor(-scale * np.log(uniforms(shape, bits))) for _ in range(2))
    return np.asarray(first - second)


def poisson(means: Floats, draws: int, bits: Bits) -> Floats:
    """`draws` tables of independent Poisson numbers with these means."""
    u, angle = uniforms((2, draws, *means.shape), bits)
    normal = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * angle)
    drawn = np.rint(means + np.sqrt(means) * normal)
    for place in np.argwhere(means <= EXACT_TO):
        mean = means[tuple(place)]
        count = np.arange(int(mean + 12 * np.sqrt(mean)) + 30)
        chance = np.cumsum(np.exp(-mean + count * np.log(max(mean, 1e-300)) - _log_factorials(len(count))))
        drawn[:, *place] = np.searchsorted(chance, u[:, *place])
    return np.asarray(drawn)


def _log_factorials(count: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count)))])


DEPENDENCE_PAGE = "proofs/missing/dependence.md"
DRAWS = 1_999


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One look: its noisy table, which may be published, the statistic and its own p."""

    look: Look
    table: tuple[tuple[int, ...], ...]
    statistic: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All looks together. `p` is the least p times the number of looks: a small one speaks against MCAR."""

    seen: tuple[Seen, ...]
    p: float
    scale: Fraction
    claim: Claim
    is_private: bool


def ask_dependence(
    tables: Sequence[NDArray[np.int64]],
    looks: Sequence[Look],
    schema: Schema,
    *,
    epsilon: Fraction,
    noise: Noise,
    bits: Bits,
    change: Change = Change.ADD_REMOVE,
    draws: int = DRAWS,
) -> Verdict:
    """Noise on every cell of every table, then a test that knows the noise.

    Guarantee   epsilon-DP for one call.
    Adjacency   `change`, for a respondent of at most schema.at_most rows.
    Theorem     a row is in at most one cell of each table; Laplace noise in the L1 norm, then post-processing.
    Proof       proofs/missing/dependence.md
    Assumes     `looks` and epsilon were fixed without looking at rows; `tables` are what the engine counted for them.
    Keeps back  the exact tables.
    """
    _check_dependence(tables, looks, schema, draws)
    steps = Neighbours(replaced=change is Change.REPLACE, records=schema.at_most).steps
    reach = len(looks) * steps
    exact = [int(n) for table in tables for n in table.ravel()]
    noisy = np.array(noise.laplace_many(exact, sensitivity=reach, epsilon=epsilon), dtype=np.int64)
    scale = Fraction(reach) / epsilon
    ends = np.cumsum([table.size for table in tables])[:-1]
    parts = [
        part.reshape(look.shape(schema)) for part, look in zip(np.split(noisy, ends), looks, strict=True)
    ]
    seen = tuple(
        _seen(look, part, float(scale), draws, bits) for look, part in zip(looks, parts, strict=True)
    )
    return Verdict(
        seen=seen,
        p=min(1.0, len(seen) * min(each.p for each in seen)),
        scale=scale,
        claim=Claim(
            measure="pure",
            epsilon=epsilon,
            change=change,
            rests_on=(("the Laplace mechanism in the L1 norm", DEPENDENCE_PAGE),),
        ),
        is_private=noise.is_private,
    )


def _seen(look: Look, table: NDArray[np.int64], scale: float, draws: int, bits: Bits) -> Seen:
    reached, p = tail(table.astype(float), scale=scale, draws=draws, bits=bits)
    return Seen(look=look, table=tuple(tuple(map(int, line)) for line in table), statistic=reached, p=p)


def _check_dependence(
    tables: Sequence[NDArray[np.int64]], looks: Sequence[Look], schema: Schema, draws: int
) -> None:
    if not looks or len(set(looks)) < len(looks):
        raise PlanError("are at least one, each once.", field="looks")
    if [table.shape for table in tables] != [look.shape(schema) for look in looks]:
        raise PlanError("have the shapes of their looks, one for each.", field="tables")
    if draws < 99:
        raise PlanError("are at least 99.", field="draws")
