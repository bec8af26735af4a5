"""Read an `[[edit]]` of a plan: what follows from a record's own answers."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from reticent.errors import PlanError
from reticent.predicate.bind import AllOf, AnyOf, Bound, Is, Negation, bind
from reticent.predicate.parse import parse
from reticent.predicate.tree import Predicate, columns_used
from reticent.prepare.edits import Edit
from reticent.release.codes import read_code, repairable
from reticent.schema import Schema
from reticent.tomlfile import Section, fill


class EditSection(Section):
    when: str = Field(alias="if", min_length=1)
    then: dict[str, Any] = Field(min_length=1)
    replace: bool = False


def read_edit(raw: Mapping[str, Any], schema: Schema, at: str) -> tuple[tuple[Edit, ...], str]:
    """The edits that `raw` writes down, one for each column it sets, and the rule in words."""
    section = fill(EditSection, raw, error=PlanError, at=at)
    predicate = parse(section.when, field=f"{at}.if")
    when = bind(predicate, schema.coded, field=f"{at}.if")
    _check_decided(when, schema, f"{at}.if")
    _check_order(predicate, section.then, f"{at}.then")
    edits, said = [], []
    for name, value in section.then.items():
        field = f"{at}.then.{name}"
        column = repairable(name, schema, verb="edited", field=field)
        code = read_code(value, column, field=field)
        edits.append(Edit(when=when, column=name, code=code, replaces=section.replace))
        said.append(f"{name} was set to {column.text(code)}")
    which = "whatever was answered" if section.replace else "if it was missing"
    return tuple(edits), f"where {predicate}, {' and '.join(said)}, {which}"


def _check_decided(when: Bound, schema: Schema, field: str) -> None:
    """Who was asked is settled after the edits, from the edited answers; no edit can look at it."""
    for status in _statuses(when):
        if status.kind == "structural" or schema.columns[status.column].universe is not None:
            raise PlanError(
                f"'{status.column} is {status.kind}' is decided after the edits, when it is known who was asked; "
                "compare answers instead",
                field=field,
            )


def _statuses(when: Bound) -> Iterator[Is]:
    match when:
        case Is():
            yield when
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from _statuses(part)
        case Negation(part=part):
            yield from _statuses(part)


def _check_order(predicate: Predicate, then: Mapping[str, Any], field: str) -> None:
    """Several columns are set one after the other, so none of them may be what the rule asks about."""
    asked = next((name for name in then if name in columns_used(predicate)), None)
    if len(then) > 1 and asked is not None:
        raise PlanError(
            f"sets {asked}, which its own condition speaks of, beside another column; write one edit for each",
            field=field,
        )
