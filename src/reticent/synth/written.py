"""A model as files: one TOML file that says what it is, and arrays of doubles."""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from reticent.privacy.claim import Claim
from reticent.schema import Levels, Number, Schema
from reticent.synth.base import Conditional, Floats
from reticent.synth.domain import Axis, Domain
from reticent.synth.lists import Lists, lists_section

MODEL = "model.toml"
LISTS = "lists.npy"


def written(
    domain: Domain, steps: Sequence[Conditional], total: float, claim: Claim, lists: Lists | None = None
) -> dict[str, bytes]:
    """The array of each step, that of the noisy lists where they are kept, and the TOML file, which holds their digests."""
    files = {name_of(i): bytes_of(step.table) for i, step in enumerate(steps)}
    digests = [hashlib.sha256(data).hexdigest() for data in files.values()]
    told = told_of(domain, steps, total, claim, digests)
    if lists is not None:
        words, numbers = lists_section(lists)
        files[LISTS] = bytes_of(numbers)
        told["measured"] = {"sha256": hashlib.sha256(files[LISTS]).hexdigest(), **words}
    return sealed(told, files)


def sealed(told: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The arrays, and the TOML file that says `told` under a digest of it."""
    first = {"format": told["format"], "sha256": digest_of(told)}
    return {**files, MODEL: toml_of({**first, **told}).encode()}


def name_of(step: int) -> str:
    """The file of a step's array."""
    return f"step-{step:03d}.npy"


def bytes_of(table: Floats) -> bytes:
    """An array as a file of doubles."""
    file = io.BytesIO()
    np.save(file, np.ascontiguousarray(table, dtype="<f8"), allow_pickle=False)
    return file.getvalue()


def told_of(
    domain: Domain, steps: Sequence[Conditional], total: float, claim: Claim, digests: Sequence[str]
) -> dict[str, Any]:
    """All that the file says, but for its own digest."""
    names = domain.columns
    told = [
        {"column": names[step.place], "given": [names[place] for place in step.given], "sha256": digest}
        for step, digest in zip(steps, digests, strict=True)
    ]
    return {**common(domain, total, claim), "steps": told}


def common(domain: Domain, total: float, claim: Claim) -> dict[str, Any]:
    """What every kind of model says of itself."""
    axes = [_axis_section(axis, domain.schema) for axis in domain.axes]
    return {"format": 1, "total": repr(float(total)), "claim": claim.as_dict(), "axes": axes}


def _axis_section(axis: Axis, schema: Schema) -> dict[str, Any]:
    return {
        "column": axis.column,
        "words": words_of(schema.coded[axis.column]),
        "starts": list(axis.key.starts),
        "answers": axis.answers,
        "unasked": axis.has_unasked,
    }


def words_of(column: Levels | Number) -> list[str]:
    """Every level, or both bounds."""
    codes = range(column.low, column.high + 1) if isinstance(column, Levels) else (column.low, column.high)
    return [column.text(code) for code in codes]


def digest_of(told: Mapping[str, Any]) -> str:
    """Of what is said, not of how it is laid out."""
    text = json.dumps(told, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def toml_of(told: Mapping[str, Any]) -> str:
    """Plain values first, then tables, then lists of tables. JSON writes single values as TOML does."""
    heads = ("claim", "measured", "axes", "steps")
    lines = [f"{key} = {_value(value)}" for key, value in told.items() if key not in heads]
    parts = [("[claim]", told["claim"]), *(("[[axes]]", axis) for axis in told["axes"])]
    parts += [("[[steps]]", step) for step in told.get("steps", ())]
    if "measured" in told:
        parts += [("[measured]", told["measured"])]
    for head, table in parts:
        lines += ["", head, *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
