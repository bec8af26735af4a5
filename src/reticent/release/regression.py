"""The regressions of a release: fitted from the sums that an engine gives, told, and written as a CSV with a line for each
coefficient."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from reticent.engine.wants import Aggregate, Rows, SufficientStatistics, Sum, Table
from reticent.errors import PlanError, ResourceError
from reticent.files import Tidy
from reticent.models.fit import ModelNoise, SystemModelNoise
from reticent.models.intervals import MEANING, ReleasedLine, fit_line, reach
from reticent.plan.plan import Plan
from reticent.plan.regression import AskedRegression, Regressions, spent_words
from reticent.privacy.claim import Claim
from reticent.query.sides import may_hold
from reticent.refine.total import DesignFactor, total_interval
from reticent.release.labels import KeyColumns, Labels, keys_of
from reticent.release.models import ESTIMATORS, Wanted, design_of, products, sums_of
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.regression_noise import check_drowned
from reticent.release.sampling import FILLED_TOTAL
from reticent.release.statistics import StatisticsResult
from reticent.schema import Schema
from reticent.schema.bind import AllOf

CSV = ".regression.csv"
LINE = (
    "release",
    "regression",
    "response",
    "cell",
    "term",
    "term_label",
    "against",
    "against_label",
    "value",
    "level",
    "privacy_low",
    "privacy_high",
    "noise_sd",
    "total_low",
    "total_high",
    "total_margin",
    "cv",
    "reliability",
    "guarantee",
    "meaning",
    "total_meaning",
)
KEYS = LINE.index("term")  # where a column for each key of domains stands
TOLD = LINE[LINE.index("privacy_low") : LINE.index("guarantee")]
NUMBERS = frozenset(("value", "level", *TOLD)) - {"reliability"}
INTERCEPT = "(intercept)"
NO_FILLED = (
    "missing answers were filled from donors, and a sampling error is computed only where the response alone is filled, the finest "
    "level matches on every predictor as it is, and [expect] missing says how many answers are missing"
)
NO_DESIGN = (
    "no sampling error is known: add [design] to the plan; an interval for privacy noise says nothing of how far the sample is "
    "from the population"
)
TOTAL_WORDS = (
    "sampling and privacy noise together: the standard error of least squares in a simple random sample with one residual "
    "variance, times the survey's design factor; it does not cover nonresponse bias, clamped values or a line that is none"
)
Domain = tuple[tuple[str, str], ...]


def wanted_of(asked: AskedRegression, schema: Schema) -> Wanted:
    """What an engine must sum for each pair of columns, over the rows that the condition keeps."""
    kept = asked.among.rows(schema)
    return {at: want and _among(want, kept) for at, want in products(asked.model).items()}


def _among(want: Sum, kept: Rows) -> Sum:
    rows = Rows(where=AllOf((kept.where, want.rows.where)), known=kept.known, answered=want.rows.answered)
    return replace(want, rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionResult(Result):
    """The lines of a plan as they were fitted, by name."""

    asked: Regressions
    plan: Plan
    lines: Mapping[str, Mapping[Domain, ReleasedLine]] = field(repr=False)
    factor: DesignFactor | None = None

    @property
    def epsilon(self) -> Fraction:
        return sum((claim.epsilon for claim in self.claims), start=Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        """One for each regression: what is spent on the line of one domain is spent on all."""
        return [self._claim(each) for each in self.asked.lines]

    def _claim(self, asked: AskedRegression) -> Claim:
        first, *rest = (line.fit.claim for line in self.lines[asked.name].values())
        if any(claim != first for claim in rest):
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="regression")
        return replace(first, change=self.plan.change, rests_on=(*first.rests_on, *asked.summed))

    @property
    def is_as_planned(self) -> bool:
        return tuple(self.claims) == self.asked.claims(self.plan)

    @property
    def keys(self) -> Sequence[str]:
        lines = self.asked.lines
        return [name for each in lines for name in (each.model.column, *each.model.predictors)]

    def document(self) -> dict[str, Any]:
        told = zip(self.asked.lines, self.claims, strict=True)
        return {"regression": [_section(each, self, claim) for each, claim in told]}


class RegressionProducer(Producer[Regressions]):
    """Fits every `[[regression]]` from sums of products.

    Guarantee   that of each line's estimator, at its price.
    Adjacency   plan.neighbours.
    Theorem     that of the estimator; the rows that count are chosen one by one.
    Proof       proofs/release/regression.md
    Assumes     sums of the engine are exact; no column of a line, or of its condition, was filled but by capped donors.
    Keeps back  the sums, and how many rows count.
    """

    __slots__ = ()

    @property
    def endings(self) -> tuple[str, ...]:
        return (CSV,)

    def check(self) -> None:
        if self.plan.partition is not None:
            raise PlanError(
                "is for a whole survey; ask for it in a plan without [partition]", field="regression"
            )
        for place, asked in enumerate(self.asked.lines):
            check_drowned(asked, self.plan, f"regression[{place}].epsilon")

    def wants(self) -> Sequence[Aggregate]:
        schema = self.plan.schema
        wanted = ((asked, wanted_of(asked, schema)) for asked in self.asked.lines)
        sums = ((asked, want) for asked, each in wanted for want in each.values() if want)
        return list(dict.fromkeys(_by_domain(want, asked, schema) for asked, want in sums))

    def run(self, on: PlanRun) -> RegressionResult:
        noise, lines = SystemModelNoise(), {}
        for asked in self.asked.lines:
            lines[asked.name] = dict(_fitted(asked, on, noise))
            on.step(asked.name)
        return RegressionResult(asked=self.asked, plan=on.plan, lines=lines, factor=_factor(on))


def _factor(on: PlanRun) -> DesignFactor | None:
    """The survey's design factor: as bought with the statistics, or as declared."""
    sampled = next((done.sampled for done in on.results if isinstance(done, StatisticsResult)), None)
    bought = sampled.bought if sampled is not None else None
    return bought.factor if bought is not None else on.plan.design.factor("")


def _by_domain(want: Sum, asked: AskedRegression, schema: Schema) -> Sum | Table:
    return want.by(asked.sides.keys(schema)) if asked.sides.columns else want


def _sums_by_domain(asked: AskedRegression, on: PlanRun) -> Iterator[tuple[Domain, SufficientStatistics]]:
    """For each domain, what the line would be told if the survey were that domain; once for all where there is none."""
    schema, tallies = on.plan.schema, on.tallies.fractions or on.tallies if asked.donees else on.tallies
    if not asked.sides.columns:
        yield (), tallies.statistics
        return
    wanted = [want for want in wanted_of(asked, schema).values() if want]
    tables = {want: tallies.tables[want.by(asked.sides.keys(schema))].cells for want in wanted}
    for place, domain in enumerate(asked.sides.cells(schema)):
        yield domain, SufficientStatistics(sums={want: tables[want][place] for want in wanted})


def _fitted(asked: AskedRegression, on: PlanRun, noise: ModelNoise) -> Iterator[tuple[Domain, ReleasedLine]]:
    """The line, or that of every domain, with noise for all records that may differ in any of them."""
    schema, model, neighbours = on.plan.schema, asked.model, asked.neighbours(on.plan.neighbours)
    for domain, found in _sums_by_domain(asked, on):
        line = fit_line(
            ESTIMATORS[model.estimator](),
            sums_of(design_of(model, schema), wanted_of(asked, schema), found),
            epsilon=model.epsilon,
            delta=asked.delta,
            neighbours=neighbours,
            noise=noise,
        )
        yield domain, line


def _section(asked: AskedRegression, made: RegressionResult, claim: Claim) -> dict[str, Any]:
    lines, filled = made.lines[asked.name], made.plan.repair.filled()
    shown = {cell: line for cell, line in lines.items() if asked.is_shown(cell) and may_hold(cell, filled)}
    whys = dict.fromkeys(line.why_none for line in shown.values() if line.why_none)
    has_any = any(not line.why_none for line in shown.values())
    factor = filled_factor(asked, made.plan, made.factor)
    no_total = "" if factor is not None and has_any else NO_DESIGN if factor is None else next(iter(whys))
    no_total = NO_FILLED if made.factor is not None and factor is None else no_total
    return {
        "name": asked.name,
        "words": asked.words(),
        "guarantee": {"words": str(claim), **claim.as_dict()},
        **spent_words(asked),
        "estimator": asked.model.estimator,
        "response": asked.model.column,
        "level": float(asked.level),
        "meaning": MEANING if has_any else "",
        "no_privacy_interval": "; ".join(whys),
        "total_meaning": "" if no_total else TOTAL_WORDS + (FILLED_TOTAL if asked.donees else ""),
        "no_total_interval": no_total,
        "residual_sd": _residual_sds(shown),
        "coefficients": [
            each
            for cell, line in shown.items()
            for each in coefficients(asked, cell, line, factor, made.plan.schema)
        ],
    }


def filled_widening(asked: AskedRegression, plan: Plan) -> float | None:
    """By how much the variance of a slope grows where r donors fill the response: (1 + f/r) / (1 - f), f the expected share.

    Within a cell the predictors are one value, so filled responses are draws of the right law, and slopes are weighted sums
    of responses: THEORY 13.5a holds for each. And r completions were summed as if they were r times as many respondents.
    None where that does not hold: filled predictors, conditions or domains, predictors that the finest level does not match on
    as they are, or no expected share.
    """
    group, others = plan.repair.group(asked.model.column), set(asked.columns) - {asked.model.column}
    if group is None or group.expected is None or others & plan.repair.filled():
        return None
    whole = {match.column for match in group.levels[0].on if not match.starts}
    if not set(asked.model.predictors) <= whole:
        return None
    f, rings = float(group.expected), plan.repair.rings
    return rings * (1 + f / rings) / (1 - f)


def filled_factor(asked: AskedRegression, plan: Plan, factor: DesignFactor | None) -> DesignFactor | None:
    """The design factor, widened where capped donors fill the response; None where no sampling error can be told."""
    wider = filled_widening(asked, plan) if asked.donees else 1.0
    return None if factor is None or wider is None else replace(factor, deft=factor.deft * wider**0.5)


def _residual_sds(shown: Mapping[Domain, ReleasedLine]) -> float | list[float]:
    """The residual standard deviation; of several domains one for each, in their order."""
    found = [_digits(float(line.fit.variance) ** 0.5) for line in shown.values()]
    return found if len(found) > 1 else found[0]


def coefficients(
    asked: AskedRegression, cell: Domain, line: ReleasedLine, factor: DesignFactor | None, schema: Schema
) -> list[dict[str, Any]]:
    """The coefficients of a released line, each with its noise, its sampling error and its confidence interval."""
    terms = [(INTERCEPT, ""), *(asked.term(each, schema) for each in asked.model.features)]
    values = [_digits(float(each), 8) for each in line.fit.coefficients]
    nothing = (None,) * len(values)
    sds, errors = line.noise_sds or nothing, line.sampling_sds or nothing
    level = float(asked.level)
    return [
        {
            **({"cell": dict(cell)} if cell else {}),
            "term": term,
            "against": against,
            "value": value,
            **_interval(value, sd, level),
            **_total(value, sd, error, factor, level),
        }
        for (term, against), value, sd, error in zip(terms, values, sds, errors, strict=True)
    ]


def _total(
    value: float, sd: float | None, error: float | None, factor: DesignFactor | None, level: float
) -> dict[str, Any]:
    """Sampling and noise together, where both are known: half-widths add as the root of their squares."""
    if sd is None or error is None or factor is None:
        return dict.fromkeys(("total_low", "total_high", "total_margin", "cv", "reliability"))
    half = reach(level) * sd
    found = total_interval(
        value,
        privacy=(value - half, value + half),
        noise_sd=sd,
        variance=error**2,
        factor=factor,
        level=level,
    )
    return {
        "total_low": _digits(found.low),
        "total_high": _digits(found.high),
        "total_margin": _digits(found.margin),
        "cv": None if found.cv is None else round(found.cv, 4),
        "reliability": found.reliability,
    }


def _interval(value: float, sd: float | None, level: float) -> dict[str, float | None]:
    """The ends rounded away, to a millionth of the width or so."""
    if sd is None:
        return {"privacy_low": None, "privacy_high": None, "noise_sd": None}
    half = reach(level) * sd
    step = Fraction(10) ** (floor(log10(half)) - 5) if half > 0 else Fraction(1, 10**9)
    low, high = floor(Fraction(value - half) / step) * step, ceil(Fraction(value + half) / step) * step
    return {"privacy_low": float(low), "privacy_high": float(high), "noise_sd": _digits(sd)}


def _digits(value: float, digits: int = 6) -> float:
    """So many digits: those beyond depend on the processor."""
    return float(f"{value:.{digits}g}")


def regression_tidy(document: Document) -> Tidy:
    """One line for each coefficient of each regression, labels beside codes, and a column for each key of its domains."""
    told, labels = document.get("regression", []), Labels.of(document)
    domains = (each.get("cell") or {} for line in told for each in line["coefficients"])
    keys = KeyColumns(names=keys_of(domains), labels=labels, taken=LINE)
    lines = [line for each in told for line in _lines(each, str(document["id"]), keys)]
    return Tidy(header=[*LINE[:KEYS], *keys.header, *LINE[KEYS:]], lines=lines, numbers=NUMBERS)


def regression_csv(document: Document) -> bytes:
    """The same as a file."""
    return regression_tidy(document).to_csv()


def _lines(told: Document, release_id: str, keys: KeyColumns) -> Iterator[list[Any]]:
    meaning = told["meaning"] or f"empty: {told['no_privacy_interval']}"
    why = told["no_total_interval"]
    tail = (told["guarantee"]["words"], meaning, f"empty: {why}" if why else told["total_meaning"])
    for each in told["coefficients"]:
        domain, term, against = each.get("cell") or {}, each["term"], each["against"]
        cell = "; ".join(f"{name} = {level}" for name, level in domain.items())
        named = (term, keys.labels.term(term), against, keys.labels.against(term, against))
        numbers = (each["value"], told["level"], *(each.get(key) for key in TOLD))
        yield [
            release_id,
            told["name"],
            told["response"],
            cell,
            *keys.values(domain),
            *named,
            *numbers,
            *tail,
        ]


def _rows(told: Document) -> list[dict[str, Any]]:
    return [dict(each) for each in told["coefficients"]]


def _files(document: Document) -> dict[str, Callable[[Document], bytes]]:
    return {CSV: regression_csv}


REGRESSION = ReleasedSection(rows=_rows, files=_files, tidy=regression_tidy)
