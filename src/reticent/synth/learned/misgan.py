"""MisGAN with noise on both critics: one generator makes rows, another says which answers are missing (Li, Jiang, Marlin 2019).

The data critic reads a row's answers, the mask critic which of them are missing; both read the same respondent, so their
gradients are clipped together. Neither generator reads a row, and neither does what fills the holes of synthetic rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reticent.noise.bits import Bits
from reticent.synth.base import FitTask, Floats, MissingMethod
from reticent.synth.domain import Domain, uniforms
from reticent.synth.learned.adversarial import Adversarial, Forged, Game, play
from reticent.synth.learned.factors import RowNetwork, Whole
from reticent.synth.learned.generator import (
    answers,
    bias_of,
    chances,
    count_of,
    log_shares,
    met,
    normals,
    softmax_back,
)
from reticent.synth.learned.model import LearnedModel, drawn
from reticent.synth.learned.onehot import Flags, OneHot
from reticent.synth.learned.perceptron import Perceptron, RowPerceptron, praise
from reticent.synth.learned.training import Adam
from reticent.synth.marginals.study import View, plain

MISGAN = "misgan"
LATENT, HIDDEN, MASK_HIDDEN = 16, 64, 16
SHARED = 0.2
"""Which share of the data critic's slope the mask generator follows, as in the document's settings."""
LEAST = 1e-3


def widths(layout: OneHot) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of the generator of rows, and of that of masks."""
    return (LATENT, HIDDEN, layout.width), (LATENT, MASK_HIDDEN, len(layout.sizes))


@dataclass(slots=True, kw_only=True)
class MaskForger:
    """Makes up rows and masks, and learns both: a `Forger` for two critics.

    Parameters
    ----------
    layout : where the answers of a row stand
    data : from random numbers to logits of answers
    mask : from random numbers to a logit for each column, of its answer being missing
    unasked : for every column the group of those who were not asked, -1 where there is none; they cannot be silent
    rate : step size
    """

    layout: OneHot
    data: Perceptron
    mask: Perceptron
    unasked: Whole
    rate: float
    optimisers: tuple[Adam, Adam] = field(init=False)
    last: "_Last | None" = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.optimisers = (Adam(self.rate, 0.5, 0.9), Adam(self.rate, 0.5, 0.9))

    def begin(self, bits: Bits) -> None:
        """Every step is alike."""

    def real(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        return self.made(critics)

    def made(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        data, mask = critics
        return (
            RowPerceptron(data, self.layout.lines, praise),
            RowPerceptron(mask, self.layout.mask_lines, praise),
        )

    def forged(self, count: int, bits: Bits) -> Forged:
        data = self.data.forward(normals(count, LATENT, bits))
        shares = chances(self.layout, data[-1])
        groups = answers(self.layout, shares, bits)
        mask = self.mask.forward(normals(count, LATENT, bits))
        silent = logistic(mask[-1]) * (groups != self.unasked)
        missing = uniforms(silent.size, bits).reshape(silent.shape) < silent
        self.last = _Last(data, shares, self.layout.ones(groups), mask, silent, missing)
        shown = self.layout.ones(groups, missing)
        return Forged(self.layout.rows(groups, missing), (shown, missing.astype(np.float64)))

    def learn(self, slopes: Sequence[Floats]) -> None:
        if self.last is None:
            return
        seen, flags = slopes
        told, hidden = np.empty_like(seen), np.empty_like(flags)
        for j, part in enumerate(self.layout.parts):
            told[:, part] = seen[:, part] * ~self.last.missing[:, [j]]
            # An answer that goes missing takes its ones away from the data critic.
            hidden[:, j] = -(seen[:, part] * self.last.ones[:, part]).sum(axis=1)
        back = softmax_back(self.layout, self.last.shares, told)
        gradient, _ = self.data.backward(self.last.data, back)
        self.data.values = self.optimisers[0].moved(self.data.values, gradient)
        silent = self.last.silent
        back = (flags + SHARED * hidden) * silent * (1 - silent)
        gradient, _ = self.mask.backward(self.last.mask, back)
        self.mask.values = self.optimisers[1].moved(self.mask.values, gradient)


@dataclass(frozen=True, slots=True)
class _Last:
    """What was forged last, kept to learn from."""

    data: list[Floats]
    shares: Floats
    ones: Floats
    mask: list[Floats]
    silent: Floats
    missing: Flags


def logistic(logits: Floats) -> Floats:
    """From logits to chances."""
    return np.asarray(1 / (1 + np.exp(-np.clip(logits, -30, 30))))


@dataclass(frozen=True, slots=True, kw_only=True)
class MisGanModel(LearnedModel):
    """Two generators, that of rows first. Rows keep their holes where missing values were a category."""

    kind: ClassVar[str] = MISGAN

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        layout = OneHot.of(domain, plain(domain, MissingMethod.AVAILABLE))
        return count_of(*widths(layout))

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        told = plain(self.domain, MissingMethod.AVAILABLE)
        layout = OneHot.of(self.domain, told)
        data, mask = generators(layout, self.parameters)
        shares = chances(layout, data.forward(normals(len(groups), LATENT, bits))[-1])
        silent = logistic(mask.forward(normals(len(groups), LATENT, bits))[-1])
        for j, (part, cells) in enumerate(zip(layout.parts, layout.cells, strict=True)):
            cell = cells[drawn(shares[:, part], bits)]
            if self.holes is MissingMethod.VALUES:
                flag = (uniforms(len(groups), bits) < silent[:, j]) & (cell != self.domain.axes[j].unasked)
                cell = np.where(flag, layout.silence[j], cell)
            groups[:, j] = view.sides[j].into[cell]


def generators(layout: OneHot, values: Floats) -> tuple[Perceptron, Perceptron]:
    """The two, from one list of numbers."""
    first, second = widths(layout)
    end = count_of(first)
    return Perceptron(first, values[:end].copy()), Perceptron(second, values[end:].copy())


@dataclass(frozen=True, slots=True, kw_only=True)
class MisGan(Adversarial):
    """A quarter of the amount for columns one by one, missing answers among them; the rest for both critics' steps.

    Where missing values are a `category`, rows have holes, as the second generator makes them; else they have none.
    """

    name: str = MISGAN

    def takes(self) -> tuple[MissingMethod, ...]:
        return tuple(MissingMethod)

    def counted(self, missing: MissingMethod) -> MissingMethod:
        return MissingMethod.VALUES

    def done(self, missing: MissingMethod) -> str:
        """What it does about missing answers, where that is not what every method does."""
        if missing not in (MissingMethod.AVAILABLE, MissingMethod.VALUES):
            return ""
        return "missing answers were left out of what one critic reads, and a second critic read which are missing"

    def numbers(self, width: int, columns: int) -> int:
        return self.game.hidden * (width + 2 + columns + 2)

    def row_seconds(self, width: int, columns: int) -> float:
        return 2 * Adversarial.row_seconds(self, width, columns)

    def fit(self, task: FitTask) -> MisGanModel:
        """Measure columns, play the game with two critics, set biases so that columns and masks keep their shares.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of vectors clipped together; composition of zCDP; post-processing.
        Proof       proofs/synth/learned/adversarial.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, and the number of rows.
        """
        domain, missing, start = task.domain, task.missing, self.open(task)
        layout = OneHot.of(domain, plain(domain, MissingMethod.AVAILABLE))
        shares, silent = apart(domain, start.shares)
        forger = started(layout, domain, shares, silent, self.game, start.bits)
        hidden = self.game.hidden
        critics = [
            Perceptron.started((width, hidden, 1), start.bits) for width in (layout.width, len(layout.sizes))
        ]
        paid = start.paid(self.game.steps, start.accountant.left)
        play(forger, critics, paid, start.total, self.game, start.bits)
        settle(forger, shares, silent, self.game.settled, start.bits)
        return MisGanModel(
            domain=domain,
            holes=missing,
            parameters=np.concatenate([forger.data.values, forger.mask.values]),
            total=start.total,
            claim=self.claim(domain, missing, task.spend),
        )


def apart(domain: Domain, shares: Sequence[Floats]) -> tuple[list[Floats], Floats]:
    """Shares with silence as a value, as the shares of answers (and of the unasked), and the chances of silence when asked."""
    made, silent = [], []
    for axis, share in zip(domain.axes, shares, strict=True):
        told = np.delete(share, axis.silence)
        asked, quiet = float(told[: axis.answers].sum()), float(share[axis.silence])
        scale = (asked + quiet) / asked if asked > 0 else 1.0
        told[: axis.answers] *= scale
        made.append(told / told.sum() if told.sum() > 0 else np.full(len(told), 1 / len(told)))
        silent.append(quiet / (asked + quiet) if asked + quiet > 0 else 0.0)
    return made, np.clip(np.array(silent), LEAST, 1 - LEAST)


def started(
    layout: OneHot, domain: Domain, shares: Sequence[Floats], silent: Floats, game: Game, bits: Bits
) -> MaskForger:
    """Generators under which columns and masks have about their noisy shares."""
    data, mask = (Perceptron.started(each, bits) for each in widths(layout))
    bias_of(data)[:] = log_shares(shares)
    bias_of(mask)[:] = np.log(silent / (1 - silent))
    unasked = np.array([axis.answers if axis.has_unasked else -1 for axis in domain.axes], dtype=np.int64)
    return MaskForger(layout=layout, data=data, mask=mask, unasked=unasked, rate=game.forger_rate)


def settle(forger: MaskForger, shares: Sequence[Floats], silent: Floats, simulated: int, bits: Bits) -> None:
    """Set the biases of both generators so that columns and masks keep their noisy shares."""
    logits = forger.data.forward(normals(simulated, LATENT, bits))[-1]
    bias_of(forger.data)[:] += met(forger.layout, logits, shares)
    logits = forger.mask.forward(normals(simulated, LATENT, bits))[-1]
    bias = np.zeros(len(silent))
    for _ in range(8):
        mean = logistic(logits + bias).mean(axis=0)
        bias += np.log(silent / (1 - silent)) - np.log(np.clip(mean, LEAST, 1) / np.clip(1 - mean, LEAST, 1))
    bias_of(forger.mask)[:] += bias
