"""Charge a ledger for work that Python asks for without a plan: reserve, read, commit, in that order and no other (R09).

The ledger is the one that plans charge, and so are the words it is told. Each call is a release of its own under a fresh
id: what is learned twice is charged twice, and a run that was cut off keeps its charge.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from secrets import token_hex
from typing import Any

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim
from reticent.privacy.ledger import Ledger, Reservation
from reticent.release.plan import LARGE, digest_of
from reticent.schema import Schema

Account = str | PathLike[str] | Ledger
"""A ledger, or where it lies."""


def open_account(account: Account | None) -> Ledger | None:
    """The ledger to be charged, if any. One that is not there is refused, never begun."""
    if account is None or isinstance(account, Ledger):
        return account
    return Ledger.open(Path(account))


def reserve(
    ledger: Ledger,
    what: str,
    *,
    words: Mapping[str, Any],
    codebook: Mapping[str, Any],
    schema: Schema,
    claim: Claim,
) -> Reservation:
    """Charge the epsilon of `claim`, on disk, before a row is read. `words` are what was asked for."""
    _check(schema, claim)
    return ledger.reserve(
        release_id=f"{what}-{token_hex(8)}",
        plan_hash=digest_of({what: dict(words)}, codebook),
        dataset=schema.name,
        change=claim.change.value,
        unit="epsilon",
        amount=claim.epsilon,
        claim={**claim.as_dict(), "accept_large": False},
    )


def _check(schema: Schema, claim: Claim) -> None:
    """What a plan would be refused for."""
    if not schema.finished:
        raise PlanError("is marked unfinished; complete it and remove 'unfinished'", field="schema")
    if schema.sample_size is not None and claim.change is Change.ADD_REMOVE:
        raise PlanError("a public sample size goes with replaced = True", field="replaced")
    if claim.epsilon > LARGE:
        raise PlanError(
            f"is above {LARGE}, which promises little; write it in a plan with accept_large = true",
            field="epsilon",
        )
