"""Which tables are looked at, from the codebook alone, and the same tables from codes in an array."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reticent.engine.silences import Counted, Look
from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError
from reticent.missing.private import public_columns
from reticent.schema import Schema

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
