"""Domains under one epsilon: what the mechanism of one domain must hide so that all of them together hide a respondent.

Every record lies in one domain, but a respondent's records may lie in several, and replaced answers may leave one
domain for another. So each domain is answered as if every record that can change were its own.
"""

from fractions import Fraction

from reticent.errors import PlanError
from reticent.sensitivity.bounds import FINE, Global, Neighbours


def within_domains(neighbours: Neighbours) -> Neighbours:
    """The change that the mechanism of each domain is calibrated to.

    Guarantee   mechanisms that lose at most epsilon/steps for each record of their own domain that comes or goes lose at
                most epsilon together; `steps` is the number of records returned here.
    Adjacency   `neighbours`.
    Theorem     THEORY 14.1.
    Proof       proofs/sensitivity/domains.md
    Assumes     a public list of domains; the domain of a record depends on that record alone; independent noise.
    Keeps back  nothing: every input is public.
    """
    return Neighbours(records=neighbours.steps, apart=True)


def additive_bound(bound: Global, *, records: int, fine: int = FINE) -> Global:
    """The least bound, not below `bound`, of which a share of 1/`records` is a whole number of coarser steps.

    A bound of more than 2^`fine` steps is counted in coarser steps, and a record's own move is rounded up to them. Two
    records in two domains are rounded up twice, which the rounded bound of both together does not cover.

    Guarantee   r records of a domain move its rounded sum by at most r/`records` of the rounded bound.
    Adjacency   one record of a domain comes or goes, r times.
    Theorem     THEORY 14.1; |floor(x + 1/2) - floor(y + 1/2)| <= ceil(|x - y|).
    Proof       proofs/sensitivity/domains.md
    Assumes     one record moves the sum by at most bound.bound / records.
    Keeps back  nothing: every input is public.
    """
    if records >= 1 << (fine - 1):
        raise PlanError("a respondent owns too many records for domains; declare fewer.", field="at_most")
    each, shift = -(-bound.bound // records), 0
    while True:
        whole = records * (-(-each // (1 << shift)) << shift)
        coarser = max(0, whole.bit_length() - fine)
        if coarser <= shift:
            return Global(bound=Fraction(whole))
        shift = coarser
