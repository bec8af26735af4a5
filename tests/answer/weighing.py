"""A small survey weighted to known totals, and the textbook's answers to it, record by record in fractions."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from reticent.plan.plan import Plan
from reticent.prepare.strata import Strategy
from tests.tables import ADD, Row, make_plan

AGES = ("0 to under 18", "18 to under 65", "65 to 99")
SEXES = ("f", "m", "x")
BY = [
    {"column": "age", "bins": [0, 18, 65, 99], "missing": AGES[1]},
    {"column": "sex", "missing": "x"},
]
TOTALS = [
    {"age": age, "sex": sex, "total": str(total)}
    for age, line in zip(AGES, ((30, 31, 2), (80, 75, 0), (25, 20, 1)), strict=True)
    for sex, total in zip(SEXES, line, strict=True)
]
QUERIES = [
    {"count": "*", "where": "pay > 20", "weight": "poststratified"},
    {"total": "pay", "weight": "poststratified"},
    {"proportion": "pay > 20", "where": "sex in ('f', 'm')", "weight": "poststratified"},
    {"mean": "pay", "where": "age >= 30", "weight": "poststratified"},
]
BARS = {0: {"interval": {"epsilon": "0.5"}}, 3: {"interval": {"epsilon": "0.5"}}}
COLLAPSE = {"along": ["age", "sex"]}
RAKE = {
    "epsilon": "0.5",
    "margin": [
        {"by": ["age"], "totals": [{"age": a, "total": n} for a, n in zip(AGES, (63, 155, 46), strict=True)]},
        {
            "by": ["sex"],
            "totals": [{"sex": s, "total": n} for s, n in zip(SEXES, (135, 126, 3), strict=True)],
        },
    ],
}
EACH = [
    {"by": ["age"], "strategy": [{"name": "ages"}, {"name": "any age", "by": []}], "epsilon": "0.25"},
    {"by": ["sex"], "strategy": [{"name": "sexes"}, {"name": "any sex", "by": []}], "epsilon": "0.5"},
]


def weighted_plan(*, weight: Mapping[str, Any] | None = None, **options: Any) -> Plan:
    """Every kind of weighted ask, two with error bars."""
    section = {"by": BY, "totals": TOTALS, **(weight or {})}
    given = {"asks": BARS, "expect": {"rows": 40}, "change": ADD, **options}
    return make_plan(given.pop("queries", QUERIES), weight=section, **given)


def cell_of(row: Row) -> int:
    """The base cell: age fastest last, so 3 x age + sex; whoever did not say is 18 to 64, or x."""
    age, sex = row["age"], row["sex"]
    band = 1 if age is None else 0 if age < 18 else 1 if age < 65 else 2
    return 3 * band + (SEXES.index(sex) if sex in SEXES else 2)


def weights(rows: Sequence[Row], strategy: Strategy, *, base: bool) -> list[Fraction]:
    """w N/B for every record; 0 for one without a base weight."""
    own = [Fraction(row["w"] or 0) if base else Fraction(1) for row in rows]
    bins = [strategy.bins[cell_of(row)] for row in rows]
    sums = [Fraction(0)] * len(strategy.totals)
    for place, weight in zip(bins, own, strict=True):
        sums[place] += weight
    return [
        w * strategy.totals[b] / sums[b] if sums[b] else Fraction(0) for w, b in zip(own, bins, strict=True)
    ]


def textbook(rows: Sequence[Row], strategy: Strategy, *, base: bool) -> list[Fraction]:
    """The four answers of QUERIES; who did not say, or was not asked (under 15), is no member."""
    weight = weights(rows, strategy, base=base)

    def asked(row: Row) -> bool:
        return row["pay"] is not None and (row["age"] is None or row["age"] >= 15)

    def add(value: Callable[[Row], Any]) -> Fraction:
        found = ((w, value(row)) for w, row in zip(weight, rows, strict=True))
        return sum((w * Fraction(v) for w, v in found), Fraction(0))

    count = add(lambda r: asked(r) and r["pay"] > 20)
    total = add(lambda r: r["pay"] if asked(r) else 0)
    known = add(lambda r: asked(r) and r["sex"] in ("f", "m"))
    true = add(lambda r: asked(r) and r["sex"] in ("f", "m") and r["pay"] > 20)
    old = add(lambda r: asked(r) and (r["age"] or 0) >= 30)
    paid = add(lambda r: r["pay"] if asked(r) and (r["age"] or 0) >= 30 else 0)
    return [count, total, true / known, paid / old]
