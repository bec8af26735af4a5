"""The digest of a plan, by which a ledger knows it again: taken over the plan as it was read, not as it was typed.

What is left to its default counts as written out, amounts count by their value (`"0.50"` is `0.5`), the order of keys and
the places of files do not count. Text that may be a level or a code of the survey stays as it is.
"""

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from reticent.errors import PlanError
from reticent.exact import read_decimal, show
from reticent.files import Section, fill
from reticent.plan.budgets import WaveSection
from reticent.plan.capped import LevelSection
from reticent.plan.donors import DonorsSection, MatchSection, is_level
from reticent.plan.models import ModelSection
from reticent.plan.partition import PartitionSection
from reticent.plan.products import PRODUCTS
from reticent.plan.repairs import BroughtSection, EditSection
from reticent.plan.sample import SampleSection
from reticent.plan.sections import PlanSections, WeightSection
from reticent.schema.codebook import CodebookPart, ColumnPart

READ: dict[str, type[Section]] = {
    "edit": EditSection,
    **{key: reader.section for key, reader in PRODUCTS.items()},
    "weight": WeightSection,
    "partition": PartitionSection,
    "sample": SampleSection,
    "wave": WaveSection,
    "imputed_before": BroughtSection,
    "match": MatchSection,
    "on": MatchSection,
    "columns": ColumnPart,
}
"""Sections that are read by themselves, by their key."""

AMOUNTS = {
    *(
        "epsilon",
        "rho",
        "delta",
        "count_epsilon",
        "noise_epsilon",
        "error_epsilon",
        "level",
        "design_effect",
        "mean_weight",
        "value",
    ),
    *(
        "centre",
        "centres",
        "step",
        "at",
        "by",
        "weight",
        "bounds",
        "grid",
        "positions",
        "rate",
        "chance",
        "gap",
    ),
    *("least", "range", "predict", "shares"),
}
"""Keys of ours whose text is a decimal wherever it reads as one."""


NUMBER = "\x00"
"""Before a number, so that piece 1 of a partition is not taken for the piece called "1"."""


def plan_digest(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> str:
    """The digest of a plan and its codebook, both found in order. File places may change, words may not."""
    asked = _told(PlanSections, data)
    before = asked.pop("survey").get("imputed_before")
    asked |= {"imputed_before": before} if before is not None else {}
    return digest_of(asked, _told(CodebookPart, codebook))


def digest_of(asked: Mapping[str, Any], codebook: Mapping[str, Any]) -> str:
    """The digest of what is asked, and of what, as plain values."""
    text = json.dumps(["reticent-plan/2", asked, codebook], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _told(model: type[Section], raw: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a section that are not at their default."""
    section, found = fill(model, raw, error=PlanError, at=""), {}
    for name, info in type(section).model_fields.items():
        key = info.alias or name
        value, default = _plain(getattr(section, name), key), info.get_default(call_default_factory=True)
        if info.is_required() or value != _plain(default, key):
            found[key] = value
    return found


def _plain(value: Any, key: str) -> Any:
    """A value in one way of writing. Groups keep their order, which is that of levels. Under keys of the survey's own, such as its columns, `key` is empty."""
    if isinstance(value, Section):
        return _told(type(value), value.model_dump(by_alias=True, exclude_unset=True))
    if key == "groups" and isinstance(value, Mapping):
        return [[name, [_exact(each, "missing_codes") for each in codes]] for name, codes in value.items()]
    if isinstance(value, list | tuple):
        return [_read(key, each) for each in value]
    if key == "columns" and isinstance(value, Mapping):
        return {name: _told(ColumnPart, each) for name, each in value.items()}
    if isinstance(value, Mapping):
        return _read(key, value)
    return _exact(value, key)


def _read(key: str, value: Any) -> Any:
    """One entry: by the section it is, where it is one; else as it stands, the keys of a query being ours."""
    if key in ("match", "on") and isinstance(value, str):
        return {"column": value}
    if isinstance(value, Mapping) and key != "columns":
        model = _model(key, value)
        if model is not None:
            return _told(model, value)
        return {name: _plain(each, str(name) if key == "query" else "") for name, each in value.items()}
    return _plain(value, key)


def _model(key: str, value: Mapping[str, Any]) -> type[Section] | None:
    if key == "impute":
        return DonorsSection if value.get("method") == "donors" else ModelSection
    if key == "match" and is_level(value):
        return LevelSection
    return READ.get(key)


def _exact(value: Any, key: str) -> Any:
    is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
    if key == "missing_codes":
        return str(value)  # a code is compared as it is written
    exact = read_decimal(value) if is_number or key in AMOUNTS else None
    if exact is not None:
        return f"{NUMBER}{show(exact, digits=18)}"
    return f"{NUMBER}{value}" if is_number else value
