"""What a ledger's sum of epsilon does not say: deltas, and releases that are observed and promise nothing."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from reticent.decimals import show
from reticent.privacy.ledger.entries import Entry


def beside_epsilon(entries: Iterable[Entry], *, upto: int | None = None) -> dict[str, Any]:
    """The exact sum of deltas and the observed releases, of all charges up to an entry; empty where all are pure."""
    charges = [e.body for e in entries if e.kind == "reserve" and (upto is None or e.number <= upto)]
    delta = sum((Fraction(str(body["claim"].get("delta", 0))) for body in charges), Fraction(0))
    observed = [str(body["release"]) for body in charges if body["claim"].get("measure") == "observed"]
    return {**({"delta": show(delta)} if delta else {}), **({"observed": observed} if observed else {})}
