"""Direct answers in a release: the noisy tables behind synthetic rows, kept in its JSON, and questions put to them later.

Everything here reads released numbers. Whoever holds the release can ask, as often as they like, and nothing is charged.
"""

import binascii
import zlib
from base64 import b64decode
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from reticent.engine.wants import Key
from reticent.errors import ReticentError
from reticent.exact import show
from reticent.files import fill, tidy_csv
from reticent.refine.total import DesignFactor, released_design_factor
from reticent.release.synth_table import unpacked
from reticent.schema import Schema
from reticent.schema.codebook import schema_from
from reticent.synth.answer import DirectAnswer, answered
from reticent.synth.domain import HOLE, UNASKED, Axis, Domain, Rows
from reticent.synth.lists import Lists, ListsPart, Wholes, lists_from, lists_size
from reticent.synth.marginals.study import plain
from reticent.synth.questions import LEVEL, read_question

Table = Mapping[str, Any]
MOST_NUMBERS = 2**26
SOURCES = {"bought": "bought with this release", "declared": "declared for the survey"}
COLUMNS = (
    *(
        "release",
        "table",
        "answer",
        "estimate",
        "level",
        "total_low",
        "total_high",
        "noise_se",
        "sampling_se",
    ),
    *("rests_on", "noise_in_rows", "chosen_from_data", "answered", "model_only", "meaning"),
)


def direct_answer_section(name: str, answer: DirectAnswer) -> dict[str, Any]:
    """One answer in a release. Of a table that was not measured nobody knows how many answered it."""
    return {
        "name": name,
        "words": answer.words,
        "estimate": _finite(answer.estimate),
        "level": answer.level,
        "total_low": _finite(answer.low),
        "total_high": _finite(answer.high),
        "noise_se": _finite(answer.noise),
        "sampling_se": _finite(answer.sampling),
        **({"design": _design(answer.design)} if answer.design else {}),
        "rests_on": list(answer.columns),
        "noise_in_rows": _finite(answer.deviation),
        "chosen_from_data": answer.is_chosen,
        "answered": answer.answered if answer.columns else None,
        "merged": answer.merged,
        "model_only": answer.is_model_only,
        "meaning": meaning(answer),
    }


def _design(factor: DesignFactor) -> dict[str, Any]:
    """The design factor that an answer used: where it comes from, and how well it is known."""
    told = {"source": factor.source, "design_effect": round(factor.effect, 4)}
    return {**told, **({"degrees_of_freedom": round(factor.df, 1)} if isfinite(factor.df) else {})}


def meaning(answer: DirectAnswer) -> str:
    """What the interval covers, in a sentence, or why there is none."""
    table = f"from the noisy tables of {' and '.join(answer.columns)}" if answer.columns else ""
    table += ", which were chosen from the data" if answer.is_chosen else ""
    if answer.low is None and not isfinite(answer.estimate):
        return f"no number: {answer.reason}"
    if answer.low is None:
        source = "model only, from synthetic rows" if answer.is_model_only else f"an estimate {table}".strip()
        return f"{source}, without an interval: {answer.reason}"
    said = f"sampling and privacy noise, {answer.level:g}, {table}"
    missing = (
        f"; {answer.answered:.0%} of those asked answered, taken to be a random part"
        if answer.answered < 1
        else ""
    )
    merged = (
        f"; {answer.merged:.1%} of rows are in rare cells put together" if answer.merged >= 0.0005 else ""
    )
    return f"{said}{_design_words(answer.design)}{missing}{merged}"


def _design_words(factor: DesignFactor | None) -> str:
    if factor is None:
        return ""
    known = f", known with {factor.df:.1f} degrees of freedom" if isfinite(factor.df) else ""
    source = SOURCES.get(factor.source, factor.source)
    return f"; sampling with the design effect {factor.effect:.4g}, {source}{known}"


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def query(
    document: Mapping[str, Any],
    raw: Mapping[str, Any],
    *,
    table: str | None = None,
    level: float = LEVEL,
    design_effect: float | str | None = None,
) -> tuple[DirectAnswer, ...]:
    """Put a question to the noisy tables behind one synthetic table of a release.

    Without a `design_effect` of its own, the sampling part takes the design factor that the release tells, if it tells one.
    """
    found = _table(document, table)
    domain, lists = lists_of(found)
    question = read_question(raw, domain)
    return answered(
        question,
        lists,
        lambda: _rows(found, domain),
        level=level,
        design_effect=design_effect,
        released=released_design_factor(document),
    )


def _table(document: Mapping[str, Any], name: str | None) -> Table:
    tables = [each for each in document.get("synth") or [] if name is None or each["name"] == name]
    if len(tables) != 1:
        many = "no" if not tables else "more than one"
        raise ReticentError(f"the release has {many} synthetic table of that name; name one", field="table")
    return dict(tables[0])


def lists_of(table: Table) -> tuple[Domain, Lists | None]:
    """The domain of a synthetic table as its release tells it, and its noisy tables if they were kept."""
    told, schema = table.get("measured"), _schema(table)
    axes = (
        told["axes"] if told else [{"starts": [], "answers": 0, "unasked": False} for _ in table["columns"]]
    )
    domain = Domain(
        schema=schema,
        axes=tuple(
            _axis(axis, column["name"], schema) for axis, column in zip(axes, table["columns"], strict=True)
        ),
    )
    if not told:
        return domain, None
    words = {key: value for key, value in told.items() if key not in ("axes", "numbers")}
    part = fill(ListsPart, words, error=ReticentError, at="measured")
    numbers = _numbers(told["numbers"], lists_size(part))
    lists = lists_from(part, numbers, domain, _plain(domain, part))
    if lists is None:
        raise ReticentError("holds noisy tables that do not fit its columns", field="measured")
    return domain, lists


def _axis(told: Mapping[str, Any], column: str, schema: Schema) -> Axis:
    key = Key(column=column, starts=tuple(told["starts"]), silent=True)
    return Axis(key=key, answers=key.answers(schema), has_unasked=bool(told["unasked"]))


def _plain(domain: Domain, part: ListsPart) -> tuple[Wholes, ...]:
    return tuple(side.into for side in plain(domain, part.missing).sides)


def _numbers(text: str, size: int) -> Any:
    data, inflater = b"", zlib.decompressobj()
    with suppress(zlib.error, binascii.Error):
        data = inflater.decompress(b64decode(text, validate=True), 8 * min(size, MOST_NUMBERS) + 1)
    if len(data) != 8 * size or not inflater.eof:
        raise ReticentError("holds noisy tables that are not whole", field="measured")
    return np.frombuffer(data, dtype="<f8")


def _schema(table: Table) -> Schema:
    """The columns as the release tells them: levels, or bounds and grid."""
    columns = {}
    for column in table["columns"]:
        if "levels" in column:
            columns[column["name"]] = {**_kind(column), "levels": list(column["levels"]), "text": True}
        else:
            columns[column["name"]] = {"kind": "decimal", "grid": column["grid"], "bounds": _bounds(column)}
    return schema_from({"survey": {"name": "release", "unit": "row"}, "columns": columns})


def _kind(column: Mapping[str, Any]) -> dict[str, Any]:
    """Categorical, or ordinal with the positions of its levels."""
    if not column.get("ordered"):
        return {"kind": "categorical"}
    return {"kind": "ordinal", **({"positions": column["positions"]} if "positions" in column else {})}


def _bounds(column: Mapping[str, Any]) -> list[str]:
    grid = Fraction(column["grid"])
    return [show(column[end] * grid, digits=18) for end in ("low", "high")]


def _rows(table: Table, domain: Domain) -> Rows:
    """The synthetic rows as codes of the domain."""
    made = {}
    for column, numbers in zip(table["columns"], unpacked(table), strict=True):
        size, low = column["high"] - column["low"] + 1, column["low"]
        shift = domain.schema.coded[column["name"]].low
        codes = numbers + (shift if "levels" in column else low)
        made[column["name"]] = np.where(numbers == size, HOLE, np.where(numbers > size, UNASKED, codes))
    return made


def answers_csv(document: Mapping[str, Any]) -> bytes:
    """The answers of all synthetic tables as tidy lines."""
    return tidy_csv(
        COLUMNS,
        (_line(document, table, each) for table in document["synth"] for each in table.get("answers", ())),
    )


def _line(document: Mapping[str, Any], table: Table, told: Mapping[str, Any]) -> list[Any]:
    name = f"{told['name']}: {told['words']}" if told["name"] != told["words"] else told["name"]
    head = [document["id"], table["name"], name]
    numbers = [
        told[key] for key in ("estimate", "level", "total_low", "total_high", "noise_se", "sampling_se")
    ]
    rest = [" x ".join(told["rests_on"]), told["noise_in_rows"], told["chosen_from_data"], told["answered"]]
    return [*head, *numbers, *rest, told["model_only"], told["meaning"]]
