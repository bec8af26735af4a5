"""Replicate weights in SQL: a record's deviations from its base weight, in whole numbers, held to a public length.

Of a record with base weight w and replicate weights w_r, all in codes, d_r = w_r - w, 0 where a replicate is missing. The
variance gives them the length L = sqrt(sum of c_r d_r^2), which may be at most reach x w. Where it is longer, all of them are
multiplied by one whole number of 1024ths, rounded down; so a sum of them is exact. THEORY 13.1.
"""

from sqlglot import exp

from reticent.engine.sql import build as sql
from reticent.engine.sql.build import Sql
from reticent.engine.sql.clean import RowView, code
from reticent.schema.replicates import WHOLE_LENGTH, Replicates

SHARE = "replicate_share_"


def with_deviations(clean: RowView, rows: exp.Select) -> exp.Select:
    """The rows with a column for the deviations of each replicate weight.

    Guarantee   a record's deviations d depend on that record alone, are whole, and sum of c_r d_r^2 is at most
                (1024 reach w)^2 (1 + 10^-9)^2; they are missing where the base weight is.
    Adjacency   any.
    Theorem     THEORY 13.1.
    Proof       proofs/sensitivity/design.md
    Assumes     base weights from 0 on; codes below 2^53; at most 1000 replicates; doubles round to nearest.
    Keeps back  all of it until noise is added.
    """
    held = clean.schema.replicates
    if held is None:
        raise ValueError("the codebook has no replicate weights")
    plain = [sql.alias(_deviation(clean, held, each), f"e_{each}") for each in held.columns]
    rows = sql.select([exp.Star(), *plain], rows)
    rows = sql.select([exp.Star(), sql.alias(_share(clean, held), SHARE)], rows)
    scaled = [
        sql.alias(sql.times(sql.column(SHARE), sql.column(f"e_{each}")), f"d_{each}") for each in held.columns
    ]
    return sql.select([exp.Star(), *scaled], rows)


def _deviation(clean: RowView, held: Replicates, column: str) -> Sql:
    """w_r - w in codes; 0 where the replicate is missing, missing where the base weight is."""
    base = clean.dialect.cast(code(held.weight), "BIGINT")
    own = exp.Coalesce(this=clean.dialect.cast(code(column), "BIGINT"), expressions=[base.copy()])
    return sql.minus(own, base)


def _share(clean: RowView, held: Replicates) -> Sql:
    """By how many 1024ths the deviations are multiplied: floor(1024 reach w / L), at most 1024."""
    dialect = clean.dialect

    def double(value: float) -> Sql:
        return dialect.cast(exp.Literal.string(repr(value)), "DOUBLE")

    squares = []
    for each, factor in zip(held.columns, held.factors, strict=True):
        own = dialect.cast(sql.column(f"e_{each}"), "DOUBLE")
        squares.append(sql.times(double(float(factor)), sql.times(own, own.copy())))
    length = _added(squares)
    allowed = sql.times(double(float(held.reach)), dialect.cast(code(held.weight), "DOUBLE"))
    is_short = exp.LTE(
        this=exp.Paren(this=length), expression=exp.Paren(this=sql.times(allowed.copy(), allowed.copy()))
    )
    part = exp.Div(this=exp.Paren(this=allowed), expression=sql.call("sqrt", length.copy()))
    held_to = sql.call("floor", sql.times(double(float(WHOLE_LENGTH)), part))
    whole = dialect.cast(sql.number(WHOLE_LENGTH), "BIGINT")
    return sql.case([(is_short, whole)], dialect.cast(held_to, "BIGINT"))


def _added(parts: list[Sql]) -> Sql:
    """The sum of all, halving each time: engines limit how deep an expression may go."""
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    return sql.plus(_added(parts[:half]), _added(parts[half:]))
