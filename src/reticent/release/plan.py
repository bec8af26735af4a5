"""A plan: what will be asked, of whom, at what cost. Everything about it is known before a row is read."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from reticent.decimals import read_decimal, show
from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim, amount, compose
from reticent.query.kinds import Derived, Margin, Query, Variance
from reticent.query.read import read_query
from reticent.release.cost import claim_of
from reticent.release.sections import FORMAT, AskSection, PlanSections
from reticent.schema import Schema
from reticent.schema.load import schema_from
from reticent.sensitivity.neighbours import Neighbours
from reticent.tomlfile import fill, read_toml
from reticent.words import is_printable, nearest

LARGE = 20
LEAST = Fraction(1, 10**6)
DEEPEST = 2  # exact quotients of quotients double in length each time, and leave the doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question: its query, its budget, and the error bar it wants."""

    name: str
    query: Query
    epsilon: Fraction
    level: Fraction = Fraction(95, 100)
    bar: Fraction = Fraction(0)
    variance: str | None = None
    expected: tuple[Fraction, int | None] | None = None
    written: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The asks, the codebook they speak of, and the promise they add up to."""

    release_id: str
    title: str
    schema: Schema
    change: Change
    cap: Fraction
    asks: tuple[Ask, ...]
    digest: str
    rows: int | None = None
    design_effect: Fraction | None = None
    source: str = ""
    table: str | None = None
    ledger: str = ""
    codebook: str = ""
    folder: Path = Path()
    accepts_large: bool = False

    @property
    def neighbours(self) -> Neighbours:
        """The change that must stay hidden, as the bounds take it."""
        return Neighbours(replaced=self.change is Change.REPLACE, records=self.schema.at_most)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """One claim for each ask that costs anything, from public numbers alone."""
        found = (claim_of(ask.query, ask.epsilon, ask.bar, self.change) for ask in self.asks)
        return tuple(claim for claim in found if claim is not None)

    @property
    def claim(self) -> Claim:
        """What the whole plan promises."""
        return compose(self.claims)

    @property
    def cost(self) -> Fraction:
        """What a release of this plan charges: the epsilon its asks use, which may be below the cap."""
        return self.claim.epsilon


def read_plan(path: Path) -> Plan:
    """The plan in the file at `path`, with the codebook it names."""
    data = read_toml(path, error=PlanError)
    sections = _sections(data)
    codebook = read_toml(path.parent / sections.survey.codebook, error=PlanError)
    return replace(plan_from(data, codebook), folder=path.parent)


def plan_from(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> Plan:
    """A plan from the dictionaries that its TOML and its codebook's stand for."""
    sections = _sections(data)
    schema = schema_from(dict(codebook))
    if not schema.finished:
        raise PlanError("is marked unfinished; complete it and remove 'unfinished'", field="survey.schema")
    asks = tuple(_ask(section, schema, f"ask[{i}]") for i, section in enumerate(sections.ask))
    plan = Plan(
        release_id=sections.release.id,
        title=sections.release.title,
        schema=schema,
        change=_change(sections.protect.change, schema),
        cap=_epsilon(sections.protect.epsilon, "protect.epsilon", sections.protect.accept_large),
        asks=asks,
        digest=_digest(data, codebook),
        rows=sections.expect.rows or schema.sample_size,
        design_effect=_effect(sections.expect.design_effect),
        source=sections.survey.source,
        table=sections.survey.table,
        ledger=sections.survey.ledger,
        codebook=sections.survey.codebook,
        accepts_large=sections.protect.accept_large,
    )
    _check_names(asks)
    if plan.cost > plan.cap:
        raise PlanError(
            f"is {show(plan.cap)}, but the asks need {show(plan.cost)}; raise it or ask for less",
            field="protect.epsilon",
        )
    return plan


def _sections(data: Mapping[str, Any]) -> PlanSections:
    if data.get("format", FORMAT) != FORMAT:
        raise PlanError(f"this reticent reads plans of format {FORMAT}", field="format")
    sections = fill(PlanSections, data, error=PlanError, at="")
    if sections.repair:
        raise PlanError("no kind of repair is built in yet; use missing = 'available'", field="repair")
    if sections.protect.delta is not None:
        raise PlanError("does not go with pure noise; remove it", field="protect.delta")
    if not is_printable(sections.release.title):
        raise PlanError("holds a control character", field="release.title")
    return sections


def _ask(section: AskSection, schema: Schema, at: str) -> Ask:
    if not is_printable(section.name):
        raise PlanError("holds a control character", field=f"{at}.name")
    query = read_query(section.query, schema, missing=section.missing, size=section.size, field=f"{at}.query")
    level = read_decimal(section.error_bar.level)
    if level is None or not Fraction(1, 2) <= level <= Fraction(9999, 10000):
        raise PlanError("is a decimal from 0.5 to 0.9999", field=f"{at}.error_bar.level")
    if isinstance(query, Derived):
        if section.epsilon is not None:
            raise PlanError("costs nothing (it uses released numbers); remove it", field=f"{at}.epsilon")
        epsilon = Fraction(0)
    else:
        epsilon = _epsilon(section.epsilon, f"{at}.epsilon")
    bar = section.error_bar.epsilon
    return Ask(
        name=section.name,
        query=query,
        epsilon=epsilon,
        level=level,
        bar=_epsilon(bar, f"{at}.error_bar.epsilon") if bar is not None else Fraction(0),
        variance=section.variance,
        expected=_expected(section, at),
        written=section.query,
    )


def _expected(section: AskSection, at: str) -> tuple[Fraction, int | None] | None:
    if section.expect is None:
        return None
    value = read_decimal(section.expect.value)
    if value is None:
        raise PlanError("is a plain decimal", field=f"{at}.expect.value")
    return value, section.expect.size


def _epsilon(text: str | None, field: str, accept_large: bool = True) -> Fraction:
    epsilon = amount(text, field=field)
    if epsilon < LEAST:
        raise PlanError("is smaller than 0.000001; the answer would be noise alone", field=field)
    if epsilon > LARGE and not accept_large:
        raise PlanError(
            f"is above {LARGE}, which promises little; write accept_large = true to go on", field=field
        )
    return epsilon


def _change(text: str, schema: Schema) -> Change:
    try:
        change = Change(text)
    except ValueError:
        listed = " or ".join(repr(c.value) for c in Change)
        raise PlanError(f"is {listed}", field="protect.change") from None
    if schema.sample_size is not None and change is Change.ADD_REMOVE:
        raise PlanError(f"a public sample size goes with {Change.REPLACE.value!r}", field="protect.change")
    return change


def _effect(raw: object) -> Fraction | None:
    if raw is None:
        return None
    effect = read_decimal(raw)
    if effect is None or not Fraction(1, 100) <= effect <= 1000:
        raise PlanError("is a decimal from 0.01 to 1000", field="expect.design_effect")
    return effect


def _check_names(asks: tuple[Ask, ...]) -> None:
    names, depth = [ask.name for ask in asks], dict[str, int]()
    for place, ask in enumerate(asks):
        if names.index(ask.name) != place:
            raise PlanError(f"two asks are called {ask.name!r}", field=f"ask[{place}].name")
        known = {a.name: a.query for a in asks[:place] if not isinstance(a.query, Margin)}
        if isinstance(ask.query, Derived):
            for name in ask.query.of:
                if name not in known:
                    hint = nearest(name, known) or "; name asks that stand above this one and have one answer"
                    raise PlanError(f"there is no ask {name!r} to use{hint}", field=f"ask[{place}].query")
            depth[ask.name] = 1 + max(depth.get(name, 0) for name in ask.query.of)
            if depth[ask.name] > DEEPEST:
                raise PlanError(f"is derived more than {DEEPEST} deep", field=f"ask[{place}].query")
        variances = {n for n, q in known.items() if isinstance(q, Variance)}
        if ask.variance is not None and ask.variance not in variances:
            raise PlanError("names a variance asked above this one", field=f"ask[{place}].variance")


def _digest(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> str:
    """A digest of what is asked and of what: file places may change, words may not."""
    asked = {key: value for key, value in data.items() if key != "survey"}
    text = json.dumps([asked, codebook], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
