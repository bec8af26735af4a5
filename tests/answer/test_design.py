"""Sampling error that is bought: no neighbour moves a call further than its sensitivity, and the numbers are the textbook's."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement
from math import isclose, pi, sqrt
from typing import Any

import numpy as np
import pytest

from reticent.answer.design import OwnError, PooledDesign
from reticent.answer.design_domains import DomainErrors
from reticent.answer.unit_sums import PairedUnits, ReleasedValue
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import Aggregate, Bins, BinTable, SufficientStatistics, Sum, Tallies
from reticent.prepare.units import SamplingUnits, units_of
from reticent.query.base import Subpopulation
from reticent.query.kinds import Count, Mean, Proportion, Total
from reticent.query.sides import Sides
from reticent.schema import Schema
from reticent.schema.bind import Absent
from reticent.schema.codebook import schema_from
from reticent.schema.parse import parse
from reticent.sensitivity.bounds import Neighbours
from tests.doubles import Call, FrozenNoise, ZeroNoise
from tests.tables import _counts, arrow, cells_of

COLUMNS = {
    "s": {"kind": "categorical", "role": "stratum", "levels": ["n", "o"]},
    "p": {"kind": "categorical", "role": "psu", "levels": ["1", "2", "3"], "drawn": [2, 3]},
    "y": {"kind": "categorical", "levels": ["no", "yes"]},
    "x": {"kind": "integer", "bounds": [-1, 3]},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
SCHEMA = schema_from({"survey": {"name": "tiny", "unit": "row"}, "columns": COLUMNS})
UNITS = units_of(SCHEMA)
assert UNITS is not None
BASIS = PairedUnits(units=UNITS, groups=2)
PEOPLE = [
    dict(zip("spyxw", codes, strict=True))
    for codes in [
        (0, 0, 1, 3, 2),
        (0, 1, 0, -1, 2),
        (0, 1, 1, 0, 1),
        (0, 2, 1, 3, 2),  # a unit that was not drawn
        (1, 0, 1, None, 2),
        (1, 1, None, 3, 2),
        (1, 2, 0, -1, 0),
        (1, 2, 1, 3, None),
        (None, 0, 1, 3, 2),
        (1, None, 0, -1, 2),
    ]
]
WEIGHTED, PLAIN = Subpopulation(weight="w"), Subpopulation()
YES, HIGH = parse("y = 'yes'", field="q"), parse("x > 0", field="q")
RELEASED = {
    "a": ReleasedValue(value=Fraction(1, 3), size=Fraction(3)),
    "b": ReleasedValue(value=Fraction(9, 10), size=Fraction(-2)),
}


def pooled(among: Subpopulation, **more: Any) -> PooledDesign:
    items = {n: Proportion(of=of, among=among).shape(SCHEMA) for n, of in (("a", YES), ("b", HIGH))}
    return PooledDesign(items=items, basis=BASIS, epsilon=Fraction(1), weight=among.weight, **more)  # type: ignore[arg-type]


def tallied(
    people: list[Mapping[str, Any]], wants: tuple[Aggregate, ...], schema: Schema = SCHEMA
) -> Tallies:
    """What the engine would say, in plain Python."""
    rows = [cells_of(person, schema) for person in people]
    sums, bins = {}, {}
    for want in wants:
        if isinstance(want, Sum):
            held = [row for row in rows if _counts(want.rows, row)]
            sums[want] = sum(int(row[want.weight]) if want.weight else 1 for row in held)  # type: ignore[arg-type]
        elif isinstance(want, Bins):
            bins[want] = _binned(want, rows, schema)
    return Tallies(statistics=SufficientStatistics(sums=sums), tables={}, bins=bins)


def _binned(want: Bins, rows: list[Any], schema: Schema) -> BinTable:
    size = want.size(schema)
    found = np.zeros(size, object)
    for row in rows:
        weight = row[want.weight] if want.weight else 1
        if isinstance(weight, Absent) or not _counts(want.rows, row):
            continue
        value = row[want.value] if want.value else 1
        place = 0
        for key in want.keys:
            cell = row[key.column]
            own = key.answers(schema) if isinstance(cell, Absent) else int(cell)
            place = place * key.size(schema) + own
        found[place] += 0 if isinstance(value, Absent) else int(weight) * int(value)
    zeros = np.zeros(size, np.int64)
    return BinTable(
        want=want, count=zeros, total=zeros, matching=found, largest=np.zeros((size, 0), np.int64)
    )


def purchases() -> Iterator[tuple[str, Any, Any]]:
    for name, among in (("plain", PLAIN), ("weighted", WEIGHTED)):
        yield f"pooled, {name}", pooled(among), RELEASED
        for query in (
            Proportion(of=YES, among=among),
            Mean(column="x", among=among),
            Count(among=Subpopulation(where=YES, weight=among.weight)),
            Total(column="x", among=among),
        ):
            own = OwnError(shape=query.shape(SCHEMA), basis=BASIS, epsilon=Fraction(1))  # type: ignore[arg-type]
            yield (
                f"{type(query).__name__}, {name}",
                own,
                ReleasedValue(value=Fraction(2, 3), size=Fraction(5)),
            )


PURCHASES = list(purchases())
CHANGES = {
    "added": Neighbours(),
    "replaced": Neighbours(replaced=True),
    "household": Neighbours(records=2),
}


def calls(bought: Any, released: Any, people: tuple[int, ...], change: Neighbours) -> list[Call]:
    noise = FrozenNoise(prescribed=[(4,), (4,), (40,)])
    tallies = tallied([PEOPLE[i] for i in people], bought.wants(SCHEMA))
    bought.run(tallies, released, schema=SCHEMA, neighbours=change, noise=noise)
    return noise.calls


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("bought, released", [p[1:] for p in PURCHASES], ids=[p[0] for p in PURCHASES])
def test_no_neighbour_moves_a_call_further_than_its_sensitivity(
    bought: Any, released: Any, change: Neighbours
) -> None:
    """All surveys of up to three of ten people, all of their neighbours, along one transcript."""
    surveys = [c for n in range(4) for c in combinations_with_replacement(range(len(PEOPLE)), n)]
    found = {people: calls(bought, released, people, change) for people in surveys}
    for people in surveys:
        for place in range(len(people)):
            rest = people[:place] + people[place + 1 :]
            others = [rest]
            if change.replaced:
                others = [tuple(sorted((*rest, new))) for new in range(len(PEOPLE))]
            if change.records == 2:
                others += [rest[:two] + rest[two + 1 :] for two in range(len(rest))]
            for other in others:
                for one, two in zip(found[people], found[other], strict=True):
                    assert one.parameters == two.parameters
                    assert one.distance(two) <= one.sensitivity


def by_domain(query: Any) -> tuple[DomainErrors, dict[Any, ReleasedValue]]:
    own = OwnError(shape=query.shape(SCHEMA), basis=BASIS, epsilon=Fraction(1))  # type: ignore[arg-type]
    sides = Sides(columns=("y",))
    values = (ReleasedValue(value=Fraction(n, 3), size=Fraction(4)) for n in range(3))
    return DomainErrors(own=own, sides=sides), dict(zip(sides.cells(SCHEMA), values, strict=True))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("weight", ["w", None])
@pytest.mark.parametrize("kind", [Mean, Total])
def test_all_domains_together_lose_one_epsilon(kind: Any, weight: str | None, change: Neighbours) -> None:
    """All surveys of up to three of ten people and all of their neighbours: distances over scales add up to at most one.

    Noise for one record in each domain, the twin, loses more where a respondent owns two or changes domains.
    """
    bought, released = by_domain(kind(column="x", among=Subpopulation(weight=weight)))
    surveys = [c for n in range(4) for c in combinations_with_replacement(range(len(PEOPLE)), n)]
    found = {people: calls(bought, released, people, change) for people in surveys}
    worst = naive = Fraction(0)
    for people in surveys:
        for other in neighbours_of(people, change):
            pairs = list(zip(found[people], found[other], strict=True))
            assert all(one.parameters == two.parameters for one, two in pairs)
            worst = max(worst, sum(Fraction(one.distance(two)) / one.sensitivity for one, two in pairs))
            naive = max(
                naive,
                sum(Fraction(one.distance(two) * change.steps) / one.sensitivity for one, two in pairs),
            )
    assert worst <= 1
    assert worst == 1 or weight is None
    assert change.steps == 1 or naive > 1


def neighbours_of(people: tuple[int, ...], change: Neighbours) -> Iterator[tuple[int, ...]]:
    for place in range(len(people)):
        rest = people[:place] + people[place + 1 :]
        yield rest
        if change.replaced:
            yield from (tuple(sorted((*rest, new))) for new in range(len(PEOPLE)))
        if change.records == 2:
            yield from (rest[:two] + rest[two + 1 :] for two in range(len(rest)))


@pytest.mark.parametrize("bought, released", [p[1:] for p in PURCHASES], ids=[p[0] for p in PURCHASES])
def test_what_is_bought_costs_what_was_planned(bought: Any, released: Any) -> None:
    planned = bought.parts(SCHEMA, Neighbours())
    made = bought.run(
        tallied(PEOPLE, bought.wants(SCHEMA)),
        released,
        schema=SCHEMA,
        neighbours=Neighbours(),
        noise=ZeroNoise(),
    )
    assert [(p.what, p.epsilon) for p in made.parts] == [(p.what, p.epsilon) for p in planned]
    assert sum(p.epsilon for p in planned) == 1


def big() -> tuple[Schema, SamplingUnits]:
    columns = {
        "p": {
            "kind": "categorical",
            "role": "psu",
            "levels": [str(i) for i in range(120)],
            "strata": [str(i // 2) for i in range(120)],
        },
        "y": COLUMNS["y"],
        "x": {"kind": "integer", "bounds": [0, 1000]},
        "w": {"kind": "decimal", "bounds": [0, 8], "grid": "0.25", "role": "weight"},
    }
    schema = schema_from({"survey": {"name": "big", "unit": "row"}, "columns": columns})
    units = units_of(schema)
    assert units is not None
    return schema, units


@pytest.mark.parametrize("weighted", [False, True])
def test_without_noise_it_is_the_linearised_standard_error(weighted: bool) -> None:
    """A clustered survey of 6,000 through the engine: se by the pairs' textbook formula, within what 25 groups allow."""
    schema, units = big()
    bits = np.random.default_rng(5)
    psu = np.repeat(np.arange(120), 50)
    effect = bits.normal(0, 0.5, 120)[psu]
    yes = bits.random(6000) < 1 / (1 + np.exp(-effect))
    w = np.round(bits.uniform(0.5, 4, 6000) * 4) / 4 if weighted else np.ones(6000)
    x = np.clip(np.round(500 + 60 * effect + bits.normal(0, 100, 6000)), 0, 1000)
    rows = [
        {"p": str(c), "y": "yes" if a else "no", "x": float(b), "w": float(d)}
        for c, a, b, d in zip(psu, yes, x, w, strict=True)
    ]
    among = Subpopulation(weight="w") if weighted else Subpopulation()
    share, mean = (w * yes).sum() / w.sum(), (w * x).sum() / w.sum()
    found = {}
    engine = DuckDBEngine(open_frame(arrow(rows, schema)), threads=1)
    cases: dict[str, tuple[Any, float, Any]] = {
        "share": (Proportion(of=YES, among=among), share, w * (yes - share) / w.sum()),
        "mean": (Mean(column="x", among=among), mean, w * (x - mean) / w.sum()),
        "total": (Total(column="x", among=among), 0.0, w * x),
    }
    for name, (query, value, z) in cases.items():
        own = OwnError(
            shape=query.shape(schema), basis=PairedUnits(units=units, groups=30), epsilon=Fraction(1)
        )
        tallies = engine.tally(schema, own.wants(schema))
        released = ReleasedValue(value=Fraction(value), size=Fraction(w.sum()))
        made = own.run(tallies, released, schema=schema, neighbours=Neighbours(), noise=ZeroNoise())
        sums = np.bincount(psu, z, 120)
        found[name] = made.se / sqrt(((sums[::2] - sums[1::2]) ** 2).sum())
        # The noise that is not there still counts in the degrees of freedom, so they are below those of 30 groups.
        assert made.df <= 1 / (2 * (pi / 2 - 1) / 30)
    engine.close()
    assert all(0.6 < ratio < 1.5 for ratio in found.values()), found


def test_a_pooled_factor_is_near_the_truth() -> None:
    """The same survey: the design factor of a share, by hand, and by the pooled purchase of that one item."""
    schema, units = big()
    bits = np.random.default_rng(6)
    psu = np.repeat(np.arange(120), 50)
    yes = bits.random(6000) < 1 / (1 + np.exp(-bits.normal(0, 0.6, 120)[psu]))
    rows = [
        {"p": str(c), "y": "yes" if a else "no", "x": 0.0, "w": 1.0} for c, a in zip(psu, yes, strict=True)
    ]
    item = Proportion(of=YES, among=Subpopulation()).shape(schema)
    design = PooledDesign(
        items={"a": item}, basis=PairedUnits(units=units, groups=units.groups), epsilon=Fraction(1)
    )
    engine = DuckDBEngine(open_frame(arrow(rows, schema)), threads=1)
    made = design.run(
        engine.tally(schema, design.wants(schema)),
        {"a": ReleasedValue(value=Fraction(float(yes.mean())), size=Fraction(6000))},
        schema=schema,
        neighbours=Neighbours(),
        noise=ZeroNoise(),
    )
    engine.close()
    sums = np.bincount(psu, yes - yes.mean(), 120) / 6000
    deft = sqrt(((sums[::2] - sums[1::2]) ** 2).sum() / (yes.mean() * (1 - yes.mean()) / 6000))
    assert 0.7 < made.factor.deft / deft < 1.4 and deft > 1.5
    assert made.size.respondents == 6000 and made.basis["units"] == 120 and made.basis["groups"] == 25


def test_equal_items_make_the_factor_of_one() -> None:
    """Pooling an item with itself changes the factor by no more than the rounding of factors."""
    one, two = (
        PooledDesign(items=items, basis=BASIS, epsilon=Fraction(1))  # type: ignore[arg-type]
        for items in (
            {"a": Proportion(of=YES, among=PLAIN).shape(SCHEMA)},
            {
                "a": Proportion(of=YES, among=PLAIN).shape(SCHEMA),
                "b": Proportion(of=YES, among=PLAIN).shape(SCHEMA),
            },
        )
    )
    released = {name: ReleasedValue(value=Fraction(1, 2), size=Fraction(9)) for name in "ab"}
    made = [
        each.run(
            tallied(PEOPLE * 3, each.wants(SCHEMA)),
            released,
            schema=SCHEMA,
            neighbours=Neighbours(),
            noise=ZeroNoise(),
        )
        for each in (one, two)
    ]
    assert isclose(made[0].factor.deft, made[1].factor.deft, rel_tol=1e-3)


def test_few_units_and_single_strata_are_said() -> None:
    units = SamplingUnits(columns=("p",), strata=(0, 0, 1), cells=(0, 1, 2))
    few, single = PairedUnits(units=units, groups=1).cautions
    assert "3 primary sampling units" in few and single.startswith("1 strata have one")
    many = SamplingUnits(columns=("p",), strata=(0,) * 40, cells=tuple(range(40)))
    assert PairedUnits(units=many, groups=1).cautions == ()
