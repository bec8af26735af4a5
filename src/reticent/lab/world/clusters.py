"""A simulated population drawn in clusters: strata of two primary sampling units each, shares, a wage, weights and silence.

Strata are fixed, units are drawn anew in every survey from infinitely many, and people within units. How alike people of a
unit are is set so that a share has the design effect asked for. The truth is that of the strata, so the error of an estimate
is all sampling, weighting, filling and noise.
"""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHARES = (0.10, 0.15, 0.22, 0.30, 0.37, 0.45, 0.52, 0.60)
KISH = 1.25
"""What unequal weights alone multiply the variance with."""
HEAVIEST = 4
"""Weights are clamped at so many times their mean."""
GRID = 8
"""Weights are counted in eighths."""
WAGES = (0, 200)
REGIONS = 4
TENTH = 0.1
CELLS = 6
"""Classes within which silence is at random, and donors are drawn."""


NORMAL = NormalDist()
HIGH = 30
"""A high wage."""
SLOPES = [0, 5]
"""The shares that wages are regressed on."""


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """One population and its design: people, units in strata of two, design effect of the clusters, weights, silence.

    `silent` is the share of people who do not tell their wage, at random within classes. `spread` is that of the strata's
    sizes, in logarithms. With `replicates`, a power of two from half the units on, the file has that many replicate weights by
    balanced repeated replication in place of units; with `dealt`, it has neither, and respondents are dealt into groups.
    """

    people: int
    units: int
    effect: float
    weighted: bool = False
    silent: float = 0.0
    spread: float = 0.0
    replicates: int = 0
    dealt: bool = False
    seed: int = 13

    @cached_property
    def alike(self) -> float:
        """The correlation of two people of a unit that gives the design effect: 1 + (people per unit - 1) rho."""
        clustered = self.effect / (KISH if self.weighted else 1.0)
        return max(0.0, (clustered - 1) / (self.people / self.units - 1))

    @cached_property
    def strata(self) -> tuple[Floats, Floats, Floats]:
        """Sizes that add up to 1, shares of every item, and mean logarithms of wages: the same in all surveys."""
        bits = np.random.default_rng(self.seed)
        sizes = np.exp(self.spread * bits.standard_normal(self.units // 2))
        tilt = bits.normal(0, 0.25, (self.units // 2, len(SHARES)))
        odds = np.log(np.array(SHARES) / (1 - np.array(SHARES)))
        return sizes / sizes.sum(), 1 / (1 + np.exp(-odds - tilt)), bits.normal(3.2, 0.15, self.units // 2)

    @cached_property
    def truth(self) -> dict[str, float]:
        """Shares of everybody by the names of their columns; by region as `y1 in r0`."""
        sizes, shares, _ = self.strata
        found = {f"y{j + 1}": float(sizes @ shares[:, j]) for j in range(len(SHARES))}
        for region in range(REGIONS):
            here = np.arange(len(sizes)) % REGIONS == region
            own = sizes[here] / sizes[here].sum()
            found |= {f"y{j + 1} in r{region}": float(own @ shares[here, j]) for j in range(len(SHARES))}
        return found

    @cached_property
    def mean_wage(self) -> float:
        """By a large draw of the clamped law: 4 million people, so to some four digits."""
        return self._mean_wage(np.ones(self.units // 2, dtype=bool))

    @cached_property
    def regional_wages(self) -> dict[str, float]:
        """The same by region, by the names of the truth."""
        place = np.arange(self.units // 2) % REGIONS
        return {f"wage in r{region}": self._mean_wage(place == region) for region in range(REGIONS)}

    def _mean_wage(self, here: NDArray[np.bool_]) -> float:
        bits = np.random.default_rng([self.seed, 1])
        sizes = self.strata[0] * here
        stratum = bits.choice(self.units // 2, 4_000_000, p=sizes / sizes.sum())
        return float(self._wages(bits, self.strata[2][stratum], np.zeros(len(stratum)) + np.nan).mean())

    @cached_property
    def median_income(self) -> float:
        """The median of the unrounded law, by bisection over the mixture of strata."""
        sizes, _, centres = self.strata
        low, high = -5.0, 10.0
        for _ in range(60):
            middle = (low + high) / 2
            below = float(sizes @ np.array([NORMAL.cdf((middle - each) / 0.5) for each in centres]))
            low, high = (middle, high) if below < 0.5 else (low, middle)
        return float(np.exp(low))

    @cached_property
    def high_wages(self) -> float:
        """The share of wages from HIGH on, as they are rounded."""
        sizes, _, centres = self.strata
        above = [1 - NORMAL.cdf((np.log(HIGH - 0.5) - each) / 0.5) for each in centres]
        return float(sizes @ np.array(above))

    @cached_property
    def slopes(self) -> dict[str, float]:
        """Those of wages on two shares in the population: answers are independent within strata, and differ between them."""
        sizes, shares, centres = self.strata
        bits = np.random.default_rng([self.seed, 2])
        normal = bits.standard_normal(1_000_000)
        wages = np.array([np.clip(np.round(np.exp(c + 0.5 * normal)), *WAGES).mean() for c in centres])
        pair = shares[:, SLOPES] - sizes @ shares[:, SLOPES]
        between = (pair * sizes[:, None]).T @ pair
        within = np.diag(sizes @ (shares[:, SLOPES] * (1 - shares[:, SLOPES])))
        found = np.linalg.solve(between + within, (pair * sizes[:, None]).T @ wages)
        return {f"y{j + 1} = yes": float(each) for j, each in zip(SLOPES, found, strict=True)}

    def draw(self, bits: np.random.Generator) -> pa.Table:
        """One survey: a row for each respondent."""
        sizes, shares, wages = self.strata
        per_unit = np.maximum(2, np.round(np.repeat(sizes, 2) * self.people / 2)).astype(int)
        unit = np.repeat(np.arange(self.units), per_unit)
        stratum = unit // 2
        columns: dict[str, object] = {
            "psu": pa.array([f"u{each}" for each in range(self.units)]).take(pa.array(unit)),
            "region": pa.array([f"r{each}" for each in range(REGIONS)]).take(pa.array(stratum % REGIONS)),
            "tenth": np.where(bits.random(len(unit)) < TENTH, "in", "out"),
            "class": pa.array([f"c{each}" for each in range(CELLS)]).take(
                pa.array(bits.integers(0, CELLS, len(unit)))
            ),
        }
        for j in range(len(SHARES)):
            own = self._unit_shares(bits, shares[np.arange(self.units) // 2, j])
            columns[f"y{j + 1}"] = np.where(bits.random(len(unit)) < own[unit], "yes", "no")
        among = bits.standard_normal(self.units)[unit]
        pay, exact = self._paid(bits, wages[stratum], among)
        told = bits.random(len(unit)) >= self.silent
        columns["wage"] = pa.array(pay, mask=~told)
        columns["w"] = self._weights(bits, len(unit))
        columns["income"] = np.clip(np.round(exact, 2), *WAGES)
        for place, signs in enumerate(self._balance()):
            kept = (1 + signs[stratum] * np.where(unit % 2, 1, -1)).astype(float)
            columns[f"w{place + 1}"] = np.asarray(columns["w"]) * kept
        return pa.table(columns)

    def _balance(self) -> Floats:
        """For every replicate a sign for each stratum: rows of a Hadamard matrix without its column of ones."""
        matrix = np.ones((1, 1))
        while len(matrix) < self.replicates:
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        return matrix[:, 1 : self.units // 2 + 1] if self.replicates else np.zeros((0, 0))

    def _unit_shares(self, bits: np.random.Generator, shares: Floats) -> Floats:
        """Beta numbers about the strata's shares, with the correlation within units as their spread."""
        if not self.alike:
            return shares
        size = 1 / self.alike - 1
        return np.asarray(bits.beta(shares * size, (1 - shares) * size))

    def _wages(self, bits: np.random.Generator, centre: Floats, among: Floats) -> Floats:
        """Lognormal, whole, clamped; `among` are the units' own normal numbers, nan where there are no units."""
        return self._paid(bits, centre, among)[0]

    def _paid(self, bits: np.random.Generator, centre: Floats, among: Floats) -> tuple[Floats, Floats]:
        """The wages, and the same neither rounded nor clamped."""
        share = np.where(np.isnan(among), 0.0, self.alike)
        own = bits.standard_normal(len(centre))
        mixed = np.sqrt(share) * np.nan_to_num(among) + np.sqrt(1 - share) * own
        exact = np.exp(centre + 0.5 * mixed)
        return np.asarray(np.clip(np.round(exact), *WAGES)), np.asarray(exact)

    def _weights(self, bits: np.random.Generator, people: int) -> Floats:
        if not self.weighted:
            return np.ones(people)
        sigma = np.sqrt(np.log(KISH))
        drawn = np.exp(sigma * bits.standard_normal(people) - sigma**2 / 2)
        return np.asarray(np.clip(np.round(GRID * drawn), 1, GRID * HEAVIEST) / GRID)

    def codebook(self) -> dict[str, object]:
        """The public facts."""
        levels = {
            "region": [f"r{each}" for each in range(REGIONS)],
            "tenth": ["in", "out"],
            "class": [f"c{each}" for each in range(CELLS)],
            **{f"y{j + 1}": ["no", "yes"] for j in range(len(SHARES))},
        }
        columns: dict[str, object] = {
            name: {"kind": "categorical", "levels": each} for name, each in levels.items()
        }
        columns["psu"] = {
            "kind": "categorical",
            "role": "psu",
            "levels": [f"u{each}" for each in range(self.units)],
            "strata": [f"s{each // 2}" for each in range(self.units)],
        }
        if self.dealt:
            columns["psu"] = {"kind": "categorical", "role": "psu", "dealt": self.units}
        if self.replicates:
            del columns["psu"]
        columns["wage"] = {"kind": "integer", "bounds": list(WAGES)}
        columns["income"] = {"kind": "decimal", "bounds": list(WAGES), "grid": "0.01"}
        columns["w"] = {"kind": "decimal", "bounds": [0, HEAVIEST], "grid": "0.125", "role": "weight"}
        survey: dict[str, object] = {"name": "clusters", "unit": "row"}
        if self.replicates:
            weights = {"weight": "w", "columns": "w{}", "count": self.replicates, "method": "brr"}
            survey["replicates"] = {**weights, "degrees_of_freedom": self.units // 2}
        return {"survey": survey, "columns": columns}
