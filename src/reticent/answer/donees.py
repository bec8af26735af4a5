"""What the recipients whom capped donors serve add to a bound, from public numbers alone."""

from fractions import Fraction
from math import ceil

from reticent.answer.context import Context, weight_of
from reticent.errors import PlanError
from reticent.prepare.repair import Repair
from reticent.query.base import Query, RowQuery
from reticent.query.filled import roles
from reticent.schema import Schema
from reticent.sensitivity.bounds import FINE, Global, Neighbours
from reticent.sensitivity.donors import Imputed

COARSE = 1 << (FINE - 1)
"""Bounds below it are counted in their own steps."""


def imputed(query: RowQuery, schema: Schema, repair: Repair) -> Imputed:
    """The filled columns of an ask, and the largest base weight in steps."""
    weight = weight_of(query.among, schema)
    return Imputed(roles=roles(query, schema, repair), repair=repair, heaviest=weight.high if weight else 1)


def rests_on_caps(query: Query, schema: Schema, repair: Repair) -> bool:
    """Whether capped donors fill a column that the query rests on."""
    return bool(repair.capped and roles(query, schema, repair))


def rings_of(query: Query, schema: Schema, repair: Repair) -> int:
    """In how many rings the columns that an ask rests on are filled; 1 where it rests on none."""
    return repair.rings if rests_on_caps(query, schema, repair) else 1


def completions(query: Query, context: Context) -> Context:
    """The sums that a query is answered from: over the completions of all rings where it rests on them."""
    return context.fractional if rests_on_caps(query, context.schema, context.repair) else context


def with_donees(own: Global, donees: Fraction, neighbours: Neighbours, repair: Repair) -> Global:
    """What one respondent moves: their own rows, and the donees of each record between neighbours.

    Over domains every moved record may lie in a domain of its own, and be rounded to coarser steps there: a bound that will
    be counted in such steps is enlarged by as much.

    Guarantee   no pair of neighbours is farther apart.
    Adjacency   `neighbours`.
    Theorem     THEORY 11.3 (a) to (c).
    Proof       proofs/answer/capped.md
    Assumes     `own` bounds what the respondent's own rows move, `donees` what one record moves through others' rows.
    Keeps back  nothing: every input is public.
    """
    whole = own.bound + neighbours.steps * donees
    if not donees or not neighbours.apart or repair.rings * whole < COARSE:
        return Global(bound=whole)
    moved = neighbours.steps * (1 + repair.rings * sum(group.serve for group in repair.capped))
    if 2 * moved > COARSE:
        raise PlanError(
            "donors serve too many for domains; lower the caps, or ask without by.", field="serve"
        )
    return Global(bound=Fraction(ceil(whole * COARSE / (COARSE - moved))))


def times(bound: Global, copies: int) -> Global:
    """The bound of a sum over so many completions, each of which moves by at most `bound`."""
    return Global(bound=copies * bound.bound)
