"""Open a ledger from the command line, and say what came of it."""

from pathlib import Path

import typer

from reticent.cli.show import show_same_rows
from reticent.privacy.ledger import Ledger
from reticent.workflow.opening import Opening, open_by_plan


def open_ledger(asked: Opening, plan: Path | None, data: str | None) -> None:
    """By name: for rows that are not named yet, whose files are marked at the first charge. By plan: for its rows."""
    if plan is None:
        _say(asked.start(), asked)
        return
    opened = open_by_plan(asked, plan, data)
    _say(opened.ledger, opened.asked)
    if opened.unread:
        typer.echo(f"{opened.unread}, so the ledger keeps no fingerprint of them")
    show_same_rows(opened.same_rows)


def _say(made: Ledger, asked: Opening) -> None:
    typer.echo(f"opened {made.name} for {asked.dataset}: {asked.unit} {asked.budget}, {asked.worded}")
    if asked.sign_off is not None:
        named = ", ".join(asked.sign_off.approvers)
        typer.echo(f"every charge needs {asked.sign_off.needed} approvals, by any of: {named}")
