"""What a preview says of repairs: what will be filled, and noise under assumptions, since its scale is confidential."""

from collections.abc import Sequence
from math import isfinite

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.release.foreseen import HUBS, NOBODY
from reticent.release.plan import Plan
from reticent.release.preview import Assumed, Expectation
from reticent.release.target import ASSUMED_HUB


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
