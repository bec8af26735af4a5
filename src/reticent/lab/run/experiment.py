"""What an experiment is: a name, where its question comes from, and one run of it.

A run is a function of its number and its seed alone, so runs can be made in any order, by any number of
workers, and an experiment that was cut off can be gone on with.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from reticent.errors import PlanError
from reticent.lab.papers.items import Printed

COLUMNS = pa.schema(
    [
        ("run", pa.int64()),
        ("method", pa.string()),
        ("query", pa.string()),
        ("epsilon", pa.float64()),
        ("truth", pa.float64()),
        ("estimate", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("seconds", pa.float64()),
        ("item", pa.string()),
        ("value", pa.float64()),
        ("stands_in", pa.string()),
        ("printed", pa.float64()),
        ("printed_digits", pa.string()),
        ("as_printed", pa.float64()),
        ("vector", pa.float64()),
    ]
)
OURS = "reticent"  # how our own default method is called, in every experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One line of a run: an estimate with the truth it is after, or an item that nothing is drawn for.

    `low` and `high` are the ends of an interval for `truth`. An item has up to three numbers side by side: `printed` stands
    in a document, digit for digit; `as_printed` is computed by the document's own formula; `value` is ours. `vector` is what
    our numbered statements give for `value`.
    """

    method: str | None = None
    query: str | None = None
    epsilon: float | None = None
    truth: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    seconds: float | None = None
    item: str | None = None
    value: float | None = None
    printed: Printed | None = None
    as_printed: float | None = None
    vector: float | None = None

    def __post_init__(self) -> None:
        simulated = self.method is not None and self.truth is not None and self.estimate is not None
        told = any(each is not None for each in (self.value, self.as_printed, self.printed))
        if simulated == (self.item is not None and told):
            raise PlanError("has a method with truth and estimate, or an item with a number", field="outcome")
        if self.printed is not None and (simulated or not isinstance(self.printed, Printed)):
            raise PlanError(
                "has an item beside what is printed, which keeps a document's digits", field="outcome"
            )


Row = dict[str, Any]
Run = Callable[[int, int], list[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One experiment. `run` takes the run's number and its seed; it is a function of a module, or a partial of one.

    `params` is everything besides the code that the numbers depend on. `figures` draws charts from all
    outcomes, by name, as Vega-Lite; `more` adds rows to the summary; `carried` says what the rows of a query carry
    besides. An `exact` experiment has one run.

    Where one repeat takes long, `pieces` name what it is made of, words with strokes between them. Then each piece of each
    repeat is a run, and a repeat can be made in parts; a piece that `lacks` its data is left out. `cases` name the same
    pieces where a run's seed hangs on its piece's name and the number of the repeat: pieces that join the list, or change
    places in it, then leave the numbers of the others as they are. `told` says everything that there is to say, in place of
    the usual summary. `check` is given the pieces to be made before the first of them, and refuses what is sure to fail in
    one of them.
    """

    name: str
    title: str
    source: str
    run: Run = field(repr=False)
    params: Mapping[str, Any] = field(default_factory=dict)
    runs: int = 100
    batch: int = 10
    exact: bool = False
    figures: Callable[[pa.Table], Mapping[str, Mapping[str, Any]]] | None = field(default=None, repr=False)
    more: Callable[[pa.Table], list[Row]] | None = field(default=None, repr=False)
    carried: Mapping[str, Row] = field(default_factory=dict, repr=False)
    pieces: tuple[str, ...] = field(default=(), repr=False)
    cases: tuple[str, ...] = field(default=(), repr=False)
    lacks: Callable[[str], bool] | None = field(default=None, repr=False)
    told: Callable[[pa.Table], list[Row]] | None = field(default=None, repr=False)
    check: Callable[[Sequence[str]], None] | None = field(default=None, repr=False)

    def wanted(self, repeats: int, only: Sequence[str] = (), skip: Sequence[str] = ()) -> list[int]:
        """The runs of so many repeats. Each of `only` holds words, of which a piece's name must have one, and none of `skip`'s."""
        chosen = [place for place, name in enumerate(self.pieces) if self._is_wanted(name, only, skip)]
        if not chosen and (only or skip or self.pieces):
            named = any(self._is_named(name, only, skip) for name in self.pieces)
            why = "fits no piece of this experiment"
            lack = "fits pieces whose tables are not at hand; name the folder they lie in in RETICENT_DATA"
            raise PlanError(lack if named else why, field="only")
        size = len(self.pieces) or 1
        return [repeat * size + place for repeat in range(repeats) for place in chosen or [0]]

    def _is_wanted(self, name: str, only: Sequence[str], skip: Sequence[str]) -> bool:
        return self._is_named(name, only, skip) and not (self.lacks is not None and self.lacks(name))

    def _is_named(self, name: str, only: Sequence[str], skip: Sequence[str]) -> bool:
        words = set(name.split("/"))
        fits = all(words & set(choice.split(",")) for choice in only)
        return fits and not any(words & set(choice.split(",")) for choice in skip)

    def repeats(self, outcomes: pa.Table) -> int:
        """How often it was repeated, in whole or in part."""
        return len({run // (len(self.pieces) or 1) for run in outcomes["run"].unique().to_pylist()})

    @property
    def module(self) -> str:
        """Where the run is written."""
        made = self.run.func if isinstance(self.run, partial) else self.run
        return str(made.__module__)

    def seed_of(self, index: int, seed: int) -> int:
        """The seed of one run: a function of the experiment's name, its seed and the run's number alone.

        With `cases` it is one of the case's name and the number of the repeat, in place of the run's number.
        """
        words = [_number(self.name), seed, index]
        if self.cases:
            repeat, place = divmod(index, len(self.cases))
            words = [_number(self.name), seed, repeat, _number(self.cases[place])]
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0])


def _number(name: str) -> int:
    return int.from_bytes(name.encode(), "big")


def table_of(runs: Mapping[int, Sequence[Outcome]]) -> pa.Table:
    """Outcomes as a tidy table, one line each, in the order of the runs."""
    rows = [
        {"run": index, **asdict(outcome), **(outcome.printed.row() if outcome.printed is not None else {})}
        for index, outcomes in runs.items()
        for outcome in outcomes
    ]
    return pa.Table.from_pylist(rows, schema=COLUMNS)
