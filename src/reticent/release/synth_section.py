"""Read the `[[synth]]` sections of a plan, naming what does not fit. No row has been read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from pydantic import Field

from reticent.engine.coding import Coding, check_coding
from reticent.errors import PlanError
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.privacy.claim import Change, amount
from reticent.release.asks import read_epsilon
from reticent.release.synth_plan import Synth
from reticent.schema import Schema
from reticent.synth.base import Holes, Spend, SynthesisMethod
from reticent.synth.domain import BINS, domain_of
from reticent.synth.heaps import heap_words
from reticent.synth.rules import read_rules
from reticent.tomlfile import Section, fill
from reticent.words import is_printable, nearest

MOST_SECTIONS = 20
MOST_VALUES = 20_000_000
LARGEST_DELTA = Fraction(1, 100)


class SynthSection(Section):
    name: str = Field(min_length=1, max_length=200)
    method: str = Field(max_length=100)
    missing: str = Holes.AVAILABLE.value
    rows: int = Field(ge=1, le=MOST_VALUES)
    epsilon: str
    delta: str | None = None
    columns: list[str] | None = Field(default=None, min_length=1, max_length=1000)
    bins: int = Field(default=BINS, ge=2, le=1000)
    point_masses: dict[str, list[Any]] = Field(default={}, max_length=100)
    copies: int | None = Field(default=None, ge=0, le=100)
    never: list[str] = Field(default=[], max_length=100)
    determines: dict[str, str] = Field(default={}, max_length=100)
    known: dict[str, dict[str, str]] = Field(default={}, max_length=100)


def read_synths(
    raw: Sequence[Mapping[str, Any]], schema: Schema, *, change: Change, repair: Repair = NO_REPAIR
) -> tuple[Synth, ...]:
    """All sections of a plan, in order."""
    if len(raw) > MOST_SECTIONS:
        raise PlanError(f"has more than {MOST_SECTIONS} entries; drop some", field="synth")
    found: list[Synth] = []
    for place, each in enumerate(raw):
        at = f"synth[{place}]"
        found.append(read_synth(each, schema, change=change, repair=repair, at=at))
        if found[-1].name in [before.name for before in found[:-1]]:
            raise PlanError(f"two sections are called {found[-1].name!r}", field=f"{at}.name")
    return tuple(found)


def read_synth(
    raw: Mapping[str, Any],
    schema: Schema,
    *,
    change: Change = Change.ADD_REMOVE,
    repair: Repair = NO_REPAIR,
    at: str = "synth",
) -> Synth:
    """The table that `raw` writes down."""
    section = fill(SynthSection, raw, error=PlanError, at=at)
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    with _placed(at):
        domain = domain_of(schema, section.columns, bins=section.bins, heaps=section.point_masses)
        check_coding(Coding(keys=tuple(axis.key for axis in domain.axes)), schema, repair)
        rules = read_rules(domain, never=section.never, determines=section.determines, known=section.known)
    synth = Synth(
        name=section.name,
        method=_method(section.method, f"{at}.method"),
        holes=_holes(section.missing, f"{at}.missing"),
        rows=section.rows,
        bins=section.bins,
        heaps=heap_words(section.point_masses, schema, domain.columns),
        domain=domain,
        spend=Spend(
            epsilon=read_epsilon(section.epsilon, field=f"{at}.epsilon"),
            delta=_delta(section.delta, f"{at}.delta"),
            change=change,
            records=schema.at_most,
        ),
        rules=rules,
        copies=_copies(section, at),
        never=tuple(section.never),
        determines=dict(section.determines),
        written=dict(raw),
    )
    _check_size(synth, at)
    with _placed(at):
        synth.method.check(domain, synth.holes, synth.spend)
    return synth


def _method(name: str, field: str) -> SynthesisMethod:
    from reticent.synth.registry import find  # compiles, so loaded only where a plan has synthetic tables

    with _placed(field, keep=False):
        return find(name)


def _holes(word: str, field: str) -> Holes:
    known = [each.value for each in Holes]
    if word not in known:
        raise PlanError(f"is one of {', '.join(known)}{nearest(word[:80], known)}", field=field)
    return Holes(word)


def _delta(text: str | None, field: str) -> Fraction:
    if text is None:
        return Fraction(0)
    delta = amount(text, field=field)
    if delta > LARGEST_DELTA:
        raise PlanError("is above 0.01, which promises nothing to one in a hundred", field=field)
    return delta


def _copies(section: SynthSection, at: str) -> int:
    is_values = section.missing == Holes.VALUES.value
    if section.copies is not None and not is_values:
        raise PlanError(
            f"goes with missing = {Holes.VALUES.value!r} alone; other rows have nothing left to fill",
            field=f"{at}.copies",
        )
    if section.copies is None:
        return 1 if is_values else 0
    return section.copies


def _check_size(synth: Synth, at: str) -> None:
    if synth.rows * len(synth.domain.axes) * synth.tables > MOST_VALUES:
        raise PlanError(
            f"rows x columns x copies is above {MOST_VALUES:,}; draw fewer rows", field=f"{at}.rows"
        )


@contextmanager
def _placed(at: str, *, keep: bool = True) -> Iterator[None]:
    """What a part of the library refuses, said at its place in the plan."""
    try:
        yield
    except PlanError as problem:
        said, field = str(problem.args[0]), problem.field
    else:
        return
    inner = f"{at}.{field}" if keep and field in SynthSection.model_fields else at
    raise PlanError(said.rstrip("."), field=field if field == "impute" else inner)
