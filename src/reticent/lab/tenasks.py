"""Ten asks of the simulated state: the plan, the true answers, and ways to answer it with the truth in hand."""

import tomllib
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reticent.engine.wants import Tallies
from reticent.exact import show
from reticent.lab.run.experiment import Row
from reticent.lab.world.state import LEVELS, Array, codebook
from reticent.noise.source import Noise
from reticent.plan.plan import Plan, plan_from
from reticent.release.document import document
from reticent.release.statistics import StatisticsResult, evaluate, wants_of
from reticent.release.survey import Survey

AT_WORK = "employment = 'employed'"
MEDIAN, MEAN_HOURS, SPREAD = "median wage", "mean hours", "variance of hours"
ASKS: dict[str, dict[str, Any]] = {
    "adults": {"count": "*", "where": "age >= 18", "weight": "weight"},
    "wages paid": {"total": "wage", "where": "age >= 15", "weight": "weight"},
    "employed, of adults": {"proportion": AT_WORK, "where": "age >= 18"},
    "married, of adults": {"proportion": "marital = 'married'", "where": "age >= 18"},
    "bachelor, of 25 and over": {"proportion": "schooling >= 'bachelor'", "where": "age >= 25"},
    "mean wage, women": {"mean": "wage", "where": f"{AT_WORK} and sex = 'f'", "centre": "40000"},
    "mean wage, men": {"mean": "wage", "where": f"{AT_WORK} and sex = 'm'", "centre": "40000"},
    MEDIAN: {"median": "wage", "where": AT_WORK, "step": "500"},
    SPREAD: {"variance": "hours", "where": AT_WORK},
    MEAN_HOURS: {"mean": "hours", "where": AT_WORK},
}
UNITS = dict.fromkeys(ASKS, "share") | {
    "adults": "people",
    "wages paid": "dollars",
    "mean wage, women": "dollars",
    "mean wage, men": "dollars",
    MEDIAN: "dollars",
    SPREAD: "hours squared",
    MEAN_HOURS: "hours",
}


def plan(epsilon: str, *, size: int, rows: int) -> Plan:
    """The plan at this epsilon in all, a tenth for each ask, for a simple sample of `rows` out of `size` people."""
    each = Fraction(epsilon) / len(ASKS)
    asks = {name: {"name": name, "query": query, "epsilon": show(each)} for name, query in ASKS.items()}
    # Half of the median's share goes to its interval; the others have theirs for nothing.
    asks[MEDIAN] |= {"epsilon": show(each / 2), "interval": {"epsilon": show(each / 2)}}
    asks[MEAN_HOURS] |= {"variance": SPREAD}
    public = tomllib.loads(codebook())
    public["columns"]["weight"]["bounds"] = ["0", show(Fraction(size, rows))]  # what the design gives out
    # Drawn without replacement, the sample has 1 - rows/size of the variance of one drawn with it.
    drawn = {"design_effect": show(1 - Fraction(rows, size))} if rows < size else {}
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "ten-asks"},
        "expect": {"rows": rows, **drawn},
        "protect": {"change": "one respondent added or removed", "epsilon": epsilon},
        "statistic": list(asks.values()),
    }
    return plan_from(data, public)


def truth_of(state: pa.Table) -> dict[str, float]:
    """The ten answers by their textbook formulas, on everybody, without our engine."""
    age = state["age"].to_numpy()
    code = {name: _codes(state, name) for name in ("sex", "marital", "schooling", "employment")}
    wage, hours = (np.nan_to_num(state[name].to_numpy()) for name in ("wage", "hours"))
    works, woman = code["employment"] == 0, code["sex"] == 0
    answers = (
        np.sum(age >= 18),
        np.sum(wage),
        np.mean(works[age >= 18]),
        np.mean(code["marital"][age >= 18] == 0),
        np.mean(code["schooling"][age >= 25] >= LEVELS["schooling"].index("bachelor")),
        np.mean(wage[works & woman]),
        np.mean(wage[works & ~woman]),
        np.median(wage[works]),
        np.var(hours[works], ddof=1),
        np.mean(hours[works]),
    )
    return {name: float(answer) for name, answer in zip(ASKS, answers, strict=True)}


def _codes(state: pa.Table, name: str) -> Array:
    """Positions among the levels, -1 where the question was not asked."""
    found = pc.index_in(state[name].cast(pa.string()), pa.array(LEVELS[name]), skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy())


def tally(rows: pa.Table, asked: Plan) -> Tallies:
    """The engine's one pass, on one thread: an experiment's workers are the parallel part."""
    engine = Survey(rows, codebook={}, threads=1).open()
    try:
        return engine.tally(asked.schema, wants_of(asked))
    finally:
        engine.close()


def answers(asked: Plan, tallies: Tallies, noise: Noise) -> dict[str, float]:
    """The value of every ask."""
    return {name: float(a.estimates[0].value) for name, a in evaluate(asked, tallies, noise).items()}


def published(asked: Plan, tallies: Tallies, noise: Noise) -> dict[str, Row]:
    """Every ask as a release would print it: `value`, `low` and `high` of the noise, `total_margin`."""
    done = StatisticsResult(plan=asked, answers=evaluate(asked, tallies, noise))
    made = document(asked, [done], receipt=None, engine="lab")
    return {answer["name"]: answer["estimates"][0] for answer in made["statistics"]}
