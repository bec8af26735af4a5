"""What a plan asks to be published, product by product: statistics, tables of small cells, synthetic tables.

A product is a public value: its names, its guarantee and its price are known before a row is read. How each kind is read
stands in `plan/products.py`, how it is made in `release/products.py`. Everybody else loops over `plan.products`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Protocol

from reticent.answer.weighting import Weighting
from reticent.privacy.claim import Change, Claim, Unit
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours

if TYPE_CHECKING:
    from reticent.plan.plan import Plan
    from reticent.plan.repairs import Repairs


class Product(Protocol):
    """One kind of thing that a plan asks for, all of it in the order of the plan."""

    __slots__ = ()

    section: ClassVar[str]
    """Its key in a plan."""
    noun: ClassVar[str] = "a table"
    """What one of them is called in a refusal; `plural` is what all of them are."""
    plural: ClassVar[str] = "tables"
    proved_for_moves: ClassVar[bool] = False
    """Whether its proof holds, too, where a replaced answer takes a respondent out of a piece by values."""

    @property
    def names(self) -> tuple[str, ...]:
        """By which its parts are known in a release; none where they have no names."""
        return ()

    @property
    def observed(self) -> Mapping[str, Fraction]:
        """By name what is charged for parts that promise nothing."""
        return {}

    def claims(self, plan: "Plan") -> tuple[Claim, ...]:
        """What its parts promise, from public numbers alone; nothing for what costs nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a product is read against: the rest of the plan, as far as it is public.

    `held` is the codebook without a sample size where a piece is read: a public number of rows is that of the whole survey.
    `unit` is what the privacy budget is counted in.
    """

    schema: Schema
    held: Schema
    change: Change
    neighbours: Neighbours
    repairs: "Repairs"
    weight: Weighting | None = None
    unit: Unit = "epsilon"
