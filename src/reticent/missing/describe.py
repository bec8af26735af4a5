"""Description of item nonresponse: rates, patterns, complete rows, and how far answers go missing together.

Read off a survey, a description is CONFIDENTIAL: it is exact and no noise protects it. `private.py` has the other kind.
Which tables are looked at follows from the codebook alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.engine.confidential import Counted, Look, Patterns
from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError
from reticent.missing.private import public_columns
from reticent.schema import Schema

MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Description:
    """Patterns with their counts, most frequent first, and what follows from them."""

    patterns: Patterns = field(repr=False)
    per_row: tuple[int, ...] = field(repr=False)
    rates: tuple[float, ...] = field(repr=False)
    correlations: NDArray[np.float64] = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.patterns.columns

    @property
    def complete(self) -> float:
        """The share of rows without a missing answer."""
        return self.per_row[0] / max(1, sum(self.per_row))

    @property
    def independent(self) -> float:
        """The share that would be complete if answers were lost independently at the same rates."""
        return prod(1 - rate for rate in self.rates)

    @property
    def together(self) -> float:
        """The mean correlation of flags over pairs of columns that both vary; 0 where there is no such pair."""
        varies = np.flatnonzero([0 < rate < 1 for rate in self.rates])
        pairs = self.correlations[np.ix_(varies, varies)][np.triu_indices(len(varies), 1)]
        return float(pairs.mean()) if len(pairs) else 0.0

    def tidy(self) -> list[tuple[str, str, float]]:
        """One line for each number: what it is, of which columns, and the number."""
        lines = [("rate", name, rate) for name, rate in zip(self.columns, self.rates, strict=True)]
        lines += [("rows with so many missing", str(k), float(n)) for k, n in enumerate(self.per_row)]
        lines += [("pattern", _named(self.columns, missing), float(n)) for missing, n in self.patterns.counts]
        for i, j in zip(*np.triu_indices(len(self.columns), 1), strict=True):
            pair = f"{self.columns[i]} & {self.columns[j]}"
            lines.append(("correlation", pair, float(self.correlations[i, j])))
        return [
            *lines,
            ("complete rows", "", self.complete),
            ("complete rows if independent", "", self.independent),
            ("mean correlation", "", self.together),
        ]

    def text(self, asked: Mapping[str, float] | None = None) -> str:
        """The same for a terminal, without the longest lists; with rates among those `asked`, where these are known."""
        rows, width = max(1, self.patterns.rows), max(map(len, self.columns))
        rates = dict(zip(self.columns, self.rates, strict=True)) if asked is None else asked
        of = "all rows" if asked is None else "those who were asked"
        lines = [f"missing, as a share of {of}:"]
        lines += [f"{name:<{width}} {rates[name]:7.1%}" for name in self.columns]
        lines += [
            "",
            f"complete rows: {self.complete:.1%}; if answers were lost independently: {self.independent:.1%}",
        ]
        lines += [
            f"mean correlation of flags: {self.together:+.2f}",
            "",
            "common patterns (missing together), as shares of all rows:",
        ]
        for missing, count in self.patterns.counts[:MOST_SHOWN]:
            lines.append(f"{count / rows:7.1%}  {_named(self.columns, missing)}")
        return "\n".join(lines)


def describe(found: Patterns) -> Description:
    """What the patterns of a survey, or of a mask, say."""
    flags = np.array([[name in missing for name in found.columns] for missing, _ in found.counts], dtype=bool)
    flags = flags.reshape(len(found.counts), len(found.columns))
    counts = np.array([count for _, count in found.counts], dtype=np.int64)
    per_row = np.bincount(flags.sum(axis=1), weights=counts, minlength=len(found.columns) + 1)
    rates = counts @ flags / max(1, counts.sum())
    return Description(
        patterns=found,
        per_row=tuple(int(n) for n in per_row),
        rates=tuple(float(rate) for rate in rates),
        correlations=_correlations(flags, counts, rates),
    )


def patterns_of(mask: NDArray[np.bool_], columns: Sequence[str]) -> Patterns:
    """The patterns of a mask in an array."""
    if mask.ndim != 2 or mask.shape[1] != len(columns):
        raise PlanError("names every column of the mask.", field="columns")
    kinds, counts = np.unique(np.asarray(mask, dtype=bool), axis=0, return_counts=True)
    named = [
        (frozenset(name for name, is_missing in zip(columns, kind, strict=True) if is_missing), int(count))
        for kind, count in zip(kinds, counts, strict=True)
    ]
    order = sorted(named, key=lambda each: (-each[1], sorted(each[0])))
    return Patterns(columns=tuple(columns), counts=tuple(order))


def _correlations(
    flags: NDArray[np.bool_], counts: NDArray[np.int64], rates: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Correlations of the flags; 0 where either never varies, 1 with itself."""
    both = (flags * counts[:, None]).T @ flags / max(1, counts.sum())
    spread = np.sqrt(rates * (1 - rates))
    scale = np.outer(spread, spread)
    found = np.divide(both - np.outer(rates, rates), scale, out=np.zeros_like(scale), where=scale > 0)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _named(columns: Sequence[str], missing: frozenset[str]) -> str:
    return ", ".join(name for name in columns if name in missing) or "nothing"


GROUPS = 4
MOST = 4


def each_column(
    schema: Schema, columns: Sequence[str] | None = None, *, groups: int = GROUPS
) -> tuple[Look, ...]:
    """For each column, what it was answered against how many of the others are missing, 4 or more together.

    Others are counted only if everybody was asked. As many tables as columns, so the noise stays small.
    """
    names = public_columns(schema) if columns is None else tuple(columns)
    counted = [name for name in names if name in schema.coded and not has_universe(schema, name)]
    looks = []
    for name in names:
        among = tuple(other for other in counted if other != name)
        if among:
            key = grouped(schema, name, groups)
            looks.append(Look(given=key, among=among, most=min(MOST, len(among))))
    if not looks:
        raise PlanError("needs two columns that everybody is asked.", field="columns")
    return tuple(looks)


def pairs(schema: Schema, chosen: Sequence[tuple[str, str]], *, groups: int = GROUPS) -> tuple[Look, ...]:
    """For each pair (missing, given), whether the first is missing against what the second was answered."""
    for missing, given in chosen:
        schema.column(missing, field="pairs")
        if missing == given or has_universe(schema, missing):
            raise PlanError(
                f"{missing} is looked at against itself, or is not asked of everybody; choose another.",
                field="pairs",
            )
    return tuple(Look(given=grouped(schema, given, groups), among=(missing,)) for missing, given in chosen)


def grouped(schema: Schema, name: str, groups: int = GROUPS) -> Key:
    """At most `groups` groups of neighbouring codes, as equal as the public bounds allow."""
    if groups < 2:
        raise PlanError("is a whole number from 2 up.", field="groups")
    column = schema.column(name, field="columns")
    codes = column.high - column.low + 1
    few = min(groups, codes)
    return Key(column=name, starts=tuple(column.low + -(-i * codes // few) for i in range(few)))


def tables_of(
    codes: NDArray[np.integer], mask: NDArray[np.bool_], columns: Sequence[str], looks: Sequence[Look]
) -> list[Counted]:
    """What the engine would count, from codes in an array and a mask over them."""
    place = {name: k for k, name in enumerate(columns)}
    tables = []
    for look in looks:
        k, among = place[look.given.column], [place[name] for name in look.among]
        group = np.searchsorted(look.given.starts, codes[:, k], side="right") - 1
        silent = np.minimum(mask[:, among].sum(axis=1), look.most)
        shape = (look.most + 1, len(look.given.starts))
        cells = np.ravel_multi_index((silent, group), shape)[~mask[:, k]]
        tables.append(np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape))
    return tables
