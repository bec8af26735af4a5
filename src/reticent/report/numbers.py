"""Numbers and texts as a reader sees them: as many digits as the interval carries, rounded against ourselves; and what intervals cover.

Texts have no control characters, and cells stand in the order of the plan.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, exp, log
from typing import Any

from reticent.exact import BARE, MOST_PLACES, places_for, rounded, rounded_down, rounded_up

nearest, downward, upward = rounded, rounded_down, rounded_up
HUGE = 14  # an epsilon whose factor is above a million
NINES = 9  # decimals of a percentage, before it is called 100


def places(estimate: Mapping[str, Any], *, most: int = MOST_PLACES) -> int:
    """Decimals that show two digits of the half of the interval; five digits of the value where there is none."""
    low, high = estimate.get("privacy_low"), estimate.get("privacy_high")
    if low is None or high is None or high <= low:
        return places_for(estimate.get("value") or 0.0, BARE, most=most)
    return places_for((high - low) / 2, most=most)


def scale_text(scale: float | None) -> str:
    """The scale of a noise: five digits, rounded up."""
    return upward(scale, places_for(scale or 0.0, BARE))


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal, rounded up."""
    return "" if share is None else f"{upward(float(Decimal(str(share)) * 100), 1)}\N{NO-BREAK SPACE}%"


def variation(cv: float | None) -> str:
    """A coefficient of variation as a percentage; beyond ten times the estimate no digits, which would say nothing."""
    return "over 1,000\N{NO-BREAK SPACE}%" if cv is not None and cv > 10 else percent(cv)


def factor(epsilon: Fraction) -> str:
    """How far the probability of a result can move: e to the epsilon, rounded up; where that is huge, to a power of 10."""
    if epsilon >= HUGE:
        return f"10 to the power of {ceil(float(epsilon) * (1 + 1e-12) / log(10))}"
    times = exp(float(epsilon))
    return upward(times * (1 + 1e-12), 2 if times < 10 else 1 if times < 100 else 0)


def certainty(epsilon: Fraction) -> str:
    """What an even guess can become, in percent, rounded up to the first decimal that is not a 9: e^eps / (1 + e^eps)."""
    percent = 100 * (1 + 1e-12) / (1 + exp(-float(epsilon)))
    shown = ((ceil(percent * 10**digits), digits) for digits in range(1, NINES))
    return next((f"{up / 10**digits:.{digits}f}" for up, digits in shown if up < 100 * 10**digits), "100")


def clean(value: Any) -> Any:
    """The same value; what a browser or a terminal would act on, and half characters, become a mark."""
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in value)
    if isinstance(value, Mapping):
        return {clean(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    return value


def columns_of(answer: Mapping[str, Any]) -> list[str]:
    """The columns of a table, as asked; a release read back from its file has its cells in another order."""
    found = sorted(
        {name for estimate in answer.get("estimates") or [] for name in estimate.get("cell") or {}}
    )
    asked = (answer.get("query") or {}).get("table")
    order = [name for name in asked if name in found] if isinstance(asked, list) else []
    return order + [name for name in found if name not in order]


def is_table(answer: Mapping[str, Any]) -> bool:
    """Whether the answer is a table of cells rather than one number."""
    estimates = answer.get("estimates") or []
    return len(estimates) > 1 or any(estimate.get("cell") for estimate in estimates)


NO_UNIT = "no unit"


def unit_of(answer: Mapping[str, Any]) -> str:
    """The unit in words; a weighted count stands for more people than were asked, and says so."""
    unit, query = str(answer.get("unit") or NO_UNIT), answer.get("query") or {}
    is_weighted = query.get("weight") and {"count", "table"} & set(query)
    return f"{unit}, weighted" if is_weighted and not unit.endswith(", weighted") else unit


def barless(answers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The answers without an interval because their noise has a confidential scale, or because they use such, and why: what
    makes the scale confidential, or the answer that they use."""
    found: dict[str, str] = {}
    for answer in answers:
        query = answer.get("query") or {}
        used = [name for name in query.get("difference") or query.get("ratio") or [] if name in found]
        hidden = [str(part["hidden"]) for part in answer.get("parts") or [] if (part or {}).get("hidden")]
        if _lacks_ends(answer) and (hidden or used):
            found[str(answer.get("name"))] = hidden[0] if hidden else str(used[0])
    return found


def has_total(estimate: Mapping[str, Any]) -> bool:
    """Whether an estimate has a total interval, even one that is open on a side, or a total margin."""
    return any(estimate.get(key) is not None for key in ("total_low", "total_high", "total_margin"))


def has_ends(estimate: Mapping[str, Any]) -> bool:
    """Whether an estimate has an interval for privacy noise, even one that is open on a side."""
    return any(estimate.get(key) is not None for key in ("privacy_low", "privacy_high"))


def _lacks_ends(answer: Mapping[str, Any]) -> bool:
    return not any(map(has_ends, answer.get("estimates") or []))


OTHERS = ("cells", "tables", "regression", "synth")
"""Sections with intervals of their own, of which they say themselves what these cover."""


def covers(document: Mapping[str, Any]) -> str:
    """The first line of a page: what its intervals cover; of the statistics alone where other products stand beside them."""
    estimates = [
        each for answer in document.get("statistics") or [] for each in answer.get("estimates") or []
    ]
    told = [each for each in estimates if has_total(each) or has_ends(each)]
    are_all = not any(document.get(key) for key in OTHERS)
    if not told:
        return f"No {'number' if are_all else 'statistic'} of this release has an interval."
    bare = " Where an estimate shows no interval, none is known." * (len(told) < len(estimates))
    if not any(map(has_total, told)):
        return (
            f"The intervals of {'this release' if are_all else 'the statistics'} cover privacy noise alone: no sampling error is "
            f"known{'' if are_all else ' of them'}, so they are no confidence intervals for the population.{bare}"
        )
    many = "Every number" if are_all else "Every statistic"
    both = f"{many} has two intervals: one for privacy noise, and a total for sampling and noise together"
    if all(map(has_total, told)):
        return f"{both}.{bare}"
    return f"{both}, but for those whose sampling error is not known: theirs cover privacy noise alone.{bare}"
