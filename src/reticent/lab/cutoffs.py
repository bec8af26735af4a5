"""Collapsing by exact counts and ratios, as it is commonly done. Not private: for comparison, in the lab only."""

from reticent.prepare.strata import ACS, BaseWeights, Cutoffs, Members, Order, Strategy
from reticent.sensitivity.poststrata import Tally


def collapse_by_cutoffs(
    start: Strategy, order: Order, tally: Tally, *, base: BaseWeights, cutoffs: Cutoffs = ACS
) -> Strategy:
    """Put bins together until each has enough records and a weighting factor N/B within bounds.

    Which bins come out is a function of exact counts: one respondent can decide it.
    """
    bins = tally.merged(start)
    count, total = bins.count.tolist(), bins.total.tolist()

    def is_short(members: Members) -> bool:
        known = sum(start.totals[each] for each in members)
        estimated = sum(total[each] for each in members) * base.unit
        few = sum(count[each] for each in members) < cutoffs.records
        return bool(few or known > cutoffs.factor * estimated or known * cutoffs.factor < estimated)

    return order.collapse(start, is_short)
