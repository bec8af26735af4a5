"""The sampling error of a mean is that of its own subpopulation, not of the whole sample."""

from fractions import Fraction

import pyarrow as pa

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.refine.total import SampleSize
from reticent.release.statistics import evaluate, wants_of
from reticent.release.survey import Survey
from tests.doubles import ZeroNoise

BOOK = {
    "survey": {"name": "small", "unit": "row"},
    "columns": {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "hours": {"kind": "integer", "bounds": [0, 99]},
    },
}


def test_a_mean_of_few_has_the_sampling_error_of_few():
    """Without noise: s^2 / n, n being the four women among a hundred rows."""
    hours = [30, 34, 38, 42, *[40] * 96]
    rows = pa.table({"sex": ["f"] * 4 + ["m"] * 96, "hours": hours})
    asks = [
        {"name": "s2", "query": {"variance": "hours", "where": "sex = 'f'"}, "epsilon": "1"},
        {"name": "m", "query": {"mean": "hours", "where": "sex = 'f'"}, "epsilon": "1", "variance": "s2"},
    ]
    plan = Survey(rows, codebook=BOOK).plan("r-1", epsilon="2", statistics=asks, expect={"rows": 100})
    engine = DuckDBEngine(open_frame(rows))
    try:
        answers = evaluate(plan, engine.tally(plan.schema, wants_of(plan)), ZeroNoise())
    finally:
        engine.close()
    (mean,) = answers["m"].estimates
    textbook = Fraction(80, 3)  # of 30, 34, 38, 42
    assert mean.sampling is not None and mean.value == 36
    found = mean.sampling(SampleSize(respondents=100.0))
    assert found is not None and abs(found - float(textbook) / 4) < 1e-9
    assert found > 20 * float(textbook) / 100  # the naive twin: n is all rows
