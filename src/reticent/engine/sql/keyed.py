"""Keyed draws: a number for each row by a digest of a secret key, the row's codes and its number among equal rows.

For an engine that must not send its rows, and may make a part of them twice: the same row has the same number
whenever it is made. Equal rows cannot be told apart, so it does not matter which of them has which number. The key is
made of numbers that the plan's own source of fair bits gave, and no log of an engine may hold it.
"""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from statistics import NormalDist

import pyarrow as pa
from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Dialect, Sql, Values
from reticent.engine.sql.clean import RowView, code
from reticent.prepare.repair import FINE, WHOLE, Chances, RegressionLine

LABEL, NUMBER, NORMAL = "keyed_", "equal_", "normal_"
BITS = 60
STEPS = 2**16  # of the table of normal quantiles


def key_of(lines: Sequence[RegressionLine | Chances]) -> str:
    """A key of 256 bits, from 64 draws of every line that draws: each holds 16 bits or more."""
    found = sha256()
    for line in lines:
        if line.draw is not None:
            found.update(line.draw(64).tobytes())
    return found.hexdigest()


def labelled(dialect: Dialect, rows: exp.Select, seen: Sequence[Sql], key: str, values: Values) -> exp.Select:
    """The rows with a digest each, under the name `LABEL`. `seen` are the columns in which equal rows agree.

    Guarantee   a row's digest is a function of the key, of what is seen of the row, and of its number among equals; no two
                rows share all of these.
    Adjacency   one record added or removed: the digests of the other rows, as a set, stay as they are.
    Theorem     THEORY 7.1, draws given.
    Proof       proofs/engine/keyed.md
    Assumes     the key was drawn uniformly and kept from the rows; SHA-256 under it is a random function.
    Keeps back  the key and all of it until noise is added.
    """
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[each.copy() for each in seen] or None,
        order=exp.Order(
            expressions=[exp.Ordered(this=each.copy(), nulls_first=True) for each in seen] or [sql.number(0)]
        ),
    )
    numbered = sql.select([exp.Star(), sql.alias(place, NUMBER)], rows)
    text = values.put_secret(f"{key}|d|")
    for each in (*seen, sql.column(NUMBER)):
        word = exp.Coalesce(this=dialect.cast(each.copy(), "VARCHAR"), expressions=[exp.Literal.string("")])
        text = _joined(text, word, exp.Literal.string("|"))
    return sql.select([exp.Star(), sql.alias(dialect.digest(text), LABEL)], numbered)


def uniform(dialect: Dialect, place: int, bits: int) -> Sql:
    """A number below 2^bits for the row, another for every `place`: 60 bits of a digest of its digest."""
    told = _joined(sql.column(LABEL), exp.Literal.string(f"|{place}"))
    return dialect.whole_part(dialect.digest60(dialect.digest(told)), 1 << (BITS - bits))


def drawn(cells: RowView, rows: exp.Select, lines: Sequence[RegressionLine | Chances]) -> exp.Select:
    """`labelled` rows with a draw `z` and the place of each line that draws: even, or a quantile of the normal."""
    even = {p: line for p, line in enumerate(lines) if line.draw is not None and isinstance(line, Chances)}
    normal = [p for p, line in enumerate(lines) if line.draw is not None and p not in even]
    numbers = [sql.alias(uniform(cells.dialect, p, WHOLE.bit_length() - 1), f"z{p}") for p in even]
    steps = [sql.alias(uniform(cells.dialect, p, STEPS.bit_length() - 1), f"q{p}") for p in normal]
    found = sql.select([exp.Star(), *numbers, *steps], rows)
    for p in normal:
        table = exp.Table(this=sql.name(NORMAL), alias=exp.TableAlias(this=sql.name(f"n{p}")))
        on = exp.EQ(
            this=exp.column(f"q{p}", table="t", quoted=True),
            expression=exp.column("step", table=f"n{p}", quoted=True),
        )
        value = sql.alias(exp.column("z", table=f"n{p}", quoted=True), f"z{p}")
        every = exp.Column(this=exp.Star(), table=sql.name("t"))
        found = sql.select([every, value], found).join(table, on=on, copy=False)
    return found


def seen_by(cells: RowView, columns: Sequence[str]) -> list[Sql]:
    """All that a statement over `columns` can see of a row."""
    return [*map(code, columns), *(each.copy() for each in dict.fromkeys(cells.asked.values()))]


@cache
def normal_table() -> pa.Table:
    """The middle of each of `STEPS` equally likely parts of the normal law, in steps of 2^-16."""
    law = NormalDist()
    found = [round(law.inv_cdf((step + 0.5) / STEPS) * 2**FINE) for step in range(STEPS)]
    return pa.table({"step": pa.array(range(STEPS), pa.int64()), "z": pa.array(found, pa.int64())})


def _joined(first: Sql, *rest: Sql) -> Sql:
    for part in rest:
        first = exp.DPipe(this=first, expression=part)
    return first
