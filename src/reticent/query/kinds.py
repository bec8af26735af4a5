"""The kinds of query: count, total, mean, variance, correlation, proportion, quantile, cross-tabulation, difference and ratio.

Each lists the aggregates it wants, so that a whole plan can be tallied together. `Subpopulation` says which rows an ask is
about, when people did not answer everything.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from reticent.engine.wants import Key, Rows, Sum, Table, has_universe
from reticent.exact import show
from reticent.schema import Levels, Number, Schema
from reticent.schema.bind import AllOf, AnyOf, Bound, Negation, bind
from reticent.schema.predicate import Everyone, Predicate, columns_compared

AVAILABLE, COMPLETE = "available", "complete"
EVERYONE = Everyone()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subpopulation:
    """A condition, the base weight that counts, and what is done about missing cells.

    `available` keeps rows that are not missing on any column the ask uses; `complete` those not missing on any
    column of the codebook. A question that was not asked is not missing.
    """

    where: Predicate = EVERYONE
    weight: str | None = None
    missing: str = AVAILABLE

    def rows(
        self, schema: Schema, *, of: Predicate | None = None, true: bool = True, values: tuple[str, ...] = ()
    ) -> Rows:
        """The rows that count. With `of`, those where it is true, or (true=False) where it is decided."""
        condition = self.bound(schema)
        compared = list(columns_compared(self.where))
        if of is not None:
            compared += columns_compared(of)
            inner = bind(of, schema.coded, field="query")
            condition = AllOf((condition, inner if true else AnyOf((inner, Negation(inner)))))
        answered = values + ((self.weight,) if self.weight else ())
        known = tuple(schema.coded) if self.missing == COMPLETE else tuple(dict.fromkeys(compared))
        return Rows(where=condition, known=known, answered=answered)

    def bound(self, schema: Schema) -> Bound:
        return bind(self.where, schema.coded, field="where")

    def words(self) -> str:
        """`among respondents with age >= 18`, for a sentence."""
        who = "all respondents" if self.where == Everyone() else f"respondents with {self.where}"
        kept = "who answered every question" if self.missing == COMPLETE else "who answered what is used here"
        weighted = f", weighted by {self.weight}" if self.weight else ""
        return f"{who} {kept}{weighted}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many respondents (or how much weight) a subpopulation holds."""

    among: Subpopulation

    def count(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.count(schema),)

    def words(self, schema: Schema) -> str:
        return f"number of {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericQuery:
    """What total, mean and variance share: one numeric column and its power sums."""

    column: str
    among: Subpopulation

    def power(self, schema: Schema, power: int) -> Sum:
        rows = self.among.rows(schema, values=(self.column,))
        return Sum(rows=rows, value=self.column if power else None, power=power, weight=self.among.weight)

    def number(self, schema: Schema) -> Number:
        return schema.number(self.column, field="query")


@dataclass(frozen=True, slots=True, kw_only=True)
class Total(NumericQuery):
    """The sum of a numeric column."""

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.power(schema, 1),)

    def words(self, schema: Schema) -> str:
        return f"total of {self.column} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(NumericQuery):
    """The average of a numeric column: centre + (centred sum) / count."""

    centre: Fraction | None = None
    size: int | None = None

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.power(schema, 0), self.power(schema, 1))

    def words(self, schema: Schema) -> str:
        return f"mean of {self.column} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(NumericQuery):
    """The sample variance of a numeric column, about its released mean."""

    centre: Fraction | None = None
    size: int | None = None

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return tuple(self.power(schema, power) for power in (0, 1, 2))

    def words(self, schema: Schema) -> str:
        return f"variance of {self.column} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """The correlation of two numeric columns: a co-moment over the root of two variances, about released means."""

    columns: tuple[str, str]
    among: Subpopulation
    centres: tuple[Fraction | None, Fraction | None] = (None, None)
    size: int | None = None

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

    def numbers(self, schema: Schema) -> tuple[Number, Number]:
        y, z = self.columns
        return schema.number(y, field="query"), schema.number(z, field="query")

    def words(self, schema: Schema) -> str:
        return f"correlation of {' and '.join(self.columns)} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """The share of a subpopulation for which `of` is true, among those for whom it is decided."""

    of: Predicate
    among: Subpopulation
    size: int | None = None

    def decided(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema, of=self.of, true=False), weight=self.among.weight)

    def true(self, schema: Schema) -> Sum:
        return Sum(rows=self.among.rows(schema, of=self.of), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return (self.decided(schema), self.true(schema))

    def words(self, schema: Schema) -> str:
        return f"share with {self.of} among {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile:
    """A quantile of a numeric column, on a declared grid of candidates `step` apart."""

    column: str
    at: Fraction
    step: Fraction
    among: Subpopulation

    def table(self, schema: Schema) -> Table:
        column = schema.number(self.column, field="query")
        key = Key(column=self.column, step=int(self.step / column.grid))
        rows = self.among.rows(schema, values=(self.column,))
        return Table(rows=rows, keys=(key,), weight=self.among.weight)

    def wants(self, schema: Schema) -> tuple[Table, ...]:
        return (self.table(schema),)

    def words(self, schema: Schema) -> str:
        name = "median" if self.at == Fraction(1, 2) else f"{show(self.at)} quantile"
        return f"{name} of {self.column} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossTabulation:
    """A table over declared cells; each column has a cell for missing, and one for "not asked"
    where it has a universe."""

    columns: tuple[str, ...]
    among: Subpopulation
    bins: tuple[tuple[str, tuple[Fraction, ...]], ...] = field(default=())

    def table(self, schema: Schema) -> Table:
        rows = self.among.rows(schema)
        return Table(
            rows=rows, keys=tuple(self._key(schema, c) for c in self.columns), weight=self.among.weight
        )

    def _key(self, schema: Schema, name: str) -> Key:
        column = schema.coded[name]
        edges = dict(self.bins).get(name, ())
        starts = tuple(int(edge / column.grid) for edge in edges[:-1]) if isinstance(column, Number) else ()
        return Key(column=name, starts=starts, silent=True)

    def labels(self, schema: Schema, name: str) -> tuple[str, ...]:
        """The cells of one side, in order."""
        column = schema.coded[name]
        if isinstance(column, Levels):
            answers = column.levels
        else:
            edges = dict(self.bins)[name]
            answers = tuple(f"{show(a)} to under {show(b)}" for a, b in pairwise(edges))
            answers = (*answers[:-1], f"{show(edges[-2])} to {show(edges[-1])}")
        silent = ("(missing)", "(not asked)") if has_universe(schema, name) else ("(missing)",)
        return (*answers, *silent)

    def wants(self, schema: Schema) -> tuple[Table, ...]:
        return (self.table(schema),)

    def words(self, schema: Schema) -> str:
        return f"table of {' by '.join(self.columns)} over {self.among.words()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A difference or ratio of two other asks of the same plan. It reads no row and costs nothing."""

    kind: str
    of: tuple[str, str]

    def wants(self, schema: Schema) -> tuple[Sum, ...]:
        return ()

    def words(self, schema: Schema) -> str:
        joined = "minus" if self.kind == "difference" else "divided by"
        return f"{self.of[0]!r} {joined} {self.of[1]!r}"


Query = Count | Total | Mean | Variance | Correlation | Proportion | Quantile | CrossTabulation | Derived
