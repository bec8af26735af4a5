"""From a raw cell to its code, in SQL: outside its domain missing, outside its bounds clamped (R01).

One function of one cell, total, with the rounding rule floor(x / grid + 1/2). Whatever the cell holds, the
result is a code between the column's lowest and highest, or NULL.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from sqlglot import exp

from reticent.decimals import read_decimal, show
from reticent.engine import sql
from reticent.engine.sql import Sql, Values
from reticent.schema import Levels, Number

PLAIN = "[+-]?([0-9]{1,26}([.][0-9]*)?|[.][0-9]+)"
WHOLE = "[+-]?[0-9]{1,26}([.]0*)?"  # pandas writes 30 as 30.0 where a column has holes
VAST = "(?i)[+-]?([0-9]{27,}([.][0-9]*)?|inf|infinity|[0-9]+([.][0-9]*)?e[+]?[0-9]+)"
POWER = "(?i)[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)e[+-]?[0-9]+"
EXACT = "DECIMAL(38, 12)"
BEYOND = 2**63
FEW = 32  # up to so many levels are compared one by one


def level_code(column: Levels, raw: Sql, source: str, values: Values) -> Sql:
    """The number of the level that equals the cell exactly; NULL for any other content."""
    if source in ("integer", "float"):
        # By number, never by digits: a column of integers becomes doubles as soon as one cell is empty.
        numbers: dict[Fraction, int] = {}
        for code, level in enumerate(column.levels):
            if (exact := read_decimal(level)) is not None:
                numbers.setdefault(exact, code)
        return _search(raw, sorted(numbers.items()), _plain)
    text = raw if source == "text" else sql.cast(raw, "VARCHAR")
    if len(column.levels) > FEW:
        words = sorted((level, code) for code, level in enumerate(column.levels))
        return _search(text, words, values.put)
    # The engine looks a word up once for every entry of a column's dictionary, not once a row.
    place = sql.call("list_position", values.put(list(column.levels)), text)
    return sql.minus(place, sql.number(1))


def _search(cell: Sql, keys: Sequence[tuple[Any, int]], written: Callable[[Any], Sql]) -> Sql:
    """Compare one by one where keys are few; otherwise halve the sorted list first."""
    if len(keys) <= FEW:
        return sql.case((exp.EQ(this=cell.copy(), expression=written(k)), sql.number(c)) for k, c in keys)
    middle = len(keys) // 2
    below = exp.LT(this=cell.copy(), expression=written(keys[middle][0]))
    return sql.case([(below, _search(cell, keys[:middle], written))], _search(cell, keys[middle:], written))


def number_code(column: Number, raw: Sql, source: str) -> Sql:
    """The cell as grid steps, clamped to the bounds; missing codes, NaN and what is no number are NULL."""
    silent = [code for text in column.missing if (code := read_decimal(text)) is not None]
    if source.startswith("decimal"):
        scale = int(source.removeprefix("decimal") or -1)
        if scale < 0:
            return _from_decimal(column, raw, silent)
        # A narrow decimal is a whole number of its last digit: count those, in 64 bits.
        # 15 digits times 10^3 fit the 18 that a product of two short decimals is given; beyond, ask for more.
        power = sql.number(10**scale)
        digits = sql.cast(
            sql.times(raw, power if scale <= 3 else sql.cast(power, "DECIMAL(20, 0)")), "BIGINT"
        )
        return _from_integer(column, digits, silent, unit=Fraction(1, 10**scale))
    build = {"integer": _from_integer, "float": _from_float, "text": _from_text}[source]
    return build(column, raw, silent)


def _from_integer(column: Number, raw: Sql, silent: list[Fraction], unit: Fraction = Fraction(1)) -> Sql:
    """`raw` counts `unit`s; the result counts grid steps."""
    p, q = (column.grid / unit).numerator, (column.grid / unit).denominator
    base = floor(column.lower / unit)
    held = _clamp(raw, base, ceil(column.upper / unit))
    if p == q == 1:
        code = held
    else:
        # floor(x q/p + 1/2) = M + (2q(x - base) + r) // 2p with r = 2q base + p - 2pM in [0, 2p).
        start, rest = divmod(2 * q * base + p, 2 * p)
        last = ceil(column.upper / unit)
        fits = max(2 * q * (last - base) + rest, abs(base), abs(last)) < BEYOND
        steps = sql.minus(sql.cast(held, "BIGINT" if fits else "HUGEINT"), sql.number(base))
        up = sql.whole_part(sql.plus(sql.times(steps, sql.number(2 * q)), sql.number(rest)), 2 * p)
        code = _clamp(sql.plus(up, sql.number(start)), column.low, column.high)
    if column.whole and unit < 1:
        part = exp.NEQ(
            this=exp.Mod(this=raw.copy(), expression=sql.number(int(1 / unit))), expression=sql.number(0)
        )
        code = sql.case([(part, exp.Null())], code)
    refused = [sql.number(int(s / unit)) for s in silent if (s / unit).denominator == 1]
    return sql.case([(sql.among(raw, refused), exp.Null())], code) if refused else code


def _from_float(column: Number, raw: Sql, silent: list[Fraction]) -> Sql:
    lower, upper = _double(column.lower), _double(column.upper)
    # Times q, then by p: right for whole numbers, as `_from_integer` is; times 1/grid would be off at some halves.
    p, q = column.grid.numerator, column.grid.denominator
    steps = sql.times(sql.minus(raw, lower), _double(Fraction(q)))
    steps = steps if p == 1 else exp.Div(this=exp.Paren(this=steps), expression=_double(Fraction(p)))
    up = sql.cast(sql.call("floor", sql.plus(steps, _double(Fraction(1, 2)))), "BIGINT")
    # Near 2^53 steps the product rounds by a step or two: a value below the bound must not end above it.
    code = sql.call("least", sql.plus(up, sql.number(column.low)), sql.number(column.high))
    branches: list[tuple[Sql, Sql]] = [(sql.call("isnan", raw), exp.Null())]
    if silent:
        branches.append((sql.among(raw, [_double(s) for s in silent]), exp.Null()))
    if column.whole:
        branches.append((exp.NEQ(this=raw, expression=sql.call("floor", raw)), exp.Null()))
    branches += [
        (exp.LTE(this=raw, expression=lower), sql.number(column.low)),
        (exp.GTE(this=raw, expression=upper), sql.number(column.high)),
    ]
    return sql.case([(sql.is_null(raw), exp.Null()), *branches], code)


def _from_decimal(column: Number, raw: Sql, silent: list[Fraction]) -> Sql:
    value = sql.try_cast(raw, EXACT)
    double = sql.cast(raw, "DOUBLE")
    vast = sql.case(
        [
            (exp.GT(this=double, expression=sql.number(0)), sql.number(column.high)),
            (exp.LT(this=double, expression=sql.number(0)), sql.number(column.low)),
        ]
    )
    return sql.case([(sql.is_null(value), vast)], _exact_code(column, value, silent))


def _from_text(column: Number, raw: Sql, silent: list[Fraction]) -> Sql:
    text = sql.call("trim", raw)
    double = sql.try_cast(text, "DOUBLE")
    plain = sql.call("regexp_full_match", text, exp.Literal.string(WHOLE if column.whole else PLAIN))
    vast = sql.call("regexp_full_match", text, exp.Literal.string(VAST))
    edge = exp.Literal.number(BEYOND)
    pattern, kind, word = _short(column)
    short = sql.call("regexp_full_match", text, exp.Literal.string(pattern))
    branches = [
        (short, number_code(column, sql.try_cast(text, kind), word)),
        (plain, _exact_code(column, sql.try_cast(text, EXACT), silent)),
        (exp.and_(vast, exp.GTE(this=double, expression=edge)), sql.number(column.high)),
        (exp.and_(vast, exp.LTE(this=double, expression=exp.Neg(this=edge))), sql.number(column.low)),
    ]
    if not column.whole:
        power = sql.call("regexp_full_match", text, exp.Literal.string(POWER))
        branches.append((power, _from_float(column, double, silent)))
    return sql.case(branches)


def _short(column: Number) -> tuple[str, str, str]:
    """What most cells look like, the type that holds them, and our word for it: the same code in 64 bits,
    several times as fast."""
    if column.whole:
        return "[+-]?[0-9]{1,15}", "BIGINT", "integer"
    scale = next((digits for digits in range(4) if column.grid * 10**digits == 1), 3)
    return f"[+-]?[0-9]{{1,12}}([.][0-9]{{0,{scale}}})?", f"DECIMAL({12 + scale}, {scale})", f"decimal{scale}"


def _exact_code(column: Number, value: Sql, silent: list[Fraction]) -> Sql:
    """floor((v - lower) q/p + 1/2) + low in exact decimals, for v strictly inside the bounds."""
    p, q = column.grid.numerator, column.grid.denominator
    lower, upper = _exact(column.lower), _exact(column.upper)
    twice = sql.plus(sql.times(sql.minus(value, lower), sql.number(2 * q)), sql.number(p))
    up = sql.whole_part(sql.cast(sql.call("floor", twice), "HUGEINT"), 2 * p)
    code = sql.plus(sql.cast(up, "BIGINT"), sql.number(column.low))
    branches: list[tuple[Sql, Sql]] = []
    if silent:
        branches.append((sql.among(value, [_exact(s) for s in silent]), exp.Null()))
    if column.whole and column.grid >= 1:
        branches.append((exp.NEQ(this=value, expression=sql.call("floor", value)), exp.Null()))
    branches += [
        (exp.LTE(this=value, expression=lower), sql.number(column.low)),
        (exp.GTE(this=value, expression=upper), sql.number(column.high)),
    ]
    return sql.case([(sql.is_null(value), exp.Null()), *branches], code)


def _clamp(value: Sql, low: int, high: int) -> Sql:
    """Between `low` and `high`; NULL stays NULL, which least and greatest would forget."""
    below = exp.LT(this=value.copy(), expression=sql.number(low))
    above = exp.GT(this=value.copy(), expression=sql.number(high))
    return sql.case([(below, sql.number(low)), (above, sql.number(high))], value.copy())


def _double(value: Fraction) -> Sql:
    return sql.cast(exp.Literal.string(repr(float(value))), "DOUBLE")


def _exact(value: Fraction) -> Sql:
    return sql.cast(exp.Literal.string(show(value)), EXACT)


def _plain(value: Fraction) -> Sql:
    """A number to compare with; an integer column equals no fraction, and a double the nearest one."""
    return sql.number(int(value)) if value.denominator == 1 else _double(value)
