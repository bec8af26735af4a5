"""PrivBayes, by Zhang, Cormode, Procopiuc, Srivastava and Xiao: a network of noisy conditionals, n kept confidential."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.synth.base import Counts, Holes, Network, Spend, Step, SynthNoise
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.marginals.bayes_parents import ParentChoice, candidates
from reticent.synth.marginals.bayes_scores import REACH, dependence
from reticent.synth.marginals.bayes_search import Search
from reticent.synth.marginals.independent import total_of
from reticent.synth.spending import Accountant, claim_of
from reticent.synth.tables import clipped, nearest

PAGE = "proofs/synth/marginals/privbayes.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivBayes:
    """Half of the amount chooses parents, half measures. With available cells it is PrivBayesE.

    A table is worth its noise where an even spread of the rows puts `useful` times the noise into a cell. `rows` is a
    public number of rows to judge that by; without it, and without one in the codebook, a noisy count is taken
    for `counting` of the amount. The published code clips negative cells, which lifts the empty ones; `clips` does the same.
    """

    rows: int | None = None
    useful: float = 4.0
    choosing: Fraction = Fraction(1, 2)
    counting: Fraction = Fraction(1, 50)
    clips: bool = False
    share: Fraction = SHARE
    name: str = "privbayes"

    def check(self, domain: Domain, holes: Holes, spend: Spend) -> None:
        check_spend(holes, spend, self.share)
        if self.rows is not None and self.rows < 1:
            raise PlanError("is a whole number from 1 up", field="rows")

    def claim(self, domain: Domain, holes: Holes, spend: Spend) -> Claim:
        return claim_of(spend, *filling(holes), ("Zhang and others 2017, with n confidential", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 2 * len(domain.axes) + 1

    def fit(
        self, counts: Counts, domain: Domain, holes: Holes, spend: Spend, *, noise: SynthNoise, step: Step
    ) -> Network:
        """Choose a network column by column, then measure its tables.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     Zhang and others 2017; the score's reach is that of `dependence`.
        Proof       proofs/synth/marginals/privbayes.md
        Assumes     `counts` maps rows one by one; `rows` and the codebook's sample size are public.
        Keeps back  tables, scores and the number of rows.
        """
        held, left = prepared(
            counts, domain, holes, spend, noise=noise, model=self, share=self.share, step=step
        )
        purse = Accountant(spend=left, noise=noise)
        tidy = clipped if self.clips else nearest
        search = Search(counts=held, domain=domain, holes=holes, purse=purse, score=dependence, tidy=tidy)
        rows = self._rows(search)
        amount = (1 - self.choosing) * purse.left if len(domain.axes) > 1 else purse.left
        most = rows / (self.useful * purse.size(amount / len(domain.axes)))
        network = _network(search, most, amount=purse.left - amount, step=step)
        noisy = search.measure(network, amount=amount)
        step("tables")
        total = total_of(noisy)
        steps = tuple(
            search.conditional(one, search.scaled(one, table, total=total))
            for one, table in zip(network, noisy, strict=True)
        )
        return Network(domain=domain, steps=steps, total=total, claim=self.claim(domain, holes, spend))

    def _rows(self, search: Search) -> float:
        """A number of rows that may be looked at. Of complete rows no public number is known."""
        known = self.rows or search.domain.schema.sample_size
        if known and search.holes is not Holes.COMPLETE:
            return float(known)
        (table,) = search.counts.count([(0,)])
        (noisy,) = search.purse.measure([np.array([table.sum()])], amount=self.counting * search.purse.total)
        return max(1.0, float(noisy.cells[0]))


def _network(search: Search, most: float, *, amount: Fraction, step: Step) -> list[ParentChoice]:
    """A first column by lot, then one at a time, each with parents among those before."""
    network = [search.by_lot()]
    columns = len(search.domain.axes)
    reach = REACH * search.purse.spend.neighbours.steps
    while len(network) < columns:
        open_ = candidates(search.domain, search.ladders, tuple(one.place for one in network), most)
        network.append(search.best(open_, sensitivity=reach, amount=amount / (columns - 1)))
        step("parents")
    return network
