"""PrivGene: generations of candidate lines, the fittest chosen privately, their children crossed and mutated."""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import ClassVar

from reticent.errors import PlanError
from reticent.models.design import Records, Sums
from reticent.models.fit import Estimator, FitTerms, Line, ModelNoise, sums_of
from reticent.models.moments import UNIT, steps
from reticent.models.residual import SHARE, residual_variance
from reticent.sensitivity.bounds import Neighbours

STEPS = 1 << 10
"""Coefficients are counted in steps of 2^-10."""

Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivGene(Estimator):
    """Zhang, Xiao, Yang, Zhang and Winslett 2013, with permute-and-flip for the choice and mutations by a fixed pattern.

    Coefficients of unit columns lie in [-radius, radius]. Each generation chooses two parents; steps halve.
    """

    proof: ClassVar = ("PrivGene", "proofs/models/privgene.md")
    generations: int = 5
    radius: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if not 1 <= self.generations <= 50:
            raise PlanError("take from 1 to 50 of them.", field="generations")
        if self.radius <= 0 or (self.radius * STEPS).denominator != 1:
            raise PlanError("it is a positive multiple of 1/1024.", field="radius")

    def _fit(self, data: Sums | Records, terms: FitTerms) -> Line:
        """The fittest line of the last generation.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     permute-and-flip, composed over generations.
        Proof       proofs/models/privgene.md
        Assumes     candidates depend on earlier choices alone; exact arithmetic.
        Keeps back  every score.
        """
        sums = sums_of(data)
        scores = Scores.of(sums)
        each = (1 - SHARE) * terms.epsilon / (2 * self.generations)
        size, most = sums.design.features, int(self.radius * STEPS)
        parents = [(0,) * size, (0,) * size]
        for generation in range(self.generations):
            stride = max(1, most >> (generation + 1))
            lines = children(parents[0], parents[1], stride=stride, most=most)
            chosen = [
                scores.choose(lines, parents[0], epsilon=each, neighbours=terms.neighbours, noise=terms.noise)
                for _ in parents
            ]
            parents = chosen
        theta = [Fraction(a + b, 2 * STEPS) for a, b in zip(*parents, strict=True)]
        own = SHARE * terms.epsilon
        left = residual_variance(sums, theta, epsilon=own, neighbours=terms.neighbours, noise=terms.noise)
        return theta, left


def children(one: Steps, other: Steps, *, stride: int, most: int) -> list[Steps]:
    """Both parents, every cross of them in few columns, and each moved by one stride; in a fixed order, none twice."""
    crossed = {one, other}
    if len(one) <= 6:
        crossed |= set(product(*({a, b} for a, b in zip(one, other, strict=True))))
    moved = {
        (*line[:j], min(max(line[j] + step, -most), most), *line[j + 1 :])
        for line in crossed
        for j in range(len(one))
        for step in (-stride, stride)
    }
    return sorted(crossed | moved)


@dataclass(frozen=True, slots=True)
class Scores:
    """Sums of products of unit columns, rounded to steps; from these the sum of squared residuals of any line."""

    gram: list[list[int]] = field(repr=False)
    cross: list[int] = field(repr=False)
    square: int = field(repr=False)

    @classmethod
    def of(cls, sums: Sums) -> "Scores":
        gram, cross, square = sums.ordinary()
        return cls(
            [[steps(UNIT * g) for g in row] for row in gram],
            [steps(UNIT * c) for c in cross],
            steps(UNIT * square),
        )

    def choose(
        self,
        lines: list[Steps],
        start: Steps,
        *,
        epsilon: Fraction,
        neighbours: Neighbours,
        noise: ModelNoise,
    ) -> Steps:
        """One of the lines, nearly the best; what each gains over `start` is counted in parts of one row's largest gain.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     permute-and-flip; a score moves by at most steps x UNIT + 2.
        Proof       proofs/models/privgene.md
        Assumes     the lines and `start` are public, and one line is another than `start`.
        Keeps back  the scores.
        """
        reach = max(gain_bound(line, start) for line in lines)
        from_start = self.squares(start)
        scores = [steps(Fraction(from_start - self.squares(line), reach)) for line in lines]
        bound = neighbours.steps * UNIT + 2
        return lines[noise.select(scores, sensitivity=bound, epsilon=epsilon)]

    def squares(self, line: Steps) -> int:
        """The sum of squared residuals, in steps of 1/(UNIT STEPS^2)."""
        at = range(len(line))
        bent = sum(line[i] * self.gram[i][j] * line[j] for i in at for j in at)
        return self.square * STEPS**2 - 2 * STEPS * sum(line[i] * self.cross[i] for i in at) + bent


def gain_bound(line: Steps, start: Steps) -> int:
    """The most by which squared residuals of one row can differ, in steps of 1/STEPS^2.

    (y - x'a)^2 - (y - x'b)^2 = x'(b - a) (2y - x'(a + b)), and |x'c| <= |c|_1.
    """
    apart = sum(abs(a - b) for a, b in zip(line, start, strict=True))
    return apart * (2 * STEPS + sum(abs(a + b) for a, b in zip(line, start, strict=True)))
