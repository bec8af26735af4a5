"""Read what a curator knows of every row: what cannot be, and which answer settles which. Universes come from the codebook."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter

import numpy as np

from reticent.decimals import read_decimal
from reticent.engine.cells import named
from reticent.errors import PlanError
from reticent.predicate.bind import Bound, bind
from reticent.predicate.parse import parse
from reticent.schema import Levels
from reticent.synth.decode import HOLE
from reticent.synth.domain import Axis, Domain
from reticent.synth.ruled import Link, Rules
from reticent.synth.rules_search import lawful_row
from reticent.words import nearest


def read_rules(
    domain: Domain,
    *,
    never: Sequence[str] = (),
    determines: Mapping[str, str] | None = None,
    known: Mapping[str, Mapping[str, str]] | None = None,
) -> Rules:
    """The rules written in a plan, bound to the codebook; refused where no row could keep them.

    `known` gives the map of a column in `determines`, word by word. Without it the map is learned from rows that are drawn.
    """
    rules = Rules(
        domain=domain,
        never=tuple(_bound(text, domain) for text in never),
        links=_links(domain, determines or {}, known or {}),
        asked=_universes(domain),
    )
    lawful_row(rules)
    return rules


def _bound(text: str, domain: Domain) -> Bound:
    bound = bind(parse(text, field="never"), domain.schema.coded, field="never")
    for name in named(bound):
        _place(name, domain, "never")
    return bound


def _place(name: str, domain: Domain, field: str) -> int:
    if name not in domain.columns:
        raise PlanError(
            f"{name[:80]!r} is not among the columns of this table{nearest(name, domain.columns)}",
            field=field,
        )
    return domain.columns.index(name)


def _universes(domain: Domain) -> tuple[tuple[str, Bound], ...]:
    """Universes that speak of columns of this table alone; others stay as they were drawn."""
    found = []
    for name in domain.schema.in_universe_order:
        universe = domain.schema.universe(name)
        if universe is not None and {name, *named(universe)} <= {*domain.columns}:
            found.append((name, universe))
    return tuple(found)


def _links(
    domain: Domain, determines: Mapping[str, str], known: Mapping[str, Mapping[str, str]]
) -> tuple[Link, ...]:
    """Links in an order in which each source is settled before it settles others."""
    if not {*known} <= {*determines}:
        raise PlanError("gives a map for a column that determines nothing", field="known")
    if len({*determines.values()}) < len(determines):
        raise PlanError("settles one column twice; keep one", field="determines")
    before = {target: {source} for source, target in determines.items()}
    try:
        order = [name for name in TopologicalSorter(before).static_order() if name in determines]
    except CycleError:
        raise PlanError("goes round in a circle; leave one out", field="determines") from None
    return tuple(_link(domain, name, determines[name], known.get(name)) for name in order)


def _link(domain: Domain, source: str, target: str, words: Mapping[str, str] | None) -> Link:
    one, other = (_place(name, domain, "determines") for name in (source, target))
    if words is None:
        return Link(source=one, target=other)
    axis, aim = domain.axes[one], domain.axes[other]
    if axis.key.starts:
        raise PlanError(f"{source} is put into bins, and a map needs each answer by itself", field="known")
    codes = np.full(axis.size, HOLE, dtype=np.int64)
    for word, meaning in words.items():
        cell = _code(word, axis, domain) - domain.schema.coded[source].low
        codes[cell] = _code(meaning, aim, domain)
    return Link(source=one, target=other, codes=codes)


def _code(word: str, axis: Axis, domain: Domain) -> int:
    """The code that a word of the plan stands for."""
    column = domain.schema.coded[axis.column]
    literal: Fraction | str | None = word if isinstance(column, Levels) else read_decimal(word)
    if literal is None:
        raise PlanError(f"{word[:80]!r} is no answer of {axis.column}", field="known")
    ((low, _),) = column.matching("=", (literal,), field="known")
    return low
