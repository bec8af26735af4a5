"""PostgreSQL's words for SQL: every expression total, since a cast, a product or a quotient of its own raises.

Texts come out of `base` under the collation C, so that comparisons are by bytes. Whole numbers past 64 bits are
`numeric`, which is exact. Doubles: a text beyond their range is decided as `numeric` before it is cast, and one so near
to 0 that a product could underflow is 0, which it is to twelve decimals.
"""

from collections.abc import Callable

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import HEX_DIGITS, TURN, Dialect, Sql, number

LARGEST = 2**1024 - 2**970  # from here on the nearest double is infinite
SMALLEST = (
    "2.4703282292062327208299439634110764e-324"  # 2^-1075 from below: up to here the nearest double is 0
)
LONGEST = 4_000  # characters of a number; a longer text is none
PLAIN = "[+-]?[0-9]{1,15}([.][0-9]{0,15})?"
ANY = "[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?"
NOTHING = "[+-]?[0.]*([eE][+-]?[0-9]+)?"
VAST_POWER, FAINT_POWER = (f".*[eE]{sign}0*[1-9][0-9]{{4,}}" for sign in ("[+]?", "-"))
INFINITE = "[+-]?[iI][nN][fF]([iI][nN][iI][tT][yY])?"
PATTERNS = {"BIGINT": "[+-]?[0-9]{1,18}([.]0*)?"}


class PostgresDialect(Dialect):
    """The dialect of PostgreSQL 14 and later."""

    name = "postgres"
    int_div_sign = "/"
    seeks_in_lists = False

    def wide_int(self) -> str:
        return "DECIMAL"

    def small_int(self, cells: int) -> str:
        return "INTEGER"

    def trim(self, text: Sql, blanks: str) -> Sql:
        return self.call("btrim", text, exp.Literal.string(blanks))

    def full_match(self, text: Sql, pattern: str) -> Sql:
        return exp.RegexpLike(this=text, expression=exp.Literal.string(f"^(?:{pattern})$"))

    def replaced(self, text: Sql, pattern: str, by: str) -> Sql:
        return self.call("regexp_replace", text, exp.Literal.string(pattern), exp.Literal.string(by))

    def let(self, value: Sql, body: Callable[[Sql], Sql]) -> Sql:
        """The body with the value computed once: a subquery that the planner may not take apart."""
        inner = exp.select(sql.alias(value, "x_")).offset(0)
        return exp.Paren(this=exp.select(body(sql.column("x_"))).from_(inner.subquery("l_")))

    def try_number(self, value: Sql, to: str) -> Sql:
        if to == "DOUBLE":
            return self._double(value)
        if to == "BIGINT":
            whole = self.call("split_part", value.copy(), exp.Literal.string("."), number(1))
            return sql.case([(self.full_match(value, PATTERNS[to]), self.cast(whole, to))])
        return sql.case([(self.full_match(value, PLAIN), self.cast(value.copy(), to))])

    def _double(self, text: Sql) -> Sql:
        """The double nearest to what a text says, without a cast that its range could make raise."""

        def double(value: Sql) -> Sql:
            return self.cast(value, "DOUBLE")

        def literal(value: str) -> Sql:
            return double(exp.Literal.string(value))

        minus = exp.EQ(this=self.call("left", text.copy(), number(1)), expression=exp.Literal.string("-"))
        infinite = sql.case([(minus, literal("-inf"))], literal("inf"))
        long = exp.GT(this=self.call("length", text.copy()), expression=number(LONGEST))
        size = self.call("abs", self.cast(text.copy(), "DECIMAL"))
        least = self.cast(exp.Literal.string(SMALLEST), "DECIMAL")
        most = self.cast(exp.Literal.string(str(LARGEST)), "DECIMAL")
        matched = [(pattern, self.full_match(text.copy(), pattern)) for pattern in (PLAIN, INFINITE, ANY)]
        (_, plain), (_, vast), (_, any_) = matched
        return sql.case(
            [
                (plain, double(text.copy())),
                (vast, infinite.copy()),
                (exp.not_(exp.Paren(this=any_)), self.cast(exp.Null(), "DOUBLE")),
                (exp.Paren(this=long), self.cast(exp.Null(), "DOUBLE")),
                (self.full_match(text.copy(), NOTHING), literal("0")),
                (self.full_match(text.copy(), VAST_POWER), infinite),
                (self.full_match(text.copy(), FAINT_POWER), literal("0")),
                (exp.GTE(this=size, expression=most), infinite.copy()),
                (exp.LTE(this=size.copy(), expression=least), literal("0")),
            ],
            double(text.copy()),
        )

    def text_of(self, value: Sql, source: str) -> Sql:
        shown = self.cast(value, "VARCHAR")
        if source != "float":
            return shown
        words = {"Infinity": "inf", "-Infinity": "-inf"}
        branches = [
            (exp.EQ(this=shown.copy(), expression=exp.Literal.string(word)), exp.Literal.string(ours))
            for word, ours in words.items()
        ]
        return sql.case(branches, shown)

    def shown(self, x: Sql, places: int) -> Sql:
        exact = self.cast(self.cast(x, "VARCHAR"), "DECIMAL")
        rounded = self.call("round", exact, number(places))
        return sql.times(rounded, number(10**places))

    def tame(self, x: Sql) -> Sql:
        tiny = exp.LT(this=self.call("abs", x.copy()), expression=self._literal("1e-200"))
        return exp.Paren(this=sql.case([(tiny, self._literal("0"))], x))

    def _literal(self, value: str) -> Sql:
        return self.cast(exp.Literal.string(value), "DOUBLE")

    def clamped(self, value: Sql, low: int, high: int, known: Sql) -> Sql:
        """The value stands once: a decimal is costly to count."""
        held = self.call("greatest", number(low), self.call("least", value.copy(), number(high)))
        return sql.case([(sql.not_null(exp.Paren(this=known.copy())), held)])

    def settled(self, rows: exp.Select) -> exp.Select:
        """A subquery that the planner may not take apart: else it copies a code into every place that names it."""
        return rows.offset(0)

    def counted(self, raw: Sql, scale: int) -> Sql:
        return self.cast(sql.times(raw, number(10**scale)), "BIGINT")

    def is_nan(self, value: Sql) -> Sql:
        return exp.EQ(this=value.copy(), expression=self._literal("NaN"))

    def int_div(self, left: Sql, right: Sql, *, wide: bool = False) -> Sql:
        return self.call("div", left, right) if wide else exp.Div(this=left, expression=right, typed=True)

    def position_in(self, values: Sql, value: Sql) -> Sql:
        return self.call("array_position", values, value)

    def element_at(self, values: Sql, place: Sql) -> Sql:
        held = self.cast(values, "BIGINT[]") if isinstance(values, exp.Array) else values
        return exp.Bracket(this=exp.Paren(this=held), expressions=[place], offset=1)

    def byte_length(self, text: Sql) -> Sql:
        return self.call("octet_length", text)

    def total(self, value: Sql, largest: int) -> Sql:
        """A sum of bigint is numeric, and exact; one of integer would be a bigint."""
        return exp.Sum(this=value if largest >= 2**63 else self.cast(value, "BIGINT"))

    def top_k(self, value: Sql, k: int) -> Sql:
        falling = exp.Ordered(this=value.copy(), desc=True, nulls_first=False)
        listed = exp.ArrayAgg(this=exp.Order(this=value, expressions=[falling]))
        first = exp.LTE(this=sql.column(TURN), expression=number(k))
        return exp.Filter(this=listed, expression=exp.Where(this=first))

    def digest(self, text: Sql) -> Sql:
        data = self.call("convert_to", text, exp.Literal.string("UTF8"))
        hexed = self.call("encode", self.call("sha256", data), exp.Literal.string("hex"))
        return exp.Collate(this=hexed, expression=exp.Identifier(this="C", quoted=True))

    def digest60(self, digits: Sql, part: int = 0) -> Sql:
        cut = self.call("substr", digits, number(1 + part * HEX_DIGITS), number(HEX_DIGITS))
        bits = exp.Cast(
            this=exp.Paren(this=exp.DPipe(this=exp.Literal.string("x0"), expression=cut)),
            to=exp.DataType.build("BIT(64)", dialect="postgres"),
        )
        return self.cast(bits, "BIGINT")

    def temp_table(self, name: str, statement: str) -> str:
        return f"CREATE TEMP TABLE {name} ON COMMIT DROP AS {statement}"


POSTGRES = PostgresDialect()
