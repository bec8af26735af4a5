"""Rows of codes as numbers that a model can use: levels as yes and no, numbers on their own scale."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reticent.lab.trials.coding import HOLE, UNASKED, Codes
from reticent.schema import Levels, Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """How rows become numbers. Scales are those of the rows it was learned from, so that both sides are treated alike.

    `places` are the columns of a matrix of codes that are used. A column with an order is one number, less its mean, in
    standard deviations; one without an order has a column for each level. Who was not asked has a column where that can be.
    A cell without an answer is zero in all of them.
    """

    schema: Schema
    columns: tuple[str, ...]
    places: tuple[int, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]

    def of(self, codes: Codes) -> Floats:
        return np.concatenate([self.one(codes, i) for i in range(len(self.places))], axis=1)

    def one(self, rows: Codes, i: int) -> Floats:
        """The columns of the `i`-th of the places."""
        name, codes = self.columns[self.places[i]], rows[:, self.places[i]]
        told = answered(codes)
        if has_order(self.schema, name):
            parts = [np.where(told, (codes - self.means[i]) / self.deviations[i], 0.0)[:, None]]
        else:
            parts = [codes[:, None] == np.arange(self.schema.coded[name].high + 1)]
        if self.schema.columns[name].universe is not None:
            parts.append((codes == UNASKED)[:, None])
        return np.concatenate(parts, axis=1).astype(np.float64)


def has_order(schema: Schema, name: str) -> bool:
    """Numbers, ordinal levels, and two levels, which are ordered enough."""
    column = schema.coded[name]
    return not isinstance(column, Levels) or column.ordered or len(column.levels) == 2


def learn(codes: Codes, schema: Schema, columns: tuple[str, ...], places: Sequence[int]) -> Features:
    """Features of these places, with the scales of these rows."""
    answers = [codes[answered(codes[:, place]), place] for place in places]
    return Features(
        schema=schema,
        columns=columns,
        places=tuple(places),
        means=tuple(float(a.mean()) if len(a) else 0.0 for a in answers),
        deviations=tuple((float(a.std()) if len(a) else 0.0) or 1.0 for a in answers),
    )


def answered(codes: Codes) -> NDArray[np.bool_]:
    """Where an answer was given."""
    return np.asarray((codes != HOLE) & (codes != UNASKED))
