"""`reticent ledger`: open, show, spent, verify, note."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="The privacy budget of one data set, and everything charged to it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file.")]


@app.command("open", epilog="Example: reticent ledger open --plan plan.toml --epsilon 10")
def open_(
    ledger: Annotated[Path | None, typer.Argument(metavar="LEDGER", help="The ledger file to start.")] = None,
    epsilon: Annotated[
        str,
        typer.Option("--epsilon", "--budget", help="The whole privacy budget, for ever.", show_default=False),
    ] = "",
    rho: Annotated[
        str,
        typer.Option(
            "--rho", help="The whole privacy budget in rho (zCDP), in place of epsilon.", show_default=False
        ),
    ] = "",
    plan: Annotated[
        Path | None, typer.Option("--plan", help="Take file, data set and change from a plan.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="The codebook's survey name.")] = None,
    change: Annotated[str | None, typer.Option("--change", help="The protected change.")] = None,
    outputs: Annotated[
        Path | None,
        typer.Option(
            "--outputs", help="Folder of earlier releases to check; default: releases beside the plan."
        ),
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", help="Rows to use instead of the plan's source.")
    ] = None,
    separate: Annotated[
        bool,
        typer.Option("--separate-budget", help="These rows have another budget too; every receipt says so."),
    ] = False,
) -> None:
    """Start a ledger. Its privacy budget covers everything that will ever be published from the data set.

    It is counted in epsilon, or with --rho in rho (zCDP), and the unit never changes. With a plan, the rows are read once
    for a fingerprint, which stays in the ledger, and compared with other ledgers.
    """
    from reticent.cli.opening import Opening, open_by_name, open_by_plan
    from reticent.errors import PlanError

    if not (epsilon or rho):
        raise PlanError("say the whole budget, such as --epsilon 10, or in zCDP --rho 1", field="--epsilon")
    if epsilon and rho:
        raise PlanError("a ledger has one unit; give --epsilon or --rho, not both", field="--rho")
    asked = Opening(
        ledger=ledger,
        dataset=dataset,
        change=change,
        unit="rho" if rho else "epsilon",
        budget=rho or epsilon,
        outputs=outputs,
        separate=separate,
    )
    if plan is None:
        open_by_name(asked)
    else:
        open_by_plan(asked, plan, data)


@app.command(epilog="Example: reticent ledger show acs.ledger.db")
def show(ledger: File) -> None:
    """Every entry, oldest first."""
    from reticent.privacy.ledger import Ledger

    for entry in Ledger.open(ledger).entries():
        typer.echo(f"{entry.number:>5}  {entry.kind:<8}  {_what(entry.body)}")


@app.command(epilog="Example: reticent ledger spent acs.ledger.db --delta 0.000001")
def spent(
    ledger: File,
    delta: Annotated[
        str, typer.Option("--delta", help="Where the unit is rho: the delta at which epsilon is shown.")
    ] = "0.000001",
) -> None:
    """What was spent and what is left; a sum of rho also as (epsilon, delta), computed for this display alone."""
    from reticent.exact import show as decimal
    from reticent.privacy.claim import amount as read_amount
    from reticent.privacy.claim import in_words
    from reticent.privacy.ledger import Ledger
    from reticent.release.curator import beside_epsilon

    at = read_amount(delta, field="--delta")

    book = Ledger.open(ledger)
    facts = book.facts
    typer.echo(
        f"{facts.dataset}: {facts.unit} {decimal(book.spent)} spent of {decimal(facts.budget)}, {decimal(book.left)} left"
    )
    if facts.unit == "rho":
        typer.echo(f"spent: {in_words(book.spent, at)}")
        typer.echo(f"budget: {in_words(facts.budget, at)}")
    waves = book.waves()
    if waves is not None:
        each = ", ".join(f"{name} {decimal(amount)}" for name, amount in waves.spent.items())
        typer.echo(f"waves: charged to {each}; {waves.counting(facts)}")
    counting = book.counting()
    for name, charged in book.pieces().items():
        each = ", ".join(f"{place} {decimal(amount)}" for place, amount in enumerate(charged, 1) if amount)
        typer.echo(f"partition {name}, {len(charged)} pieces; charged to piece {each}; {counting[name]}")
    beside = beside_epsilon(book.entries())
    if "delta" in beside:
        typer.echo(f"delta {beside['delta']} in all")
    for release in beside.get("observed", []):
        typer.echo(f"{release}: observed, not differentially private; its epsilon bounds nothing")


@app.command(epilog="Example: reticent ledger verify acs.ledger.db --receipts releases")
def verify(
    ledger: File,
    receipts: Annotated[Path | None, typer.Option("--receipts", help="Folder of published releases.")] = None,
) -> None:
    """Check the chain, the head file and any receipts; status 5 if anything was changed."""
    from reticent.privacy.ledger import Ledger, receipts_in

    book = Ledger.open(ledger)
    known = list(receipts_in(receipts)) if receipts is not None else []
    book.verify(known)
    typer.echo(f"{ledger.name} is whole; {len(known)} receipts agree with it")


@app.command(epilog='Example: reticent ledger note acs.ledger.db "audited by the board" --raise-to 12')
def note(
    ledger: File,
    text: Annotated[str, typer.Argument(help="A remark; the reason, where the budget is raised.")],
    raise_to: Annotated[
        str | None, typer.Option("--raise-to", help="A larger privacy budget; every later receipt says so.")
    ] = None,
    separate: Annotated[
        bool,
        typer.Option(
            "--separate-budget", help="These rows have another budget too; every later receipt says so."
        ),
    ] = False,
) -> None:
    """Add a remark to the ledger; with --raise-to, raise its privacy budget for the reason given."""
    from reticent.privacy.ledger import Ledger

    Ledger.open(ledger).note(text, raise_budget_to=raise_to, separate_budget=separate)
    typer.echo("noted")


def _what(body: object) -> str:
    """The public facts of an entry, without answers."""
    if not isinstance(body, dict):
        return ""
    shown = {
        k: v
        for k, v in body.items()
        if isinstance(v, str | int)
        and k not in ("answer", "holder", "salt", "plan", "key", "binds", "fingerprint")
    }
    return ", ".join(f"{key} {value}" for key, value in shown.items())
