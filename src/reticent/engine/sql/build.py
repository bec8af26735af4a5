"""Small words for building SQL as a tree. Names pass one gate; values travel as parameters (R13)."""

import re
from collections.abc import Iterable, Sequence

from sqlglot import exp

Sql = exp.Expr
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,64}")  # a column's name behind one of our prefixes


def name(text: str) -> exp.Identifier:
    """The one gate for names: quoted, and refused unless plain."""
    if _NAME.fullmatch(text) is None:
        raise ValueError("a name for SQL is a letter or _, then letters, digits or _")
    return exp.Identifier(this=text, quoted=True)


def column(text: str) -> Sql:
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
    return exp.Anonymous(this=function, expressions=list(arguments))


def case(branches: Iterable[tuple[Sql, Sql]], default: Sql | None = None) -> Sql:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default) if ifs else (default or exp.Null())


def both(conditions: Sequence[Sql]) -> Sql:
    """All of the conditions; true where there is none."""
    return exp.and_(*conditions) if conditions else exp.true()


def is_null(value: Sql) -> Sql:
    return exp.Is(this=value, expression=exp.Null())


def not_null(value: Sql) -> Sql:
    return exp.Not(this=is_null(value))


def among(value: Sql, options: Sequence[Sql]) -> Sql:
    return exp.In(this=value, expressions=list(options))


def plus(left: Sql, right: Sql) -> Sql:
    return exp.Add(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def minus(left: Sql, right: Sql) -> Sql:
    return exp.Sub(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def times(left: Sql, right: Sql) -> Sql:
    return exp.Mul(this=exp.Paren(this=left), expression=exp.Paren(this=right))


def alias(value: Sql, text: str) -> Sql:
    """The value under a name of ours."""
    return exp.Alias(this=value, alias=name(text))


def select(columns: Sequence[Sql], source: exp.Select, where: Sql | None = None) -> exp.Select:
    """`columns` of `source`, which becomes part of the new statement: to use it twice, copy it."""
    query = exp.select(*columns, copy=False).from_(source.subquery("t", copy=False), copy=False)
    return query if where is None else query.where(where, copy=False)
