"""A release as a document: statistics, their guarantee, what they cost. Built from noisy answers only."""

from collections.abc import Mapping
from fractions import Fraction
from math import isfinite, sqrt
from statistics import NormalDist
from typing import Any

from reticent import __version__
from reticent.answer.base import COPIES_WORDS, UNBOUNDED, Answer, Estimate
from reticent.answer.parts import AnyMeasurement, HiddenScale
from reticent.answer.weighing import Weighed
from reticent.decimals import show
from reticent.privacy.claim import compose
from reticent.query.kinds import Correlation, Derived, NumericQuery, Proportion, Quantile, Variance
from reticent.release.brought import external_imputation_section
from reticent.release.cost import claim_of_bins, claim_of_parts
from reticent.release.drawn_told import drawn_section, resting_told
from reticent.release.files_told import files_told
from reticent.release.format import CAUTION, COVERS, FORMAT, RELIABLE
from reticent.release.model_fit import NO_MODELS, Modelled
from reticent.release.model_lines import models_section
from reticent.release.plan import Plan, Statistic
from reticent.release.repair_words import ask_words, bar_words, lent_words
from reticent.release.synth_table import SynthTable, synths_section
from reticent.release.weights_told import weighted_words, weights_section
from reticent.smallcells.table import CellTable, described

TOTAL_WORDS = (
    "adds, as variances do, the sampling error implied by the declared design effect; it does not cover "
    "nonresponse bias"
)

HIDDEN_WORDS = {
    "donors": "confidential: how many recipients a donor serves was read off the rows, and sets the scale",
    "weights": "confidential: how many respondents share a bin was read off the rows, and sets the scale",
}


def document(
    plan: Plan,
    answers: Mapping[str, Answer],
    *,
    receipt: Mapping[str, Any] | None,
    engine: str,
    tables: Mapping[str, CellTable] | None = None,
    synths: Mapping[str, SynthTable] | None = None,
    beside: Mapping[str, Any] | None = None,
    weighed: Weighed | None = None,
    modelled: Modelled = NO_MODELS,
) -> dict[str, Any]:
    """The whole release. `receipt` is None for a rehearsal, which is marked as such and promises nothing."""
    claims = modelled.claims + [
        c for ask in plan.asks if (c := claim_of_parts(ask.query, answers[ask.name].parts, plan.change))
    ]
    claims += [cells.claim(plan.change) for cells in plan.cells]
    claims += [(synths or {})[synth.name].claim for synth in plan.synths]
    bins = claim_of_bins(weighed.parts if weighed else (), plan.change)
    claims += [bins] if bins else []
    told = {cells.name: (tables or {})[cells.name] for cells in plan.cells}
    made = {
        "format": FORMAT,
        "id": plan.release_id,
        "title": plan.title or plan.schema.title or plan.release_id,
        "dataset": plan.schema.name,
        "published": receipt is not None,
        "guarantee": {
            "words": str(compose(claims)),
            **compose(claims).as_dict(),
            "accept_large": plan.accepts_large,
        },
        "protects": {
            "privacy_unit": plan.schema.unit,
            "at_most": plan.schema.at_most,
            "change": plan.change.value,
        },
        "imputation": list(plan.repair_words),
        **external_imputation_section(plan.brought, compose(claims)),
        **models_section(plan, modelled.fits),
        **weights_section(plan, weighed),
        **drawn_section(plan),
        **files_told(plan),
        "statistics": [_answer(ask, answers[ask.name], plan) for ask in plan.asks],
        **_tables(plan, told),
        **synths_section(plan.synths, synths or {}, plan.release_id),
        "receipt": dict(receipt) if receipt is not None else None,
        **({"beside_epsilon": dict(beside)} if beside else {}),
        "plan": plan.digest,
        "planning": {
            "rows": plan.rows,
            "design_effect": show(plan.design_effect) if plan.design_effect is not None else None,
        },
        "software": {"reticent": __version__, "engine": engine},
    }
    return {name: resting_told(each, plan) for name, each in made.items()}


def _tables(plan: Plan, tables: Mapping[str, CellTable]) -> dict[str, Any]:
    """The tables of cells; a release without any does not speak of them."""
    if not plan.cells:
        return {}
    return {"cells": [described(cells, tables[cells.name], plan.schema, plan.change) for cells in plan.cells]}


def _answer(ask: Statistic, answer: Answer, plan: Plan) -> dict[str, Any]:
    claim = claim_of_parts(ask.query, answer.parts, plan.change)
    unit = _unit(ask, plan)
    return {
        "name": ask.name,
        "query": {key: _plain(value) for key, value in ask.written.items()},
        "words": ask_words(ask.query, plan.schema, plan.repair, plan.models) + weighted_words(ask, plan),
        "unit": unit,
        "guarantee": {"words": str(claim), **claim.as_dict()}
        if claim
        else {"words": "post-processing, no cost"},
        "parts": [_part(part) for part in answer.parts],
        "interval": {
            "level": float(ask.level),
            "covers": COVERS,
            "meaning": answer.meaning
            + lent_words(answer, ask.bar)
            + bar_words(ask.query, plan.schema, plan.models, bought=answer.meaning == COPIES_WORDS),
        },
        "total": {"meaning": TOTAL_WORDS},
        "estimates": [_estimate(estimate, ask, plan) for estimate in answer.estimates],
    }


def _estimate(estimate: Estimate, ask: Statistic, plan: Plan) -> dict[str, Any]:
    low, high = estimate.interval(ask.level)
    margin, cv = _total(estimate, ask, plan, low, high)
    return {
        "cell": dict(estimate.cell),
        "value": number(estimate.value),
        "privacy_low": number(low) if estimate.has_interval and abs(low) < UNBOUNDED else None,
        "privacy_high": number(high) if estimate.has_interval and abs(high) < UNBOUNDED else None,
        "total_margin": None if margin is None else number(Fraction(margin)),
        "cv": None if cv is None else round(cv, 4),
        "reliability": _reliability(cv),
    }


def _total(
    estimate: Estimate, ask: Statistic, plan: Plan, low: Fraction, high: Fraction
) -> tuple[float | None, float | None]:
    """The total margin of error at the ask's level, and the coefficient of variation; neither without an interval.

    Where the noise has a confidential scale but an interval was bought, there is a margin and no coefficient.
    """
    if estimate.sampling is None or plan.design_effect is None or not estimate.has_interval:
        return None, None
    variance = max(0.0, estimate.sampling(float(plan.design_effect)))
    z = NormalDist().inv_cdf((1 + float(ask.level)) / 2)
    margin = sqrt((float(high - low) / 2) ** 2 + z * z * variance)
    if estimate.noise_sd is None or not isfinite(estimate.noise_sd) or not estimate.value:
        return margin, None
    return margin, sqrt(estimate.noise_sd**2 + variance) / abs(float(estimate.value))


def _reliability(cv: float | None) -> str | None:
    if cv is None:
        return None
    return "reliable" if cv <= RELIABLE else "use with caution" if cv <= CAUTION else "unreliable"


def _part(part: AnyMeasurement) -> dict[str, Any]:
    """One part. Of noise scaled by a bound read off the rows neither bound nor scale is told."""
    known = {"what": part.what, "mechanism": part.mechanism, "epsilon": show(part.epsilon)}
    told: dict[str, Any]
    if isinstance(part, HiddenScale):
        told = {
            "sensitivity": None,
            "grid": show(part.unit),
            "scale": None,
            "hidden": HIDDEN_WORDS[part.source],
        }
    else:
        scale = float(part.scale * part.unit) if part.mechanism == "discrete Laplace" else None
        told = {"sensitivity": show(part.bound), "grid": show(part.unit), "scale": scale}
    return {**known, **told, "proof": part.proof}


def _unit(ask: Statistic, plan: Plan) -> str:
    query = ask.query
    if isinstance(query, Variance):
        unit = plan.schema.columns[query.column].unit
        return f"{unit} squared" if unit else ""
    if isinstance(query, NumericQuery | Quantile):
        return plan.schema.columns[query.column].unit
    if isinstance(query, Derived):
        units = {_unit(other, plan) for other in plan.asks if other.name in query.of}
        return units.pop() if query.kind == "difference" and len(units) == 1 else ""
    if isinstance(query, Proportion):
        return "share"
    if isinstance(query, Correlation):
        return ""
    if ask.weighted:
        return "people"
    return "respondents, weighted" if query.among.weight else "respondents"


def number(value: Fraction) -> int | float:
    """A plain number for JSON: whole where it is whole, else to six decimals."""
    return int(value) if value.denominator == 1 else float(show(value, digits=6))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int) else str(value)
