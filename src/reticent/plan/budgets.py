"""Privacy budgets as a plan writes them: epsilon, or with `measure = "zcdp"` rho. Public words, refused before a charge.

A plan has one unit, that of its ledger. A statistic has one unit too: in a plan in rho it may keep epsilon and pure noise,
and is charged the square over two (THEORY 16.1).
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.errors import PlanError, nearest
from reticent.exact import show
from reticent.plan.sections import ProtectSection
from reticent.privacy.claim import amount, read_epsilon
from reticent.privacy.units import DELTA, Unit, as_approximate, in_words

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
        raise PlanError("Field required", field="protect.epsilon")
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


def read_spent(
    epsilon: str | None, rho: str | None, *, unit: Unit, no_rho: str, at: str
) -> tuple[Fraction, bool]:
    """An amount that is written as epsilon or as rho, and whether it is rho; refused where it is both, or cannot be rho.

    `no_rho` says why what it pays for cannot have a budget in rho.
    """
    if rho is None:
        if epsilon is None and unit == "rho":
            raise PlanError(
                "give it rho, or epsilon for pure noise, charged its square over two", field=f"{at}.rho"
            )
        return read_epsilon(epsilon, field=f"{at}.epsilon"), False
    if epsilon is not None:
        raise PlanError(
            "stands beside epsilon: one statistic has one unit; remove one of them", field=f"{at}.rho"
        )
    if unit != "rho":
        raise PlanError(
            'goes with measure = "zcdp" in [protect] and a ledger in rho; write epsilon here',
            field=f"{at}.rho",
        )
    if no_rho:
        raise PlanError(no_rho, field=f"{at}.rho")
    return amount(rho, field=f"{at}.rho"), True
