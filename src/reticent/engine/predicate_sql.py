"""A bound predicate as SQL, with the three-valued meaning it has in Python.

SQL's `and`, `or` and `not` are Kleene's already; what is left is to keep a comparison unknown where there is no
code. Only integers and the caller's expressions enter, so no text of a plan or codebook can reach the engine.
"""

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from reticent.predicate.bind import AllOf, Always, AnyOf, Bound, CodeIn, Is, Negation, Ranges

Sql: TypeAlias = exp.Expression
OfColumn: TypeAlias = Callable[[str], exp.Expr]


def render(bound: Bound, code: OfColumn, missing: OfColumn, structural: OfColumn) -> Sql:
    """A boolean expression: true, false, or NULL where the predicate is unknown.

    `code` gives a column's integer code, NULL exactly where the cell is missing or structural; `missing` and
    `structural` give booleans that are never NULL. Each is called once for every place it is used.
    """
    match bound:
        case CodeIn(column=name, ranges=ranges):
            return _code_in(lambda: _atom(code(name)), ranges)
        case Is(column=name, kind="answered"):
            return exp.Not(this=exp.Is(this=_atom(code(name)), expression=exp.Null()))
        case Is(column=name, kind=kind):
            return _atom(missing(name) if kind == "missing" else structural(name))
        case AllOf(parts=parts):
            return _chain(exp.And, [render(part, code, missing, structural) for part in parts])
        case AnyOf(parts=parts):
            return _chain(exp.Or, [render(part, code, missing, structural) for part in parts])
        case Negation(part=part):
            return exp.Not(this=_atom(render(part, code, missing, structural)))
        case Always():
            return exp.true()


def _code_in(code: Callable[[], Sql], ranges: Ranges) -> Sql:
    """The fewest comparisons: `=` for one value, IN for several, BETWEEN for each range."""
    singles = [low for low, high in ranges if low == high]
    wide = [_between(code(), low, high) for low, high in ranges if low < high]
    if not ranges:
        # No code matches, yet a cell without a code stays unknown: x <> x is false, or NULL.
        return exp.NEQ(this=code(), expression=code())
    if len(singles) == 1:
        wide.append(exp.EQ(this=code(), expression=_number(singles[0])))
    elif singles:
        wide.append(exp.In(this=code(), expressions=[_number(value) for value in singles]))
    return _chain(exp.Or, wide)


def _between(code: Sql, low: int, high: int) -> Sql:
    return exp.Between(this=code, low=_number(low), high=_number(high))


def _number(value: int) -> Sql:
    return exp.Literal.number(value)


def _chain(connective: type[exp.And] | type[exp.Or], parts: list[Sql]) -> Sql:
    """The parts joined, halving each time: engines limit how deep an expression may go."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _chain(connective, parts[:half]), _chain(connective, parts[half:])
    return connective(this=_atom(left), expression=_atom(right))


def _atom(expression: exp.Expr) -> Sql:
    """The expression as one operand: all but a bare column or constant stands in parentheses."""
    if isinstance(expression, exp.Column | exp.Boolean | exp.Paren):
        return expression
    return exp.Paren(this=expression)
