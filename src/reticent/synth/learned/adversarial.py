"""Adversarial networks (GANs) over rows: critics that read them, and a forger of rows that reads none.

The game is that of Arjovsky, Chintala and Bottou 2017: critics raise their output at real rows and lower it at made-up ones, the
forger follows their slope. Only the critics' half over real rows costs anything: the gradients of all critics at one row are
clipped together, summed as whole numbers over all rows, and noised. Their half over made-up rows is the same sum over made-up
rows. The penalty on a critic's slope is taken at made-up rows; between real and made-up ones, where Gulrajani and others 2017
take it, it would read rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from reticent.engine.protocol import Cells
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import Counts, Effort, FitTask, Floats, MissingMethod, Spend, Step
from reticent.synth.domain import Domain
from reticent.synth.fills import SHARE, after_filling, check_spend, filling, prepared
from reticent.synth.learned.chain import check_learned, columns
from reticent.synth.learned.factors import LENGTH, JointGradient, RowNetwork
from reticent.synth.learned.perceptron import MOST_WEIGHT, Perceptron, check_widest
from reticent.synth.learned.training import Adam, NoisySteps, noise_of
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.study import plain
from reticent.synth.spending import Accountant, claim_of, total_of

PAGE = "proofs/synth/learned/adversarial.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """How critics and forger are trained. Constants; see the decision on adversarial synthesizers.

    Parameters
    ----------
    steps : how many noisy sums the critics take
    turns : how often the forger learns after each of them
    batch : made-up rows in a turn of the forger, and where the slope is penalised
    fakes : made-up rows in a step of the critics
    hidden : how wide the critics' hidden layer is
    critic_rate : step size of the critics
    forger_rate : step size of the forger
    penalty : the weight of (slope - 1)**2 at made-up rows
    settled : made-up rows by which biases are set to the noisy shares at the end
    """

    steps: int = 60
    turns: int = 10
    batch: int = 512
    fakes: int = 4096
    hidden: int = 32
    critic_rate: float = 0.02
    forger_rate: float = 0.0005
    penalty: float = 0.1
    settled: int = 1 << 14


@dataclass(frozen=True, slots=True)
class Forged:
    """Made-up rows: as cells, for the critics' exact half, and as what each critic is shown."""

    rows: Cells = field(repr=False)
    shown: tuple[Floats, ...] = field(repr=False)


class Forger(Protocol):
    """Whoever makes rows up and learns from the critics' slopes at them. It never meets a row."""

    def begin(self, bits: Bits) -> None:
        """A step of the critics begins."""
        ...

    def real(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        """How the critics read a respondent's row in this step."""
        ...

    def made(self, critics: Sequence[Perceptron]) -> tuple[RowNetwork, ...]:
        """How they read a made-up one."""
        ...

    def forged(self, count: int, bits: Bits) -> Forged:
        """Made-up rows, `count` of them."""
        ...

    def learn(self, slopes: Sequence[Floats]) -> None:
        """From the slope of the loss at what each critic was shown last."""
        ...


def play(
    forger: Forger, critics: Sequence[Perceptron], paid: NoisySteps, total: float, game: Game, bits: Bits
) -> None:
    """Steps of the critics, each on a noisy sum over all rows, and after each some turns of the forger.

    `total` is the noisy number of respondents, which a mean is taken over.
    """
    optimiser = Adam(game.critic_rate, first=0.5, second=0.9)
    for _ in range(paid.steps):
        forger.begin(bits)
        real = paid.noisy(JointGradient(forger.real(critics))) / max(total, 1.0)
        forged = forger.forged(game.fakes, bits)
        gradient = real - summed(JointGradient(forger.made(critics)), forged.rows) / game.fakes
        gradient += game.penalty * _penalties(critics, forged, game.batch)
        values = np.concatenate([critic.values for critic in critics])
        _set(critics, np.clip(optimiser.moved(values, gradient), -MOST_WEIGHT, MOST_WEIGHT))
        for _ in range(game.turns):
            shown = forger.forged(game.batch, bits).shown
            forger.learn([slopes(critic, each) for critic, each in zip(critics, shown, strict=True)])


def summed(work: JointGradient, rows: Cells) -> Floats:
    """The same sum over made-up rows, without noise, in units in which one row's vector is no longer than one."""
    totals = np.zeros(work.length, dtype=np.int64)
    work.add(rows, totals)
    return np.asarray(totals / LENGTH)


def slopes(critic: Perceptron, shown: Floats) -> Floats:
    """The slope of the forger's mean loss, which is less the critic's output, at every made-up row."""
    found = critic.forward(shown)
    return critic.backward(found, np.full((len(shown), 1), -1.0 / len(shown)))[1]


def _penalties(critics: Sequence[Perceptron], forged: Forged, batch: int) -> Floats:
    pairs = zip(critics, forged.shown, strict=True)
    return np.concatenate([critic.penalty(shown[:batch]) for critic, shown in pairs])


def _set(critics: Sequence[Perceptron], values: Floats) -> None:
    ends = np.cumsum([len(critic.values) for critic in critics])[:-1]
    for critic, own in zip(critics, np.split(values, ends), strict=True):
        critic.values = own


@dataclass(frozen=True, slots=True, kw_only=True)
class GameStart:
    """What a game starts from: rows as the strategy leaves them, what may be spent, and noisy shares of single columns."""

    rows: Counts = field(repr=False)
    accountant: Accountant
    total: float
    shares: list[Floats] = field(repr=False)
    bits: Bits
    step: Step

    def paid(self, steps: int, amount: Fraction) -> NoisySteps:
        """So many noisy sums for that amount."""
        return NoisySteps(
            rows=self.rows,
            accountant=self.accountant,
            amount=amount,
            steps=steps,
            length=LENGTH,
            step=self.step,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Adversarial:
    """What adversarial synthesizers share: what they refuse, what they claim, and how a fit begins.

    Parameters
    ----------
    game : how critics and forger are trained
    ones : the share of the amount that columns one by one are measured with
    share : the share that filling takes, where the strategy pays for it
    name : what a plan calls it
    """

    game: Game = Game()
    ones: Fraction = Fraction(1, 4)
    share: Fraction = SHARE
    name: str = ""

    def takes(self) -> tuple[MissingMethod, ...]:
        """Which strategies for missing values it knows: all that leave or make every row whole."""
        return tuple(each for each in MissingMethod if each is not MissingMethod.AVAILABLE)

    def counted(self, missing: MissingMethod) -> MissingMethod:
        """As what missing answers stand in the columns that are counted one by one."""
        return missing

    def numbers(self, width: int, columns: int) -> int:
        """How many numbers its largest noisy sum has, for rows of so many groups."""
        return self.game.hidden * (width + 2)

    def widest(self, width: int) -> int:
        """How many numbers the widest layer has that rows are read by, for rows of so many groups."""
        return self.game.hidden

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        """Refuse from public numbers what cannot be fitted."""
        shape = plain(domain, missing).shape
        check_learned(self.name, domain, spend, self.numbers(sum(shape), len(shape)))
        check_widest(self.name, self.widest(sum(shape)))
        check_spend(missing, spend, self.share)
        if missing not in self.takes():
            raise PlanError(
                f"{self.name} has a critic that reads whole rows: impute first, make missing answers a category, or "
                "use misgan, which learns from them as they are",
                field="missing",
            )

    def brief(self) -> "Adversarial":
        """The same with one step, whose noise is that of each of its steps."""
        ones = 1 - (1 - self.ones) / self.game.steps
        return replace(self, game=replace(self.game, steps=1, turns=1), ones=ones)

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim:
        """The guarantee, before a row is read."""
        return claim_of(
            spend, *filling(missing), ("critics' clipped gradients, summed as whole numbers", PAGE)
        )

    def rounds(self, domain: Domain) -> int:
        """Noisy sums, the columns, and what a model for filling takes."""
        return self.sums() + 1 + MST().rounds(domain)

    def sums(self) -> int:
        """How many noisy sums share what columns leave."""
        return self.game.steps

    def step_noise(self, domain: Domain, missing: MissingMethod, spend: Spend) -> float:
        """That of each of the noisy sums."""
        left = after_filling(spend, missing, self.share)
        return noise_of(self.sums(), (1 - self.ones) * total_of(left), spend)

    def effort(self, domain: Domain, missing: MissingMethod) -> Effort:
        """From what was measured on one processor: made-up rows take the same whatever the table, a pass over rows their number."""
        game, width, columns = self.game, sum(plain(domain, missing).shape), len(domain.axes)
        made = game.steps * (game.turns * game.batch + game.fakes) * width
        held = max(8 * game.fakes, 5 * game.settled) * width + 10 * self.numbers(width, columns)
        return Effort(
            megabytes=5 + 8e-6 * held,
            seconds=1 + 6e-8 * made,
            seconds_each=1e4 * game.steps * self.row_seconds(width, columns),
        )

    def row_seconds(self, width: int, columns: int) -> float:
        """About what one row takes in one step: of one critic, by its inputs and its hidden numbers."""
        return 4e-9 * self.game.hidden * columns

    def open(self, task: FitTask) -> GameStart:
        """Rows prepared as the strategy says, and columns one by one measured with a quarter of what is left."""
        ready = prepared(task, model=MST(), share=self.share)
        rows, accountant = ready.counts, Accountant(spend=ready.spend, noise=ready.noise)
        domain, how = ready.domain, self.counted(ready.missing)
        total, shares = columns(
            rows, plain(domain, how), how, accountant, amount=self.ones * accountant.total
        )
        task.step("columns")
        bits, step = task.noise.bits, task.step
        return GameStart(rows=rows, accountant=accountant, total=total, shares=shares, bits=bits, step=step)
