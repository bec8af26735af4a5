"""Kamino and KaminoI: column after column, each from embeddings of earlier ones by attention, trained by noisy gradients.

After *Kamino: constraint-aware differentially private data synthesis* (Ge and others 2021) and Algorithm 3 of
*Differentially private data generation with missing data*: the first column by its noisy histogram, then one model for each
column, in a public order. KaminoI draws the missing answers of a column from the model just released and from the row's own
other answers, and trains the next model on the filled rows. Domains come from the codebook, all rows are in every step, and
the first column is filled from its noisy histogram.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from reticent.engine.protocol import RowFill
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import Effort, FitTask, Floats, MissingMethod, Spend
from reticent.synth.domain import Domain, uniforms
from reticent.synth.fills import SHARE, after_filling, check_spend, filling, prepared
from reticent.synth.learned.attention import (
    FARTHEST,
    FARTHEST_LOGIT,
    WIDE,
    AttentionFill,
    AttentionGradient,
    ColumnOrder,
)
from reticent.synth.learned.chain import LEFT_OUT, check_learned, columns
from reticent.synth.learned.descent import LEAST, shifted
from reticent.synth.learned.gradient import GRID, LENGTH, Whole
from reticent.synth.learned.model import LearnedModel, drawn, fill_cells_of, group_sizes
from reticent.synth.learned.training import Adam, NoisySteps, noise_of
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.study import View, plain
from reticent.synth.spending import Accountant, claim_of, total_of

PAGE = "proofs/synth/learned/kamino.md"
KAMINO, KAMINO_I = "kamino", "kamino-i"
DRAWN = (
    "column after column, missing answers were drawn from the model learned so far and the row's own earlier answers, and the "
    "next column was learned from rows so filled"
)
STARTING = 1.0
"""Embeddings begin evenly between minus and plus this."""
SIMULATED, ROUNDS = 1 << 15, 8
"""Rows that biases are set by, so that columns keep their noisy shares, and rounds of fitting them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPace:
    """How a column's model is trained. Constants chosen on one public table; see the decision on Kamino.

    Parameters
    ----------
    steps : how many noisy gradients each column takes
    rate : how far a step of Adam moves a number
    averaged : which share of the steps, the last ones, the numbers are averaged over
    """

    steps: int = 40
    rate: float = 0.1
    averaged: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class KaminoModel(LearnedModel):
    """Fitted column models. `parameters` hold the order of the columns, then their numbers one after the other, then zeros."""

    kind: ClassVar[str] = KAMINO

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        """As many as any order of the columns needs: the most where the largest come first."""
        sizes = sorted(group_sizes(domain, holes), reverse=True)
        before = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return int(sum(1 + t + WIDE * before[t] + (WIDE + 1) * size for t, size in enumerate(sizes)))

    @classmethod
    def is_sound(cls, domain: Domain, parameters: Floats) -> bool:
        """Whether the list begins with an order of the columns."""
        d = len(domain.axes)
        return sorted(parameters[:d].tolist()) == list(range(d))

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        at, parts = self._parts(view)
        for column, place in enumerate(at.order):
            groups[:, place] = drawn(odds_of(at, column, parts[column], groups), bits)

    def fills(self) -> tuple[RowFill, ...]:
        """How rows with missing answers are completed, column after column, each from itself."""
        view = plain(self.domain, self.holes)
        at, parts = self._parts(view)
        return tuple(fill_of(self.domain, view, at, column, part) for column, part in enumerate(parts))

    def _parts(self, view: View) -> tuple[ColumnOrder, list[Floats]]:
        d = len(view.sides)
        at = ColumnOrder.of(view, self.parameters[:d].astype(np.int64).tolist())
        lengths = [int(at.sizes[0]), *(at.length(column) for column in range(1, d))]
        return at, np.split(self.parameters[d:], np.cumsum(lengths))[:-1]


def odds_of(at: ColumnOrder, column: int, part: Floats, groups: Whole) -> Floats:
    """For made-up rows, whose earlier columns are drawn, the odds of every group of a column."""
    if not column:
        return np.repeat(np.exp(part - part.max())[None, :], len(groups), axis=0)
    one, two, three, _ = at.ends(column)
    weights = np.exp(part[:one] - part[:one].max())
    embeddings = part[one:two].reshape(-1, WIDE)
    mixed = np.zeros((len(groups), WIDE))
    for k, weight in enumerate(weights / weights.sum()):
        mixed += weight * embeddings[at.offsets[k] + groups[:, at.order[k]]]
    logits = mixed @ part[two:three].reshape(-1, WIDE).T + part[three:]
    return np.asarray(np.exp(logits - logits.max(axis=1, keepdims=True)))


def fill_of(domain: Domain, view: View, at: ColumnOrder, column: int, part: Floats) -> AttentionFill:
    """How missing cells of one column are drawn."""
    known = fill_cells_of(domain, view, int(at.order[column]))
    return AttentionFill(columns=at, column=column, weights=_on_grid(part), **known)


def _on_grid(values: Floats) -> Whole:
    return np.rint(values * GRID).astype(np.int64)


def sequence(domain: Domain, tied: Sequence[tuple[str, ...]]) -> list[int]:
    """The order of the columns: those that constraints tie first, what settles before what is settled, then small ones first.

    Public: it rests on the codebook and on the constraints of the plan.
    """
    places = {name: place for place, name in enumerate(domain.columns)}
    named = [places[name] for group in tied for name in group if name in places]
    rest = sorted(range(len(places)), key=lambda place: (domain.axes[place].size, place))
    return list(dict.fromkeys([*named, *rest]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kamino:
    """A share of the amount for columns one by one, the rest in equal parts for the models of all columns but the first.

    Parameters
    ----------
    fills : whether missing answers of a column are drawn from its model before the next is trained: KaminoI
    pace : steps and rate of a column's training
    ones : the share of the amount that columns one by one are measured with
    share : the share that filling takes, where the strategy pays for it
    tied : columns that constraints of the plan tie together, what settles first
    name : what a plan calls it
    """

    fills: bool = False
    pace: ColumnPace = ColumnPace()
    ones: Fraction = Fraction(1, 4)
    share: Fraction = SHARE
    tied: tuple[tuple[str, ...], ...] = ()
    name: str = KAMINO

    def in_order(self, tied: Sequence[tuple[str, ...]]) -> "Kamino":
        """The same with columns that constraints tie first; see `sequence`."""
        return replace(self, tied=tuple(tied))

    def check(self, domain: Domain, holes: MissingMethod, spend: Spend) -> None:
        check_learned(self.name, domain, spend, KaminoModel.size(domain, holes))
        check_spend(holes, spend, self.share)
        if self.fills and holes is not MissingMethod.AVAILABLE:
            raise PlanError(
                f'{self.name} draws missing answers itself, column after column; use missing = "available", or kamino',
                field="missing",
            )

    def claim(self, domain: Domain, holes: MissingMethod, spend: Spend) -> Claim:
        return claim_of(spend, *filling(holes), ("clipped gradients of column models", PAGE))

    def rounds(self, domain: Domain) -> int:
        return self.pace.steps * (len(domain.axes) - 1) + 1 + MST().rounds(domain)

    def brief(self) -> "Kamino":
        """The same with one step for each column, whose noise is that of each of its steps."""
        ones = 1 - (1 - self.ones) / self.pace.steps
        return replace(self, pace=replace(self.pace, steps=1), ones=ones)

    def done(self, missing: MissingMethod) -> str:
        if missing is not MissingMethod.AVAILABLE:
            return ""
        return DRAWN if self.fills else LEFT_OUT

    def step_noise(self, domain: Domain, missing: MissingMethod, spend: Spend) -> float:
        steps = self.pace.steps * (len(domain.axes) - 1)
        left = after_filling(spend, missing, self.share)
        return noise_of(steps, (1 - self.ones) * total_of(left), spend)

    def effort(self, domain: Domain, missing: MissingMethod) -> Effort:
        """From what was measured on one processor: of a column, 28 nanoseconds a row for each level and each column before it."""
        sizes = group_sizes(domain, missing)
        touched = sum(WIDE * (t + size) for t, size in enumerate(sizes))
        many, steps = KaminoModel.size(domain, missing), self.pace.steps
        return Effort(
            megabytes=1 + 48 * many / 1e6 + SIMULATED * (24e-6 * max(sizes) + 8e-6 * len(sizes)),
            seconds=2 + steps * many * 1e-6,
            seconds_each=1e4 * steps * touched * 2.8e-9,
            held=3 if self.fills else 1,
        )

    def fit(self, task: FitTask) -> KaminoModel:
        """Measure columns one by one, train a model for each by noisy gradients and, for KaminoI, fill it before the next.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of bounded vectors; composition over rows that are mapped one by one.
        Proof       proofs/synth/learned/kamino.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, the number of rows, and what was filled.
        """
        domain, holes, noise, step = task.domain, task.missing, task.noise, task.step
        ready = prepared(task, model=MST(), share=self.share)
        rows, accountant = ready.counts, Accountant(spend=ready.spend, noise=noise)
        view = plain(domain, holes)
        total, shares = columns(rows, view, holes, accountant, amount=self.ones * accountant.total)
        step("columns")
        at = ColumnOrder.of(view, sequence(domain, self.tied))
        each = accountant.left / (len(at.order) - 1)
        made = np.zeros((SIMULATED, len(at.order)), dtype=np.int64)
        embeddings = STARTING * (2 * uniforms(WIDE * int(at.offsets[-1]), noise.bits) - 1)
        parts: list[Floats] = []
        for column, place in enumerate(at.order):
            bias = np.log(np.maximum(shares[place], LEAST))
            part = bias
            if column:
                paid = NoisySteps(
                    rows=rows,
                    accountant=accountant,
                    amount=each,
                    steps=self.pace.steps,
                    length=LENGTH,
                    step=step,
                )
                part = _trained(paid, at, column, _started(at, column, embeddings, bias), total, self.pace)
                embeddings[: WIDE * at.offsets[column]] = part[column : at.ends(column)[1]]
                shift = shifted(odds_of(at, column, part, made), np.maximum(shares[place], LEAST), ROUNDS)
                part[-len(shift) :] += shift
            parts.append(np.clip(part, -FARTHEST_LOGIT, FARTHEST_LOGIT))
            made[:, place] = drawn(odds_of(at, column, parts[-1], made), noise.bits)
            if self.fills:
                rows = rows.redrawn(fill_of(domain, view, at, column, parts[-1]), noise.bits)
        return KaminoModel(
            domain=domain,
            holes=holes,
            parameters=_listed(at, parts, KaminoModel.size(domain, holes)),
            total=total,
            claim=self.claim(domain, holes, task.spend),
        )


def _listed(at: ColumnOrder, parts: Sequence[Floats], size: int) -> Floats:
    made = np.concatenate([at.order.astype(np.float64), *parts])
    return np.pad(made, (0, size - len(made)))


def _started(at: ColumnOrder, column: int, embeddings: Floats, bias: Floats) -> Floats:
    """Even scores, the embeddings at hand, no influence, and the noisy shares."""
    one, two, three, four = at.ends(column)
    made = np.zeros(four)
    made[one:two], made[three:] = embeddings[: two - one], bias
    return made


def _trained(
    paid: NoisySteps, at: ColumnOrder, column: int, start: Floats, rows: float, pace: ColumnPace
) -> Floats:
    """The averaged numbers of a column's model after all steps, none beyond its bound."""
    far = bounds(at, column)
    weights, adam = np.clip(start, -far, far), Adam(pace.rate)
    kept, summed = max(1, int(pace.steps * pace.averaged)), np.zeros_like(start)
    for left in range(pace.steps, 0, -1):
        work = AttentionGradient(columns=at, column=column, weights=_on_grid(weights))
        weights = np.clip(adam.moved(weights, paid.noisy(work) / rows), -far, far)
        if left <= kept:
            summed += weights
    return summed / kept


def bounds(at: ColumnOrder, column: int) -> Floats:
    """How far from zero every number of a column's model may be."""
    one, _, three, four = at.ends(column)
    far = np.full(four, FARTHEST)
    far[:one] = far[three:] = FARTHEST_LOGIT
    return far
