"""Whether silence goes with answers, asked privately: its promise, its level whatever the noise, and its power."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import poisson

from reticent.engine.confidential import Look
from reticent.errors import PlanError
from reticent.lab.masks import make
from reticent.lab.noise import QuickNoise
from reticent.missing import private as dependence
from reticent.missing import private as reference
from reticent.missing.describe import each_column, grouped, pairs, tables_of
from reticent.missing.private import ask_dependence, laplace, laplace_variance, statistic, tail
from reticent.noise.source import SystemNoise
from reticent.privacy.claim import Change
from reticent.schema.codebook import schema_from
from tests.doubles import FrozenNoise
from tests.lab.bounds import ALARM, fits
from tests.missing import tiny
from tests.missing.worlds import codes
from tests.noise.seeded import SeededBits

EPSILON = Fraction(1)


def book(count: int, high: int = 40):
    columns = {f"q{k}": {"kind": "integer", "bounds": [-20, high]} for k in range(count)}
    return schema_from({"survey": {"name": "t", "unit": "row"}, "columns": columns})


def asked(values, mask, schema, *, seed, epsilon=EPSILON, draws=199, looks=None):
    chosen = each_column(schema) if looks is None else looks
    tables = tables_of(values, mask, list(schema.coded), chosen)
    noise = QuickNoise(np.random.default_rng(seed))
    return ask_dependence(
        tables, chosen, schema, epsilon=epsilon, noise=noise, bits=SeededBits(seed), draws=draws
    )


# The promise


def loss(compared, *, change=Change.ADD_REMOVE, at_most=1):
    schema = tiny.schema(at_most)
    looks = (*each_column(schema, tiny.NAMES), *pairs(schema, [("age", "sex")]))

    def calls(rows):
        noise, tables = FrozenNoise(), tables_of(*tiny.arrays(rows), tiny.NAMES, looks)
        common = {"epsilon": EPSILON, "bits": SeededBits(1), "change": change}
        ask_dependence(tables, looks, schema, noise=noise, **common)
        return noise.calls

    return tiny.worst(calls, compared)


@pytest.fixture
def no_test(monkeypatch):
    """Neighbours are compared by what meets the noise; what is computed from it afterwards is not."""
    monkeypatch.setattr(dependence, "tail", lambda table, **_: (0.0, 1.0))


@pytest.mark.parametrize("change", Change)
def test_no_neighbour_is_further_away_than_paid_for_and_one_is_as_far(change, no_test):
    """All 27 kinds of row, added, removed or exchanged, in four tables. # covers T08"""
    assert loss(tiny.pairs(replaced=change is Change.REPLACE), change=change) == EPSILON


def test_a_respondent_with_two_rows_is_covered_too(no_test):
    assert loss(tiny.pairs(replaced=False, records=2), at_most=2) == EPSILON


def test_noise_for_one_table_would_be_caught(no_test, monkeypatch):
    """The naive twin pays for one table and takes four."""
    exact = FrozenNoise.laplace_many

    def careless(self, answers, *, sensitivity, epsilon):
        return exact(self, answers, sensitivity=sensitivity // 4, epsilon=epsilon)

    monkeypatch.setattr(FrozenNoise, "laplace_many", careless)
    assert loss(tiny.pairs(replaced=False)) > EPSILON


def test_nothing_is_told_but_what_the_noise_gave():
    """One transcript for two surveys: one verdict, tables and p included. # covers T20 T22"""
    schema = tiny.schema()
    looks = each_column(schema, tiny.NAMES)
    told, exact = [], []
    for rows in ([(0, None, 1), (1, 1, 1)], [(0, 1, None)] * 9):
        tables = tables_of(*tiny.arrays(rows), tiny.NAMES, looks)
        noise = FrozenNoise(prescribed=[tuple(range(sum(table.size for table in tables)))])
        bits = SeededBits(1)
        told.append(ask_dependence(tables, looks, schema, epsilon=EPSILON, noise=noise, bits=bits, draws=99))
        exact.append([table.tolist() for table in tables])
    assert told[0] == told[1]
    assert exact[0] != exact[1]  # the naive twin: the tables as they were counted


def test_the_verdict_follows_from_what_is_published():
    """Statistic and p are functions of the noisy table and fresh bits: the same table gives the same verdict."""
    values = codes(500, 3, seed=1)
    mask = make("mar", values, 0.3, np.random.default_rng(1)).mask
    told = asked(values, mask, book(3), seed=5)
    bits = SeededBits(5)
    for seen in told.seen:
        again = tail(np.array(seen.table, dtype=float), scale=float(told.scale), draws=199, bits=bits)
        assert again == (seen.statistic, seen.p)
    assert told.p == min(1.0, 3 * min(seen.p for seen in told.seen))
    assert str(told.claim) == "1-DP, one respondent added or removed, exact" and not told.is_private


# The reference law


def distance(drawn, below):
    """The largest distance of the empirical law from `below`, over every whole number that was drawn."""
    at = np.unique(drawn)
    return np.abs(np.searchsorted(np.sort(drawn), at, side="right") / len(drawn) - below(at)).max()


def laplace_below(scale):
    q = np.exp(-1 / scale)
    return lambda x: np.where(x < 0, q ** np.abs(x) / (1 + q), 1 - q ** (np.abs(x) + 1) / (1 + q))


def test_simulated_noise_and_counts_have_their_laws():
    """20,000 draws each, within Massart's bound for a false alarm of 1e-9; another scale or mean is not."""
    allowed = np.sqrt(np.log(2e9) / 40_000)
    noise = laplace((20_000,), 7.0, SeededBits(1))
    assert distance(noise, laplace_below(7.0)) <= allowed < distance(noise, laplace_below(5.5))
    for mean in (0.0, 0.3, 4.0, 49.0, 5_000.0):
        drawn = reference.poisson(np.array([[mean]]), 20_000, SeededBits(2)).ravel()
        assert distance(drawn, lambda x, mean=mean: poisson.cdf(x, mean)) <= allowed
        assert distance(drawn, lambda x, mean=mean: poisson.cdf(x, 1.1 * mean + 0.1)) > allowed


def test_the_variance_of_the_noise_is_that_of_its_law():
    for scale in (0.3, 1.0, 7.0):
        q = np.exp(-1 / scale)
        exact = sum(x * x * (1 - q) / (1 + q) * q ** abs(x) for x in range(-400, 401))
        assert abs(laplace_variance(scale) - exact) < 1e-9 * exact


def noisy_table(rng, rows, columns, rate, shares, scale):
    """Independent: how many answers are missing, and in which group the answer is."""
    most = min(4, columns)
    silent = np.minimum(rng.binomial(columns, rate, rows), most)
    table = np.zeros((most + 1, len(shares)))
    np.add.at(table, (silent, rng.choice(len(shares), rows, p=shares)), 1)
    q = np.exp(-1 / scale)
    return table + rng.geometric(1 - q, table.shape) - rng.geometric(1 - q, table.shape)


WORLDS = [
    (100, 0.1, 5, 0.2, [0.25] * 4),
    (100, 14.0, 13, 0.2, [0.9, 0.06, 0.03, 0.01]),
    (1_000, 2.0, 13, 0.01, [0.7, 0.1, 0.1, 0.1]),
    (1_000, 200.0, 5, 0.2, [0.25] * 4),
    (30_000, 14.0, 1, 0.05, [0.4, 0.3, 0.2, 0.1]),
    (30_000, 1000.0, 13, 0.2, [0.7, 0.1, 0.1, 0.1]),
]


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_the_level_holds_whatever_rows_rates_and_noise(world):
    """200 tables: p at most 0.05 no more often than 1 in 20 allows, with a false alarm of 1e-9."""
    rows, scale, columns, rate, shares = world
    rng, bits = np.random.default_rng(7), SeededBits(7)
    tables = [noisy_table(rng, rows, columns, rate, shares, scale) for _ in range(200)]
    found = np.array([tail(table, scale=scale, draws=99, bits=bits)[1] for table in tables])
    assert found.min() > 0
    hits = int((found <= 0.05).sum())
    assert hits <= 10 or fits(hits, 200, 0.05, alarm=2 * ALARM)


def test_a_test_that_forgets_the_noise_would_be_caught():
    """The naive twin takes a noisy table for an exact one: it finds dependence where there is none, most of the time."""
    rng, bits = np.random.default_rng(8), SeededBits(8)
    tables = [noisy_table(rng, 1_000, 5, 0.2, [0.25] * 4, 20.0) for _ in range(200)]
    hits = sum(tail(table, scale=0.05, draws=99, bits=bits)[1] <= 0.05 for table in tables)
    assert not fits(hits, 200, 0.05)
    assert hits > 100


def test_all_looks_together_keep_the_level():
    """60 surveys of 2,000 rows with six dependent columns, MCAR: false alarm 1e-9."""
    schema, hits = book(6), 0
    for seed in range(60):
        values = codes(2_000, 6, seed=seed)
        mask = make("mcar", values, 0.2, np.random.default_rng(1_000 + seed)).mask
        hits += asked(values, mask, schema, seed=seed, draws=299).p <= 0.05
    assert hits <= 3 or fits(hits, 60, 0.05, alarm=2 * ALARM)


def test_silence_that_goes_with_answers_is_noticed():
    """30,000 rows, 14 columns, epsilon 1, MAR at 20 and at 5 %: every one of four masks. Under MCAR at most 1 in 100 each."""
    values, schema = codes(30_000, 14, seed=2), book(14)
    for seed in range(2):
        for rate in (0.2, 0.05):
            mask = make("mar", values, rate, np.random.default_rng(seed)).mask
            assert asked(values, mask, schema, seed=seed, draws=1_999).p <= 0.01


def test_a_pair_can_be_asked_about_by_itself():
    """Only q1 is lost, and only by q0: so says the pair that names them, and the other does not (chance below 1e-5)."""
    values, schema, rng = codes(5_000, 3, seed=3), book(3), np.random.default_rng(3)
    values[:, 2] = rng.integers(0, 20, size=5_000)
    mask = np.zeros(values.shape, dtype=bool)
    mask[:, 1] = rng.random(5_000) < np.where(values[:, 0] > 10, 0.3, 0.1)
    looks = pairs(schema, [("q1", "q0"), ("q1", "q2")])
    told = asked(values, mask, schema, seed=1, looks=looks)
    assert told.seen[0].p == 1 / 200
    assert told.seen[0].statistic > 100 > told.seen[1].statistic


def test_a_column_that_hides_itself_and_nothing_else_cannot_be_noticed():
    """What the page says: no table of observed answers shows MNAR by itself. 40 surveys, p as under MCAR, 1e-9."""
    rng, schema, hits = np.random.default_rng(4), book(2), 0
    for seed in range(40):
        values = rng.integers(-20, 40, size=(3_000, 2))
        mask = np.column_stack([np.zeros(3_000, dtype=bool), (values[:, 1] > 10) & (rng.random(3_000) < 0.7)])
        hits += asked(values, mask, schema, seed=seed, looks=pairs(schema, [("q1", "q0")])).p <= 0.05
    assert hits <= 2 or fits(hits, 40, 0.05, alarm=2 * ALARM)


def test_the_statistic_does_not_care_about_the_margins():
    """A product of margins without noise has statistic 0, whatever the margins."""
    for lines, groups in (([5, 3, 1], [10, 1]), ([1, 0, 8], [3, 3, 3]), ([7], [1, 2])):
        table = np.outer(lines, groups).astype(float)
        assert abs(statistic(table[None], variance=1.0)[0]) < 1e-9


# What may be looked at


def test_groups_cover_the_bounds_and_nothing_is_read_for_them():
    schema = book(2)
    key = grouped(schema, "q0")
    assert key.starts == (-20, -4, 11, 26) and grouped(tiny.schema(), "age").starts == (0, 1)
    with pytest.raises(PlanError):
        grouped(schema, "q0", groups=1)


def test_questions_that_not_everybody_is_asked_are_not_counted_as_silence():
    """Whether they were asked follows from other answers, so their silence would go with these by itself."""
    columns = {
        "age": {"kind": "integer", "bounds": [0, 99]},
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "pay": {"kind": "integer", "bounds": [0, 99], "universe": "age >= 15"},
    }
    schema = schema_from({"survey": {"name": "t", "unit": "row"}, "columns": columns})
    assert [(look.given.column, look.among) for look in each_column(schema)] == [
        ("age", ("sex",)),
        ("sex", ("age",)),
        ("pay", ("age", "sex")),
    ]
    for pair in (("pay", "age"), ("age", "age"), ("height", "age")):
        with pytest.raises(PlanError):
            pairs(schema, [pair])
    with pytest.raises(PlanError):
        each_column(schema, ["age", "pay"][:1])


def test_tables_that_do_not_fit_their_looks_are_refused():
    schema = book(2)
    looks = each_column(schema)
    tables = [np.zeros(look.shape(schema), dtype=np.int64) for look in looks]
    common = {"epsilon": EPSILON, "noise": SystemNoise(), "bits": SeededBits(1)}
    for some, which in (
        ([], ()),
        (tables[:1], looks),
        ([tables[0].T, tables[1]], looks),
        (tables, looks[:1] * 2),
    ):
        with pytest.raises(PlanError):
            ask_dependence(some, which, schema, **common)
    with pytest.raises(PlanError, match="draws"):
        ask_dependence(tables, looks, schema, draws=10, **common)
    assert ask_dependence(tables, looks, schema, draws=99, **common).is_private
    assert isinstance(looks[0], Look)
