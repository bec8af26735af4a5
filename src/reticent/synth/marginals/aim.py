"""Measure what the model gets most wrong, and again: AIM, by McKenna, Mullins, Sheldon and Miklau."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from reticent.errors import PlanError
from reticent.privacy.claim import Claim
from reticent.synth.base import FitTask, Floats, MissingMethod, Places, Spend, Step
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.graph.beliefs import FittedGraph
from reticent.synth.graph.tree import tree_cells
from reticent.synth.marginals.study import MOST_CELLS, Candidate, MarginalFit, candidates, check_held, pairs
from reticent.synth.marginals.weighted import study_of
from reticent.synth.network import Network
from reticent.synth.residuals import check_residuals
from reticent.synth.spending import claim_of

PAGE = "proofs/synth/marginals/aim.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class AIM:
    """Rounds of choosing and measuring: nine tenths of every amount measure, the rest chooses.

    The amount is planned for `per_column` rounds a column, of which the first go to all columns. It is multiplied by
    `grow` whenever a table told nothing new. The model has at most `most_cells` cells, in proportion to what is spent.
    Cells with fewer than `merge` deviations of noise are put together. The authors' setting is
    `AIM(per_column=16, grow=4, merge=0, most_cells=10_000_000, name="aim-printed")`; the one here was chosen on Adult.
    """

    per_column: int = 3
    grow: int = 2
    measuring: Fraction = Fraction(9, 10)
    merge: float = 3.0
    most_pair: int = MOST_CELLS
    most_cells: int = 300_000
    iterations: int = 50
    last: int = 300
    share: Fraction = SHARE
    residuals: bool = False
    name: str = "aim"

    def __post_init__(self) -> None:
        if self.per_column < 2 or self.grow < 2 or not 0 < self.measuring < 1:
            raise PlanError(
                "takes two rounds a column or more, growth of 2 or more, and a share for measuring"
            )

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        check_spend(missing, spend, self.share, is_weighed=True)
        if self.residuals:
            check_residuals(missing, domain)
        check_held(domain, pairs(domain, self.most_pair))

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(missing), ("McKenna, Mullins, Sheldon and Miklau 2022", PAGE))

    def rounds(self, domain: Domain) -> int:
        return 2 * self.per_column * len(domain.axes)

    def fit(self, task: FitTask) -> Network:
        """Measure all columns, then round by round the table that is most worth it, and fit once more.

        Guarantee   that of `spend`, for the network and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     McKenna, Mullins, Sheldon and Miklau 2022, with scores and tables on grids.
        Proof       proofs/synth/marginals/aim.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all tables before the noise, all scores, and the number of rows.
        """
        domain, step = task.domain, task.step
        study = study_of(prepared(task, model=self, share=self.share), residuals=self.residuals)
        columns = len(domain.axes)
        part = study.accountant.total / (self.per_column * columns)
        study.start(amount=columns * self.measuring * part, merge=self.merge)
        step("columns")
        options = candidates(pairs(domain, self.most_pair), columns)
        study.hold([each.places for each in options])
        model = self._rounds(study, options, part, step)
        fitted = study.finish(iterations=self.last, start=model)
        return study.network(fitted, self.claim(domain, task.missing, task.spend))

    def _rounds(
        self, study: MarginalFit, options: Sequence[Candidate], part: Fraction, step: Step
    ) -> FittedGraph:
        """Choose, measure and fit until nothing is left; `part` is what a round takes."""
        accountant, passes = study.accountant, study.pace * self.iterations
        model = study.fit(iterations=passes)
        while accountant.left > 0:
            part = part if accountant.left > 2 * part else accountant.left
            places, before = self._choose(study, model, self._small(study, options), part)
            made = study.measure(places, amount=self.measuring * part)
            model = study.fit(iterations=passes, start=model)
            step("table")
            # What the noise alone would have moved.
            moved = float(np.abs(study.modelled(model, [places])[0] - before).sum())
            if moved <= NOISE * made.deviation * before.size:
                part *= self.grow
        return model

    def _small(self, study: MarginalFit, options: Sequence[Candidate]) -> list[Candidate]:
        """What was measured before, and what keeps the model small enough for now."""
        most = self.most_cells * float(study.accountant.spent / study.accountant.total)
        known = {each.places for each in study.measured}
        return [
            each
            for each in options
            if each.places in known
            or tree_cells(study.view.shape, [*known, *study.settled, each.places]) <= most
        ]

    def _choose(
        self, study: MarginalFit, model: FittedGraph, options: Sequence[Candidate], part: Fraction
    ) -> tuple[Places, Floats]:
        """A set whose table is far from the model's, less what its noise will add; and the model's table."""
        tables = study.modelled(model, [each.places for each in options])
        noise = study.grain * study.accountant.size(self.measuring * part)
        weights = [max(1, round(WHOLE * each.weight / study.rate(each.places))) for each in options]
        scores = [
            weight * (study.score(each.places, table) - int(noise * table.size))
            for each, table, weight in zip(options, tables, weights, strict=True)
        ]
        sensitivity = study.reach * max(weights)
        place = study.accountant.choose(scores, sensitivity=sensitivity, amount=(1 - self.measuring) * part)
        return options[place].places, tables[place]


NOISE = float(np.sqrt(2 / np.pi))
WHOLE = 16
"""Steps to a weight of one: tables of available cells weigh more, by the inverse of their share of rows."""
