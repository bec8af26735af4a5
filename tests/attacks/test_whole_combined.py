"""Whole releases of plans that put sections together in unusual ways, mostly on columns that capped donors fill.

Each combination runs through the engine from rows to files, on neighbours and on surveys that have nothing in common with the
first, along one transcript. Of every measurement all domains together lose what it pays, and all other calls move within their
bound; and whoever is in the survey, the bytes are those of the transcript.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import pytest

from reticent.plan.plan import Plan
from reticent.privacy.ledger.history import CHANCE
from reticent.sensitivity.bounds import Neighbours
from tests.answer.test_capped import Person, people
from tests.attacks.whole import Run, run
from tests.doubles import Call
from tests.tables import ADD, REPLACE, book, cell_tables, make_plan, renamed

COLUMNS: dict[str, Any] = {
    "g": {"kind": "categorical", "levels": ["a", "b"]},
    "y": {"kind": "integer", "bounds": [-1, 3], "universe": "u = 'in'"},
    "z": {"kind": "integer", "bounds": [0, 2]},
    "s": {"kind": "ordinal", "levels": ["p", "q"], "positions": [0, 3], "universe": "z >= 1 or g = 'a'"},
    "u": {"kind": "categorical", "levels": ["in", "out"]},
    "w": {"kind": "integer", "bounds": [0, 3], "role": "weight"},
}
DEALT = {**COLUMNS, "group": {"kind": "categorical", "role": "psu", "dealt": 6}}
HOUSES = {**COLUMNS, "g": {**COLUMNS["g"], "of": "household"}, "u": {**COLUMNS["u"], "of": "household"}}

TWO_LEVELS = {
    "method": "donors",
    "column": "s",
    "match": [{"on": ["u"], "serve": 2}, {"on": [], "serve": 1}],
    "donors": 2,
}
VALUE = {
    "method": "donors",
    "column": "y",
    "match": [{"on": [], "serve": 2}],
    "default": {"line": ["g", "u"], "epsilon": "3"},
}
TOGETHER = {
    "method": "donors",
    "columns": ["y", "s"],
    "together": True,
    "match": [{"on": ["u"], "serve": 1}, {"on": [], "serve": 2}],
    "donors": 3,
}
ONE = {"method": "donors", "column": "s", "match": [{"on": [], "serve": 2}], "donors": 1}
BLANK = {"if": "g = 'b' and z = 2", "then": {"s": "missing"}}
DEDUCED = {"if": "y = 3", "then": {"z": "2"}, "replace": True}
PREDICTED = {
    "method": "regression",
    "column": "z",
    "from": ["s", "g"],
    "epsilon": "5",
    "fill": "predicted",
}
LIKELIEST = {"method": "classes", "column": "g", "from": ["s"], "epsilon": "5", "fill": "mode"}
FACTORS = {
    "base": "w",
    "by": [{"column": "u", "missing": "in"}],
    "totals": [{"u": "in", "total": "300"}, {"u": "out", "total": "100"}],
    "factors": {"epsilon": "7"},
}
POST = {"weight": "poststratified"}
LOT = {"name": "lots", "piece": 2, "pieces": 2, "draw": CHANCE}
ROWS = {"name": "rows", "rows": 5, "bins": 3, "epsilon": "2", "columns": ["s", "y", "g"]}
OPEN = {"epsilon": "1000", "accept_large": True, "delta": "0.001"}


@dataclass(frozen=True)
class Combined:
    """A plan, and whether calls of one price are the domains of one measurement."""

    repair: Sequence[dict[str, Any]]
    queries: Sequence[dict[str, Any]] = ()
    columns: dict[str, Any] = field(default_factory=lambda: COLUMNS)
    change: str = ADD
    at_most: int = 1
    by_domain: bool = False
    in_rho: bool = False
    more: dict[str, Any] = field(default_factory=dict)

    def plan(self) -> Plan:
        named = {"unit_name": "household"} if self.columns is HOUSES else {}
        unit: dict[str, Any] = {"unit": "who", "at_most": self.at_most, **named} if self.at_most > 1 else {}
        return make_plan(
            self.queries,
            book(self.columns, **unit),
            change=self.change,
            repair=self.repair,
            in_rho=self.in_rho,
            **self.more,
        )


COMBINED: dict[str, Combined] = {
    "two levels, known totals, domains that donors fill": Combined(
        [TWO_LEVELS, VALUE],
        [{"mean": "y", "by": ["s"], **POST}],
        by_domain=True,
        more={"weight": FACTORS},
    ),
    "blanked answers, together, medians of domains, known totals": Combined(
        [BLANK, TOGETHER],
        [{"median": "y", "step": "1", "by": ["s", "g"], **POST}],
        by_domain=True,
        more={"weight": FACTORS},
    ),
    "positions filled, two records, replaced, in rho": Combined(
        [TWO_LEVELS, DEDUCED],
        [{"total": "s", "by": ["g"], "weight": "w"}],
        change=REPLACE,
        at_most=2,
        by_domain=True,
        in_rho=True,
    ),
    "a line after donors, and what it predicts as a domain": Combined(
        [TWO_LEVELS, BLANK, PREDICTED],
        [{"count": "*", "by": ["z"], "bins": {"z": [0, 1, 2]}}],
        by_domain=True,
    ),
    "one model after another after donors": Combined(
        [TWO_LEVELS, LIKELIEST, PREDICTED],
        [{"table": ["g", "z"], "bins": {"z": [0, 2]}, "weight": "w"}],
        at_most=2,
    ),
    "unserved, in a piece by chance": Combined(
        [TOGETHER, BLANK], [{"unserved": "s"}, {"count": "*", "where": "s = 'p'"}], more={"partition": LOT}
    ),
    "tables that add up, known totals, replaced": Combined(
        [TWO_LEVELS, VALUE],
        [{"count": "*", **POST}],
        change=REPLACE,
        more={
            "weight": FACTORS,
            "tables": [{"name": "t", "margins": [["s", "g"], ["u"]], "epsilon": "9", **POST}],
        },
    ),
    "a line in every domain that donors fill": Combined(
        [TOGETHER, DEDUCED],
        by_domain=True,
        at_most=2,
        more={"regression": [{"name": "r", "y": "y", "x": ["z"], "by": ["s"], "epsilon": "2"}]},
    ),
    "a line on donors' answers among those whom they put there, in rho": Combined(
        [TWO_LEVELS, VALUE],
        in_rho=True,
        more={
            "regression": [{"name": "r", "y": "y", "x": ["z", "g"], "where": "not s = 'q'", "epsilon": "2"}]
        },
    ),
    "rows of households, weighted by who answers, with residuals": Combined(
        [ONE, BLANK],
        at_most=2,
        more={
            "synth": [{**ROWS, "method": "mst", "inference": True, "pairs": "chosen", "delta": "0.000001"}],
            "protect": {"change": ADD, **OPEN},
        },
    ),
    "rows by aim, pure, with answers, in a piece": Combined(
        [{**ONE, "default": {"mean": "g", "epsilon": "3"}}],
        more={
            "partition": LOT,
            "synth": [
                {
                    **ROWS,
                    "method": "aim",
                    "answer": [
                        {"name": "p", "query": {"proportion": "s = 'p'"}, "design_effect": "1.5"},
                        {"name": "y", "query": {"mean": "y"}, "design_effect": "1.5"},
                    ],
                }
            ],
        },
    ),
    "rows by privbayes, replaced, in rho": Combined(
        [VALUE, ONE],
        change=REPLACE,
        in_rho=True,
        more={"synth": renamed([{**ROWS, "method": "privbayes", "missing": "category"}])},
    ),
    "small cells that donors fill": Combined(
        [{**TOGETHER, "donors": 1}],
        at_most=2,
        more={
            "cells": [
                {
                    "name": "c",
                    "cell": "s",
                    "y": "y",
                    "estimate": {"mean": True},
                    "method": "smooth",
                    "epsilon": "8",
                    "count_epsilon": "2",
                }
            ]
        },
    ),
    "sampling errors of domains beside donors, dealt groups": Combined(
        [{**ONE, "match": [{"on": ["u"], "serve": 2}]}],
        [{"proportion": "z >= 1", "by": ["u"], "weight": "w"}],
        columns=DEALT,
        change=REPLACE,
        at_most=2,
        by_domain=True,
        more={"asks": {0: {"sampling": {"epsilon": "9"}}}},
    ),
    "households beside donors": Combined(
        [ONE],
        [{"count": "*", "by": ["g"], "per": "household"}, {"count": "*", "where": "s = 'p'", "by": ["u"]}],
        columns=HOUSES,
        at_most=2,
        by_domain=True,
        more={"asks": {1: {"epsilon": "2"}}},
    ),
}


DONOR: Person = {"g": "a", "y": 3, "z": 2, "s": "q", "u": "in", "w": 3}
SILENT: Person = {**DONOR, "y": None, "s": None}
OTHERWISE: Person = {"g": "b", "y": -1, "z": 1, "s": "p", "u": "out", "w": 3}


def crowd(plan: Plan) -> list[list[Person]]:
    """One respondent who answers, with all the records there may be, among many like them who do not; and two neighbours."""
    first = [{**DONOR, "who": "p0"}] * plan.schema.at_most
    others = [{**SILENT, "who": f"p{place}"} for place in range(1, 13)]
    changed = [{**OTHERWISE, "who": "p0"}] * plan.schema.at_most if plan.neighbours.replaced else []
    more = {**DONOR, "who": "p1"} if plan.neighbours.replaced else {**OTHERWISE, "who": "p13"}
    return [[*first, *others], [*changed, *others], [*first, *others[plan.neighbours.replaced :], more]]


def ordinary(plan: Plan, seed: int) -> list[list[Person]]:
    """A survey of few groups and much silence; and a neighbour, of whom somebody went or answered otherwise."""
    rows, others = people(seed, 10), people(seed + 100, 10)
    at = 2 * Random(seed).randrange(4)
    gone = [at, at + 1][: plan.schema.at_most]
    left = [row for place, row in enumerate(rows) if place not in gone]
    new = [{**others[place], "who": rows[place]["who"]} for place in gone] if plan.neighbours.replaced else []
    return [rows, [*left, *new]]


def strangers() -> Iterator[list[Person]]:
    """Surveys that no neighbour is near to: nobody, and the same answers again and again beside one who says nothing."""
    yield []
    yield [*({**OTHERWISE, "who": f"p{place}"} for place in range(30)), dict.fromkeys([*COLUMNS, "who"])]


def excess(combined: Combined, one: Run, other: Run) -> Fraction:
    """The most that is lost of a measurement, in shares of what it pays: 1 where a bound is attained."""
    assert [call.parameters for call in one.calls] == [call.parameters for call in other.calls]
    lost: dict[object, list[Fraction]] = {}
    for a, b in zip(one.calls, other.calls, strict=True):
        lost.setdefault((a.kind, a.epsilon), []).append(share(a, b))
    together = sum if combined.by_domain else max
    return max([Fraction(0), *(Fraction(together(each)) for each in lost.values())])


def share(one: Call, other: Call) -> Fraction:
    """Of what a call pays, in its own unit: of rho the square of the distance."""
    ratio = Fraction(one.distance(other)) / Fraction(one.sensitivity)
    return ratio**2 if one.kind.startswith("gaussian") else ratio


def counted(plan: Plan, one: Run, other: Run) -> Fraction:
    """The same of the counts of small cells, which meet their noise elsewhere."""
    lost = [Fraction(0)]
    for (kind, public, here), (_, _, there) in zip(one.doors.noted, other.doors.noted, strict=True):
        if kind == "counts":
            moved = sum(abs(int(a) - int(b)) for a, b in zip(here, there, strict=True))
            lost.append(moved * public[0] / cell_tables(plan)[0].count_epsilon)
    return max(lost)


@cache
def begun(name: str) -> tuple[Plan, list[list[Person]], Run]:
    """The plan of a combination, and its release of the crowd, whose neighbours come with it."""
    plan = COMBINED[name].plan()
    rows, *others = crowd(plan)
    return plan, others, run(plan, rows)


def worst(combined: Combined, plan: Plan, here: Run, others: Sequence[Sequence[Person]]) -> Fraction:
    """Over neighbours of a survey; every run leaves the bytes of its transcript."""
    found = [Fraction(0)]
    for other in others:
        there = run(plan, other, here.outputs)
        assert there.seen == here.seen
        found += [excess(combined, here, there), counted(plan, here, there)]
    return max(found)


NEARLY = Fraction(1, 10**6)  # lengths before Gaussian noise are roots


# covers T08 T12 T20
@pytest.mark.parametrize("name", COMBINED)
def test_no_neighbour_costs_more_than_is_paid_and_none_is_seen(name: str) -> None:
    """In a crowd around one who answers, where most bounds are attained, and in an ordinary survey."""
    plan, others, here = begun(name)
    rows, *more = ordinary(plan, 3)
    crowded = worst(COMBINED[name], plan, here, others)
    assert 0 < crowded <= 1 + NEARLY
    assert worst(COMBINED[name], plan, run(plan, rows), more) <= 1 + NEARLY


# covers T10 T12 T13 T20 B068 B069
@pytest.mark.parametrize("name", COMBINED)
def test_any_survey_leaves_the_bytes_of_the_transcript(name: str) -> None:
    """The same calls, parameters and bytes, however many there are and whatever they said."""
    plan, _, here = begun(name)
    for other in strangers():
        there = run(plan, other, here.outputs)
        assert there.seen == here.seen
        assert [call.parameters for call in there.calls] == [call.parameters for call in here.calls]


TWINS = {
    "rows of households, weighted by who answers, with residuals": ("plan.synth.stability", lambda *_: 1),
    "small cells that donors fill": ("plan.cells.stability", lambda *_: 1),
    "one model after another after donors": ("plan.repairs.served", lambda *_: 0),
    "a line in every domain that donors fill": (
        "plan.regression.fitted_to",
        lambda own, *_, **__: Neighbours(records=own.records, apart=True),
    ),
}


# covers T08 T20
@pytest.mark.parametrize("name", TWINS)
def test_noise_for_ones_own_records_alone_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twins: donees left out where a section reads rows that donors filled."""
    where, naive = TWINS[name]
    monkeypatch.setattr(f"reticent.{where}", naive)
    plan, others, here = begun.__wrapped__(name)
    assert worst(COMBINED[name], plan, here, others) > 1 + NEARLY
