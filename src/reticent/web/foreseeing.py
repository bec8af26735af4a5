"""What the plan page says of a text: the preview of each of its sections, with its noise by epsilon. No row is read."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from fractions import Fraction
from math import log10, sqrt
from pathlib import Path
from typing import Any

from reticent.answer.route import Route
from reticent.answer.statistic import BaseRoute
from reticent.errors import ReticentError
from reticent.exact import margin_text, read_decimal, show
from reticent.plan.plan import Plan, read_plan_data, read_plan_text
from reticent.preview.preview import LEGEND, Expectation, expectations
from reticent.preview.products import foresee_plan
from reticent.preview.units import unit_line
from reticent.query.base import CodedMean, CodedSum, RowQuery
from reticent.refine.total import DesignFactor
from reticent.release.product import Line
from reticent.release.run import try_plan
from reticent.web import plan_text
from reticent.web.sections import LISTED, UNITS, PlanSection, cap_of, grouped, sections, unit_of

FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))
TOTAL, TOTAL_IF = "noise and sampling", "noise and sampling, if the design effect is 1"
MOST_CURVES = 60
"""Statistics up to which each has its curve: it takes five more readings of the plan."""
Curve = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticAhead:
    """What a preview says of one statistic."""

    name: str
    words: str
    amount: str
    margin: str
    total: str
    total_of: str
    how: str
    level: str
    warning: str
    wanted: str = ""
    assumed: str = ""
    curve: Curve = ()

    @property
    def points(self) -> list[dict[str, Any]]:
        """The noise by epsilon, as points of a chart 280 wide and 96 high; both scales go by powers."""
        if not self.curve or min(min(each) for each in self.curve) <= 0:
            return []
        epsilons, margins = ([each[side] for each in self.curve] for side in (0, 1))
        return [
            {
                "x": round(34 + 212 * _along(epsilon, epsilons), 1),
                "y": round(70 - 46 * _along(margin, margins), 1),
                "epsilon": f"{epsilon:.3g}",
                "margin": margin_text(margin),
                "here": place == len(FACTORS) // 2,
            }
            for place, (epsilon, margin) in enumerate(self.curve)
        ]


def _along(value: float, among: Sequence[float]) -> float:
    """Where a value stands between the least and the largest, by powers: 0 to 1."""
    low, high = min(among), max(among)
    return log10(value / low) / log10(high / low) if high > low else 0.5


@dataclass(slots=True, kw_only=True)
class PlanAhead:
    """Everything the page says of a text: its sections, and the preview or what is wrong with it."""

    sections: list[PlanSection] = field(default_factory=list)
    problem: str = ""
    plan: Plan | None = None
    statistics: dict[str, StatisticAhead] = field(default_factory=dict)
    lines: dict[str, Sequence[Line]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    cap: str = ""
    unit: str = "epsilon"

    @property
    def groups(self) -> list[tuple[str, str, list[PlanSection]]]:
        """Sections of one kind together, each kind with its heading."""
        return grouped(self.sections)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked yet."""
        return not any(each.section in LISTED for each in self.sections)

    def of(self, section: PlanSection) -> StatisticAhead | None:
        """What the preview says of a section, where it is a statistic that can be foreseen."""
        return self.statistics.get(section.name) if section.section == "statistic" else None

    @property
    def sign(self) -> str:
        return UNITS[self.unit]

    @property
    def claim(self) -> str:
        return self.plan.worded(self.plan.claim) if self.plan else ""

    @property
    def cost(self) -> str:
        return show(self.plan.cost) if self.plan else ""

    @property
    def share(self) -> float:
        """Of the cap, how much is used."""
        return float(self.plan.cost / self.plan.cap) if self.plan and self.plan.cap else 0.0


def ahead(text: str, path: Path, cv: float = 0.0) -> PlanAhead:
    """Read a text as the command line reads a plan, and foresee it. Reads no row."""
    found = PlanAhead()
    try:
        data = plan_text.plan_data(text)
        found.sections, found.cap, found.unit = sections(data), cap_of(data), unit_of(data)
        plan = read_plan_text(text, path)
        try_plan(plan)
    except ReticentError as problem:
        found.problem = problem.told
        return found
    found.plan = plan
    found.said = [unit_line(plan), *(f"imputation: {each}" for each in plan.repair_words)]
    found.said += [f"sampling error: {each}" for each in plan.design.words] if plan.asks else []
    expected = list(zip(expectations(plan), plan.routes, strict=True))
    curves = _curves(data, path) if 0 < len(expected) <= MOST_CURVES else {}
    found.statistics = {
        each.name: _statistic(each, route, plan, cv, curves.get(each.name, ())) for each, route in expected
    }
    found.legend = {each.how: LEGEND[each.how] for each in found.statistics.values()}
    for each in foresee_plan(plan, cv):
        if each.key == "statistics":
            told = [f"{key}: {words}" for key, words in LEGEND.items()]  # of lines, some of which are tables
            found.lines["statistic"] = [line for line in each.lines[1:] if line not in told]
        else:
            found.lines[each.key] = each.lines
    return found


def _statistic(each: Expectation, route: Route, plan: Plan, cv: float, curve: Curve) -> StatisticAhead:
    wanted = route.epsilon_for(cv) if cv else None
    total, total_of = _total(each, route, plan)
    assumed = route.expected_value if isinstance(route, BaseRoute) and not route.statistic.expected else None
    return StatisticAhead(
        name=each.name,
        words=each.words,
        amount=show(each.epsilon),
        margin="" if each.margin is None else f"± {margin_text(float(each.margin))}",
        total=total,
        total_of=total_of,
        how=each.how,
        level=f"{show(100 * each.level)} %",
        warning=each.warning,
        wanted=show(wanted) if wanted else "",
        assumed="" if assumed is None else show(assumed),
        curve=curve,
    )


def _total(each: Expectation, route: Route, plan: Plan) -> tuple[str, str]:
    """Noise and sampling together, where the spread follows from what the plan expects, or why not; and what it is of.

    A design effect that is bought is not known yet: the total is told as for a simple random sample, and says so.
    """
    design = plan.design
    factor, variance = design.factor(each.name), _spread(route, plan)
    is_bought = factor is None and (design.pooled is not None or each.name in design.own)
    if factor is None and not is_bought:
        return "not asked for", TOTAL
    if each.margin is None or variance is None:
        return "with the release", TOTAL
    held = factor or DesignFactor(deft=1.0)
    sampling = held.quantile(float(route.statistic.level)) * held.deft * sqrt(variance)
    return f"± {margin_text(sqrt(float(each.margin) ** 2 + sampling**2))}", TOTAL_IF if is_bought else TOTAL


def _spread(route: Route, plan: Plan) -> float | None:
    """The variance that a simple random sample gives a share, at one half where none is expected, or an expected count.

    Of numbers the spread in the population is not known beforehand; what a weight, or a household, stands for in
    respondents is not either.
    """
    query, shape = route.query, route.query.shape(plan.setting.schema)
    if not isinstance(shape, CodedMean | CodedSum) or shape.number or not isinstance(query, RowQuery):
        return None
    expected = route.statistic.expected
    value, size = (None, None) if expected is None else (expected.value, expected.size)
    size = (size or plan.rows) if isinstance(shape, CodedMean) else plan.rows
    if query.weight or query.among.per or not size:
        return None
    if isinstance(shape, CodedMean):
        share = 0.5 if value is None else float(value)
        return max(share * (1 - share), 0.0) / size
    return None if value is None else max(float(value) * (1 - float(value) / size), 0.0)


def _curves(data: Mapping[str, Any], path: Path) -> dict[str, Curve]:
    """For every statistic its margin at a quarter to four times its epsilon; none where one of them is refused."""
    found: dict[str, list[tuple[float, float]]] = {}
    for factor in FACTORS:
        with suppress(ReticentError):
            for each in expectations(read_plan_data(_scaled(data, factor), path)):
                if each.margin is not None and each.epsilon:
                    found.setdefault(each.name, []).append((float(each.epsilon), float(each.margin)))
    return {name: tuple(points) for name, points in found.items() if len(points) == len(FACTORS)}


def _scaled(data: Mapping[str, Any], factor: Fraction) -> dict[str, Any]:
    """The plan with every epsilon of its statistics, and its cap, that much larger."""
    made = dict(deepcopy(data))
    for each in made.get("statistic", []):
        for held in (each, each.get("interval", {})):
            for key in UNITS:
                amount = read_decimal(held.get(key)) if isinstance(held, dict) else None
                if amount:
                    held[key] = show(amount * factor)
    cap = made.get("protect", {})
    for key in UNITS:
        if read_decimal(cap.get(key)):
            cap |= {key: show((read_decimal(cap[key]) or Fraction(0)) * 4), "accept_large": True}
    return made
