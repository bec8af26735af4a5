"""Sign-off of a plan: sign its charge, take a signature in, and see what is still needed."""

from collections.abc import Sequence
from pathlib import Path

from reticent.errors import PlanError
from reticent.exact import show
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Approval, ApproverKey, Ledger, SignOff
from reticent.privacy.ledger.approvals import read_approvers


def terms(needed: int, approvers: Sequence[Path]) -> SignOff | None:
    """What whoever opens a ledger says of sign-off, if anything: how many must approve, and the public keys of who may."""
    if not needed and not approvers:
        return None
    return SignOff(needed=needed, approvers=read_approvers(approvers))


def sign_plan(plan: Plan, book: Ledger, key: ApproverKey) -> Approval:
    """The approval of a plan's charge by whoever owns the key."""
    asked = book.sign_off
    if asked is None:
        raise PlanError("this ledger asks for no approval; release the plan", field="sign-off")
    by = signer(book, key)
    if by is None:
        raise PlanError("belongs to nobody who may approve for this ledger", field="--key")
    return key.approve(
        ledger=book.facts.ledger, by=by, release=plan.release_id, plan=plan.digest, amount=plan.cost
    )


def signer(book: Ledger, key: ApproverKey) -> str | None:
    """By which name the ledger knows the owner of a key; None where it does not."""
    asked = book.sign_off
    known = asked.approvers if asked else {}
    return next((name for name, public in known.items() if public == key.public), None)


def add_approval(plan: Plan, book: Ledger, approval: Approval) -> None:
    """Take in an approval of this very plan, and of no other."""
    if (approval.release, approval.plan) != (plan.release_id, plan.digest):
        raise PlanError("is for another plan, or for this one before it was changed", field="approval")
    book.approve(approval)


def standing(plan: Plan, book: Ledger) -> tuple[tuple[str, ...], int]:
    """Who has approved the plan as it is, and how many must."""
    asked = book.sign_off
    if asked is None:
        return (), 0
    return asked.by(plan.release_id, plan.digest, show(plan.cost)), asked.needed
