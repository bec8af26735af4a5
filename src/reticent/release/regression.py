"""The regressions of a release: fitted from the sums that an engine gives, told, and written as a CSV with a line for each
coefficient."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, log10
from typing import Any

from reticent.engine.wants import Aggregate, Rows, Sum
from reticent.errors import PlanError
from reticent.files import tidy_csv
from reticent.models.fit import ModelNoise, SystemModelNoise
from reticent.models.intervals import MEANING, ReleasedLine, fit_line, reach
from reticent.plan.plan import Plan
from reticent.plan.regression import SUMMED, AskedRegression, Regressions, spent_words
from reticent.privacy.claim import Claim
from reticent.release.models import ESTIMATORS, Wanted, design_of, products, sums_of
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.regression_noise import check_drowned
from reticent.schema import Schema
from reticent.schema.bind import AllOf

CSV = ".regression.csv"
LINE = (
    "release",
    "regression",
    "response",
    "term",
    "against",
    "value",
    "level",
    "privacy_low",
    "privacy_high",
    "noise_sd",
    "total_low",
    "total_high",
    "guarantee",
    "meaning",
)
INTERCEPT = "(intercept)"
NO_TOTAL = "no sampling error is computed for coefficients; privacy intervals say nothing of how far the sample is from the population"


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
    lines: Mapping[str, ReleasedLine] = field(repr=False)

    @property
    def epsilon(self) -> Fraction:
        return sum((line.fit.claim.epsilon for line in self.lines.values()), start=Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        fits = (self.lines[each.name].fit for each in self.asked.lines)
        return [replace(fit.claim, rests_on=(*fit.claim.rests_on, SUMMED)) for fit in fits]

    @property
    def is_as_planned(self) -> bool:
        return tuple(self.claims) == self.asked.claims(self.plan)

    def document(self) -> dict[str, Any]:
        told = zip(self.asked.lines, self.claims, strict=True)
        return {"regression": [_told(each, self.lines[each.name], claim, self.plan) for each, claim in told]}


class RegressionProducer(Producer[Regressions]):
    """Fits every `[[regression]]` from sums of products.

    Guarantee   that of each line's estimator, at its price.
    Adjacency   plan.neighbours.
    Theorem     that of the estimator; the rows that count are chosen one by one.
    Proof       proofs/release/regression.md
    Assumes     sums of the engine are exact; no column of a line, or of its condition, was filled.
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
        wanted = (wanted_of(asked, self.plan.schema) for asked in self.asked.lines)
        return list(dict.fromkeys(want for each in wanted for want in each.values() if want))

    def run(self, on: PlanRun) -> RegressionResult:
        noise, lines = SystemModelNoise(), {}
        for asked in self.asked.lines:
            lines[asked.name] = _fitted(asked, on, noise)
            on.step(asked.name)
        return RegressionResult(asked=self.asked, plan=on.plan, lines=lines)


def _fitted(asked: AskedRegression, on: PlanRun, noise: ModelNoise) -> ReleasedLine:
    schema, model = on.plan.schema, asked.model
    sums = sums_of(design_of(model, schema), wanted_of(asked, schema), on.tallies.statistics)
    return fit_line(
        ESTIMATORS[model.estimator](),
        sums,
        epsilon=model.epsilon,
        delta=asked.delta,
        neighbours=on.plan.neighbours,
        noise=noise,
    )


def _told(asked: AskedRegression, line: ReleasedLine, claim: Claim, plan: Plan) -> dict[str, Any]:
    return {
        "name": asked.name,
        "words": asked.words(),
        "guarantee": {"words": str(claim), **claim.as_dict()},
        **spent_words(asked),
        "estimator": asked.model.estimator,
        "response": asked.model.column,
        "level": float(asked.level),
        "meaning": "" if line.why_none else MEANING,
        "no_privacy_interval": line.why_none,
        "no_total_interval": NO_TOTAL,
        "residual_sd": _digits(float(line.fit.variance) ** 0.5),
        "coefficients": _coefficients(asked, line, plan.schema),
    }


def _coefficients(asked: AskedRegression, line: ReleasedLine, schema: Schema) -> list[dict[str, Any]]:
    terms = [(INTERCEPT, ""), *(asked.term(each, schema) for each in asked.model.features)]
    values = [_digits(float(each), 8) for each in line.fit.coefficients]
    sds = line.noise_sds or (None,) * len(values)
    return [
        {
            "term": term,
            "against": against,
            "value": value,
            **_interval(value, sd, float(asked.level)),
            "total_low": None,
            "total_high": None,
        }
        for (term, against), value, sd in zip(terms, values, sds, strict=True)
    ]


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


def regression_csv(document: Document) -> bytes:
    """One line for each coefficient of each regression."""
    told = document.get("regression", [])
    return tidy_csv(LINE, (line for each in told for line in _lines(each, str(document["id"]))))


def _lines(told: Document, release_id: str) -> Iterator[list[Any]]:
    meaning = told["meaning"] or told["no_privacy_interval"]
    for each in told["coefficients"]:
        numbers = [_or_empty(each[key]) for key in ("privacy_low", "privacy_high", "noise_sd")]
        yield [
            *(release_id, told["name"], told["response"], each["term"], each["against"], each["value"]),
            *(told["level"], *numbers, "", "", told["guarantee"]["words"], meaning),
        ]


def _or_empty(value: float | None) -> float | str:
    return "" if value is None else value


def _rows(told: Document) -> list[dict[str, Any]]:
    return [dict(each) for each in told["coefficients"]]


def _files(document: Document) -> dict[str, Callable[[Document], bytes]]:
    return {CSV: regression_csv}


REGRESSION = ReleasedSection(rows=_rows, files=_files)
