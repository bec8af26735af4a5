"""Sampling error bought for every domain of a statistic: one noisy sum of paired differences in each, under one epsilon.

A record lies in one domain, by its own answers, and adds to the differences of that domain alone (THEORY 13.2 and 14.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from reticent.answer.design import OwnError, SamplingError
from reticent.answer.parts import Measurement
from reticent.answer.unit_sums import ReleasedValue, tallies_in_domain
from reticent.engine.wants import Aggregate, Bins, Sum, Table, Tallies
from reticent.noise.source import Noise
from reticent.query.sides import Sides
from reticent.schema import Schema
from reticent.sensitivity.bounds import Neighbours, within_domains

GROUPS_OF_DOMAINS = 10
"""Domains may lie in some strata only: with few groups each has pairs of the domain. Uneven groups make the error too small, by
the mean of the roots of their shares; fewer groups make it less sure, which the degrees of freedom tell."""


def groups_by_domain(groups: int) -> int:
    """Into how many groups pairs are dealt for domains, or where a condition stands, if the plan does not say."""
    return min(groups, GROUPS_OF_DOMAINS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSampling:
    """The standard errors of the domains of one statistic, by cell, and what was measured for the noisiest of them."""

    errors: Mapping[tuple[tuple[str, str], ...], SamplingError]
    parts: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainErrors:
    """The purchase of standard errors for the domains of `sides`, each as `own` would for everybody."""

    own: OwnError
    sides: Sides

    @property
    def epsilon(self) -> Fraction:
        """What all of them cost together."""
        return self.own.epsilon

    def wants(self, schema: Schema) -> tuple[Aggregate, ...]:
        """What the engine must sum: the same as for everybody, by domain and unit."""
        return tuple(dict.fromkeys(self._by_domain(schema).values()))

    def _by_domain(self, schema: Schema) -> dict[Bins | Sum, Bins | Table]:
        keys = self.sides.keys(schema)
        return {want: want.by(keys) for want in self.own.basis.wants(self.own.shape)}

    def parts(self, schema: Schema, neighbours: Neighbours) -> tuple[Measurement, ...]:
        """Those of one domain: what is spent in one is spent in all."""
        return self.own.parts(schema, within_domains(neighbours))

    def run(
        self,
        tallies: Tallies,
        released: Mapping[tuple[tuple[str, str], ...], ReleasedValue],
        *,
        schema: Schema,
        neighbours: Neighbours,
        noise: Noise,
    ) -> DomainSampling:
        """Buy them, for the domains whose values were released.

        Guarantee   epsilon-DP for all domains together.
        Adjacency   `neighbours`.
        Theorem     THEORY 13.1 or 13.2 in each domain, calibrated to `within_domains` (THEORY 14.1).
        Proof       proofs/answer/design_domains.md
        Assumes     tallies of `wants`; each record lies in one domain, by its own answers; `released` was released before;
                    independent noise; exact arithmetic.
        Keeps back  the sums of domains, units and groups, and the exact totals.
        """
        inside, wanted = within_domains(neighbours), self._by_domain(schema)
        found: dict[tuple[tuple[str, str], ...], SamplingError] = {}
        for place, cell in enumerate(self.sides.cells(schema)):
            if cell in released:
                held = tallies_in_domain(tallies, wanted, place, schema)
                found[cell] = self.own.run(
                    held, released[cell], schema=schema, neighbours=inside, noise=noise
                )
        widest = max(
            (each.parts for each in found.values()), key=lambda parts: parts[0].scale * parts[0].unit
        )
        return DomainSampling(errors=found, parts=widest)
