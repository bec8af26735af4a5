"""Sign-off on the command line: make a key, and approve the charge of a plan with it."""

import json
from pathlib import Path

import typer

from reticent.errors import PlanError
from reticent.exact import show
from reticent.files import check_new, write_new
from reticent.plan.plan import read_plan
from reticent.privacy.ledger import Approval, ApproverKey, Ledger
from reticent.privacy.ledger.approvals import approver_file
from reticent.privacy.ledger.store import ledger_at
from reticent.release.run import try_plan
from reticent.workflow.approving import add_approval, sign_plan, standing


def make_key(name: str, out: Path, *, locked: bool) -> None:
    """A private key for its owner, and the public one for whoever opens the ledger."""
    public = out.with_suffix(".pub")
    if public == out:
        raise PlanError("is the private key; name it otherwise than .pub", field="--out")
    check_new(public)
    made, text = ApproverKey.make(), "" if not locked else ask_passphrase(twice=True)
    told = approver_file(name, made.public)
    made.save(out, text)
    write_new(public, told, private=False)
    typer.echo(
        f"{out.name} is the private key of {name}: keep it to yourself. {public.name} is for the ledger."
    )


def ask_passphrase(*, twice: bool = False) -> str:
    """Of a locked key, on the terminal."""
    return str(typer.prompt("passphrase of the key", hide_input=True, confirmation_prompt=twice, err=True))


def approve_plan(
    path: Path, *, key: Path | None, approval: Path | None, ledger: Path | None, detached: bool
) -> None:
    """Sign, or take a signature in; say what was approved and what is still needed."""
    if (key is None) == (approval is None):
        raise PlanError("name your --key, or the --approval that was signed elsewhere", field="--key")
    plan = read_plan(path, ledger=ledger)
    try_plan(plan)
    book = Ledger.open(ledger or ledger_at(path.parent, plan.ledger))
    signed = _read(approval) if approval is not None else sign_plan(plan, book, _load(key))
    if detached:
        typer.echo(json.dumps(signed.as_dict()))
        return
    add_approval(plan, book, signed)
    given, needed = standing(plan, book)
    typer.echo(f"{signed.by} approves release {plan.release_id}: {plan.claim}, which costs {show(plan.cost)}")
    typer.echo(f"{len(given)} of {needed} approvals: {', '.join(given)}")


def _load(key: Path | None) -> ApproverKey:
    return ApproverKey.load(key or Path(), ask_passphrase)


def _read(path: Path) -> Approval:
    try:
        return Approval.read(json.loads(path.read_text(encoding="utf-8")[:10_000]))
    except (OSError, ValueError, RecursionError):
        raise PlanError("holds no approval; make one with --detached", field="--approval") from None
