"""With the noise taken out, every ask gives the textbook's answer, through the real engine.

The textbook is written here once more, in plain Python on plain rows, and shares no code with the library.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pandas as pd
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.doubles import ZeroNoise
from tests.tables import EVERY_KIND, Row, answer, arrow, every_plan, make_plan, plain_tallies, tally

Truth = bool | None
Condition = tuple[str, Callable[[Row], Truth], frozenset[str]]
"""A condition as a plan writes it, as Python judges it, and the columns it compares."""

GRID = Fraction(1, 2)


def pay_of(row: Row) -> float | None:
    """Pay is asked of those who may be 15 or older."""
    return None if row["age"] is not None and row["age"] < 15 else row["pay"]


def not_asked(row: Row, column: str) -> bool:
    return column == "pay" and row["age"] is not None and row["age"] < 15


def cell(row: Row, column: str) -> Any:
    return pay_of(row) if column == "pay" else row[column]


def is_missing(row: Row, column: str) -> bool:
    return cell(row, column) is None and not not_asked(row, column)


OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def compare(column: str, op: str, value: Any) -> Condition:
    written = f"'{value}'" if isinstance(value, str) else str(value)

    def judge(row: Row) -> Truth:
        return None if cell(row, column) is None else OPS[op](cell(row, column), value)

    return f"{column} {op} {written}", judge, frozenset({column})


def status(column: str, word: str) -> Condition:
    judges: dict[str, Callable[[Row], Truth]] = {
        "missing": lambda row: is_missing(row, column),
        "answered": lambda row: cell(row, column) is not None,
    }
    return f"{column} is {word}", judges[word], frozenset()


def negated(one: Condition) -> Condition:
    return f"not ({one[0]})", lambda row: None if one[1](row) is None else not one[1](row), one[2]


def both(one: Condition, other: Condition) -> Condition:
    def judge(row: Row) -> Truth:
        a, b = one[1](row), other[1](row)
        return False if a is False or b is False else None if a is None or b is None else True

    return f"({one[0]}) and ({other[0]})", judge, one[2] | other[2]


def either(one: Condition, other: Condition) -> Condition:
    _, judge, used = negated(both(negated(one), negated(other)))
    return f"({one[0]}) or ({other[0]})", judge, used


simple = st.one_of(
    st.builds(compare, st.just("sex"), st.sampled_from(["=", "!="]), st.sampled_from(["f", "m", "x"])),
    st.builds(compare, st.just("age"), st.sampled_from(sorted(OPS)), st.sampled_from([0, 15, 40, 99])),
    st.builds(compare, st.just("pay"), st.sampled_from(["<", ">="]), st.sampled_from([-50, 0, 20])),
    st.builds(status, st.sampled_from(["sex", "age", "pay"]), st.sampled_from(["missing", "answered"])),
)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(negated, inner), st.builds(both, inner, inner), st.builds(either, inner, inner)
    ),
    max_leaves=4,
)
people = st.lists(
    st.fixed_dictionaries(
        {
            "sex": st.sampled_from(["f", "m", "x", None]),
            "age": st.one_of(st.none(), st.sampled_from([0, 14, 15, 16, 40, 41, 99])),
            "pay": st.one_of(st.none(), st.integers(-100, 300).map(lambda k: k / 2)),
            "w": st.one_of(st.none(), st.integers(0, 16).map(lambda k: k / 4)),
        }
    ),
    max_size=9,
)


def kept(rows: Sequence[Row], where: Condition, *columns: str) -> list[Row]:
    """Rows where the condition holds, nothing it compares is missing, and every column named has an answer."""
    return [
        row
        for row in rows
        if where[1](row) is True
        and not any(is_missing(row, used) for used in where[2])
        and all(cell(row, column) is not None for column in columns)
    ]


def weight(row: Row, weighted: bool) -> Fraction:
    return Fraction(row["w"]) if weighted else Fraction(1)


def textbook(rows: Sequence[Row], where: Condition, of: Condition, weighted: bool) -> dict[str, Any]:
    """Every answer by its definition."""
    w = ("w",) if weighted else ()
    counted, paid = kept(rows, where, *w), kept(rows, where, "pay", *w)
    decided = [
        row
        for row in kept(rows, where, *w)
        if of[1](row) is not None and not any(is_missing(row, used) for used in of[2])
    ]
    values = [(weight(row, weighted), Fraction(cell(row, "pay"))) for row in paid]
    size = sum((g for g, _ in values), Fraction(0))
    total = sum((g * v for g, v in values), Fraction(0))
    found: dict[str, Any] = {
        "count": sum((weight(row, weighted) for row in counted), Fraction(0)),
        "total": total,
        "paid": (size, [v for g, v in values for _ in range(int(4 * g))]),
    }
    share = sum((weight(row, weighted) for row in decided), Fraction(0))
    if share >= 1:
        found["proportion"] = sum((weight(r, weighted) for r in decided if of[1](r)), Fraction(0)) / share
    if size >= 1:
        found["mean"] = total / size
        squares = sum((g * (v - total / size) ** 2 for g, v in values), Fraction(0))
        found["variance"] = squares / max(Fraction(1), size - (0 if weighted else 1))
        found["excess"] = size / max(Fraction(1), size - (0 if weighted else 1)) * (GRID / 2) ** 2
    return found


CHILD: Row = {"sex": "f", "age": 5, "pay": 10.0, "w": 1.0}
NEVER = compare("pay", "<", -50)


@example(rows=[CHILD], where=negated(NEVER), of=negated(NEVER), weighted=False)
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=people, where=conditions, of=conditions, weighted=st.booleans())
def test_without_noise_every_ask_is_the_textbooks(rows, where, of, weighted) -> None:
    common = {"where": where[0], **({"weight": "w"} if weighted else {})}
    plan = make_plan(
        [
            {"count": "*", **common},
            {"total": "pay", **common},
            {"proportion": of[0], **common},
            {"mean": "pay", **common},
            {"variance": "pay", **common},
            {"median": "pay", "step": "0.5", **common},
            {"quantile": "pay", "at": "0.3", "step": "0.5", **common},
            {"table": ["sex", "pay"], "bins": {"pay": [-50, 0, 20, 150]}, **common},
        ]
    )
    answers = answer(plan, rows, ZeroNoise())
    got = [made.estimates[0].value for made in answers.values()]
    want = textbook(rows, where, of, weighted)
    assert got[0] == want["count"] and got[1] == want["total"]
    assert "proportion" not in want or got[2] == want["proportion"]
    if "mean" in want:
        assert got[3] == want["mean"]
        # Squares are taken about the mean on the grid: at most half a step off.
        assert 0 <= got[4] - want["variance"] <= want["excess"]
    for place, at in ((5, Fraction(1, 2)), (6, Fraction(3, 10))):
        check_quantile(got[place], want["paid"][1], at)
    margin = {tuple(dict(e.cell).values()): e.value for e in answers["ask 7"].estimates}
    check_margin(margin, rows, where, weighted)


def check_quantile(found: Fraction, values: Sequence[Fraction], at: Fraction) -> None:
    """A quantile has at most a share `at` below it and at most 1 - at above it; any value, of nobody."""
    below, above = sum(v < found for v in values), sum(v > found for v in values)
    assert below <= at * len(values) and above <= (1 - at) * len(values)


def check_margin(margin: Any, rows: Sequence[Row], where: Condition, weighted: bool) -> None:
    """Against pandas: every declared cell, zero where nobody is."""

    def label(row: Row) -> str:
        pay = cell(row, "pay")
        if pay is None:
            return "(not asked)" if not_asked(row, "pay") else "(missing)"
        return "-50 to under 0" if pay < 0 else "0 to under 20" if pay < 20 else "20 to 150"

    counted = kept(rows, where, *(("w",) if weighted else ()))
    frame = pd.DataFrame(
        [(row["sex"] or "(missing)", label(row), weight(row, weighted)) for row in counted],
        columns=["sex", "pay", "n"],
    )
    counts = frame.groupby(["sex", "pay"])["n"].sum().to_dict()
    assert len(margin) == 4 * 5
    assert {key: value for key, value in margin.items() if value} == {k: v for k, v in counts.items() if v}


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(rows=people)
def test_plain_tallies_are_the_engines(rows) -> None:
    """Brute force elsewhere uses tallies in plain Python; here they are held to the engine's."""
    steps = {"age": 1, "pay": 2, "w": 4}
    codes = [
        {
            "sex": None if row["sex"] is None else "fmx".index(row["sex"]),
            **{name: None if row[name] is None else int(row[name] * k) for name, k in steps.items()},
        }
        for row in rows
    ]
    plan = every_plan()
    plain, real = plain_tallies(plan, codes), tally(plan, arrow(rows, plan.schema))
    assert plain.statistics.sums == real.statistics.sums and plain.tables == real.tables


def test_the_textbook_notices_a_wrong_answer() -> None:
    """The twin: means over all rows, silent ones as zeros, which many a script computes."""
    rows = [{"sex": "f", "age": 40, "pay": 10.0, "w": 1.0}, {"sex": "f", "age": 40, "pay": None, "w": 1.0}]
    everybody: Condition = ("sex is answered", lambda row: row["sex"] is not None, frozenset())
    plan = make_plan([{**EVERY_KIND[6], "mean": "pay"}])
    ours = answer(plan, rows, ZeroNoise())["ask 0"].estimates[0].value
    naive = Fraction(sum(row["pay"] or 0 for row in rows)) / len(rows)
    assert ours == textbook(rows, everybody, everybody, False)["mean"] != naive
