"""A table over declared cells: every cell gets its own noise, empty or not."""

from fractions import Fraction
from itertools import product

from reticent.answer.base import EXACT_WORDS, Answer, Estimate
from reticent.answer.context import Context, weight_of
from reticent.answer.count import binomial, covering
from reticent.answer.parts import measure_table
from reticent.query.kinds import CrossTabulation
from reticent.query.rows import Subpopulation
from reticent.schema import Schema
from reticent.sensitivity.bounds import Global
from reticent.sensitivity.linear import bound_table
from reticent.sensitivity.neighbours import Neighbours


def margin_bound(among: Subpopulation, schema: Schema, neighbours: Neighbours) -> tuple[Global, Fraction]:
    """The L1 bound of the table in steps, and the step."""
    weight = weight_of(among, schema)
    top, grid = (weight.high, weight.grid) if weight else (1, Fraction(1))
    return bound_table(top, neighbours=neighbours), grid


def answer_margin(query: CrossTabulation, epsilon: Fraction, context: Context) -> Answer:
    """The noisy table.

    Guarantee   epsilon-DP for the whole table.
    Adjacency   context.neighbours.
    Theorem     `bound_table` and `measure_table`.
    Proof       proofs/answer/margin.md
    Assumes     tallies of `query.wants`; cells come from the codebook and the plan; exact arithmetic.
    Keeps back  the exact table.
    """
    schema = context.schema
    bound, grid = margin_bound(query.among, schema, context.neighbours)
    exact = context.tallies.tables[query.table(schema)].cells
    table = measure_table(exact, "table", bound=bound, grid=grid, epsilon=epsilon, noise=context.noise)
    names = product(*(query.labels(schema, column) for column in query.columns))
    estimates = tuple(
        Estimate(
            value=cell.estimate,
            interval=covering(cell),
            noise_sd=cell.part.sd,
            sampling=None if query.among.weight else binomial(cell.estimate, context.rows),
            cell=tuple(zip(query.columns, name, strict=True)),
        )
        for cell, name in zip(table, names, strict=True)
    )
    return Answer(
        estimates=estimates, parts=(table[0].part,), meaning=EXACT_WORDS + "; for each cell by itself"
    )
