"""Tables that add up: one epsilon for all margins, intervals that hold the exact counts, numbers an office can print."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from reticent.answer.add_up import ALL, MarginAnswer, MarginTables, answer_tables
from reticent.engine.wants import SufficientStatistics, Tallies
from reticent.errors import PlanError
from reticent.noise.source import Noise, SystemNoise
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, Row, _table, book, cells_of, make_plan

COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "age": {"kind": "integer", "bounds": [0, 3]},
    "job": {"kind": "categorical", "levels": ["yes", "no"], "universe": "age >= 1"},
}
BINS = {"age": [0, 1, 2, 3]}
PAIRS = [["sex", "age"], ["age", "job"], ["sex", "job"]]
CHAIN = [["sex", "age"], ["job"]]


def plan_of(margins: Sequence[Sequence[str]], *, change: str = ADD, at_most: int = 1, **keys: Any) -> Plan:
    schema = book(COLUMNS, unit="who", at_most=at_most) if at_most > 1 else book(COLUMNS)
    section = {"name": "t", "margins": margins, "epsilon": "1", **keys}
    if any("age" in margin for margin in margins) and "bins" not in keys:
        section["bins"] = BINS
    return make_plan([], schema, change=change, tables=[section])


def asked_of(plan: Plan) -> MarginTables:
    (product_,) = plan.products
    assert isinstance(product_, AddUpTables)
    return product_.tables[0]


def made(plan: Plan, rows: Sequence[Row], noise: Noise) -> MarginAnswer:
    asked = asked_of(plan)
    people = [cells_of(row, plan.schema) for row in rows]
    tables = {want: _table(want, people, plan.schema) for want in asked.wants(plan.schema, plan.neighbours)}
    tallies = Tallies(statistics=SufficientStatistics(sums={}), tables=tables)
    return answer_tables(asked, tallies, noise, schema=plan.schema, neighbours=plan.neighbours)


PEOPLE: list[Row] = [
    {"sex": s, "age": a, "job": j}
    for s, a, j in [(0, 0, None), (1, 3, 0), (0, 2, 1), (None, 1, None), (1, None, 1)]
]


def changes(change: str, records: int) -> Iterator[tuple[list[Row], list[Row]]]:
    owned = [list(rows) for n in range(records + 1) for rows in combinations_with_replacement(PEOPLE, n)]
    for mine, theirs in product(owned, owned if change == REPLACE else [[]]):
        yield [*PEOPLE[1:3], *mine], [*PEOPLE[1:3], *theirs]


Seen = tuple[FrozenNoise, MarginAnswer]


def lost(plan: Plan, one: Sequence[Row], other: Sequence[Row], known: dict[str, Seen]) -> Fraction:
    """What is lost between two surveys; `known` keeps what was seen of the first, for its other neighbours."""
    first, seen = known.get(str(one)) or (first := FrozenNoise(), made(plan, one, first))
    known[str(one)] = first, seen
    second = FrozenNoise(prescribed=first.outputs)
    assert made(plan, other, second).margins == seen.margins, "something exact is visible"
    assert [a.parameters for a in first.calls] == [b.parameters for b in second.calls]
    pairs = zip(first.calls, second.calls, strict=True)
    return sum((a.epsilon * Fraction(a.distance(b)) / a.sensitivity for a, b in pairs), Fraction(0))


@pytest.mark.parametrize(("change", "records"), [(ADD, 1), (REPLACE, 1), (ADD, 2)], ids=str)
@pytest.mark.parametrize("options", [{}, {"whole": False}, {"add_up": False}], ids=str)
def test_all_margins_together_lose_one_epsilon_at_most(change, records, options):
    """Every neighbour of a small table, both ways of measuring; and the same numbers are seen along one transcript."""
    for margins in (PAIRS, CHAIN):
        plan = plan_of(margins, change=change, at_most=records, **options)
        known: dict[str, Seen] = {}
        losses = [lost(plan, one, other, known) for one, other in changes(change, records)]
        assert max(losses) == 1


RHO = {"protect": {"change": ADD, "measure": "zcdp", "rho": "1", "accept_large": True}}


@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("margins", [PAIRS, CHAIN], ids=str)
def test_all_margins_together_lose_one_rho_at_most(change, margins):
    """Gaussian noise for the Euclidean length of the move: rho (d/D)^2 for each table, over every neighbour."""
    section = {"name": "t", "margins": margins, "rho": "0.5", "bins": BINS, "whole": False}
    protect = {**RHO["protect"], "change": change}
    plan = make_plan([], book(COLUMNS), change=change, tables=[section], protect=protect)
    assert plan.claim.measure == "zcdp" and plan.claim.rho == Fraction(1, 2)
    worst = Fraction(0)
    for one, other in changes(change, 1):
        first = FrozenNoise()
        made(plan, one, first)
        second = FrozenNoise(prescribed=first.outputs)
        made(plan, other, second)
        loss = Fraction(0)
        for a, b in zip(first.calls, second.calls, strict=True):
            assert a.parameters == b.parameters and "gaussian" in a.kind
            square = sum((x - y) ** 2 for x, y in zip(a.answers, b.answers, strict=True))
            loss += a.epsilon * square / Fraction(a.sensitivity) ** 2
        worst = max(worst, loss)
    assert Fraction(49, 100) < worst <= Fraction(1, 2)


def test_a_table_in_two_units_is_refused():
    section = {"name": "t", "margins": [["sex"]], "rho": "0.5", "epsilon": "1"}
    with pytest.raises(PlanError, match=r"rho|epsilon"):
        make_plan([], book(COLUMNS), tables=[section], **RHO)


def test_the_better_of_joint_table_and_margins_is_measured():
    assert len(asked_of(plan_of(PAIRS)).parts(plan_of(PAIRS).schema, plan_of(PAIRS).neighbours)) == 1
    plan = plan_of(CHAIN)
    parts = asked_of(plan).parts(plan.schema, plan.neighbours)
    assert [part.epsilon for part in parts] == [Fraction(1, 2)] * 2
    assert sum(part.epsilon for part in parts) == 1


def table_of(answer: MarginAnswer, place: int) -> dict[tuple[str, ...], float]:
    return {tuple(level for _, level in line.cell): line.value for line in answer.margins[place]}


TOWN: list[Row] = [
    {"sex": i % 2 if i % 11 else None, "age": i * i % 4 if i % 7 else None, "job": i % 3 % 2}
    for i in range(60)
]


@pytest.mark.parametrize("margins", [PAIRS, CHAIN], ids=str)
@pytest.mark.parametrize("noise", [ZeroNoise, SystemNoise])
def test_totals_are_the_sums_of_what_they_are_totals_of(margins, noise):
    """In every margin, along every side, to the last person; and margins agree about what they share."""
    answer = made(plan_of(margins), TOWN, noise())
    grand = set()
    for place in range(len(margins)):
        cells = table_of(answer, place)
        grand.add(cells[tuple(ALL for _ in margins[place])])
        for names, value in cells.items():
            for side, name in enumerate(names):
                if name == ALL:
                    parts = [
                        v
                        for other, v in cells.items()
                        if other[side] != ALL
                        and other[:side] + other[side + 1 :] == names[:side] + names[side + 1 :]
                    ]
                    assert sum(parts) == value
            assert value >= 0 and value == int(value)
    assert len(grand) == 1


def test_without_noise_the_tables_are_the_counts():
    answer = made(plan_of(PAIRS), TOWN, ZeroNoise())
    cells = table_of(answer, 0)
    assert cells["f", "0 to under 1"] == sum(r["sex"] == 0 and r["age"] == 0 for r in TOWN)
    assert cells["(missing)", ALL] == sum(r["sex"] is None for r in TOWN)
    assert cells[ALL, ALL] == len(TOWN)


def test_intervals_hold_the_counts_as_often_as_they_say():
    """40 tables of true noise at level 0.9, every cell of every margin: 0.86 or more held on average; not everything.

    Cells of one table are correlated, so the mean of 40 tables has a standard error below 0.01: false alarm below 1e-4.
    """
    plan = plan_of(PAIRS, level="0.9")
    truth = [table_of(made(plan, TOWN, ZeroNoise()), place) for place in range(3)]
    held: list[bool] = []
    for _ in range(40):
        answer = made(plan, TOWN, SystemNoise())
        for exact, lines in zip(truth, answer.margins, strict=True):
            held += [line.low <= exact[tuple(level for _, level in line.cell)] <= line.high for line in lines]
            assert all(line.low <= line.value <= line.high for line in lines)
    assert 0.86 <= np.mean(held) < 0.99


def test_each_by_itself_is_what_was_measured():
    """Without add_up: noisy cells as they are, negative ones among them, and totals that are their sums."""
    plan = plan_of([["sex"], ["sex", "job"]], add_up=False)
    answer = made(plan, [], FrozenNoise(prescribed=[(-3, 2, 1), tuple(range(-6, 6))]))
    assert table_of(answer, 0) == pytest.approx({("f",): -3, ("m",): 2, ("(missing)",): 1, (ALL,): 0})
    assert table_of(answer, 1)[ALL, ALL] == pytest.approx(sum(range(-6, 6)))


REFUSED = [
    ({"margins": [["town"]]}, "town"),
    ({"margins": [[]]}, "each once"),
    ({"margins": ["sex"]}, "each once"),
    ({"margins": [["sex", "sex"]]}, "each once"),
    ({"margins": [["sex", "job"], ["job", "sex"]]}, "twice"),
    ({"margins": [["age"]], "bins": {}}, "bins"),
    ({"margins": [["sex"]], "whole": True, "add_up": False}, "add_up = true"),
    ({"margins": [["sex"]], "level": "1"}, "0.9999"),
    ({"margins": [["sex"]], "epsilon": "0"}, "positive"),
    ({"margins": [["sex"]], "where": "town = 1"}, "town"),
    ({"margins": [["sex"]], "weight": "w"}, "weight"),
]


@pytest.mark.parametrize(("keys", "words"), REFUSED, ids=str)
def test_what_cannot_be_tabled_is_refused_by_name(keys, words):
    with pytest.raises(PlanError, match=words):
        plan_of(**{"margins": [["sex"]], **keys})


def test_a_joint_table_that_is_too_large_is_refused_with_a_way_out():
    many = {f"c{i}": {"kind": "integer", "bounds": [0, 99]} for i in range(4)}
    bins = {name: list(range(100)) for name in many}
    section = {"name": "t", "margins": [["c0", "c1"], ["c2", "c3"]], "epsilon": "1", "bins": bins}
    with pytest.raises(PlanError, match="whole = false"):
        make_plan([], book(many), tables=[section])
    make_plan([], book(many), tables=[{**section, "whole": False}])


def test_filled_columns_and_pieces_are_refused():
    repair = [{"method": "donors", "bound": "hubs", "column": "job", "match": ["sex"]}]
    section = {"name": "t", "margins": [["sex", "job"]], "epsilon": "1"}
    with pytest.raises(PlanError, match="is filled"):
        make_plan([], book(COLUMNS), repair=repair, tables=[section])
    with pytest.raises(PlanError, match="is filled"):
        make_plan(
            [],
            book(COLUMNS),
            repair=repair,
            tables=[{**section, "margins": [["sex"]], "where": "job = 'yes'"}],
        )
    silent = {**section, "margins": [["sex"]], "where": "job is missing"}
    with pytest.raises(PlanError, match="nobody's is missing any more"):
        make_plan([], book(COLUMNS), repair=repair, tables=[silent])
    make_plan([], book(COLUMNS), tables=[silent])
