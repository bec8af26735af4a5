"""An ask knows its own way: the one place that looks at the kind of a query, and that chooses how it is answered.

There are five ways: noise of public scale, the same with what capped donors' recipients add to it, nearest donors' answers with
noise scaled by a smooth bound, weights to known totals, and the mean over copies. Which one a statistic takes follows from public words. The route then says all that others need:
what the engine must sum, which measurements are made at what price, what the claim rests on, what to expect. It answers, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Protocol

from reticent.answer.capped import CappedRoute, UnservedRoute
from reticent.answer.cells import FromCellsRoute
from reticent.answer.context import Context, rests_on_caps
from reticent.answer.copies import Copiable, CopiesRoute
from reticent.answer.correlation import CorrelationRoute
from reticent.answer.count import CountRoute, TableRoute, TotalRoute
from reticent.answer.derived import DerivedRoute
from reticent.answer.domains import asked_in_one, domain_route
from reticent.answer.donors import DonorsRoute
from reticent.answer.expect import Expected
from reticent.answer.length_count import LengthCountRoute
from reticent.answer.parts import Answer, AnyMeasurement
from reticent.answer.quantile import QuantileRoute
from reticent.answer.ratio import MeanRoute, ProportionRoute, VarianceRoute
from reticent.answer.route_weighted import WeightedRoute
from reticent.answer.statistic import Ground, PublicRoute, Setting, Statistic
from reticent.answer.value_ladder import LengthRoute
from reticent.answer.weighted import NOT_WEIGHTED, weightable
from reticent.engine.wants import Aggregate, is_scored
from reticent.errors import PlanError
from reticent.query.base import Query, RowQuery
from reticent.query.cells import FromCells
from reticent.query.domains import ByDomain
from reticent.query.filled import roles
from reticent.query.kinds import (
    Correlation,
    Count,
    CrossTabulation,
    Derived,
    Mean,
    Proportion,
    Quantile,
    Total,
    UnservedRecipients,
    Variance,
)


class Route(Protocol):
    """One way to answer one statistic, chosen once from public words."""

    @property
    def query(self) -> Query: ...
    @property
    def statistic(self) -> Statistic: ...
    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """What the engine must sum."""

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        """Every noisy measurement with its share of epsilon, in the order in which they are made."""

    @property
    def epsilon(self) -> Fraction:
        """What all parts cost together, of epsilon or of rho."""

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        """The theorems behind the claim."""

    @property
    def no_rho(self) -> str:
        """Why it cannot have a budget in rho; nothing where it can."""

    @property
    def no_bar(self) -> str:
        """Why no interval can be bought; nothing where one can."""

    def check_query(self, field: str) -> None:
        """Refuse a query that no theorem covers."""

    def check_budget(self, field: str) -> None:
        """Refuse an epsilon with which some part cannot be carried out."""

    def unit(self, units: Mapping[str, str]) -> str:
        """The unit of the answer; `units` has those of the statistics above it."""

    def expect(self) -> Expected:
        """How noisy the answer will be."""

    def epsilon_for(self, cv: float) -> Fraction | None:
        """The least epsilon at which the noise alone has this coefficient of variation."""

    def answer(self, context: Context) -> Answer:
        """The noisy answer, by exactly `parts`."""


def route_of(statistic: Statistic, setting: Setting, *, field: str = "query") -> Route:
    """The way a statistic takes. Refused where it is to be weighted to known totals and nothing bounds that."""
    query, schema = statistic.query, setting.schema
    setting = _per_unit(statistic, setting, field)
    _check_positions(statistic, setting, field)
    here: Any = {"statistic": statistic, "setting": setting}
    if statistic.by_lengths:
        return _by_lengths(query, **here, field=field)
    if statistic.weighted and setting.weighting is not None:
        shape = weightable(query, schema)
        if shape is None:
            raise PlanError(NOT_WEIGHTED, field=f"{field}.weight")
        return WeightedRoute(query=query, shape=shape, weighting=setting.weighting, **here)
    match query:
        case Correlation():
            return CorrelationRoute(query=query, **here)
        case Quantile():
            is_plain = setting.repair.capped or not roles(query, schema, setting.repair)
            return (QuantileRoute if is_plain else LengthRoute)(query=query, **here)
        case Derived():
            return DerivedRoute(query=query, **here)
        case FromCells():
            return FromCellsRoute(query=query, **here)
        case CrossTabulation():
            return TableRoute(query=query, **here)
        case Count():
            return _of_sums(CountRoute(query=query, **here))
        case Total():
            return _of_sums(TotalRoute(query=query, **here))
        case Mean():
            return _of_sums(MeanRoute(query=query, **here))
        case Proportion():
            return _of_sums(ProportionRoute(query=query, **here))
        case Variance():
            return _of_sums(VarianceRoute(query=query, **here))
        case UnservedRecipients():
            return UnservedRoute(query=query, **here)
        case ByDomain():
            inside: Any = route_of(*asked_in_one(statistic, query, setting), field=field)
            return domain_route(query, inside, **here, field=field)
        case _:
            raise TypeError("there is no route for this kind of query")


def _per_unit(statistic: Statistic, setting: Setting, field: str) -> Setting:
    """Where households count and not records, one that comes or goes brings one record that counts, and no more."""
    query = statistic.query.of if isinstance(statistic.query, ByDomain) else statistic.query
    if not isinstance(query, RowQuery) or not query.among.per or setting.neighbours.apart:
        return setting  # inside a domain it was done before
    filled = [
        each for repair in (setting.repair, setting.copied) for each in roles(query, setting.schema, repair)
    ]
    by = statistic.query.sides.columns if isinstance(statistic.query, ByDomain) else ()
    crossed = (setting.repair.filled() | setting.copied.filled()) & set(by)
    if statistic.weighted or filled or crossed:
        raise PlanError(
            "goes with columns that nobody filled, and with base weights; take other columns, or leave imputation or known "
            "totals out",
            field=f"{field}.per",
        )
    return replace(setting, neighbours=replace(setting.neighbours, records=1))


def _check_positions(statistic: Statistic, setting: Setting, field: str) -> None:
    """Refuse sums of positions where they are not made of the weights of levels: other ways sum codes."""
    query = statistic.query
    scored = [want for want in query.wants(setting.schema) if is_scored(want, setting.schema)]
    if not scored:
        return
    if statistic.weighted or roles(query, setting.schema, setting.copied):
        raise PlanError(
            "is an ordinal column; its mean, total and variance are not computed where a model fills it or with weights to "
            "known totals, unless these release their factors: ask for proportions",
            field=field,
        )


NO_LENGTHS = "is for a count of a column that the nearest donors fill, not by domains and not weighted to known totals; remove it: "


def _by_lengths(query: Query, *, field: str, **here: Any) -> Route:
    """A value ladder, where the plan asks for one and the query is a count that nearest donors enter."""
    setting, field = here["setting"], field.replace("query", "noise")
    if (
        not isinstance(query, Count)
        or here["statistic"].weighted
        or roles(query, setting.schema, setting.copied)
    ):
        raise PlanError(NO_LENGTHS + "this statistic is another", field=field)
    if setting.repair.capped:
        raise PlanError(NO_LENGTHS + "capped donors have noise of a public scale", field=field)
    if not roles(query, setting.schema, setting.repair):
        raise PlanError(NO_LENGTHS + "no donor enters this one, so its noise has a public scale", field=field)
    return LengthCountRoute(query=query, plain=CountRoute(query=query, **here), **here)


def _of_sums(plain: PublicRoute[RowQuery]) -> Route:
    """Donors' answers or copies where a query of sums rests on columns that are filled; else as it is."""
    query, setting = plain.query, plain.setting
    if rests_on_caps(query, setting.schema, setting.repair):
        return CappedRoute(query=query, statistic=plain.statistic, setting=setting, plain=plain)
    if roles(query, setting.schema, setting.repair):
        return DonorsRoute(query=query, statistic=plain.statistic, setting=setting, plain=plain)
    if isinstance(query, Copiable) and roles(query, setting.schema, setting.copied):
        return CopiesRoute(query=query, statistic=plain.statistic, setting=setting, plain=plain)
    return plain
