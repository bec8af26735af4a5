"""Small cells and synthetic tables for the terminal: what a preview foresees, and where a release put them."""

from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.exact import show
from reticent.plan.cells import CellTables
from reticent.plan.plan import Plan
from reticent.plan.synth import SyntheticTables
from reticent.release.release import Release


def foreseen_cells(plan: Plan) -> list[dict[str, Any]]:
    """What each table of cells will cost and how noisy it will be, as plain values."""
    asked = plan.product(CellTables)
    if asked is None:
        return []
    from reticent.preview.cells import foresee  # compiles, so loaded only where a plan has cells

    found = []
    for cells in asked.tables:
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


def foreseen_synths(plan: Plan) -> list[dict[str, Any]]:
    """What each synthetic table will cost and write, as plain values."""
    found: list[dict[str, Any]] = []
    asked = plan.product(SyntheticTables)
    for each in asked.tables if asked else ():
        first = 1 + sum(len(before["files"]) for before in found)
        found.append(
            {
                "name": each.name,
                "words": each.words(),
                "method": each.method.name,
                "missing": each.holes.value,
                "guarantee": str(plan.resting(each.claim)),
                "epsilon": show(each.spend.epsilon),
                "delta": show(each.spend.delta) if each.spend.delta else None,
                "rows": each.rows,
                "columns": list(each.domain.columns),
                "cells": dict(zip(each.domain.columns, each.domain.shape, strict=True)),
                "point_masses": {name: list(values) for name, values in each.heaps.items()},
                "never": list(each.never),
                "determines": dict(each.determines),
                "files": [f"{name}.csv" for name in each.files(plan.release_id, first)],
            }
        )
    return found


def show_foreseen_synths(found: list[dict[str, Any]]) -> None:
    """The synthetic tables of a plan: promise, cost, and what will be written."""
    if not found:
        return
    table = Table("synthetic table", "method", "missing values", "epsilon", "delta", "rows", "columns")
    for each in found:
        counts = (f"{each['rows']:,}", str(len(each["columns"])))
        texts = (each["name"], each["method"], each["missing"], each["epsilon"], each["delta"] or "", *counts)
        table.add_row(*(Text(text) for text in texts))
    Console().print(table)
    for each in found:
        typer.echo(f"{each['name']}: {each['guarantee']}")
        typer.echo(f"  {each['words']}")
        typer.echo(f"  will be written: {', '.join(each['files'])}, and the same as Parquet")
        for name, values in each["point_masses"].items():
            typer.echo(f"  point masses of {name}, each a bin of its own: {', '.join(values)}")
        for rule in each["never"]:
            typer.echo(f"  no row with: {rule}")
        for known, by in each["determines"].items():
            typer.echo(f"  {known} follows from {by}")


def show_synths(release: Release) -> None:
    """One line for each table: its rows are in the files."""
    for table in release.document.get("synth", []):
        names = ", ".join(f"{name}.csv" for name in table["files"])
        typer.echo(f"{table['name']}: {table['rows']:,} synthetic rows by {table['method']} in {names}")
        typer.echo(f"  {table['guarantee']['words']}")
