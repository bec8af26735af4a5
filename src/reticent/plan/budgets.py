"""Privacy budgets as a plan writes them, and the products they are spent on. Public words, refused before a charge.

A budget is in epsilon, or with `measure = "zcdp"` in rho. A plan has one unit, that of its ledger. A statistic has one unit
too: in a plan in rho it may keep epsilon and pure noise, and is charged the square over two (THEORY 16.1). What a wave costs,
and which waves count, is the ledger's to say (THEORY 16.4, `privacy/ledger/waves.py`). Nothing here or there looks into the
rows: that nobody is in more waves is known from the design of the sample, or not at all.

A product is what a plan asks to be published, all of one kind: statistics, tables of small cells, synthetic tables. It is a
public value: its names, its guarantee and its price are known before a row is read. How each kind is read stands in
`plan/products.py`, who makes it in `release/release.py`. Everybody else loops over `plan.products`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import Field

from reticent.answer.parts import AnyMeasurement
from reticent.answer.weighting import Weighting
from reticent.errors import REQUIRED, PlanError, nearest
from reticent.exact import show
from reticent.files import Section, fill
from reticent.plan.sections import ProtectSection
from reticent.privacy.claim import DELTA, Change, Claim, Unit, amount, as_approximate, in_words, read_epsilon
from reticent.privacy.ledger import ChargedWave
from reticent.privacy.ledger.waves import MOST_WAVES
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours

if TYPE_CHECKING:
    from reticent.plan.plan import Plan
    from reticent.plan.repairs import Repairs

LARGE = 20
LARGEST_DELTA = Fraction(1, 100)
MEASURES: dict[str, Unit] = {"epsilon": "epsilon", "zcdp": "rho"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What a plan may spend: `cap` of its `unit`. A sum of rho is shown as (epsilon, delta) at `delta`.

    `allowed` is the sum of deltas that mechanisms of a plan in epsilon may have; None where it allows none.
    """

    unit: Unit = "epsilon"
    cap: Fraction
    delta: Fraction = DELTA
    allowed: Fraction | None = None

    def words(self, spent: Fraction) -> str:
        """An amount of the unit for a reader: `epsilon 0.5`, or rho with the pair it stands for."""
        return f"epsilon {show(spent)}" if self.unit == "epsilon" else in_words(spent, self.delta)

    def check(self, cost: Fraction) -> None:
        """Refuse a plan that needs more than it allows."""
        if cost > self.cap:
            raise PlanError(
                f"is {show(self.cap)}, but the plan needs {show(cost)}; raise it or ask for less",
                field=f"protect.{self.unit}",
            )


def read_protection(section: ProtectSection) -> Protection:
    """The `[protect]` section, in the unit that its `measure` says."""
    unit = MEASURES.get(section.measure)
    if unit is None:
        hint = nearest(section.measure[:80], list(MEASURES))
        raise PlanError(f"is one of {', '.join(MEASURES)}{hint}", field="protect.measure")
    if unit == "rho":
        return _in_rho(section)
    if section.rho is not None:
        raise PlanError('goes with measure = "zcdp"; write both, or epsilon alone', field="protect.rho")
    if section.epsilon is None:
        raise PlanError(REQUIRED, field="protect.epsilon")
    cap = read_epsilon(section.epsilon, field="protect.epsilon")
    if cap > LARGE and not section.accept_large:
        raise PlanError(
            f"is above {LARGE}, which guarantees little; write accept_large = true to go on",
            field="protect.epsilon",
        )
    allowed = None if section.delta is None else amount(section.delta, field="protect.delta")
    return Protection(cap=cap, allowed=allowed)


def _in_rho(section: ProtectSection) -> Protection:
    if section.epsilon is not None:
        raise PlanError(
            'a plan with measure = "zcdp" has its budget in rho; write rho in place of epsilon',
            field="protect.epsilon",
        )
    if section.rho is None:
        raise PlanError(
            'goes with measure = "zcdp"; write the budget, such as rho = "0.1"', field="protect.rho"
        )
    cap, delta = amount(section.rho, field="protect.rho"), _shown_at(section.delta)
    if as_approximate(cap, delta) > LARGE and not section.accept_large:
        raise PlanError(
            f"stands for an epsilon above {LARGE}, which guarantees little; write accept_large = true to go on",
            field="protect.rho",
        )
    return Protection(unit="rho", cap=cap, delta=delta)


def _shown_at(text: str | None) -> Fraction:
    if text is None:
        return DELTA
    delta = amount(text, field="protect.delta")
    if delta > LARGEST_DELTA:
        raise PlanError("is above 0.01, which guarantees nothing to one in a hundred", field="protect.delta")
    return delta


class WaveSection(Section):
    """The `[wave]` section: one wave of a panel, charged to a lifetime budget.

    **Keys**

    - `name`: the name of the wave, by which a ledger knows it.
    - `at_most`: in how many waves one respondent can be, by design of the sample.
    - `of`: how many waves the design has.
    - `again`: the wave was released before, and this release adds to what it cost.
    """

    name: str = Field(min_length=1, max_length=100)
    at_most: int = Field(ge=1, le=MOST_WAVES)
    of: int = Field(ge=1, le=MOST_WAVES)
    again: bool = False


def read_wave(raw: Mapping[str, Any] | None, *, is_piece: bool) -> ChargedWave | None:
    """The wave that a plan reads; None where it says nothing of waves, and is charged in full."""
    if raw is None:
        return None
    section = fill(WaveSection, raw, error=PlanError, at="wave")
    if is_piece:
        raise PlanError(
            "does not go with [partition]: a respondent of several waves can be in another piece in each; leave one out",
            field="wave",
        )
    return ChargedWave(name=section.name, at_most=section.at_most, of=section.of, again=section.again)


def wave_words(wave: ChargedWave, unit: str) -> str:
    """What a preview says of it."""
    return (
        f"wave {wave.name}: over a lifetime the {wave.at_most} most costly of {wave.of} waves count, since by design of the "
        f"sample a {unit} is in at most {wave.at_most}; the office's word, which no row is read to check"
    )


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

    def costs(self, plan: "Plan") -> tuple[AnyMeasurement | Claim, ...]:
        """What is paid for, each by itself: measurements where they are known one by one, else the claims."""
        return self.claims(plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a product is read against: the rest of the plan, as far as it is public.

    `held` is the codebook without a sample size where a piece is read: a public number of rows is that of the whole survey.
    `unit` is what the privacy budget is counted in, `rows` how many respondents are expected.
    """

    schema: Schema
    held: Schema
    change: Change
    neighbours: Neighbours
    repairs: "Repairs"
    weight: Weighting | None = None
    unit: Unit = "epsilon"
    rows: int | None = None
