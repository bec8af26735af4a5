"""Synthetic tables in a plan: the `[[synth]]` sections, and the table that each one asks for.

Public, all of it: made of the plan and the codebook. What does not fit is named.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from reticent.engine.wants import Coding, Key, check_coding
from reticent.errors import REQUIRED, PlanError, nearest
from reticent.exact import read_decimal, show
from reticent.files import Amount, Section, fill, is_printable
from reticent.plan.budgets import LARGEST_DELTA, Given, Product
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.claim import Change, Claim, Unit, amount, read_spent
from reticent.refine.combine import FEWEST
from reticent.schema import Schema
from reticent.sensitivity.donors import stability
from reticent.synth.base import (
    MissingMethod,
    NoisyTraining,
    PublicMargin,
    SampledTraining,
    Sequenced,
    Spend,
    SynthesisMethod,
    Worded,
)
from reticent.synth.denial import HARD
from reticent.synth.domain import BINS, Domain, domain_of, point_mass_words
from reticent.synth.public import read_margins
from reticent.synth.questions import LEVEL, TableQuestion, read_question
from reticent.synth.residuals import with_fine_axes
from reticent.synth.rules import Rules, read_rules

if TYPE_CHECKING:
    from reticent.plan.plan import Plan

DONE = {
    MissingMethod.COMPLETE: "rows with a missing answer were left out before anything was counted",
    MissingMethod.RANDOM: "missing answers were drawn evenly from all possible ones before anything was counted",
    MissingMethod.MEAN: "missing answers were replaced by a noisy mean, or drawn from a noisy histogram, before anything was "
    "counted",
    MissingMethod.MODEL: "missing answers were drawn from a private model of the answers that were given, each row from itself",
    MissingMethod.AVAILABLE: "each table was counted over those who answered its own questions",
    MissingMethod.WEIGHTED: "each table was counted over those who answered its own questions, weighted by how often respondents "
    "like them answer",
    MissingMethod.VALUES: "a missing answer was counted as a value of its own",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAnswer:
    """One `[[synth.answer]]`: a question that a release answers from the noisy tables of its synthetic rows, for free."""

    name: str
    question: TableQuestion
    level: float = LEVEL
    design_effect: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Synth:
    """What is learned, of which columns, for how much, and how many rows are drawn. `copies` completed ones, or none."""

    name: str
    method: SynthesisMethod
    holes: MissingMethod
    rows: int
    bins: int
    domain: Domain
    spend: Spend
    rules: Rules
    copies: int = 0
    bootstrap: int = 0
    inference: bool = False
    answers: tuple[PlannedAnswer, ...] = ()
    point_masses: Mapping[str, Sequence[str]] = field(default_factory=dict)
    never: tuple[str, ...] = ()
    determines: Mapping[str, str] = field(default_factory=dict)
    public: tuple[PublicMargin, ...] = field(default=(), repr=False)
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def claim(self) -> Claim:
        """What the table promises, however many rows are drawn."""
        return self.method.claim(self.domain, self.holes, self.spend)

    @property
    def cost(self) -> Fraction:
        """In its own unit."""
        return self.spend.rho or self.spend.epsilon

    @property
    def tables(self) -> int:
        """How many tables are written: one, or one for each completed copy."""
        return max(1, self.copies) + self.bootstrap

    @property
    def rounds(self) -> int:
        """At most how many steps a progress bar hears of: those of the fit, and the rows."""
        return self.method.rounds(self.domain) + 1

    @property
    def is_sampled(self) -> bool:
        """Whether it learns from Poisson samples: what that costs is no rho."""
        return self.written.get("sampling") is not None

    def words(self) -> str:
        """`30,000 rows of 15 columns by aim (epsilon 1, delta 0.000001); each table was counted over those ...`."""
        cost = f"rho {show(self.spend.rho)}" if self.spend.rho else f"epsilon {show(self.spend.epsilon)}"
        cost += f", delta {show(self.spend.delta)}" if self.spend.delta else ""
        cost += (
            f"; through filled values one respondent counts as {self.spend.stability} rows"
            if self.spend.stability > 1
            else ""
        )
        said = f"{self.rows:,} rows of {len(self.domain.axes)} columns by {self.method.name} ({cost})"
        return f"{said}{self._sampled_words()}; {self.missing_words()}{self._public_words()}"

    def _sampled_words(self) -> str:
        """`, in 400 steps that each look at a record with chance 0.02`, where the plan says so."""
        if not self.is_sampled:
            return ""
        sampling = self.written["sampling"]
        return f", in {sampling['steps']} steps that each look at a record with chance {sampling['rate']}"

    def _public_words(self) -> str:
        """`; rows agree with public margins of sex, of age by region`, where there are any."""
        names = [" by ".join(self.domain.columns[place] for place in each.places) for each in self.public]
        return f"; rows agree with public margins of {', of '.join(names)}" if names else ""

    def missing_words(self) -> str:
        """What is done about missing answers, from the rows that are read to the rows that are written."""
        own = self.method.done(self.holes) if isinstance(self.method, Worded) else ""
        if self.holes is not MissingMethod.VALUES:
            return f"{own or DONE[self.holes]}{self._imputed_by()}"
        times = "" if self.copies == 1 else f" {self.copies} times over"
        if own:
            filled = f" that were then filled{times}, which costs nothing" if self.copies else ""
            return f"{own}, and the synthetic rows have missing answers of their own{filled}"
        if not self.copies:
            return f"{DONE[self.holes]}, and the synthetic rows keep their own"
        return f"{DONE[self.holes]}, and was then filled{times} in the synthetic rows, which costs nothing"

    def _imputed_by(self) -> str:
        """`, by chain, for 0.25 of the amount`, where the plan says so."""
        model, share = self.written.get("impute_model"), self.written.get("impute_share")
        return f"{f', by {model}' if model else ''}{f', for {share} of the amount' if share else ''}"

    def denial_words(self) -> list[str]:
        """What is denied of two rows, for a reader."""
        return [each.words() for each in self.rules.denials]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The columns as rows are coded by; numbers once more in fine steps, where residuals are measured."""
        domain = with_fine_axes(self.domain) if self.inference else self.domain
        return tuple(axis.key for axis in domain.axes)

    def files(self, release_id: str, first: int) -> list[str]:
        """The names of the tables, without their endings, counted from `first` over all sections of a plan."""
        return [f"{release_id}.{first + place}.synth" for place in range(self.tables)]


def imputed_columns(plan: "Plan") -> frozenset[str]:
    """Columns whose missing answers are imputed before rows are counted; all of them where rows came imputed."""
    if plan.external is not None:
        return frozenset(plan.schema.coded)
    return plan.repair.filled() | {model.column for model in plan.models}


MOST_SECTIONS = 20
MOST_VALUES = 20_000_000


class DenialSection(Section):
    """A `[[synth.denial]]` section: what no two synthetic rows may be.

    **Keys**

    - `not`: comparisons of one column in both rows, `t1.state = t2.state and t1.city != t2.city`.
    - `weight`: `"hard"`, or how much less likely a violation makes a row: by exp(-weight).
    """

    denied: str = Field(alias="not", min_length=1, max_length=1000)
    weight: str = Field(default=HARD, max_length=40)


class AnswerSection(Section):
    """A `[[synth.answer]]` section: one question to the noisy tables of a synthetic table. It costs nothing.

    **Keys**

    - `name`: its name in the release.
    - `query`: what is asked: a proportion, a mean, a difference of means, a regression.
    - `level`: of the interval, 0.95 where not said.
    - `design_effect`: by how much the survey's design multiplies the sampling variance; where not said, the plan's `[design]`; one of the two is needed where the codebook declares weights, strata or sampling units.
    """

    name: str = Field(min_length=1, max_length=200)
    query: dict[str, Any]
    level: float = Field(default=LEVEL, gt=0, lt=1)
    design_effect: str | None = None


class StepSamplingSection(Section):
    """`sampling` of a `[[synth]]` section: steps of the training that each look at a Poisson sample of the records.

    **Keys**

    - `rate`: the chance with which a record is in a step, at most one half.
    - `steps`: how many steps there are.
    - `expected`: how many rows are expected, where no `[expect] rows` says so.
    """

    rate: Amount
    steps: int = Field(ge=1)
    expected: int | None = Field(default=None, ge=1)


class SynthSection(Section):
    """A `[[synth]]` section: one synthetic table.

    **Keys**

    - `name`: its name in the release.
    - `method`: the synthesizer.
    - `missing`: what is done about missing values: `"response-weighted"` for aim, mst and pairs where not said, else `"available"`.
    - `rows`: how many to draw.
    - `epsilon`: its privacy budget.
    - `rho`: the same in zCDP, in place of epsilon and delta.
    - `delta`: the chance that the guarantee leaves open.
    - `columns`: which columns, all where not said.
    - `bins`: into how many bins a number is cut.
    - `point_masses`: numbers that keep a bin of their own, by column.
    - `copies`: with `missing = "category"`, how often silent cells of the synthetic rows are filled; else, with `inference`, how many bootstrap copies are made beside them.
    - `never`: filter expressions that no row fulfils.
    - `determines`: columns whose answer settles another's.
    - `known`: which answer settles which.
    - `impute_model`: whose model completes the rows, with `missing = "impute-model"`.
    - `impute_share`: the share of the amount that filling takes, half where not said.
    - `denial`: sections of their own, what no two rows may be.
    - `inference`: measure for intervals: residuals of binned numbers, and all pairs.
    - `pairs`: with `inference`, `"all"` measures every pair, `"chosen"` those that the method chooses.
    - `answer`: questions that the release answers from the noisy tables, with intervals.
    - `public`: files of public margins of the population, such as `"census.csv"`, that the synthetic rows agree with.
    - `sampling`: `{ rate = "0.02", steps = 400 }`, training steps over Poisson samples, for `chain` on very large tables.
    """

    name: str = Field(min_length=1, max_length=200)
    method: str | None = Field(default=None, max_length=100)
    missing: str | None = None
    rows: int = Field(ge=1, le=MOST_VALUES)
    epsilon: Amount | None = None
    rho: Amount | None = None
    delta: Amount | None = None
    columns: list[str] | None = Field(default=None, min_length=1, max_length=1000)
    bins: int = Field(default=BINS, ge=2, le=1000)
    point_masses: dict[str, list[Any]] = Field(default={}, max_length=100)
    copies: int | None = Field(default=None, ge=0, le=100)
    never: list[str] = Field(default=[], max_length=100)
    determines: dict[str, str] = Field(default={}, max_length=100)
    known: dict[str, dict[str, str]] = Field(default={}, max_length=100)
    impute_model: str | None = Field(default=None, max_length=100)
    impute_share: str | None = Field(default=None, max_length=40)
    denial: list[DenialSection] = Field(default=[], max_length=20)
    inference: bool = False
    pairs: Literal["all", "chosen"] | None = None
    answer: list[AnswerSection] = Field(default=[], max_length=1000)
    public: str | list[Any] | None = None
    sampling: StepSamplingSection | None = None


def read_synths(
    raw: Sequence[Mapping[str, Any]],
    schema: Schema,
    *,
    change: Change,
    repair: Repair = NO_REPAIR,
    unit: Unit = "epsilon",
    expected: int | None = None,
) -> tuple[Synth, ...]:
    """All sections of a plan, in order; `expected` is how many respondents it expects."""
    if len(raw) > MOST_SECTIONS:
        raise PlanError(f"has more than {MOST_SECTIONS} entries; drop some", field="synth")
    found: list[Synth] = []
    for place, each in enumerate(raw):
        at = f"synth[{place}]"
        found.append(
            read_synth(each, schema, change=change, repair=repair, unit=unit, expected=expected, at=at)
        )
        if found[-1].name in [before.name for before in found[:-1]]:
            raise PlanError(f"two sections are called {found[-1].name!r}", field=f"{at}.name")
    return tuple(found)


def read_synth(
    raw: Mapping[str, Any],
    schema: Schema,
    *,
    change: Change = Change.ADD_REMOVE,
    repair: Repair = NO_REPAIR,
    unit: Unit = "epsilon",
    expected: int | None = None,
    at: str = "synth",
) -> Synth:
    """The table that `raw` writes down; `expected` is how many respondents there may be, where that is public."""
    section = fill(SynthSection, raw, error=PlanError, at=at)
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    with _placed(at):
        domain = domain_of(schema, section.columns, bins=section.bins, point_masses=section.point_masses)
        fine = with_fine_axes(domain) if section.inference else domain
        check_coding(Coding(keys=tuple(axis.key for axis in fine.axes)), schema, repair)
        rules = rules_of(section, domain)
    method = _asked(section, rules, at)
    holes = _missing_method(section.missing, method, f"{at}.missing")
    synth = Synth(
        name=section.name,
        method=method,
        holes=holes,
        rows=section.rows,
        bins=section.bins,
        point_masses=point_mass_words(section.point_masses, schema, domain.columns),
        domain=domain,
        spend=replace(
            _spend(section, unit, at),
            change=change,
            records=schema.at_most,
            stability=stability(repair, domain.columns) if repair.capped else 1,
        ),
        rules=rules,
        copies=_copies(section, at),
        bootstrap=_bootstrap(section, at),
        inference=section.inference,
        answers=_answers(section, domain, at),
        never=tuple(section.never),
        determines=dict(section.determines),
        public=_margins(section, domain, method, holes, at),
        written=dict(raw),
    )
    _check_size(synth, at)
    with _placed(at):
        synth.method.check(domain, synth.holes, synth.spend)
        _check_noise(synth, section, expected)
    return synth


def _check_noise(synth: Synth, section: SynthSection, expected: int | None) -> None:
    """Refuse training whose noise drowns whatever so many respondents could say in a step."""
    if section.sampling is not None:
        expected = expected or section.sampling.expected
        if expected is None:
            raise PlanError(
                "needs the number of rows that is expected, [expect] rows in a plan or `expected` here, to see that samples "
                "leave something to learn; or leave it out, and all rows are in every step",
                field="sampling",
            )
    if expected is not None and isinstance(synth.method, NoisyTraining):
        noise = synth.method.step_noise(synth.domain, synth.holes, synth.spend)
        if noise >= expected:
            raise PlanError(
                f"the noise on every number of a step would be that of {noise:,.0f} respondents, and {expected:,} are "
                "expected: nothing could be learned; use a larger one, fewer columns, or independent",
                field="rho" if synth.spend.rho else "epsilon",
            )


def rules_of(section: SynthSection, domain: Domain) -> Rules:
    """The rules that a section writes down, for rows and between them."""
    return read_rules(
        domain,
        never=section.never,
        determines=section.determines,
        known=section.known,
        denial=[(each.denied, each.weight) for each in section.denial],
        rows=section.rows,
    )


def _method(section: SynthSection, at: str) -> SynthesisMethod:
    from reticent.synth.registry import find, with_intervals  # compiles, so loaded only where a plan needs it

    with _placed(at):
        if not section.inference:
            if section.pairs is not None:
                raise PlanError("goes with inference = true alone; remove it", field="pairs")
            if section.method is None:
                raise PlanError(REQUIRED, field="method")
            return find(section.method)
        return with_intervals(section.method, section.pairs)


def _margins(
    section: SynthSection, domain: Domain, method: SynthesisMethod, holes: MissingMethod, at: str
) -> tuple[PublicMargin, ...]:
    """Public margins, where the method and what is done about missing values can take them."""
    if section.public is None:
        return ()
    from reticent.synth.registry import usual_missing  # compiles, like the methods

    refused = (
        (
            usual_missing(method) is not MissingMethod.WEIGHTED,
            f"{method.name} fits no tables; use aim, mst or pairs",
        ),
        (holes is MissingMethod.VALUES, "a margin says nothing of missing answers; use another 'missing'"),
        (
            bool(section.copies),
            "bootstrap copies are surveys that nobody adjusted, and intervals of them would not hold",
        ),
    )
    for is_wrong, said in refused:
        if is_wrong:
            raise PlanError(f"{said}, or leave it out", field=f"{at}.public")
    with _placed(at):
        return read_margins(section.public, domain)


def _answers(section: SynthSection, domain: Domain, at: str) -> tuple[PlannedAnswer, ...]:
    found: list[PlannedAnswer] = []
    for place, each in enumerate(section.answer):
        here = f"{at}.answer[{place}]"
        if not is_printable(each.name) or each.name in [before.name for before in found]:
            raise PlanError("is a name of its own, without control characters", field=f"{here}.name")
        effect = None if each.design_effect is None else read_decimal(each.design_effect)
        if each.design_effect is not None and (effect is None or not Fraction(1, 10) <= effect <= 1000):
            raise PlanError('is a decimal from 0.1 to 1000, such as "1.6"', field=f"{here}.design_effect")
        found.append(
            PlannedAnswer(
                name=each.name,
                question=read_question(each.query, domain, at=f"{here}.query"),
                level=each.level,
                design_effect=None if effect is None else float(effect),
            )
        )
    return tuple(found)


def _asked(section: SynthSection, rules: Rules, at: str) -> SynthesisMethod:
    """The synthesizer, its columns in the order that rules ask for, with the imputation that the section asks for."""
    method = _sampled(_in_order(_method(section, at), rules), section, at)
    if section.impute_model is None and section.impute_share is None:
        return method
    from reticent.synth.imputed import imputing  # compiles, like the methods
    from reticent.synth.registry import find

    if section.inference or section.sampling is not None:
        other = "inference = true" if section.inference else "sampling"
        raise PlanError(f"does not go with {other}; leave one out", field=f"{at}.impute_model")
    imputer = share = None
    if section.impute_model is not None:
        with _placed(f"{at}.impute_model", keep=False):
            imputer = _in_order(find(section.impute_model), rules)
    if section.impute_share is not None:
        share = amount(section.impute_share, field=f"{at}.impute_share")
    with _placed(at):
        return imputing(method, _missing_method(section.missing, method, "missing"), imputer, share)


def _sampled(found: SynthesisMethod, section: SynthSection, at: str) -> SynthesisMethod:
    """The synthesizer with steps over samples, where the section asks for them."""
    if section.sampling is None:
        return found
    if not isinstance(found, SampledTraining):
        raise PlanError(
            f"goes with chain, and not with {found.name}, which looks at all rows; remove it",
            field=f"{at}.sampling",
        )
    rate = amount(section.sampling.rate, field=f"{at}.sampling.rate")
    with _placed(at):
        return found.sampling(rate, section.sampling.steps)


def _in_order(found: SynthesisMethod, rules: Rules) -> SynthesisMethod:
    """The synthesizer with its columns in the order that the rules ask for, where it has one."""
    names = rules.domain.columns
    tied: list[tuple[str, ...]] = [(names[link.source], names[link.target]) for link in rules.links]
    tied += [each.columns for each in rules.denials]
    return found.in_order(tied) if tied and isinstance(found, Sequenced) else found


def _missing_method(word: str | None, method: SynthesisMethod, field: str) -> MissingMethod:
    """What is done about missing values: as the plan says, or as is usual with the method."""
    if word is None:
        from reticent.synth.registry import usual_missing  # compiles, like the methods

        return usual_missing(method)
    known = [each.value for each in MissingMethod]
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word[:80], known)}", field=field)
    return MissingMethod(word)


def _spend(section: SynthSection, unit: Unit, at: str) -> Spend:
    """Epsilon, epsilon and delta, or rho."""
    if section.epsilon is None and section.rho is None and unit == "epsilon":
        raise PlanError(REQUIRED, field=f"{at}.epsilon")
    spent, is_rho = read_spent(section.epsilon, section.rho, unit=unit, no_rho="", at=at)
    delta = _delta(section.delta, f"{at}.delta")
    if is_rho and delta:
        raise PlanError("does not go with rho, which needs none; remove it", field=f"{at}.delta")
    return Spend(rho=spent) if is_rho else Spend(epsilon=spent, delta=delta)


def _delta(text: str | None, field: str) -> Fraction:
    if text is None:
        return Fraction(0)
    delta = amount(text, field=field)
    if delta > LARGEST_DELTA:
        raise PlanError("is above 0.01, which guarantees nothing to one in a hundred", field=field)
    return delta


def _copies(section: SynthSection, at: str) -> int:
    is_values = section.missing == MissingMethod.VALUES.value
    if section.copies is not None and not (is_values or section.inference):
        raise PlanError(
            f"goes with missing = {MissingMethod.VALUES.value!r}, whose silent cells it fills, or with inference = true, which "
            "makes bootstrap copies; other rows have nothing left to fill",
            field=f"{at}.copies",
        )
    if not is_values:
        return 0
    return 1 if section.copies is None else section.copies


def _bootstrap(section: SynthSection, at: str) -> int:
    """Bootstrap copies beside the released table, for analyses of rows."""
    if section.missing == MissingMethod.VALUES.value or not section.copies:
        return 0
    if section.copies < FEWEST:
        raise PlanError(f"is {FEWEST} or more: fewer copies tell too little", field=f"{at}.copies")
    return section.copies


def _check_size(synth: Synth, at: str) -> None:
    if synth.rows * len(synth.domain.axes) * synth.tables > MOST_VALUES:
        raise PlanError(
            f"rows x columns x copies is above {MOST_VALUES:,}; draw fewer rows", field=f"{at}.rows"
        )


@contextmanager
def _placed(at: str, *, keep: bool = True) -> Iterator[None]:
    """What a part of the library refuses, said at its place in the plan."""
    try:
        yield
    except PlanError as problem:
        said, field = str(problem.args[0]), problem.field
    else:
        return
    inner = f"{at}.{field}" if keep and field in SynthSection.model_fields else at
    raise PlanError(said.rstrip("."), field=field if field == "impute" else inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticTables(Product):
    """The synthetic tables of a plan, in order."""

    section: ClassVar[str] = "synth"

    tables: tuple[Synth, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(synth.name for synth in self.tables)

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        return tuple(synth.claim for synth in self.tables)


def read_synthetic_tables(raw: Sequence[Mapping[str, Any]], given: Given) -> SyntheticTables:
    """All `[[synth]]` sections as a product."""
    tables = read_synths(
        raw,
        given.held,
        change=given.change,
        repair=given.repairs.repair,
        unit=given.unit,
        expected=given.rows,
    )
    return SyntheticTables(tables=tables)
