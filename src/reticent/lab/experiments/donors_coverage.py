"""Do total intervals of columns that capped donors fill cover, where silence is at random within the levels?

Surveys of 5,000 in clusters. People of higher classes earn more and say less often what they earn, so those who answered are
too poor; so do those who said yes to y6. Within a class and that answer silence is at random. Donors are matched on both, then
on the class, then on nothing. Asked are four shares of wages, the mean wage with a released variance, the median wage, how much
more those earn who said yes, by a regression, and without weights the sum of wages, a table of wages and one of wages by class
that adds up, at an epsilon so large that sampling and filling make most of the error. Every run draws one survey, answers its
plan with noise, and holds the total intervals of 95 % against the population. The interval for privacy noise is held against
it as well: the twin that must fail. So must the case that expects hardly anything to be missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.answer.add_up import answer_tables
from reticent.engine.wants import Tallies
from reticent.lab.noise import QuickModelNoise, QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import Floats, groups
from reticent.lab.world.clusters import CELLS, SHARES, WAGES, Clusters
from reticent.models.intervals import fit_line
from reticent.models.sums import Centred
from reticent.plan.plan import Plan, plan_from
from reticent.plan.regression import Regressions
from reticent.plan.tables import AddUpTables
from reticent.refine.total import DesignFactor
from reticent.release.document import document
from reticent.release.models import design_of, sums_of
from reticent.release.regression import coefficients, filled_factor, wanted_of
from reticent.release.sampling import Sampled
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey
from reticent.release.table_totals import total_told

LEVEL, Z, EPSILON, ITEMS = 0.95, 1.959963984540054, "8", "0.2"
BELOW = (15, 20, 30, 50)
EDGES = [0, 15, 20, 30, 50, 200]
TILT = 0.15
"""By how much the logarithm of wages grows from class to class."""
TOTAL, NOISE_ONLY = "total", "noise interval as if total"


@dataclass(frozen=True, kw_only=True)
class SilentClusters(Clusters):
    """Clusters whose classes differ in wages and in silence: the higher the class, the more; `hush` is the mean share."""

    hush: float

    def draw(self, bits: np.random.Generator) -> pa.Table:
        rows = super().draw(bits)
        place = np.char.strip(np.asarray(rows["class"].to_pylist()), "c").astype(int)
        yes = np.asarray(rows["y6"].to_pylist()) == "yes"
        wage = _tilted(rows["wage"].to_numpy().astype(float), place, yes)
        silent = bits.random(len(place)) < self.hush * (0.7 + 0.6 * place / (CELLS - 1)) * (0.9 + 0.2 * yes)
        at = rows.column_names.index("wage")
        return rows.set_column(at, "wage", pa.array(wage.astype(np.int64), mask=silent))

    @cached_property
    def facts(self) -> dict[str, float]:
        """What is asked, of the population: by four million draws, so to some four digits."""
        bits = np.random.default_rng([self.seed, 3])
        stratum = bits.choice(self.units // 2, 4_000_000, p=self.strata[0])
        place = bits.integers(0, CELLS, len(stratum))
        yes = bits.random(len(stratum)) < self.strata[1][stratum, 5]
        wage = _tilted(self._wages(bits, self.strata[2][stratum], np.full(len(stratum), np.nan)), place, yes)
        found = {f"below {each}": float(np.mean(wage < each)) for each in BELOW}
        found |= {"wage": float(wage.mean()), "y6 = yes": float(wage[yes].mean() - wage[~yes].mean())}
        found |= {"median": float(np.median(wage))}
        return found if self.weighted else {**found, **self._sums(wage, place)}

    def _sums(self, wage: Floats, place: Any) -> dict[str, float]:
        """What adds up over all respondents, whose number the design fixes: the sum of wages, and counts in tables."""
        heads = int(np.maximum(2, np.round(np.repeat(self.strata[0], 2) * self.people / 2)).sum())
        bins = np.histogram(wage, [*EDGES[:-1], np.inf])[0] / len(wage)
        found = {"sum": heads * float(wage.mean())}
        found |= {f"cell {low}": heads * float(each) for low, each in zip(EDGES[:-1], bins, strict=True)}
        for each in range(CELLS):
            mine = np.histogram(wage[place == each], [*EDGES[:-1], np.inf])[0] / len(wage)
            pairs = zip(EDGES[:-1], mine, strict=True)
            found |= {f"joint {low} c{each}": heads * float(part) for low, part in pairs}
        return found


def _tilted(wage: Floats, place: Any, yes: Any) -> Floats:
    grown = wage * np.exp(TILT * (place - (CELLS - 1) / 2) + 2 * TILT * yes)
    return np.asarray(np.clip(np.round(grown), *WAGES))


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledCase:
    """One design, how many are silent, how many donors a recipient has, and how many answers are expected to be missing."""

    effect: float = 1.0
    weighted: bool = False
    hush: float = 0.25
    donors: int = 5
    caps: tuple[int, int, int] = (3, 1, 1)
    expected: str | None = None
    leading: bool = True
    world: SilentClusters = field(init=False)

    def __post_init__(self) -> None:
        made = SilentClusters(
            people=5_000, units=100, effect=self.effect, weighted=self.weighted, hush=self.hush
        )
        object.__setattr__(self, "world", made)


CASES: dict[str, FilledCase] = {
    "no clusters": FilledCase(),
    "effect 2": FilledCase(effect=2.0),
    "effect 2, weighted": FilledCase(effect=2.0, weighted=True),
    "no clusters, weighted": FilledCase(effect=1.25, weighted=True),
    "one donor": FilledCase(donors=1),
    "40 % silent": FilledCase(hush=0.4),
    "40 % silent, larger caps": FilledCase(hush=0.4, caps=(6, 2, 1)),
    "one donor, 40 % silent": FilledCase(hush=0.4, donors=1),
    "one donor, 40 % silent, 1 % expected": FilledCase(hush=0.4, donors=1, expected="0.01", leading=False),
}


@cache
def plan_of(name: str) -> Plan:
    """Made once in every worker."""
    case = CASES[name]
    weight = {"weight": "w"} if case.weighted else {}
    items = [
        {**_ask(f"y{j + 1}", {"proportion": f"y{j + 1} = 'yes'", **weight}), "epsilon": ITEMS}
        for j in range(len(SHARES))
    ]
    asks = [_ask(f"below {each}", {"proportion": f"wage < {each}", **weight}) for each in BELOW]
    asks.append(_ask("spread", {"variance": "wage", **weight}))
    asks.append({**_ask("wage", {"mean": "wage", "centre": "30", **weight}), "variance": "spread"})
    asks.append(
        {**_ask("median", {"median": "wage", "step": "1", **weight}), "interval": {"epsilon": EPSILON}}
    )
    if not case.weighted:
        asks.append({**_ask("sum", {"total": "wage"}), "variance": "spread"})
        asks.append(_ask("cell", {"table": ["wage"], "bins": {"wage": EDGES}}))
    joint = {"name": "joint", "margins": [["wage", "class"]], "bins": {"wage": EDGES}, "epsilon": EPSILON}
    named = zip((["class", "y6"], ["class"], []), case.caps, strict=True)
    levels = [{"on": on, "serve": cap} for on, cap in named]
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "coverage"},
        "protect": {"change": "one respondent added or removed", "epsilon": "200", "accept_large": True},
        "expect": {"missing": {"wage": case.expected or str(case.hush)}},
        "impute": [
            {
                "method": "donors",
                "column": "wage",
                "match": levels,
                "donors": case.donors,
                "default": "25",
            }
        ],
        "statistic": [*items, *asks],
        "regression": [{"name": "line", "y": "wage", "x": ["y6"], "epsilon": "50"}],
        **({} if case.weighted else {"tables": [joint]}),
        "design": {"items": [item["name"] for item in items], "epsilon": ITEMS},
    }
    return plan_from(data, case.world.codebook())


def _ask(name: str, query: Row) -> Row:
    return {"name": name, "query": query, "epsilon": EPSILON}


def run(index: int, seed: int) -> list[Outcome]:
    """One survey of one case."""
    name = list(CASES)[index % len(CASES)]
    case, plan = CASES[name], plan_of(name)
    draw, loud = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    engine = Survey(case.world.draw(draw), codebook={}, threads=1).open()
    try:
        tallies = engine.tally(plan.schema, [*wants_of(plan), *_summed(plan)], plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(plan, tallies, QuickNoise(loud))
    sampled = made.sampled or Sampled(plan=plan)
    result = StatisticsResult(plan=plan, answers=made.answers, sampled=sampled)
    told = document(plan, [result], receipt=None, engine="lab")
    estimates = {answer["name"]: answer["estimates"][0] for answer in told["statistics"]}
    estimates |= dict(_cells(told["statistics"])) | dict(_joint(plan, tallies, sampled, loud))
    factor = sampled.bought.factor if sampled.bought else None
    estimates |= {str(each["term"]): each for each in _slopes(plan, tallies, factor, loud)}
    facts = case.world.facts
    return [line for query in facts for line in _lines(f"{name}|{query}", estimates[query], facts[query])]


def _cells(answers: list[Row]) -> Iterator[tuple[str, Row]]:
    """The cells of the table of wages, by where their bins begin; nobody's wage is missing."""
    for answer in answers:
        for each in answer["estimates"]:
            label = str(each["cell"].get("wage", ""))
            if label[:1].isdigit():
                yield f"cell {label.split()[0]}", each


def _joint(
    plan: Plan, tallies: Tallies, sampled: Sampled, loud: np.random.Generator
) -> Iterator[tuple[str, Row]]:
    """The cells of the table that adds up, where the case asks for one."""
    asked = plan.product(AddUpTables)
    for table in asked.tables if asked else ():
        given: Row = {"schema": plan.schema, "neighbours": plan.neighbours}
        made = answer_tables(table, tallies, QuickNoise(loud), **given)
        for line in made.margins[0]:
            wage, place = (level for _, level in line.cell)
            if wage[0].isdigit() and place.startswith("c"):
                ends = {"value": line.value, "privacy_low": line.low, "privacy_high": line.high}
                yield f"joint {wage.split()[0]} {place}", {**ends, **total_told(table, line, sampled)}


def _summed(plan: Plan) -> list[Any]:
    asked, tables = plan.product(Regressions), plan.product(AddUpTables)
    counted = (
        [want for table in tables.tables for want in table.wants(plan.schema, plan.neighbours)]
        if tables
        else []
    )
    return counted + [
        want
        for line in (asked.lines if asked else ())
        for want in wanted_of(line, plan.schema).values()
        if want
    ]


def _slopes(
    plan: Plan, tallies: Tallies, factor: DesignFactor | None, loud: np.random.Generator
) -> Iterator[Row]:
    """The coefficients of the plan's line, over all completions."""
    asked = plan.product(Regressions)
    if asked is None:
        return
    (line,) = asked.lines
    found = tallies.fractions or tallies
    fitted = fit_line(
        Centred(),
        sums_of(design_of(line.model, plan.schema), wanted_of(line, plan.schema), found.statistics),
        epsilon=line.model.epsilon,
        neighbours=line.neighbours(plan.neighbours),
        noise=QuickModelNoise(loud),
    )
    yield from coefficients(line, (), fitted, filled_factor(line, plan, factor), plan.schema)


def _lines(query: str, one: Row, truth: float) -> list[Outcome]:
    at: Row = {"query": query, "estimate": one["value"], "truth": truth}
    return [
        Outcome(method=TOTAL, low=one["total_low"], high=one["total_high"], **at),
        Outcome(method=NOISE_ONLY, low=one["privacy_low"], high=one["privacy_high"], **at),
    ]


KINDS = {
    "below": "shares",
    "wage": "mean",
    "y6": "slope",
    "median": "median",
    "sum": "total",
    "cell": "table",
    "joint": "table that adds up",
}


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each case, kind of estimate and interval: coverage, and the median width beside the ideal one."""
    found: dict[tuple[str, str, str], list[tuple[Floats, float, float]]] = {}
    for key, lines in groups(outcomes):
        case, query = str(key["query"]).split("|")
        error = lines["estimate"] - lines["truth"]
        held = (lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])
        rmse = float(np.sqrt(np.mean(error**2)))
        wide = float(np.median(lines["high"] - lines["low"]))
        width, bias = (wide / (2 * Z * rmse), float(np.mean(error)) / rmse) if rmse else (np.nan, np.nan)
        row = np.asarray(held, dtype=float), width, bias
        found.setdefault((case, KINDS[query.split()[0]], str(key["method"])), []).append(row)
    return [_row(*at, each) for at, each in found.items()]


def _row(case: str, kind: str, method: str, found: list[tuple[Floats, float, float]]) -> Row:
    by_run = np.mean([held for held, _, _ in found], axis=0)
    return {
        "case": case,
        "leading": CASES[case].leading and method == TOTAL,
        "of": kind,
        "interval": method,
        "level": LEVEL,
        "coverage": round(float(np.mean(by_run)), 4),
        "coverage_se": round(float(np.std(by_run) / np.sqrt(len(by_run))), 4),
        "width_ratio": _mean_of([width for _, width, _ in found], np.nanmedian),
        "bias_over_rmse": _mean_of([bias for _, _, bias in found], np.nanmean),
        "estimates": len(found),
        "runs": len(by_run),
    }


def _mean_of(numbers: list[float], mean: Any) -> float | None:
    """Over estimates; none where a choice among whole numbers never erred."""
    return round(float(mean(numbers)), 3) if np.isfinite(numbers).any() else None


def experiment() -> Experiment:
    """The experiment of the list."""
    return Experiment(
        name="donors-coverage",
        title="Do total intervals of columns that capped donors fill cover?",
        source="the library's own sampling errors of filled columns, THEORY 13.5a",
        run=run,
        params={"cases": list(CASES), "epsilon": EPSILON, "items": ITEMS, "level": LEVEL},
        runs=250,
        batch=8,
        cases=tuple(CASES),
        pieces=tuple(
            f"{'leading' if case.leading else 'other'}/{name.replace(', ', '/')}"
            for name, case in CASES.items()
        ),
        told=told,
    )
