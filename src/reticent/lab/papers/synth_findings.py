"""What the document on synthesis states in sentences, beside the same read off the rows of `synth-missing`.

Losses and gains are in per cent, the least and the largest over the tables at hand, each on its 16 bins. PrivBayes stands
for its method, available cells for its adaptive one. F1 is the document's: the mean over every column as the target, with a
tenth missing, of all three of its pairs. Nothing is told where a row is missing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from reticent.lab.papers.items import printed

DOCUMENT = "synthesis"
Row = dict[str, Any]
Key = tuple[str, str, float, str, float | None]
"""Table, kind of silence, rate, strategy, epsilon."""


ADAPTIVE = (("privbayes", "privbayes"), ("kamino", "kamino-i"))
"""Methods for complete rows, and those that learn from rows as they are, from available cells."""
JUDGED = (*((*pair, 1.0) for pair in ADAPTIVE), ("dpautogan", "misgan", 3.0))
"""The document's three pairs, with the epsilon that each is compared at."""


def findings(rows: Iterable[Row]) -> list[Row]:
    """Every stated finding that the rows speak of, as items."""
    held = list(rows)
    at = _of(held, "privbayes")
    tables = sorted({key[0] for key in at})
    judged = _f1(held)
    return [
        *_losses(at, tables, [loss for loss, _ in judged]),
        *_gains(at, tables, [gain for _, gain in judged if gain is not None]),
        *_equal(held),
        *_choice(held),
        *_complete(at),
    ]


def _f1(rows: list[Row]) -> list[tuple[float, float | None]]:
    """What F1 loses from no missing cells to complete rows, and gains from these to the adaptive method, where it was run."""
    found = []
    for plain, adaptive, epsilon in JUDGED:
        lines, better = _of(rows, plain), _of(rows, adaptive)
        for table in sorted({key[0] for key in lines}):
            whole = lines.get((table, "MCAR", 0.2, "no-missing", epsilon), {}).get("f1_every")
            cut = lines.get((table, "MCAR", 0.1, "complete", epsilon), {}).get("f1_every")
            all_ = better.get((table, "MCAR", 0.1, "available", epsilon), {}).get("f1_every")
            if whole and cut:
                found.append((100 * (1 - cut / whole), None if all_ is None else 100 * (all_ / cut - 1)))
    return found


def _of(rows: Iterable[Row], method: str) -> dict[Key, Row]:
    """The rows of one method; those of tables with another number of bins, such as `adult-10`, are left out."""
    return {
        (r["dataset"], r["mask"], r["rate"], r["strategy"], r["epsilon"]): r
        for r in rows
        if r["method"] == method and not r["dataset"].rpartition("-")[2].isdigit()
    }


def _losses(at: dict[Key, Row], tables: list[str], f1: list[float]) -> list[Row]:
    """Complete rows beside no missing cells."""

    def loss(rates: tuple[float, ...]) -> list[float]:
        found = []
        for table in tables:
            whole = at.get((table, "MCAR", 0.2, "no-missing", 1.0), {}).get("tvd2")
            cuts = [at.get((table, "MCAR", rate, "complete", 1.0), {}).get("tvd2") for rate in rates]
            found += [100 * (cut / whole - 1) for cut in cuts if whole and cut is not None]
        return found

    utility = "Finding: loss of utility"
    return [
        *_ends("Finding: loss of F1 at 10 % missing", "", f1, EVERY),
        *_ends(utility, "at most 5 % missing, ", loss((0.01, 0.05)), TWO_WAY),
        *_ends(utility, "at most 20 % missing, ", loss((0.1, 0.2)), TWO_WAY),
    ]


TWO_WAY = "ours: 2-way distance of complete rows, epsilon 1, over that without missing cells"
EVERY = (
    "ours: F1 over every column, complete rows, MCAR 10 %, beside no missing cells, at the document's epsilon"
)
BETTER = (
    "ours: F1 over every column, available cells over complete rows, MCAR 10 %, at the document's epsilon"
)


def _gains(at: dict[Key, Row], tables: list[str], f1: list[float]) -> list[Row]:
    """Available cells beside complete rows, a fifth missing; F1 where a tenth is."""
    gains: dict[str, list[float]] = {"tvd1": [], "tvd2": []}
    for table in tables:
        for name, found in gains.items():
            cut, all_ = (
                at.get((table, "MCAR", 0.2, way, 1.0), {}).get(name) for way in ("complete", "available")
            )
            if cut and all_ is not None:
                found.append(100 * (1 - all_ / cut))
    item, why = "Finding: gain by adaptive methods", "ours: available cells over complete rows, MCAR 20 %"
    made = _ends(item, "", [x for found in (*gains.values(), f1) for x in found], why)
    for name, what in (("tvd1", "1-way, up to"), ("tvd2", "2-way, up to")):
        made += _told(item, what, gains[name], max, why)
    return [*made, *_told(item, "F1, up to", f1, max, BETTER)]


def _equal(rows: list[Row]) -> list[Row]:
    """Available cells beside no missing cells, a tenth missing: 1 where nothing is lost."""
    item, made = "Finding: adaptive methods equal the no-missing line", []
    for plain, adaptive in ADAPTIVE:
        whole, cut = _of(rows, plain), _of(rows, adaptive)
        for table in sorted({key[0] for key in whole}):
            best = whole.get((table, "MCAR", 0.2, "no-missing", 1.0), {}).get("tvd2")
            ours = cut.get((table, "MCAR", 0.1, "available", 1.0), {}).get("tvd2")
            if best and ours is not None:
                why = "ours: 2-way distance of available cells over that of no missing cells, MCAR 10 %, epsilon 1"
                made.append({"item": f"{item}, {table}, {adaptive}", "query": why, "value": ours / best})
    return made


def _choice(rows: list[Row]) -> list[Row]:
    """From which epsilon on Kamino is the better one on 2-way tables, of those run on Adult with a tenth missing."""
    first, second = (_of(rows, adaptive) for _, adaptive in ADAPTIVE)

    def distance(of: dict[Key, Row], epsilon: float) -> float | None:
        return of.get(("adult", "MCAR", 0.1, "available", epsilon), {}).get("tvd2")

    epsilons = sorted({key[4] for key in second if key[4] is not None})
    both = [(e, a, b) for e in epsilons if (a := distance(first, e)) and (b := distance(second, e))]
    ahead = [e for e, a, b in both if b < a]
    if not ahead:
        return []
    item, what = "Finding: which method", "epsilon up to which PrivBayesE"
    why = f"ours: the least of {', '.join(f'{e:g}' for e, *_ in both)} at which kamino-i is closer, Adult, MCAR 10 %"
    stated = printed(DOCUMENT, item, what)
    return [{"item": f"{item}, {what}", "query": why, "printed": stated, "value": ahead[0]}]


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
