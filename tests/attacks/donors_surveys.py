"""Small surveys with gaps, the repairs of a plan, and the way from rows to the noise: reader, engine, `evaluate`."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Aggregate, Ring, RingTable, SufficientStatistics, Sum, Tallies
from reticent.exact import ball
from reticent.plan.plan import Plan
from reticent.release.statistics import evaluate, wants_of
from reticent.sensitivity.hubs import HubCache
from tests.doubles import Call, FrozenNoise
from tests.engine import donors_reference as reference
from tests.engine import slow
from tests.tables import ADD, Row, arrow, book, make_plan

COLUMNS: dict[str, dict[str, Any]] = {
    "site": {"kind": "integer", "bounds": [0, 20]},
    "sex": {"kind": "categorical", "levels": ["f", "m"]},
    "job": {"kind": "categorical", "levels": ["yes", "no"]},
    "pay": {"kind": "integer", "bounds": [-3, 5], "universe": "job = 'yes'"},
    "hours": {"kind": "integer", "bounds": [0, 4]},
    "mood": {"kind": "categorical", "levels": ["low", "mid", "high"]},
    "w": {"kind": "integer", "bounds": [0, 3], "role": "weight"},
}
EDIT = {"if": "hours > 0", "then": {"job": "yes"}}
SITE = {"column": "site", "weight": 2}
REPAIRS: dict[str, list[dict[str, Any]]] = {
    "nearest": [
        EDIT,
        {"method": "donors", "bound": "hubs", "column": "pay", "match": [SITE, "sex"], "default": 5},
    ],
    "mean of three": [
        EDIT,
        {
            "method": "donors",
            "bound": "hubs",
            "column": "pay",
            "match": [SITE],
            "k": 3,
            "default": [-3, 5, 0],
        },
    ],
    "several": [
        {
            "method": "donors",
            "bound": "hubs",
            "column": "pay",
            "match": ["sex", {"column": "site", "groups": [0, 4, 9]}],
        },
        {
            "method": "donors",
            "bound": "hubs",
            "column": "mood",
            "match": [SITE],
            "k": 3,
            "default": ["high", "low", "mid"],
        },
    ],
}
QUERIES: dict[str, list[dict[str, Any]]] = {
    "nearest": [
        {"count": "*", "where": "pay > 0"},
        {"count": "*", "where": "not (pay > 0 and sex = 'f')", "weight": "w"},
        {"total": "pay"},
        {"proportion": "pay > 0", "where": "sex = 'f'"},
        {"correlation": ["pay", "hours"]},
    ],
    "mean of three": [
        {"total": "pay", "where": "pay < 2", "weight": "w"},
        {"mean": "pay", "where": "sex = 'f'"},
        {"variance": "pay", "weight": "w"},
        {"count": "*", "where": "hours is missing"},
    ],
    "several": [
        {"mean": "pay", "where": "mood = 'low'"},
        {"proportion": "mood = 'low' or pay > 0", "weight": "w"},
        {"variance": "pay", "where": "mood in ('low', 'mid')"},
        {"correlation": ["pay", "hours"], "where": "not mood = 'high'"},
    ],
}


@cache
def plan_of(
    kind: str,
    *,
    change: str = ADD,
    epsilon: str = "40",
    bar: str = "",
    owners: int = 0,
    asks: tuple[int, ...] = (),
) -> Plan:
    """A plan on `kind` of repair, of all its queries or some; at a large epsilon bounds lie close to the local ones."""
    codebook = book(COLUMNS, **({"unit": "who", "at_most": owners} if owners else {}))
    queries = [QUERIES[kind][i] for i in asks] or QUERIES[kind]
    bars = {i: {"interval": {"epsilon": bar}} for i in range(len(queries)) if bar}
    options: dict[str, Any] = {"repair": REPAIRS[kind], "asks": bars}
    return make_plan(queries, codebook, change=change, epsilon=epsilon, **options)


# --- through the engine ---------------------------------------------------------------------------------------------

_ENGINES: dict[pa.Schema, DuckDBEngine] = {}
_WANTS: dict[str, tuple[Aggregate, ...]] = {}
_KNOWN: dict[tuple[object, ...], tuple[Tallies, HubCache]] = {}


def close_engines() -> None:
    """What a test module that tallies here calls when it is done."""
    for engine in _ENGINES.values():
        engine.close()
    _ENGINES.clear()
    _KNOWN.clear()


def tally(plan: Plan, rows: Sequence[Row], types: Mapping[str, pa.DataType] | None = None) -> Tallies:
    """The engine's tallies. Opening an engine costs as much as a tally: one serves all tables of like columns."""
    table = arrow(rows, plan.schema, types)
    source, columns = open_frame(table), table.schema
    engine = _ENGINES.get(columns) or _ENGINES.setdefault(columns, DuckDBEngine(source, threads=1))
    engine._source = source
    engine.check(plan.schema)
    return engine.tally(plan.schema, _wants(plan), plan.repair)


def _wants(plan: Plan) -> tuple[Aggregate, ...]:
    if plan.digest not in _WANTS:
        _WANTS[plan.digest] = tuple(wants_of(plan))
    return _WANTS[plan.digest]


def by_hand(plan: Plan, rows: Sequence[Row]) -> Tallies:
    """The same from the definition, one record at a time, for surveys so many that the engine would be slow."""
    people = [{"who": None, **row} for row in rows]
    wants, schema, repair = _wants(plan), plan.schema, plan.repair
    found = reference.records(schema, people, schema.in_universe_order, repair)
    filled = reference.impute(schema, found, repair)
    sums = {want: slow.add_up(want, filled) for want in wants if isinstance(want, Sum)}
    rings = {}
    for want in wants:
        if isinstance(want, Ring):
            read = reference.ring(schema, found, repair.of(want.column), want)
            donors, recipients, gaps = (np.array(each, np.int64) for each in read)
            rings[want] = RingTable(want=want, donors=donors, recipients=recipients, gaps=gaps)
    return Tallies(statistics=SufficientStatistics(sums=sums), tables={}, rings=rings)


def alike(plan: Plan, one: Tallies, other: Tallies) -> bool:
    """Whether two tallies say the same of everything the plan wants."""
    rings = [want for want in _wants(plan) if isinstance(want, Ring)]
    same = [
        np.array_equal(getattr(one.rings[ring], each), getattr(other.rings[ring], each))
        for ring in rings
        for each in ("donors", "recipients", "gaps")
    ]
    sums = [want for want in _wants(plan) if isinstance(want, Sum)]
    return all(same) and all(one.statistics[want] == other.statistics[want] for want in sums)


def tallied(
    plan: Plan, rows: Sequence[Row], how: Callable[[Plan, Sequence[Row]], Tallies] = tally
) -> tuple[Tallies, HubCache]:
    """Each table once, with what is found of its rings."""
    key = (plan.schema.unit, plan.repair, _wants(plan), repr(rows), how)
    if key not in _KNOWN:
        found = how(plan, rows)
        _KNOWN[key] = found, HubCache(found, plan.schema, plan.repair)
    return _KNOWN[key]


class Prescribed(FrozenNoise):
    """One and the same output for every question, whatever the exact answer."""

    def __init__(self, output: int) -> None:
        super().__init__()
        self.output = output

    def _give(self, call: Call, answers: tuple[int, ...]) -> tuple[int, ...]:
        self.calls.append(call)
        return (self.output,) * len(answers)


def calls_of(plan: Plan, rows: Sequence[Row], output: int, **how: Any) -> list[Call]:
    """Every exact answer that meets the noise, along the transcript on which all noisy answers are `output`."""
    noise = Prescribed(output)
    tallies, book = tallied(plan, rows, **how)
    evaluate(plan, tallies, noise, book=book)
    return noise.calls


# --- what neighbours may not have -------------------------------------------------------------------------------------


def drifts(one: Call, other: Call, steps: int = 1) -> bool:
    """Whether |ln S - ln S'| is more than beta, for each record that comes or goes."""
    wide, narrow = sorted([Fraction(one.sensitivity), Fraction(other.sensitivity)], reverse=True)
    most = ball(steps * one.beta).exp()  # type: ignore[arg-type, operator]
    return not bool(ball(wide) <= ball(narrow) * most)


def reach(one: Call, other: Call, steps: int = 1) -> Fraction:
    """How far two answers may be apart. Over several records: each step within the bound at its start, which drifts."""
    if one.beta is None:
        return Fraction(one.sensitivity)
    if steps == 1:
        return Fraction(min(one.sensitivity, other.sensitivity))
    if steps == 2:
        return Fraction(one.sensitivity) + Fraction(other.sensitivity)
    growth = sum((ball(k * one.beta).exp() for k in range(steps)), ball(0)).upper()
    return Fraction(min(one.sensitivity, other.sensitivity)) * Fraction(float(growth) * (1 + 2**-40))


def faults(one: Sequence[Call], other: Sequence[Call], *, steps: int = 1, times: int = 1) -> list[str]:
    """In words: other calls, answers too far apart, or bounds that drift too fast.

    Neighbours are `steps` records apart. Surveys that are `times` such changes apart have that much room.
    """
    if [call.parameters for call in one] != [call.parameters for call in other]:
        return ["other calls or other parameters"]
    found = []
    for place, (a, b) in enumerate(zip(one, other, strict=True)):
        plain = times if a.beta is None else 1
        if a.distance(b) > plain * reach(a, b, steps * times):
            found.append(f"call {place} moved too far")
        if a.beta is not None and drifts(a, b, steps * times):
            found.append(f"call {place}: its bound drifts too fast")
    return found


def pair_faults(plan: Plan, here: Sequence[Row], there: Sequence[Row], outputs: Sequence[int]) -> list[str]:
    """What is wrong between two neighbours, along several transcripts."""
    found: list[str] = []
    for output in outputs:
        one, other = (calls_of(plan, rows, output) for rows in (here, there))
        found += faults(one, other, steps=plan.neighbours.steps)
    return found


def person(site: int | None = 5, pay: int | None = None, **answers: Any) -> Mapping[str, Any]:
    """A respondent: a woman with a job and of low spirits, unless said otherwise."""
    usual = {"sex": "f", "job": "yes", "hours": 2, "mood": "low", "w": 1}
    return {"site": site, "pay": pay, **usual, **answers}
