"""From a raw cell to its code, in SQL: outside its domain missing, outside its bounds clamped (R01).

One function of one cell, total, with the rounding rule floor(x / grid + 1/2) on what the cell means
(`schema/columns.py`), whatever the type that holds it. The result is a code between the column's lowest and highest,
or NULL.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import ceil, floor, inf, nextafter
from typing import Any

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.reading import (
    canonical_text,
    double_of,
    matches,
    quantity_of,
    trimmed,
)
from reticent.schema import Levels, Number
from reticent.schema.columns import (
    BLANKS,
    CODE,
    LAST_WHOLE,
    MOMENT,
    PLACES,
    QUANTITY,
    TRUTHS,
    exact,
    moment_text,
    read_code,
    read_quantity,
)

SMALLEST = Fraction(1, 10**PLACES)
BEYOND = 2**63
FEW = 32  # up to so many levels are compared one by one


def level_code(dialect: Dialect, column: Levels, raw: Sql, source: str, values: Values) -> Sql:
    """The number of the level that means what the cell means; NULL for any other content."""
    if column.literal:
        text = folded_text(dialect, column, canonical_text(dialect, raw, source, literal=True), values)
        if isinstance(text, exp.Column):
            return _place(dialect, text, _words(column), values)
        return dialect.let(text, lambda once: _place(dialect, once, _words(column), values))
    if source not in ("text", "boolean", "date"):
        return _numbered(dialect, column, raw, source)
    text = folded_text(dialect, column, raw if source == "text" else dialect.text_of(raw, source), values)
    if isinstance(text, exp.Column):
        return _worded(dialect, column, text, values)
    return dialect.let(text, lambda once: _worded(dialect, column, once, values))


def _words(column: Levels) -> dict[str, int]:
    """The texts that are a level, as they are compared, with its code."""
    return {column.folded(text): code for text, code in column.spellings.items()}


def _numbered(dialect: Dialect, column: Levels, raw: Sql, source: str) -> Sql:
    """By number: levels that are none are met by no cell of this type."""
    numbers = _numbers(column)
    if source == "integer" and all(abs(number) < LAST_WHOLE for number in numbers):
        whole = {int(number): code for number, code in numbers.items() if number == int(number)}
        return _search(dialect, raw, sorted(whole.items()), sql.number)
    return _search(
        dialect, double_of(dialect, raw, source), sorted(numbers.items()), partial(_double, dialect)
    )


def _worded(dialect: Dialect, column: Levels, text: Sql, values: Values) -> Sql:
    """Text as it stands first, which is what most cells are; then by what it means, where a level means more."""
    words = _words(column)
    for spellings in TRUTHS.values():
        codes = [words[spelling] for spelling in spellings if spelling in words]
        words |= dict.fromkeys(spellings, codes[0]) if codes else {}
    place = _place(dialect, text, words, values)
    branches: list[tuple[Sql, Sql]] = []
    if numbers := _numbers(column):
        plain = trimmed(dialect, text.copy())
        known, written = sorted(numbers.items()), partial(_double, dialect)
        number = dialect.try_number(plain.copy(), "DOUBLE")
        found = dialect.let(number, lambda x: _search(dialect, x, known, written))
        branches.append((matches(dialect, plain, CODE), found))
    moments = {day: code for level, code in _words(column).items() if (day := _moment(level))}
    if moments:
        shown = canonical_text(dialect, text.copy(), "date")
        branches.append((matches(dialect, text.copy(), MOMENT), _place(dialect, shown, moments, values)))
    return exp.Coalesce(this=place, expressions=[sql.case(branches)]) if branches else place


def _numbers(column: Levels) -> dict[float, int]:
    read = ((read_code(level), code) for level, code in _words(column).items())
    return {number: code for number, code in read if number is not None}


def _moment(level: str) -> str | None:
    """The date or time that a level means; a date alone is met by its midnight."""
    midnight = moment_text(f"{level} 00:00:00")
    return level if midnight == level else moment_text(level)


def _place(dialect: Dialect, text: Sql, words: dict[str, int], values: Values) -> Sql:
    """The code of the word that the text is."""
    in_turn = list(words.values()) == list(range(len(words)))
    if len(words) > FEW or not in_turn or not dialect.seeks_in_lists:
        return _search(dialect, text, sorted(words.items()), values.put)
    # The engine looks a word up once for every entry of a column's dictionary, not once a row.
    return sql.minus(dialect.position_in(values.put(list(words)), text.copy()), sql.number(1))


def _search(
    dialect: Dialect, cell: Sql, keys: Sequence[tuple[Any, int]], written: Callable[[Any], Sql]
) -> Sql:
    """Compare one by one where keys are few; otherwise halve the sorted list first."""
    if not keys:
        return dialect.null()
    if len(keys) <= FEW:
        return sql.case((exp.EQ(this=cell.copy(), expression=written(k)), sql.number(c)) for k, c in keys)
    middle = len(keys) // 2
    below = exp.LT(this=cell.copy(), expression=written(keys[middle][0]))
    return sql.case(
        [(below, _search(dialect, cell, keys[:middle], written))],
        _search(dialect, cell, keys[middle:], written),
    )


def number_code(dialect: Dialect, column: Number, raw: Sql, source: str) -> Sql:
    """The cell as grid steps, clamped to the bounds; missing codes, NaN and what is no number are NULL."""
    if source in ("boolean", "date"):
        return dialect.null()
    if source == "integer":
        return _from_integer(dialect, column, raw)
    if source.startswith("decimal") and (scale := int(source.removeprefix("decimal") or -1)) in range(
        PLACES + 1
    ):
        # A narrow decimal is a whole number of its last digit: count those, in 64 bits.
        return _from_integer(
            dialect, column, dialect.counted(raw, scale), unit=Fraction(1, 10**scale), known=raw
        )
    if source == "text":
        return _from_text(dialect, column, raw)
    return _from_double(dialect, column, quantity_of(dialect, raw, source))


def _from_integer(
    dialect: Dialect, column: Number, raw: Sql, unit: Fraction = Fraction(1), known: Sql | None = None
) -> Sql:
    """`raw` counts `unit`s; the result counts grid steps. `known` is NULL where `raw` is, if not `raw` itself."""
    p, q = (column.grid / unit).numerator, (column.grid / unit).denominator
    base = floor(column.lower / unit)
    held = dialect.clamped(raw, base, ceil(column.upper / unit), known or raw)
    if p == q == 1:
        code = held
    else:
        # floor(x q/p + 1/2) = M + (2q(x - base) + r) // 2p with r = 2q base + p - 2pM in [0, 2p).
        start, rest = divmod(2 * q * base + p, 2 * p)
        last = ceil(column.upper / unit)
        fits = max(2 * q * (last - base) + rest, abs(base), abs(last)) < BEYOND
        steps = sql.minus(dialect.cast(held, "BIGINT" if fits else dialect.wide_int()), sql.number(base))
        up = dialect.whole_part(
            sql.plus(sql.times(steps, sql.number(2 * q)), sql.number(rest)), 2 * p, wide=not fits
        )
        code = dialect.clamped(sql.plus(up, sql.number(start)), column.low, column.high, known or raw)
    if column.whole and unit < 1:
        part = exp.NEQ(
            this=exp.Mod(this=raw.copy(), expression=sql.number(int(1 / unit))), expression=sql.number(0)
        )
        code = sql.case([(part, exp.Null())], code)
    refused = _is_silent(dialect, column, raw, unit)
    return sql.case([(refused, exp.Null())], code) if refused is not None else code


def _is_silent(dialect: Dialect, column: Number, raw: Sql, unit: Fraction) -> Sql | None:
    """Whether a count of units is a missing code. Beyond 2^53 a whole number is the double nearest to it."""
    near, far = _silences(column)
    counts = [sql.number(int(s / unit)) for s in near if (s / unit).denominator == 1]
    tests = [sql.among(raw, counts)] if counts else []
    if far and unit == 1:
        tests.append(sql.among(double_of(dialect, raw, "integer"), [_double(dialect, s) for s in far]))
    return exp.or_(*tests) if tests else None


def _silences(column: Number) -> tuple[list[Fraction], list[float]]:
    """The missing codes that are numbers: exact below 2^53, doubles from there on."""
    read = [number for text in column.missing if (number := read_quantity(text)) is not None]
    return [exact(s) for s in read if abs(s) < LAST_WHOLE], [s for s in read if abs(s) >= LAST_WHOLE]


def _from_double(dialect: Dialect, column: Number, x: Sql) -> Sql:
    """The code of the decimal that `x` shows: by double arithmetic where that is sure to be right, else by digits."""
    x = dialect.tame(x)
    slack = None if column.whole else _tolerance(column)
    branches: list[tuple[Sql, Sql]] = [(sql.is_null(x), exp.Null())]
    if slack is None or column.grid.numerator > 1:
        counted = exp.and_(
            dialect.is_whole(x), exp.LTE(this=_abs(x), expression=_double(dialect, LAST_WHOLE))
        )
        branches.append((counted, _from_integer(dialect, column, dialect.cast(x.copy(), "BIGINT"))))
    branches += [(dialect.is_nan(x), exp.Null()), *_silent_doubles(dialect, column, x)]
    if column.whole:
        branches.append((_is_broken(dialect, x), exp.Null()))
    low, high = _ends(column, exactly=slack is None)
    branches += [
        (exp.LTE(this=x.copy(), expression=_double(dialect, low)), sql.number(column.low)),
        (exp.GTE(this=x.copy(), expression=_double(dialect, high)), sql.number(column.high)),
    ]
    branches += [_fast(dialect, column, x, slack)] if slack is not None else []
    return sql.case(branches, _from_shown(dialect, column, x))


def _ends(column: Number, *, exactly: bool) -> tuple[float, float]:
    """At and beyond these a double is clamped unseen. Where steps are finer than doubles, only from afar."""
    if column.whole:
        return -float(LAST_WHOLE), float(LAST_WHOLE)
    margin = 4 if exactly else 0
    return float(column.lower - margin), float(column.upper + margin)


def _is_broken(dialect: Dialect, x: Sql) -> Sql:
    """Whether a double is so far from a whole number that its decimal is none."""
    off = _abs(sql.minus(x.copy(), sql.call("round", x.copy())))
    reach = sql.plus(_double(dialect, 1e-12), sql.times(_abs(x), _double(dialect, 2.0**-50)))
    return exp.and_(exp.Not(this=exp.Paren(this=dialect.is_whole(x))), exp.GT(this=off, expression=reach))


def _silent_doubles(dialect: Dialect, column: Number, x: Sql) -> list[tuple[Sql, Sql]]:
    """Missing codes: the doubles that show them, and whatever comes so near that its digits have to be seen."""
    near, far = _silences(column)
    shown = [*far, *(float(s) for s in near if exact(float(s)) == s)]
    found: list[tuple[Sql, Sql]] = []
    if shown:
        found.append((sql.among(x.copy(), [_double(dialect, s) for s in shown]), exp.Null()))
    for s in map(float, near):
        reach = 1e-12 + abs(s) * 2.0**-50
        close = exp.Between(this=x.copy(), low=_double(dialect, s - reach), high=_double(dialect, s + reach))
        found.append((close, _from_shown(dialect, column, x)))
    return found


def _tolerance(column: Number) -> float | None:
    """In grid steps: how far the decimal of a double, rounded to twelve places, and our arithmetic can be from the
    double's own place between the bounds, generously. None where that is no small part of a step."""
    largest = max(abs(column.lower), abs(column.upper))
    slack = (largest / 2**47 + SMALLEST) / column.grid + Fraction(1, 2**50)
    return nextafter(float(slack), inf) if slack < Fraction(1, 4) else None


def _fast(dialect: Dialect, column: Number, x: Sql, slack: float) -> tuple[Sql, Sql]:
    """Far enough from the edge between two steps, and the step there."""
    p, q = column.grid.numerator, column.grid.denominator
    steps = sql.times(sql.minus(x.copy(), _double(dialect, float(column.lower))), _double(dialect, float(q)))
    steps = steps if p == 1 else exp.Div(this=exp.Paren(this=steps), expression=_double(dialect, float(p)))
    under = sql.call("floor", sql.plus(steps, _double(dialect, 0.5 - slack)))
    over = sql.call("floor", sql.plus(steps.copy(), _double(dialect, 0.5 + slack)))
    code = sql.plus(dialect.cast(over.copy(), "BIGINT"), sql.number(column.low))
    return exp.EQ(this=under, expression=over), code


def _from_shown(dialect: Dialect, column: Number, x: Sql) -> Sql:
    """By the decimal that the double shows, to twelve places, in whole numbers of the last."""
    digits = dialect.shown(x.copy(), PLACES)
    return dialect.cast(_from_integer(dialect, column, digits, unit=SMALLEST), "BIGINT")


def _from_text(dialect: Dialect, column: Number, raw: Sql) -> Sql:
    pattern, kind, word = _short(column)

    def code(text: Sql) -> Sql:
        short, double = (dialect.try_number(text.copy(), to) for to in (kind, "DOUBLE"))
        branches = [
            (
                matches(dialect, text, pattern),
                dialect.let(short, lambda x: number_code(dialect, column, x, word)),
            ),
            (
                matches(dialect, text.copy(), QUANTITY),
                dialect.let(double, lambda x: _from_double(dialect, column, x)),
            ),
        ]
        return sql.case(branches)

    return dialect.let(trimmed(dialect, raw), code)


def _short(column: Number) -> tuple[str, str, str]:
    """What most cells look like, the type that holds them, and our word for it: the same code in 64 bits,
    several times as fast."""
    if column.whole:
        return "[+-]?[0-9]{1,15}([.]0*)?", "BIGINT", "integer"
    scale = next((digits for digits in range(4) if column.grid * 10**digits == 1), 3)
    return f"[+-]?[0-9]{{1,12}}([.][0-9]{{0,{scale}}})?", f"DECIMAL({12 + scale}, {scale})", f"decimal{scale}"


def _abs(x: Sql) -> Sql:
    return sql.call("abs", x.copy())


def _double(dialect: Dialect, value: float) -> Sql:
    return dialect.cast(exp.Literal.string(repr(float(value))), "DOUBLE")


def folded_text(dialect: Dialect, column: Levels, text: Sql, values: Values) -> Sql:
    """`schema.columns.folded` of a text: what the codebook says to ignore among levels taken out."""
    if "spacing" in column.ignore:
        text = trimmed(dialect, dialect.replaced_all(text.copy(), f"[{BLANKS}]+", " "))
    if column.letters:
        capitals, small = ("".join(part) for part in (column.letters, column.letters.values()))
        text = dialect.translated(text, values.put(capitals), values.put(small))
    return text
