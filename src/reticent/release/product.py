"""How the products of a plan are made: a producer for each, on one run of the plan, and the result that a release tells.

A producer says what it needs of the rows and refuses, before the charge, what it could not make. What it gives is noisy and
may be published. The producers stand in `release/release.py`; the runner and the document loop over them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.engine.wants import Aggregate, Tallies
from reticent.files import Tidy
from reticent.noise.bits import Bits
from reticent.noise.source import Noise
from reticent.plan.budgets import Product
from reticent.plan.plan import Plan
from reticent.prepare.repair import Repair
from reticent.privacy.claim import Claim

Step = Callable[[str], None]
P = TypeVar("P", bound=Product)


class Result(Protocol):
    """What one product gave, after the noise."""

    __slots__ = ()

    @property
    def epsilon(self) -> Fraction:
        """What was spent on it."""
        ...

    @property
    def claims(self) -> Sequence[Claim]:
        """What its parts promise, asked of what was run."""
        ...

    @property
    def is_as_planned(self) -> bool:
        """Whether it was measured as planned, beyond its price. Both sides are public."""
        return True

    @property
    def repair(self) -> Repair | None:
        """How rows are filled from then on; None where it fills none."""
        return None

    @property
    def ground_claims(self) -> Sequence[Claim]:
        """What was found for it beforehand promises, such as the bins of weights."""
        return ()

    @property
    def keys(self) -> Sequence[str]:
        """The columns that its sections name or whose levels stand in them, for their labels."""
        return ()

    def grounds(self) -> dict[str, Any]:
        """Sections of the document on what it rests on: models that filled rows, weights."""
        return {}

    def document(self) -> dict[str, Any]:
        """Its sections of the document."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRun:
    """One run of a plan, as its producers see it: the rows, CONFIDENTIAL aggregates, and where noise comes from.

    `repair` is the plan's, with the models that were fitted so far; `results` are those of the products before. `step`
    hears names of the plan alone.
    """

    plan: Plan
    engine: Engine = field(repr=False)
    lot: Lot | None = field(repr=False)
    noise: Noise = field(repr=False)
    bits: Bits = field(repr=False)
    step: Step = field(repr=False)
    repair: Repair = field(repr=False)
    tallies: Tallies = field(repr=False)
    results: tuple[Result, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Producer(Generic[P]):
    """Makes one product of a plan.

    **Parameters**

    - `asked`: the product.
    - `plan`: the plan that asks for it.
    """

    asked: P
    plan: Plan

    fills: ClassVar[bool] = False
    """Whether it fills rows for the others, and so is made before anything else is read off them."""
    is_tried_whole: ClassVar[bool] = True
    """Whether all of it is tried on nobody, as part of the whole plan."""

    @property
    def steps(self) -> int:
        """At most how many steps a progress bar hears of."""
        return len(self.asked.names)

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files that it will write beside the JSON and its CSV."""
        return ()

    def check(self) -> None:
        """Refuse what could not be made, from public numbers: before the charge, and without a row."""

    def small(self) -> P | None:
        """What is tried of it otherwise; None where `check` has tried it alone."""
        return self.asked

    def wants(self) -> Sequence[Aggregate]:
        """The aggregates that it needs of the rows."""
        return ()

    def run(self, on: PlanRun) -> Result:
        """Make it."""
        raise NotImplementedError


Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A small table for the terminal; every cell is plain text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


Line = str | Grid
"""What a terminal prints at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedSection:
    """How one section of a released document is read back.

    **Fields**

    - `rows`: the lines of one statistic or table; None where they are not had by name.
    - `files`: from a document, what is written beside its JSON and its CSV, by the ending of the file.
    - `tidy`: from a document, a line for each of its numbers; None where it has none of its own.
    """

    rows: Callable[[Document], list[dict[str, Any]]] | None = None
    files: Callable[[Document], Mapping[str, Callable[[Document], bytes]]] | None = None
    tidy: Callable[[Document], Tidy] | None = None
