"""Read the `[design]` section of a plan: where the sampling error of its statistics comes from, and at what price.

Three ways, which may stand beside each other. One design factor for all statistics, bought from several shares; a standard
error of its own, bought by a statistic; a design effect from the survey's documentation, for all or for one. What cannot be
carried out is refused here, from the plan and the codebook alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt

from reticent.answer.design import GROUNDS, OwnError, PooledDesign
from reticent.answer.design_domains import DomainErrors, groups_by_domain
from reticent.answer.statistic import DOMAINS, LAPLACE, Statistic
from reticent.answer.unit_sums import PairedUnits, ReplicateWeights, SamplingBasis, weight_in
from reticent.engine.wants import MOST_CELLS, Aggregate, Key
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.plan.sections import DesignSection, SamplingSection
from reticent.prepare.repair import Repair
from reticent.prepare.units import SamplingUnits, units_of
from reticent.privacy.claim import Change, Claim, read_epsilon
from reticent.query.base import EVERYONE, CodedMean, CodedSum, RowQuery
from reticent.query.domains import ByDomain
from reticent.query.filled import roles
from reticent.refine.total import DesignFactor
from reticent.schema import Levels, Schema

NO_UNITS = (
    "needs primary sampling units in the codebook: a column with role = 'psu' whose levels are all units that were drawn, "
    "with their strata; or replicate weights, [survey.replicates]; or, where nobody was drawn together, a column with "
    "role = 'psu' and dealt = 200; without them write design_effect, from the survey's documentation"
)

OF_DOMAINS = ("answer: sampling error of domains", "proofs/answer/design_domains.md")
OTHERWISE = (
    "medians and other quantiles have a total interval from [design], if their interval has an epsilon"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyDesign:
    """Where sampling errors come from: a factor that is declared, one that is bought, and what single statistics say.

    **Fields**

    - `declared`: the design effect of the plan.
    - `pooled`: the purchase of one design factor.
    - `own`: purchases of single statistics, by name; of one with domains, for each of them.
    - `effects`: design effects of single statistics, by name.
    """

    declared: Fraction | None = None
    pooled: PooledDesign | None = None
    own: Mapping[str, OwnError | DomainErrors] = field(default_factory=dict)
    effects: Mapping[str, Fraction] = field(default_factory=dict)

    @property
    def _bought(self) -> list[Fraction]:
        pooled = [self.pooled.epsilon] if self.pooled else []
        return [*pooled, *(each.epsilon for each in self.own.values())]

    @property
    def epsilon(self) -> Fraction:
        """What all purchases cost."""
        return sum(self._bought, Fraction(0))

    @property
    def words(self) -> tuple[str, ...]:
        """A sentence for each source of sampling errors; that there is none."""
        said = []
        if self.pooled is not None:
            said.append(
                f"one design factor from {', '.join(self.pooled.items)} over {self.pooled.basis.words}, for "
                f"{show(self.pooled.epsilon)}"
            )
        said += [f"{name} buys its own, for {show(each.epsilon)}" for name, each in self.own.items()]
        said += [f"a declared design effect of {show(self.declared)}"] if self.declared is not None else []
        said += [
            f"{name} has a declared design effect of {show(each)}" for name, each in self.effects.items()
        ]
        if self.pooled is not None:
            said += [f"note: {each}" for each in self.pooled.basis.cautions]
        return tuple(said) or ("not known, so intervals cover privacy noise alone; add [design]",)

    def wants(self, schema: Schema) -> list[Aggregate]:
        """What the engine must sum for all purchases."""
        pooled = self.pooled.wants(schema) if self.pooled else ()
        return [*pooled, *(want for each in self.own.values() for want in each.wants(schema))]

    def claims(self, change: Change) -> tuple[Claim, ...]:
        """One for each purchase, from public numbers alone."""
        return claims_of(self._bought, change, by_domain=self.by_domain)

    @property
    def by_domain(self) -> tuple[bool, ...]:
        """For each purchase whether it is one for every domain."""
        pooled = (False,) if self.pooled else ()
        return (*pooled, *(isinstance(each, DomainErrors) for each in self.own.values()))

    def factor(self, name: str) -> DesignFactor | None:
        """The factor that is declared for a statistic; None where it is not declared."""
        effect = self.effects.get(name, self.declared)
        return None if effect is None else DesignFactor(deft=sqrt(effect))


NO_DESIGN = SurveyDesign()


def claims_of(prices: Sequence[Fraction], change: Change, *, by_domain: Sequence[bool]) -> tuple[Claim, ...]:
    """What purchases at these prices promise; those for every domain rest on one statement more."""
    return tuple(
        Claim(
            measure="pure",
            epsilon=each,
            change=change,
            rests_on=(*GROUNDS, *((OF_DOMAINS, DOMAINS) if divided else ()), LAPLACE),
        )
        for each, divided in zip(prices, by_domain, strict=True)
    )


def read_effect(raw: object, *, field: str) -> Fraction | None:
    """A design effect; None where none is given."""
    if raw is None:
        return None
    effect = read_decimal(raw)
    if effect is None or not Fraction(1, 100) <= effect <= 1000:
        raise PlanError("is a decimal from 0.01 to 1000", field=field)
    return effect


def read_design(
    section: DesignSection | None,
    sampling: Sequence[SamplingSection | None],
    asks: Sequence[Statistic],
    *,
    schema: Schema,
    repairs: Sequence[Repair],
    expected: Fraction | None = None,
    pieces: bool = False,
) -> SurveyDesign:
    """The design of a plan; `sampling` has what each statistic says for itself, `expected` the design effect under
    `[expect]`, and `pieces` whether a piece of the survey is read."""
    section = section or DesignSection()
    declared = read_effect(section.design_effect, field="design.design_effect")
    if declared is not None and expected is not None:
        raise PlanError("stands under [expect] too; keep it here", field="design.design_effect")
    reader = _Reader(schema=schema, repairs=tuple(repairs), pieces=pieces, chosen=section.basis)
    pooled = reader.pooled(section, asks)
    if pooled is not None and (declared or expected) is not None:
        at = "design" if declared is not None else "expect"
        raise PlanError("does not go with items; keep one of the two", field=f"{at}.design_effect")
    own, effects = {}, {}
    for place, (each, ask) in enumerate(zip(sampling, asks, strict=True)):
        if each is None:
            continue
        at = f"statistic[{place}].sampling"
        effect = read_effect(each.design_effect, field=f"{at}.design_effect")
        if (effect is None) == (each.epsilon is None):
            raise PlanError("gives an epsilon or a design_effect, one of the two", field=at)
        if effect is not None:
            effects[ask.name] = effect
        else:
            own[ask.name] = reader.own(ask, each, section.groups, at)
    return SurveyDesign(declared=declared or expected, pooled=pooled, own=own, effects=effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Makes purchases of sections, or refuses them."""

    schema: Schema
    repairs: tuple[Repair, ...]
    pieces: bool
    chosen: str

    def pooled(self, section: DesignSection, asks: Sequence[Statistic]) -> PooledDesign | None:
        if not section.items:
            if section.epsilon is not None:
                raise PlanError(
                    "buys a design factor from items; name some, such as the plan's main shares",
                    field="design.items",
                )
            return None
        if section.epsilon is None:
            raise PlanError("is the price of the design factor, such as '0.2'", field="design.epsilon")
        basis = self.basis(section.groups, "design.groups")
        items = self._items(section, {ask.name: ask for ask in asks})
        for name, item in items.items():
            _check_weight(basis, item, f"design.items: {name}")
        return PooledDesign(
            items=items,
            basis=basis,
            epsilon=read_epsilon(section.epsilon, field="design.epsilon"),
            weight=_weight(items),
            respondents=self.schema.sample_size,
        )

    def own(
        self, ask: Statistic, section: SamplingSection, groups: int | None, at: str
    ) -> OwnError | DomainErrors:
        by_domain = ask.query if isinstance(ask.query, ByDomain) else None
        shape = (by_domain.of if by_domain else ask.query).shape(self.schema)
        if not isinstance(shape, CodedSum | CodedMean):
            raise PlanError(
                "is bought for counts, totals, means and proportions; " + OTHERWISE, field=f"{at}.epsilon"
            )
        if shape.number is not None and isinstance(self.schema.columns[shape.number.name], Levels):
            raise PlanError(
                "is not bought for an ordinal column; name a released variance of it, or take proportions",
                field=f"{at}.epsilon",
            )
        self._check(ask, f"{at}.epsilon")
        basis = self.basis(groups, f"{at}.epsilon")
        _check_weight(basis, shape, f"{at}.epsilon")
        epsilon = read_epsilon(section.epsilon, field=f"{at}.epsilon")
        if isinstance(basis, PairedUnits) and not groups and _is_of_some(ask):
            basis = replace(basis, groups=groups_by_domain(basis.groups))
        own = OwnError(shape=shape, basis=basis, epsilon=epsilon)
        if by_domain is None:
            return own
        self._check_cells(by_domain, basis, f"{at}.epsilon")
        return DomainErrors(own=own, sides=by_domain.sides)

    def _check_cells(self, query: ByDomain, basis: SamplingBasis, at: str) -> None:
        """Domains times units are summed at once."""
        cells = query.sides.size(self.schema)
        if isinstance(basis, ReplicateWeights):
            cells *= len(basis.replicates.columns)
        for name in basis.units.columns if isinstance(basis, PairedUnits) else ():
            cells *= Key(column=name, silent=True).size(self.schema)
        if cells > MOST_CELLS:
            raise PlanError(
                f"makes {cells:,} cells of domains and primary sampling units, more than {MOST_CELLS:,}; take fewer domains",
                field=at,
            )

    def basis(self, groups: int | None, field: str) -> SamplingBasis:
        """The codebook's units, their pairs dealt into groups; or its replicate weights."""
        if self.pieces:
            raise PlanError(
                "a piece of a survey has no sampling error here; release from the whole", field="design"
            )
        if self.chosen not in ("", "units", "replicates"):
            raise PlanError("is 'units' or 'replicates', where given", field="design.basis")
        units = units_of(self.schema) if self.chosen != "replicates" else None
        if units is None and self.schema.replicates is not None and self.chosen != "units":
            if groups:
                raise PlanError("goes with primary sampling units, not with replicate weights", field=field)
            return ReplicateWeights(replicates=self.schema.replicates)
        if units is None:
            raise PlanError(NO_UNITS, field="design")
        self._check_units(units)
        held = groups or units.groups
        if held > len(units.pairs):
            raise PlanError(
                f"is {held}, but there are {len(units.pairs)} pairs of units; take at most as many",
                field=field,
            )
        return PairedUnits(units=units, groups=held)

    def _check_units(self, units: SamplingUnits) -> None:
        """A record's unit is its own: where donors give it, one answer would put many records into other units."""
        filled = frozenset(name for repair in self.repairs for name in repair.filled())
        for name in units.columns:
            if name in filled:
                raise PlanError(
                    f"rests on {name}, which says where a record was drawn and is filled; leave it out of [[impute]]",
                    field="design",
                )

    def _items(self, section: DesignSection, asks: Mapping[str, Statistic]) -> dict[str, CodedMean]:
        found: dict[str, CodedMean] = {}
        for place, name in enumerate(section.items):
            at = f"design.items[{place}] {name!r}"
            if name not in asks:
                raise PlanError(f"there is no statistic {name!r}{nearest(name, asks)}", field=at)
            shape = asks[name].query.shape(self.schema)
            if not isinstance(shape, CodedMean) or shape.number is not None or name in found:
                raise PlanError("names proportions of the plan, each once", field=at)
            self._check(asks[name], at)
            found[name] = shape
        return found

    def _check(self, ask: Statistic, at: str) -> None:
        """Residuals are a record's own: not of filled columns, nor of weights that others' answers make."""
        if ask.weighted or (ask.query.weight is not None and ask.query.weight not in self.schema.coded):
            raise PlanError(
                "is weighted to known totals, so every weight rests on others' answers; take a statistic with base weights",
                field=at,
            )
        if any(roles(ask.query, self.schema, repair) for repair in self.repairs):
            raise PlanError(
                "rests on a column that is filled; take statistics of columns that nobody filled; what capped donors fill has its "
                "total interval from the factor of [design], widened by what [expect] missing says",
                field=at,
            )


def _is_of_some(ask: Statistic) -> bool:
    """Whether it is of domains, or of those whom a condition holds for, who may lie in some strata only."""
    query = ask.query
    return isinstance(query, ByDomain) or (isinstance(query, RowQuery) and query.among.where != EVERYONE)


def _check_weight(basis: SamplingBasis, shape: CodedSum | CodedMean, at: str) -> None:
    """Replicates are of one base weight, and say nothing of a statistic without it."""
    if isinstance(basis, ReplicateWeights) and weight_in(shape) != basis.replicates.weight:
        raise PlanError(
            f"rests on replicates of {basis.replicates.weight}; write weight = {basis.replicates.weight!r} in the query",
            field=at,
        )


def _weight(items: Mapping[str, CodedMean]) -> str | None:
    """The one base weight that items use. A factor from items without it knows nothing of unequal weights."""
    used = {weight_in(item) for item in items.values()}
    if len(used) > 1:
        raise PlanError("use one base weight, the same in all, or none", field="design.items")
    (own,) = used
    return own
