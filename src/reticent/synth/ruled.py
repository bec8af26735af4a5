"""What a curator knows of every row, as a value, and which rows go against it. Public, and after the noise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from reticent.engine.cells import named
from reticent.predicate.bind import Bound
from reticent.predicate.truth import truth_array
from reticent.synth.decode import HOLE, UNASKED, Codes, Rows, encode
from reticent.synth.domain import Domain

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
