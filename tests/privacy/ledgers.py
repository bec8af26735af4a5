"""Small ledgers for tests, and children of this process that may die."""

import os
import signal
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from reticent.errors import ReticentError
from reticent.privacy.ledger import Ledger, Reservation

FACTS = {"dataset": "state survey", "change": "one respondent added or removed", "unit": "epsilon"}
FILES = {"release.json": "ab" * 32}


def make(path: Path, budget: str = "10", **changes: Any) -> Ledger:
    return Ledger.create(path, **{**FACTS, "budget": budget, **changes})


def reserve(
    ledger: Ledger, release: str = "r1", amount: str = "1", plan: str = "p", **changes: Any
) -> Reservation:
    facts = {**FACTS, "claim": {"measure": "pure", "epsilon": amount}, **changes}
    return ledger.reserve(release_id=release, plan_hash=plan, amount=Fraction(amount), **facts)


def release(ledger: Ledger, name: str = "r1", amount: str = "1", answer: bytes = b"answer") -> Reservation:
    """One whole release; the receipt comes back."""
    held = reserve(ledger, name, amount)
    ledger.commit(held, answer)
    ledger.publish(name, FILES)
    return held


def full(path: Path) -> tuple[Ledger, list[dict[str, Any]]]:
    """A ledger with an entry of every kind, and its receipts."""
    ledger = make(path)
    receipts = [release(ledger, "r1", "0.25").receipt, reserve(ledger, "r2").receipt]
    ledger.note("a new wave", raise_budget_to="12")
    ledger.commit(ledger.resume("r2", "p"), b"second")
    receipts.append(reserve(ledger, "r3").receipt)
    return ledger, [each.as_dict() for each in receipts]


def in_child(work: Callable[[], object]) -> Callable[[], int]:
    """Run `work` in a forked child; calling the result waits for it.

    The child ends with 0, with the status of an error of ours, with 99 for any other, or by a signal (< 0).
    """
    child = os.fork()
    if child == 0:
        status = 99
        try:
            work()
            status = 0
        except ReticentError as error:
            status = error.status
        finally:
            os._exit(status)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
