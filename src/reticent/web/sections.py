"""The sections of a plan's text as the plan page lists them, with the amounts that a slider can move. No row is read.

A text need not be a plan yet: whatever is TOML is listed, and every section of the grammar is, also those that no form writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import log10
from typing import Any

from reticent.exact import read_decimal

LISTED = {
    "statistic": "Statistics",
    "tables": "Tables that add up",
    "regression": "Regressions",
    "cells": "Small cells",
    "synth": "Synthetic rows",
    "edit": "Edits",
    "impute": "Imputations",
}
SINGLE = {
    "weight": "Known totals",
    "design": "Sampling design",
    "sample": "How the sample was drawn",
    "partition": "Piece of the survey",
    "wave": "Wave of a panel",
    "expect": "Expected, from public sources",
}
FRAME = "Weights, design and what is expected"
WITH_CV = ("count", "total", "mean", "variance", "proportion", "table")
"""Statistics whose preview finds an epsilon for a coefficient of variation, once it knows what to expect."""
UNITS = {"epsilon": "ε", "rho": "ρ"}
LOWEST, HIGHEST = {"ε": -2, "ρ": -4}, {"ε": 1, "ρ": 0}
"""Powers of ten between which the slider moves."""
MOST_WORDS, MOST_SHOWN, MOST_DIGITS = 300, 12, 30

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSection:
    """One section of the plan as the page lists it.

    **Fields**

    - `section`: what it is called in the text.
    - `place`: its number among those of that name.
    - `name`: what it is called by whoever wrote it.
    - `told`: what else stands in it.
    - `amount`: its share of the budget, as it is written; empty where it has none of its own.
    - `unit`: what that is counted in, by its key.
    - `expected`: the value that its preview assumes, as it is written; None where it takes none.
    """

    section: str
    place: int
    name: str
    told: str
    amount: str = ""
    unit: str = "epsilon"
    expected: str | None = None

    @property
    def id(self) -> str:
        return f"{self.section}-{self.place}"

    @property
    def at(self) -> Path:
        """Where its amount stands in the text."""
        return (self.section, self.unit) if self.section in SINGLE else (self.section, self.place, self.unit)

    @property
    def sign(self) -> str:
        return UNITS[self.unit]

    @property
    def lowest(self) -> int:
        return LOWEST[self.sign]

    @property
    def steps(self) -> int:
        """A hundred for each power of ten."""
        return 100 * (HIGHEST[self.sign] - self.lowest)

    @property
    def slider(self) -> int:
        """Where the slider stands."""
        value = float(read_decimal(self.amount) or 0)
        return min(self.steps, max(0, round(100 * (log10(value) - self.lowest)))) if value > 0 else 0

    @property
    def reach(self) -> str:
        """From where to where the slider moves."""
        return f"{10.0**self.lowest:g} to {10 ** HIGHEST[self.sign]:g}"


def sections(data: Mapping[str, Any]) -> list[PlanSection]:
    """The sections of a plan, kind by kind."""
    made = []
    for section in LISTED:
        listed = data.get(section)
        for place, each in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(each, Mapping):
                made.append(_section(section, place, each))
    single = [(key, data[key]) for key in SINGLE if isinstance(data.get(key), Mapping)]
    return [*made, *(_section(key, 0, {**each, "name": _titled(key, each)}) for key, each in single)]


def _titled(key: str, each: Mapping[str, Any]) -> str:
    return f"{SINGLE[key]}: {each['name']}" if "name" in each else SINGLE[key]


def grouped(found: list[PlanSection]) -> list[tuple[str, str, list[PlanSection]]]:
    """Sections of one kind together, each kind with its heading; those that stand once are a kind."""
    kinds = {**{key: (title, (key,)) for key, title in LISTED.items()}, "frame": (FRAME, tuple(SINGLE))}
    made = (
        (key, title, [each for each in found if each.section in held]) for key, (title, held) in kinds.items()
    )
    return [each for each in made if each[2]]


def _section(section: str, place: int, each: Mapping[str, Any]) -> PlanSection:
    unit = "rho" if "rho" in each else "epsilon"
    named = each.get("name") or each.get("column") or ", ".join(_texts(each.get("columns")))
    told = {key: value for key, value in each.items() if key not in ("name", "epsilon", "rho", "query")}
    query = each.get("query")
    told = {**(query if isinstance(query, Mapping) else {}), **told}
    return PlanSection(
        section=section,
        place=place,
        name=str(named or each.get("if") or LISTED.get(section, section))[:MOST_WORDS],
        told=" · ".join(f"{key} {_short(value)}" for key, value in told.items())[:MOST_WORDS],
        amount=written(each.get(unit)),
        unit=unit,
        expected=_expected(each) if section == "statistic" else None,
    )


def _expected(each: Mapping[str, Any]) -> str | None:
    """The expected value of a statistic that costs something and has a coefficient of variation."""
    query, expect = each.get("query"), each.get("expect")
    if not isinstance(query, Mapping) or not {*query} & {*WITH_CV}:
        return None
    return written(expect.get("value")) if isinstance(expect, Mapping) else ""


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value[:MOST_SHOWN]] if isinstance(value, list) else []


def _short(value: Any) -> str:
    """A value in few words: of sections within, their names."""
    if isinstance(value, Mapping):
        return "(" + ", ".join(f"{key} {_short(each)}" for key, each in [*value.items()][:MOST_SHOWN]) + ")"
    if value == []:
        return "nothing"
    if isinstance(value, list):
        inner = [each for each in value if isinstance(each, Mapping)]
        if inner and all("name" in each for each in inner):
            return ", ".join(str(each["name"]) for each in inner)[:MOST_WORDS]
        if value and all(isinstance(each, list) for each in value):
            return "; ".join(" by ".join(_texts(each)) for each in value[:MOST_SHOWN])[:MOST_WORDS]
        more = f" and {len(value) - MOST_SHOWN} more" if len(value) > MOST_SHOWN else ""
        return f"{len(inner)} given" if len(inner) > 3 else ", ".join(map(_short, value[:MOST_SHOWN])) + more
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else written(value)


def written(value: Any) -> str:
    """A number or a text as it stands in TOML, without its quotes; empty where there is none."""
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < MOST_DIGITS:
        return f"{value:f}"
    return str(value)[:MOST_WORDS] if value is not None else ""


def unit_of(data: Mapping[str, Any]) -> str:
    """What the whole plan is counted in, by its key."""
    protect = data.get("protect")
    return "rho" if isinstance(protect, Mapping) and "rho" in protect else "epsilon"


def cap_of(data: Mapping[str, Any]) -> str:
    """What the whole plan may cost, as it is written; empty where it is not."""
    protect = data.get("protect")
    return written(protect.get(unit_of(data))) if isinstance(protect, Mapping) else ""
