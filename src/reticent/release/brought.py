"""Gaps that were filled before the rows came here, by a rule that looks at other rows: what a promise is then worth.

What was done to a file cannot be seen in it. The plan says it: `[survey] imputed_before = { rule = "deterministic",
reach = 40 }`, where one respondent can move up to 40 filled rows beside their own. Reads no row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pydantic import Field

from reticent.decimals import show
from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim
from reticent.privacy.convert import group
from reticent.tomlfile import Section, fill

KINDS = ("deterministic",)


class BroughtSection(Section):
    rule: str = KINDS[0]
    reach: int = Field(ge=1, le=2**40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """One respondent moves at most `reach` filled rows of others: a function of the rule and the survey's public size."""

    reach: int

    def size(self, change: Change) -> int:
        """How many changes of the promised kind one respondent makes: their own, and for each row that is moved one
        replaced, or one removed and one added."""
        return 1 + self.reach * (1 if change is Change.REPLACE else 2)

    def worth(self, claim: Claim) -> tuple[Fraction, Fraction | None] | None:
        """Epsilon and delta for one respondent as they were before filling; None for a delta that would reach 1.

        Guarantee   that of the claim to one respondent of the survey before its gaps were filled.
        Adjacency   the claim's, before filling.
        Theorem     THEORY 7.4, with `size` changes.
        Proof       proofs/release/brought.md
        Assumes     the rule is deterministic, and one respondent moves at most `reach` rows of others by it.
        Keeps back  nothing: no row is read.
        """
        if claim.measure not in ("pure", "approximate"):
            return None
        k = self.size(claim.change)
        try:
            return group(epsilon=claim.epsilon, delta=claim.delta, k=k)
        except PlanError:
            return k * claim.epsilon, None


def read_brought(raw: Mapping[str, Any] | None) -> Brought | None:
    """What the plan says of its rows; None where it says nothing."""
    if raw is None:
        return None
    section = fill(BroughtSection, raw, error=PlanError, at="survey.imputed_before")
    if section.rule not in KINDS:
        raise PlanError(
            "is 'deterministic': for other rules nothing is proved", field="survey.imputed_before.rule"
        )
    return Brought(reach=section.reach)


def check_brought(brought: Brought | None, *, is_sampled: bool) -> None:
    """Refuse to speak of a frame: amplification is for a respondent who is in one row, and here is in `reach` more."""
    if brought is not None and is_sampled:
        raise PlanError(
            "gaps were filled before, by rows of others who were drawn, and that is not amplified; claim the promise of "
            "the sample itself",
            field="sample",
        )


def external_imputation_section(brought: Brought | None, claim: Claim) -> dict[str, Any]:
    """What a preview and a release say of it; nothing where nothing was brought."""
    if brought is None:
        return {}
    k, found = brought.size(claim.change), brought.worth(claim)
    said = (
        f"gaps were filled before, by a rule by which one respondent moves up to {brought.reach} rows of others; for "
        f"one respondent of the survey as it was answered the promise is that for a group of {k}"
    )
    if found is None:
        return {"imputed_before": {"words": f"{said}, about which nothing can be said here", "group": k}}
    epsilon, delta = found
    if delta is None:
        worth = f"{said}: a delta of 1, which promises nothing"
        return {"imputed_before": {"words": worth, "group": k, "epsilon": show(epsilon), "delta": "1"}}
    more = f" and delta {float(delta):.3g}" if delta else ""
    return {
        "imputed_before": {
            "words": f"{said}: epsilon {show(epsilon)}{more}",
            "group": k,
            "epsilon": show(epsilon),
            "delta": float(delta),
        }
    }
