"""Read the `[[statistic]]` sections of a plan: what is estimated, its budget, and the interval it wants."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reticent.answer.copies import Copiable
from reticent.answer.poststrata import Law
from reticent.answer.weighted import Asked
from reticent.answer.weighting import Weighting
from reticent.errors import PlanError, is_printable, nearest
from reticent.exact import read_decimal
from reticent.plan.sections import StatisticSection
from reticent.prepare.repair import NO_REPAIR, Bounding, Repair
from reticent.privacy.claim import amount
from reticent.query.filled import check as check_imputed
from reticent.query.filled import roles
from reticent.query.kinds import CrossTabulation, Derived, Quantile, Query, Variance
from reticent.query.read import read_query
from reticent.schema import Schema

LEAST = Fraction(1, 10**6)
DEEPEST = 2  # exact quotients of quotients double in length each time, and leave the doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic: its query, its budget, and the interval it wants; `weighted` to the plan's known totals, or not.

    **Fields**

    - `name`: its name in the release.
    - `query`: what is asked.
    - `epsilon`: its share of the privacy budget.
    - `level`: the level of its interval.
    - `bar`: what is paid for the interval, beside epsilon.
    - `variance`: the name of the variance that a mean's margin of error uses.
    - `expected`: the value, and the size, that a preview assumes.
    - `written`: the section as it was written.
    - `weighted`: whether it is weighted to known totals.
    """

    name: str
    query: Query
    epsilon: Fraction
    level: Fraction = Fraction(95, 100)
    bar: Fraction = Fraction(0)
    variance: str | None = None
    expected: tuple[Fraction, int | None] | None = None
    written: Mapping[str, Any]
    weighted: bool = False


def read_asks(
    sections: Sequence[StatisticSection],
    schema: Schema,
    repair: Repair = NO_REPAIR,
    weighting: Weighting | None = None,
    copied: Repair = NO_REPAIR,
) -> tuple[Statistic, ...]:
    """Every statistic of a plan, in order, of rows repaired by `repair`, those that say so weighted by `weighting`.

    `copied` stands for the columns that are filled several times.
    """
    asks = tuple(
        _ask(section, schema, repair, weighting, copied, f"statistic[{i}]")
        for i, section in enumerate(sections)
    )
    _check_names(asks)
    return asks


def _ask(
    section: StatisticSection,
    schema: Schema,
    repair: Repair,
    weighting: Weighting | None,
    copied: Repair,
    at: str,
) -> Statistic:
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    weighted = weighting is not None and section.query.get("weight") == weighting.name
    raw = {key: value for key, value in section.query.items() if not (weighted and key == "weight")}
    query = read_query(raw, schema, missing=section.missing, size=section.size, field=f"{at}.query")
    if weighted and not isinstance(query, Asked):
        raise PlanError(
            "counts, totals, means and proportions are weighted to known totals; nothing bounds the others yet",
            field=f"{at}.query.weight",
        )
    check_imputed(query, schema, repair, field=f"{at}.query")
    level = read_decimal(section.interval.level)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=f"{at}.interval.level")
    if isinstance(query, Derived):
        if section.epsilon is not None:
            raise PlanError("costs nothing (it uses released numbers); remove it", field=f"{at}.epsilon")
        epsilon = Fraction(0)
    else:
        epsilon = read_epsilon(section.epsilon, field=f"{at}.epsilon")
    return Statistic(
        name=section.name,
        query=query,
        epsilon=epsilon,
        level=level,
        bar=_weighted_bar(section, weighting, f"{at}.interval.epsilon")
        if weighted and weighting is not None
        else _bar(section, query, schema, repair, copied, f"{at}.interval.epsilon"),
        variance=section.variance,
        expected=_expected(section, at),
        written=section.query,
        weighted=weighted,
    )


def _weighted_bar(section: StatisticSection, weighting: Weighting, field: str) -> Fraction:
    """The scale of its noise is confidential, so an interval is bought; there is one for Lomax noise."""
    if section.interval.epsilon is None:
        return Fraction(0)
    if weighting.law is not Law.LOMAX:
        raise PlanError("intervals are proved for Lomax noise; take it, or no interval", field=field)
    return read_epsilon(section.interval.epsilon, field=field)


def _bar(
    section: StatisticSection, query: Query, schema: Schema, repair: Repair, copied: Repair, field: str
) -> Fraction:
    """What the interval costs: nothing, unless an interval has to be bought."""
    if section.interval.epsilon is None:
        return Fraction(0)
    bar = read_epsilon(section.interval.epsilon, field=field)
    used = roles(query, schema, repair)
    if any(repair.of(role.column).bounding is Bounding.PUBLISHED for role in used):
        raise PlanError("the published noise has no interval; remove it, or bound by hubs", field=field)
    if isinstance(query, Quantile) or used:
        return bar
    if roles(query, schema, copied) and isinstance(query, Copiable):
        if query.among.weight:
            raise PlanError("intervals over copies are for statistics without a base weight", field=field)
        return bar
    reason = (
        "follows from the statistics it uses" if isinstance(query, Derived) else "has noise of a public size"
    )
    raise PlanError(f"is not needed: this estimate {reason}, so its interval is free; remove it", field=field)


def _expected(section: StatisticSection, at: str) -> tuple[Fraction, int | None] | None:
    if section.expect is None:
        return None
    value = read_decimal(section.expect.value)
    if value is None:
        raise PlanError("is a plain decimal", field=f"{at}.expect.value")
    return value, section.expect.size


def read_epsilon(text: str | None, *, field: str) -> Fraction:
    """An amount of epsilon, large enough to say anything."""
    epsilon = amount(text, field=field)
    if epsilon < LEAST:
        raise PlanError("is smaller than 0.000001; the estimate would be noise alone", field=field)
    return epsilon


def _check_names(asks: tuple[Statistic, ...]) -> None:
    names, depth = [ask.name for ask in asks], dict[str, int]()
    for place, ask in enumerate(asks):
        if names.index(ask.name) != place:
            raise PlanError(f"two statistics are called {ask.name!r}", field=f"statistic[{place}].name")
        known = {a.name: a.query for a in asks[:place] if not isinstance(a.query, CrossTabulation)}
        if isinstance(ask.query, Derived):
            for name in ask.query.of:
                if name not in known:
                    hint = (
                        nearest(name, known)
                        or "; name statistics that stand above this one and have one estimate"
                    )
                    raise PlanError(
                        f"there is no statistic {name!r} to use{hint}", field=f"statistic[{place}].query"
                    )
            depth[ask.name] = 1 + max(depth.get(name, 0) for name in ask.query.of)
            if depth[ask.name] > DEEPEST:
                raise PlanError(f"is derived more than {DEEPEST} deep", field=f"statistic[{place}].query")
        variances = {n for n, q in known.items() if isinstance(q, Variance)}
        if ask.variance is not None and ask.variance not in variances:
            raise PlanError(
                "names a variance that stands above this one", field=f"statistic[{place}].variance"
            )
