"""Tables for the terminal: a preview and a release."""

import json
import re
from fractions import Fraction

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.answer.parts import AnyMeasurement, HiddenScale
from reticent.cli.assumed import assumed_dicts, show_assumed, show_repairs
from reticent.cli.cells import foreseen_cells, show_foreseen, show_tables
from reticent.cli.synths import foreseen_synths, show_foreseen_synths, show_synths
from reticent.cli.weights import show_bins, show_drawn, show_weights, weights_dict
from reticent.decimals import show
from reticent.errors import PlanError
from reticent.publicfiles import published_words
from reticent.release.brought import external_imputation_section
from reticent.release.drawn_told import drawn_section
from reticent.release.files_told import files_told
from reticent.release.plan import Plan
from reticent.release.preview import LEGEND, Expectation, expectations
from reticent.release.release import Release
from reticent.release.target import epsilon_for
from reticent.report.numbers import downward, nearest, places, upward


def show_preview(plan: Plan, target: str, *, as_json: bool) -> None:
    """The guarantee, the cost and the expected errors, as a table or as JSON."""
    cv = _cv(target)
    lines = [
        (e, epsilon_for(e, ask, plan, cv) if cv else None)
        for e, ask in zip(expectations(plan), plan.asks, strict=True)
    ]
    tables, synths = foreseen_cells(plan), foreseen_synths(plan)
    if as_json:
        asks = [_as_dict(expectation, wanted) for expectation, wanted in lines]
        told = {"release": plan.release_id, "guarantee": plan.claim.as_dict(), "statistics": asks}
        told |= {"imputation": list(plan.repair_words)} if plan.repair_words else {}
        told |= external_imputation_section(plan.brought, plan.claim)
        told |= {**weights_dict(plan), **drawn_section(plan), **files_told(plan)}
        told |= {**({"cells": tables} if tables else {}), **({"synth": synths} if synths else {})}
        typer.echo(json.dumps(told, indent=1))
        return
    typer.echo(f"release {plan.release_id}: {plan.claim}")
    typer.echo(f"cost {show(plan.cost)} of at most {show(plan.cap)}; no row was read and nothing was charged")
    show_repairs(plan)
    for each in external_imputation_section(plan.brought, plan.claim).values():
        typer.echo(f"imputed before: {each['words']}")
    show_weights(plan)
    show_drawn(plan)
    show_files(plan)
    table = Table(
        "statistic", "epsilon", "parts", "margin of noise", "kind", *(["epsilon for target"] if cv else [])
    )
    for expectation, wanted in lines:
        extra = [show(wanted) if wanted else "not known"] if cv else []
        table.add_row(*_cells(expectation), *extra)
    if lines:
        Console().print(table)
    for kind in dict.fromkeys(expectation.how for expectation, _ in lines):
        typer.echo(f"{kind}: {LEGEND[kind]}")
    show_assumed([expectation for expectation, _ in lines], target=bool(cv))
    show_foreseen(tables)
    show_foreseen_synths(synths)


def show_files(plan: Plan) -> None:
    """Every file whose texts leave with the release, for the curator to read before they do."""
    for each in plan.files:
        if each.published:
            typer.echo(f"will be published from {published_words(each)}")


def _cells(expectation: Expectation) -> list[Text]:
    parts = ", ".join(f"{part.what} {show(part.epsilon)}" for part in expectation.parts)
    margin = "" if expectation.margin is None else f"± {float(expectation.margin):,.6g}"
    texts = (expectation.name, show(expectation.epsilon), parts, margin, expectation.how)
    return [Text(text) for text in texts]


def _as_dict(expectation: Expectation, wanted: Fraction | None) -> dict[str, object]:
    return {
        "name": expectation.name,
        "words": expectation.words,
        "epsilon": show(expectation.epsilon),
        "parts": [_part(part) for part in expectation.parts],
        "margin": None if expectation.margin is None else float(expectation.margin),
        "how": expectation.how,
        "assumed": assumed_dicts(expectation),
        "epsilon_for_target": None if wanted is None else show(wanted),
    }


def _part(part: AnyMeasurement) -> dict[str, object]:
    bound = None if isinstance(part, HiddenScale) else show(part.bound)
    return {"what": part.what, "epsilon": show(part.epsilon), "sensitivity": bound}


def _cv(target: str) -> float:
    if not target:
        return 0.0
    match = re.fullmatch(r"cv=([0-9]{1,3}(?:\.[0-9]{1,4})?)%", target)
    if match is None or not 0 < float(match[1]) <= 100:
        raise PlanError("is written like cv=5%", field="--target")
    return float(match[1]) / 100


def show_release(release: Release) -> None:
    """The answers, one line per estimate, with the digits that the page shows; the files hold them all."""
    show_bins(release)
    table = Table("statistic", "cell", "estimate", "interval for privacy noise", "reliability")
    for answer in release.document["statistics"]:
        for estimate in answer["estimates"]:
            cell = "; ".join(f"{k} = {v}" for k, v in estimate["cell"].items())
            digits = places(estimate)
            ends = (downward(estimate["privacy_low"], digits), upward(estimate["privacy_high"], digits))
            bar = " to ".join(ends) if all(ends) else ""
            value = nearest(estimate["value"], digits)
            texts = (answer["name"], cell, value, bar, estimate["reliability"] or "")
            table.add_row(*(Text(text) for text in texts))
    if release.document["statistics"]:
        Console().print(table)
    show_tables(release)
    show_synths(release)
    typer.echo(str(release.document["guarantee"]["words"]))
