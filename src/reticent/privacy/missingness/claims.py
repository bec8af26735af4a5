"""Claims about the complete truth: composed first, amplified once, and refused where there is no theorem.

`Filter` keeps a budget for the complete truth when what is asked next depends on what was answered.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from reticent.errors import BudgetError, PlanError, nearest
from reticent.exact import show
from reticent.privacy.claim import Change, Claim, compose
from reticent.privacy.convert import zcdp_to_epsilon
from reticent.privacy.missingness.bounds import (
    Rated,
    amplified,
    amplified_both_ways,
    amplified_delta,
    amplified_epsilon,
    amplified_replaced,
    pure,
    zcdp,
)
from reticent.privacy.missingness.masks import Law, Sets, Use, sets_of

PAGE = "proofs/privacy/missingness.md"
SECRET = "secret"
REFUSED = {
    "known": "a reader who knows who left which question unanswered knows which tables a respondent is in, and to "
    "that reader the guarantee is the sum about the incomplete data",
    "estimated": "a chance counted in the table is confidential, and may be below the true one, where it is no bound; "
    "type a chance that the design fixes, or an upper bound released with its own epsilon",
    "together": "if one respondent's item nonresponse goes with another's, a table tells of both; the theorem needs rows masked "
    "independently of each other, and without it even the promise about the data held may not carry over",
    "donors": "a respondent without an answer is given one and counted with it, so every row is used whatever is missing",
}


def masks_of(name: str) -> str:
    """`secret`; any other state of the masks is refused, with the reason where it is a known one."""
    if name in REFUSED:
        raise PlanError(
            f"nothing is amplified where masks are {name!r}: {REFUSED[name]}; claim the guarantee about the data held.",
            field="masks",
        )
    if name != SECRET:
        raise PlanError(f"{name[:40]!r} is not {SECRET}{nearest(name, [SECRET, *REFUSED])}.", field="masks")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A claim made on the rows in which one of `sets` is observed in full. EVERY_ROW where the rest is filled first.

    `is_replaced_too` says that the same epsilon is proved for replacing any used row by any other.
    """

    claim: Claim
    sets: Sets
    is_replaced_too: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "sets", sets_of(*self.sets))
        if self.claim.change is not Change.ADD_REMOVE:
            raise PlanError(
                "how many rows are used is random, and a guarantee against replaced answers does not cover it; use "
                "mechanisms proved for adding or removing.",
                field="change",
            )
        if self.claim.measure == "observed":
            raise PlanError("an observed sensitivity guarantees nothing formal.", field="measure")
        if self.claim.about != "the incomplete data held":
            raise PlanError(
                "the guarantee is amplified already; begin with that of the mechanism.", field="about"
            )


def amplify_missing(
    runs: Sequence[Run],
    *,
    observed: Law,
    change: Change,
    masks: str = SECRET,
    delta: Fraction | None = None,
) -> Claim:
    """The promise about the complete truth of all `runs` on one incomplete table. They are composed first.

    zCDP is carried over order by order, and needs a `delta` at which to say the result.

    Guarantee   the returned claim.
    Adjacency   `change`, for the truth; the runs are proved for add/remove.
    Theorem     THEORY 4.1, 4.4, 4.5 and 4.6.
    Proof       proofs/privacy/missingness.md
    Assumes     one row for each respondent; rows masked independently of each other, by `observed`; masks are secret;
                all runs on the table are listed, with sets fixed before the first output.
    Keeps back  which answers are missing.
    """
    masks_of(masks)
    whole = compose([run.claim for run in runs])
    made = (
        _converted(runs, whole, observed, delta)
        if whole.measure == "zcdp"
        else _summed(runs, whole, observed)
    )
    if change is not Change.ADD_REMOVE:
        made = _replaced(runs, made, observed) if made.measure == "pure" else made.under(change)
    rests = (*whole.rests_on, ("THEORY 4.1 to 4.6", PAGE))
    return replace(made, about="the complete truth behind it", rests_on=rests)


def _summed(runs: Sequence[Run], whole: Claim, law: Law) -> Claim:
    uses = _uses(runs)
    return replace(whole, epsilon=amplified(uses, law), delta=amplified_delta(uses, law))


def _converted(runs: Sequence[Run], whole: Claim, law: Law, delta: Fraction | None) -> Claim:
    if delta is None:
        raise PlanError("zCDP is carried over to (epsilon, delta); say the delta.", field="delta")
    rated = [
        Rated(sets=r.sets, curve=zcdp(rho=r.claim.rho) if r.claim.rho else pure(epsilon=r.claim.epsilon))
        for r in runs
    ]
    plain = zcdp_to_epsilon(rho=whole.rho, delta=delta)
    epsilon = min(amplified_epsilon(rated, law, delta=delta), plain)
    return replace(whole, measure="approximate", rho=Fraction(0), epsilon=epsilon, delta=delta)


def _replaced(runs: Sequence[Run], made: Claim, law: Law) -> Claim:
    cost = amplified_replaced if all(run.is_replaced_too for run in runs) else amplified_both_ways
    return replace(made, epsilon=cost(_uses(runs), law), change=Change.REPLACE)


def _uses(runs: Sequence[Run]) -> list[Use]:
    return [Use(sets=run.sets, epsilon=run.claim.epsilon, delta=run.claim.delta) for run in runs]


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
