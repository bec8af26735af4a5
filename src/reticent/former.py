"""Plans and codebooks of format 1: the words they used, as the words of format 2, and their digests.

The keys moved to the field's words before version 1.0 (decision 19). A path below is written in the words of today up to
its last part, which is the word of before. The digests can go once no ledger holds a charge from before format 2.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from reticent.errors import PlanError, ReticentError

Path = tuple[str, ...]

EDITS, IMPUTES = "edit", "impute"
REPAIR = "repair"
RENAMED: dict[Path, str] = {
    ("ask",): "statistic",
    ("survey", "schema"): "codebook",
    ("survey", "table"): "relation",
    ("survey", "brought"): "imputed_before",
    ("survey", "imputed_before", "imputed"): "rule",
    ("statistic", "error_bar"): "interval",
    ("statistic", "query", "margin"): "table",
    (IMPUTES, "kind"): "method",
    (IMPUTES, "near"): "match",
    ("synth", "holes"): "missing",
    ("synth", "heaps"): "point_masses",
    ("columns", "*", "missing"): "missing_codes",
}
VALUES: dict[Path, dict[str, str]] = {
    (IMPUTES, "fill"): {"line": "predicted", "draws": "drawn"},
    ("synth", "missing"): {"holes": "category"},
}
MODELS = ("regression", "classes")
DEEPEST = 3
"""No word that moved stands under more keys than this."""

HOW = "`reticent upgrade` rewrites a file in today's words"


def renamed(path: Path) -> str:
    """The word of today for the last part of `path`; itself where it stayed."""
    wild = ("columns", "*", *path[2:]) if path[0] == "columns" and len(path) > 2 else path
    return RENAMED.get(wild, path[-1])


def other_format(said: object, format: int, what: str, error: type[ReticentError]) -> ReticentError:
    """Why a file of another format than today's is refused."""
    if said == 1:
        return error(f"is 1, whose words have moved; {HOW}", field="format")
    return error(f"this reticent reads {what} of format {format}", field="format")


def check_words(data: Mapping[str, Any], error: type[ReticentError] = PlanError) -> None:
    """Refuse a word of before, naming the one of today; asked of what is refused anyway, as a better reason."""
    for place, said in _old(data, (), ""):
        raise error(f"{said}; {HOW}", field=place)


def _old(value: Any, path: Path, place: str) -> Iterator[tuple[str, str]]:
    if len(path) > DEEPEST:
        return
    if isinstance(value, list):
        for i, each in enumerate(value):
            yield from _old(each, path, f"{place}[{i}]")
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _old_key(str(key), inner, path, f"{place}.{key}" if place else str(key))
    elif isinstance(value, str) and value in VALUES.get(path, {}):
        yield place, f"{value!r} is called {VALUES[path][value]!r} now"
    elif path == (IMPUTES, "method") and value == "model":
        yield place, "'model' is called 'regression' for numbers and 'classes' for columns with levels now"


def _old_key(key: str, value: Any, path: Path, place: str) -> Iterator[tuple[str, str]]:
    now = renamed((*path, key))
    if not path and key == REPAIR:
        yield place, "is written as [[edit]] and [[impute]] now"
    elif (*path, key) == (EDITS, "kind"):
        yield place, "is not needed under [[edit]]; remove it"
    elif now != key:
        yield place, f"is called {now!r} now"
    else:
        yield from _old(value, (*path, now), place)


def as_format_1(value: Any, path: Path = ()) -> Any:
    """The dictionary of a plan or a codebook in the words of format 1."""
    if len(path) > DEEPEST:
        return value
    if isinstance(value, list):
        return [as_format_1(each, path) for each in value]
    if isinstance(value, Mapping):
        made = {_before(path, str(key)): as_format_1(each, (*path, str(key))) for key, each in value.items()}
        return made if path else _with_repairs(made)
    if path == (IMPUTES, "method") and value in MODELS:
        return "model"
    back = {new: old for old, new in VALUES.get(path, {}).items()}
    return back.get(value, value) if isinstance(value, str) else value


def _before(path: Path, key: str) -> str:
    wild = ("columns", "*") if path[:1] == ("columns",) and len(path) == 2 else path
    return next((old[-1] for old, new in RENAMED.items() if new == key and old[:-1] == wild), key)


def _with_repairs(data: dict[str, Any]) -> dict[str, Any]:
    """Edits and imputations in one list, as they were: edits always stood first."""
    if EDITS not in data and IMPUTES not in data:
        return data
    edits = [{"kind": "edit", **each} for each in data.get(EDITS, [])]
    left = {key: value for key, value in data.items() if key not in (EDITS, IMPUTES)}
    return {**left, REPAIR: [*edits, *data.get(IMPUTES, [])]}


@dataclass(frozen=True, slots=True)
class FormerDigests:
    """What a ledger of before may call a plan: a digest of its dictionary, with or without `format = 1`.

    Donors were bounded by hubs where a plan said nothing of it (decision 23), so such a plan is the same with and without
    the word, in format 2 too, whose digest is `today`.
    """

    plan: Mapping[str, Any]
    codebook: Mapping[str, Any]
    today: Callable[[Mapping[str, Any], Mapping[str, Any]], str] | None = None

    def __contains__(self, digest: object) -> bool:
        bare = without_hubs(self.plan)
        if self.today is not None and digest == self.today(bare, self.codebook):
            return True
        plans = [each for one in (dict(self.plan), bare) for each in _either(as_format_1(one))]
        books = _either(as_format_1(dict(self.codebook)))
        return any(digest == _digest(plan, book) for plan, book in product(plans, books))


def without_hubs(plan: Mapping[str, Any]) -> dict[str, Any]:
    """The plan as it could be written when hubs went without saying."""
    imputed = plan.get(IMPUTES)
    if not isinstance(imputed, list):
        return dict(plan)
    left = [
        {key: value for key, value in each.items() if (key, value) != ("bound", "hubs")}
        if isinstance(each, Mapping)
        else each
        for each in imputed
    ]
    return {**plan, IMPUTES: left}


def _either(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    bare = {key: value for key, value in data.items() if key != "format"}
    return bare, {**bare, "format": 1}


def _digest(data: Mapping[str, Any], codebook: Mapping[str, Any]) -> str:
    asked = {key: value for key, value in data.items() if key != "survey"}
    brought = dict(data.get("survey") or {}).get("brought")
    asked |= {"brought": brought} if brought is not None else {}
    text = json.dumps([asked, codebook], sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
