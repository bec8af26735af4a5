"""The words in which SQL engines differ, in one place: everything else in `sql/` is a tree that any of them can read.

Each function says what its result must be on every engine, since the same word means different things to them: a trim
that takes other blanks, a match that forgives a final newline, a cast that raises. Decision 20 has the list.
"""

from sqlglot import exp

Sql = exp.Expr

NAME = "duckdb"  # the printer's word for it
INT_DIV = "//"  # toward zero
HEX_DIGITS = 15  # 60 bits of a digest: a number without a sign that every engine holds


def printed(tree: Sql, *, copy: bool = True) -> str:
    """The tree as the engine reads it. Without `copy` the tree is used up."""
    return tree.sql(NAME, copy=copy)


def kind(name: str) -> exp.DataType:
    """A type by its name."""
    return exp.DataType.build(name, dialect=NAME)


def wide_int() -> str:
    """Whole numbers of 128 bits, whose sums are exact or raise."""
    return "HUGEINT"


def small_int(cells: int) -> str:
    """The narrowest type that holds the numbers below `cells`, of which there are at most 2^16."""
    return "UTINYINT" if cells <= 2**8 else "USMALLINT"


def trim(text: Sql, blanks: str) -> Sql:
    """Without `blanks` at its ends, and no other character: an engine's own idea of a blank may hold U+00A0."""
    return _call("trim", text, exp.Literal.string(blanks))


def full_match(text: Sql, pattern: str) -> Sql:
    """Whether the whole text matches; a newline at its end is part of it."""
    return _call("regexp_full_match", text, exp.Literal.string(pattern))


def replaced(text: Sql, pattern: str, by: str) -> Sql:
    """With the first match of `pattern` replaced; `\\1` in `by` is its first group."""
    return _call("regexp_replace", text, exp.Literal.string(pattern), exp.Literal.string(by))


def try_number(value: Sql, to: str) -> Sql:
    """The value as that type, NULL where it is none. It never raises: a respondent could stop a release (R01)."""
    return exp.TryCast(this=value, to=kind(to))


def is_nan(value: Sql) -> Sql:
    """Whether a double is not a number."""
    return _call("isnan", value)


def int_div(left: Sql, right: Sql) -> Sql:
    """Whole numbers divided, toward zero."""
    return exp.IntDiv(this=left, expression=right)


def position_in(values: Sql, value: Sql) -> Sql:
    """The first place of the value in a list, from 1, by bytes and no collation; NULL where it has none."""
    return _call("list_position", values, value)


def element_at(values: Sql, place: Sql) -> Sql:
    """What stands in that place of a list, from 1; NULL beyond its ends."""
    return _call("list_extract", values, place)


def byte_length(text: Sql) -> Sql:
    """How many bytes the text has in UTF-8."""
    return _call("strlen", text)


def top_k(value: Sql, k: Sql) -> Sql:
    """The `k` largest values of a group as a list, falling."""
    return _call("max", value, k)


def digest(text: Sql) -> Sql:
    """The SHA-256 of the text in UTF-8, as 64 hexadecimal digits."""
    return _call("sha256", text)


def digest60(digits: Sql, part: int = 0) -> Sql:
    """60 bits of a `digest` as a number: the first ones, or those of a later `part`."""
    size = exp.Literal.number(HEX_DIGITS)
    start = exp.Literal.number(1 + part * HEX_DIGITS)
    cut = _call("substr", digits, start, size) if part else _call("left", digits, size)
    return try_number(exp.DPipe(this=exp.Literal.string("0x"), expression=cut), "BIGINT")


def line_number() -> Sql:
    """The number of a row in a stored table, for the curator who wants rows back in their order. Nothing else may ask."""
    return exp.Column(this=exp.Identifier(this="rowid", quoted=True))


def temp_table(name: str, statement: str) -> str:
    """A table of this connection alone, in place of one that has its name."""
    return f"CREATE OR REPLACE TEMP TABLE {name} AS {statement}"


def _call(function: str, *arguments: Sql) -> Sql:
    return exp.Anonymous(this=function, expressions=list(arguments))
