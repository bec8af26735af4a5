"""What a caller may hand to the ledger, checked before anything is locked or written."""

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from reticent.errors import PlanError
from reticent.privacy.ledger.entries import Facts, canonical, decimal_text, exact
from reticent.privacy.units import UNITS

_HASH = re.compile(r"[0-9a-f]{64}")
_OTHER_UNIT = {
    "epsilon": "write the plan without measure, and its amounts as epsilon, or use a ledger opened with --rho.",
    "rho": 'write measure = "zcdp" and rho in [protect], where pure statistics may keep their epsilon, or use a ledger in '
    "epsilon.",
}
"""What to write, by the unit of the ledger."""


def words(text: object, *, field: str, limit: int = 200) -> str:
    """Text for people: some, of one line, printable, not endless."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > limit:
        raise PlanError(f"give one printable line of 1 to {limit} characters.", field=field)
    return text


def opening(*, dataset: str, change: str, unit: str, budget: str, separate: bool = False) -> dict[str, Any]:
    """The body of the first entry."""
    if unit not in UNITS:
        raise PlanError('a ledger counts in "epsilon" or in "rho"; choose one.', field="unit")
    amount = exact(budget, field="budget")
    if amount == 0:
        raise PlanError("a budget is more than 0.", field="budget")
    return {
        "dataset": words(dataset, field="dataset"),
        "change": words(change, field="change"),
        "unit": unit,
        "budget": decimal_text(amount, field="budget"),
        **({"separate": True} if separate else {}),
    }


def reserving(
    *, release_id: str, plan_hash: str, amount: Fraction, claim: Mapping[str, Any]
) -> dict[str, Any]:
    """The body of a charge."""
    text = decimal_text(amount, field="amount")
    if text == "0":
        raise PlanError("a release costs more than 0.", field="amount")
    return {
        "release": words(release_id, field="release"),
        "plan": words(plan_hash, field="plan"),
        "amount": text,
        "claim": plain_json(claim),
    }


def plain_json(claim: Mapping[str, Any]) -> Any:
    """A copy that holds JSON values only, so that it reads back as it was written."""
    try:
        copy = json.loads(canonical(dict(claim)))
    except (TypeError, ValueError, RecursionError):
        copy = None
    if copy is None or copy != claim:
        raise PlanError(
            "the claim holds something JSON cannot; use text, whole numbers and lists.", field="claim"
        )
    return copy


def same_facts(facts: Facts, *, dataset: str, change: str, unit: str) -> None:
    """Refuse a plan for another data set, change or unit than the ledger's (L12). The unit of a ledger never changes."""
    for field, given in (("dataset", dataset), ("change", change)):
        kept = getattr(facts, field)
        if given != kept:
            raise PlanError(f'the plan says "{given}", the ledger "{kept}"; use its own ledger.', field=field)
    if unit != facts.unit:
        raise PlanError(
            f'the plan says "{unit}", the ledger "{facts.unit}"; {_OTHER_UNIT[facts.unit]}', field="unit"
        )


def same_plan(release_id: str, given: str, kept: str) -> None:
    """Refuse another plan under an id that was used (L06)."""
    if given != kept:
        raise PlanError(
            f"release id {release_id} belongs to another plan; use a new id, which is charged anew.",
            field="release",
        )


def published(files: Mapping[str, str]) -> dict[str, str]:
    """Names and digests of published files."""
    for name, own in files.items():
        words(name, field="files", limit=255)
        if not isinstance(own, str) or _HASH.fullmatch(own) is None:
            raise PlanError(f"{name} needs its SHA-256 in hex.", field="files")
    if not files:
        raise PlanError("name at least one published file.", field="files")
    return dict(files)


def noting(text: str, budget: str | None, facts: Facts, *, separate: bool = False) -> dict[str, Any]:
    """The body of a remark, with or without a raise of the budget (L12), or that it is a separate one (L13)."""
    body: dict[str, Any] = {"text": words(text, field="note", limit=1000)}
    body |= {"separate": True} if separate else {}
    if budget is None:
        return body
    amount = exact(budget, field="budget")
    if amount <= facts.budget:
        raise PlanError(
            f"the budget is {decimal_text(facts.budget, field='budget')}; it can only be raised.",
            field="budget",
        )
    return {**body, "budget": decimal_text(amount, field="budget")}
