"""DuckDB's words for SQL."""

from sqlglot import exp

from reticent.engine.sql.build import HEX_DIGITS, Dialect, Sql, number


class DuckDBDialect(Dialect):
    """The dialect of the embedded engine. Its `TRY_CAST` raises nothing, and its integers have 128 bits."""

    name = "duckdb"
    int_div_sign = "//"

    def wide_int(self) -> str:
        return "HUGEINT"

    def small_int(self, cells: int) -> str:
        return "UTINYINT" if cells <= 2**8 else "USMALLINT"

    def trim(self, text: Sql, blanks: str) -> Sql:
        return self.call("trim", text, exp.Literal.string(blanks))

    def full_match(self, text: Sql, pattern: str) -> Sql:
        return self.call("regexp_full_match", text, exp.Literal.string(pattern))

    def replaced(self, text: Sql, pattern: str, by: str) -> Sql:
        return self.call("regexp_replace", text, exp.Literal.string(pattern), exp.Literal.string(by))

    def try_number(self, value: Sql, to: str) -> Sql:
        return exp.TryCast(this=value, to=self.kind(to))

    def text_of(self, value: Sql, source: str) -> Sql:
        return self.cast(value, "VARCHAR") if source != "date" else self.try_number(value, "VARCHAR")

    def shown(self, x: Sql, places: int) -> Sql:
        exact = self.try_number(self.cast(x, "VARCHAR"), f"DECIMAL(38, {places})")
        empty = exp.Literal.string("")
        digits = self.call("replace", self.cast(exact, "VARCHAR"), exp.Literal.string("."), empty)
        return self.try_number(digits, self.wide_int())

    def counted(self, raw: Sql, scale: int) -> Sql:
        # 15 digits times 10^3 fit the 18 that a product of two short decimals is given; beyond, ask for more.
        power = number(10**scale)
        wide = power if scale <= 3 else self.cast(power, "DECIMAL(20, 0)")
        return self.cast(exp.Mul(this=exp.Paren(this=raw), expression=exp.Paren(this=wide)), "BIGINT")

    def is_nan(self, value: Sql) -> Sql:
        return self.call("isnan", value)

    def int_div(self, left: Sql, right: Sql, *, wide: bool = False) -> Sql:
        return exp.IntDiv(this=left, expression=right)

    def position_in(self, values: Sql, value: Sql) -> Sql:
        return self.call("list_position", values, value)

    def element_at(self, values: Sql, place: Sql) -> Sql:
        return self.call("list_extract", values, place)

    def byte_length(self, text: Sql) -> Sql:
        return self.call("strlen", text)

    def turn(self, value: str, group: str) -> Sql | None:
        return None

    def top_k(self, value: Sql, k: int) -> Sql:
        return self.call("max", value, number(k))

    def digest(self, text: Sql) -> Sql:
        return self.call("sha256", text)

    def digest60(self, digits: Sql, part: int = 0) -> Sql:
        size, start = number(HEX_DIGITS), number(1 + part * HEX_DIGITS)
        cut = self.call("substr", digits, start, size) if part else self.call("left", digits, size)
        return self.try_number(exp.DPipe(this=exp.Literal.string("0x"), expression=cut), "BIGINT")

    def line_number(self) -> Sql:
        return exp.Column(this=exp.Identifier(this="rowid", quoted=True))

    def temp_table(self, name: str, statement: str) -> str:
        return f"CREATE OR REPLACE TEMP TABLE {name} AS {statement}"


DUCKDB = DuckDBDialect()
