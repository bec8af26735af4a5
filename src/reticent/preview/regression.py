"""What can be said of regressions before a row is read: guarantee, price, and about how noisy each coefficient will be."""

from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from reticent.exact import level_words, margin_text
from reticent.plan.plan import Plan
from reticent.plan.regression import AskedRegression, Regressions, spent_words
from reticent.preview.foreseen import Foreseen
from reticent.release.product import Document, Grid, Line
from reticent.release.regression import INTERCEPT
from reticent.release.regression_noise import ForeseenLine, foresee_line

NO_ROWS = "say [expect] rows to see how noisy coefficients will be"
NO_SUMS = "the noise of this estimator depends on the answers, so its size cannot be foreseen"
CROWDED = "the noise may be too large to tell intervals; give it more epsilon, or fewer predictors or levels of them"
ASSUMED = (
    "for respondents spread evenly over ranges and levels; fewer, nearer together or alike, and it is larger"
)


def foresee_regressions(asked: Regressions, plan: Plan, cv: float = 0.0) -> Foreseen:
    """What each line will cost, and margins of noise at the number of respondents that is expected."""
    told = [_section(line, plan) for line in asked.lines]
    return Foreseen(key="regression", told=told, lines=tuple(_lines(told)))


def _section(line: AskedRegression, plan: Plan) -> dict[str, Any]:
    foreseen = foresee_line(line, plan)
    terms = (INTERCEPT, *(line.term(each, plan.schema)[0] for each in line.model.features))
    margins: Sequence[float | None] = foreseen.margins if foreseen else [None] * len(terms)
    return {
        "name": line.name,
        "words": line.words(),
        "guarantee": plan.worded(plan.resting(line.claim(plan.change))),
        **spent_words(line),
        "level": float(line.level),
        "coefficients": [
            {"term": term, "margin": None if margin is None else float(f"{margin:.4g}")}
            for term, margin in zip(terms, margins, strict=True)
        ],
        "remark": _remark(foreseen, plan),
    }


def _remark(foreseen: ForeseenLine | None, plan: Plan) -> str:
    if foreseen is None:
        return NO_ROWS if plan.rows is None else NO_SUMS
    return f"{ASSUMED}; {_needed(foreseen.least)}" if foreseen.is_clear else CROWDED


def _needed(least: float) -> str:
    """From where on intervals can be told: a condition and predictors that go together leave less of what is foreseen."""
    share = ceil(1000 * least) / 10
    return f"intervals can be told while respondents and how much the predictors vary come to {share:g} % of that or more"


def _lines(told: Sequence[Document]) -> Iterator[Line]:
    level = level_words(each["level"] for each in told)
    headings = ("regression", "coefficient", f"{level}margin of noise, about")
    yield Grid(headings=headings, rows=[row for each in told for row in _rows(each, not level)])
    for each in told:
        yield f"{each['name']}: {each['guarantee']}"
        yield f"  {each['words']}"
        yield f"  {each['remark']}"


def _rows(each: Document, has_level: bool) -> Iterator[tuple[str, ...]]:
    """Every coefficient; with its level, where levels differ."""
    own = f" ({level_words([each['level']]).strip()})" if has_level else ""
    for line in each["coefficients"]:
        margin = "" if line["margin"] is None else f"± {margin_text(line['margin'])}{own}"
        yield each["name"], line["term"], margin
