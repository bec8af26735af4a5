"""Every column by itself: noisy histograms. The baseline that a synthesizer has to beat."""

from dataclasses import dataclass
from fractions import Fraction

from reticent.privacy.claim import Claim
from reticent.synth.base import Conditional, FitTask, Floats, MissingMethod, Spend
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.marginals.study import plain
from reticent.synth.network import Network, one_scale, simplex, total_of
from reticent.synth.spending import Accountant, claim_of

PAGE = "proofs/synth/marginals/independent.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Independent:
    """All histograms at once, the amount in equal parts. `share` goes to filling, where the strategy pays for it."""

    share: Fraction = SHARE
    name: str = "independent"

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share)

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("noisy histograms of columns", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 2

    def fit(self, task: FitTask) -> Network:
        """Measure every column once, with one cell more for the rows that its histogram leaves out.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     one record is in one cell of each histogram; composition.
        Proof       proofs/synth/marginals/independent.md
        Assumes     `counts` maps rows one by one.
        Keeps back  the histograms before the noise, and the number of rows.
        """
        domain, missing = task.domain, task.missing
        ready = prepared(task, model=self, share=self.share)
        view, places = plain(domain, missing), range(len(domain.axes))
        counted = ready.counts.count([(place,) for place in places])
        accountant = Accountant(spend=ready.spend, noise=ready.noise)
        noisy = accountant.measure(
            [view.parted(t, (p,)) for t, p in zip(counted, places, strict=True)], amount=accountant.total
        )
        task.step("columns")
        total = total_of(noisy)
        ones = [each.cells[: view.cells((place,))] for place, each in enumerate(noisy)]
        if missing is MissingMethod.AVAILABLE:
            ones = [one_scale(each, total, view.blocks((p,))).cells for p, each in enumerate(noisy)]
        steps = tuple(view.widened(_alone(place, cells)) for place, cells in enumerate(ones))
        return Network(domain=domain, steps=steps, total=total, claim=self.claim(domain, missing, task.spend))


def _alone(place: int, cells: Floats) -> Conditional:
    made = simplex(cells, max(float(cells.sum()), 1.0))
    return Conditional(place=place, given=(), table=made / made.sum())
