"""What synthesizers share: what they may count or pass over, what they may draw, and the model they leave behind."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import RowFill, RowSum
from reticent.noise.bits import Bits
from reticent.privacy.claim import Change, Claim
from reticent.sensitivity.bounds import Neighbours
from reticent.synth.domain import Domain

Counted = NDArray[np.int64]
Floats = NDArray[np.float64]
Cells = NDArray[np.int32]
Places = tuple[int, ...]
Step = Callable[[str], None]


class MissingMethod(StrEnum):
    """What a synthesizer does about missing values."""

    COMPLETE = "complete"
    RANDOM = "impute-random"
    MEAN = "impute-mean"
    MODEL = "impute-model"
    AVAILABLE = "available"
    WEIGHTED = "response-weighted"
    VALUES = "category"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditional:
    """How one column is drawn from columns drawn before: `table` has the given sizes, then the column's own.

    Lines sum to one. Also how a silent cell of a row is filled from that row's own other cells.
    """

    place: int
    given: Places
    table: Floats = field(repr=False)


class Counts(Protocol):
    """CONFIDENTIAL: rows as cells of a domain, inside the engine: the `CodedRows` of its protocol."""

    def count(self, sets: Sequence[Places]) -> list[Counted]:
        """For each set of axes its table over all cells, silence and unasked included, all by one pass."""
        ...

    def complete(self) -> "Counts":
        """Only the rows without a silent cell."""
        ...

    def filled(self, fills: Sequence[Conditional], bits: Bits) -> "Counts":
        """The rows with silent cells drawn from `fills`, one after the other: each row uses only itself.

        The last side of a fill's table runs over all cells of its column; silence and unasked have chance 0.
        """
        ...

    def redrawn(self, fill: RowFill, bits: Bits) -> "Counts":
        """The rows with missing cells drawn by `fill`: each row uses only itself and bits of its own."""
        ...

    def summed(self, work: RowSum) -> Counted:
        """The sum over all rows of the whole numbers that `work` makes of each by itself."""
        ...

    def sampled_sum(self, work: RowSum, rate: Fraction, bits: Bits) -> Counted:
        """The same over a Poisson sample: every row is in by a coin of its own, with chance `rate`."""
        ...

    def batches(self, size: int, bits: Bits) -> Iterator[NDArray[Any]]:
        """All rows once, in an order that `bits` settle, `size` at a time: a line for each axis.

        How many batches there are says how many rows there are: train for a public number of steps.
        """
        ...


class SynthNoise(Protocol):
    """The noise of synthesizers. `bits` are for draws that need no secrecy of ours."""

    @property
    def is_private(self) -> bool: ...

    @property
    def bits(self) -> Bits: ...

    def laplace_many(self, answers: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> list[int]:
        """Discrete Laplace noise each; `sensitivity` bounds the sum of all moves."""
        ...

    def gaussian_many(self, answers: Sequence[int], *, sensitivity: int, rho: Fraction) -> list[int]:
        """Discrete Gaussian noise each; `sensitivity` bounds the Euclidean length of all moves."""
        ...

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        """The exponential mechanism: epsilon-DP, and epsilon^2/8-zCDP."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Spend:
    """What a synthesizer may spend: epsilon alone for pure noise, epsilon and `delta`, or `rho` itself (zCDP)."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    change: Change = Change.ADD_REMOVE
    records: int = 1
    stability: int = 1

    @property
    def neighbours(self) -> Neighbours:
        records = self.records * self.stability
        return Neighbours(replaced=self.change is Change.REPLACE, records=records)

    @property
    def is_pure(self) -> bool:
        """Whether tables get Laplace noise, and what is spent is counted in epsilon."""
        return not (self.delta or self.rho)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicMargin:
    """Shares of the survey's population over all cells of one column or two, known to all. They sum to one."""

    places: Places
    shares: Floats = field(repr=False)

    def over(self, groups: Sequence[Counted]) -> Floats:
        """The shares over groups of cells, -1 for cells in none, which have no share."""
        shape = [int(side.max()) + 1 for side in groups]
        kept = np.ix_(*(np.flatnonzero(side >= 0) for side in groups))
        into = np.ravel_multi_index(np.ix_(*(side[side >= 0] for side in groups)), shape)
        made = np.bincount(into.ravel(), weights=self.shares[kept].ravel(), minlength=int(np.prod(shape)))
        return np.asarray(made.reshape(shape))


@dataclass(frozen=True, slots=True)
class FitTask:
    """What a synthesizer is given to fit: the rows, what is done about missing values, and what may be spent.

    Parameters
    ----------
    counts : the rows, confidential
    domain : their columns, and the cells of each
    missing : what is done about missing values
    spend : the privacy budget of the fit, for the change that stays hidden
    noise : where all noise and all draws come from
    step : told of each step of the method by name, for a progress bar
    public : margins of the population that the model is to agree with
    """

    counts: Counts = field(repr=False)
    domain: Domain
    missing: MissingMethod
    spend: Spend
    noise: SynthNoise = field(kw_only=True)
    step: Step = field(kw_only=True, repr=False)
    public: tuple[PublicMargin, ...] = field(kw_only=True, default=(), repr=False)


class Model(Protocol):
    """A fitted synthesizer: rows to draw, as many as are wanted, under the guarantee it was fitted with.

    Everything here comes after the noise. `total` is the noisy number of respondents; how many rows are drawn is said
    by whoever draws. `files` are what a saved model consists of, by name: `model.toml` among them, whose key `kind`
    says which reader in `synth/saved.py` makes it a model again.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def total(self) -> float: ...

    @property
    def claim(self) -> Claim: ...

    def draw(self, rows: int, bits: Bits) -> Cells:
        """`rows` rows of cells, a column for each axis of the domain. Costs nothing."""
        ...

    def files(self) -> dict[str, bytes]:
        """What a saved model consists of. Nothing in it can run."""
        ...


class SynthesisMethod(Protocol):
    """One way to learn a model. Everything but `fit` is known before a row is read.

    Rows come as tables to count or, for a method that trains on rows, as sums over all of them or shuffled `batches`.
    """

    @property
    def name(self) -> str: ...

    def check(self, domain: Domain, missing: MissingMethod, spend: Spend) -> None:
        """Refuse from public numbers what cannot be fitted."""
        ...

    def claim(self, domain: Domain, missing: MissingMethod, spend: Spend) -> Claim: ...

    def rounds(self, domain: Domain) -> int:
        """At most how often `step` is called, for a progress bar."""
        ...

    def fit(self, task: FitTask) -> Model: ...


@runtime_checkable
class Sequenced(Protocol):
    """A method that learns columns in an order, which constraints of the plan have a say in."""

    def in_order(self, tied: Sequence[tuple[str, ...]]) -> SynthesisMethod:
        """The same method with columns that constraints tie together first, what settles before what is settled."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """About what a fit takes: memory beside the rows, and processor time, fixed and for every 10,000 rows.

    `held` is how many copies of the rows there are at most: those that are filled in turn are three for a moment.
    """

    megabytes: float
    seconds: float
    seconds_each: float
    held: int = 1


@runtime_checkable
class Foretold(Protocol):
    """A method whose fit takes long enough that a preview should say so."""

    def effort(self, domain: Domain, missing: MissingMethod) -> Effort | None:
        """From the codebook and the plan alone; none where it is quick."""
        ...


@runtime_checkable
class Stepwise(Protocol):
    """A method that learns in steps which are all alike."""

    def brief(self) -> SynthesisMethod:
        """The same with one step of each kind, with the noise that each of them has: enough to be tried on nobody."""
        ...


def in_brief(method: SynthesisMethod) -> SynthesisMethod:
    """The method, where it learns in steps with one of each kind."""
    return method.brief() if isinstance(method, Stepwise) else method


@runtime_checkable
class NoisyTraining(Protocol):
    """A method that learns by noisy sums over rows."""

    def step_noise(self, domain: Domain, missing: MissingMethod, spend: Spend) -> float:
        """The deviation of the noise on one number of a step, in respondents in that step; from public numbers."""
        ...


@runtime_checkable
class SampledTraining(Protocol):
    """A method whose steps may look at Poisson samples of the rows."""

    def sampling(self, rate: Fraction, steps: int) -> SynthesisMethod:
        """The same with so many steps, every record in each by a coin of that chance."""
        ...


@runtime_checkable
class Worded(Protocol):
    """A method that does about missing values what the usual sentence does not tell."""

    def done(self, missing: MissingMethod) -> str:
        """What it does, as the usual sentences say it; empty where they are right."""
        ...
