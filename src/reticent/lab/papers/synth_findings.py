"""What the document on synthesis states in sentences, beside the same read off the rows of `synth-missing`.

Losses and gains are in per cent, the least and the largest over the tables at hand. PrivBayes stands for its method,
available cells for its adaptive one. Nothing is told where a row is missing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from reticent.lab.papers.items import printed

DOCUMENT = "synthesis"
Row = dict[str, Any]
Key = tuple[str, str, float, str, float | None]
"""Table, kind of silence, rate, strategy, epsilon."""


def findings(rows: Iterable[Row], *, method: str = "privbayes") -> list[Row]:
    """Every stated finding that the rows speak of, as items."""
    at: dict[Key, Row] = {
        (r["dataset"], r["mask"], r["rate"], r["strategy"], r["epsilon"]): r
        for r in rows
        if r["method"] == method
    }
    tables = sorted({key[0] for key in at})
    return [*_losses(at, tables), *_gains(at, tables), *_complete(at)]


def _losses(at: dict[Key, Row], tables: list[str]) -> list[Row]:
    """Complete rows beside no missing cells. F1 is measured with a fifth missing, at epsilon 3."""

    def loss(name: str, rates: tuple[float, ...], epsilon: float) -> list[float]:
        found = []
        for table in tables:
            whole = at.get((table, "MCAR", 0.2, "no-missing", epsilon), {}).get(name)
            for rate in rates:
                cut = at.get((table, "MCAR", rate, "complete", epsilon), {}).get(name)
                if whole and cut is not None:
                    found.append(100 * (1 - cut / whole if name == "f1" else cut / whole - 1))
        return found

    f1, utility = "Finding: loss of F1 at 10 % missing", "Finding: loss of utility"
    return [
        *_ends(f1, "", loss("f1", (0.2,), 3.0), "ours: complete rows, MCAR 20 %, epsilon 3"),
        *_ends(utility, "at most 5 % missing, ", loss("tvd2", (0.01, 0.05), 1.0), TWO_WAY),
        *_ends(utility, "at most 20 % missing, ", loss("tvd2", (0.1, 0.2), 1.0), TWO_WAY),
    ]


TWO_WAY = "ours: 2-way distance of complete rows, epsilon 1, over that without missing cells"


def _gains(at: dict[Key, Row], tables: list[str]) -> list[Row]:
    """Available cells beside complete rows, a fifth missing; and beside no missing cells."""
    gains: dict[str, list[float]] = {"tvd1": [], "tvd2": [], "f1": []}
    for table in tables:
        for name, found in gains.items():
            epsilon = 3.0 if name == "f1" else 1.0
            cut, all_ = (
                at.get((table, "MCAR", 0.2, way, epsilon), {}).get(name) for way in ("complete", "available")
            )
            if cut and all_ is not None:
                found.append(100 * (all_ / cut - 1 if name == "f1" else 1 - all_ / cut))
    item, why = "Finding: gain by adaptive methods", "ours: available cells over complete rows, MCAR 20 %"
    made = _ends(item, "", [x for found in gains.values() for x in found], why)
    for name, what in (("tvd1", "1-way, up to"), ("tvd2", "2-way, up to"), ("f1", "F1, up to")):
        made += _told(item, what, gains[name], max, why)
    equal = "Finding: adaptive methods equal the no-missing line"
    for table in tables:
        pair = [at.get((table, "MCAR", 0.2, way, 1.0), {}).get("tvd2") for way in ("available", "no-missing")]
        if pair[0] is not None and pair[1]:
            why = (
                "ours: 2-way distance of available cells over that of no missing cells, MCAR 20 %, epsilon 1"
            )
            made.append({"item": f"{equal}, {table}", "query": why, "value": pair[0] / pair[1]})
    return made


def _complete(at: dict[Key, Row]) -> list[Row]:
    """How many rows of Adult stay complete."""
    made = []
    for kind in ("MAR", "MCAR"):
        row = at.get(("adult", kind, 0.2, "complete", 1.0))
        if row:
            what = f"complete rows of Adult, {kind} 20 %, about"
            stated = printed(DOCUMENT, "Tables and masks", what)
            made.append({"item": what, "printed": stated, "value": row["complete"]})
    return made


def _ends(item: str, before: str, values: list[float], why: str) -> list[Row]:
    return [*_told(item, f"{before}from", values, min, why), *_told(item, f"{before}to", values, max, why)]


def _told(
    item: str, what: str, values: list[float], end: Callable[[list[float]], float], why: str
) -> list[Row]:
    if not values:
        return []
    stated = printed(DOCUMENT, item, what)
    return [{"item": f"{item}, {what}", "query": why, "printed": stated, "value": end(values)}]
