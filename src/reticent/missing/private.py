"""A description of what is missing that may be published: noisy rates, missing answers per row, declared patterns."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, log, prod

from reticent.engine.patterns import MOST_COLUMNS, Patterns
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.privacy.claim import Change, Claim
from reticent.schema import Schema
from reticent.sensitivity.neighbours import Neighbours

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
    return tuple(name for name, column in schema.coded.items() if column.role != "weight")


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
