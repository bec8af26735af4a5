"""What a referee found: each test holds a counterexample that an earlier version of the code did not survive."""

from decimal import Decimal
from fractions import Fraction
from math import floor

import pyarrow as pa
import pytest

from reticent.answer.context import Context
from reticent.answer.parts import Answer, Estimate
from reticent.answer.ratio import answer_variance
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.wants import ContingencyTable, SufficientStatistics, Tallies
from reticent.errors import PlanError, SchemaError
from reticent.plan.plan import Plan
from reticent.query.kinds import Variance
from reticent.release.statistics import evaluate, wants_of
from tests.doubles import ZeroNoise
from tests.tables import Book, book, make_plan

LEVEL = Fraction(95, 100)


def _variance(column: Book, n: int, s1: int, s2: int) -> Answer:
    """A variance from power sums given by hand, in grid steps, with the noise taken out."""
    plan = make_plan([{"variance": "y"}], book({"y": column}))
    query = plan.asks[0].query
    assert isinstance(query, Variance)
    sums = dict(zip(query.wants(plan.schema), (n, s1, s2), strict=True))
    tallies = Tallies(statistics=SufficientStatistics(sums=sums), tables={})
    context = Context(
        schema=plan.schema, neighbours=plan.neighbours, tallies=tallies, noise=ZeroNoise(), rows=None
    )
    return answer_variance(query, Fraction(1), context)


def test_variance_interval_covers_when_the_mean_falls_between_grid_points():
    """Half at 50, half at 51 hundredths: squares are taken about 51, half a step off the mean."""
    n = 10**8
    half = n // 2
    answer = _variance(
        {"kind": "decimal", "bounds": [0, 1], "grid": "0.01"}, n, half * 101, half * (50**2 + 51**2)
    )
    low, high = answer.estimates[0].interval(LEVEL)
    exact = Fraction(1, 4) * Fraction(1, 100) ** 2 * Fraction(n, n - 1)
    assert low <= exact <= high
    # The earlier code allowed one squared step, 0.0001, instead of half a step, 0.005: the exact value was missed.
    width = answer.estimates[0].value - exact
    assert width > 2 * (Fraction(1, 100) ** 2) ** 2


def test_variance_interval_says_something_where_squares_are_counted_coarsely():
    """A million people, incomes up to 200,000: the lower end used to be zero whatever the data."""
    n, mean, spread = 10**6, 50_000, 15_000
    answer = _variance({"kind": "integer", "bounds": [0, 200_000]}, n, n * mean, n * (mean**2 + spread**2))
    low, high = answer.estimates[0].interval(LEVEL)
    assert (
        Fraction(9, 10) * spread**2
        < low
        <= spread**2 * Fraction(n, n - 1)
        <= high
        < Fraction(11, 10) * spread**2
    )


def _medians(derived_level: str) -> tuple[Plan, dict[str, Answer]]:
    bar = {"interval": {"level": "0.95", "epsilon": "1"}}
    ask = {"median": "y", "step": "1"}
    plan = make_plan(
        [ask, ask, {"difference": ["ask 0", "ask 1"]}],
        book({"y": {"kind": "integer", "bounds": [0, 99]}}),
        asks={0: bar, 1: bar, 2: {"interval": {"level": derived_level}}},
    )
    (want,) = set(wants_of(plan))
    cells = tuple(1000 if value == 50 else 0 for value in range(100))
    tallies = Tallies(
        statistics=SufficientStatistics(sums={}),
        tables={want: ContingencyTable(want=want, cells=cells)},  # type: ignore[arg-type,dict-item]
    )
    return plan, evaluate(plan, tallies, ZeroNoise())


def test_a_selected_interval_vouches_for_its_own_level_only():
    """An interval chosen at 95 % is no 97.5 % interval, which is what a difference at 95 % needs of each side."""
    _, answers = _medians("0.95")
    median: Estimate = answers["ask 0"].estimates[0]
    assert median.interval(LEVEL) != (0, 99)
    assert median.interval(Fraction(975, 1000)) == (0, 99)
    difference = answers["ask 2"].estimates[0]
    assert difference.interval(LEVEL) == (-99, 99)
    narrow = difference.interval(Fraction(9, 10))  # each side is then asked for 95 %
    assert narrow[1] - narrow[0] < 198


def test_a_weighted_margin_that_could_leave_64_bits_is_refused_before_a_row_is_read():
    """512 rows of the largest weight passed and 513 raised: whether it failed depended on the rows."""
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "w": {"kind": "decimal", "bounds": [0, 9000], "grid": "0.000000000001", "role": "weight"},
    }
    with pytest.raises(PlanError, match="coarser grid"):
        wants_of(make_plan([{"table": ["sex"], "weight": "w"}], book(columns)))
    # A count is measured in coarser steps, and candidates are scored in unbounded integers: both may stay.
    columns["y"] = {"kind": "integer", "bounds": [0, 9]}
    wants_of(make_plan([{"count": "*", "weight": "w"}], book(columns)))
    wants_of(make_plan([{"median": "y", "step": "1", "weight": "w"}], book(columns)))


def test_quotients_of_quotients_stop_before_they_leave_the_doubles():
    """Exact quotients square at every level; whether a release died then depended on the noise drawn."""
    asks = [{"count": "*"}, {"count": "*", "where": "sex = 'f'"}]
    for level in range(4):
        here = 2 * level
        asks += [{"ratio": [f"ask {here}", f"ask {here + 1}"]}, {"ratio": [f"ask {here + 1}", f"ask {here}"]}]
    make_plan(asks[:6])
    with pytest.raises(PlanError, match="deep"):
        make_plan(asks)


# --- one respondent, one row: what else could reach the rows of others -----------------------------------------------


def _tallied(plan: Plan, frame: object) -> Tallies:
    engine = DuckDBEngine(open_frame(frame), threads=1)
    try:
        engine.check(plan.schema)
        return engine.tally(plan.schema, wants_of(plan))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("column", "answers"),
    [
        ({"kind": "categorical", "levels": ["1", "2", "none"]}, [1, 2, 2]),
        ({"kind": "categorical", "levels": ["true", "false"]}, [True, False, False]),
        ({"kind": "integer", "bounds": [0, 9800], "grid": 98, "role": ""}, [147, 343, 637]),
    ],
)
def test_a_silence_does_not_change_how_others_are_read(column: Book, answers: list[object]):
    """pandas turns integers into doubles, and truths into objects, as soon as one respondent is silent."""
    pandas = pytest.importorskip("pandas")
    ask = {"total": "y"} if column["kind"] == "integer" else {"table": ["y"]}
    plan = make_plan([ask], book({"y": column}))
    whole, holed = (_tallied(plan, pandas.DataFrame({"y": y})) for y in (answers, [*answers, None]))
    assert whole.statistics.sums == holed.statistics.sums
    for want, table in whole.tables.items():
        moved = [b - a for a, b in zip(table.cells, holed.tables[want].cells, strict=True)]
        assert moved == [0] * (len(moved) - 1) + [1]


TEXT, WHOLE, REAL = pa.string(), pa.int64(), pa.float64()
BOOKS = [
    ("1", "0", "9007199254740992"),
    ("0.01", "-90071992547409.92", "90071992547409.92"),
    ("98", "0", "9800"),
    ("2.5", "-100", "100"),
    ("1.001", "-1001000", "1001000"),
    ("1.000000000001", "0", "1000000.000001"),
    ("0.000000000001", "-9007", "9007"),
    ("999999.999999", "-99999999.9999", "99999999.9999"),
]


@pytest.mark.parametrize(("grid", "lower", "upper"), BOOKS)
def test_every_type_gives_the_exact_code_and_none_raises(grid: str, lower: str, upper: str):
    """Products used to leave 64 bits for some values of some grids: the release then failed for those rows only."""
    g, low, high = map(Fraction, (grid, lower, upper))
    plan = make_plan(
        [{"total": "y"}], book({"y": {"kind": "decimal", "bounds": [lower, upper], "grid": grid}})
    )
    wholes = {
        int(low),
        int(high),
        int(low) + 1,
        int(high) - 1,
        int(high) // 3,
        0,
        1,
        147,
        -1,
        2**62,
        -(2**62),
    }
    for x in sorted(wholes):
        code = min(
            max(floor(min(max(Fraction(x), low), high) / g + Fraction(1, 2)), int(low / g)), int(high / g)
        )
        kinds = [TEXT, WHOLE] + ([REAL] if abs(x - low) * g.denominator < 2**50 else [])
        kinds += [pa.decimal128(38, 0), pa.decimal128(38, 12)] if abs(x) < 10**25 else []
        kinds += [pa.decimal128(15, 0), pa.decimal128(15, 7)] if abs(x) < 10**8 else []
        for kind in kinds:
            cell = (
                str(x) if kind == TEXT else float(x) if kind == REAL else Decimal(x) if kind != WHOLE else x
            )
            found = _tallied(plan, pa.table({"y": pa.array([cell], type=kind)}))
            assert list(found.statistics.sums.values()) == [code], (x, kind)


def test_bounds_beyond_the_reach_of_a_narrow_decimal_still_clamp():
    """Bounds counted in units of the fifteenth decimal left 64 bits: an empty table passed, any answer raised."""
    plan = make_plan(
        [{"total": "y"}], book({"y": {"kind": "decimal", "bounds": [10000, 20000], "grid": "1"}})
    )
    rows = pa.table({"y": pa.array([Decimal("0.5")], type=pa.decimal128(15, 15))})
    assert list(_tallied(plan, rows).statistics.sums.values()) == [10000]


def test_a_grid_of_too_many_digits_is_refused_in_the_codebook():
    with pytest.raises(SchemaError, match="rounder"):
        book_ = book({"y": {"kind": "decimal", "bounds": ["0", "10000000000.01"], "grid": "1.000000000001"}})
        make_plan([{"total": "y"}], book_)
