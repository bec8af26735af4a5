"""Structural zeroes and rules: what a curator knows of every row, read, held as a value, and checked. Public, all of it.

Rules say what cannot be, and which answer settles which; universes come from the codebook. Whether there is a lawful row at
all is found by trial, column by column, over the few codes that rules tell apart. Pairs of cells that the codebook rules
out, such as an answer of somebody who is not asked, a model may know for free.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from reticent.engine.sql.clean import named
from reticent.errors import PlanError, nearest
from reticent.exact import read_decimal
from reticent.schema import Levels
from reticent.schema.bind import (
    STRUCTURAL,
    AllOf,
    AnyOf,
    Bound,
    Cell,
    CodeIn,
    Is,
    Negation,
    bind,
    truth,
    truth_array,
)
from reticent.schema.parse import parse
from reticent.synth.base import Places
from reticent.synth.denial import Denial, read_denials
from reticent.synth.domain import HOLE, UNASKED, Axis, Codes, Domain, Rows, bins, encode

Flags = NDArray[np.bool_]
Status = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One column settles another: `codes[cell]` is the target's code for a cell of the source, or HOLE for any.

    Without `codes` the link is still to be learned, from rows that are drawn.
    """

    source: int
    target: int
    codes: Codes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """`asked` are the universes of the codebook that the domain can judge, in the order in which they build on each other."""

    domain: Domain
    never: tuple[Bound, ...] = ()
    links: tuple[Link, ...] = ()
    asked: tuple[tuple[str, Bound], ...] = ()
    denials: tuple[Denial, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a rule speaks of."""
        axes = self.domain.axes
        linked = [axes[place].column for link in self.links for place in (link.source, link.target)]
        judged = [name for bound in self.never for name in named(bound)]
        universes = [each for name, bound in self.asked for each in (name, *named(bound))]
        return tuple(dict.fromkeys([*universes, *judged, *linked]))

    def with_links(self, links: Sequence[Link]) -> "Rules":
        return replace(self, links=tuple(links))


def unlawful(rows: Rows, rules: Rules) -> Flags:
    """Rows that break a universe, or are what can never be, or go against a link."""
    status = {name: status_of(codes) for name, codes in rows.items()}
    broken = np.zeros(len(next(iter(rows.values()))), dtype=np.bool_)
    for name, bound in rules.asked:
        broken |= asked(bound, rows, status) == (status[name] == 2)
    for bound in rules.never:
        broken |= truth_array(bound, rows, status)[0]
    for link in rules.links:
        settled, codes = _settled(rows, rules, link)
        broken |= settled & (codes != rows[rules.domain.axes[link.target].column])
    return broken


def status_of(codes: Codes) -> Status:
    """0 answered, 1 missing, 2 not asked."""
    return np.where(codes == HOLE, 1, np.where(codes == UNASKED, 2, 0)).astype(np.int8)


def asked(bound: Bound, rows: Rows, status: Mapping[str, Status]) -> Flags:
    """Who is asked: where the universe holds and, where that is open, who was asked all that it speaks of."""
    holds, is_known = truth_array(bound, rows, status)
    unasked = np.zeros(len(holds), dtype=np.bool_)
    for name in named(bound):
        unasked |= status[name] == 2
    return np.where(is_known, holds, ~unasked)


def linked(rows: Rows, rules: Rules) -> Rows:
    """The rows with every settled answer in its place; who was not asked stays so."""
    made = dict(rows)
    for link in rules.links:
        settled, codes = _settled(made, rules, link)
        name = rules.domain.axes[link.target].column
        made[name] = np.where(settled, codes, made[name])
    return made


def _settled(rows: Rows, rules: Rules, link: Link) -> tuple[Flags, Codes]:
    """Where the source is answered, speaks of the target, and the target was asked; and what the answer must be."""
    source, target = (rules.domain.axes[place] for place in (link.source, link.target))
    if link.codes is None:
        return np.zeros(len(rows[source.column]), dtype=np.bool_), rows[target.column]
    codes = link.codes[encode(rows[source.column], source, rules.domain.schema)]
    return (rows[source.column] > UNASKED) & (codes != HOLE) & (rows[target.column] != UNASKED), codes


MOST_TRIES = 200_000
Row = dict[str, Cell]


def lawful_row(rules: Rules) -> dict[str, int]:
    """Codes of the ruled columns of one lawful row without a hole, or a refusal where there is none."""
    order = [name for name in rules.domain.schema.in_universe_order if name in rules.columns]
    tries = count()
    for row in _rows(rules, order, {}, tries):
        return {name: cell if isinstance(cell, int) else UNASKED for name, cell in row.items()}
    if next(tries) > MOST_TRIES:
        raise PlanError(
            f"no lawful row was found among {MOST_TRIES:,}; drop rules, or write them plainer", field="never"
        )
    raise PlanError("the rules leave no row that is lawful; drop or mend one", field="never")


def _rows(rules: Rules, order: list[str], row: Row, tries: "count[int]") -> Iterator[Row]:
    """All lawful rows that begin so. Columns come after those their universes speak of."""
    if len(row) == len(order):
        yield dict(row)
        return
    name = order[len(row)]
    for cell in _cells(rules, name, row):
        if next(tries) > MOST_TRIES:
            return
        row[name] = cell
        if _is_open(rules, row):
            yield from _rows(rules, order, row, tries)
        del row[name]


def _cells(rules: Rules, name: str, row: Row) -> list[Cell]:
    """What may stand here: the unasked have no answer, others one of each kind that rules tell apart."""
    universe = dict(rules.asked).get(name)
    if universe is not None and not _asked(universe, row):
        return [STRUCTURAL]
    column = rules.domain.schema.coded[name]
    edges = {column.low, *_settling(rules, name)}
    for bound in (*rules.never, *(bound for _, bound in rules.asked)):
        edges |= {edge for low, high in ranges_of(bound, name) for edge in (low, high + 1)}
    return [edge for edge in sorted(edges) if column.low <= edge <= column.high]


def _asked(universe: Bound, row: Row) -> bool:
    holds = truth(universe, row)
    if holds is not None:
        return holds
    return not any(row[name] is STRUCTURAL for name in named(universe))


def _settling(rules: Rules, name: str) -> set[int]:
    """Every code of a source, and every code of a target."""
    found: set[int] = set()
    for link in rules.links:
        source, target = (rules.domain.axes[place] for place in (link.source, link.target))
        if link.codes is not None and name == target.column:
            found |= {code for code in link.codes.tolist() if code != HOLE}
        if link.codes is not None and name == source.column:
            found |= set(bins(source, rules.domain.schema)[0].tolist())
    return found


def _is_open(rules: Rules, row: Row) -> bool:
    """Whether nothing is broken so far."""
    if any(so_far(bound, row) for bound in rules.never):
        return False
    return all(_follows(rules, place, row) for place in range(len(rules.links)))


def _follows(rules: Rules, place: int, row: Row) -> bool:
    link = rules.links[place]
    source, target = (rules.domain.axes[at].column for at in (link.source, link.target))
    here, there = row.get(source), row.get(target)
    if link.codes is None or not isinstance(here, int) or not isinstance(there, int):
        return True
    starts, _ = bins(rules.domain.axes[link.source], rules.domain.schema)
    settled = int(link.codes[int(starts.searchsorted(here, side="right")) - 1])
    return settled in (HOLE, there)


def so_far(bound: Bound, row: Row) -> bool | None:
    """Kleene's truth of a row that is not finished: what is not there yet is unknown."""
    match bound:
        case CodeIn(column=name) | Is(column=name):
            return truth(bound, row) if name in row else None
        case AllOf(parts=parts):
            found = [so_far(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case AnyOf(parts=parts):
            found = [so_far(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case Negation(part=part):
            inner = so_far(part, row)
            return None if inner is None else not inner
        case _:
            return True


def ranges_of(bound: Bound, name: str) -> Iterator[tuple[int, int]]:
    """The ranges of codes that a condition names for one column."""
    match bound:
        case CodeIn(column=column, ranges=ranges) if column == name:
            yield from ranges
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from ranges_of(part, name)
        case Negation(part=part):
            yield from ranges_of(part, name)


def read_rules(
    domain: Domain,
    *,
    never: Sequence[str] = (),
    determines: Mapping[str, str] | None = None,
    known: Mapping[str, Mapping[str, str]] | None = None,
    denial: Sequence[tuple[str, str]] = (),
    rows: int | None = None,
) -> Rules:
    """The rules written in a plan, bound to the codebook; refused where no row could keep them.

    `known` gives the map of a column in `determines`, word by word. Without it the map is learned from rows that are drawn.
    `denial` are constraints between two rows, each with its weight, and `rows` how many are to be drawn.
    """
    rules = Rules(
        domain=domain,
        never=tuple(_bound(text, domain) for text in never),
        links=_links(domain, determines or {}, known or {}),
        asked=_universes(domain),
        denials=read_denials(denial, domain, rows) if denial else (),
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


def lawful_pairs(domain: Domain) -> dict[Places, Flags]:
    """For each column and each that its universe speaks of, which pairs of cells can be: sides in the domain's order.

    A universe that needs more than the one answer leaves both open, and so does a silent one.
    """
    places = {name: place for place, name in enumerate(domain.columns)}
    found: dict[Places, Flags] = {}
    for name, universe in read_rules(domain).asked:
        for gate in named(universe):
            pair = places[gate], places[name]
            can_be = _pairs(universe, domain.axes[pair[0]], domain.axes[pair[1]], domain)
            found[min(pair), max(pair)] = can_be if pair[0] < pair[1] else can_be.T
    return {pair: can_be for pair, can_be in found.items() if not can_be.all()}


def _pairs(universe: Bound, gate: Axis, column: Axis, domain: Domain) -> Flags:
    can_ask, can_skip = _open(universe, gate, domain)
    made = np.ones((gate.size, column.size), dtype=np.bool_)
    made[: gate.answers] = can_ask[:, None]
    if column.unasked is not None:
        made[: gate.answers, column.unasked] = can_skip
    return made


def _open(universe: Bound, gate: Axis, domain: Domain) -> tuple[Flags, Flags]:
    """For each answer's cell of the gate, whether some code in it can be asked, and whether some can be left out."""
    starts, _ = bins(gate, domain.schema)
    codes = sorted({*starts.tolist(), *_edges(universe, gate, domain)})
    holds = [so_far(universe, {gate.column: code}) for code in codes]
    cells = np.searchsorted(starts, codes, side="right") - 1
    asks, skips = np.zeros((2, gate.answers), dtype=np.bool_)
    np.logical_or.at(asks, cells, [known is not False for known in holds])
    np.logical_or.at(skips, cells, [known is not True for known in holds])
    return asks, skips


def _edges(universe: Bound, gate: Axis, domain: Domain) -> Iterator[int]:
    """Codes of the gate at which the universe may change."""
    column = domain.schema.coded[gate.column]
    for edge in chain.from_iterable((low, high + 1) for low, high in ranges_of(universe, gate.column)):
        if column.low <= edge <= column.high:
            yield edge
