"""`reticent amplify --missing`: what promises about an incomplete table are worth to the complete truth behind it."""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import typer

from reticent.errors import PlanError
from reticent.exact import show
from reticent.files import Section, fill, read_toml
from reticent.privacy.claim import Change, amount
from reticent.privacy.missingness import (
    EVERY_ROW,
    IndependentMask,
    Sets,
    Use,
    amplified,
    amplified_both_ways,
    amplified_delta,
    amplified_replaced,
    first_order,
    masks_of,
    sets_of,
)
from reticent.privacy.missingness.printed import printed_algorithm4, sound_partition

ONE_WAY, TOO = "adding or removing", "that, and replacing"
LINES = (
    (Change.ADD_REMOVE, ONE_WAY, amplified),
    (Change.REPLACE, ONE_WAY, amplified_both_ways),
    (Change.REPLACE, TOO, amplified_replaced),
)
NOT_A_PROMISE = "For comparison, not a guarantee: "
CONDITIONS = (
    "It may be claimed while nobody who reads the release knows who left which question unanswered, if whether one",
    "respondent answers depends neither on other respondents nor on which other questions are answered, and if the chances",
    "bound everybody's, whatever their answers: the design's, or bounds from above that were released privately, not",
    "counts from this table. List everything that is run on it.",
)


class Ran(Section):
    """One mechanism of the file: what must be answered, and what it costs."""

    on: list[str] | None = None
    any_of: list[list[str]] | None = None
    every_row: bool = False
    epsilon: str
    delta: str = ""


class Incomplete(Section):
    """The file: how often each answer is there at most, and what is run."""

    observed: dict[str, str]
    mechanism: list[Ran]


def say(missing: str, mechanisms: Sequence[str], *, masks: str, as_json: bool) -> None:
    """Print the exact cost for each change, and the published accounts beside it."""
    if not missing:
        raise PlanError("say --missing, such as --missing 'age=1,income=0.75'", field="call")
    masks_of(masks)
    law, uses = _from_file(missing, mechanisms) if missing.endswith(".toml") else _typed(missing, mechanisms)
    told = _told(uses, law)
    if as_json:
        typer.echo(json.dumps(told, ensure_ascii=False, allow_nan=False))
    else:
        _print(told)


def _told(uses: Sequence[Use], law: IndependentMask) -> dict[str, Any]:
    delta = amplified_delta(uses, law)
    if delta >= 1:
        raise PlanError(
            f"they come to {show(delta)} for the truth, and from 1 up nothing is guaranteed; use smaller ones",
            field="delta",
        )
    rows = [
        {"hidden": change.value, "mechanisms_hide": hide, "epsilon": show(cost(uses, law))}
        for change, hide, cost in LINES
        if not delta or change is Change.ADD_REMOVE
    ]
    return {
        "held": _held(uses),
        "rows": rows,
        **({"delta": show(delta)} if delta else {}),
        "taken_as_observed": list(law.taken([u.sets for u in uses])),
        "comparison": {"first_order": show(first_order(uses, law)), **_published(uses, law)},
        "claim_only_if": " ".join(CONDITIONS),
    }


def _held(uses: Sequence[Use]) -> dict[str, Any]:
    """What is promised about the table itself: the sums."""
    epsilon, delta = (
        sum(each, Fraction(0)) for each in zip(*((u.epsilon, u.delta) for u in uses), strict=True)
    )
    return {"epsilon": show(epsilon), **({"delta": show(delta)} if delta else {}), "mechanisms": len(uses)}


def _published(uses: Sequence[Use], law: IndependentMask) -> dict[str, str]:
    """The search of the published algorithm, where it is short enough to be made."""
    try:
        return {
            "algorithm_4": show(printed_algorithm4(uses, law)),
            "algorithm_4_made_sound": show(sound_partition(uses, law)),
        }
    except PlanError:
        return {}


def _print(told: dict[str, Any]) -> None:
    held = told["held"]
    with_delta = f", delta {told['delta']}" if "delta" in told else ""
    and_delta = f", delta {held['delta']}" if "delta" in held else ""
    typer.echo(f"epsilon {held['epsilon']}{and_delta} about the data held, {held['mechanisms']} mechanisms")
    rows = [("hidden in the truth", "mechanisms hide", "epsilon for the truth")]
    rows += [(row["hidden"], row["mechanisms_hide"], row["epsilon"] + with_delta) for row in told["rows"]]
    widths = [max(len(row[place]) for row in rows) for place in (0, 1)]
    for row in rows:
        typer.echo(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}")
    if told["taken_as_observed"]:
        names = ", ".join(told["taken_as_observed"])
        typer.echo(
            f"A bound from above: the sum was too long, and these were taken as always answered: {names}."
        )
    beside = told["comparison"]
    typer.echo(f"{NOT_A_PROMISE}the sum of chance times epsilon is {beside['first_order']}.")
    if "algorithm_4" in beside:
        typer.echo(f"{NOT_A_PROMISE}algorithm 4 of Mohapatra et al. 2024 gives {beside['algorithm_4']}.")
        typer.echo(f"Made sound, that algorithm gives {beside['algorithm_4_made_sound']}.")
    for line in CONDITIONS:
        typer.echo(line)


def _typed(missing: str, mechanisms: Sequence[str]) -> tuple[IndependentMask, list[Use]]:
    chances = dict(_pair(part) for part in _parts(missing, "--missing"))
    if len(chances) < len(_parts(missing, "--missing")):
        raise PlanError("names an answer twice", field="--missing")
    if not mechanisms:
        raise PlanError("say --mechanism, such as --mechanism 'age,income:0.5'", field="call")
    return IndependentMask(chances), [_mechanism(text) for text in mechanisms]


def _pair(part: str) -> tuple[str, Fraction]:
    name, found, text = part.partition("=")
    if not found or not name.strip():
        raise PlanError("is written as 'age=1,income=0.75'", field="--missing")
    return name.strip(), _chance(text.strip(), "--missing")


def _mechanism(text: str) -> Use:
    names, *costs = text.split(":")
    if len(costs) not in (1, 2):
        raise PlanError("is written as 'age,income:0.5', or with a delta after it", field="--mechanism")
    sets = (
        EVERY_ROW
        if names.strip() == "*"
        else sets_of(*(_parts(one, "--mechanism") for one in names.split("|")))
    )
    return _use(sets, costs[0].strip(), costs[1].strip() if costs[1:] else "", at="--mechanism")


def _from_file(name: str, mechanisms: Sequence[str]) -> tuple[IndependentMask, list[Use]]:
    if mechanisms:
        raise PlanError("the file lists the mechanisms; leave --mechanism out", field="call")
    read = fill(Incomplete, read_toml(Path(name), error=PlanError), error=PlanError, at="")
    chances = {key: _chance(text, f"observed.{key}") for key, text in read.observed.items()}
    return IndependentMask(chances), [_ran(each, f"mechanism[{k}]") for k, each in enumerate(read.mechanism)]


def _ran(each: Ran, at: str) -> Use:
    said = [*([[each.on]] if each.on else []), *([each.any_of] if each.any_of else [])]
    said += [[[]]] if each.every_row else []
    if len(said) != 1:
        raise PlanError("say one of on, any_of and every_row", field=at)
    return _use(sets_of(*said[0]), each.epsilon, each.delta, at=at)


def _use(sets: Sets, epsilon: str, delta: str, *, at: str) -> Use:
    small = amount(delta, field=at) if delta else Fraction(0)
    return Use(sets=sets, epsilon=amount(epsilon, field=at), delta=small)


def _parts(text: str, at: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise PlanError("has an empty name; separate names with one comma", field=at)
    return parts


def _chance(text: str, at: str) -> Fraction:
    if re.fullmatch(r"[0-9]{1,12}/[0-9]{1,12}", text, re.ASCII) and int(text.split("/")[1]):
        return Fraction(text)
    return amount(text, field=at)
