"""Measure every pair of columns, and choose after the noise what the model is fitted to: for intervals from synthetic tables.

Nothing is chosen by a look at rows, so every share, two-way cell, mean and slope has an interval that needs no condition
(`synth/answer.py`). Which pairs the model is fitted to is decided by noisy tables, and free.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.synth.base import FitTask, MissingMethod, Places, Spend, Step
from reticent.synth.domain import Domain
from reticent.synth.fills import check_spend, filling, prepared
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.estimate import NoisyTable
from reticent.synth.graph.tree import tree_cells
from reticent.synth.marginals.study import MOST_CELLS, MarginalFit, check_held, pairs
from reticent.synth.marginals.weighted import study_of
from reticent.synth.network import Network
from reticent.synth.residuals import check_residuals, fine_axes
from reticent.synth.spending import Accountant, SystemSynthNoise, claim_of

PAGE = "proofs/synth/marginals/pairs.md"
NOISE = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPairs:
    """A fifth of the amount for columns, the rest in equal parts for all pairs of at most `most_pair` cells.

    The model is fitted to at most `most_pairs` of them and has at most `most_cells` cells: in rounds, the `at_once` pairs
    whose noisy tables are furthest from the model's, less what noise alone would be.
    """

    columns: Fraction = Fraction(1, 5)
    most_pair: int = MOST_CELLS
    most_pairs: int = 45
    most_cells: int = 300_000
    at_once: int = 3
    iterations: int = 60
    last: int = 300
    share: Fraction = Fraction(1, 2)
    residuals: bool = True
    name: str = "pairs"

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share, is_weighed=True)
        if self.residuals:
            check_residuals(missing, domain)
        measured = pairs(domain, self.most_pair)
        if len(domain.axes) < 2 or not measured:
            raise PlanError("needs two columns or more whose pair has few enough cells", field="columns")
        check_held(domain, measured)

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("every pair measured, none chosen", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 1 + len(pairs(domain, self.most_pair)) + self.most_pairs

    def deviations(self, domain: Domain, spend: Spend) -> tuple[float, float]:
        """The noise of one cell of a column's list and of a pair's, in rows: public, before a row is read."""
        accountant = Accountant(spend=spend, noise=SystemSynthNoise())
        lists, sums = len(domain.axes), int(self.residuals and bool(fine_axes(domain)))
        one = accountant.deviation(self.columns * accountant.total / lists, sums=sums)
        every = len(pairs(domain, self.most_pair))
        return one, accountant.deviation((1 - self.columns) * accountant.total / every, sums=2 * sums)

    def fit(self, task: FitTask) -> Network:
        """Measure all columns and all pairs, then fit a model to the pairs that it gets most wrong.

        Guarantee   that of `spend`, for the noisy lists, the network, and all that is made of them.
        Adjacency   `spend.neighbours`.
        Theorem     Gaussian or Laplace noise on lists; composition. Nothing is chosen before the noise.
        Proof       proofs/synth/marginals/pairs.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all tables and sums before the noise, and the number of rows.
        """
        domain, step = task.domain, task.step
        study = study_of(prepared(task, model=self, share=self.share), residuals=self.residuals)
        total, every = study.accountant.total, pairs(domain, self.most_pair)
        study.start(amount=self.columns * total, merge=0)
        step("columns")
        study.hold(every)
        part = (1 - self.columns) * total / len(every)
        for pair in every:
            study.measure(pair, amount=part, is_chosen=False)
            step("pair")
        measured = dict(zip(every, study.measured[len(domain.axes) :], strict=True))
        study.measured = study.measured[: len(domain.axes)]
        fitted = self._fit(study, measured, step)
        return study.network(fitted, self.claim(domain, task.missing, task.spend))

    def _fit(self, study: MarginalFit, measured: dict[Places, NoisyTable], step: Step) -> FittedGraph:
        """After the noise: add pairs to the model, round by round, until none is worth it or it is full."""
        model, chosen = study.fit(iterations=self.iterations), list[Places]()
        while len(chosen) < self.most_pairs:
            open_ = {
                pair: study.offered(each, model) for pair, each in measured.items() if pair not in chosen
            }
            worst = self._worst(model, open_)
            added = self._fitting(study, chosen, worst)
            if not added:
                break
            chosen += added
            study.measured += [measured[pair] for pair in added]
            model = study.fit(iterations=self.iterations, start=model)
            step("model")
        study.fit_only(chosen)
        return study.finish(iterations=self.last, start=model)

    def _worst(self, model: FittedGraph, open_: dict[Places, NoisyTable]) -> list[Places]:
        """Pairs whose tables tell more than noise, those that tell most first."""
        gains = {
            pair: float(np.abs(open_[pair].table - table).sum()) - NOISE * open_[pair].deviation * table.size
            for pair, table in zip(open_, model.marginals(list(open_)), strict=True)
        }
        return sorted((pair for pair in open_ if gains[pair] > 0), key=lambda pair: -gains[pair])

    def _fitting(self, study: MarginalFit, chosen: Sequence[Places], worst: Sequence[Places]) -> list[Places]:
        """The first few that keep the model small enough."""
        added: list[Places] = []
        for pair in worst:
            if len(added) == self.at_once or len(chosen) + len(added) == self.most_pairs:
                break
            sets = [
                *chosen,
                *added,
                pair,
                *study.settled,
                *((place,) for place in range(len(study.domain.axes))),
            ]
            if tree_cells(study.view.shape, sets) <= self.most_cells:
                added.append(pair)
        return added
