"""A release as a document: statistics, their guarantee, and what they cost. Built from noisy answers only.

It says which piece was read and what its promise is worth to everybody else, how weights were made and to which totals,
and what it holds because a file that the plan names holds it. As JSON it is laid out to be read, with each column of a table
of cells on a line of its own.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any

from reticent import __version__
from reticent.answer.choose_bins import Weighed, alphas
from reticent.answer.context import rests_on_caps
from reticent.answer.factors import Factors
from reticent.answer.parts import COPIES_WORDS, UNBOUNDED, Answer, AnyMeasurement, Estimate, HiddenScale
from reticent.answer.route import Route
from reticent.answer.statistic import Statistic
from reticent.answer.weighting import Choice, RakedTotals, Weighting
from reticent.exact import show
from reticent.plan.budgets import wave_words
from reticent.plan.partition import Partition
from reticent.plan.plan import Plan
from reticent.plan.repairs import external_imputation_section
from reticent.plan.statistics import claim_of_bins, claim_of_parts
from reticent.plan.words import FILLED, ask_words, bar_words, lent_words, line_total_words
from reticent.privacy.claim import Claim, as_approximate, compose, in_unit, while_secret
from reticent.privacy.sampling import KEY, KEY_GROUND
from reticent.refine.total import TotalError
from reticent.release.format import COVERS, FORMAT
from reticent.release.labels import labels_section
from reticent.release.product import Result
from reticent.release.sampling import (
    FILLED_TOTAL,
    FIXED_SIZE,
    NO_FACTOR,
    OF_A_VARIANCE,
    TOTAL_WORDS,
    Sampled,
    why_empty,
)


def _share(partition: Partition) -> dict[str, Any]:
    """A piece by values has no public share."""
    if partition.is_by_values:
        return {}
    return {"share": show(partition.share), "scale": show(partition.scale)}


def drawn_section(plan: Plan) -> dict[str, Any]:
    """Nothing for a release of a whole survey that says nothing of its frame."""
    told: dict[str, Any] = {}
    if plan.partition is not None:
        piece = plan.partition.piece
        told["piece"] = {
            "partition": piece.partition,
            "number": piece.number,
            "of": len(piece.parts),
            "draw": piece.draw,
            **_share(plan.partition),
            "words": plan.partition.words,
            **({"secret": secret} if (secret := plan.partition.secret(plan.change)) else {}),
        }
    if plan.frames:
        told["frames"] = [
            {"words": str(claim), **claim.as_dict(), "secret": secret} for secret, claim in plan.frames
        ]
    return told


def with_grounds(told: Any, plan: Plan) -> Any:
    """What a release tells, with the key's secrecy in every claim that rests on it, wherever in it a claim stands."""
    if plan.partition is None or not plan.partition.secret(plan.change):
        return told
    if isinstance(told, list):
        return [with_grounds(each, plan) for each in told]
    if not isinstance(told, dict):
        return told
    inner = {name: with_grounds(each, plan) for name, each in told.items()}
    if not {"words", "measure", "rests_on"} <= set(told) or told["measure"] == "observed" or "secret" in told:
        return inner
    ground = {"theorem": KEY_GROUND[0], "proof": KEY_GROUND[1]}
    grounds = told["rests_on"] if ground in told["rests_on"] else [*told["rests_on"], ground]
    return {**inner, "words": told["words"] + while_secret(KEY), "rests_on": grounds, "secret": KEY}


HOW = {
    Choice.FIXED: "the plan's own bins",
    Choice.PRIVATE: "chosen privately among the plan's strategies",
    Choice.COUNTS: "put together, in the plan's order, until every noisy count was large enough",
    Choice.EACH: "chosen privately, one attribute after another, each crossed with those before",
}


def asked_words(ask: Statistic, plan: Plan) -> str:
    """A statistic in words: what is asked, to which totals it is weighted, and what filled its missing values."""
    said = ask_words(ask.query, plan.schema, plan.repair, plan.models)
    if plan.weight is None or not (ask.weighted or ask.query.weight == plan.weight.name):
        return said
    totals = "totals raked to known margins" if plan.weight.fitting else "known totals"
    told = f", weighted to {totals} by {' and '.join(plan.weight.labels)}"
    head, mark, filled = said.replace(f", weighted by {plan.weight.name}", "").partition(FILLED)
    return f"{head}{told}{mark}{filled}"


def weights_section(plan: Plan, weighed: Weighed | None) -> dict[str, Any]:
    """The weights of a release; nothing where it has none. All of it is public, or was paid for."""
    if plan.weight is None or weighed is None:
        return {}
    claim = claim_of_bins(weighed.parts, plan.change)
    strategy = weighed.strategy
    told = {
        "name": plan.weight.name,
        "base": plan.weight.column,
        "by": list(plan.weight.labels),
        "noise": "laplace" if weighed.factors else plan.weight.law.value,
        "how": HOW[plan.weight.choice],
        "strategy": strategy.name,
        "bins": len(strategy.totals),
        "totals": [show(total) for total in strategy.totals],
        "bin_of_cell": list(strategy.bins),
        "guarantee": {"words": str(claim), **claim.as_dict()} if claim else {"words": "public, no cost"},
        **({"noisy_counts": list(weighed.counts)} if weighed.counts else {}),
        **_attributes_section(plan, weighed),
        **({"raked": raked_section(plan.weight, weighed.fitted)} if weighed.fitted else {}),
        **({"factors": factors_section(weighed.factors)} if weighed.factors else {}),
    }
    return {"weights": told}


def factors_section(factors: Factors) -> dict[str, Any]:
    """What was released of the bins: their noisy base weights, who was put together, and the largest weight of a record."""
    return {
        "epsilon": show(factors.bought.epsilon),
        "base_weights": [float(show(each, digits=6)) for each in factors.noisy],
        "joined": list(factors.bins),
        "largest_weight": float(factors.heaviest * factors.unit * factors.bought.base.unit),
        "words": "every record weighs "
        f"{'' if factors.bought.column is None else 'its base weight times '}a factor that was released for its bin",
    }


def _attributes_section(plan: Plan, weighed: Weighed) -> dict[str, Any]:
    """Which way was chosen for every attribute, at what price and alpha."""
    if plan.weight is None or plan.weight.crossing is None:
        return {}
    crossing = plan.weight.crossing
    if weighed.fitted is not None:
        crossing = replace(crossing, totals=weighed.fitted.totals)
    found = alphas(crossing, weighed.ways, steps=plan.neighbours.steps)
    told = [
        {
            "by": list(each.by),
            "way": each.ways[way].name,
            "epsilon": show(each.epsilon),
            "alpha": float(alpha),
        }
        for each, way, alpha in zip(crossing.attributes, weighed.ways, found, strict=True)
    ]
    return {"attributes": told}


def raked_section(weighting: Weighting, fitted: RakedTotals) -> dict[str, Any]:
    """How the totals came about: the noisy table, the fit, and whether it met its margins. All of it was paid for."""
    fitting = weighting.fitting
    return {
        "epsilon": show(fitting.epsilon) if fitting else None,
        "margins": [[weighting.labels[axis] for axis in each.axes] for each in fitting.margins]
        if fitting
        else [],
        "noisy_table": [float(show(each, digits=6)) for each in fitted.noisy],
        "joined": fitted.joined,
        "status": fitted.status,
        "cycles": fitted.cycles,
        "largest_error": fitted.error,
        "words": fit_words(fitted),
    }


def fit_words(fitted: RakedTotals) -> str:
    """The fit in one sentence."""
    if fitted.is_assumed:
        return "the noisy table could not be raked, so totals are what the margins alone give"
    if fitted.status == "met":
        return f"totals are raked from a noisy table; every margin is met after {fitted.cycles} rounds"
    return (
        f"totals are raked from a noisy table; after {fitted.cycles} rounds the worst margin is still off by "
        f"{fitted.error:.2g} of itself"
    )


def weight_words(weighting: Weighting) -> str:
    """One line for a preview."""
    base = f"base weights {weighting.column}" if weighting.column else "equal base weights"
    several = len(weighting.candidates.strategies)
    among = f", {several} strategies" if several > 1 else ""
    totals = "totals raked from a noisy table" if weighting.fitting else "totals"
    by = ", ".join(weighting.labels)
    return (
        f"weights {weighting.name}: {base}, fitted to {totals} by {by}{among}; bins: {HOW[weighting.choice]}"
    )


def public_files_section(plan: Plan) -> dict[str, Any]:
    """Every such file with every text that is published from it; nothing for a plan that has all of it inside."""
    told = [each.as_dict() for each in plan.files if each.published]
    return {"public_files": told} if told else {}


def promised_section(plan: Plan, whole: Claim) -> dict[str, Any]:
    """What is promised, and to whom."""
    return {
        "guarantee": {
            "words": plan.worded(whole) + _shown(plan, whole),
            **whole.as_dict(),
            "accept_large": plan.accepts_large,
        },
        "protects": {
            "privacy_unit": plan.schema.unit,
            "at_most": plan.schema.at_most,
            **({"unit_name": plan.schema.unit_name} if plan.schema.first else {}),
            "change": plan.change.value,
            **({"shown_at_delta": show(plan.delta)} if plan.unit == "rho" else {}),
        },
    }


HIDDEN_WORDS = {
    "donors": "confidential: how many recipients a donor serves was read off the rows, and sets the scale",
    "weights": "confidential: how many respondents share a bin was read off the rows, and sets the scale",
}


def document(
    plan: Plan,
    results: Iterable[Result],
    *,
    receipt: Mapping[str, Any] | None,
    engine: str,
    beside: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole release. `receipt` is None for a rehearsal, which is marked as such and promises nothing."""
    done = tuple(results)
    claims = [claim for each in done for claim in each.claims]
    claims += [claim for each in done for claim in each.ground_claims]
    whole = compose(in_unit(claim, plan.unit) for claim in claims)
    made = {
        "format": FORMAT,
        "id": plan.release_id,
        "title": plan.title or plan.schema.title or plan.release_id,
        "dataset": plan.schema.name,
        "published": receipt is not None,
        **promised_section(plan, whole),
        "imputation": list(plan.repair_words),
        **imputed_by(plan),
        **(external_imputation_section(plan.external, whole) if plan.external else {}),
        **{key: told for each in done for key, told in each.grounds().items()},
        **drawn_section(plan),
        **wave_section(plan),
        **public_files_section(plan),
        **labels_section(plan.schema, [name for each in done for name in each.keys]),
        "statistics": [],
        **{key: told for each in done for key, told in each.document().items()},
        "receipt": dict(receipt) if receipt is not None else None,
        **({"beside_epsilon": dict(beside)} if beside else {}),
        "plan": plan.digest,
        "planning": {
            "rows": plan.rows,
            "design_effect": show(plan.design.declared) if plan.design.declared is not None else None,
        },
        "software": {"reticent": __version__, "engine": engine},
    }
    return {name: with_grounds(each, plan) for name, each in made.items()}


def imputed_by(plan: Plan) -> dict[str, Any]:
    """The kinds of repair that filled rows, for the sentence that is true of each; nothing where nothing was filled."""
    done = {
        "edits": bool(plan.repair.edits),
        "donors": bool(plan.repair.donors or plan.repair.capped),
        "models": bool(plan.models),
    }
    found = [kind for kind, is_done in done.items() if is_done]
    return {"imputed_by": found} if found else {}


def _shown(plan: Plan, whole: Claim) -> str:
    """Of a sum of rho the (epsilon, delta) it stands for, at the delta that the plan declares. It is not stored."""
    if plan.unit != "rho":
        return ""
    return f"; that is ({show(as_approximate(whole.rho, plan.delta))}, {show(plan.delta)})-DP"


def wave_section(plan: Plan) -> dict[str, Any]:
    """Which wave of a panel was read, and what its lifetime budget rests on; nothing for a survey that has none."""
    if plan.wave is None:
        return {}
    wave, words = plan.wave, wave_words(plan.wave, plan.schema.unit_name)
    return {"wave": {"name": wave.name, "at_most": wave.at_most, "of": wave.of, "words": words}}


def answers_section(
    plan: Plan, answers: Mapping[str, Answer], sampled: Sampled | None = None
) -> list[dict[str, Any]]:
    """Every statistic in order; what is derived has a unit that follows from those above it."""
    told, units = [], dict[str, str]()
    told_of = (each.total or each.carried for answer in answers.values() for each in answer.estimates)
    if sampled is None and (plan.has_design or any(told_of)):
        sampled = Sampled(plan=plan)
    for route in plan.routes:
        name = route.statistic.name
        units[name] = route.unit(units)
        told.append(_answer(route, answers, plan, units[name], sampled))
    return told


def _answer(
    route: Route, answers: Mapping[str, Answer], plan: Plan, unit: str, sampled: Sampled | None
) -> dict[str, Any]:
    ask, answer = route.statistic, answers[route.statistic.name]
    claim = claim_of_parts(route, answer.parts, plan.change)
    places = range(len(answer.estimates))
    totals = [sampled.total(ask, answers, place) if sampled else None for place in places]
    is_empty = not any(total is not None and total.has_end for total in totals)
    why = why_empty(sampled, ask, answers) if sampled else ask.never_total or NO_FACTOR
    empty = why if is_empty else ""
    return {
        "name": ask.name,
        "query": {key: _plain(value) for key, value in ask.written.items()},
        "words": asked_words(ask, plan),
        "unit": unit,
        "guarantee": {"words": plan.worded(claim), **claim.as_dict()}
        if claim
        else {"words": "post-processing, no cost"},
        "parts": [_part(part) for part in answer.parts],
        "interval": {
            "level": float(ask.level),
            "covers": COVERS,
            "meaning": answer.meaning
            + lent_words(answer, ask.bar)
            + bar_words(ask.query, plan.schema, plan.models),
        },
        "total": {
            "meaning": _total_words(
                ask, answer, plan, is_own=sampled is not None and ask.name in sampled.own
            ),
            **({"empty": empty} if empty else {}),
        },
        "estimates": [
            _estimate(estimate, ask, total) for estimate, total in zip(answer.estimates, totals, strict=True)
        ],
    }


def _total_words(ask: Statistic, answer: Answer, plan: Plan, *, is_own: bool) -> str:
    """What a total interval covers: what a bought one says of itself, or the usual, and what has to be known of it."""
    said = answer.total_meaning or TOTAL_WORDS
    said += FIXED_SIZE if ask.asked.adds_up and not is_own else ""
    said += OF_A_VARIANCE if ask.variance and not is_own else ""
    said += FILLED_TOTAL if rests_on_caps(ask.query, plan.schema, plan.repair) else ""
    return said + ("" if _is_copied(answer) else line_total_words(ask.query, plan.schema, plan.models))


def _is_copied(answer: Answer) -> bool:
    """Whether its total interval holds the uncertainty of the lines that filled missing values: it was bought over copies."""
    return answer.total_meaning.startswith(COPIES_WORDS)


def _estimate(estimate: Estimate, ask: Statistic, total: TotalError | None) -> dict[str, Any]:
    low, high = estimate.interval(ask.level)
    cv = None if total is None else total.cv
    return {
        "cell": dict(estimate.cell),
        "value": number(estimate.value),
        "privacy_low": number(low) if estimate.has_interval and abs(low) < UNBOUNDED else None,
        "privacy_high": number(high) if estimate.has_interval and abs(high) < UNBOUNDED else None,
        "total_low": None if total is None else _end(total.low),
        "total_high": None if total is None else _end(total.high),
        "total_margin": None if total is None else _end(total.margin),
        "cv": None if cv is None else round(cv, 4),
        "reliability": None if total is None else total.reliability,
    }


def sampling_section(sampled: Sampled | None) -> dict[str, Any]:
    """Where the sampling errors of a release come from, and what was measured for them; nothing where nothing is known."""
    told = sampled.section() if sampled else {}
    if not sampled or not sampled.parts:
        return told
    parts = [{"of": name, **_part(part)} for name, measured in sampled.measured.items() for part in measured]
    return {"sampling": {**told["sampling"], "parts": parts}}


def _end(value: float) -> int | float | None:
    """An end of an interval; nothing where there is none."""
    return number(Fraction(value)) if isfinite(value) else None


def _part(part: AnyMeasurement) -> dict[str, Any]:
    """One part. Of noise scaled by a bound read off the rows neither bound nor scale is told."""
    known = {"what": part.what, "mechanism": part.mechanism, **part_cost(part)}
    told: dict[str, Any]
    if isinstance(part, HiddenScale):
        told = {
            "sensitivity": None,
            "grid": show(part.unit),
            "scale": None,
            "hidden": HIDDEN_WORDS[part.source],
        }
    else:
        has_scale = part.mechanism == "discrete Laplace" or part.is_gaussian
        scale = float(part.scale * part.unit) if has_scale else None
        told = {"sensitivity": show(part.bound), "grid": show(part.unit), "scale": scale}
    return {**known, **told, "proof": part.proof}


def part_cost(part: AnyMeasurement) -> dict[str, str]:
    """What a part cost, under the name of its unit."""
    return {"rho": show(part.rho)} if part.rho else {"epsilon": show(part.epsilon)}


def number(value: Fraction) -> int | float:
    """A plain number for JSON: whole where it is whole, else to six decimals."""
    return int(value) if value.denominator == 1 else float(show(value, digits=6))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if isinstance(value, str | int) else str(value)


MARK = "\x00column "  # no text of a plan holds a control character


def written(document: Mapping[str, Any]) -> str:
    """The same document is the same text; keys stand in its own order."""
    tables = document.get("cells")
    if not tables:
        return json.dumps(document, ensure_ascii=False, indent=1)
    columns: list[Any] = []

    def marked(table: Mapping[str, Any]) -> dict[str, Any]:
        marks = {}
        for name, values in table["columns"].items():
            marks[name] = f"{MARK}{len(columns)}"
            columns.append(values)
        return {**table, "columns": marks}

    plain = {**document, "cells": [marked(table) for table in tables]}
    pieces = json.dumps(plain, ensure_ascii=False, indent=1).split(json.dumps(MARK)[:-1])
    told = [pieces[0]]
    for piece in pieces[1:]:
        place, _, rest = piece.partition('"')
        told += [json.dumps(columns[int(place)], ensure_ascii=False, separators=(",", ":")), rest]
    return "".join(told)
