"""Which lines and points the figures on synthesis with missing data are made of, each written as words with strokes between.

A point is one method and strategy on one table with one mask, at one epsilon: `adult/MCAR/0.2/aim/holes/1`. A table's name may
end in its number of bins, `adult-10`. A strategy that pays for an imputation may end in the per cent it takes of the budget,
`impute-mean-25`. A last word `every-target` asks for F1 alone, averaged over every column as the target.
"""

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from reticent.lab.run.experiment import Outcome
from reticent.lab.trials.fitting import KAMINO_FIRST, NO_MISSING
from reticent.lab.trials.tables import CENSUS
from reticent.synth.base import MissingMethod
from reticent.synth.domain import BINS

EVERY_TARGET = "every-target"
NO_NOISE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One method and strategy on one table with one mask, at one epsilon. Numbers are kept as they are written."""

    dataset: str
    mask: str
    rate: str
    method: str
    strategy: str
    epsilon: str

    def __str__(self) -> str:
        return "/".join(astuple(self))

    @classmethod
    def read(cls, text: str) -> "Point":
        """The point that a piece is of, whatever is measured there."""
        words = text.removesuffix(f"/{EVERY_TARGET}").split("/")
        return cls(**dict(zip(cls.__slots__, words, strict=True)))

    @property
    def table(self) -> str:
        """The trial table's own name."""
        return self.dataset.partition("-")[0]

    @property
    def bins(self) -> int:
        """How many bins numbers are put in, when rows are learned from and when they are judged."""
        return int(self.dataset.partition("-")[2] or BINS)

    @property
    def way(self) -> str:
        """The strategy without the per cent that it may end in."""
        stem, _, last = self.strategy.rpartition("-")
        return stem if last.isdigit() else self.strategy

    @property
    def share(self) -> Fraction | None:
        """Which share of the budget the imputation takes, where the strategy says so."""
        last = self.strategy.rpartition("-")[2]
        return Fraction(int(last), 100) if last.isdigit() else None

    @property
    def amount(self) -> Fraction | None:
        """Epsilon as a number; none where there is no noise."""
        return None if self.epsilon == NO_NOISE else Fraction(self.epsilon)

    def outcome(self, name: str, value: float, seconds: float) -> Outcome:
        """What was measured here. A distance of 0 is the truth; so it is written as an estimate of 0."""
        return Outcome(
            method=self.method,
            query=f"{name}/{self}",
            epsilon=None if self.amount is None else float(self.amount),
            truth=0.0,
            estimate=value,
            seconds=seconds,
        )

    def row(self) -> dict[str, Any]:
        """The public part of a row: where it stands."""
        return {
            "dataset": self.dataset,
            "mask": self.mask,
            "rate": float(self.rate),
            "method": self.method,
            "strategy": self.strategy,
            "epsilon": None if self.amount is None else float(self.amount),
        }


FLOORS = ("bootstrap", "decode-floor")
METHODS = ("privbayes", "mst", "aim")
DOCUMENTED = tuple(each for each in MissingMethod if each is not MissingMethod.WEIGHTED)
"""All but weighing by who answers, which has an experiment of its own."""
STRATEGIES = (*("holes" if each is MissingMethod.VALUES else str(each) for each in DOCUMENTED), NO_MISSING)
BASELINE = ("independent", "available")
LINES = (
    BASELINE,
    *((method, strategy) for method in METHODS for strategy in ("complete", "available", "holes")),
    ("chain", "available"),
)
RATES, EPSILONS = ("0.01", "0.05", "0.1", "0.2", "0.3"), ("0.5", "1", "3", "5", "10", NO_NOISE)
KINDS = (("MCAR", "0.1"), ("MAR", "0.1"), ("MNAR", "0.1"), ("MAR", "0.35"))
SPLITS = ("25", "50", "75")
PRINTED = "privbayes-printed"
SPLIT = tuple(f"{way}-{split}" for way in ("impute-mean", "impute-model", KAMINO_FIRST) for split in SPLITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One of the document's three pairs: a method for complete rows, and one that adapts to missing cells.

    Parameters
    ----------
    plain : the method that the strategies for incomplete rows are tried with
    adaptive : the method and strategy that learn from the rows as they are
    epsilon : at which the document compares strategies, rates and kinds of silence
    """

    plain: str
    adaptive: tuple[str, str]
    epsilon: str = "1"

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Complete rows, and the adaptive method."""
        return (self.plain, "complete"), self.adaptive

    @property
    def strategies(self) -> tuple[tuple[str, str], ...]:
        """All that Figure 2 compares."""
        ways = (NO_MISSING, "complete", "impute-random", *SPLIT)
        return *((self.plain, way) for way in ways), self.adaptive


FAMILIES: tuple[Family, ...] = (
    Family(plain="privbayes", adaptive=("privbayes", "available")),
    Family(plain="kamino", adaptive=("kamino-i", "available")),
    Family(plain="dpautogan", adaptive=("misgan", "available"), epsilon="3"),
)
LONGER = (("dpctgan", NO_MISSING), ("dpctgan", "complete"), ("misgan", "holes"))
"""Beside the pairs: the longer version's further network, at the epsilon of the others of its kind."""
FIFTH = partial(Point, mask="MCAR", rate="0.2")


def points(dataset: str) -> Iterator[Point]:
    """What the four figures and the table need of one dataset, some of it more than once."""
    yield from _ours(dataset)
    if dataset != CENSUS:
        yield from _document(dataset)


def _ours(dataset: str) -> Iterator[Point]:
    """Floors, baseline, and every method of ours at every rate, kind of silence and epsilon."""
    at = partial(Point, dataset=dataset)
    for floor in FLOORS:
        yield FIFTH(dataset=dataset, method=floor, strategy=NO_NOISE, epsilon=NO_NOISE)
    for method, strategy in (BASELINE, *((m, s) for m in METHODS for s in STRATEGIES)):
        yield FIFTH(dataset=dataset, method=method, strategy=strategy, epsilon="1")
    for method, strategy in LINES:
        line = partial(at, method=method, strategy=strategy)
        yield from (line(mask="MAR", rate="0.2", epsilon=e) for e in ("1", "3"))
        yield from (line(mask="MCAR", rate="0.2", epsilon=e) for e in EPSILONS)
        yield from (line(mask="MCAR", rate=rate, epsilon=e) for rate in RATES for e in ("1", "3"))
        yield from (line(mask=kind, rate=rate, epsilon="1") for kind, rate in KINDS)
    for method in METHODS:
        yield FIFTH(dataset=dataset, method=method, strategy=NO_MISSING, epsilon="3")


def _document(dataset: str) -> Iterator[Point]:
    """The document's own pairs and settings, where ours differ from them."""
    yield from (at for family in FAMILIES for at in figures_2_to_4(dataset, family))
    yield from (
        FIFTH(dataset=dataset, method=m, strategy=s, epsilon=e) for m, s in LONGER for e in ("1", "3")
    )
    few = ("dpautogan", NO_MISSING), ("misgan", "available")
    yield from (FIFTH(dataset=dataset, method=m, strategy=s, epsilon="1") for m, s in few)
    ways = ("holes", "impute-random", "impute-mean", "impute-model", NO_MISSING)
    yield from (FIFTH(dataset=dataset, method=PRINTED, strategy=way, epsilon="1") for way in ways)
    for method, way in (*((m, NO_MISSING) for m in METHODS), BASELINE, *((m, "available") for m in METHODS)):
        yield FIFTH(dataset=f"{dataset}-10", method=method, strategy=way, epsilon="1")
    if dataset == "adult":
        tenth = partial(Point, dataset=dataset, mask="MCAR", rate="0.1")
        lines = dict.fromkeys([*LINES, *(line for family in FAMILIES for line in family.lines)])
        yield from (tenth(method=m, strategy=s, epsilon=e) for m, s in lines for e in EPSILONS)


def figures_2_to_4(dataset: str, family: Family) -> Iterator[Point]:
    """Strategies; rates, to 20 % on National as in the document; kinds of silence."""
    at = partial(Point, dataset=dataset, epsilon=family.epsilon)
    for method, strategy in family.strategies:
        yield at(mask="MCAR", rate="0.2", method=method, strategy=strategy)
    rates = ("0.1", "0.2") if dataset == "national" else ("0.1", "0.2", "0.3")
    for method, strategy in family.lines:
        line = partial(at, method=method, strategy=strategy)
        yield from (line(mask="MCAR", rate=rate) for rate in rates)
        yield from (line(mask=kind, rate=rate) for kind, rate in KINDS)


def every_target(dataset: str) -> Iterator[str]:
    """Pieces that measure F1 over every column as the target: the points of Figures 2 to 4, and floors."""
    if dataset == CENSUS:
        return
    chosen = [FIFTH(dataset=dataset, method=FLOORS[0], strategy=NO_NOISE, epsilon=NO_NOISE)]
    for method, way in (BASELINE, ("aim", NO_MISSING), ("aim", "available"), ("aim", "holes")):
        chosen.append(FIFTH(dataset=dataset, method=method, strategy=way, epsilon="1"))
    chosen += [at for family in FAMILIES for at in figures_2_to_4(dataset, family)]
    yield from (f"{point}/{EVERY_TARGET}" for point in chosen)


def pieces_of(dataset: str) -> list[str]:
    """All pieces of one dataset, each once."""
    return list(dict.fromkeys([*map(str, points(dataset)), *every_target(dataset)]))
