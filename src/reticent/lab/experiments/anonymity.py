"""k-anonymity, l-diversity and t-closeness of a table, of the pieces it is cut into, and of the pieces put together.

A sample of the simulated state is cut into pieces by lot and each piece is recoded by itself. Put together again, the pieces
are as anonymous and as diverse as the worst of them. But each may have been recoded to another height, so the whole is no
global recoding any more; and pieces that are each like themselves need not be like their union. None of this is
differential privacy: it is read off the rows, without noise. Nothing is drawn twice.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from reticent.lab.papers.anonymity import (
    Hierarchy,
    Recoded,
    distinct_diversity,
    entropy_diversity,
    intervals,
    k_anonymity,
    recode_globally,
    recode_locally,
    t_closeness,
)
from reticent.lab.papers.items import printed
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.lab.world.state import LEVELS, people

ROWS, SEED, PIECES = 1_200, 5, 4
LOCAL_K, GLOBAL_K = 15, 5
"""So that local classes have more than one answer, and that one piece needs another height than the others."""
QUASI, SENSITIVE = ("age", "sex", "region"), "employment"
AGES = (20, 59)
HIERARCHIES: dict[str, Hierarchy] = {
    "age": intervals(*AGES, [5, 10, 20]),
    "sex": Hierarchy({level: ["anybody"] for level in LEVELS["sex"]}),
    "region": Hierarchy({level: ["anywhere"] for level in LEVELS["region"]}),
}
Columns = dict[str, list[Any]]


@cache
def table() -> Columns:
    """A thousand and some people of working age, in a drawn order."""
    state = people(4 * ROWS, seed=SEED)
    age = state["age"].to_numpy()
    aged = np.flatnonzero((age >= AGES[0]) & (age <= AGES[1]))
    kept = np.random.default_rng(SEED).permutation(aged)[:ROWS]
    return {name: [state[name][int(row)].as_py() for row in kept] for name in (*QUASI, SENSITIVE)}


def pieces() -> list[Columns]:
    """The table cut by lot: its order is a drawn one."""
    whole = table()
    return [{name: column[n::PIECES] for name, column in whole.items()} for n in range(PIECES)]


def recoded(columns: Columns, *, locally: bool) -> tuple[Columns, Recoded]:
    """The table with recoded quasi-identifiers, and how."""
    recode, k = (recode_locally, LOCAL_K) if locally else (recode_globally, GLOBAL_K)
    made = recode({name: columns[name] for name in QUASI}, HIERARCHIES, k=k)
    return {**columns, **{name: list(made.columns[name]) for name in QUASI}}, made


def together(parts: list[Columns]) -> Columns:
    """Tables of the same columns, one after the other."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


def measured(columns: Columns) -> dict[str, float]:
    """The four numbers of one table."""
    quasi = list(QUASI)
    return {
        "k": float(k_anonymity(columns, quasi)),
        "distinct l": float(distinct_diversity(columns, quasi, SENSITIVE)),
        "entropy l": entropy_diversity(columns, quasi, SENSITIVE),
        "t": t_closeness(columns, quasi, SENSITIVE, ground="equal", levels=LEVELS[SENSITIVE]),
    }


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says which recoding."""
    return [*_before_and_after(locally=True), *_before_and_after(locally=False), *_two_sets()]


def _before_and_after(*, locally: bool) -> Iterator[Outcome]:
    way = "local recoding" if locally else "global recoding"
    whole, _ = recoded(table(), locally=locally)
    made = [recoded(part, locally=locally) for part in pieces()]
    found: dict[str, Mapping[str, float]] = {
        "before the partition": measured(whole),
        **{f"piece {n + 1}": measured(part) for n, (part, _) in enumerate(made)},
        "pieces put together": measured(together([part for part, _ in made])),
    }
    for where, numbers in found.items():
        yield from (
            Outcome(item=f"{name}, {where}", value=value, query=way) for name, value in numbers.items()
        )
    if not locally:
        heights = {each.heights[0] for _, each in made}
        item = "recodings in use over the pieces; more than one is no global recoding"
        yield Outcome(item=item, value=float(len(heights)), query=way)


def _two_sets() -> Iterator[Outcome]:
    """The document's example: one set has an illness in 5 of 100, the other in nobody."""
    stated = printed(
        "thesis", "Chapter 2, parallel composition", "share with the illness in one of two sets, in %"
    )
    ill = int(stated)
    sets: list[Columns] = [
        {"place": ["here"] * 100, "ill": [n < ill for n in range(100)]},
        {"place": ["there"] * 100, "ill": [False] * 100},
    ]
    for name, columns in (("the set with the illness", sets[0]), ("the other set", sets[1])):
        yield Outcome(item=f"t of {name} alone", value=_t(columns), query="each is one class, like itself")
    yield Outcome(
        item="% ill in one of the two sets",
        printed=stated,
        value=100 * float(np.mean(sets[0]["ill"])),
        query="as told",
    )
    why = "two classes, each as far from the whole"
    yield Outcome(item="t of both sets together", value=_t(together(sets)), query=why)


def _t(columns: Columns) -> float:
    return t_closeness(columns, ["place"], "ill", ground="equal", levels=[False, True])


def experiment() -> Experiment:
    """k-anonymity, l-diversity and t-closeness of a partition."""
    return Experiment(
        name="anonymity",
        title="k-anonymity, l-diversity and t-closeness before and after a partition",
        source="Privacy in complex sample based surveys, chapter 2 and section 5.7; THEORY 10.10",
        run=run,
        params={"rows": ROWS, "seed": SEED, "pieces": PIECES, "k": [LOCAL_K, GLOBAL_K]},
        exact=True,
    )
