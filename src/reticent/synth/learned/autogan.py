"""An adversarial network inside an autoencoder (DPautoGAN, Tantipongpipat and others 2019) with noise on all that reads rows.

Encoder and decoder are one network over rows, so that both learn from the same noisy sums: a decoder trained with noise beside an
encoder trained without would promise nothing. Then a generator learns codes that the decoder, now fixed, turns into rows that a
critic, with noise again, cannot tell from real ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from reticent.noise.bits import Bits
from reticent.synth.base import FitTask, Floats, MissingMethod
from reticent.synth.domain import Domain
from reticent.synth.learned.adversarial import Adversarial, Forged, GameStart, play
from reticent.synth.learned.factors import JointGradient, RowNetwork, Whole
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
from reticent.synth.learned.perceptron import Perceptron, RowPerceptron, praise, softmax_residual
from reticent.synth.learned.training import Adam
from reticent.synth.marginals.study import View, plain

DPAUTOGAN = "dpautogan"
LATENT, HIDDEN, CODE = 16, 32, 15
DECODER_RATE = 0.01


@dataclass(slots=True, kw_only=True)
class CodeForger:
    """Makes up codes, which a fixed decoder turns into rows: a `Forger` for one critic.

    Parameters
    ----------
    layout : where the answers of a row stand
    network : from random numbers to codes
    decoder : from codes to logits of answers; it does not change
    rate : step size
    """

    layout: OneHot
    network: Perceptron
    decoder: Perceptron
    rate: float
    optimiser: Adam = field(init=False)
    last: tuple[list[Floats], list[Floats], Floats] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.optimiser = Adam(self.rate, 0.5, 0.9)

    def begin(self, bits: Bits) -> None:
        """Every step is alike."""

    def real(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        return self.made(critics)

    def made(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        return (RowPerceptron(critics[0], self.layout.lines, praise),)

    def forged(self, count: int, bits: Bits) -> Forged:
        codes = self.network.forward(normals(count, LATENT, bits))
        found = self.decoder.forward(codes[-1])
        shares = chances(self.layout, found[-1])
        groups = answers(self.layout, shares, bits)
        self.last = codes, found, shares
        return Forged(self.layout.rows(groups), (self.layout.ones(groups),))

    def learn(self, slopes: Sequence[Floats]) -> None:
        if self.last is None:
            return
        codes, found, shares = self.last
        _, back = self.decoder.backward(found, softmax_back(self.layout, shares, slopes[0]))
        gradient, _ = self.network.backward(codes, back)
        self.network.values = self.optimiser.moved(self.network.values, gradient)


def networks(layout: OneHot, values: Floats) -> tuple[Perceptron, Perceptron]:
    """The generator of codes and the decoder, from one list of numbers."""
    end = count_of((LATENT, HIDDEN, CODE))
    generator = Perceptron((LATENT, HIDDEN, CODE), values[:end].copy())
    return generator, Perceptron((CODE, layout.width), values[end:].copy())


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoGanModel(LearnedModel):
    """A generator of codes, and the decoder that makes rows of them."""

    kind: ClassVar[str] = DPAUTOGAN

    @classmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        layout = OneHot.of(domain, plain(domain, holes))
        return count_of((LATENT, HIDDEN, CODE), (CODE, layout.width))

    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        layout = OneHot.of(self.domain, view)
        generator, decoder = networks(layout, self.parameters)
        codes = generator.forward(normals(len(groups), LATENT, bits))[-1]
        odds = chances(layout, decoder.forward(codes)[-1])
        for place, part in enumerate(layout.parts):
            groups[:, place] = drawn(odds[:, part], bits)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoGan(Adversarial):
    """A quarter of the amount for columns one by one; of the rest half for the autoencoder, half for the critic."""

    name: str = DPAUTOGAN

    def numbers(self, width: int, columns: int) -> int:
        return max(self.game.hidden * (width + 2), (CODE + 1) * (2 * width + 1))

    def widest(self, width: int) -> int:
        return max(self.game.hidden, CODE, width)

    def row_seconds(self, width: int, columns: int) -> float:
        return Adversarial.row_seconds(self, width, columns) + 2e-8 * width

    def sums(self) -> int:
        """As many of the autoencoder as of the critic, each with half of the amount."""
        return 2 * self.game.steps

    def fit(self, task: FitTask) -> AutoGanModel:
        """Measure columns, learn encoder and decoder together, play the game with codes, set biases to the columns' shares.

        Guarantee   that of `spend`, for the model and all that is drawn from it.
        Adjacency   `spend.neighbours`.
        Theorem     the Gaussian mechanism on sums of clipped vectors; composition of zCDP; post-processing.
        Proof       proofs/synth/learned/adversarial.md
        Assumes     `counts` maps rows one by one.
        Keeps back  all sums and tables before the noise, and the number of rows.
        """
        domain, missing, start = task.domain, task.missing, self.open(task)
        view, bits = plain(domain, missing), start.bits
        layout = OneHot.of(domain, view)
        decoder = self.decoder(start, layout)
        generator = Perceptron.started((LATENT, HIDDEN, CODE), bits)
        forger = CodeForger(layout=layout, network=generator, decoder=decoder, rate=self.game.forger_rate)
        critic = Perceptron.started((layout.width, self.game.hidden, 1), bits)
        play(
            forger, [critic], start.paid(self.game.steps, start.accountant.left), start.total, self.game, bits
        )
        codes = forger.network.forward(normals(self.game.settled, LATENT, bits))[-1]
        bias_of(decoder)[:] += met(layout, decoder.forward(codes)[-1], start.shares)
        return AutoGanModel(
            domain=domain,
            holes=missing,
            parameters=np.concatenate([forger.network.values, decoder.values]),
            total=start.total,
            claim=self.claim(domain, missing, task.spend),
        )

    def decoder(self, start: GameStart, layout: OneHot) -> Perceptron:
        """The second layer of an autoencoder that was trained by noisy sums, for half of what is left."""
        whole = Perceptron.started((layout.width, CODE, layout.width), start.bits)
        bias_of(whole)[:] = log_shares(start.shares)
        paid = start.paid(self.game.steps, start.accountant.left / 2)
        residual = softmax_residual(layout.into, np.array(layout.sizes))
        optimiser = Adam(DECODER_RATE)
        for _ in range(paid.steps):
            work = JointGradient((RowPerceptron(whole, layout.lines, residual),))
            whole.values = optimiser.moved(whole.values, paid.noisy(work) / max(start.total, 1.0))
        matrix, bias = whole.layers(whole.values)[1]
        return Perceptron((CODE, layout.width), np.concatenate([matrix.ravel(), bias]))
