"""A release as it may be drawn: text without control characters, cells in the order of the plan."""

from collections.abc import Mapping, Sequence
from typing import Any


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


def unit_of(answer: Mapping[str, Any]) -> str:
    """The unit in words; a weighted count stands for more people than were asked, and says so."""
    unit, query = str(answer.get("unit") or "no unit"), answer.get("query") or {}
    is_weighted = query.get("weight") and {"count", "table"} & set(query)
    return f"{unit}, weighted" if is_weighted and not unit.endswith(", weighted") else unit


def barless(answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """The answers without an error bar because their noise has a confidential scale, or because they use such."""
    found: list[str] = []
    for answer in answers:
        query = answer.get("query") or {}
        used = query.get("difference") or query.get("ratio") or []
        hidden = any((part or {}).get("hidden") for part in answer.get("parts") or [])
        if _lacks_ends(answer) and (hidden or any(name in found for name in used)):
            found.append(str(answer.get("name")))
    return found


def _lacks_ends(answer: Mapping[str, Any]) -> bool:
    estimates = answer.get("estimates") or []
    return all(each.get("privacy_low") is None and each.get("privacy_high") is None for each in estimates)
