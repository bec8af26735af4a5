"""A small simulated state of whom the office knows five attributes, and who of them lives below a poverty line.

A person is poor whose household earns less than a line for each of its members. The strategies use five attributes;
none has a bin of fewer than 1,000 people, which is public. With `SMALL` among them one bin of a few people makes
every choice a lottery, by our method and by the published one.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.lab.world.state import LEVELS, people
from reticent.prepare.strata import BaseCells, Candidates, Groups, Strategy, Stratifier

LINE = 9_000
SEED = 11
AGES = (0, 10, 20, 30, 40, 50, 60, 70)
BANDS = [[0, 1], [2], [3], [4, 5], [6, 7]]
RACES = [[0, 1, 2, 3], [4]]
COUPLES = [[0], [1, 2, 3, 4]]
CELLS = BaseCells(
    stratifiers=(
        Stratifier(name="age", bins=len(AGES), missing=0),
        Stratifier(name="sex", bins=2, missing=0),
        Stratifier(name="race", bins=5, missing=4),
        Stratifier(name="marital", bins=5, missing=4),
        Stratifier(name="region", bins=4, missing=0),
    )
)
STRATEGIES: dict[str, dict[str, Groups | None]] = {
    "nothing": {},
    "sex": {"sex": None},
    "age bands": {"age": BANDS},
    "age": {"age": None},
    "age by sex": {"age": None, "sex": None},
    "age bands by sex and race": {"age": BANDS, "sex": None, "race": RACES},
    "age by sex and region": {"age": None, "sex": None, "region": None},
    "sex by marriage and region": {"sex": None, "marital": COUPLES, "region": None},
}
SMALL: dict[str, dict[str, Groups | None]] = {
    "age bands by sex, race, marriage and region": {
        "age": BANDS,
        "sex": None,
        "race": RACES,
        "marital": COUPLES,
        "region": None,
    }
}
"""A strategy with a bin of a handful of people: children are hardly ever married."""
QUERIES = ("all", "women 30-39", "women 20-29")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Everybody: base cell, whether under 25, and for every query whether it counts them."""

    cells: NDArray[np.int64]
    young: NDArray[np.bool_]
    counted: dict[str, NDArray[np.bool_]]
    candidates: Candidates

    @property
    def size(self) -> int:
        return len(self.cells)


@cache
def small_state(size: int, small_bin: bool = False) -> State:
    """The state, made once; with `small_bin`, one more strategy to choose from."""
    table = people(size, seed=SEED)
    age = table["age"].to_numpy()
    codes = [
        np.searchsorted(np.array(AGES), age, side="right") - 1,
        *(_codes(table, name) for name in ("sex", "race", "marital", "region")),
    ]
    woman, poor = codes[1] == 0, _poor(table)
    cells = CELLS.of(codes)
    return State(
        cells=cells,
        young=age < 25,
        counted={
            QUERIES[0]: poor,
            QUERIES[1]: poor & woman & (age >= 30) & (age <= 39),
            QUERIES[2]: poor & woman & (age >= 20) & (age <= 29),
        },
        candidates=_candidates(
            np.bincount(cells, minlength=CELLS.size), STRATEGIES | (SMALL if small_bin else {})
        ),
    )


def _candidates(base: NDArray[np.int64], strategies: dict[str, dict[str, Groups | None]]) -> Candidates:
    found = []
    for name, chosen in strategies.items():
        bins = CELLS.by(chosen)
        totals = np.bincount(np.array(bins), weights=base).astype(int).tolist()
        found.append(Strategy(name=name, bins=bins, totals=tuple(map(Fraction, totals))))
    return Candidates(strategies=tuple(found))


def _poor(table: pa.Table) -> NDArray[np.bool_]:
    wage = np.nan_to_num(table["wage"].to_numpy().astype(float))
    _, home = np.unique(table["household"].to_numpy(), return_inverse=True)
    earned, members = np.bincount(home, weights=wage), np.bincount(home)
    return np.asarray((earned < LINE * members)[home])


def _codes(table: pa.Table, name: str) -> NDArray[np.int64]:
    found = pc.index_in(table[name].cast(pa.string()), pa.array(LEVELS[name]), skip_nulls=True)
    return np.asarray(found.fill_null(-1).to_numpy(), dtype=np.int64)
