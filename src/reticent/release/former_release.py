"""A release of format 1, read in the words of format 2. No number changes, and its bytes stay what they were."""

from collections.abc import Mapping
from typing import Any

from reticent.release.format import COVERS, FORMAT

FORMER = "reticent-release/1"
TOP = {"answers": "statistics", "repairs": "imputation", "brought": "imputed_before", "claim": "guarantee"}
STATISTIC = {"error_bar": "interval", "claim": "guarantee"}
ESTIMATE = {"low": "privacy_low", "high": "privacy_high"}
SYNTH = {
    "holes": "missing",
    "missing_words": "missing_words",
    "heaps": "point_masses",
    "claim": "guarantee",
}


def in_todays_words(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same release; what is not told in it is not made up."""
    made = _renamed(document, TOP)
    made["format"] = FORMAT
    made["protects"] = _renamed(made.get("protects") or {}, {"unit": "privacy_unit"})
    made["statistics"] = [_statistic(each) for each in made.get("statistics") or []]
    for key in ("cells", "models"):
        if isinstance(made.get(key), list):
            made[key] = [_renamed(each, {"claim": "guarantee"}) for each in made[key]]
    if isinstance(made.get("weights"), Mapping):
        made["weights"] = _renamed(made["weights"], {"claim": "guarantee"})
    if "synth" in made:
        made["synth"] = [_synth(each) for each in made["synth"]]
    return made


def _statistic(answer: Mapping[str, Any]) -> dict[str, Any]:
    made = _renamed(answer, STATISTIC)
    made["interval"] = {"covers": COVERS, **(made.get("interval") or {})}
    made["query"] = _renamed(made.get("query") or {}, {"margin": "table"})
    made["estimates"] = [_renamed(each, ESTIMATE) for each in made.get("estimates") or []]
    return made


def _synth(table: Mapping[str, Any]) -> dict[str, Any]:
    made = _renamed(table, SYNTH)
    return {**made, "missing": "category" if made.get("missing") == "holes" else made.get("missing")}


def _renamed(told: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {words.get(key, key): value for key, value in told.items()}
