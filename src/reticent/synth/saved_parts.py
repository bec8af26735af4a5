"""What the TOML file of a saved network says, written and read; every word is held against the codebook."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import Field

from reticent.engine.wants import Key, has_universe
from reticent.errors import PlanError, SourceError
from reticent.privacy.claim import About, Arithmetic, Change, Claim, Measure, check_exact
from reticent.schema import Levels, Number, Schema
from reticent.synth.base import Network
from reticent.synth.domain import Axis
from reticent.tomlfile import Section

MODEL = "model.toml"
# A decimal or a fraction. No exponents: a few letters would be a number of a gigabyte.
Amount = Annotated[str, Field(pattern=r"^[0-9]{1,80}([./][0-9]{1,80})?$")]


class AxisPart(Section):
    """One column, its levels or bounds in the codebook's words, its bins and its cells."""

    column: str
    words: list[str]
    starts: list[int]
    answers: int
    unasked: bool


class StepPart(Section):
    """One step, by the names of its columns, and the digest of its array."""

    column: str
    given: list[str]
    sha256: str


class TheoremPart(Section):
    """What a claim rests on."""

    theorem: str
    proof: str


class ClaimPart(Section):
    """A claim as its dictionary."""

    measure: Measure
    epsilon: Amount = "0"
    delta: Amount = "0"
    rho: Amount = "0"
    change: str
    rests_on: list[TheoremPart]
    arithmetic: Arithmetic
    about: About

    def claim(self) -> Claim:
        """The claim itself, which checks its amounts."""
        return Claim(
            measure=self.measure,
            epsilon=Fraction(self.epsilon),
            delta=Fraction(self.delta),
            rho=Fraction(self.rho),
            change=Change(self.change),
            rests_on=tuple((each.theorem, each.proof) for each in self.rests_on),
            arithmetic=self.arithmetic,
            about=self.about,
        )


class ModelPart(Section):
    """The whole file."""

    format: Literal[1]
    sha256: str
    total: str
    claim: ClaimPart
    axes: list[AxisPart]
    steps: list[StepPart]


def told_of(network: Network, digests: Sequence[str]) -> dict[str, Any]:
    """All that the file says, but for its own digest."""
    names = network.domain.columns
    axes = [_axis_told(axis, network.domain.schema) for axis in network.domain.axes]
    steps = [
        {"column": names[step.place], "given": [names[place] for place in step.given], "sha256": digest}
        for step, digest in zip(network.steps, digests, strict=True)
    ]
    total, claim = repr(float(network.total)), network.claim.as_dict()
    return {"format": 1, "total": total, "claim": claim, "axes": axes, "steps": steps}


def _axis_told(axis: Axis, schema: Schema) -> dict[str, Any]:
    return {
        "column": axis.column,
        "words": _words(schema.coded[axis.column]),
        "starts": list(axis.key.starts),
        "answers": axis.answers,
        "unasked": axis.has_unasked,
    }


def _words(column: Levels | Number) -> list[str]:
    """Every level, or both bounds."""
    codes = range(column.low, column.high + 1) if isinstance(column, Levels) else (column.low, column.high)
    return [column.text(code) for code in codes]


def digest_of(told: Mapping[str, Any]) -> str:
    """Of what is said, not of how it is laid out."""
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def toml_of(told: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then lists of tables. JSON writes single values as TOML does."""
    lines = [f"{key} = {_value(told[key])}" for key in ("format", "sha256", "total")]
    for head, table in (("[claim]", told["claim"]), *(("[[axes]]", axis) for axis in told["axes"])):
        lines += ["", head, *(f"{key} = {_value(value)}" for key, value in table.items())]
    for step in told["steps"]:
        lines += ["", "[[steps]]", *(f"{key} = {_value(value)}" for key, value in step.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def axis_of(part: AxisPart, schema: Schema) -> Axis:
    """The axis, if the codebook still has its column with the same cells."""
    if part.column not in schema.coded:
        raise SourceError(f"no column {part.column[:80]!r} in the codebook", field=MODEL)
    column, starts = schema.coded[part.column], tuple(part.starts)
    if _words(column) != part.words:
        raise SourceError(f"the codebook has other levels or bounds for {part.column}", field=MODEL)
    rising = all(a < b for a, b in pairwise(starts))
    if starts and not (rising and starts[0] == column.low and starts[-1] <= column.high):
        raise SourceError(f"the bins of {part.column} do not fit the codebook", field=MODEL)
    key = Key(column=part.column, starts=starts, silent=True)
    if key.answers(schema) != part.answers or has_universe(schema, part.column) != part.unasked:
        raise SourceError(f"the cells of {part.column} do not fit the codebook", field=MODEL)
    return Axis(key=key, answers=part.answers, has_unasked=part.unasked)


def total_of(text: str) -> float:
    """The noisy number of respondents."""
    total = None
    with suppress(ValueError):
        total = float(text)
    if total is None or not isfinite(total):
        raise SourceError("is no number", field=f"{MODEL}: total")
    return total


def claim_of(part: ClaimPart) -> Claim:
    """The claim, if one like it can be made: no model is learned in ideal reals."""
    with suppress(PlanError, ValueError, ZeroDivisionError):
        return check_exact(part.claim(), field="arithmetic")
    raise SourceError("is no claim that could have been made", field=f"{MODEL}: claim")
