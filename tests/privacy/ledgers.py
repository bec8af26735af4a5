"""Small ledgers for tests, and children of this process that may die."""

import os
import signal
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from reticent import files
from reticent.errors import ReticentError
from reticent.privacy.ledger import Ledger, Reservation

FACTS = {"dataset": "state survey", "change": "one respondent added or removed", "unit": "epsilon"}
FILES = {"release.json": "ab" * 32}
ANSWER = b"noisy answer " * 700  # more than one page of the file


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


def in_child(
    work: Callable[[], object], started: Callable[[int], object] = lambda _: None
) -> Callable[[], int]:
    """Run `work` in a forked child, whose number is told to `started`; calling the result waits for it.

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
    started(child)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def publish_last(path: Path, **changes: Any) -> None:
    """A release in the right order; in another unit, or of a wave, if `changes` say so."""
    ledger = Ledger.open(path)
    ledger.commit(reserve(ledger, files=[(path.with_name("rows.csv"), "")], **changes), ANSWER)
    files.write_new(path.with_name("release.json"), ANSWER, private=False)
    ledger.publish("r1", FILES)


def finish(path: Path, **changes: Any) -> None:
    """What a curator does after a crash: release again, or resume."""
    ledger, out = Ledger.open(path, timeout=5), path.with_name("release.json")
    held = (
        reserve(ledger, **changes)
        if ledger.state("r1") in ("none", "published")
        else ledger.resume("r1", "p")
    )
    if held.fresh:
        ledger.commit(held, ANSWER)
    if not files.holds(out, ANSWER):
        files.write_new(out, ANSWER, private=False)
    ledger.publish("r1", FILES)


def violation(path: Path, **changes: Any) -> str:
    """What of L03 does not hold, if anything."""
    ledger, out = Ledger.open(path, timeout=5), path.with_name("release.json")
    ledger.verify()
    if out.exists() and (ledger.spent < 1 or ledger.answer("r1") != ANSWER):
        return "published beyond what was charged and kept"
    if out.exists() and not files.holds(out, ANSWER):
        return "half a file"
    finish(path, **changes)
    ledger.verify()
    return "" if ledger.spent == 1 and ledger.state("r1") == "published" else "the next release went wrong"
