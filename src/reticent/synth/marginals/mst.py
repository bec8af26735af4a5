"""Columns one by one, then a tree of pairs: MST, by McKenna, Miklau and Sheldon."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.privacy.claim import Claim
from reticent.synth.base import FitTask, Floats, MissingMethod, Places, Spend
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.marginals.study import MarginalFit, check_held, pairs
from reticent.synth.marginals.weighted import study_of
from reticent.synth.network import Network
from reticent.synth.residuals import check_residuals
from reticent.synth.spending import claim_of

PAGE = "proofs/synth/marginals/mst.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class MST:
    """A third of the amount for columns, a third to choose the tree, a third for its pairs.

    Cells with fewer than `merge` deviations of noise are put together before pairs are looked at. Pairs of more than
    `most_cells` cells are not looked at. `share` goes to filling, where the strategy pays for it.
    """

    merge: float = 3.0
    most_cells: int = 100_000
    iterations: int = 1000
    share: Fraction = SHARE
    residuals: bool = False
    name: str = "mst"

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share, is_weighed=True)
        if self.residuals:
            check_residuals(missing, domain)
        check_held(domain, pairs(domain, self.most_cells))

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("McKenna, Miklau and Sheldon 2021", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 2 * len(domain.axes)

    def fit(self, task: FitTask) -> Network:
        """Measure columns, choose a tree of pairs where independence fits worst, measure it, fit.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     McKenna, Miklau and Sheldon 2021, with scores and tables on grids.
        Proof       proofs/synth/marginals/mst.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all tables before the noise, all scores, and the number of rows.
        """
        domain, step = task.domain, task.step
        study = study_of(prepared(task, model=self, share=self.share), residuals=self.residuals)
        edges = pairs(domain, self.most_cells)
        third = study.accountant.total / 3
        study.start(amount=third if edges else study.accountant.total, merge=self.merge)
        step("columns")
        for pair in spanning_tree(study, edges, amount=third):
            study.measure(pair, amount=third / (len(domain.axes) - 1))
            step("pair")
        fitted = study.finish(iterations=self.iterations)
        return study.network(fitted, self.claim(domain, task.missing, task.spend))


def spanning_tree(study: MarginalFit, edges: tuple[Places, ...], *, amount: Fraction) -> list[Places]:
    """Pairs that join columns without a circle, each chosen among all that join two parts not joined yet."""
    columns = len(study.domain.axes)
    study.hold(edges)
    scores = {pair: study.score(pair, _apart(study, pair)) for pair in edges}
    part, chosen = list(range(columns)), []
    while between := [pair for pair in edges if part[pair[0]] != part[pair[1]]]:
        place = study.accountant.choose(
            [scores[pair] for pair in between], sensitivity=study.reach, amount=amount / (columns - 1)
        )
        one, other = (part[place] for place in between[place])
        part = [one if each == other else each for each in part]
        chosen.append(between[place])
    return chosen


def _apart(study: MarginalFit, pair: Places) -> Floats:
    """The pair's table were its columns independent, from what was released of each."""
    one, other = (study.measured[place].table for place in pair)
    return study.counted(np.outer(one, other) / study.total, pair)
