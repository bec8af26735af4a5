"""What every kind of query says of itself, the sums it is made of, and which rows it is about.

Whoever meets a query asks it, and does not look at its kind: which aggregates it wants, which columns it reads and which
decide who counts, in which unit the answer is, what goes with it in a plan. Its shape is one sum, a mean, squares about a
mean or products about two: answers with donors, with known totals and over copies are written for shapes, so that a new kind
which has one of them is answered by what is there. How it is answered is decided in `answer/route.py`. Everything here is
public: it follows from the query and the codebook.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from reticent.engine.wants import Rows, Sum, Table
from reticent.query.sides import Sides
from reticent.schema import Number, Schema
from reticent.schema.bind import AllOf, AnyOf, Bound, CodeIn, Negation, bind
from reticent.schema.predicate import Everyone, Predicate, columns_compared
from reticent.schema.replicates import REPLICATE


def listed(words: Iterable[str]) -> str:
    """`age, sex and wage`."""
    *first, last = [*words] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def centre_code(column: Number, centre: Fraction | None) -> int:
    """Twice the centre in grid steps: the midpoint of the bounds, or the plan's own public guess."""
    return column.low + column.high if centre is None else int(2 * centre / column.grid)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedSum:
    """One sum over rows: each adds its code in `number`, or 1 where there is no column."""

    sum: Sum
    number: Number | None = None

    @property
    def what(self) -> str:
        return "total" if self.number else "count"

    @property
    def low(self) -> Fraction:
        return self.number.lower if self.number else Fraction(0)

    @property
    def high(self) -> Fraction:
        return self.number.upper if self.number else Fraction(1)

    @property
    def grid(self) -> Fraction:
        return self.number.grid if self.number else Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedMean:
    """centre + (sum of answers less centre) / count. Without a column the answers are true and false, 1 and 0.

    `twice` is twice the centre in steps of the grid; with a public `size` the count is not measured.
    """

    count: Sum
    total: Sum
    twice: int
    number: Number | None = None
    size: int | None = None

    @property
    def low(self) -> Fraction:
        return self.number.lower if self.number else Fraction(0)

    @property
    def high(self) -> Fraction:
        return self.number.upper if self.number else Fraction(1)

    @property
    def half(self) -> Fraction:
        """Half a step of the grid: centred sums are counted in these."""
        return (self.number.grid if self.number else Fraction(1)) / 2

    @property
    def centre(self) -> Fraction:
        return self.twice * self.half


@dataclass(frozen=True, slots=True, kw_only=True)
class SquaresAboutMean:
    """The sum of squares about a mean that is measured first."""

    mean: CodedMean
    number: Number
    squares: Sum


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductsAboutMeans:
    """The sums of squares about two means, and of products about both."""

    means: tuple[CodedMean, CodedMean]
    numbers: tuple[Number, Number]


Shape = CodedSum | CodedMean | SquaresAboutMean | ProductsAboutMeans


AVAILABLE, COMPLETE = "available", "complete"
EVERYONE = Everyone()
COMMON = frozenset({"where", "weight", "per"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Subpopulation:
    """A condition, the base weight that counts, and what is done about missing cells.

    `available` keeps rows that are not missing on any column the ask uses; `complete` those not missing on any
    column of the codebook. A question that was not asked is not missing. `apart_by` are columns by which it is one of
    several that are asked about together, so that a respondent who answers otherwise there leaves it for another. `per` is
    what counts once, such as a household, where records do not.
    """

    where: Predicate = EVERYONE
    weight: str | None = None
    missing: str = AVAILABLE
    apart_by: tuple[str, ...] = ()
    per: str = ""

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
        everything = tuple(n for n, c in schema.coded.items() if c.role != REPLICATE)
        answered = values + ((self.weight,) if self.weight else ())
        known = everything if self.missing == COMPLETE else tuple(dict.fromkeys(compared))
        return Rows(where=condition, known=known, answered=answered)

    def bound(self, schema: Schema) -> Bound:
        found = bind(self.where, schema.coded, field="where")
        if not self.per or schema.first is None:
            return found
        return AllOf((found, CodeIn(schema.first, ((0, 0),))))

    @property
    def counted(self) -> str:
        """The unit of a number of them: respondents or households, weighted or not."""
        several = f"{self.per}s" if self.per else "respondents"
        return f"{several}, weighted" if self.weight else several

    def words(self, answered: Sequence[str] = (), had: str = "") -> str:
        """`respondents with age >= 18 who answered age and wage`, for a sentence.

        `answered` are the columns without whose answer nobody counts, beside those of the condition; `had` stands behind them.
        """
        several = f"{self.per}s" if self.per else "respondents"
        who = f"all {several}" if self.where == Everyone() else f"{several} with {self.where}"
        names = listed(dict.fromkeys((*columns_compared(self.where), *answered)))
        kept = (
            " who answered every question"
            if self.missing == COMPLETE
            else f" who answered {names}"
            if names
            else ""
        )
        weighted = f", weighted by {self.weight}" if self.weight else ""
        return f"{who}{kept}{had if kept else ''}{weighted}"


class Query(ABC):
    """A query of some kind. What is said here holds of most kinds; a kind says what is different with it.

    **Attributes of a kind**

    - `KEYS`: the keys by which a plan asks for it, each with the options that go with it.
    - `takes_size`: whether a public size can take the place of its noisy count.
    - `adds_up`: whether the answers for the pieces of a survey add up to that for the whole.
    - `counts_respondents`: whether the answer is a number of respondents, or of people.
    - `takes_domains`: whether it can be asked `by` domains.
    - `has_one_estimate`: whether the answer is one number, from which others can be derived.
    - `uses_cells`: whether it is derived from the cells of a table, and not from single estimates.
    - `is_variance`: whether the sampling error of a mean can be told from the answer.
    - `no_total`: why its sampling error cannot be told, where no plan could buy it.
    - `not_imputed`: what no theorem bounds where donors fill its columns, and what to ask for instead. It is said of kinds
      without a `shape`: those are refused there.
    """

    __slots__ = ()

    KEYS: ClassVar[Mapping[str, frozenset[str]]] = {}
    takes_size: ClassVar[bool] = False
    adds_up: ClassVar[bool] = False
    counts_respondents: ClassVar[bool] = False
    takes_domains: ClassVar[bool] = False
    has_one_estimate: ClassVar[bool] = True
    uses_cells: ClassVar[bool] = False
    is_variance: ClassVar[bool] = False
    no_total: ClassVar[str] = ""
    not_imputed: ClassVar[str] = "this of imputed answers; ask for a count, a total, a mean or a proportion."

    @property
    def weight(self) -> str | None:
        """The base weight that counts."""
        return None

    @property
    def apart_by(self) -> tuple[str, ...]:
        """The columns that tell the subpopulation from others that are asked about with it."""
        return ()

    @property
    def uses(self) -> tuple[str, ...]:
        """The statistics of the plan that it is derived from."""
        return ()

    @property
    def has_cells(self) -> bool:
        """Whether the answer is a table of counts with one noise in every cell, from whose cells others can be derived."""
        return False

    @property
    def sides(self) -> Sides:
        """The sides of its table; none where it has one estimate."""
        return Sides(columns=())

    def check_uses(self, used: Mapping[str, "Query"], schema: Schema, field: str) -> None:  # noqa: B027 - most use nothing
        """Refuse what the statistics it is derived from do not have."""

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Every condition in it."""
        return ()

    @property
    def values(self) -> frozenset[str]:
        """The columns whose answers are added up, or counted as true or false."""
        return frozenset()

    def wants(self, schema: Schema) -> tuple[Sum | Table, ...]:
        """The aggregates it is made of."""
        return ()

    def rows(self, schema: Schema) -> Rows | None:
        """The rows it counts; None where it reads none."""
        return None

    def decisive(self, schema: Schema, filled: frozenset[str]) -> frozenset[str]:
        """The columns whose answers decide who is a member, if those in `filled` are imputed."""
        return frozenset()

    def shape(self, schema: Schema) -> Shape | None:
        """The sums it is made of, where it is made of sums."""
        return None

    def expected(self, rows: int | None) -> Fraction | None:
        """The answer to expect where the plan expects so many rows and says no more; None where that says nothing."""
        return None

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        """The unit of the answer; `units` has those of the statistics above it."""
        return ""

    @abstractmethod
    def words(self, schema: Schema) -> str:
        """What is asked, for a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery(Query):
    """A query that reads the rows of a subpopulation."""

    among: Subpopulation

    @property
    def weight(self) -> str | None:
        return self.among.weight

    @property
    def apart_by(self) -> tuple[str, ...]:
        return self.among.apart_by

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return (self.among.where,)

    def rows(self, schema: Schema) -> Rows | None:
        return self.among.rows(schema)

    def decisive(self, schema: Schema, filled: frozenset[str]) -> frozenset[str]:
        return frozenset(columns_compared(self.among.where))
