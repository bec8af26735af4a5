"""Tables of small cells for the terminal: what a preview foresees, and where a release put them."""

from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.decimals import show
from reticent.release.plan import Plan
from reticent.release.release import Release


def foreseen_cells(plan: Plan) -> list[dict[str, Any]]:
    """What each table of cells will cost and how noisy it will be, as plain values."""
    if not plan.cells:
        return []
    from reticent.smallcells.foresee import foresee  # compiles, so loaded only where a plan has cells

    found = []
    for cells in plan.cells:
        seen = foresee(cells, plan.schema, plan.neighbours)
        found.append(
            {
                "name": cells.name,
                "words": cells.words(),
                "method": cells.method.value,
                "label": cells.label,
                "guarantee": str(plan.resting(cells.claim(plan.change))),
                "epsilon": show(cells.cost),
                "delta": show(cells.delta) if cells.delta else None,
                "cells": cells.want(plan.schema).cells(plan.schema),
                "noise_sd": {str(size): spread for size, spread in seen.spreads},
                "how": seen.how,
                "unprotected": list(seen.unprotected),
            }
        )
    return found


def show_foreseen(found: list[dict[str, Any]]) -> None:
    """The tables of a plan: cost, promise, and the noise in cells of three sizes."""
    if not found:
        return
    sizes = list(found[0]["noise_sd"])
    headings = (f"sd, n = {size}" for size in sizes)
    table = Table("cells", "method", "epsilon", "delta", *headings)
    for each in found:
        spreads = (each["noise_sd"][size] for size in sizes)
        numbers = ("not given" if spread is None else f"{spread:.3g}" for spread in spreads)
        texts = (
            each["name"],
            each["label"] or each["method"],
            each["epsilon"],
            each["delta"] or "",
            *numbers,
        )
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)
    for each in found:
        typer.echo(f"{each['name']}: {each['label'] or each['guarantee']}")
        typer.echo(f"  {each['words']}; {each['cells']:,} cells")
        typer.echo(f"  sd: {each['how']}")
        for said in each["unprotected"]:
            typer.echo(f"  not protected: {said}")


def show_tables(release: Release) -> None:
    """One line for each table: its cells are in the CSV."""
    for table in release.document.get("cells", []):
        count = len(table["columns"]["cell"])
        promise = table["label"] or table["guarantee"]["words"]
        typer.echo(f"{table['name']}: {count:,} cells by method {table['method']} in {release.id}.cells.csv")
        typer.echo(f"  {promise}")
        for said in table["unprotected"]:
            typer.echo(f"  not protected: {said}")
