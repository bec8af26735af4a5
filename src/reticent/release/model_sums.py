"""What a model asks of the rows: sums of products of its features, as its design takes them. Reads no row itself."""

from collections.abc import Mapping

from reticent.engine.results import SufficientStatistics
from reticent.engine.wants import ALWAYS, Rows, Sum
from reticent.models.design import Bounded, RegressionDesign
from reticent.models.sums import Sums
from reticent.predicate.bind import AllOf, Bound, CodeIn
from reticent.release.model_repair import Feature, ModelRepair
from reticent.schema import Schema

Wanted = Mapping[tuple[int, int], Sum | None]


def design_of(model: ModelRepair, schema: Schema) -> RegressionDesign:
    """The model's columns with their public bounds. The number of rows is that of complete ones: not public."""
    predictors = tuple(Bounded(name=f.name, low=f.low, high=f.high, grid=f.grid) for f in model.features)
    return RegressionDesign(predictors=predictors, response=Bounded.of(schema.coded[model.column]))


def products(model: ModelRepair) -> Wanted:
    """What an engine must sum for each pair of columns; 0 is the count. Two levels of one column never meet."""
    names = (*model.predictors, model.column)
    sides = [None, *model.features, Feature(column=model.column, low=0, high=1)]
    size = len(sides)
    return {(i, j): _product(sides[i], sides[j], names) for i in range(size) for j in range(i, size)}


def _product(a: Feature | None, b: Feature | None, names: tuple[str, ...]) -> Sum | None:
    levels = list(dict.fromkeys((f.column, f.level) for f in (a, b) if f and f.level is not None))
    values = [f.column for f in (a, b) if f and f.level is None]
    if len(levels) == 2 and levels[0][0] == levels[1][0]:
        return None
    held: list[Bound] = [CodeIn(name, ((level, level),)) for name, level in levels]
    where = AllOf(tuple(held)) if len(held) > 1 else held[0] if held else ALWAYS
    rows = Rows(where=where, answered=names)
    if not values:
        return Sum(rows=rows)
    if len(values) == 2 and values[0] != values[1]:
        return Sum(rows=rows, value=values[0], power=1, other=values[1])
    return Sum(rows=rows, value=values[0], power=len(values))


def sums_of(design: RegressionDesign, wanted: Wanted, found: SufficientStatistics) -> Sums:
    """Sums of products of z = 2 code - m, from those of codes: all whole."""
    raw = {at: found[want] if want else 0 for at, want in wanted.items()}
    middle = [0, *(design.centre(column) for column in design.columns)]
    twice = [1, *[2] * len(design.columns)]
    size = len(middle)
    table = [[0] * size for _ in range(size)]
    for (i, j), both in raw.items():
        # (s a - m)(t b - n) = st ab - sn a - tm b + mn, where 1 stands for the count
        ends = twice[i] * middle[j] * raw[0, i] + twice[j] * middle[i] * raw[0, j]
        whole = twice[i] * twice[j] * both - ends + middle[i] * middle[j] * raw[0, 0]
        table[i][j] = table[j][i] = whole
    return Sums(design=design, products=tuple(map(tuple, table)))
