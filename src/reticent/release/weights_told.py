"""What a release says of its weights: how the bins were found, which they are, and the totals they were fitted to."""

from typing import Any

from reticent.answer.weighing import Choice, Weighed, Weighting
from reticent.decimals import show
from reticent.release.asks import Ask
from reticent.release.cost import claim_of_bins
from reticent.release.plan import Plan

HOW = {
    Choice.FIXED: "the plan's own bins",
    Choice.PRIVATE: "chosen privately among the plan's strategies",
    Choice.COUNTS: "put together, in the plan's order, until every noisy count was large enough",
}


def weighted_words(ask: Ask, plan: Plan) -> str:
    """For the end of an ask's own words."""
    if not ask.weighted or plan.weight is None:
        return ""
    return f", weighted to known totals by {' and '.join(plan.weight.labels)}"


def weights_told(plan: Plan, weighed: Weighed | None) -> dict[str, Any]:
    """The weights of a release; nothing where it has none. All of it is public, or was paid for."""
    if plan.weight is None or weighed is None:
        return {}
    claim = claim_of_bins(weighed.part, plan.change)
    strategy = weighed.strategy
    told = {
        "name": plan.weight.name,
        "base": plan.weight.column,
        "by": list(plan.weight.labels),
        "noise": plan.weight.law.value,
        "how": HOW[plan.weight.choice],
        "strategy": strategy.name,
        "bins": len(strategy.totals),
        "totals": [show(total) for total in strategy.totals],
        "bin_of_cell": list(strategy.bins),
        "claim": {"words": str(claim), **claim.as_dict()} if claim else {"words": "public, no cost"},
        **({"noisy_counts": list(weighed.counts)} if weighed.counts else {}),
    }
    return {"weights": told}


def weight_words(weighting: Weighting) -> str:
    """One line for a preview."""
    base = f"base weights {weighting.column}" if weighting.column else "equal base weights"
    several = len(weighting.candidates.strategies)
    among = f", {several} strategies" if several > 1 else ""
    return f"weights {weighting.name}: {base}, fitted to totals by {', '.join(weighting.labels)}{among}; bins: {HOW[weighting.choice]}"
