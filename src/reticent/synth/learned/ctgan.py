"""A conditional adversarial network (CTGAN, Xu and others 2019) with noise on its critic: `dpctgan`.

In every step a column is drawn that has nothing to do with the rows. A respondent is shown to the critic with their own answer to
it once more, as the condition; the generator is given an answer drawn from the column's noisy shares and has to make rows that
hold it. The original draws rows by their answer, so that a respondent with a rare answer is met far more often than others; here
all rows are met in every step, each by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reticent.engine.protocol import Cells
from reticent.noise.bits import Bits, below
from reticent.synth.base import FitTask, Floats, MissingMethod
from reticent.synth.domain import Domain
from reticent.synth.learned.adversarial import Adversarial, Forged, play
from reticent.synth.learned.factors import Factor, RowNetwork, Whole
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
from reticent.synth.learned.onehot import OneHot
from reticent.synth.learned.perceptron import Perceptron, RowPerceptron, praise
from reticent.synth.learned.training import Adam
from reticent.synth.marginals.study import View, plain

DPCTGAN = "dpctgan"
LATENT, HIDDEN = 16, 64


def widths(layout: OneHot) -> tuple[int, ...]:
    """Of the generator: random numbers and a condition in, logits of all columns out."""
    return LATENT + layout.width, HIDDEN, layout.width


@dataclass(frozen=True, slots=True)
class Conditioned:
    """A critic shown a respondent's row and, once more, its answer to one public column: a `RowNetwork`.

    Guarantee   the factors of a row are made of that row alone.
    Adjacency   one record added or removed.
    Theorem     the column is public, so the doubled row is a function of the row.
    Proof       proofs/synth/learned/adversarial.md
    Assumes     `critic` has a line more than a row has columns, the last for the condition.
    Keeps back  everything it gives.
    """

    critic: RowPerceptron
    place: int

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.critic.sizes

    def factors(self, rows: Cells) -> Sequence[Factor]:
        """Those of the rows with the condition below them."""
        return self.critic.factors(np.concatenate([rows, rows[[self.place]]]))


@dataclass(slots=True, kw_only=True)
class ConditionalForger:
    """Makes up rows that hold a given answer: a `Forger` for one critic.

    Parameters
    ----------
    layout : where the answers of a row stand
    network : from random numbers and a condition to logits of answers
    shares : noisy shares of every column, which conditions are drawn from
    rate : step size
    """

    layout: OneHot
    network: Perceptron
    shares: Sequence[Floats] = field(repr=False)
    rate: float
    optimiser: Adam = field(init=False)
    place: int = field(init=False, default=0)
    last: "_Last | None" = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.optimiser = Adam(self.rate, 0.5, 0.9)

    def begin(self, bits: Bits) -> None:
        """Draw the column of the step's condition."""
        self.place = below(len(self.layout.sizes), bits)

    def made(self, critics: Sequence[Perceptron]) -> tuple[RowPerceptron, ...]:
        own = self.layout.lines[self.place]
        lines = np.concatenate([self.layout.lines, np.where(own < 0, -1, own + self.layout.width)[None]])
        return (RowPerceptron(critics[0], lines, praise),)

    def real(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        return (Conditioned(self.made(critics)[0], self.place),)

    def forged(self, count: int, bits: Bits) -> Forged:
        share = self.shares[self.place]
        given = drawn(np.broadcast_to(share, (count, len(share))), bits)
        told = np.zeros((count, self.layout.width))
        told[np.arange(count), self.layout.parts[self.place].start + given] = 1.0
        found = self.network.forward(np.concatenate([normals(count, LATENT, bits), told], axis=1))
        shares = chances(self.layout, found[-1])
        groups = answers(self.layout, shares, bits)
        self.last = _Last(found, shares, told)
        rows = np.concatenate([self.layout.rows(groups), self.layout.cells[self.place][given][None]])
        return Forged(rows.astype(np.uint16), (np.concatenate([self.layout.ones(groups), told], axis=1),))

    def learn(self, slopes: Sequence[Floats]) -> None:
        """From the critic's slope, and from how far the conditioned column is from its condition."""
        if self.last is None:
            return
        back = softmax_back(self.layout, self.last.shares, slopes[0][:, : self.layout.width])
        part = self.layout.parts[self.place]
        back[:, part] += (self.last.shares - self.last.told)[:, part] / len(back)
        gradient, _ = self.network.backward(self.last.found, back)
        self.network.values = self.optimiser.moved(self.network.values, gradient)


@dataclass(frozen=True, slots=True)
class _Last:
    """What was forged last, kept to learn from."""

    found: list[Floats]
    shares: Floats
    told: Floats


def conditions(layout: OneHot, shares: Floats, rows: int, bits: Bits) -> Floats:
    """For every row an even column and an answer from its shares, as a line of zeroes and a one."""
    even = np.concatenate([shares[part] for part in layout.parts]) / len(layout.sizes)
    made = np.zeros((rows, layout.width))
    made[np.arange(rows), drawn(np.broadcast_to(even, (rows, layout.width)), bits)] = 1.0
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class CtGanModel(LearnedModel):
    """A conditional generator, and the noisy shares that conditions are drawn from."""

    kind: ClassVar[str] = DPCTGAN

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        layout = OneHot.of(domain, plain(domain, holes))
        return count_of(widths(layout)) + layout.width

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        layout = OneHot.of(self.domain, view)
        values, shares = np.split(self.parameters, [len(self.parameters) - layout.width])
        shown = normals(len(groups), LATENT, bits), conditions(layout, shares, len(groups), bits)
        made = Perceptron(widths(layout), values).forward(np.concatenate(shown, axis=1))[-1]
        odds = chances(layout, made)
        for place, part in enumerate(layout.parts):
            groups[:, place] = drawn(odds[:, part], bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class CtGan(Adversarial):
    """A quarter of the amount for columns one by one, the rest for the steps of a critic that is told a condition."""

    name: str = DPCTGAN

    def numbers(self, width: int, columns: int) -> int:
        return self.game.hidden * (2 * width + 2)

    def fit(self, task: FitTask) -> CtGanModel:
        """Measure columns, play the game under conditions, set biases so that columns keep their shares.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of clipped vectors; composition of zCDP; post-processing.
        Proof       proofs/synth/learned/adversarial.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, and the number of rows.
        """
        domain, missing, start = task.domain, task.missing, self.open(task)
        layout, bits = OneHot.of(domain, plain(domain, missing)), start.bits
        network = Perceptron.started(widths(layout), bits)
        bias_of(network)[:] = log_shares(start.shares)
        forger = ConditionalForger(
            layout=layout, network=network, shares=start.shares, rate=self.game.forger_rate
        )
        critic = Perceptron.started((2 * layout.width, self.game.hidden, 1), bits)
        play(
            forger, [critic], start.paid(self.game.steps, start.accountant.left), start.total, self.game, bits
        )
        shares, many = np.concatenate(start.shares), self.game.settled
        shown = normals(many, LATENT, bits), conditions(layout, shares, many, bits)
        logits = forger.network.forward(np.concatenate(shown, axis=1))[-1]
        bias_of(forger.network)[:] += met(layout, logits, start.shares)
        return CtGanModel(
            domain=domain,
            holes=missing,
            parameters=np.concatenate([forger.network.values, shares]),
            total=start.total,
            claim=self.claim(domain, missing, task.spend),
        )
