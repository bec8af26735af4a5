"""`reticent ledger`: open, join, show, spent, verify, note; key and approve, where charges need sign-off."""

from pathlib import Path
from typing import Annotated

import typer

from reticent.cli.groups import WholeSentences

app = typer.Typer(
    cls=WholeSentences,
    help="The privacy budget of one data set, and everything charged to it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file, or postgres:SERVICE/NAME.")]


@app.command("open", epilog="Example: reticent ledger open --plan plan.toml --epsilon 10")
def open_(
    ledger: Annotated[
        Path | None,
        typer.Argument(metavar="LEDGER", help="The ledger to start: a file, or postgres:SERVICE/NAME."),
    ] = None,
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
    sign_off: Annotated[
        int, typer.Option("--sign-off", help="How many people must approve each charge.", show_default=False)
    ] = 0,
    approver: Annotated[
        list[Path] | None,
        typer.Option("--approver", help="Public key of one who may approve; give it once for each person."),
    ] = None,
) -> None:
    """Start a ledger. Its privacy budget covers everything that will ever be published from the data set.

    It is counted in epsilon, or with --rho in rho (zCDP), and the unit never changes. With a plan, the rows are read once
    for a fingerprint, which stays in the ledger, and compared with other ledgers. With --sign-off, who may approve and how
    many must is fixed for good, and no charge is made without `reticent ledger approve`.
    """
    from reticent.cli.opening import open_ledger
    from reticent.errors import PlanError
    from reticent.workflow.approving import terms
    from reticent.workflow.opening import Opening

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
        sign_off=terms(sign_off, approver or []),
    )
    open_ledger(asked, plan, data)


@app.command(epilog="Example: reticent ledger join postgres:budget/acs --receipts releases")
def join(
    ledger: Annotated[
        str, typer.Argument(metavar="LEDGER", help="A ledger on a server, postgres:SERVICE/NAME.")
    ],
    receipts: Annotated[Path | None, typer.Option("--receipts", help="Folder of published releases.")] = None,
) -> None:
    """Begin to use a ledger of a server on this machine, which remembers its last entry from then on.

    Receipts of earlier releases are compared with it: a server that has lost one of their charges is refused.
    """
    from reticent.exact import show as decimal
    from reticent.privacy.ledger import Ledger, receipts_in

    known = list(receipts_in(receipts)) if receipts is not None else []
    book = Ledger.join(Path(ledger), receipts=known)
    typer.echo(
        f"joined {ledger}, for {book.facts.dataset}: {book.facts.unit} {decimal(book.left)} left; "
        f"{_agreeing(len(known))} with it"
    )


def _agreeing(receipts: int) -> str:
    return "1 receipt agrees" if receipts == 1 else f"{receipts} receipts agree"


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
    typer.echo(f"{book.name} is whole; {_agreeing(len(known))} with it")


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


@app.command(epilog="Example: reticent ledger key 'Anna Example' --out anna.key")
def key(
    name: Annotated[str, typer.Argument(help="Who it belongs to; the name that receipts will show.")],
    out: Annotated[Path, typer.Option("--out", help="The private key; the public one ends in .pub instead.")],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase to lock it.")
    ] = False,
) -> None:
    """Make a key for one who approves charges: the private half stays with its owner, the public half goes to whoever
    opens the ledger."""
    from reticent.cli.approving import make_key

    make_key(name, out, locked=passphrase)


@app.command(epilog="Example: reticent ledger approve plan.toml --key anna.key")
def approve(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a TOML file.")],
    key: Annotated[Path | None, typer.Option("--key", help="Your private key.")] = None,
    approval: Annotated[
        Path | None, typer.Option("--approval", help="Add an approval that was signed elsewhere.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option("--ledger", help="Ledger to use instead of the plan's.")
    ] = None,
    detached: Annotated[
        bool, typer.Option("--detached", help="Print the approval for somebody else to add; write nothing.")
    ] = False,
) -> None:
    """Approve the charge of a plan, where its ledger asks for sign-off. The approval is an entry of the ledger, signed with
    your own key, and holds for this plan at this price alone. Reads no row and charges nothing."""
    from reticent.cli.approving import approve_plan

    approve_plan(plan, key=key, approval=approval, ledger=ledger, detached=detached)


def _what(body: object) -> str:
    """The public facts of an entry, without answers."""
    if not isinstance(body, dict):
        return ""
    shown = {
        k: v
        for k, v in body.items()
        if isinstance(v, str | int)
        and k not in ("answer", "holder", "salt", "plan", "key", "binds", "fingerprint", "signature")
    }
    return ", ".join(f"{key} {value}" for key, value in shown.items())
