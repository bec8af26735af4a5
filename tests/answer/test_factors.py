"""Released factors: weighted sums are those of records' own weights times public numbers, and no neighbour moves them further."""

from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from reticent.answer.factors import ENOUGH, FactorPurchase, Factors, joined_bins, whole_factors
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import BinTable, Key, Ring, Rows, SufficientStatistics, Sum, Table, Tallies
from reticent.errors import PlanError
from reticent.prepare.strata import BaseWeights, Strategy
from reticent.query.base import Subpopulation
from reticent.query.kinds import CrossTabulation, Mean, Proportion, Quantile, Variance
from reticent.refine.total import SampleSize
from reticent.schema.codebook import schema_from
from reticent.schema.parse import parse
from reticent.sensitivity.bounds import Neighbours, bound_sum, bound_table
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import arrow

COLUMNS = {
    "c": {"kind": "categorical", "levels": ["a", "b", "d"]},
    "s": {"kind": "categorical", "levels": ["f", "m"]},
    "x": {"kind": "integer", "bounds": [-1, 3]},
    "w": {"kind": "decimal", "bounds": [0, 2], "grid": "0.5", "role": "weight"},
}
SCHEMA = schema_from({"survey": {"name": "tiny", "unit": "row"}, "columns": COLUMNS})
STRATEGY = Strategy(name="own", bins=(0, 1, 2), totals=(Fraction(100), Fraction(30), Fraction(7)))
BUY = FactorPurchase(
    name="post",
    column="w",
    keys=(Key(column="c"),),
    silent=(1,),
    base=BaseWeights(unit=Fraction(1, 2), heaviest=4, kept=1),
    epsilon=Fraction(1),
)
PEOPLE: list[dict[str, Any]] = [
    dict(zip("csxw", each, strict=True))
    for each in [
        ("a", "f", 3, 2.0),
        ("a", "m", -1, 0.5),
        ("b", "f", 3, 2.0),
        ("d", None, 1, 1.0),
        (None, "m", 3, 2.0),
        ("a", "f", None, 1.5),
        ("b", "m", 3, None),
        ("d", "f", -1, 0.0),
    ]
]
WEIGHTED = Subpopulation(weight="post")


def factors(noisy: tuple[int, ...] = (8, 3, 50), neighbours: Neighbours | None = None) -> Factors:
    """Made from prescribed noisy base weights, in half units."""
    zeros = np.zeros(3, np.int64)
    table = BinTable(
        want=BUY.want(),
        count=zeros,
        total=zeros,
        matching=np.zeros(3, object),
        largest=np.zeros((3, 0), np.int64),
    )
    nothing = Tallies(statistics=SufficientStatistics(sums={}), tables={}, bins={BUY.want(): table})
    noise = FrozenNoise(prescribed=[noisy])
    return BUY.run(nothing, STRATEGY, neighbours=neighbours or Neighbours(), noise=noise)


def wants_of(made: Factors) -> list[Any]:
    schema = made.schema(SCHEMA)
    queries: list[Any] = [
        Mean(column="x", among=WEIGHTED),
        Proportion(of=parse("s = 'f'", field="q"), among=WEIGHTED),
        CrossTabulation(columns=("s",), among=WEIGHTED),
        Variance(column="x", among=WEIGHTED),
        Quantile(column="x", at=Fraction(1, 2), step=Fraction(1), among=WEIGHTED),
    ]
    return [want for query in queries for want in query.wants(schema)]


def weighted(made: Factors, people: list[Mapping[str, Any]]) -> Tallies:
    engine = DuckDBEngine(open_frame(arrow(people, SCHEMA)), threads=1)
    wants = wants_of(made)
    found = engine.tally(SCHEMA, list(dict.fromkeys(made.bought.asked(want) for want in wants)))
    engine.close()
    return made.contracted(wants, found, SCHEMA)


def own_weight(made: Factors, person: Mapping[str, Any]) -> int:
    """A record's weight in steps, as one would write it by hand."""
    if person["w"] is None:
        return 0
    cell = {"a": 0, "b": 1, "d": 2, None: 1}[person["c"]]
    return int(person["w"] * 2) * made.factors[cell]


def test_contracted_sums_are_those_of_own_weights() -> None:
    """Through the engine, against a loop over people; who did not say is in the bin declared for it."""
    made = factors()
    found = weighted(made, PEOPLE)
    people = [(own_weight(made, p), p) for p in PEOPLE]
    wants = wants_of(made)
    assert found.statistics[wants[0]] == sum(w for w, p in people if p["x"] is not None)
    assert found.statistics[wants[1]] == sum(w * p["x"] for w, p in people if p["x"] is not None)
    assert found.statistics[wants[3]] == sum(w for w, p in people if p["s"] == "f")
    table, ranks = found.tables[wants[4]].cells, found.tables[wants[-1]].cells
    assert found.statistics[wants[7]] == sum(w * p["x"] ** 2 for w, p in people if p["x"] is not None)
    assert table == tuple(sum(w for w, p in people if p["s"] == s) for s in ("f", "m", None))
    assert ranks == tuple(sum(w for w, p in people if p["x"] == x) for x in range(-1, 4))


@pytest.mark.parametrize("noisy", [(8, 3, 50), (-3, -3, -3), (900, 900, 900)])
def test_no_neighbour_moves_a_weighted_sum_further_than_its_bound(noisy: tuple[int, ...]) -> None:
    """All surveys of up to three of eight people; the weights do not move with who is there."""
    made = factors(noisy)
    column = made.schema(SCHEMA).weight("post", field="weight")
    whole = bound_sum(column.high * -1, column.high * 3, neighbours=Neighbours()).bound
    cells = bound_table(column.high, neighbours=Neighbours()).bound
    for people in (c for n in range(1, 4) for c in combinations_with_replacement(range(8), n)):
        for place in range(len(people)):
            own = own_weight(made, PEOPLE[people[place]])
            assert own <= column.high <= cells and own * 3 <= whole
    assert column.high * column.grid == made.heaviest * made.unit * Fraction(1, 2)


def test_without_a_floor_a_noisy_bin_would_make_negative_weights() -> None:
    """THEORY 14.5: a B~ below G is taken for G. Its naive quotient is negative, which no bound of weights allows for."""
    made = factors((-3, -3, -3))
    assert min(made.factors) > 0
    heaviest = made.bought.base.heaviest * made.bought.base.unit
    assert made.heaviest * made.unit * made.bought.base.unit <= sum(STRATEGY.totals) / heaviest * heaviest
    assert sum(STRATEGY.totals) / Fraction(-9, 2) < 0


def test_a_bin_too_small_joins_its_neighbour() -> None:
    least = Fraction(10)
    assert joined_bins([Fraction(20)] * 3, least=least) == (0, 1, 2)
    assert joined_bins([Fraction(20), Fraction(3), Fraction(9)], least=least) == (0, 1, 1)
    assert joined_bins([Fraction(20), Fraction(30), Fraction(9)], least=least) == (0, 1, 1)
    assert joined_bins([Fraction(-4), Fraction(-4), Fraction(1)], least=least) == (0, 0, 0)
    made = factors((900, 900, 3))
    assert made.bins == (0, 1, 1) and made.joined == 1
    assert made.factors[1] == made.factors[2]
    assert ENOUGH * 2 <= 450


def test_unequal_factors_multiply_the_variance() -> None:
    """Kish: the mean square of factors over the square of their mean, a record for each unit of base weight; 1 where they are alike."""
    made = factors((900, 400, 300))
    known = {
        group: sum(t for t, g in zip(made.totals, made.bins, strict=True) if g == group)
        for group in made.bins
    }
    held = {
        group: sum(b for b, g in zip(made.noisy, made.bins, strict=True) if g == group) for group in made.bins
    }
    size = sum(held.values())
    mean, square = (sum(held[g] * (known[g] / held[g]) ** k for g in held) / size for k in (1, 2))
    assert made.effect == pytest.approx(float(square / mean**2)) and made.effect > 1.1
    alike = factors(tuple(int(9 * each) for each in STRATEGY.totals))
    assert alike.effect == pytest.approx(1.0)
    size_of = SampleSize(respondents=600.0, weights={"post": 60.0}, effects={"post": 1.5})
    assert size_of.heads(30.0, "post") == pytest.approx(200.0) and size_of.heads(30.0, None) == 30.0


def test_replacement_needs_twice_the_noise() -> None:
    one, two = (BUY.part(Neighbours(replaced=each)) for each in (False, True))
    assert two.scale == 2 * one.scale and one.epsilon == 1 and one.scale == 4


def test_factors_add_up_to_the_totals_without_noise() -> None:
    """3,000 records: the weighted count is the population's, bin by bin, to the rounding of factors."""
    bits = np.random.default_rng(3)
    people = [
        {"c": "abd"[c], "s": "fm"[s], "x": 1.0, "w": 1.0 + w / 2}
        for c, s, w in zip(
            bits.integers(0, 3, 3000), bits.integers(0, 2, 3000), bits.integers(0, 3, 3000), strict=True
        )
    ]
    engine = DuckDBEngine(open_frame(arrow(people, SCHEMA)), threads=1)
    made = BUY.run(engine.tally(SCHEMA, [BUY.want()]), STRATEGY, neighbours=Neighbours(), noise=ZeroNoise())
    key = Key(column="c", silent=True)
    want = Table(rows=Rows(answered=("post",)), keys=(key,), weight="post")
    found = (
        made.contracted([want], engine.tally(SCHEMA, [made.bought.asked(want)]), SCHEMA).tables[want].cells
    )
    engine.close()
    grid = float(made.unit * made.bought.base.unit)
    assert [round(each * grid, 1) for each in found[:3]] == [100.0, 30.0, 7.0]


def test_what_cannot_be_weighted_is_refused() -> None:
    made = factors()
    ring = Ring(column="x", rows=Rows(), weight="post")
    with pytest.raises(PlanError, match="use base weights"):
        made.bought.asked(ring)
    with pytest.raises(PlanError, match="coarser grid"):
        whole_factors([Fraction(1)], 2**14)
    plain = Sum(rows=Rows())
    assert made.bought.asked(plain) is plain
    assert whole_factors([Fraction(0)], 1) == ((0,), Fraction(1))
