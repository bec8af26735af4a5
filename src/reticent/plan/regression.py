"""Read the `[[regression]]` sections of a plan: least-squares lines whose coefficients are published. All public.

Predictors are taken as those of a model that fills gaps: numbers and ordinal columns by their code, other levels told
apart one by one, the first of them standing for the rest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from reticent.answer.statistic import DOMAINS
from reticent.errors import REQUIRED, PlanError
from reticent.exact import read_decimal, show
from reticent.files import Amount, Section, fill, is_printable
from reticent.plan.budgets import Given, Product
from reticent.plan.donors import repairable
from reticent.plan.models import (
    CENTRED,
    LINES,
    MOST_TERMS,
    Feature,
    ModelRepair,
    check_estimator,
    check_sums,
    separate_features,
)
from reticent.plan.tables import check_missingness
from reticent.prepare.repair import Repair
from reticent.privacy.claim import Change, Claim, amount, read_spent
from reticent.query.base import AVAILABLE, EVERYONE, Subpopulation, listed
from reticent.query.domains import Domain, without_anybody
from reticent.query.sides import MISSING, NOT_ASKED, Sides
from reticent.query.written import WrittenQuery, predicate_of
from reticent.schema import Levels, Number, Schema
from reticent.schema.predicate import columns_compared
from reticent.sensitivity.bounds import Neighbours, within_domains
from reticent.sensitivity.donors import CAPPED_PAGES, fitted_to, served

if TYPE_CHECKING:
    from reticent.plan.plan import Plan

MOST_LINES = 1000
"""Domains of one regression."""
UNDIVIDED = Sides(columns=())
WITH_DELTA = ("adassp",)
"""Estimators that have a use for a delta."""
SUMMED = ("sums of products among chosen rows", "proofs/release/regression.md")
NO_RHO = (
    "a regression has pure noise; write epsilon in its place, which a plan in rho charges its square over two"
)
ONLY_CENTRED = (
    "is proved for the estimator 'centred'; take it, or write a [[regression]] for each domain, with where"
)


class RegressionSection(Section):
    """A `[[regression]]` section: a line whose coefficients are published.

    **Keys**

    - `name`: its name in the release.
    - `y`: the response, a column with numbers.
    - `x`: the predictors.
    - `epsilon`: the privacy budget of all coefficients together.
    - `delta`: for the estimator `"adassp"`, which then has Gaussian noise.
    - `where`: a condition on the respondents that count.
    - `estimator`: how the line is fitted; `"centred"` where not said.
    - `level`: of the intervals for privacy noise, 0.95 where not said.
    - `rho`: refused, with what to write instead.
    - `by`: columns whose levels are domains: a line in each, under one epsilon.
    - `bins`: the edges of the bins of numbers among them.
    - `show_missing`: whether those who did not say, or were not asked, are shown as domains; true where not said.
    """

    name: str = Field(min_length=1, max_length=200)
    y: str
    x: list[str] = Field(min_length=1, max_length=MOST_TERMS)
    epsilon: Amount | None = None
    delta: Amount | None = None
    where: str | None = None
    estimator: str = CENTRED
    level: Any = "0.95"
    rho: Amount | None = None
    by: Any = None
    bins: dict[str, Any] = Field(default={})
    show_missing: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedRegression:
    """One line that is asked for: its columns and price, who counts, and the level of its intervals.

    Where capped donors fill some of its columns, one record changes up to `donees` others in each completion.
    """

    name: str
    model: ModelRepair
    among: Subpopulation
    level: Fraction
    delta: Fraction | None = None
    sides: Sides = UNDIVIDED
    show_missing: bool = True
    empty: frozenset[Domain] = field(default=frozenset(), repr=False)

    def neighbours(self, own: Neighbours) -> Neighbours:
        """The change in the rows that the line is fitted to; over domains that of all of them, where an exchanged row may leave
        one and enter another."""
        if not self.sides.columns:
            return self.model.neighbours(own)
        return fitted_to(within_domains(own), self.donees, self.model.rings, of_products=False)

    @property
    def donees(self) -> int:
        """How many rows of others one record changes through capped donors."""
        return self.model.donees

    @property
    def columns(self) -> tuple[str, ...]:
        """The response, the predictors, the columns of the condition and those of domains."""
        return (
            self.model.column,
            *self.model.predictors,
            *columns_compared(self.among.where),
            *self.sides.columns,
        )

    def is_shown(self, domain: Domain) -> bool:
        """Whether the line of a domain is published: it is fitted in any case."""
        silent = {MISSING, NOT_ASKED} & {name for _, name in domain}
        return domain not in self.empty and (self.show_missing or not silent)

    def claim(self, change: Change) -> Claim:
        """What the line will promise, before a row is read."""
        estimator = self.model.estimator
        return Claim(
            measure="pure" if self.delta is None else "approximate",
            epsilon=self.model.epsilon,
            delta=self.delta or Fraction(0),
            change=change,
            rests_on=((LINES[estimator], f"proofs/models/{estimator}.md"), *self.summed),
        )

    @property
    def summed(self) -> tuple[tuple[str, str], ...]:
        """What a line rests on beside its estimator."""
        filled = CAPPED_PAGES if self.donees else ()
        return (SUMMED, *((DOMAINS,) if self.sides.columns else ()), *filled)

    def words(self) -> str:
        """`wage on age and hours, least squares over all respondents who answered wage, age and hours (centred)`."""
        names = self.model.predictors
        by = f", by {' and '.join(self.sides.columns)}" if self.sides.columns else ""
        filled = "; missing answers were filled from donors and count as answers" if self.donees else ""
        over = self.among.words((self.model.column, *names))
        return f"{self.model.column} on {listed(names)}, least squares over {over} ({self.model.estimator}){by}{filled}"

    def term(self, feature: Feature, schema: Schema) -> tuple[str, str]:
        """What a slope is the slope of, and against what: `age` and nothing, or `region = north` and `south`."""
        column = schema.coded[feature.column]
        if isinstance(column, Levels) and (feature.level is not None or len(column.levels) == 2):
            return f"{feature.column} = {column.text(feature.level or 1)}", column.text(0)
        return feature.column, "the level below" if isinstance(column, Levels) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regressions(Product):
    """The lines of a plan that are published, in order."""

    section: ClassVar[str] = "regression"
    noun: ClassVar[str] = "a regression"
    plural: ClassVar[str] = "regressions"

    lines: tuple[AskedRegression, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(line.name for line in self.lines)

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        return tuple(line.claim(plan.change) for line in self.lines)


def read_regressions(raw: Sequence[Mapping[str, Any]], given: Given) -> Regressions:
    """All `[[regression]]` sections, in order."""
    repair = given.repairs.repair
    nearest_filled = frozenset() if repair.capped else repair.filled()
    filled = nearest_filled | {model.column for model in given.repairs.models if not model.stands_in}
    found = []
    for place, each in enumerate(raw):
        at = f"regression[{place}]"
        section = fill(RegressionSection, each, error=PlanError, at=at)
        found.append(_over_rings(_read(section, given, at), repair))
        _check_filled(found[-1], filled, at)
        check_missingness(found[-1].among.where, repair.filled() | filled, f"{at}.where")
    return Regressions(lines=tuple(found))


def _over_rings(asked: AskedRegression, repair: Repair) -> AskedRegression:
    """The line, told how many rows of others one record changes through capped donors."""
    moved = served(repair, asked.columns)
    return replace(asked, model=replace(asked.model, donees=moved, rings=repair.rings)) if moved else asked


def _read(section: RegressionSection, given: Given, at: str) -> AskedRegression:
    schema = given.schema
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    where = EVERYONE if section.where is None else predicate_of(section.where, schema, f"{at}.where")
    among = Subpopulation(where=where, missing=AVAILABLE)
    sides = _sides(section, schema, among, at)
    return AskedRegression(
        sides=sides,
        show_missing=section.show_missing,
        empty=without_anybody(sides, among, schema, f"{at}.by") if sides.columns else frozenset(),
        name=section.name,
        model=_model(section, given, at),
        among=among,
        level=_level(section.level, f"{at}.level"),
        delta=_delta(section, f"{at}.delta"),
    )


def _model(section: RegressionSection, given: Given, at: str) -> ModelRepair:
    """The line's columns with their public bounds, and its price."""
    if section.epsilon is None and section.rho is None:
        raise PlanError(REQUIRED, field=f"{at}.epsilon")
    epsilon, _ = read_spent(section.epsilon, section.rho, unit=given.unit, no_rho=NO_RHO, at=at)
    check_estimator(section.estimator, field=f"{at}.estimator")
    response = _response(section.y, given.schema, f"{at}.y")
    features = _features(section, given.schema, at)
    check_sums(response, features, given.schema, f"{at}.x")
    return ModelRepair(column=response.name, features=features, epsilon=epsilon, estimator=section.estimator)


def _sides(section: RegressionSection, schema: Schema, among: Subpopulation, at: str) -> Sides:
    """The domains; none where there is one line for all."""
    if section.by is None:
        return UNDIVIDED
    if section.estimator != CENTRED:
        raise PlanError(ONLY_CENTRED, field=f"{at}.by")
    written = WrittenQuery(
        raw={"bins": section.bins}, key="by", schema=schema, among=among, size=None, field=f"{at}.by"
    )
    sides = written.sides(section.by, like='by = ["region", "sex"]')
    if sides.size(schema) > MOST_LINES:
        raise PlanError(
            f"has {sides.size(schema)} domains, more than {MOST_LINES}; drop a column or use wider bins",
            field=f"{at}.by",
        )
    return sides


def _response(name: str, schema: Schema, field: str) -> Number:
    column = repairable(name, schema, verb="a response", field=field)
    if not isinstance(column, Number):
        raise PlanError(
            f"{name} has levels, and a line is for numbers; ask for proportions by domain instead: "
            f'query = {{ proportion = "{name} = ...", by = [...] }}',
            field=field,
        )
    return column


def _features(section: RegressionSection, schema: Schema, at: str) -> tuple[Feature, ...]:
    found: list[Feature] = []
    for place, name in enumerate(section.x):
        field = f"{at}.x[{place}]"
        column = repairable(name, schema, verb="a predictor", field=field)
        if name == section.y:
            raise PlanError(f"{name} is the response; it cannot explain itself, leave it out", field=field)
        if name in section.x[:place]:
            raise PlanError(f"names {name} again; name another column", field=field)
        found += separate_features(column, field)
    if len(found) > MOST_TERMS:
        raise PlanError(f"makes more than {MOST_TERMS} coefficients; leave some out", field=f"{at}.x")
    return tuple(found)


def _delta(section: RegressionSection, field: str) -> Fraction | None:
    if section.delta is None:
        return None
    if section.estimator not in WITH_DELTA:
        raise PlanError(
            f"{section.estimator!r} guarantees epsilon alone; leave it out, or write estimator = 'adassp'",
            field=field,
        )
    return amount(section.delta, field=field)


def _level(raw: Any, field: str) -> Fraction:
    level = read_decimal(raw)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=field)
    return level


def _check_filled(asked: AskedRegression, filled: frozenset[str], at: str) -> None:
    """Refuse columns that nearest donors filled, which nothing bounds, or a model, whose own line it would find again."""
    for name in sorted({*asked.columns} & filled):
        raise PlanError(
            f"{name} is filled, and no theorem bounds a regression on such answers; leave it out, let capped donors fill "
            "it, or fit the line in a plan without this imputation, where those who did not answer do not count",
            field=f"{at}.where" if name in columns_compared(asked.among.where) else f"{at}.x",
        )


def spent_words(asked: AskedRegression) -> dict[str, str]:
    """The price as a release and a preview tell it."""
    delta = {} if asked.delta is None else {"delta": show(asked.delta)}
    return {"epsilon": show(asked.model.epsilon), **delta}
