"""Weights to known totals by released factors: every record's weight is a public multiple of its own base weight.

The base weight of every bin is released once, with noise, and the bin's known total over it is the factor of its records. From
then on a weighted sum, table or rank is one over base cells, each times a whole number that everybody knows. So it has a
global sensitivity, and whatever is proved for base weights holds: tables, quantiles and domains included. THEORY 14.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import floor

from reticent.answer.parts import Measurement, measure_table, plan_table
from reticent.engine.results import ContingencyTable, SufficientStatistics, Tallies
from reticent.engine.wants import Aggregate, Bins, Key, Rows, Sum, Table
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.prepare.strata import BaseWeights, Strategy
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Neighbours
from reticent.sensitivity.linear import bound_table

FINE = 16
"""Factors are whole numbers of a unit of which the largest is 2^16, or less where weights have many steps."""
FEWEST = 10
LARGEST = 62 - 40
"""Bits that a record's weight may take: sums over 2^40 records fit the sampler's 62."""
ENOUGH = 20
"""A bin of less than so many times G/epsilon is put together with its neighbour: the mean of its factor would be off."""
WEIGHTS = "base weight of bins"
PAGE = "proofs/answer/factors.md"
GROUND = ("released factors of weights", PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """The weights of a plan once factors are released: a whole number for every base cell, in steps of `unit`.

    `keys` and `silent` say which base cell a record is in. `bins` are the strategy's after small ones were put together,
    and `noisy` their base weights. All of it is public or was paid for.
    """

    name: str
    column: str | None
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    base: BaseWeights
    factors: tuple[int, ...]
    unit: Fraction
    bins: tuple[int, ...]
    noisy: tuple[Fraction, ...]
    totals: tuple[Fraction, ...]
    parts: tuple[Measurement, ...]

    @property
    def heaviest(self) -> int:
        """No record has more steps of weight: G' of THEORY 14.5."""
        return max(1, self.base.heaviest * max(self.factors))

    @property
    def joined(self) -> int:
        """How many bins were put together with others."""
        return len(self.totals) - len(set(self.bins))

    def schema(self, schema: Schema) -> Schema:
        """The codebook with the weight as a base weight: what statistics and their bounds are told."""
        grid = self.unit * self.base.unit
        column = Number(
            name=self.name,
            source=self.name,
            role="weight",
            lower=Fraction(0),
            upper=grid * self.heaviest,
            grid=grid,
        )
        return replace(schema, columns={**schema.columns, self.name: column})

    def asked(self, want: Aggregate) -> Aggregate:
        """What the engine is asked in place of a weighted sum or table: the same by base cell, with base weights."""
        if isinstance(want, Sum) and want.weight == self.name:
            if want.power > 1 or want.other is not None:
                raise PlanError(
                    "variances and correlations are not weighted to known totals; use base weights",
                    field="query.weight",
                )
            return Bins(
                rows=self._rows(want.rows),
                keys=self.keys,
                silent=self.silent,
                value=want.value if want.power else None,
                weight=self.column,
            )
        if isinstance(want, Table) and want.weight == self.name:
            own = tuple(replace(key, silent=True) for key in self.keys)
            return Table(rows=self._rows(want.rows), keys=(*want.keys, *own), weight=self.column)
        if getattr(want, "weight", None) == self.name:
            raise PlanError(
                "is not weighted to known totals by released factors; use base weights", field="query.weight"
            )
        return want

    def _rows(self, rows: Rows) -> Rows:
        """The rows that count, told of the base weight in place of this one."""
        held = (self.column,) if self.column else ()
        answered = tuple(each for name in rows.answered for each in (held if name == self.name else (name,)))
        return replace(rows, answered=answered, known=tuple(name for name in rows.known if name != self.name))

    def contracted(self, wants: Sequence[Aggregate], tallies: Tallies, schema: Schema) -> Tallies:
        """The weighted sums and tables, from those of base cells; what is not weighted by it stays as it is."""
        sums, tables = dict(tallies.statistics.sums), dict(tallies.tables)
        for want in dict.fromkeys(wants):
            asked = self.asked(want)
            if isinstance(want, Sum) and isinstance(asked, Bins):
                cells = tallies.bins[asked].matching
                sums[want] = sum(factor * int(each) for factor, each in zip(self.factors, cells, strict=True))
            elif isinstance(want, Table) and isinstance(asked, Table) and asked != want:
                held = tallies.tables[asked].cells
                tables[want] = ContingencyTable(want=want, cells=self._summed(held, schema))
        return replace(tallies, statistics=SufficientStatistics(sums=sums), tables=tables)

    def _summed(self, cells: Sequence[int], schema: Schema) -> tuple[int, ...]:
        """Every cell of the table over its base cells, each times its factor."""
        of_cell = self._with_silence(schema)
        size = len(of_cell)
        return tuple(
            sum(factor * cells[start + place] for place, factor in enumerate(of_cell))
            for start in range(0, len(cells), size)
        )

    def _with_silence(self, schema: Schema) -> list[int]:
        """Factors in the order of a table over keys with cells for silence: who did not say is where the plan puts them."""
        sides = []
        for key, silent in zip(self.keys, self.silent, strict=True):
            extra = replace(key, silent=True).size(schema) - key.size(schema)
            sides.append([*range(key.size(schema)), *[silent] * extra])
        sizes = [key.size(schema) for key in self.keys]
        found = []
        for places in product(*sides):
            index = 0
            for place, size in zip(places, sizes, strict=True):
                index = index * size + place
            found.append(self.factors[index])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorPurchase:
    """The purchase of factors: how records fall into base cells, their base weights, and the price."""

    name: str
    column: str | None
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    base: BaseWeights
    epsilon: Fraction

    def want(self) -> Bins:
        """What the engine must sum: the base weight of everybody, by base cell."""
        return Bins(rows=Rows(), keys=self.keys, silent=self.silent, weight=self.column)

    def part(self, neighbours: Neighbours) -> Measurement:
        """What will be measured, from public numbers."""
        bound = bound_table(self.base.heaviest, neighbours=neighbours)
        return plan_table(WEIGHTS, bound=bound, grid=self.base.unit, epsilon=self.epsilon)

    def run(self, tallies: Tallies, strategy: Strategy, *, neighbours: Neighbours, noise: Noise) -> Factors:
        """Release the base weight of every bin, and make factors of them.

        Guarantee   epsilon-DP for one call.
        Adjacency   `neighbours`.
        Theorem     THEORY 14.5: `bound_table` and `measure_table`; the rest is post-processing.
        Proof       proofs/answer/factors.md
        Assumes     tallies of `want`; strategy and totals are public or were released before; exact arithmetic.
        Keeps back  the exact base weights of the bins.
        """
        exact = [0] * len(strategy.totals)
        for own, each in zip(strategy.bins, tallies.bins[self.want()].total, strict=True):
            exact[own] += int(each)
        noisy = measure_table(
            exact,
            WEIGHTS,
            bound=bound_table(self.base.heaviest, neighbours=neighbours),
            grid=self.base.unit,
            epsilon=self.epsilon,
            noise=noise,
        )
        held = tuple(each.estimate for each in noisy)
        heaviest = self.base.heaviest * self.base.unit
        into = joined_bins(held, least=ENOUGH * heaviest / (self.epsilon / neighbours.steps))
        ratios = _ratios(strategy.totals, held, into, heaviest)
        factors, unit = whole_factors(ratios, self.base.heaviest)
        return Factors(
            name=self.name,
            column=self.column,
            keys=self.keys,
            silent=self.silent,
            base=self.base,
            factors=tuple(factors[own] for own in strategy.bins),
            unit=unit,
            bins=into,
            noisy=held,
            totals=strategy.totals,
            parts=(noisy[0].part,),
        )


def joined_bins(noisy: Sequence[Fraction], *, least: Fraction) -> tuple[int, ...]:
    """For every bin the number of the group it is in: bins of less than `least` join the next, or in the end the one before."""
    groups: list[list[int]] = []
    for place in range(len(noisy)):
        if groups and sum(noisy[each] for each in groups[-1]) < least:
            groups[-1].append(place)
        else:
            groups.append([place])
    if len(groups) > 1 and sum(noisy[each] for each in groups[-1]) < least:
        last = groups.pop()
        groups[-1] += last
    where = {place: number for number, group in enumerate(groups) for place in group}
    return tuple(where[place] for place in range(len(noisy)))


def _ratios(
    totals: Sequence[Fraction], noisy: Sequence[Fraction], into: Sequence[int], heaviest: Fraction
) -> list[Fraction]:
    """N/max(B, G) of the group that every bin is in."""
    known: dict[int, Fraction] = {}
    held: dict[int, Fraction] = {}
    for group, total, weight in zip(into, totals, noisy, strict=True):
        known[group] = known.get(group, Fraction(0)) + total
        held[group] = held.get(group, Fraction(0)) + weight
    return [known[group] / max(held[group], heaviest) for group in into]


def whole_factors(ratios: Sequence[Fraction], heaviest: int) -> tuple[tuple[int, ...], Fraction]:
    """The ratios as whole numbers of a unit, rounded to the nearest, so that no record's weight takes too many bits."""
    bits = check_steps(heaviest)
    largest = max(ratios)
    if largest <= 0:
        return (0,) * len(ratios), Fraction(1)
    unit = largest / 2**bits
    return tuple(floor(each / unit + Fraction(1, 2)) for each in ratios), unit


def check_steps(heaviest: int) -> int:
    """How many bits factors have beside base weights of so many steps; refused where they are too few."""
    bits = min(FINE, LARGEST - heaviest.bit_length())
    if bits < FEWEST:
        raise PlanError(
            "the base weight has too many steps for released factors; declare a coarser grid for it",
            field="weight.base",
        )
    return bits
