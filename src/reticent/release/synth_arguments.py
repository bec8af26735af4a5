"""The arguments of `Synthesizer` as the section of a plan that says the same: one reading, one set of refusals."""

from collections.abc import Mapping
from typing import Any

from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.release.survey import Survey
from reticent.release.synth_plan import Synth
from reticent.release.synth_section import SynthSection, read_synth
from reticent.schema.load import schema_from
from reticent.synth.domain import Domain
from reticent.synth.ruled import Rules
from reticent.synth.rules import read_rules
from reticent.tomlfile import fill

AT = "Synthesizer"
ELSEWHERE = ("codebook", "replaced", "ledger")
"""Arguments that a plan has in other sections."""


def planned(arguments: Mapping[str, Any], survey: Survey) -> Synth:
    """What is to be learned of this survey; refused where a plan would be. No row has been read."""
    change = Change.REPLACE if arguments["replaced"] else Change.ADD_REMOVE
    return read_synth(section_of(arguments), schema_from(survey.book()), change=change, at=AT)


def ruled(arguments: Mapping[str, Any], domain: Domain) -> Rules:
    """The rules among the arguments, for a network of this domain."""
    section = fill(SynthSection, section_of(arguments), error=PlanError, at=AT)
    return read_rules(domain, never=section.never, determines=section.determines, known=section.known)


def section_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The section, with what was left out left to its defaults. How many rows are drawn is said later."""
    given = {name: value for name, value in arguments.items() if name not in ELSEWHERE and value is not None}
    return {"name": "rows", "rows": 1, **{name: _plain(value) for name, value in given.items()}}


def _plain(value: Any) -> Any:
    """As TOML would have it: lists and dictionaries of words and numbers."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def check_rows(n: Any) -> int:
    """A number of rows to draw."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise PlanError("is a whole number from 1 up", field="n")
    return n
