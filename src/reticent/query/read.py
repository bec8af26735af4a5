"""Read the `query` of a statistic into a query value, naming what does not fit."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from reticent.errors import PlanError, nearest
from reticent.query.base import AVAILABLE, COMMON, COMPLETE, EVERYONE, Query, Subpopulation
from reticent.query.domains import OPTIONS, options_of, read_domains
from reticent.query.kinds import KINDS
from reticent.query.written import WrittenQuery, predicate_of, text_of
from reticent.schema import Schema

BY_KEY = {key: kind for kind in KINDS for key in kind.KEYS}
ALLOWED = {key: kind.KEYS[key] for key, kind in BY_KEY.items()}


def read_query(
    raw: Mapping[str, Any], schema: Schema, *, missing: str, size: int | None, field: str
) -> Query:
    """The query that `raw` writes down."""
    verbs = [key for key in raw if key in ALLOWED]
    if len(verbs) != 1:
        listed = ", ".join(ALLOWED)
        raise PlanError(f"holds exactly one of {listed}{_hint(raw)}", field=field)
    verb = verbs[0]
    allowed = ALLOWED[verb] | (OPTIONS if "by" in raw else set())
    for key in raw:
        if key != verb and key not in allowed:
            raise PlanError(f"{key!r} does not go with {verb}{_way_out(key, allowed)}", field=field)
    kind = BY_KEY[verb]
    if size is not None and not kind.takes_size:
        raise PlanError(f"a public size does not go with {verb}", field=field.replace("query", "size"))
    among = _among(raw, schema, missing, field)
    written = WrittenQuery(raw=raw, key=verb, schema=schema, among=among, size=size, field=f"{field}.{verb}")
    if "by" not in raw:
        return kind.read(written)
    return read_domains(kind.read(replace(written, raw=options_of(raw), size=None)), written)


def _way_out(key: str, allowed: Collection[str]) -> str:
    if key in OPTIONS:
        return '; it goes with by = ["region"]'
    return nearest(key, allowed)


def _hint(raw: Mapping[str, Any]) -> str:
    return next((h for key in raw if key not in COMMON and (h := nearest(key, ALLOWED))), "")


def _among(raw: Mapping[str, Any], schema: Schema, missing: str, field: str) -> Subpopulation:
    if missing not in (AVAILABLE, COMPLETE):
        raise PlanError("is 'available' or 'complete'", field=field.replace("query", "missing"))
    where = predicate_of(raw["where"], schema, f"{field}.where") if "where" in raw else EVERYONE
    weight = raw.get("weight")
    if weight is not None:
        schema.weight(text_of(weight, f"{field}.weight"), field=f"{field}.weight")
    return Subpopulation(where=where, weight=weight, missing=missing)
