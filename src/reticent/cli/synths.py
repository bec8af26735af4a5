"""Synthetic tables for the terminal: what a preview foresees, and where a release put them."""

from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reticent.decimals import show
from reticent.release.plan import Plan
from reticent.release.release import Release


def foreseen_synths(plan: Plan) -> list[dict[str, Any]]:
    """What each synthetic table will cost and write, as plain values."""
    found: list[dict[str, Any]] = []
    for each in plan.synths:
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
