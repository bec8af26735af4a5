"""The bounds of filled columns, found once for all asks, with a step for each: they are the slow part."""

from collections.abc import Callable

from reticent.engine.results import Tallies
from reticent.engine.wants import Ring
from reticent.release.evaluate import wants_of
from reticent.release.plan import Plan
from reticent.sensitivity.book import HubCache


def rings_of(plan: Plan) -> tuple[Ring, ...]:
    """The rings a plan needs, each once; a bound is a step for each of them."""
    return tuple(dict.fromkeys(want for want in wants_of(plan) if isinstance(want, Ring)))


def book_of(plan: Plan, tallies: Tallies, *, step: Callable[[str], None] = lambda _: None) -> HubCache:
    """What the rings say, their first rungs found. `step` hears which column, which is the plan's, and no number."""
    book = HubCache(tallies, plan.schema, plan.repair)
    for ring in rings_of(plan):
        book.hubs(ring).serves(0)
        step(f"bound of {ring.column}")
    return book
