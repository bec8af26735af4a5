"""Fit the private chances of a column with levels, and make them what an engine can follow and a release tells."""

from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reticent.decimals import show
from reticent.engine.choose import keys_of
from reticent.engine.results import ContingencyTable
from reticent.engine.wants import Key, Rows, Table
from reticent.models.sources import ModelNoise
from reticent.models.tabled import TableDesign, TabledFit, fit_table
from reticent.noise.bits import Bits, words
from reticent.prepare.chances import WHOLE, Chances
from reticent.release import class_repair
from reticent.release.class_repair import TABLE, ClassRepair
from reticent.schema import Levels, Schema
from reticent.sensitivity.neighbours import Neighbours


def design_of(model: ClassRepair, schema: Schema) -> TableDesign:
    """The model's table."""
    response = schema.coded[model.column]
    if not isinstance(response, Levels):
        raise TypeError("chances are for columns with levels")
    return class_repair.design_of(model.sides, response, schema, field=model.column)


def table_of(model: ClassRepair) -> Table:
    """What an engine must count: every cell of the predictors by every level, of those who answered."""
    keys = (*keys_of(model.sides), Key(column=model.column))
    return Table(rows=Rows(answered=(model.column,)), keys=keys)


def fit_classes(
    model: ClassRepair, schema: Schema, found: ContingencyTable, *, neighbours: Neighbours, noise: ModelNoise
) -> TabledFit:
    """The chances of every cell, for the model's epsilon."""
    design = design_of(model, schema)
    return fit_table(design, found.cells, epsilon=model.epsilon, neighbours=neighbours, noise=noise)


def chances_of(model: ClassRepair, fit: TabledFit, schema: Schema, *, bits: Bits) -> Chances:
    """The released chances in whole steps. Post-processing: reads no row."""
    column = schema.coded[model.column]
    rows = [_reached(row) if model.draws else _mode(row) for row in fit.chances.tolist()]
    return Chances(
        column=model.column,
        low=column.low,
        high=column.high,
        sides=model.sides,
        steps=tuple(zip(*rows, strict=True)),
        draw=partial(_uniform, bits=bits) if model.draws else None,
    )


def _reached(chances: list[float]) -> list[int]:
    """At which number of the draw each level but the first begins."""
    return [min(round(WHOLE * upto), WHOLE) for upto in accumulate(chances[:-1])]


def _mode(chances: list[float]) -> list[int]:
    """The same, so that every number reaches the likeliest level; the first of several."""
    best = chances.index(max(chances))
    return [0 if level < best else WHOLE for level in range(len(chances) - 1)]


def _uniform(n: int, *, bits: Bits) -> NDArray[np.int32]:
    return (words(n, bits) >> np.uint64(64 - 19)).astype(np.int32) if n else np.zeros(0, np.int32)


def told_classes(model: ClassRepair, fit: TabledFit, schema: Schema) -> dict[str, Any]:
    """What a release says of its chances: of each level in each cell, to four digits."""
    return {
        "column": model.column,
        "words": model.words(),
        "estimator": TABLE,
        "epsilon": show(model.epsilon),
        "given": list(model.predictors),
        "chances": [[round(chance, 4) for chance in row] for row in fit.chances.tolist()],
        "guarantee": {"words": str(fit.claim), **fit.claim.as_dict()},
    }
