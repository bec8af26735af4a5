"""Do the two intervals of an estimate cover? Surveys drawn in clusters, asked with privacy, against the truth.

Every run draws one survey of a case, answers its plan with noise, and looks at both intervals of every estimate: that for
privacy noise against what the same respondents say without noise, and the total against the population. Coverage is over
runs and estimates of a case; the width is that of the median interval over 2 x 1.96 standard deviations of the error that it
is about. Cases marked leading are shares and means of everybody and of large domains.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.engine.wants import Tallies
from reticent.lab.noise import NoNoise, QuickModelNoise, QuickNoise
from reticent.lab.run.experiment import Experiment, Outcome, Row
from reticent.lab.run.summary import Floats, groups
from reticent.lab.world.clusters import HIGH, REGIONS, SHARES, SLOPES, Clusters
from reticent.models.intervals import fit_line
from reticent.models.sums import Centred
from reticent.plan.plan import Plan, plan_from
from reticent.plan.regression import Regressions
from reticent.release.document import document
from reticent.release.models import design_of, sums_of
from reticent.release.regression import coefficients, wanted_of
from reticent.release.sampling import Sampled
from reticent.release.statistics import StatisticsResult, evaluate_sampled, wants_of
from reticent.release.survey import Survey

LEVEL = 0.95
Z = 1.959963984540054
EPSILON = "0.2"
INTERVALS = ("privacy", "total")
NOISE_ONLY = "noise interval as if total"
"""The twin that must fail: the interval for privacy noise, taken for a confidence interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One design, what is asked of it, and where the sampling error comes from.

    `domain` is a condition and the suffix of its truth; with `by` shares are asked in every region instead, at one price.
    `own` is the price of a standard error for each statistic; `effect` a declared design effect, with what respondents weigh
    on average; else `factor` is the price of one design factor. `wage` asks for the mean wage besides the shares, whose error is its own or rests on a released variance;
    `median` asks for the median wage, `slope` for a line of wages on two shares, `filled` for the share of high wages where
    donors answer for those who did not tell.
    """

    world: Clusters
    factor: str = "0.2"
    own: str | None = None
    effect: str | None = None
    domain: tuple[str, str] | None = None
    by: bool = False
    wage: bool = False
    median: bool = False
    slope: bool = False
    filled: bool = False
    leading: bool = True

    @property
    def shares(self) -> bool:
        """Whether the eight shares are asked, and not a median or slopes alone."""
        return not (self.median or self.slope or self.filled)


def _world(people: int, units: int, effect: float, **more: Any) -> Clusters:
    return Clusters(people=people, units=units, effect=effect, **more)


SILENT = 0.2
SMALL, LARGE = partial(_world, 5_000, 100), partial(_world, 20_000, 200)
CASES: dict[str, Case] = {
    "5000, effect 1.5": Case(world=SMALL(1.5)),
    "5000, effect 3": Case(world=SMALL(3.0)),
    "5000, effect 3, weighted": Case(world=SMALL(3.0, weighted=True)),
    "5000, no clusters": Case(world=SMALL(1.0), leading=False),
    "20000, effect 1.5": Case(world=LARGE(1.5), factor="0.1"),
    "20000, effect 1.5, weighted": Case(world=LARGE(1.5, weighted=True), factor="0.1"),
    "20000, effect 3, weighted": Case(world=LARGE(3.0, weighted=True)),
    "20000, effect 2, uneven strata": Case(world=LARGE(2.0, spread=0.6)),
    "20000, effect 2, own error": Case(world=LARGE(2.0), own="0.2", wage=True),
    "20000, effect 2, weighted, own error": Case(world=LARGE(2.0, weighted=True), own="0.2", wage=True),
    "20000, effect 2, one region of four": Case(world=LARGE(2.0), domain=("region = 'r0'", " in r0")),
    "20000, effect 2, mean wage": Case(world=LARGE(2.0), wage=True),
    "20000, effect 2, one region of four, own error": Case(
        world=LARGE(2.0), own="0.2", wage=True, domain=("region = 'r0'", " in r0")
    ),
    "20000, effect 2, a tenth everywhere": Case(world=LARGE(2.0), domain=("tenth = 'in'", ""), leading=False),
    "20000, effect 2, declared": Case(world=LARGE(2.0), effect="2", leading=False),
    "20000, effect 2, every region, own error": Case(world=LARGE(2.0), own="0.2", by=True, leading=False),
    "20000, effect 2, median wage": Case(world=LARGE(2.0), median=True, leading=False),
    "20000, effect 2, weighted, median wage": Case(
        world=LARGE(2.0, weighted=True), median=True, leading=False
    ),
    "20000, effect 2, slopes of wages": Case(world=LARGE(2.0), slope=True, leading=False),
    "20000, effect 2, filled wages": Case(world=LARGE(2.0, silent=SILENT), filled=True, leading=False),
    "20000, effect 2, weighted, filled wages": Case(
        world=LARGE(2.0, silent=SILENT, weighted=True), filled=True, leading=False
    ),
    "5000, effect 2, filled wages": Case(world=SMALL(2.0, silent=SILENT), filled=True, leading=False),
    "5000, effect 2, one region of four": Case(
        world=SMALL(2.0), domain=("region = 'r0'", " in r0"), leading=False
    ),
    "5000, effect 2, every region, own error": Case(world=SMALL(2.0), own="0.2", by=True, leading=False),
    "5000, no clusters, weighted": Case(world=SMALL(1.0, weighted=True), leading=False),
    "20000, no clusters, dealt groups": Case(world=LARGE(1.0, dealt=True), factor="0.1", leading=False),
    "5000, effect 3, weighted, replicate weights": Case(
        world=SMALL(3.0, weighted=True, replicates=64), leading=False
    ),
    "5000, effect 3, weighted, replicate weights, own error": Case(
        world=SMALL(3.0, weighted=True, replicates=64), own="0.2", leading=False
    ),
    "20000, effect 2, weighted, declared": Case(world=LARGE(2.0, weighted=True), effect="2", leading=False),
    "20000, effect 2, weighted, every region, declared": Case(
        world=LARGE(2.0, weighted=True), effect="2", by=True, leading=False
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCase:
    """A case's plan, and the same without noise to come: what the respondents themselves say."""

    plan: Plan = field(repr=False)
    truth: Mapping[str, float]


@cache
def asked(name: str) -> AskedCase:
    """Made once in every worker."""
    case = CASES[name]
    weight = {"weight": "w"} if case.world.weighted else {}
    where = {"where": case.domain[0]} if case.domain else {}
    sampling = {"sampling": {"epsilon": case.own}} if case.own else {}
    items = [_share(j, weight, {}, {}) for j in range(len(SHARES))]
    by = {"by": ["region"], "show_missing": False} if case.by else {}
    asks = [_share(j, weight, {**where, **by}, sampling) for j in range(len(SHARES))] if case.shares else []
    if case.median:
        query = {"median": "income", "step": "0.05", **weight}
        asks.append({"name": "median", "query": query, "epsilon": EPSILON, "interval": {"epsilon": "0.4"}})
    if case.filled:
        query = {"proportion": f"wage >= {HIGH}", **weight}
        asks.append({"name": "high", "query": query, "epsilon": EPSILON})
    if case.wage:
        query = {"mean": "wage", "centre": "30", **weight, **where}
        spread = {"name": "spread", "query": {"variance": "wage", "centre": "30"}, "epsilon": EPSILON}
        asks += [] if case.own else [spread]
        named: Row = sampling or {"variance": "spread"}
        asks.append({"name": "wage", "query": query, "epsilon": EPSILON, **named})
    if case.domain or not case.shares:
        items = [{**item, "name": f"all {item['name']}"} for item in items]
    design: dict[str, Any] = {}
    if case.effect:
        mean = {"mean_weight": "1"} if case.world.weighted else {}
        design = {"design": {"design_effect": case.effect}, "expect": {"rows": case.world.people, **mean}}
    elif case.own is None:
        design = {"design": {"items": [item["name"] for item in items], "epsilon": case.factor}}
    data = {
        "survey": {"source": "rows", "codebook": "codebook", "ledger": "none"},
        "release": {"id": "intervals"},
        "protect": {"change": "one respondent added or removed", "epsilon": "10"},
        "statistic": [*(items if case.domain or not case.shares else []), *asks],
        **({"regression": [LINE]} if case.slope else {}),
        **({"impute": [DONORS], "expect": {"missing": {"wage": str(SILENT)}}} if case.filled else {}),
        **design,
    }
    return AskedCase(
        plan=plan_from(data, case.world.codebook()),
        truth=_truths(case, [ask["name"] for ask in asks if ask["name"] != "spread"]),
    )


DONORS = {
    "method": "donors",
    "column": "wage",
    "match": [{"on": ["class"], "serve": 3}, {"on": [], "serve": 1}],
}
LINE = {"name": "line", "y": "wage", "x": [f"y{j + 1}" for j in SLOPES], "epsilon": "1"}


def _truths(case: Case, names: list[str]) -> dict[str, float]:
    """What the population says, by the name of a statistic; by region after a comma."""
    world, suffix = case.world, case.domain[1] if case.domain else ""
    if case.slope:
        return world.slopes
    if case.by:
        regions = [f"r{each}" for each in range(REGIONS)]
        return {
            f"{name}, {region}": world.truth[f"{name} in {region}"] for name in names for region in regions
        }
    known = {**world.truth, **({"median": world.median_income} if case.median else {})}
    known |= {"wage": world.mean_wage, **(world.regional_wages if suffix else {})} if case.wage else {}
    known |= {"high": world.high_wages} if case.filled else {}
    return {name: known[name + ("" if name in ("median", "high") else suffix)] for name in names}


def _share(place: int, weight: Row, where: Row, sampling: Row) -> Row:
    name = f"y{place + 1}"
    query = {"proportion": f"{name} = 'yes'", **weight, **where}
    return {"name": name, "query": query, "epsilon": EPSILON, **sampling}


def run(index: int, seed: int) -> list[Outcome]:
    """One survey of one case."""
    name = list(CASES)[index % len(CASES)]
    case, held = CASES[name], asked(name)
    draw, loud = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    rows = case.world.draw(draw)
    engine = Survey(rows, codebook={}, threads=1).open()
    try:
        line = held.plan.product(Regressions)
        summed = wanted_of(line.lines[0], held.plan.schema).values() if line else ()
        wants = [*wants_of(held.plan), *(want for want in summed if want)]
        tallies = engine.tally(held.plan.schema, wants, held.plan.repair)
    finally:
        engine.close()
    made = evaluate_sampled(held.plan, tallies, QuickNoise(loud))
    sampled = made.sampled or Sampled(plan=held.plan)
    result = StatisticsResult(plan=held.plan, answers=made.answers, sampled=sampled)
    told = document(held.plan, [result], receipt=None, engine="lab")
    exact = _exact(rows, case, held.truth) if not case.filled else _without_noise(held.plan, tallies)
    outcomes = []
    for item, estimate in [*_estimates(told), *_slopes(held.plan, tallies, sampled, loud)]:
        if item in held.truth:
            outcomes += _lines(f"{name}|{item}", estimate, exact[item], held.truth[item])
    return outcomes


def _without_noise(plan: Plan, tallies: Tallies) -> dict[str, float]:
    """What the filled rows say: donors are drawn by our engine, so it is asked."""
    made = evaluate_sampled(plan, tallies, NoNoise())
    return {name: float(answer.estimates[0].value) for name, answer in made.answers.items()}


def _estimates(told: Row) -> Iterator[tuple[str, Row]]:
    for answer in told["statistics"]:
        for each in answer["estimates"]:
            yield ", ".join([answer["name"], *each["cell"].values()]), each


def _slopes(
    plan: Plan, tallies: Tallies, sampled: Sampled, loud: np.random.Generator
) -> Iterator[tuple[str, Row]]:
    """The coefficients of the plan's line, where it has one."""
    asked = plan.product(Regressions)
    if asked is None:
        return
    (line,) = asked.lines
    sums = sums_of(design_of(line.model, plan.schema), wanted_of(line, plan.schema), tallies.statistics)
    fitted = fit_line(
        Centred(), sums, epsilon=line.model.epsilon, neighbours=plan.neighbours, noise=QuickModelNoise(loud)
    )
    factor = sampled.bought.factor if sampled.bought else None
    for each in coefficients(line, (), fitted, factor, plan.schema):
        yield str(each["term"]), each


def _lines(query: str, one: Row, exact: float, truth: float) -> list[Outcome]:
    """Both intervals, and the noise's against the population."""
    noise = {"low": one["privacy_low"], "high": one["privacy_high"]}
    total = {"low": one["total_low"], "high": one["total_high"]}
    at: Row = {"query": query, "estimate": one["value"]}
    return [
        Outcome(method="privacy", truth=exact, **noise, **at),
        Outcome(method="total", truth=truth, **total, **at),
        Outcome(method=NOISE_ONLY, truth=truth, **noise, **at),
    ]


def _exact(rows: pa.Table, case: Case, names: Mapping[str, float]) -> dict[str, float]:
    """What the respondents say, without noise and without our engine."""
    weight = rows["w"].to_numpy()
    if case.domain:
        column, level = case.domain[0].replace("'", "").split(" = ")
        weight = weight * (np.asarray(rows[column].to_pylist()) == level)
    found: dict[str, float] = {}
    if case.slope:
        return _least_squares(rows)
    if case.median:
        return {"median": _median(rows["income"].to_numpy(), weight)}
    if case.by:
        region = np.asarray(rows["region"].to_pylist())
        for name in names:
            item, here = name.split(", ")
            yes = np.asarray(rows[item].to_pylist()) == "yes"
            found[name] = float(np.average(yes[region == here], weights=weight[region == here]))
        return found
    for name in names:
        values = rows[name].to_numpy() if name == "wage" else np.asarray(rows[name].to_pylist()) == "yes"
        found[name] = float((weight * values).sum() / weight.sum())
    return found


def _median(values: Floats, weight: Floats) -> float:
    """Of the weighted sample."""
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)])


def _least_squares(rows: pa.Table) -> dict[str, float]:
    columns = [np.asarray(rows[f"y{j + 1}"].to_pylist()) == "yes" for j in SLOPES]
    x = np.column_stack([np.ones(len(rows)), *columns]).astype(float)
    found = np.linalg.lstsq(x, rows["wage"].to_numpy().astype(float), rcond=None)[0]
    return {f"y{j + 1} = yes": float(each) for j, each in zip(SLOPES, found[1:], strict=True)}


def told(outcomes: pa.Table) -> list[Row]:
    """A row for each case and interval: coverage over runs and estimates, and the width beside the ideal one."""
    found: dict[tuple[str, str], list[tuple[Floats, float]]] = {}
    for key, lines in groups(outcomes):
        case = str(key["query"]).split("|")[0]
        held = (lines["low"] <= lines["truth"]) & (lines["truth"] <= lines["high"])
        error = lines["estimate"] - lines["truth"]
        # Where noise left nothing of a sampling error there is no interval: it covers nothing, and has no width.
        width = float(np.nanmedian(lines["high"] - lines["low"]) / (2 * Z * np.sqrt(np.mean(error**2))))
        found.setdefault((case, str(key["method"])), []).append((np.asarray(held, dtype=float), width))
    return [_row(case, method, each) for (case, method), each in found.items()]


def _row(case: str, method: str, found: list[tuple[Floats, float]]) -> Row:
    runs = len(found[0][0])
    by_run = np.mean([held for held, _ in found], axis=0)
    return {
        "case": case,
        "leading": CASES[case].leading and method in INTERVALS,
        "interval": method,
        "level": LEVEL,
        "coverage": round(float(np.mean(by_run)), 4),
        "coverage_se": round(float(np.std(by_run) / np.sqrt(runs)), 4),
        "width_ratio": round(float(np.median([width for _, width in found])), 3),
        "estimates": len(found),
        "runs": runs,
    }


def experiment() -> Experiment:
    """The experiment of the list."""
    return Experiment(
        name="survey-intervals",
        title="Do intervals for privacy noise, and total intervals, cover?",
        source="the library's own sampling errors, THEORY 13",
        run=run,
        params={"cases": list(CASES), "epsilon": EPSILON, "level": LEVEL},
        runs=400,
        batch=5,
        cases=tuple(CASES),
        pieces=tuple(
            f"{'leading' if case.leading else 'other'}/{name.replace(', ', '/')}"
            for name, case in CASES.items()
        ),
        told=told,
    )
