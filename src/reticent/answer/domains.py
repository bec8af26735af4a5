"""One statistic in every domain, under one epsilon: the way of the query, taken once in each (THEORY 14.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.answer.context import Context
from reticent.answer.expect import AT_SIZE, EVEN, Expected
from reticent.answer.parts import Answer, AnyMeasurement, Estimate, Measurement, is_as_planned
from reticent.answer.statistic import DOMAINS, BaseRoute, Ground, Setting, Statistic
from reticent.engine.wants import ContingencyTable, SufficientStatistics, Sum, Table, Tallies
from reticent.errors import PlanError, ResourceError
from reticent.query.base import Query
from reticent.query.domains import ByDomain
from reticent.query.filled import check as check_imputed
from reticent.query.sides import may_hold
from reticent.schema import Schema
from reticent.sensitivity.bounds import within_domains

EACH_DOMAIN = "; for each domain by itself"


def asked_in_one(statistic: Statistic, query: ByDomain, setting: Setting) -> tuple[Statistic, Setting]:
    """The statistic of one domain, and its setting: the change that it must hide, and an even share of the rows."""
    domains = query.sides.size(setting.schema)
    rows = None if setting.rows is None else max(1, setting.rows // domains)
    inside = replace(setting, neighbours=within_domains(setting.neighbours), rows=rows, domains=domains)
    crossed = tuple(name for name in query.sides.columns if name in setting.repair.filled())
    of = replace(query.of, among=replace(query.of.among, apart_by=crossed))
    return replace(statistic, query=of), inside


def tallies_by_domain(query: ByDomain, tallies: Tallies, schema: Schema) -> Iterator[Tallies]:
    """For each domain, in order, what the query would be told if the survey were that domain."""
    keys, wants = query.sides.keys(schema), query.of.wants(schema)
    whole = {want: tallies.tables[want.by(keys)].cells for want in wants}
    for place in range(query.sides.size(schema)):
        sums = {want: whole[want][place] for want in wants if isinstance(want, Sum)}
        tables = {
            want: _part_of(want, whole[want], place, schema) for want in wants if isinstance(want, Table)
        }
        yield Tallies(statistics=SufficientStatistics(sums=sums), tables=tables)


def _with_fractions(query: ByDomain, tallies: Tallies, schema: Schema) -> Iterator[Tallies]:
    """The same, with the sums over all rings where capped donors have several."""
    if tallies.fractions is None:
        yield from tallies_by_domain(query, tallies, schema)
        return
    both = (tallies_by_domain(query, each, schema) for each in (tallies, tallies.fractions))
    for first, every in zip(*both, strict=True):
        yield replace(first, fractions=every)


def _part_of(want: Table, cells: Sequence[int], place: int, schema: Schema) -> ContingencyTable:
    size = want.size(schema)
    return ContingencyTable(want=want, cells=tuple(cells[place * size : (place + 1) * size]))


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRoute(BaseRoute[ByDomain]):
    """The route of a query, `inside` each domain, with noise for all that a respondent can move in any of them."""

    inside: BaseRoute[Query]

    @property
    def parts(self) -> tuple[AnyMeasurement, ...]:
        """Those of one domain: what is spent in one is spent in all."""
        return self.inside.parts

    @property
    def rests_on(self) -> tuple[Ground, ...]:
        return (*self.inside.rests_on, DOMAINS)

    @property
    def no_rho(self) -> str:
        return self.inside.no_rho

    @property
    def no_bar(self) -> str:
        return self.inside.no_bar

    def check_query(self, field: str) -> None:
        """What is refused of the query itself, and of columns that are filled."""
        self.inside.check_query(field)
        for filled in (self.setting.repair, self.setting.copied):
            check_imputed(self.query, self.setting.schema, filled, field=f"{field}.by")

    def check_budget(self, field: str) -> None:
        self.inside.check_budget(field)

    def unit(self, units: Mapping[str, str]) -> str:
        return self.inside.unit(units)

    def expect(self) -> Expected:
        """In a domain that holds an even share of all respondents, unless the plan expects a size of one."""
        found, expected = self.inside.expect(), self.statistic.expected
        is_said = expected is not None and (expected.size or expected.weight) is not None
        return replace(found, how=EVEN) if found.how == AT_SIZE and not is_said else found

    @property
    def expected_value(self) -> Fraction | None:
        return self.inside.expected_value

    def epsilon_for(self, cv: float) -> Fraction | None:
        return self.inside.epsilon_for(cv)

    def answer(self, context: Context) -> Answer:
        return self.measured(context)

    def measured(self, context: Context) -> Answer:
        """The noisy answer in every domain.

        Guarantee   epsilon-DP for all domains together; rho-zCDP where the statistic is `in_rho`.
        Adjacency   context.neighbours.
        Theorem     THEORY 14.1: the mechanism of the query in each domain, calibrated to `within_domains`.
        Proof       proofs/sensitivity/domains.md
        Assumes     tallies of `query.wants`; each record lies in one cell of `by`, by its own answers; independent noise.
        Keeps back  the exact tallies of every domain.
        """
        schema, neighbours = context.schema, within_domains(context.neighbours)
        domains = zip(
            self.query.domains(schema), _with_fractions(self.query, context.tallies, schema), strict=True
        )
        answers = [
            self.inside.answer(
                replace(
                    context,
                    neighbours=neighbours,
                    tallies=tallies,
                    known=None,
                    before=_in_domain(context.before, self.statistic.variance, domain),
                )
            )
            for domain, tallies in domains
        ]
        if not all(is_as_planned(answer.parts, self.parts) for answer in answers):
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="statistic")
        named, filled = zip(self.query.domains(schema), answers, strict=True), context.repair.filled()
        shown = (
            _named(domain, answer)
            for domain, answer in named
            if self.query.is_shown(domain) and may_hold(domain, filled)
        )
        total = answers[0].total_meaning
        return Answer(
            estimates=tuple(shown),
            parts=widest(answers),
            meaning=answers[0].meaning + EACH_DOMAIN,
            total_meaning=total and total + EACH_DOMAIN,
            counted=answers[0].counted,
        )


def _in_domain(
    before: Mapping[str, Answer], variance: str | None, domain: tuple[tuple[str, str], ...]
) -> Mapping[str, Answer]:
    """The answers before, with the variance of this domain in place of those of all: the plan has them by the same domains."""
    if variance is None:
        return before
    own = tuple(each for each in before[variance].estimates if each.cell == domain)
    return {**before, variance: replace(before[variance], estimates=own)}


def _named(domain: tuple[tuple[str, str], ...], answer: Answer) -> Estimate:
    (estimate,) = answer.estimates
    return replace(estimate, cell=domain)


def widest(answers: Sequence[Answer]) -> tuple[AnyMeasurement, ...]:
    """The measurements of one domain, each as noisy as in the domain where it is noisiest: squares differ."""

    def scale(part: AnyMeasurement) -> Fraction:
        return part.scale * part.unit if isinstance(part, Measurement) else Fraction(0)

    return tuple(max(alike, key=scale) for alike in zip(*(answer.parts for answer in answers), strict=True))


def domain_route(
    query: ByDomain, inside: BaseRoute[Query], statistic: Statistic, setting: Setting, *, field: str
) -> DomainRoute:
    """The route by domains, where that of the query in one of them is proved to go there."""
    moved = sorted(setting.repair.filled() & set(query.sides.columns))
    if moved and not setting.repair.capped:
        raise PlanError(
            f"{moved[0]} is filled by the nearest donors, so a recipient can change its domain and nothing bounds that; "
            "leave bound = 'hubs' out, so that donors are capped, or ask for one domain with where",
            field=f"{field}.by",
        )
    if not inside.goes_by_domain:
        raise PlanError(
            "goes with columns that respondents answered, or that capped donors fill: leave bound = 'hubs' or the model out, or "
            "ask for it without `by`",
            field=f"{field}.by",
        )
    return DomainRoute(query=query, inside=inside, statistic=statistic, setting=setting)
