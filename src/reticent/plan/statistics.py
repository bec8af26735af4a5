"""The statistics of a plan: every `[[statistic]]` section read into what is estimated, its budget and its interval.

As a product they carry the weights to known totals that some of them use. What a statistic costs and rests on follows from
public numbers alone, and is asked again of what was actually run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from reticent.answer.factors import GROUND as FACTORS
from reticent.answer.factors import WEIGHTS
from reticent.answer.parts import AnyMeasurement, Measurement
from reticent.answer.route import Route, route_of
from reticent.answer.shares import LEAST_BETA
from reticent.answer.statistic import FLIP, LAPLACE, ExpectedValue, Setting, Statistic
from reticent.answer.weighted import sheets, weightable
from reticent.answer.weighting import BINS as CHOICE
from reticent.answer.weighting import TABLE, Weighting
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal
from reticent.files import fill, is_printable
from reticent.plan.budgets import Given, Product
from reticent.plan.sections import MOST_HEADS, SizeSection, StatisticSection
from reticent.plan.words import copied_stand_in
from reticent.privacy.claim import Change, Claim, Unit, read_spent
from reticent.query.base import AVAILABLE, COMMON, COMPLETE, EVERYONE, Query, Subpopulation
from reticent.query.domains import OPTIONS, ByDomain, options_of, read_domains
from reticent.query.kinds import KINDS
from reticent.query.written import WrittenQuery, predicate_of, text_of
from reticent.schema import Schema
from reticent.schema.predicate import columns_used
from reticent.sensitivity.bounds import Neighbours

if TYPE_CHECKING:
    from reticent.plan.plan import Plan


TABLES = "are tables of counts: query = { table = [...] }, not the margins of [[tables]]"
BY_KEY = {key: kind for kind in KINDS for key in kind.KEYS}
ALLOWED = {key: kind.KEYS[key] for key, kind in BY_KEY.items()}


def read_query(
    raw: Mapping[str, Any], schema: Schema, *, missing: str, size: int | None, field: str
) -> Query:
    """The query that `raw` writes down."""
    verbs = [key for key in raw if key in ALLOWED]
    if len(verbs) != 1:
        listed = ", ".join(ALLOWED)
        raise PlanError(f"holds exactly one of {listed}{_hint(raw)}", field=field)
    verb = verbs[0]
    allowed = ALLOWED[verb] | (OPTIONS if "by" in raw else set())
    for key in raw:
        if key != verb and key not in allowed:
            raise PlanError(f"{key!r} does not go with {verb}{_way_out(key, allowed)}", field=field)
    kind = BY_KEY[verb]
    if size is not None and not kind.takes_size:
        raise PlanError(f"a public size does not go with {verb}", field=field.replace("query", "size"))
    among = _among(raw, schema, missing, field)
    written = WrittenQuery(raw=raw, key=verb, schema=schema, among=among, size=size, field=f"{field}.{verb}")
    if "by" not in raw:
        return _per_checked(kind.read(written), among, schema, field)
    query = read_domains(kind.read(replace(written, raw=options_of(raw), size=None)), written)
    return _per_checked(query, among, schema, field)


def _per_checked(query: Query, among: Subpopulation, schema: Schema, field: str) -> Query:
    """A statistic of households is made of columns in which all records of a household agree."""
    sides = getattr(query, "sides", None)
    weight = [query.weight] if query.weight else []
    names = {*query.values, *weight, *(sides.columns if sides else ())}
    names |= {name for each in query.predicates for name in columns_used(each)}
    other = next((name for name in sorted(names) if among.per and schema.columns[name].of != among.per), None)
    if other is not None:
        raise PlanError(
            f"counts each {among.per} once, and {other} may differ within one; if it does not, declare of = "
            f"{among.per!r} for it in the codebook",
            field=f"{field}.per",
        )
    return query


def _way_out(key: str, allowed: Collection[str]) -> str:
    if key in OPTIONS:
        return '; it goes with by = ["region"]'
    return nearest(key, allowed)


def _hint(raw: Mapping[str, Any]) -> str:
    return next((h for key in raw if key not in COMMON and (h := nearest(key, ALLOWED))), "")


def _among(raw: Mapping[str, Any], schema: Schema, missing: str, field: str) -> Subpopulation:
    if missing not in (AVAILABLE, COMPLETE):
        raise PlanError("is 'available' or 'complete'", field=field.replace("query", "missing"))
    where = predicate_of(raw["where"], schema, f"{field}.where") if "where" in raw else EVERYONE
    weight = raw.get("weight")
    if weight is not None:
        schema.weight(text_of(weight, f"{field}.weight"), field=f"{field}.weight")
    return Subpopulation(where=where, weight=weight, missing=missing, per=_per(raw, schema, f"{field}.per"))


def _per(raw: Mapping[str, Any], schema: Schema, field: str) -> str:
    """What counts once: nothing but records, or the codebook's unit by its name."""
    per = raw.get("per", "")
    if "per" in raw and (schema.first is None or per != schema.unit_name):
        known = f"is {schema.unit_name!r}" if schema.first else "needs unit_name in the codebook's [survey]"
        raise PlanError(f"{known}: what is protected, and has several records", field=field)
    return str(per)


LADDER = "ladder"
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
    size = _size(section, at)
    query = read_query(raw, setting.schema, missing=section.missing, size=size, field=f"{at}.query")
    if section.noise not in ("", LADDER):
        raise PlanError("is 'ladder', or left out", field=f"{at}.noise")
    asked = Statistic(
        name=section.name,
        query=query,
        epsilon=Fraction(0),
        written=section.query,
        weighted=weighted,
        by_lengths=section.noise == LADDER,
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


def _size(section: StatisticSection, at: str) -> int | None:
    """The public number of respondents, or their weight where the statistic is weighted: the plan says which."""
    said, is_weighted = section.size, "weight" in section.query
    if said is None:
        return None
    if isinstance(said, int) == is_weighted:
        raise PlanError(
            "is a number of respondents, and a weighted statistic divides by weight: write size = { weight = ... }"
            if is_weighted
            else "is weight, and this statistic counts respondents: write size = 2000",
            field=f"{at}.size",
        )
    found = (
        said if isinstance(said, int) else fill(SizeSection, said, error=PlanError, at=f"{at}.size").weight
    )
    if not 1 <= found <= MOST_HEADS:
        raise PlanError(f"is a whole number from 1 to {MOST_HEADS}", field=f"{at}.size")
    return found


def _expected(section: StatisticSection, at: str) -> ExpectedValue | None:
    said = section.expect
    if said is None:
        return None
    value, weight = read_decimal(said.value), read_decimal(said.weight)
    if value is None:
        raise PlanError("is a plain decimal", field=f"{at}.expect.value")
    if said.weight is not None and "weight" not in section.query:
        raise PlanError(
            "is weight, and this statistic counts respondents: write size", field=f"{at}.expect.weight"
        )
    if said.weight is not None and (weight is None or weight <= 0):
        raise PlanError("is a decimal above 0", field=f"{at}.expect.weight")
    if said.weight is not None and said.size is not None:
        raise PlanError(
            "stands beside size; keep one: respondents, or their weight", field=f"{at}.expect.weight"
        )
    return ExpectedValue(value=value, size=said.size, weight=weight)


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
            have = TABLES if ask.query.uses_cells else "have one estimate"
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
        if ask.variance is not None:
            _check_variance(ask, asks[:place], f"statistic[{place}].variance")


def _check_variance(ask: Statistic, above: Sequence[Statistic], field: str) -> None:
    """A mean or total takes a variance of its column above it; by domain one by the same domains, told for all of them that
    it tells."""
    found = next((a.query for a in above if a.name == ask.variance and a.query.is_variance), None)
    if found is None:
        raise PlanError("names a variance that stands above this one", field=field)
    if not ({"mean", "total"} & set(ask.written)):
        raise PlanError("goes with a mean or a total; remove it", field=field)
    if found.values != ask.query.values:
        raise PlanError("names a variance of another column; release one of this column above", field=field)
    if (found.sides, found.has_one_estimate) != (ask.query.sides, ask.query.has_one_estimate):
        raise PlanError(
            "names a variance of other domains; a mean by domain takes one with the same by, and a mean of everybody one "
            "without",
            field=field,
        )
    if getattr(found, "show_missing", True) is not getattr(ask.query, "show_missing", True):
        raise PlanError("names a variance with another show_missing; write the same in both", field=field)
    if {"total"} & set(ask.written) and _subpopulation(found) != _subpopulation(ask.query):
        raise PlanError(
            "names a variance of other respondents; a total takes one with the same where and weight",
            field=field,
        )


def _subpopulation(query: Query) -> Subpopulation | None:
    of = query.of if isinstance(query, ByDomain) else query
    return getattr(of, "among", None)


LAPLACE_NAME = "discrete Laplace"
BINS = ("answer: weighing", "proofs/answer/weighing.md")
EACH = ("answer: attribute by attribute", "proofs/answer/attributes.md")
RAKED = ("answer: totals from a raked table", "proofs/answer/raked.md")


def claim_of(route: Route, change: Change) -> Claim | None:
    """The claim of one statistic, or None for post-processing."""
    return _claim(route, route.epsilon, change)


def claim_of_parts(route: Route, parts: Iterable[AnyMeasurement], change: Change) -> Claim | None:
    """The claim of what was run: the parts' budgets, added, and what the route rests on."""
    return _claim(route, sum((part.amount for part in parts), Fraction(0)), change)


def _claim(route: Route, amount: Fraction, change: Change) -> Claim | None:
    if not amount:
        return None
    if route.statistic.in_rho:
        return Claim(measure="zcdp", rho=amount, change=change, rests_on=route.rests_on)
    return Claim(measure="pure", epsilon=amount, change=change, rests_on=route.rests_on)


def claim_of_bins(parts: Iterable[Measurement], change: Change) -> Claim | None:
    """The claim of finding the totals and bins that weights are made of; None where they are known and fixed."""
    run = tuple(parts)
    if not run:
        return None
    rests_on = [BINS, *([RAKED] if any(part.what == TABLE for part in run) else [])]
    rests_on += [LAPLACE if part.mechanism == LAPLACE_NAME else FLIP for part in run]
    rests_on += [FACTORS] if any(part.what == WEIGHTS for part in run) else []
    rests_on += [EACH] if any(part.what.startswith(f"{CHOICE} by") for part in run) else []
    total = sum((part.epsilon for part in run), Fraction(0))
    return Claim(measure="pure", epsilon=total, change=change, rests_on=tuple(dict.fromkeys(rests_on)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Product):
    """The statistics of a plan, in order, and the post-stratification that serves them, where there is one."""

    section: ClassVar[str] = "statistic"
    noun: ClassVar[str] = "a statistic"
    plural: ClassVar[str] = "statistics"
    proved_for_moves: ClassVar[bool] = True

    asks: tuple[Statistic, ...]
    weight: Weighting | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(ask.name for ask in self.asks)

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        """One for finding the bins of the weights, one for each statistic that costs anything, and for sampling errors."""
        bins = claim_of_bins(self.weight.parts(plan.neighbours), plan.change) if self.weight else None
        found = (claim_of(route, plan.change) for route in plan.routes)
        asked = tuple(claim for claim in (bins, *found) if claim is not None)
        return asked + plan.design_claims

    def costs(self, plan: "Plan") -> tuple[AnyMeasurement | Claim, ...]:
        bins = self.weight.parts(plan.neighbours) if self.weight else ()
        return (
            *(part for route in plan.routes for part in route.parts),
            *bins,
            *plan.design_claims,
        )


def serving(
    weighting: Weighting, asks: Sequence[Statistic], schema: Schema, neighbours: Neighbours
) -> Weighting:
    """The same, with as many of the largest weights kept as the asks have a use for; refused where none uses it."""
    if weighting.factors is not None:
        if all(ask.query.weight != weighting.name for ask in asks):
            raise PlanError(
                f"no statistic says weight = {weighting.name!r}, and factors are bought with the statistics; let one use it, "
                "such as a count, or drop the section",
                field="weight",
            )
        return weighting
    shares = [
        (place, ask.epsilon * sheet.share / neighbours.steps)
        for place, ask in enumerate(asks)
        if ask.weighted and (shape := weightable(ask.query, schema)) is not None
        for sheet in sheets(shape)
    ]
    if not shares:
        raise PlanError(f"no statistic says weight = {weighting.name!r}; drop the section", field="weight")
    for place, each in shares:
        if each / weighting.smoothness < LEAST_BETA:
            raise PlanError(
                f"leaves {float(each):.2g} to one of its sums, for one record; weights to known totals need at least "
                f"{float(LEAST_BETA * weighting.smoothness):.2g}",
                field=f"statistic[{place}].epsilon",
            )
    return weighting.serving([each / weighting.smoothness for _, each in shares])


def read_statistics(raw: Sequence[StatisticSection], given: Given) -> Statistics:
    """All `[[statistic]]` sections, in order; weights to known totals are fitted to what uses them."""
    setting = Setting(
        schema=given.weight.told(given.schema) if given.weight else given.schema,
        neighbours=given.neighbours,
        repair=given.repairs.repair,
        weighting=given.weight,
        copied=copied_stand_in(given.repairs.models),
        unit=given.unit,
    )
    asks = read_asks(raw, setting)
    weight = serving(given.weight, asks, given.schema, given.neighbours) if given.weight else None
    return Statistics(asks=asks, weight=weight)
