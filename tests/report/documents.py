"""Made-up releases to draw: plain, odd, empty and very large."""

import json
from typing import Any

from reticent.release.release import Release

LAPLACE = {
    "what": "count",
    "mechanism": "discrete Laplace",
    "epsilon": "0.5",
    "sensitivity": "1",
    "grid": "1",
    "scale": 2.0,
    "proof": "proofs/answer/parts.md",
}
CLAIM = {
    "words": "1.5-DP, one respondent added or removed, exact",
    "measure": "pure",
    "epsilon": "1.5",
    "change": "one respondent added or removed",
    "rests_on": [{"theorem": "discrete Laplace mechanism", "proof": "proofs/noise/laplace.md"}],
    "arithmetic": "exact",
    "about": "the incomplete data held",
}
RECEIPT = {
    "charged": "1.5",
    "dataset": "town-1",
    "entry": 3,
    "hash": "ab" * 32,
    "ledger": "cd" * 16,
    "left_after": "7.9",
    "previous": "ef" * 32,
    "raises": [],
    "release": "town-1-a",
    "spent_before": "0.6",
    "unit": "epsilon",
}


def estimate(
    value: float, half: float | None = 5, cell: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    low, high = (None, None) if half is None else (value - half, value + half)
    ends = {"privacy_low": low, "privacy_high": high}
    totals = dict.fromkeys(("total_low", "total_high", "total_margin"))
    blank = {**totals, "cv": None, "reliability": None}
    return {"cell": cell or {}, "value": value, **ends, **blank, **more}


def answer(
    name: str, estimates: list[dict[str, Any]], unit: str = "respondents", **query: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "query": query or {"count": "*"},
        "words": f"what {name} asks",
        "unit": unit,
        "guarantee": {**CLAIM, "epsilon": "0.5"},
        "parts": [dict(LAPLACE)],
        "interval": {"level": 0.95, "meaning": "covers the privacy noise"},
        "total": {"meaning": "adds sampling"},
        "estimates": estimates,
    }


def document(**changed: Any) -> dict[str, Any]:
    totals = {"total_low": 1192.75, "total_high": 1275.25, "total_margin": 41.25}
    rated = {**totals, "cv": 0.0213, "reliability": "reliable"}
    cells = [
        estimate(value, 3, {"sex": sex, "age": age}, cv=0.2, reliability="use with caution")
        for sex, age, value in (("m", "old", 31), ("m", "young", 52), ("f", "old", -4), ("f", "young", 61))
    ]
    return {
        "format": "reticent-release/2",
        "id": "town-1-a",
        "title": "A town asked once",
        "dataset": "town-1",
        "published": True,
        "guarantee": dict(CLAIM),
        "protects": {"privacy_unit": "row", "at_most": 1, "change": "one respondent added or removed"},
        "statistics": [
            answer("people", [estimate(1234, 7, **rated)]),
            answer("mean wage", [estimate(43333.416921, 934.413051)], "dollars", mean="wage"),
            answer("median wage", [estimate(40000, None)], "dollars", median="wage"),
            answer("sex by age", cells, table=["sex", "age"]),
        ],
        "receipt": dict(RECEIPT),
        "plan": "12" * 32,
        "planning": {"rows": 5000, "design_effect": "1.6"},
        "software": {"reticent": "0.1.0", "engine": "duckdb 2.0.0"},
        **changed,
    }


def release(**changed: Any) -> Release:
    return Release(document(**changed))


def rehearsal() -> Release:
    return release(published=False, receipt=None)


def bare() -> Release:
    """Everything that may be null is null."""
    hollow = answer("nothing", [estimate(0, None)], "")
    hollow |= {"query": None, "words": None, "guarantee": None, "parts": None, "interval": None, "unit": None}
    gone = dict.fromkeys(("guarantee", "protects", "receipt", "planning", "software", "plan"), None)
    return release(statistics=[hollow, answer("empty", [])], **gone)


def huge(side: int) -> Release:
    cells = [estimate(i * j, 2, {"a": f"a{i}", "b": f"b{j}"}) for i in range(side) for j in range(side)]
    return release(statistics=[answer("grid", cells, table=["a", "b"])])


def read_back(made: Release) -> Release:
    """The release as its own file gives it, with every key in another order."""
    return Release.from_bytes(json.dumps(json.loads(made.to_bytes()), sort_keys=True).encode())
