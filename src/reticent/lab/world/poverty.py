"""A small simulated state of whom the office knows five attributes, and who of them lives below a poverty line.

A person is poor whose household earns less than a line for each of its members. What the office knows differs. Either the
joint table of five attributes is known: then strategies are chosen among, none with a bin of fewer than 1,000 people, which is
public; with `SMALL` among them one bin of a few people makes every choice a lottery, by our method and by the published one.
Or, as in the thesis, only one-way totals are: the joint table is raked from a noisy one, and bins are chosen attribute by
attribute.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from reticent.answer.weighting import Fitting
from reticent.lab.world.state import LEVELS, people
from reticent.prepare.strata import (
    BaseCells,
    Candidates,
    Groups,
    Strategy,
    Stratifier,
    StratifierGroup,
    Way,
)
from reticent.refine.margins import Margin
from reticent.refine.raking import Coarsening

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
SCHOOLS = ((-1, 0, 1, 2, 3), (4, 5), (6,), (7, 8))
"""Schooling in four bins: up to middle school or not said, high school, some college, a degree."""
BY_MARGINS = BaseCells(
    stratifiers=(
        Stratifier(name="age", bins=len(AGES), missing=0),
        Stratifier(name="sex", bins=2, missing=0),
        Stratifier(name="race", bins=5, missing=4),
        Stratifier(name="schooling", bins=len(SCHOOLS), missing=0),
        Stratifier(name="employed", bins=2, missing=0),
    )
)
WAYS: dict[str, dict[str, Groups]] = {
    "age": {
        "decades": [[each] for each in range(len(AGES))],
        "bands": BANDS,
        "young, middle, old": [[0, 1], [2, 3, 4, 5], [6, 7]],
        "all ages": [list(range(len(AGES)))],
    },
    "schooling": {
        "four": [[0], [1], [2], [3]],
        "college or not": [[0, 1], [2, 3]],
        "all schools": [[0, 1, 2, 3]],
    },
    "race": {"five": [[each] for each in range(5)], "white or not": RACES, "all races": [[0, 1, 2, 3, 4]]},
}
"""How age, schooling and race may be binned; sex and employment are taken as they are."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneWay:
    """All that is known where only one-way totals are: the margins, who cannot be, and how attributes may be binned."""

    margins: tuple[Margin, ...]
    zeroes: NDArray[np.bool_]
    ways: dict[str, tuple[Way, ...]]

    def fitting(self, epsilon: Fraction) -> Fitting:
        """The joint table from a noisy one of this price; negative cells are mended within age and sex, then overall."""
        shape = BY_MARGINS.shape
        within = Coarsening(shape, [None, None, *([0] * size for size in shape[2:])])
        whole = Coarsening(shape, [[0] * size for size in shape])
        return Fitting(
            shape=shape,
            margins=self.margins,
            ladder=(within, whole),
            epsilon=epsilon,
            zeroes=self.zeroes,
        )

    def attributes(self, prices: dict[str, Fraction]) -> tuple[StratifierGroup, ...]:
        """Sex and employment first, as they are; then what is chosen, in the order of the prices."""
        plain = [StratifierGroup(by=(name,), ways=self.ways[name]) for name in ("sex", "employed")]
        chosen = [
            StratifierGroup(by=(name,), ways=self.ways[name], epsilon=each) for name, each in prices.items()
        ]
        return (*plain, *chosen)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class State:
    """Everybody: base cell, whether under 25, for every query who is asked about and who of them counts, what is known."""

    cells: NDArray[np.int64]
    size_of_table: int
    young: NDArray[np.bool_]
    asked: dict[str, NDArray[np.bool_]]
    counted: dict[str, NDArray[np.bool_]]
    known: Candidates | OneWay

    @property
    def size(self) -> int:
        return len(self.cells)


@cache
def small_state(size: int, small_bin: bool = False) -> State:
    """The state, made once, its joint table known; with `small_bin`, one more strategy to choose from."""
    table = people(size, seed=SEED)
    codes = [_ages(table), *(_codes(table, name) for name in ("sex", "race", "marital", "region"))]
    cells = CELLS.of(codes)
    base, strategies = np.bincount(cells, minlength=CELLS.size), STRATEGIES | (SMALL if small_bin else {})
    return _state(table, cells, CELLS.size, _candidates(base, strategies))


@cache
def one_way_state(size: int) -> State:
    """The same people, of whom one-way totals of age, sex, race, schooling and employment are known."""
    table = people(size, seed=SEED)
    place = {code: at for at, group in enumerate(SCHOOLS) for code in group}
    schooling = np.array([place[code] for code in range(-1, 9)])[_codes(table, "schooling") + 1]
    employed = (_codes(table, "employment") == 0).astype(np.int64)
    codes = [_ages(table), _codes(table, "sex"), _codes(table, "race"), schooling, employed]
    margins = tuple(
        Margin(axis, np.bincount(code, minlength=bins).astype(float))
        for axis, (code, bins) in enumerate(zip(codes, BY_MARGINS.shape, strict=True))
    )
    known = OneWay(margins=margins, zeroes=_nobody(), ways=_ways())
    return _state(table, BY_MARGINS.of(codes), BY_MARGINS.size, known)


def _nobody() -> NDArray[np.bool_]:
    """Public without any census: no child under ten works or is past middle school, nobody under twenty has a degree."""
    zeroes = np.zeros(BY_MARGINS.shape, np.bool_)
    zeroes[0, ..., 1] = zeroes[0, :, :, 1:] = zeroes[1, :, :, 3] = True
    return zeroes


def _ways() -> dict[str, tuple[Way, ...]]:
    plain = {"sex": {"by sex": [[0], [1]]}, "employed": {"by employment": [[0], [1]]}}
    return {
        name: tuple(Way(name=way, groups=BY_MARGINS.by({name: groups})) for way, groups in all_.items())
        for name, all_ in (plain | WAYS).items()
    }


def _state(table: pa.Table, cells: NDArray[np.int64], size: int, known: Candidates | OneWay) -> State:
    age, woman = table["age"].to_numpy(), _codes(table, "sex") == 0
    groups = (np.ones_like(woman), woman & (age >= 30) & (age <= 39), woman & (age >= 20) & (age <= 29))
    asked = dict(zip(QUERIES, groups, strict=True))
    poor = _poor(table)
    counted = {query: poor & group for query, group in asked.items()}
    return State(cells=cells, size_of_table=size, young=age < 25, asked=asked, counted=counted, known=known)


def _ages(table: pa.Table) -> NDArray[np.int64]:
    return np.asarray(np.searchsorted(np.array(AGES), table["age"].to_numpy(), side="right") - 1)


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
