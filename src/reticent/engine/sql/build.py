"""SQL as a tree, in the words of a dialect. Names pass one gate; values travel as parameters (R13).

A `Dialect` has the words in which engines differ, in one place. It builds them as trees; nothing is translated afterwards.
Each method says what its result must be on every engine, since the same word means different things to them: a trim that
takes other blanks, a match that forgives a final newline, a cast that raises. Decisions 20 and 34 have the list. What stands
here serves most engines; one that differs has a class of its own beside its connection.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

Sql = exp.Expr
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,64}")  # a column's name behind one of our prefixes


def name(text: str) -> exp.Identifier:
    """The one gate for names: quoted, and refused unless plain."""
    if _NAME.fullmatch(text) is None:
        raise ValueError("a name for SQL is a letter or _, then letters, digits or _")
    return exp.Identifier(this=text, quoted=True)


def column(text: str) -> Sql:
    """A column by its quoted name."""
    return exp.Column(this=name(text))


def number(value: int) -> Sql:
    """A whole number of ours: a code, a bound or a step."""
    literal = exp.Literal.number(abs(value))
    return exp.Neg(this=literal) if value < 0 else literal


def numbers(values: Sequence[int]) -> Sql:
    """A list of whole numbers of ours."""
    return exp.Array(expressions=[number(each) for each in values])


class Values:
    """The parameters of one statement: text from a plan or codebook never becomes SQL.

    `secrets` are those that no log of the engine may hold, by the same names.
    """

    def __init__(self) -> None:
        self.bound: dict[str, object] = {}
        self.secrets: set[str] = set()

    def put(self, value: object) -> Sql:
        key = f"v{len(self.bound)}"
        self.bound[key] = value
        return exp.Placeholder(this=key)

    def put_secret(self, value: str) -> Sql:
        """The same for a key."""
        placeholder = self.put(value)
        self.secrets.add(placeholder.name)
        return placeholder


def call(function: str, *arguments: Sql) -> Sql:
    """A function by its name, printed as it is."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def case(branches: Iterable[tuple[Sql, Sql]], default: Sql | None = None) -> Sql:
    """The value of the first condition that holds; else `default`, NULL where none is given."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default) if ifs else (default or exp.Null())


def both(conditions: Sequence[Sql]) -> Sql:
    """All of the conditions; true where there is none."""
    return exp.and_(*conditions) if conditions else exp.true()


def is_null(value: Sql) -> Sql:
    """Whether a value is NULL."""
    return exp.Is(this=value, expression=exp.Null())


def not_null(value: Sql) -> Sql:
    """Whether a value is not NULL."""
    return exp.Not(this=is_null(value))


def among(value: Sql, options: Sequence[Sql]) -> Sql:
    """Whether a value is one of the options."""
    return exp.In(this=value, expressions=list(options))


def plus(left: Sql, right: Sql) -> Sql:
    """A sum, both sides in brackets."""
    return exp.Add(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def minus(left: Sql, right: Sql) -> Sql:
    """A difference, both sides in brackets."""
    return exp.Sub(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def times(left: Sql, right: Sql) -> Sql:
    """A product, both sides in brackets."""
    return exp.Mul(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def alias(value: Sql, text: str) -> Sql:
    """The value under a name of ours."""
    return exp.Alias(this=value, alias=name(text))


def select(columns: Sequence[Sql], source: exp.Select, where: Sql | None = None) -> exp.Select:
    """`columns` of `source`, which becomes part of the new statement: to use it twice, copy it."""
    query = exp.select(*columns, copy=False).from_(source.subquery("t", copy=False), copy=False)
    return query if where is None else query.where(where, copy=False)


HEX_DIGITS = 15  # 60 bits of a digest: a number without a sign that every engine holds
TURN = "turn_"  # the place of a row among those of its cell, the largest first


class Dialect(ABC):
    """The words of one engine. `name` is the printer's word for it; `int_div_sign` divides whole numbers, toward zero."""

    name: str
    int_div_sign: str
    seeks_in_lists = True
    """Whether a text is found in a list sooner than by comparing one by one."""

    def printed(self, tree: Sql, *, copy: bool = True) -> str:
        """The tree as the engine reads it. Without `copy` the tree is used up."""
        return tree.sql(self.name, copy=copy)

    def kind(self, name: str) -> exp.DataType:
        """A type by our name for it: BIGINT, INTEGER, DOUBLE, VARCHAR, DECIMAL(p, s), or one of this dialect's own."""
        return exp.DataType.build(name, dialect=self.name)

    def cast(self, value: Sql, to: str) -> Sql:
        """The value as that type. Only for values that have one there: what respondents wrote goes through `try_number`."""
        return exp.Cast(this=value, to=self.kind(to))

    def null(self) -> Sql:
        """A code that is missing, of the type that codes have."""
        return self.cast(exp.Null(), "BIGINT")

    def whole_part(self, left: Sql, right: int, *, wide: bool = False) -> Sql:
        """left // right for left >= 0 and right > 0; `wide` where left has the type `wide_int`."""
        return left if right == 1 else self.int_div(exp.Paren(this=left), number(right), wide=wide)

    def call(self, function: str, *arguments: Sql) -> Sql:
        """A function that has the same name and meaning everywhere."""
        return exp.Anonymous(this=function, expressions=list(arguments))

    @abstractmethod
    def wide_int(self) -> str:
        """Whole numbers of 126 bits and more, whose sums are exact or raise."""

    @abstractmethod
    def small_int(self, cells: int) -> str:
        """A narrow type that holds the numbers below `cells`, of which there are at most 2^16."""

    @abstractmethod
    def trim(self, text: Sql, blanks: str) -> Sql:
        """Without `blanks` at its ends, and no other character: an engine's own idea of a blank may hold U+00A0."""

    @abstractmethod
    def full_match(self, text: Sql, pattern: str) -> Sql:
        """Whether the whole text matches; a newline at its end is part of it."""

    @abstractmethod
    def replaced(self, text: Sql, pattern: str, by: str) -> Sql:
        """With the first match of `pattern` replaced; `\\1` in `by` is its first group."""

    def replaced_all(self, text: Sql, pattern: str, by: str) -> Sql:
        """With every match of `pattern` replaced by a text without groups."""
        words = (exp.Literal.string(word) for word in (pattern, by, "g"))
        return self.call("regexp_replace", text, *words)

    def translated(self, text: Sql, these: Sql, those: Sql) -> Sql:
        """Every character of `these` replaced by the one that stands in its place in `those`; no collation, no locale."""
        return self.call("translate", text, these, those)

    @abstractmethod
    def try_number(self, value: Sql, to: str) -> Sql:
        """A text as that type, NULL where it is none. It never raises: a respondent could stop a release (R01).

        Too large for a double is infinite, too small is 0; what lies between is rounded once.
        """

    def let(self, value: Sql, body: Callable[[Sql], Sql]) -> Sql:
        """The body, in which the value may stand many times; an engine that would compute it as often binds it to a name."""
        return body(value)

    @abstractmethod
    def text_of(self, value: Sql, source: str) -> Sql:
        """A cell of our type `source` as text. A double as its shortest digits, infinite ones as inf and -inf."""

    @abstractmethod
    def shown(self, x: Sql, places: int) -> Sql:
        """The decimal that a bounded double shows, halves away from 0 at `places`, in whole numbers of the last."""

    def tame(self, x: Sql) -> Sql:
        """A double that arithmetic cannot make raise, the same to twelve places."""
        return x

    def is_whole(self, x: Sql) -> Sql:
        """Whether a double is a whole number, however large; infinite ones are."""
        return exp.EQ(this=x.copy(), expression=self.call("floor", x.copy()))

    def clamped(self, value: Sql, low: int, high: int, known: Sql) -> Sql:
        """Between `low` and `high`; NULL where `known` is, which is just where the value is: least and greatest forget it."""
        below = exp.LT(this=value.copy(), expression=number(low))
        above = exp.GT(this=value.copy(), expression=number(high))
        return case([(below, number(low)), (above, number(high))], value.copy())

    def settled(self, rows: exp.Select) -> exp.Select:
        """The rows, each of whose columns is computed once however often it is used; an engine may have to be told."""
        return rows

    @abstractmethod
    def counted(self, raw: Sql, scale: int) -> Sql:
        """A decimal of at most 15 digits, `scale` of them decimals, as a count of its last digit, in 64 bits."""

    @abstractmethod
    def is_nan(self, value: Sql) -> Sql:
        """Whether a double is not a number."""

    @abstractmethod
    def int_div(self, left: Sql, right: Sql, *, wide: bool = False) -> Sql:
        """Whole numbers divided, toward zero; `wide` where they have the type `wide_int`."""

    @abstractmethod
    def position_in(self, values: Sql, value: Sql) -> Sql:
        """The first place of the value in a list, from 1, by bytes and no collation; NULL where it has none."""

    @abstractmethod
    def element_at(self, values: Sql, place: Sql) -> Sql:
        """What stands in that place of a list, from 1; NULL beyond its ends."""

    @abstractmethod
    def byte_length(self, text: Sql) -> Sql:
        """How many bytes the text has in UTF-8."""

    def total(self, value: Sql, largest: int) -> Sql:
        """The exact sum over up to 2^40 rows of whole numbers of at most `largest`, in either sign; NULL of no rows."""
        return exp.Sum(this=value)

    def turn(self, value: str, group: str) -> Sql | None:
        """What `top_k` needs beside each row, under the name `TURN`: its place in the group, the largest first. Or nothing."""
        order = exp.Order(expressions=[exp.Ordered(this=_column(value), desc=True, nulls_first=False)])
        return exp.Window(this=exp.RowNumber(), partition_by=[_column(group)], order=order)

    @abstractmethod
    def top_k(self, value: Sql, k: int) -> Sql:
        """The `k` largest values of a group as a list, falling. Rows have their `turn` where there is one."""

    @abstractmethod
    def digest(self, text: Sql) -> Sql:
        """The SHA-256 of the text in UTF-8, as 64 hexadecimal digits, which sort as bytes do."""

    @abstractmethod
    def digest60(self, digits: Sql, part: int = 0) -> Sql:
        """60 bits of a `digest` as a number: the first ones, or those of a later `part`."""

    def line_number(self) -> Sql:
        """The number of a row in a stored table, for the curator who wants rows back in their order. Nothing else may ask."""
        raise NotImplementedError("rows of this engine have no order")

    @abstractmethod
    def temp_table(self, name: str, statement: str) -> str:
        """A table of this connection alone, in place of one that has its name."""


def _column(name: str) -> Sql:
    return exp.Column(this=exp.Identifier(this=name, quoted=True))
