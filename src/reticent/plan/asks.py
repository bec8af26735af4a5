"""Read the `[[statistic]]` sections of a plan: what is estimated, its budget, and the interval it wants."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from reticent.answer.route import Route, route_of
from reticent.answer.statistic import Setting, Statistic
from reticent.errors import PlanError, is_printable, nearest
from reticent.exact import read_decimal
from reticent.plan.budgets import read_spent
from reticent.plan.sections import StatisticSection
from reticent.privacy.units import Unit
from reticent.query.read import read_query
from reticent.schema import Schema

DEEPEST = 2  # exact quotients of quotients double in length each time, and leave the doubles


def read_asks(sections: Sequence[StatisticSection], setting: Setting) -> tuple[Statistic, ...]:
    """Every statistic of a plan, in order, as it is asked in this setting."""
    asks = tuple(_ask(section, setting, f"statistic[{i}]") for i, section in enumerate(sections))
    _check_names(asks, setting.schema)
    return asks


def _ask(section: StatisticSection, setting: Setting, at: str) -> Statistic:
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    weighting = setting.weighting
    named = weighting is not None and section.query.get("weight") == weighting.name
    weighted = named and weighting is not None and weighting.factors is None
    raw = {key: value for key, value in section.query.items() if not (weighted and key == "weight")}
    query = read_query(raw, setting.schema, missing=section.missing, size=section.size, field=f"{at}.query")
    asked = Statistic(
        name=section.name, query=query, epsilon=Fraction(0), written=section.query, weighted=weighted
    )
    route = route_of(asked, setting, field=f"{at}.query")
    route.check_query(f"{at}.query")
    level = read_decimal(section.interval.level)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=f"{at}.interval.level")
    epsilon, in_rho = _budget(section, route, setting.unit, at)
    return replace(
        asked,
        epsilon=epsilon,
        in_rho=in_rho,
        level=level,
        bar=_bar(section, route, setting.unit, f"{at}.interval", in_rho=in_rho),
        variance=section.variance,
        expected=_expected(section, at),
    )


def _budget(section: StatisticSection, route: Route, unit: Unit, at: str) -> tuple[Fraction, bool]:
    """What the statistic costs, and whether that is rho: nothing, where it uses released numbers alone."""
    if not route.query.uses:
        return read_spent(section.epsilon, section.rho, unit=unit, no_rho=route.no_rho, at=at)
    for key in ("epsilon", "rho"):
        if getattr(section, key) is not None:
            raise PlanError("costs nothing (it uses released numbers); remove it", field=f"{at}.{key}")
    return Fraction(0), False


def _bar(section: StatisticSection, route: Route, unit: Unit, at: str, *, in_rho: bool) -> Fraction:
    """What the interval costs, in the unit of its statistic: nothing, unless an interval has to be bought."""
    bought = section.interval
    if bought.epsilon is None and bought.rho is None:
        return Fraction(0)
    bar, is_rho = read_spent(bought.epsilon, bought.rho, unit=unit, no_rho=route.no_rho, at=at)
    field = f"{at}.{'rho' if is_rho else 'epsilon'}"
    if route.no_bar:
        raise PlanError(route.no_bar, field=field)
    if is_rho != in_rho:
        raise PlanError("is in another unit than its statistic; write both in one", field=field)
    return bar


def _expected(section: StatisticSection, at: str) -> tuple[Fraction, int | None] | None:
    if section.expect is None:
        return None
    value = read_decimal(section.expect.value)
    if value is None:
        raise PlanError("is a plain decimal", field=f"{at}.expect.value")
    return value, section.expect.size


def _check_names(asks: tuple[Statistic, ...], schema: Schema) -> None:
    names, depth = [ask.name for ask in asks], dict[str, int]()
    for place, ask in enumerate(asks):
        if names.index(ask.name) != place:
            raise PlanError(f"two statistics are called {ask.name!r}", field=f"statistic[{place}].name")
        known = {a.name: a.query for a in asks[:place] if a.query.has_one_estimate}
        if ask.query.uses:
            usable = (
                {a.name: a.query for a in asks[:place] if a.query.has_cells}
                if ask.query.uses_cells
                else known
            )
            have = "are tables of counts" if ask.query.uses_cells else "have one estimate"
            for name in ask.query.uses:
                if name not in usable:
                    hint = nearest(name, usable) or f"; name statistics that stand above this one and {have}"
                    raise PlanError(
                        f"there is no statistic {name!r} to use{hint}", field=f"statistic[{place}].query"
                    )
            ask.query.check_uses(usable, schema, f"statistic[{place}].query")
            depth[ask.name] = 1 + max(depth.get(name, 0) for name in ask.query.uses)
            if depth[ask.name] > DEEPEST:
                raise PlanError(f"is derived more than {DEEPEST} deep", field=f"statistic[{place}].query")
        variances = {n for n, q in known.items() if q.is_variance}
        if ask.variance is not None and ask.variance not in variances:
            raise PlanError(
                "names a variance that stands above this one", field=f"statistic[{place}].variance"
            )
