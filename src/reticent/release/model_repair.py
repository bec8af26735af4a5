"""A private line that fills the gaps of a column, as a plan states it. Everything here is public.

A predictor is a number, an ordinal column or one of two levels, counted by its code; other levels are told apart one
by one, the first of them standing for the rest. A row that lacks a predictor is filled all the same: the middle
of the bounds stands in, or the first level.
"""

from dataclasses import dataclass
from fractions import Fraction

from reticent.decimals import show
from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim
from reticent.release.class_repair import ClassRepair
from reticent.words import nearest

LINES: dict[str, str] = {
    "centred": "THEORY 7.3",
    "functional": "THEORY 7.3",
    "adassp": "AdaSSP",
    "output": "stability of ridge regression",
    "privgene": "PrivGene",
}
"""The estimators that sums are enough for, and what each rests on. All of them promise in exact arithmetic."""

IN_THE_LAB = ("objective",)
"""Estimators whose proofs stand in ideal reals: for comparisons in the lab, and in no plan."""

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

    def __post_init__(self) -> None:
        check_estimator(self.estimator, field="estimator")

    @property
    def predictors(self) -> tuple[str, ...]:
        """The columns it is predicted from, each once."""
        return tuple(dict.fromkeys(feature.column for feature in self.features))

    def claim(self, change: Change) -> Claim:
        """What the line will promise, before a row is read."""
        page = f"proofs/models/{self.estimator}.md"
        rests_on = ((LINES[self.estimator], page), FILLING)
        return Claim(measure="pure", epsilon=self.epsilon, change=change, rests_on=rests_on)

    def words(self) -> str:
        """`missing wage was filled from a private line on age and hours (centred, epsilon 0.5)`."""
        names = self.predictors
        on = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
        how = "drawn about" if self.draws else "filled from"
        times = f", in {self.copies} copies" if self.copies > 1 else ""
        cost = f"{self.estimator}, epsilon {show(self.epsilon)}{times}"
        return f"missing {self.column} was {how} a private line on {on} ({cost})"


def check_estimator(name: str, *, field: str) -> None:
    """Refuse an estimator that a plan does not offer, and say which one to take instead."""
    if name in IN_THE_LAB:
        raise PlanError(
            f"{name!r} is proved for ideal reals, which no computer has, so a plan does not offer it; "
            "write 'output', its nearest with an exact promise, or 'centred', which is more accurate",
            field=field,
        )
    if name not in LINES:
        raise PlanError(f"is one of {', '.join(LINES)}{nearest(name, tuple(LINES))}", field=field)


AnyModel = ModelRepair | ClassRepair
