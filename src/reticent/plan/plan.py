"""A plan: what will be asked, of whom, at what privacy budget. Everything about it is known before a row is read.

What is asked for are its products, and everybody who runs, tells or shows a plan loops over them. Asks about silence in
columns that models fill are refused: after the repair nobody is silent there. The synthetic tables of a plan can be taken
as a plan of their own. Where a plan holds nothing else, that is the plan itself, with the same id and digest; otherwise it
has another id, so that the ledger can tell the two apart.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from reticent.answer.route import Route, route_of
from reticent.answer.statistic import Setting, Statistic
from reticent.answer.weighting import Weighting
from reticent.errors import PlanError, ReticentError
from reticent.exact import read_decimal, show
from reticent.files import fill, is_printable, parse_toml, read_toml
from reticent.former import FormerDigests, check_words, other_format
from reticent.notebook import html_table, paragraph
from reticent.plan.budgets import Given, Product, read_protection, read_wave
from reticent.plan.capped import read_shares
from reticent.plan.design import NO_DESIGN, SurveyDesign, read_design, read_effect
from reticent.plan.digest import plan_digest
from reticent.plan.models import AnyModel, ImputationModels, check_missingness
from reticent.plan.partition import Partition, check_moved, check_partition, read_partition
from reticent.plan.products import PRODUCTS, ProductReader
from reticent.plan.repairs import ExternalImputation, Repairs, check_external, read_external, read_repairs
from reticent.plan.sample import FrameSample, check_sample, frame_claims, read_sample
from reticent.plan.sections import FORMAT, PlanSections
from reticent.plan.statistics import Statistics
from reticent.plan.synth import SyntheticTables
from reticent.plan.totals import with_totals
from reticent.plan.weights import over_rings, read_weight
from reticent.plan.words import copied_stand_in, stand_in
from reticent.prepare.repair import NO_REPAIR, Repair
from reticent.privacy.claim import DELTA, Change, Claim, Unit, check_exact, compose, in_unit
from reticent.privacy.ledger import ChargedWave
from reticent.privacy.ledger.store import ledger_at
from reticent.privacy.sampling import resting_on_key
from reticent.schema import Number, Schema
from reticent.schema.codebook import schema_from
from reticent.schema.public_files import PublicFiles, Read
from reticent.sensitivity.bounds import Neighbours

P = TypeVar("P", bound=Product)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A plan as it was read: the statistics, the codebook they speak of, and the guarantee they add up to.

    **Fields**

    - `release_id`: the id of the release.
    - `title`: for readers.
    - `schema`: the codebook.
    - `change`: the adjacency.
    - `cap`: the privacy budget that the plan may not exceed.
    - `products`: what is asked for, kind by kind; models that fill rows come first.
    - `digest`: by which a ledger knows the plan again.
    - `former`: the digests that it had in earlier formats.
    - `unit`: what the budget is counted in: epsilon, or rho (zCDP).
    - `delta`: at which a sum of rho is shown.
    - `wave`: the wave of a panel that is read.
    - `partition`: the piece of the survey that is read.
    - `sample`: how the survey was drawn, for amplification.
    - `repair`: edits and donor imputation.
    - `repair_words`: what the repairs do, in sentences.
    - `external`: external imputation: what was filled before the data came.
    - `rows`: how many respondents are expected.
    - `mean_weight`: what one of them weighs on average, by the base weight.
    - `design`: where the sampling error of statistics comes from.
    - `source`: where the rows are.
    - `relation`: which table of a database.
    - `ledger`: where the ledger is.
    - `codebook`: where the codebook is.
    - `folder`: the folder that these are relative to.
    - `files`: public files that were read.
    - `accepts_large`: whether a large epsilon was accepted.
    """

    release_id: str
    title: str
    schema: Schema
    change: Change
    cap: Fraction
    products: tuple[Product, ...]
    digest: str
    former: FormerDigests = field(default=FormerDigests({}, {}), repr=False, compare=False)
    unit: Unit = "epsilon"
    delta: Fraction = DELTA
    wave: ChargedWave | None = None
    partition: Partition | None = None
    sample: FrameSample | None = None
    repair: Repair = NO_REPAIR
    repair_words: tuple[str, ...] = ()
    external: ExternalImputation | None = None
    rows: int | None = None
    mean_weight: Fraction | None = None
    design: SurveyDesign = NO_DESIGN
    source: str = ""
    relation: str | None = None
    ledger: str = ""
    codebook: str = ""
    folder: Path = Path()
    files: tuple[Read, ...] = ()
    accepts_large: bool = False

    @property
    def neighbours(self) -> Neighbours:
        """The change that must stay hidden, as the bounds take it."""
        return Neighbours(replaced=self.change is Change.REPLACE, records=self.schema.at_most)

    def worded(self, claim: Claim) -> str:
        """A promise in words that say household where the codebook does."""
        return str(claim).replace("one respondent", f"one {self.schema.unit_name}")

    def product(self, kind: type[P]) -> P | None:
        """The product of one kind; None where the plan does not ask for it."""
        return next((product for product in self.products if isinstance(product, kind)), None)

    @property
    def asks(self) -> tuple[Statistic, ...]:
        """The statistics, in order."""
        return found.asks if (found := self.product(Statistics)) else ()

    @property
    def weight(self) -> Weighting | None:
        """Post-stratification to known totals, where statistics use it."""
        return found.weight if (found := self.product(Statistics)) else None

    @property
    def models(self) -> tuple[AnyModel, ...]:
        """The private models that fill gaps, in order."""
        return found.models if (found := self.product(ImputationModels)) else ()

    @property
    def has_design(self) -> bool:
        """Whether it says anything of sampling errors."""
        return self.design != NO_DESIGN

    @property
    def design_claims(self) -> tuple[Claim, ...]:
        """What is bought of sampling errors promises."""
        return self.design.claims(self.change) if self.has_design else ()

    @property
    def setting(self) -> Setting:
        """What is public of the survey, as far as the ways of answering depend on it."""
        return Setting(
            schema=self.weight.told(self.schema) if self.weight else self.schema,
            neighbours=self.neighbours,
            repair=self.repair,
            weighting=self.weight,
            copied=copied_stand_in(self.models),
            directions=found.directions if (found := self.product(ImputationModels)) else 0,
            rows=self.rows,
            mean_weight=self.mean_weight,
            share=self.partition.share if self.partition else Fraction(1),
            unit=self.unit,
            designed=frozenset(ask.name for ask in self.asks if self.has_design and self._is_designed(ask)),
        )

    def _is_designed(self, ask: Statistic) -> bool:
        """Whether the design factor of a statistic will be known, and what its weight stands for in respondents."""
        bought, weight = self.design.pooled, ask.query.weight
        if bought is None and self.design.factor(ask.name) is None:
            return False
        if weight is None or (bought is not None and weight == bought.weight):
            return True
        if weight in self.schema.coded and (bought is None or ask.name in self.design.effects):
            return self.mean_weight is not None and (bought is not None or self.rows is not None)
        if self.weight is None or weight != self.weight.name:
            return False
        base = self.weight.factors.column if self.weight.factors else None
        return self.rows is not None if bought is None else base in (None, bought.weight)

    @property
    def routes(self) -> tuple[Route, ...]:
        """How each statistic is answered, in their order: what it wants, measures, costs, rests on, and to expect."""
        setting = self.setting
        return tuple(route_of(ask, setting) for ask in self.asks)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """One claim for each model, each statistic that costs anything and each table, from public numbers alone.

        In the plan's unit: where that is rho, a pure one counts epsilon squared over two.
        """
        found = ((product.section, claim) for product in self.products for claim in product.claims(self))
        return tuple(in_unit(self.resting(claim), self.unit, field=section) for section, claim in found)

    def resting(self, claim: Claim) -> Claim:
        """A claim of this plan with what it rests on beside its mechanism: the key, in a piece by lot."""
        held = self.partition is not None and self.partition.secret(self.change)
        return resting_on_key(claim) if held else claim

    @property
    def claim(self) -> Claim:
        """What the whole plan promises, in exact arithmetic or not at all."""
        return check_exact(compose(self.claims), field="plan")

    @property
    def frames(self) -> tuple[tuple[str, Claim], ...]:
        """What the plan's promise is worth to those it was drawn from, with what has to stay secret for it.

        Nothing where gaps were filled before: one who was drawn has moved the rows of others, too.
        """
        if self.external is not None or (self.partition is None and self.sample is None):
            return ()
        return frame_claims(self.claims, self.change, self.partition, self.sample)

    def __repr__(self) -> str:
        """What it asks for and costs; nothing of it is confidential."""
        names = [name for product in self.products for name in product.names]
        return f"<plan {self.release_id!r}: {', '.join(names[:6])}{', ...' if len(names) > 6 else ''}; {self.worded(self.claim)}>"

    def _repr_html_(self) -> str:
        rows = [(product.section, name) for product in self.products for name in product.names]
        cost = f"costs {self.unit} {show(self.cost)} of at most {show(self.cap)}; no row was read"
        said = [f"imputation: {each}" for each in self.repair_words]
        return paragraph(f"Plan {self.release_id}: {self.worded(self.claim)}", cost, *said) + html_table(
            ("section", "name"), rows
        )

    @property
    def cost(self) -> Fraction:
        """What a release of this plan charges: the epsilon or rho its products use, which may be below the cap."""
        if self.unit == "rho":
            return sum((claim.rho for claim in self.claims), Fraction(0))
        observed = (cost for product in self.products for cost in product.observed.values())
        return sum((*(claim.epsilon for claim in self.claims), *observed), Fraction(0))


def read_plan(
    path: Path,
    *,
    part: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    rows: str | None = None,
    ledger: Path | None = None,
) -> Plan:
    """The plan in the file at `path`, with the files it names; or the `part` of it that is wanted.

    `rows` and `ledger` are those used in place of the plan's own, if any. None of the files that the plan takes for
    public may be one of them (T33).

    **Parameters**

    - `path`: a TOML file.
    - `part`: takes from its dictionary the part that is wanted.
    - `rows`: the rows used in place of the plan's own.
    - `ledger`: the ledger used in place of the plan's own.
    """
    data = part(read_toml(path, error=PlanError))
    with _explained(data):
        return _read(data, path, rows, ledger)


def read_plan_text(text: str, path: Path) -> Plan:
    """The plan that a text would be if it stood in the file at `path`. Reads the files it names, and no row."""
    return read_plan_data(parse_toml(text, path.name, error=PlanError), path)


def read_plan_data(data: Mapping[str, Any], path: Path) -> Plan:
    """The same of the dictionary that the text stands for."""
    with _explained(data):
        return _read(data, path, None, None)


def _read(data: Mapping[str, Any], path: Path, rows: str | None, ledger: Path | None) -> Plan:
    sections = _sections(data)
    survey, folder = sections.survey, path.parent
    files = PublicFiles.of(
        folder,
        rows=[folder / survey.source, *([rows] if rows is not None else [])],
        ledgers=[ledger_at(folder, survey.ledger), *([ledger] if ledger is not None else [])],
    )
    codebook = files.toml(survey.codebook, field="survey.codebook")
    for key, reader in _asked(sections).items():
        if reader.with_files is not None:
            data = {**data, key: reader.with_files(getattr(sections, key), files)}
    if sections.weight is not None:
        data = {**data, "weight": with_totals(sections.weight, files)}
    return replace(plan_from(data, codebook), folder=folder, files=tuple(files.read))


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors raised inside know what the sections of a plan are called, by `statistic[0]` and the like."""
    try:
        yield
    except ReticentError as problem:
        problem.names = {**names, **problem.names}
        raise


@contextmanager
def _explained(data: Mapping[str, Any]) -> Iterator[None]:
    """The same of errors in reading a plan; of a word of before they say what it is called now."""
    with naming(section_names(data)):
        try:
            yield
        except PlanError:
            check_words(data)
            raise


def section_names(data: Mapping[str, Any]) -> dict[str, str]:
    """What every section of a list is called, by its place: `statistic[0]` is `statistic 'mean wage'`."""
    found: dict[str, str] = {}
    for key, sections in data.items():
        for place, each in enumerate(sections if isinstance(sections, list) else ()):
            name = (each.get("name") or each.get("column")) if isinstance(each, Mapping) else None
            if isinstance(name, str) and is_printable(name) and len(name) <= 200:
                found[f"{key}[{place}]"] = f"{key} {name!r}"
    return found


def plan_from(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> Plan:
    """A plan from the dictionaries that its TOML and its codebook's stand for."""
    with _explained(data):
        return _plan_from(data, codebook)


def _plan_from(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> Plan:
    sections = _sections(data)
    schema = schema_from(dict(codebook))
    if not schema.finished:
        raise PlanError("is marked unfinished; complete it and remove 'unfinished'", field="survey.codebook")
    change = _change(sections.protect.change, schema)
    neighbours = Neighbours(replaced=change is Change.REPLACE, records=schema.at_most)
    partition = None
    if sections.partition is not None:
        partition = read_partition(sections.partition, schema, codebook, change)
    rows = sections.expect.rows or schema.sample_size
    rows = partition.rows(sections.expect.rows, schema.sample_size) if partition else rows
    weight, mean = None, _mean_weight(sections.expect.mean_weight, schema)
    if sections.weight is not None:
        weight = read_weight(sections.weight, schema, rows=rows, neighbours=neighbours, mean=mean)
    repairs, said = Repairs(), sections.expect.missing
    shares = read_shares(said, schema) if said else {}
    if sections.impute or sections.edit:
        repairs = read_repairs(
            sections.impute, schema, edited=sections.edit, weight=weight, shares=shares, rows=rows
        )
        weight = over_rings(weight, repairs.repair) if weight else None
    protection = read_protection(sections.protect)
    given = Given(
        schema=schema,
        held=replace(schema, sample_size=None) if partition else schema,
        change=change,
        neighbours=neighbours,
        repairs=repairs,
        weight=weight,
        unit=protection.unit,
        rows=rows,
    )
    products = _products(sections, given)
    plan = Plan(
        release_id=sections.release.id,
        title=sections.release.title,
        schema=schema,
        change=change,
        cap=protection.cap,
        unit=protection.unit,
        delta=protection.delta,
        wave=read_wave(sections.wave, is_piece=partition is not None),
        products=products,
        partition=partition,
        sample=read_sample(sections.sample, schema, change, partition)
        if sections.sample is not None
        else None,
        repair=repairs.repair,
        repair_words=repairs.words,
        external=read_external(before) if (before := sections.survey.imputed_before) is not None else None,
        digest=plan_digest(data, codebook),
        former=FormerDigests(data, codebook, plan_digest),
        rows=rows,
        mean_weight=mean,
        design=_design(sections, products, schema, repairs, pieces=partition is not None),
        source=sections.survey.source,
        relation=sections.survey.relation,
        ledger=sections.survey.ledger,
        codebook=sections.survey.codebook,
        accepts_large=sections.protect.accept_large,
    )
    protection.check(plan.cost)
    if partition is not None:
        if protection.unit == "rho":
            raise PlanError(
                'pieces of a survey are counted in epsilon; leave [partition] or measure = "zcdp" out',
                field="partition",
            )
        _check_piece(plan, sections, partition)
    _check_delta(plan, protection.allowed)
    _check_names(plan)
    if plan.sample is not None:
        check_sample(plan.sample, plan.asks, weight, schema)
        check_external(plan.external, is_sampled=True)
    if plan.models:
        check_missingness(plan.asks, plan.models)
    return plan


def _check_piece(plan: Plan, sections: PlanSections, piece: Partition) -> None:
    """What is said of the whole survey is refused for a piece, and so is what is not proved for it."""
    for place, each in enumerate(sections.statistic):
        check_partition(piece, each.size, f"statistic[{place}].size")
    others = [product for product in plan.products if not product.proved_for_moves]
    check_moved(piece, plan.change, repair=plan.repair, others=others)


def _asked(sections: PlanSections) -> dict[str, ProductReader]:
    """The readers of the products that a plan asks for, in the order of `PRODUCTS`."""
    return {key: reader for key, reader in PRODUCTS.items() if getattr(sections, key)}


def _listed() -> str:
    """`[[statistic]], [[cells]], [[tables]], [[regression]] or [[synth]]`."""
    *first, last = (f"[[{key}]]" for key in PRODUCTS)
    return f"{', '.join(first)} or {last}"


def _products(sections: PlanSections, given: Given) -> tuple[Product, ...]:
    """What the plan asks for, in the order of `PRODUCTS`, after the models that fill its rows."""
    readers = _asked(sections)
    if not readers:
        raise PlanError(f"asks nothing; add a {_listed()}", field="statistic")
    if given.weight is not None:
        readers = {Statistics.section: PRODUCTS[Statistics.section], **readers}
    first = [ImputationModels(models=given.repairs.models)] if given.repairs.models else []
    return (*first, *(reader.read(getattr(sections, key), given) for key, reader in readers.items()))


def _sections(data: Mapping[str, Any]) -> PlanSections:
    if (said := data.get("format", FORMAT)) != FORMAT:
        raise other_format(said, FORMAT, "plans", PlanError)
    sections = fill(PlanSections, data, error=PlanError, at="")
    if not is_printable(sections.release.title):
        raise PlanError("holds a control character", field="release.title")
    return sections


def _check_names(plan: Plan) -> None:
    taken: dict[str, str] = {}
    for product in plan.products:
        for place, name in enumerate(product.names):
            if name in taken:
                at = f"{product.section}[{place}].name"
                raise PlanError(f"{taken[name]} is called {name!r} too; choose another", field=at)
            taken[name] = product.noun


def _check_delta(plan: Plan, allowed: Fraction | None) -> None:
    """Deltas add up exactly, and the plan says how much it allows."""
    total = sum((claim.delta for claim in plan.claims), Fraction(0))
    if not total:
        if allowed is not None:
            raise PlanError("does not go with pure noise; remove it", field="protect.delta")
        return
    if allowed is None or allowed < total:
        what = " and ".join(each.plural for each in plan.products if any(c.delta for c in each.claims(plan)))
        raise PlanError(
            f"the {what} need {show(total)}; allow as much, or ask for less", field="protect.delta"
        )


def _change(text: str, schema: Schema) -> Change:
    """The change that must stay hidden; a household may be written where it is the unit."""
    own = {each.value.replace("one respondent", f"one {schema.unit_name}"): each for each in Change}
    change = {**{each.value: each for each in Change}, **own}.get(text)
    if change is None:
        raise PlanError(f"is {' or '.join(map(repr, own))}", field="protect.change")
    if schema.sample_size is not None and change is Change.ADD_REMOVE:
        raise PlanError(f"a public sample size goes with {Change.REPLACE.value!r}", field="protect.change")
    return change


def _mean_weight(raw: object, schema: Schema) -> Fraction | None:
    if raw is None:
        return None
    weight = read_decimal(raw)
    if weight is None or weight <= 0:
        raise PlanError(
            "is a decimal above 0: what a respondent weighs on average", field="expect.mean_weight"
        )
    heaviest = [
        each.upper for each in schema.coded.values() if isinstance(each, Number) and each.role == "weight"
    ]
    if heaviest and weight > max(heaviest):
        raise PlanError(
            f"is {show(weight)}, but by the codebook nobody weighs more than {show(max(heaviest))}; correct one of the two",
            field="expect.mean_weight",
        )
    return weight


def _design(
    sections: PlanSections, products: Sequence[Product], schema: Schema, repairs: Repairs, *, pieces: bool
) -> SurveyDesign:
    asks = next((each.asks for each in products if isinstance(each, Statistics)), ())
    own, expected = [each.sampling for each in sections.statistic], sections.expect.design_effect
    if sections.design is None and expected is None and all(each is None for each in own):
        return NO_DESIGN
    return read_design(
        sections.design,
        own,
        asks,
        schema=schema,
        repairs=(repairs.repair, stand_in(repairs.models)),
        expected=read_effect(expected, field="expect.design_effect"),
        pieces=pieces,
    )


OTHERS = (*(key for key in PRODUCTS if key != SyntheticTables.section), "weight")
SUFFIX = "-synth"


def read_synth_plan(path: Path, *, rows: str | None = None, ledger: Path | None = None) -> Plan:
    """The synthetic tables of the plan at `path`, after the whole of it was found in order."""
    whole = read_plan(path, rows=rows, ledger=ledger)
    if whole.product(SyntheticTables) is None:
        raise PlanError("holds no synthetic table; add a [[synth]]", field="synth")
    return read_plan(path, part=only_synth, rows=rows, ledger=ledger)


def only_synth(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same words without statistics, cells and weights; under the id with `-synth` where anything was left out."""
    if not any(data.get(section) for section in OTHERS):
        return dict(data)
    left = {key: value for key, value in data.items() if key not in OTHERS}
    left["release"] = {**data["release"], "id": f"{data['release']['id']}{SUFFIX}"}
    if not any("delta" in each for each in data["synth"]):
        left["protect"] = {key: value for key, value in data["protect"].items() if key != "delta"}
    return left
