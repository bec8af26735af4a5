"""Spark's words for SQL, under its ANSI mode.

Whole numbers are printed with 64 bits: Spark's own are of 32, and a product of two of them raises. A match is of the
whole text by `\\A` and `\\z`, since `$` forgives a final newline. Doubles are shown by the shortest digits, which Java
before 19 does not always print: the printer of Jackson, which every Spark has with it, does.
"""

from typing import Any, ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from reticent.engine.sql.build import HEX_DIGITS, TURN, Dialect, Sql, number

LONG = 2**63
MOST_ROWS = 2**40
WIDE = "DECIMAL(38, 0)"
SHORTEST = "com.fasterxml.jackson.core.io.schubfach.DoubleToDecimal"  # Schubfach (Giulietti, 2020)


class SparkPrinter(Spark):
    """Spark's printer, without what it would translate: a cast that may fail stays one that gives NULL."""

    class Generator(SparkGenerator):
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **SparkGenerator.TRANSFORMS,
            exp.TryCast: lambda self, tree: self.trycast_sql(tree),
            exp.IntDiv: lambda self, tree: self.binary(tree, "DIV"),
        }

        def trycast_sql(self, tree: exp.TryCast) -> str:
            return f"TRY_CAST({self.sql(tree, 'this')} AS {self.sql(tree, 'to')})"

        def literal_sql(self, tree: exp.Literal) -> str:
            """Whole numbers of 64 bits, but where a type or a limit holds one."""
            plain = tree.is_string or isinstance(tree.parent, exp.DataTypeParam | exp.Limit)
            if plain or not tree.this.isdigit() or int(tree.this) >= LONG:
                return str(super().literal_sql(tree))
            return f"{tree.this}L"

        def window_sql(self, tree: exp.Window) -> str:
            """Spark numbers nothing without an order; where none is owed, any is as good."""
            if isinstance(tree.this, exp.RowNumber) and not tree.args.get("order"):
                tree.set(
                    "order",
                    exp.Order(expressions=[exp.Ordered(this=exp.Literal.number(0), nulls_first=True)]),
                )
            return str(super().window_sql(tree))

        def ordered_sql(self, tree: exp.Ordered) -> str:
            """Where NULL stands is always said."""
            way = " DESC" if tree.args.get("desc") else ""
            return (
                f"{self.sql(tree, 'this')}{way} NULLS {'FIRST' if tree.args.get('nulls_first') else 'LAST'}"
            )


class SparkDialect(Dialect):
    """The dialect of Spark 4, with `spark.sql.ansi.enabled`."""

    name = "sparkprinter"
    int_div_sign = "DIV"

    def printed(self, tree: Sql, *, copy: bool = True) -> str:
        return tree.sql(SparkPrinter, copy=copy, unsupported_level=ErrorLevel.RAISE)

    def wide_int(self) -> str:
        return WIDE

    def small_int(self, cells: int) -> str:
        return "SMALLINT" if cells <= 2**15 else "INT"

    def trim(self, text: Sql, blanks: str) -> Sql:
        return self.call("btrim", text, exp.Literal.string(blanks))

    def full_match(self, text: Sql, pattern: str) -> Sql:
        return self.call("rlike", text, exp.Literal.string(f"\\A(?:{pattern})\\z"))

    def replaced(self, text: Sql, pattern: str, by: str) -> Sql:
        """No pattern of ours matches twice in a text; a text that ends in a newline matches none."""
        ended = pattern.removesuffix("$") + "\\z" if pattern.endswith("$") else pattern
        into = exp.Literal.string(by.replace("\\1", "$1"))
        return self.call("regexp_replace", text, exp.Literal.string(ended.replace("$|", "\\z|")), into)

    def try_number(self, value: Sql, to: str) -> Sql:
        if to == "BIGINT":  # 12.000 is read as a decimal first: Spark's whole numbers have no point
            value = exp.TryCast(this=value, to=self.kind(WIDE))
        return exp.TryCast(this=value, to=self.kind(to))

    def text_of(self, value: Sql, source: str) -> Sql:
        return self._printed_double(value) if source == "float" else self.cast(value, "VARCHAR")

    def shown(self, x: Sql, places: int) -> Sql:
        exact = exp.TryCast(this=self._digits(x), to=self.kind(f"DECIMAL(38, {places})"))
        empty = exp.Literal.string("")
        digits = self.call("replace", self.cast(exact, "VARCHAR"), exp.Literal.string("."), empty)
        return exp.TryCast(this=digits, to=self.kind(WIDE))

    def _digits(self, x: Sql) -> Sql:
        """The shortest digits of a double as Java writes them: 1.25E-7, 123.0, Infinity."""
        name, method = exp.Literal.string(SHORTEST), exp.Literal.string("toString")
        return self.call("reflect", name, method, self.cast(x, "DOUBLE"))

    def _printed_double(self, x: Sql) -> Sql:
        """The same as Python and DuckDB write them: positional from 1e-4 up to 1e16, else 1.25e-07."""
        size = self.call("abs", x.copy())
        inside = exp.Between(this=size, low=_double("1e-4"), high=_double("9999999999999998"))
        flat = exp.or_(inside, exp.EQ(this=x.copy(), expression=_double("0")))
        branches = [
            (exp.EQ(this=x.copy(), expression=_double("inf")), exp.Literal.string("inf")),
            (exp.EQ(this=x.copy(), expression=_double("-inf")), exp.Literal.string("-inf")),
            (self.is_nan(x.copy()), exp.Literal.string("nan")),
            (flat, self._positional(x)),
        ]
        ifs = [exp.If(this=condition, true=value) for condition, value in branches]
        return exp.Case(ifs=ifs, default=self._scientific(x))

    def _positional(self, x: Sql) -> Sql:
        """Twenty decimals hold every digit; zeros at the end go, but for the first after the point."""
        exact = self.cast(exp.TryCast(this=self._digits(x), to=self.kind("DECIMAL(38, 20)")), "VARCHAR")
        return self._swapped(exact, "(\\.[0-9]+?)0+\\z", "$1")

    def _scientific(self, x: Sql) -> Sql:
        """Java writes two digits at least, which the smallest doubles need not have."""
        one = self.call("format_string", exp.Literal.string("%.0e"), x.copy())
        same = exp.EQ(this=self.try_number(one, "DOUBLE"), expression=x.copy())
        small = exp.LT(this=self.call("abs", x.copy()), expression=_double("1e-320"))
        return exp.Case(
            ifs=[exp.If(this=exp.and_(small, same), true=one.copy())], default=self._many_digits(x)
        )

    def _many_digits(self, x: Sql) -> Sql:
        texts = self._swapped(self._swapped(self._digits(x), "\\.0E", "E"), "E(?=[0-9])", "E+")
        return self._swapped(self._swapped(texts, "E", "e"), "e([+-])([0-9])\\z", "e$10$2")

    def _swapped(self, text: Sql, pattern: str, by: str) -> Sql:
        return self.call("regexp_replace", text, exp.Literal.string(pattern), exp.Literal.string(by))

    def is_whole(self, x: Sql) -> Sql:
        """By `rint`, which gives a double: Spark's floor of a large one raises."""
        return exp.EQ(this=x.copy(), expression=self.call("rint", x.copy()))

    def counted(self, raw: Sql, scale: int) -> Sql:
        product = exp.Mul(this=exp.Paren(this=raw), expression=self.cast(number(10**scale), "DECIMAL(20, 0)"))
        return self.cast(product, "BIGINT")

    def is_nan(self, value: Sql) -> Sql:
        return self.call("isnan", value)

    def int_div(self, left: Sql, right: Sql, *, wide: bool = False) -> Sql:
        return exp.IntDiv(this=left, expression=right)

    def position_in(self, values: Sql, value: Sql) -> Sql:
        return exp.Nullif(this=self.call("array_position", values, value), expression=number(0))

    def element_at(self, values: Sql, place: Sql) -> Sql:
        before = exp.Sub(this=exp.Paren(this=place), expression=number(1))
        return self.call("get", values, self.cast(before, "INTEGER"))

    def byte_length(self, text: Sql) -> Sql:
        return self.call("octet_length", text)

    def total(self, value: Sql, largest: int) -> Sql:
        """In 64 bits where the codebook's bounds allow it; Spark's sum of those raises beyond."""
        return exp.Sum(this=self.cast(value, "BIGINT" if largest * MOST_ROWS < LONG else WIDE))

    def top_k(self, value: Sql, k: int) -> Sql:
        turn = exp.Column(this=exp.Identifier(this=TURN, quoted=True))
        first = exp.LTE(this=turn, expression=number(k))
        kept = self.call("collect_list", exp.Case(ifs=[exp.If(this=first, true=value)]))
        return self.call("sort_array", kept, exp.false())

    def digest(self, text: Sql) -> Sql:
        return self.call("sha2", text, exp.Var(this="256"))

    def digest60(self, digits: Sql, part: int = 0) -> Sql:
        start, size = (exp.Var(this=str(each)) for each in (1 + part * HEX_DIGITS, HEX_DIGITS))
        cut = self.call("substr", digits, start, size)
        return self.cast(self.call("conv", cut, exp.Var(this="16"), exp.Var(this="10")), "BIGINT")

    def temp_table(self, name: str, statement: str) -> str:
        raise NotImplementedError("tables of a reading are frames of the session")


def _double(text: str) -> Sql:
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build("DOUBLE"))


SPARK = SparkDialect()
