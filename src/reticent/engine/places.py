"""Places on the ring: a keyed polynomial over the field of p = 2^61 - 1 elements, in whole numbers.

The numbers x_1, ..., x_n of a label give z = a_0 + a_1 x_1 + ... + a_n x_n, and z gives the place
c_0 + c_1 z + c_2 z^2 + c_3 z^3, all modulo p. With coefficients drawn evenly, places of labels with different z
are even and independent, any four of them (Wegman and Carter, 1981), and two labels share a z with chance 1/p. The
coefficients come from the key by SHA-256. Nothing that is promised rests on how even the places are: only the
size of the noise does. A digest of every record's text would do as well, at several times the cost.
"""

from collections.abc import Sequence
from functools import reduce
from hashlib import sha256

from sqlglot import exp

from reticent.engine import sql
from reticent.engine.sql import Sql

BITS = 61
PRIME = 2**BITS - 1
_AT_ONCE = 4  # products of 2^63 by 2^61: their sum is below 2^126


def coefficients(key: str, count: int) -> list[int]:
    """`count` elements of the field, from the key."""
    digests = (sha256(f"{key}|{i}".encode()).digest() for i in range(count))
    return [int.from_bytes(digest) % PRIME for digest in digests]


def placed(rows: exp.Select, label: Sequence[Sql], key: str, *, keep: Sequence[str], name: str) -> exp.Select:
    """`rows` with the columns `keep` and, as `name`, the place of the numbers in `label`, each from 0 to 2^63 - 1.

    One nested SELECT for each product, folded before the next: no whole number passes 2^127.
    """
    a0, c0, c1, c2, c3, *a = coefficients(key, len(label) + 5)
    terms = [sql.times(_wide(number), _field(by)) for number, by in zip(label, a, strict=True)]
    parts = [terms[start : start + _AT_ONCE] for start in range(0, len(terms), _AT_ONCE)]
    sums = [sql.alias(reduce(sql.plus, part), f"s{i}") for i, part in enumerate(parts)]
    kept = [sql.column(each) for each in keep]
    query = sql.select([*kept, *sums], rows)
    z = reduce(sql.plus, (_folded(f"s{i}") for i in range(len(parts))), _field(a0))
    query = sql.select([*kept, sql.alias(z, "t")], query)
    query = sql.select([*kept, sql.alias(_folded("t"), "z")], query)
    h: Sql = _field(c3)
    for c in (c2, c1, c0):
        h = sql.plus(sql.times(h, sql.column("z")), _field(c))
        query = sql.select([*kept, sql.column("z"), sql.alias(h, "h")], query)
        h = _folded("h")
    place = exp.Mod(this=exp.Paren(this=sql.cast(h, "BIGINT")), expression=sql.number(PRIME))
    return sql.select([*kept, sql.alias(place, name)], query)


def _folded(name: str) -> Sql:
    """The same modulo p, in 61 bits or few more: 2^61 is 1 there."""
    low = exp.BitwiseAnd(this=sql.column(name), expression=_field(PRIME))
    high = exp.BitwiseRightShift(this=sql.column(name), expression=sql.number(BITS))
    return sql.plus(low, high)


def _field(value: int) -> Sql:
    return _wide(sql.number(value))


def _wide(value: Sql) -> Sql:
    return sql.cast(value, "HUGEINT")
