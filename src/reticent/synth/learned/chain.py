"""A joint autoregressive model, trained on available answers by noisy gradients over all rows: `chain`.

Each column is drawn given all columns before it, by one line of weights for each of their answers. What a respondent left
open is absent from the loss and from the inputs: nothing is filled, and no row is dropped.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import ClassVar

import numpy as np

from reticent.engine.protocol import RowFill
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import Counts, Floats, MissingMethod, Spend, Step, SynthNoise
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, check_spend, filling, prepared
from reticent.synth.learned.descent import Pace, calibrated, descend, logits, starting
from reticent.synth.learned.gradient import GRID, LENGTH, ChainFill, ChainGradient, ChainLayout, Whole
from reticent.synth.learned.model import LearnedModel, drawn, fill_cells_of, group_sizes
from reticent.synth.learned.training import NoisySteps
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.study import View, plain
from reticent.synth.network import one_scale, simplex, total_of
from reticent.synth.spending import Accountant, NoisyCounts, claim_of

CHAIN = "chain"
PAGE = "proofs/synth/learned/chain.md"
MOST_PARAMETERS = 5_000_000
MOST_COLUMNS = 500
PACE = Pace()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainModel(LearnedModel):
    """A fitted chain: biases and weights as `ChainLayout` has them, rows drawn column by column."""

    kind: ClassVar[str] = CHAIN

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        sizes = group_sizes(domain, holes)
        return sum((before + 1) * size for before, size in zip(accumulate([0, *sizes]), sizes, strict=False))

    def fills(self) -> tuple[RowFill, ...]:
        """How rows with missing answers are completed, column after column, each from itself."""
        view = plain(self.domain, self.holes)
        layout, grid = ChainLayout.of(view), np.rint(self.parameters * GRID).astype(np.int64)
        return tuple(
            ChainFill(layout=layout, weights=grid, column=place, **fill_cells_of(self.domain, view, place))
            for place in range(len(view.sides))
        )

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        layout = ChainLayout.of(view)
        for place in range(groups.shape[1]):
            block = layout.block(self.parameters, place)
            groups[:, place] = drawn(np.exp(logits(layout, block, groups, place)), bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoregressiveChain:
    """A quarter of the amount for columns one by one, the rest for gradients, in equal parts.

    Missing values are left out by default. Where they are imputed first by a model, that model is MST.

    Parameters
    ----------
    pace : steps, rate and momentum of the descent
    ones : the share of the amount that columns one by one are measured with
    share : the share that filling takes, where the strategy pays for it
    name : what a plan calls it
    """

    pace: Pace = PACE
    ones: Fraction = Fraction(1, 4)
    share: Fraction = SHARE
    name: str = CHAIN

    def check(self, domain: Domain, holes: MissingMethod, spend: Spend) -> None:
        check_learned(self.name, domain, spend, ChainModel.size(domain, holes))
        check_spend(holes, spend, self.share)

    def claim(self, domain: Domain, holes: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(holes), ("clipped gradients, summed as whole numbers", PAGE))

    def rounds(self, domain: Domain) -> int:
        return self.pace.steps + 1 + MST().rounds(domain)

    def fit(
        self,
        counts: Counts,
        domain: Domain,
        holes: MissingMethod,
        spend: Spend,
        *,
        noise: SynthNoise,
        step: Step,
    ) -> ChainModel:
        """Measure columns one by one, descend by noisy gradients, set biases so that columns keep their shares.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of bounded vectors; composition of zCDP; post-processing.
        Proof       proofs/synth/learned/chain.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, and the number of rows.
        """
        rows, left = prepared(
            counts, domain, holes, spend, noise=noise, model=MST(), share=self.share, step=step
        )
        purse = Accountant(spend=left, noise=noise)
        view = plain(domain, holes)
        layout = ChainLayout.of(view)
        total, shares = columns(rows, view, holes, purse, amount=self.ones * purse.total)
        step("columns")
        paid = NoisySteps(
            rows=rows, purse=purse, amount=purse.left, steps=self.pace.steps, length=LENGTH, step=step
        )

        def noisy(weights: Whole) -> Floats:
            return paid.noisy(ChainGradient(layout=layout, weights=weights))

        weights = descend(noisy, layout, starting(layout, shares), total, self.pace)
        weights = calibrated(layout, weights, shares, noise.bits)
        return ChainModel(
            domain=domain,
            holes=holes,
            parameters=weights,
            total=total,
            claim=self.claim(domain, holes, spend),
        )


def check_learned(name: str, domain: Domain, spend: Spend, many: int) -> None:
    """Refuse from public numbers what no learned method can do: pure noise, one column, or `many` numbers beyond the limit."""
    if spend.is_pure:
        raise PlanError(
            f'{name} adds Gaussian noise, which needs a delta, such as "0.000001", or rho', field="delta"
        )
    if not 2 <= len(domain.axes) <= MOST_COLUMNS:
        raise PlanError(
            f"{name} learns how columns hang together: give it 2 to {MOST_COLUMNS}; for one, use independent",
            field="columns",
        )
    if many > MOST_PARAMETERS:
        raise PlanError(
            f"{name} would learn {many:,} numbers, above {MOST_PARAMETERS:,}; name fewer columns or bins",
            field="columns",
        )


def columns(
    rows: Counts, view: View, holes: MissingMethod, purse: Accountant, *, amount: Fraction
) -> tuple[float, list[Floats]]:
    """The noisy number of respondents, and the noisy shares of every column's groups."""
    places = range(len(view.sides))
    counted = rows.count([(place,) for place in places])
    noisy = purse.measure([view.parted(t, (p,)) for t, p in zip(counted, places, strict=True)], amount=amount)
    total = total_of(noisy)
    ones = [_scaled(each, view, place, holes, total) for place, each in enumerate(noisy)]
    return total, [_shares(one, total) for one in ones]


def _scaled(noisy: NoisyCounts, view: View, place: int, holes: MissingMethod, total: float) -> Floats:
    if holes is MissingMethod.AVAILABLE:
        return one_scale(noisy, total, view.blocks((place,))).cells
    return noisy.cells[: view.cells((place,))]


def _shares(cells: Floats, total: float) -> Floats:
    made = simplex(cells, total)
    return np.asarray(made / made.sum())
