"""The kinds of query: count, total, mean, variance, correlation, proportion, quantile, cross-tabulation, difference and ratio.

Each lists the aggregates it wants, so that a whole plan can be tallied together, says what `Query` asks of a kind, and reads
itself from the words of a plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import ClassVar, Self

from reticent.engine.wants import MOST_CELLS, Key, Rows, Sum, Table, has_universe
from reticent.errors import PlanError
from reticent.exact import show
from reticent.query.base import (
    COMMON,
    EVERYONE,
    CodedMean,
    CodedSum,
    ProductsAboutMeans,
    Query,
    RowQuery,
    Shape,
    SquaresAboutMean,
    centre_code,
)
from reticent.query.cells import FromCells
from reticent.query.sides import BinEdges, Sides
from reticent.query.written import WrittenQuery
from reticent.schema import Levels, Number, Schema
from reticent.schema.predicate import Predicate, columns_compared

Keys = Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(RowQuery):
    """How many respondents (or how much weight) a subpopulation holds."""

    KEYS: ClassVar[Keys] = {"count": COMMON}
    takes_domains: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    counts_respondents: ClassVar[bool] = True

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        if written.value != "*":
            raise PlanError(
                'counts respondents: write count = "*" and put the condition into where', field=written.field
            )
        return cls(among=written.among)

    def count(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema), weight=self.among.weight)

    def decided(self, schema: Schema) -> Sum:
        """The rows that can be said to be in or out."""
        everybody = replace(self.among, where=EVERYONE)
        return Sum(rows=everybody.rows(schema, of=self.among.where, true=False), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.count(schema),)

    def shape(self, schema: Schema) -> Shape:
        return CodedSum(sum=self.count(schema))

    def expected(self, rows: int | None) -> Fraction | None:
        """Those of everybody: how many a condition keeps, or how many records a household has, nobody has said."""
        is_everybody = self.among.where == EVERYONE and not self.among.per
        return Fraction(rows) if rows and is_everybody else None

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return self.among.counted

    def words(self, schema: Schema) -> str:
        return f"number of {self.among.words()}"


def sized_words(size: int | None, weight: str | None) -> str:
    """That a public size is divided by, and whether it is respondents or weight; nothing where there is none."""
    if size is None:
        return ""
    return f", divided by a public {'weight' if weight else 'number of respondents'} of {size:,}"


def scale_words(schema: Schema, column: str) -> str:
    """That the levels of an ordinal column stand at their positions; nothing of a number."""
    return ", levels taken at their positions" if isinstance(schema.coded[column], Levels) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericQuery(RowQuery):
    """What total, mean and variance share: one numeric column and its power sums."""

    column: str

    @property
    def values(self) -> frozenset[str]:
        return frozenset({self.column})

    def power(self, schema: Schema, power: int) -> Sum:
        rows = self.among.rows(schema, values=(self.column,))
        return Sum(rows=rows, value=self.column if power else None, power=power, weight=self.among.weight)

    def decided(self, schema: Schema) -> Sum:
        """The rows that count."""
        return self.power(schema, 0)

    def rows(self, schema: Schema) -> Rows | None:
        return self.power(schema, 0).rows

    def number(self, schema: Schema) -> Number:
        return schema.scale(self.column, field="query")

    @property
    def _over(self) -> str:
        """Who counts, in words."""
        return self.among.words((self.column,))

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return schema.columns[self.column].unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(NumericQuery):
    """The sum of a numeric column."""

    KEYS: ClassVar[Keys] = {"total": COMMON}
    takes_domains: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        return cls(column=written.scale(written.value).name, among=written.among)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.power(schema, 1),)

    def shape(self, schema: Schema) -> Shape:
        return CodedSum(sum=self.power(schema, 1), number=self.number(schema))

    def words(self, schema: Schema) -> str:
        return f"total of {self.column} over {self._over}{scale_words(schema, self.column)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CentredQuery(NumericQuery):
    """What mean and variance share: a public centre, and a public size or a noisy count."""

    takes_size: ClassVar[bool] = True

    centre: Fraction | None = None
    size: int | None = None

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        column = written.scale(written.value)
        centre = written.own_centre(column)
        return cls(column=column.name, among=written.among, centre=centre, size=written.size)

    def mean(self, schema: Schema) -> CodedMean:
        """The mean of the column, as it is measured."""
        column = self.number(schema)
        return CodedMean(
            count=self.power(schema, 0),
            total=self.power(schema, 1),
            twice=centre_code(column, self.centre),
            number=column,
            size=self.size,
        )

    def _said(self, schema: Schema) -> str:
        return scale_words(schema, self.column) + sized_words(self.size, self.among.weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(CentredQuery):
    """The average of a numeric column: centre + (centred sum) / count."""

    KEYS: ClassVar[Keys] = {"mean": COMMON | {"centre"}}
    takes_domains: ClassVar[bool] = True

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.power(schema, 0), self.power(schema, 1))

    def shape(self, schema: Schema) -> Shape:
        return self.mean(schema)

    def words(self, schema: Schema) -> str:
        return f"mean of {self.column} over {self._over}{self._said(schema)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(CentredQuery):
    """The sample variance of a numeric column, about its released mean."""

    KEYS: ClassVar[Keys] = {"variance": COMMON | {"centre"}}
    takes_domains: ClassVar[bool] = True
    is_variance: ClassVar[bool] = True
    no_total: ClassVar[str] = (
        "the sampling error of a variance rests on fourth moments, which are not released; ask for quantiles with an "
        "interval, which have a total"
    )

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return tuple(self.power(schema, power) for power in (0, 1, 2))

    def shape(self, schema: Schema) -> Shape:
        squares = self.power(schema, 2)
        return SquaresAboutMean(mean=self.mean(schema), number=self.number(schema), squares=squares)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        unit = schema.columns[self.column].unit
        return f"{unit} squared" if unit else ""

    def words(self, schema: Schema) -> str:
        return f"variance of {self.column} over {self._over}{self._said(schema)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation(RowQuery):
    """The correlation of two numeric columns: a co-moment over the root of two variances, about released means."""

    KEYS: ClassVar[Keys] = {"correlation": COMMON | {"centres"}}
    takes_size: ClassVar[bool] = True
    no_total: ClassVar[str] = (
        "the sampling error of a correlation rests on fourth moments, which are not released; a [[regression]] has total "
        "intervals for its slopes"
    )

    columns: tuple[str, str]
    centres: tuple[Fraction | None, Fraction | None] = (None, None)
    size: int | None = None

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        named = written.value
        if not isinstance(named, list) or len(named) != 2 or named[0] == named[1]:
            raise PlanError('names two columns: correlation = ["income", "age"]', field=written.field)
        y, z = (written.number(name) for name in named)
        centres = written.raw.get("centres", [None, None])
        if not isinstance(centres, list) or len(centres) != 2:
            raise PlanError("gives one centre for each column", field=f"{written.field}.centres")
        near, far = (written.centre(column, text) for text, column in zip(centres, (y, z), strict=True))
        return cls(columns=(y.name, z.name), among=written.among, centres=(near, far), size=written.size)

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.columns)

    def moment(self, schema: Schema, first: int = 0, second: int = 0) -> Sum:
        """The sum of first column^first x second column^second, over those who answered both."""
        y, z = self.columns
        rows, weight = self.among.rows(schema, values=self.columns), self.among.weight
        if first and second:
            return Sum(rows=rows, value=y, power=first, weight=weight, other=z)
        value = y if first else z if second else None
        return Sum(rows=rows, value=value, power=first + second, weight=weight)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        powers = ((0, 0), (1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
        return tuple(self.moment(schema, *each) for each in powers)

    def rows(self, schema: Schema) -> Rows | None:
        return self.moment(schema).rows

    def numbers(self, schema: Schema) -> tuple[Number, Number]:
        y, z = self.columns
        return schema.number(y, field="query"), schema.number(z, field="query")

    def shape(self, schema: Schema) -> Shape:
        y, z = self.numbers(schema)
        count = self.moment(schema)
        first, second = (
            CodedMean(count=count, total=total, twice=centre_code(n, c), number=n, size=self.size)
            for n, c, total in zip(
                (y, z), self.centres, (self.moment(schema, 1, 0), self.moment(schema, 0, 1)), strict=True
            )
        )
        return ProductsAboutMeans(means=(first, second), numbers=(y, z))

    def words(self, schema: Schema) -> str:
        sized = sized_words(self.size, self.among.weight)
        return f"correlation of {' and '.join(self.columns)} over {self.among.words(self.columns)}{sized}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion(RowQuery):
    """The share of a subpopulation for which `of` is true, among those for whom it is decided."""

    KEYS: ClassVar[Keys] = {"proportion": COMMON}
    takes_domains: ClassVar[bool] = True
    takes_size: ClassVar[bool] = True

    of: Predicate
    size: int | None = None

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        return cls(of=written.predicate(), among=written.among, size=written.size)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return (self.among.where, self.of)

    @property
    def values(self) -> frozenset[str]:
        return frozenset(columns_compared(self.of))

    def decided(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema, of=self.of, true=False), weight=self.among.weight)

    def true(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema, of=self.of), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.decided(schema), self.true(schema))

    def rows(self, schema: Schema) -> Rows | None:
        """Those where it is decided."""
        return self.decided(schema).rows

    def decisive(self, schema: Schema, filled: frozenset[str]) -> frozenset[str]:
        """Whether `of` is decided can depend on a filled column only next to another column that may be structural
        and leave it open: columns compared are known, and a structural cell is the record's own."""
        compared = columns_compared(self.of)
        open_ = {name for name in compared if has_universe(schema, name)}
        deciding = {name for name in compared if name in filled and open_ - {name}}
        return frozenset(columns_compared(self.among.where)) | deciding

    def shape(self, schema: Schema) -> Shape:
        return CodedMean(count=self.decided(schema), total=self.true(schema), twice=1, size=self.size)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return "share"

    def words(self, schema: Schema) -> str:
        among = self.among.words(columns_compared(self.of))
        return f"share with {self.of} among {among}{sized_words(self.size, self.among.weight)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(RowQuery):
    """A quantile of a numeric column, on a declared grid of candidates `step` apart.

    Of an ordinal column its levels are the candidates; with `banded`, the pieces of `step` that its bands are cut into, as if
    answers lay evenly in a band.
    """

    KEYS: ClassVar[Keys] = {"median": COMMON | {"step"}, "quantile": COMMON | {"step", "at"}}
    takes_domains: ClassVar[bool] = True
    no_total: ClassVar[str] = (
        "the sampling error of a quantile is bought with its interval: give interval an epsilon, and, where it is weighted, "
        "let [design] buy the factor, which tells what a weight stands for in respondents"
    )
    not_imputed: ClassVar[str] = (
        "a quantile of imputed answers; ask for its mean, or for the proportion below a value."
    )

    column: str
    at: Fraction
    step: Fraction
    banded: bool = False

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        column = written.scale(written.value)
        at = Fraction(1, 2) if written.key == "median" else written.decimal("at")
        if at is None or not 0 < at < 1:
            raise PlanError('needs at = "0.25", a decimal strictly between 0 and 1', field=written.field)
        levels = written.schema.coded[column.name]
        if isinstance(levels, Levels):
            cut = written.band_step(levels)
            step, banded = cut or column.grid, cut is not None
        else:
            step, banded = written.step(column), False
        return cls(column=column.name, at=at, step=step, banded=banded, among=written.among)

    def candidates(self, schema: Schema) -> list[Fraction]:
        """The values among which one is chosen, in order: of a piece of a band its middle."""
        column = schema.coded[self.column]
        if isinstance(column, Number):
            number = self.table(schema).size(schema)
            return [min(column.upper, column.lower + place * self.step) for place in range(number)]
        if not self.banded:
            return list(column.positions)
        return [
            low + self.step * place + self.step / 2
            for (low, _), pieces in zip(pairwise(column.bands), self._pieces(schema), strict=True)
            for place in range(pieces)
        ]

    def _pieces(self, schema: Schema) -> list[int]:
        """Into how many pieces each band is cut."""
        column = schema.coded[self.column]
        bands = column.bands if isinstance(column, Levels) else ()
        return [int((high - low) / self.step) for low, high in pairwise(bands)]

    def parts_of_one(self, schema: Schema) -> int:
        """Of how many parts a record's weight is, so that those on pieces of a band are whole."""
        return lcm(*self._pieces(schema)) if self.banded else 1

    def spread(self, cells: tuple[int, ...], schema: Schema) -> tuple[int, ...]:
        """The weight on every candidate, in such parts: that of a band evenly on its pieces."""
        if not self.banded:
            return cells
        fine = self.parts_of_one(schema)
        pieces = self._pieces(schema)
        return tuple(
            cell * (fine // each) for cell, each in zip(cells, pieces, strict=True) for _ in range(each)
        )

    @property
    def values(self) -> frozenset[str]:
        return frozenset({self.column})

    def table(self, schema: Schema) -> Table:
        column = schema.coded[self.column]
        key = Key(column=self.column)
        if isinstance(column, Number):
            key = Key(column=self.column, step=int(self.step / column.grid))
        rows = self.among.rows(schema, values=(self.column,))
        return Table(rows=rows, keys=(key,), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Table, ...]:
        return (self.table(schema),)

    def rows(self, schema: Schema) -> Rows | None:
        return self.table(schema).rows

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return schema.columns[self.column].unit

    def words(self, schema: Schema) -> str:
        name = "median" if self.at == Fraction(1, 2) else f"{show(self.at)} quantile"
        return f"{name} of {self.column} over {self.among.words((self.column,))}{self._scale(schema)}"

    def _scale(self, schema: Schema) -> str:
        """How an ordinal column's quantile is told."""
        column = schema.coded[self.column]
        if self.banded:
            return ", interpolated as if answers lay evenly within bands"
        if isinstance(column, Levels) and column.bands:
            return ", told by the position of its band; a step in the query interpolates within bands"
        return scale_words(schema, self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossTabulation(RowQuery):
    """A table over declared cells; each column has a cell for missing, and one for "not asked"
    where it has a universe."""

    KEYS: ClassVar[Keys] = {"table": COMMON | {"bins"}}
    adds_up: ClassVar[bool] = True
    counts_respondents: ClassVar[bool] = True
    has_one_estimate: ClassVar[bool] = False
    not_imputed: ClassVar[str] = (
        "a table of imputed answers; ask for counts or proportions, one cell at a time."
    )

    columns: tuple[str, ...]
    bins: BinEdges = ()

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        sides = written.sides(written.value, like='table = ["sex", "region"]')
        query = cls(columns=sides.columns, among=written.among, bins=sides.bins)
        if sides.size(written.schema) > MOST_CELLS:
            raise PlanError(
                f"has more than {MOST_CELLS} cells; drop a column or use wider bins", field=written.field
            )
        return query

    @property
    def sides(self) -> Sides:
        return Sides(columns=self.columns, bins=self.bins)

    @property
    def has_cells(self) -> bool:
        return True

    @property
    def values(self) -> frozenset[str]:
        return frozenset(self.columns)

    def table(self, schema: Schema) -> Table:
        return Table(rows=self.among.rows(schema), keys=self.sides.keys(schema), weight=self.among.weight)

    def labels(self, schema: Schema, name: str) -> tuple[str, ...]:
        """The cells of one side, in order."""
        return self.sides.labels(schema, name)

    def wants(self, schema: Schema) -> tuple[Table, ...]:
        return (self.table(schema),)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return self.among.counted

    def words(self, schema: Schema) -> str:
        return f"table of {' by '.join(self.columns)} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived(Query):
    """A difference or ratio of two other asks of the same plan. It reads no row and costs nothing."""

    KEYS: ClassVar[Keys] = {"difference": frozenset(), "ratio": frozenset()}

    kind: str
    of: tuple[str, str]

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        names = written.value
        if not isinstance(names, list) or len(names) != 2 or not all(isinstance(n, str) for n in names):
            raise PlanError("names two statistics of this plan", field=written.field)
        return cls(kind=written.key, of=(names[0], names[1]))

    @property
    def uses(self) -> tuple[str, ...]:
        return self.of

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        """That of both, for a difference of two in one unit."""
        found = {units[name] for name in self.of}
        return found.pop() if self.kind == "difference" and len(found) == 1 else ""

    def words(self, schema: Schema) -> str:
        joined = "minus" if self.kind == "difference" else "divided by"
        return f"{self.of[0]!r} {joined} {self.of[1]!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnservedRecipients(Query):
    """How many recipients no capped donor served, so that the default stands in for them: did the caps suffice?"""

    KEYS: ClassVar[Keys] = {"unserved": frozenset()}

    column: str

    @classmethod
    def read(cls, written: WrittenQuery) -> Self:
        if not isinstance(written.value, str) or written.value not in written.schema.coded:
            raise PlanError('names a column that donors fill: unserved = "wage"', field=written.field)
        return cls(column=written.value)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return "respondents"

    def words(self, schema: Schema) -> str:
        return f"number of recipients whom no donor served with {self.column}, so that the default stands in"


AnyQuery = (
    Count
    | Total
    | Mean
    | Variance
    | Correlation
    | Proportion
    | Quantile
    | CrossTabulation
    | Derived
    | FromCells
    | UnservedRecipients
)

KINDS: tuple[type[AnyQuery], ...] = (
    Count,
    Total,
    Proportion,
    Mean,
    Variance,
    Correlation,
    Quantile,
    CrossTabulation,
    Derived,
    FromCells,
    UnservedRecipients,
)
"""Every kind there is; its key in a plan leads to it."""
