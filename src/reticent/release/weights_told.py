"""What a release says of its weights: how the bins were found, which they are, and the totals they were fitted to."""

from dataclasses import replace
from typing import Any

from reticent.answer.attributes import alphas
from reticent.answer.raked import RakedTotals
from reticent.answer.weighing import Weighed
from reticent.answer.weighting import Choice, Weighting
from reticent.decimals import show
from reticent.release.asks import Statistic
from reticent.release.cost import claim_of_bins
from reticent.release.plan import Plan

HOW = {
    Choice.FIXED: "the plan's own bins",
    Choice.PRIVATE: "chosen privately among the plan's strategies",
    Choice.COUNTS: "put together, in the plan's order, until every noisy count was large enough",
    Choice.EACH: "chosen privately, one attribute after another, each crossed with those before",
}


def weighted_words(ask: Statistic, plan: Plan) -> str:
    """For the end of an ask's own words."""
    if not ask.weighted or plan.weight is None:
        return ""
    totals = "totals raked to known margins" if plan.weight.fitting else "known totals"
    return f", weighted to {totals} by {' and '.join(plan.weight.labels)}"


def weights_section(plan: Plan, weighed: Weighed | None) -> dict[str, Any]:
    """The weights of a release; nothing where it has none. All of it is public, or was paid for."""
    if plan.weight is None or weighed is None:
        return {}
    claim = claim_of_bins(weighed.parts, plan.change)
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
        "guarantee": {"words": str(claim), **claim.as_dict()} if claim else {"words": "public, no cost"},
        **({"noisy_counts": list(weighed.counts)} if weighed.counts else {}),
        **_each_told(plan, weighed),
        **({"raked": raked_told(plan.weight, weighed.fitted)} if weighed.fitted else {}),
    }
    return {"weights": told}


def _each_told(plan: Plan, weighed: Weighed) -> dict[str, Any]:
    """Which way was chosen for every attribute, at what price and alpha."""
    if plan.weight is None or plan.weight.crossing is None:
        return {}
    crossing = plan.weight.crossing
    if weighed.fitted is not None:
        crossing = replace(crossing, totals=weighed.fitted.totals)
    found = alphas(crossing, weighed.ways, steps=plan.neighbours.steps)
    told = [
        {
            "by": list(each.by),
            "way": each.ways[way].name,
            "epsilon": show(each.epsilon),
            "alpha": float(alpha),
        }
        for each, way, alpha in zip(crossing.attributes, weighed.ways, found, strict=True)
    ]
    return {"attributes": told}


def raked_told(weighting: Weighting, fitted: RakedTotals) -> dict[str, Any]:
    """How the totals came about: the noisy table, the fit, and whether it met its margins. All of it was paid for."""
    fitting = weighting.fitting
    return {
        "epsilon": show(fitting.epsilon) if fitting else None,
        "margins": [[weighting.labels[axis] for axis in each.axes] for each in fitting.margins]
        if fitting
        else [],
        "noisy_table": [float(show(each, digits=6)) for each in fitted.noisy],
        "joined": fitted.joined,
        "status": fitted.status,
        "cycles": fitted.cycles,
        "largest_error": fitted.error,
        "words": fit_words(fitted),
    }


def fit_words(fitted: RakedTotals) -> str:
    """The fit in one sentence."""
    if fitted.is_assumed:
        return "the noisy table could not be raked, so totals are what the margins alone give"
    if fitted.status == "met":
        return f"totals are raked from a noisy table; every margin is met after {fitted.cycles} rounds"
    return (
        f"totals are raked from a noisy table; after {fitted.cycles} rounds the worst margin is still off by "
        f"{fitted.error:.2g} of itself"
    )


def weight_words(weighting: Weighting) -> str:
    """One line for a preview."""
    base = f"base weights {weighting.column}" if weighting.column else "equal base weights"
    several = len(weighting.candidates.strategies)
    among = f", {several} strategies" if several > 1 else ""
    totals = "totals raked from a noisy table" if weighting.fitting else "totals"
    by = ", ".join(weighting.labels)
    return (
        f"weights {weighting.name}: {base}, fitted to {totals} by {by}{among}; bins: {HOW[weighting.choice]}"
    )
