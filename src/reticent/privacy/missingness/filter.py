"""A budget for the complete truth, when what is asked next depends on what was answered."""

from collections.abc import Collection
from fractions import Fraction

from reticent.decimals import show
from reticent.errors import BudgetError, PlanError
from reticent.privacy.claim import Change
from reticent.privacy.missingness.bounds import amplified, amplified_both_ways
from reticent.privacy.missingness.laws import Law
from reticent.privacy.missingness.uses import Use, sets_of


class Filter:
    """Admits mechanisms one by one, as long as all admitted ones together stay within `budget`.

    Guarantee   budget-DP for the complete truth, of all that was admitted, however each step was chosen from earlier
                outputs.
    Adjacency   `change`, for the truth; every mechanism is proved for add/remove.
    Theorem     THEORY 4.3 and 4.6.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`, but sets and epsilons may depend on earlier outputs, and on nothing else of the rows.
    Keeps back  which answers are missing. What was admitted is a function of the outputs, and may be told.
    """

    __slots__ = ("_admitted", "_budget", "_change", "_law")

    def __init__(self, *, budget: Fraction, observed: Law, change: Change = Change.ADD_REMOVE) -> None:
        if not budget > 0:
            raise PlanError(f"it is {budget}, but must be positive.", field="budget")
        self._budget, self._law, self._change = budget, observed, change
        self._admitted: tuple[Use, ...] = ()

    @property
    def spent(self) -> Fraction:
        """What the admitted mechanisms cost together, rounded up."""
        return self._cost(self._admitted) if self._admitted else Fraction(0)

    def admits(self, *sets: Collection[str], epsilon: Fraction) -> bool:
        """Whether a mechanism on these attributes fits; several sets are the candidates of one choice."""
        return self._cost(self._with(sets, epsilon)) <= self._budget

    def spend(self, *sets: Collection[str], epsilon: Fraction) -> None:
        """Admit a mechanism, or refuse it before it has run."""
        admitted = self._with(sets, epsilon)
        cost = self._cost(admitted)
        if cost > self._budget:
            raise BudgetError(
                f"this step would bring the cost to {show(cost)}, and {show(self._budget)} is there; "
                "use a smaller epsilon, or stop here.",
                field="budget",
            )
        self._admitted = admitted

    def _with(self, sets: tuple[Collection[str], ...], epsilon: Fraction) -> tuple[Use, ...]:
        return (*self._admitted, Use(sets=sets_of(*sets), epsilon=epsilon))

    def _cost(self, uses: tuple[Use, ...]) -> Fraction:
        cost = amplified if self._change is Change.ADD_REMOVE else amplified_both_ways
        return cost(uses, self._law)
