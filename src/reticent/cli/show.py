"""Tables for the terminal: a preview, a release, and CONFIDENTIAL what `check` shows the curator.

A preview says what will be filled, noise under assumptions, since its scale is confidential, and how weights will be
made; after a release, which bins were used. What `check` shows goes to the terminal and nowhere else.
"""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from math import isfinite
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.answer.expect import Assumed
from reticent.answer.expect_donors import ASSUMED_HUB, HUBS, NOBODY
from reticent.answer.parts import AnyMeasurement, HiddenScale
from reticent.cli.show_tables import (
    foreseen_cells,
    foreseen_synths,
    show_foreseen,
    show_foreseen_synths,
    show_synths,
    show_tables,
)
from reticent.engine.confidential import Finding, Patterns
from reticent.errors import PlanError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.plan.repairs import external_imputation_section
from reticent.preview.preview import LEGEND, Expectation, expectations
from reticent.release.check import Gaps
from reticent.release.document import drawn_section, files_told, weight_words
from reticent.release.release import Release
from reticent.report.numbers import downward, nearest, places, upward
from reticent.schema.public_files import published_words


def show_repairs(plan: Plan) -> None:
    """Every repair in words, with the default that stands last."""
    for said in plan.repair_words:
        typer.echo(f"imputation: {said}")


def show_assumed(expectations: Sequence[Expectation], *, target: bool) -> None:
    """Standard deviation and half-width of the noise, by how many recipients the busiest donor serves."""
    smooth = [each for each in expectations if each.assumed]
    if not smooth:
        return
    typer.echo(
        "How busy donors are is confidential. If the busiest one served so many recipients, the noise would be"
    )
    table = Table("statistic", *("nobody missing" if hub == NOBODY else f"{hub}" for hub in HUBS))
    for each in smooth:
        table.add_row(Text(each.name), *(Text(_noise(found)) for found in each.assumed))
    Console().print(table)
    typer.echo(
        "sd is its standard deviation, ± the half-width of the interval if one is bought and else the same quantile of the noise"
    )
    if target:
        typer.echo(
            f"for these statistics the epsilon for the target assumes that the busiest donor serves {ASSUMED_HUB}"
        )


def assumed_dicts(expectation: Expectation) -> list[dict[str, object]]:
    """The same for JSON; a spread without end is null."""
    return [
        {"hub": each.hub, "sd": each.sd if isfinite(each.sd) else None, "margin": each.margin}
        for each in expectation.assumed
    ]


def _noise(found: Assumed) -> str:
    return f"± {_digits(found.margin)}\nsd {_digits(found.sd) if isfinite(found.sd) else 'without end'}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def show_weights(plan: Plan) -> None:
    """One line, with the price of finding the bins."""
    if plan.weight is not None:
        price = f", for {show(plan.weight.price)}" if plan.weight.price else ", which costs nothing"
        typer.echo(f"{weight_words(plan.weight)}{price}")


def weights_dict(plan: Plan) -> dict[str, Any]:
    """The same for JSON; nothing where a plan has no weights."""
    if plan.weight is None:
        return {}
    return {"weights": {"words": weight_words(plan.weight), "epsilon": show(plan.weight.price)}}


def show_drawn(plan: Plan) -> None:
    """The piece that is read, and what the promise is worth to those it was drawn from."""
    told = drawn_section(plan)
    if "piece" in told:
        typer.echo(f"reads {told['piece']['words']}")
        if "secret" in told["piece"]:
            typer.echo(f"its promise: {told['piece']['secret']}")
    for each in told.get("frames", []):
        typer.echo(f"{each['words']}; {each['secret']}")


def show_bins(release: Release) -> None:
    """The strategy and how it was found."""
    told = release.document.get("weights")
    if told:
        typer.echo(f"weights {told['name']}: {told['bins']} bins ({told['strategy']}), {told['how']}")
        if "raked" in told:
            typer.echo(told["raked"]["words"])


def show_preview(plan: Plan, target: str, *, as_json: bool) -> None:
    """The guarantee, the cost and the expected errors, as a table or as JSON."""
    cv = _cv(target)
    lines = [
        (expectation, route.epsilon_for(cv) if cv else None)
        for expectation, route in zip(expectations(plan), plan.routes, strict=True)
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


WARNING = "CONFIDENTIAL: read off the rows, for the curator's eyes only. Do not publish or forward."
BAR, MOST_PATTERNS, MOST_PAIRS = 20, 12, 12


def show_findings(findings: Sequence[Finding]) -> None:
    """Every column: how much is missing, drawn as a bar, and what does not fit the codebook."""
    typer.echo(WARNING)
    table = Table(
        "column", "missing, of those asked", "answered", "not asked", "clamped", "does not fit", "such as"
    )
    for found in findings:
        asked = found.answered + found.missing
        counts = (found.answered, found.not_asked, found.clamped, found.unfit)
        examples = ", ".join(map(repr, found.examples))
        texts = (found.column, _bar(found.missing, asked), *(f"{n:,}" for n in counts), examples)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)


def show_patterns(found: Patterns) -> None:
    """Common patterns (a filled square is missing), and which columns go missing together."""
    typer.echo("Common patterns of missing answers:")
    table = Table(*found.columns, "rows")
    for missing, count in found.counts[:MOST_PATTERNS]:
        marks = ("■" if column in missing else "·" for column in found.columns)
        table.add_row(*(Text(mark) for mark in marks), Text(_bar(count, found.rows)))
    Console().print(table)
    pairs = [(a, b) for i, a in enumerate(found.columns) for b in found.columns[i + 1 :]]
    strongest = sorted(pairs, key=lambda pair: -abs(found.correlation(*pair)))[:MOST_PAIRS]
    if strongest:
        typer.echo("Columns that go missing together (correlation of their flags):")
        for one, other in strongest:
            typer.echo(f"  {found.correlation(one, other):+.2f}  {one}, {other}")


def show_gaps(found: Sequence[Gaps]) -> None:
    """What each repair meets: how many are missing before and after the edits, and who could donate."""
    typer.echo("Repairs:")
    table = Table("column", "missing", "after edits", "recipients", "donors", "recipients per donor")
    for each in found:
        shared = f"{each.after / each.donors:.2f}" if each.donors else "no donor"
        filled = (f"{each.after:,}", f"{each.donors:,}", shared) if each.has_donors else ("", "", "")
        filled = (
            (f"{each.after:,}", f"{each.donors:,} fitted", "private model") if each.is_modelled else filled
        )
        texts = (each.column, f"{each.before:,}", f"{each.after:,}", *filled)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)


def show_same_rows(found: Sequence[tuple[str, str]]) -> None:
    """Other ledgers for the same rows, as their fingerprints tell. Nothing is said where there is none."""
    if not found:
        return
    typer.echo(WARNING)
    for name, dataset in found:
        typer.echo(
            f'The same rows belong to {name}, for "{dataset}": what is charged there and here adds up.'
        )


def _bar(part: int, whole: int) -> str:
    """A bar, the share, and the count."""
    share = part / whole if whole else 0.0
    return f"{'█' * round(BAR * share):<{BAR}} {share:6.1%}  {part:,}"
