"""A private line that fills the gaps of a column, as a plan states it. Everything here is public.

A predictor is a number, an ordinal column or one of two levels, counted by its code; other levels are told apart one
by one, the first of them standing for the rest. A row that lacks a predictor is filled all the same: the middle
of the bounds stands in, or the first level.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.decimals import show
from reticent.privacy.claim import Arithmetic, Change, Claim
from reticent.release.class_repair import ClassRepair

LINES: dict[str, tuple[str, Arithmetic]] = {
    "centred": ("THEORY 7.3", "exact"),
    "functional": ("THEORY 7.3", "exact"),
    "adassp": ("AdaSSP", "exact"),
    "output": ("stability of ridge regression", "exact"),
    "privgene": ("PrivGene", "exact"),
    "objective": ("objective perturbation", "ideal reals"),
}
"""The estimators that sums are enough for: what each rests on, and in which numbers."""

FILLING = ("THEORY 7.1", "proofs/release/model_fit.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One column of the model: the code of a predictor, or whether it is at one of its levels."""

    column: str
    low: int
    high: int
    grid: Fraction = Fraction(1)
    level: int | None = None

    @property
    def name(self) -> str:
        return self.column if self.level is None else f"{self.column}={self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRepair:
    """A column, what it is predicted from, and what the line costs. `draws` adds its spread to every prediction;
    several `copies` of the rows are filled from lines as uncertain as the released one is."""

    column: str
    features: tuple[Feature, ...]
    epsilon: Fraction
    estimator: str = "centred"
    draws: bool = False
    copies: int = 1

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns it is predicted from, each once."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    def claim(self, change: Change) -> Claim:
        """What the line will promise, before a row is read."""
        theorem, arithmetic = LINES[self.estimator]
        page = f"proofs/models/{self.estimator}.md"
        return Claim(
            measure="pure",
            epsilon=self.epsilon,
            change=change,
            rests_on=((theorem, page), FILLING),
            arithmetic=arithmetic,
        )

    def words(self) -> str:
        """`missing wage was filled from a private line on age and hours (centred, epsilon 0.5)`."""
        names = self.predictors
        on = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        how = "drawn about" if self.draws else "filled from"
        times = f", in {self.copies} copies" if self.copies > 1 else ""
        cost = f"{self.estimator}, epsilon {show(self.epsilon)}{times}"
        return f"missing {self.column} was {how} a private line on {on} ({cost})"


AnyModel = ModelRepair | ClassRepair
