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
from reticent.engine.wants import (
    Aggregate,
    Bins,
    ContingencyTable,
    Key,
    Rows,
    SufficientStatistics,
    Sum,
    Table,
    Tallies,
)
from reticent.errors import PlanError
from reticent.noise.source import Noise
from reticent.prepare.strata import BaseWeights, Strategy
from reticent.schema import Number, Schema
from reticent.sensitivity.bounds import Neighbours, bound_table

FINE = 16
"""Factors are whole numbers of a unit of which the largest is 2^16, or less where weights have many steps."""
FEWEST = 10
SMALLEST = Fraction(1, 2**30)
"""The unit of factors is a power of two, not below this."""
LARGEST = 62 - 40
"""Bits that a record's weight may take: sums over 2^40 records fit the sampler's 62."""
ENOUGH = 20
"""A bin of less than so many times G/epsilon is put together with its neighbour: the mean of its factor would be off."""
ASSUMED_ROWS = 1000
"""Of a survey whose plan expects no number of rows, for what is previewed."""
WEIGHTS = "base weight of bins"
PAGE = "proofs/answer/factors.md"
GROUND = ("released factors of weights", PAGE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """The weights of a plan once factors are released: a whole number for every base cell, in steps of `unit`.

    `bins` are the strategy's after small ones were put together, and `noisy` their base weights. All of it is public or was
    paid for.
    """

    bought: "FactorPurchase"
    factors: tuple[int, ...]
    unit: Fraction
    bins: tuple[int, ...]
    noisy: tuple[Fraction, ...]
    totals: tuple[Fraction, ...]
    parts: tuple[Measurement, ...]

    @property
    def heaviest(self) -> int:
        """No record has more steps of weight: G' of THEORY 14.5."""
        return max(1, self.bought.base.heaviest * max(self.factors))

    @property
    def joined(self) -> int:
        """How many bins were put together with others."""
        return len(self.totals) - len(set(self.bins))

    @property
    def effect(self) -> float:
        """What unequal factors multiply the variance with, of answers that have nothing to do with the bins (Kish).

        B (sum of N^2/B over the bins) / N^2, from what was released; at least 1.
        """
        least = self.bought.base.heaviest * self.bought.base.unit
        known, held = _by_group(self.totals, self.noisy, self.bins)
        sizes = {group: max(each, least) for group, each in held.items()}
        spread = sum((known[group] ** 2 / size for group, size in sizes.items()), Fraction(0))
        return max(1.0, float(spread * sum(sizes.values()) / sum(self.totals) ** 2))

    def schema(self, schema: Schema) -> Schema:
        """The codebook with the weight as a base weight: what statistics and their bounds are told."""
        return self.bought.declared(schema, self.heaviest, self.unit * self.bought.base.unit)

    def contracted(self, wants: Sequence[Aggregate], tallies: Tallies, schema: Schema) -> Tallies:
        """The weighted sums and tables, from those of base cells; what is not weighted by it stays as it is."""
        sums, tables = dict(tallies.statistics.sums), dict(tallies.tables)
        for want in dict.fromkeys(wants):
            asked = self.bought.asked(want)
            if asked == want:
                continue
            if isinstance(asked, Sum) and isinstance(want, Sum):
                sums[want] = tallies.statistics[asked]
            elif isinstance(asked, Table):
                found = tallies.tables[asked].cells
                cells = self._summed(found, schema) if self.bought.weighs(want) else found
                if isinstance(want, Sum):
                    (sums[want],) = cells
                elif isinstance(want, Table):
                    tables[want] = ContingencyTable(want=want, cells=cells)
        several = None if tallies.fractions is None else self.contracted(wants, tallies.fractions, schema)
        return replace(tallies, statistics=SufficientStatistics(sums=sums), tables=tables, fractions=several)

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
        for key, silent in zip(self.bought.keys, self.bought.silent, strict=True):
            extra = replace(key, silent=True).size(schema) - key.size(schema)
            sides.append([*range(key.size(schema)), *[silent] * extra])
        sizes = [key.size(schema) for key in self.bought.keys]
        found = []
        for places in product(*sides):
            index = 0
            for place, size in zip(places, sizes, strict=True):
                index = index * size + place
            found.append(self.factors[index])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorPurchase:
    """The purchase of factors: the weight's name, how records fall into base cells, their base weights, and the price.

    Sums may be taken over the completions of several `rings` of capped donors; factors have fewer bits then.
    """

    name: str
    column: str | None
    keys: tuple[Key, ...]
    silent: tuple[int, ...]
    base: BaseWeights
    epsilon: Fraction
    rings: int = 1

    def want(self) -> Bins:
        """What the engine must sum: the base weight of everybody, by base cell."""
        return Bins(rows=Rows(), keys=self.keys, silent=self.silent, weight=self.column)

    def part(self, neighbours: Neighbours) -> Measurement:
        """What will be measured, from public numbers."""
        bound = bound_table(self.base.heaviest, neighbours=neighbours)
        return plan_table(WEIGHTS, bound=bound, grid=self.base.unit, epsilon=self.epsilon)

    def declared(self, schema: Schema, heaviest: int, grid: Fraction) -> Schema:
        """The codebook with the weight as a column of base weights."""
        column = Number(
            name=self.name,
            source=self.name,
            role="weight",
            lower=Fraction(0),
            upper=grid * heaviest,
            grid=grid,
        )
        return replace(schema, columns={**schema.columns, self.name: column})

    def planned(self, schema: Schema, total: Fraction, rows: int | None, mean: Fraction | None) -> Schema:
        """The codebook that a plan is read and previewed with: as if every bin held its share of the expected rows.

        A respondent then weighs on average the population over the rows, and the heaviest as many times more as the base
        weight's bound lies above its expected `mean`. Without a mean all weigh alike, as if everybody were at the bound.
        """
        heaviest = self.base.heaviest * self.base.unit
        each = max(Fraction(1), total / (rows or ASSUMED_ROWS))
        each *= max(Fraction(1), heaviest / mean) if mean and self.column else 1
        return self.declared(schema, 1 << FEWEST, each / (1 << FEWEST))

    def weighs(self, want: Aggregate) -> bool:
        """Whether this weight counts in it."""
        return getattr(want, "weight", None) == self.name

    def asked(self, want: Aggregate) -> Aggregate:
        """What the engine is asked in place of a weighted sum or table: the same by base cell, with base weights.

        Where it is not weighted, rows that are to be complete are told nothing of a weight that no row holds.
        """
        if not self.weighs(want):
            rows = self._rows(want.rows)
            return want if rows == want.rows else replace(want, rows=rows)
        if not isinstance(want, Sum | Table):
            raise PlanError(
                "is not weighted to known totals by released factors; use base weights", field="query.weight"
            )
        own = tuple(replace(key, silent=True) for key in self.keys)
        table = want.by(own) if isinstance(want, Sum) else replace(want, keys=(*want.keys, *own))
        return replace(table, rows=self._rows(want.rows), weight=self.column)

    def _rows(self, rows: Rows) -> Rows:
        """The rows that count, told of the base weight in place of this one."""
        held = (self.column,) if self.column else ()
        answered = tuple(each for name in rows.answered for each in (held if name == self.name else (name,)))
        return replace(rows, answered=answered, known=tuple(name for name in rows.known if name != self.name))

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
        factors, unit = whole_factors(
            _ratios(strategy.totals, held, into, heaviest), self.base.heaviest * self.rings
        )
        return Factors(
            bought=self,
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
    known, held = _by_group(totals, noisy, into)
    return [known[group] / max(held[group], heaviest) for group in into]


def _by_group(
    totals: Sequence[Fraction], noisy: Sequence[Fraction], into: Sequence[int]
) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    """The known total of every group, and its released base weight."""
    known: dict[int, Fraction] = {}
    held: dict[int, Fraction] = {}
    for group, total, weight in zip(into, totals, noisy, strict=True):
        known[group] = known.get(group, Fraction(0)) + total
        held[group] = held.get(group, Fraction(0)) + weight
    return known, held


def whole_factors(ratios: Sequence[Fraction], heaviest: int) -> tuple[tuple[int, ...], Fraction]:
    """The ratios as whole numbers of a unit, rounded to the nearest, so that no record's weight takes too many bits."""
    bits = check_steps(heaviest)
    largest = max(ratios)
    if largest <= 0:
        return (0,) * len(ratios), Fraction(1)
    unit = SMALLEST
    while largest > unit * 2**bits:
        unit *= 2
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
