"""Synthetic rows that keep every rule, as many as planned, and their silent cells filled as often as wanted. After the noise.

Rules cost nothing and read no row, and so does multiple imputation of what was drawn. It is done by chained equations (van
Buuren and Groothuis-Oudshoorn 2011) with tables for equations: each column with silent cells is drawn anew, in turns, from
the columns that tell most about it, chosen one by one while each is worth its cells. Where silence depends on what is
answered elsewhere, this is right and leaving silent cells out is not.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.synth.base import Floats, Places
from reticent.synth.denial import kept_apart
from reticent.synth.domain import UNASKED, Codes, Domain, Rows, bins, decode, uniforms
from reticent.synth.rules import Flags, Link, Rules, asked, lawful_row, linked, status_of, unlawful

Cells = NDArray[np.integer]
Draw = Callable[[int], Sequence[Cells]]
"""So many rows of cells from a network: one table, or several completed copies of the same rows."""

POOLS = 4
PLACES = 8
LEAST = 1_000


def lawful_rows(draw: Draw, rules: Rules, rows: int, bits: Bits) -> tuple[Rows, ...]:
    """`rows` lawful rows of codes, for each copy.

    A row that breaks a rule is first decoded again, elsewhere inside its bins. Then the codebook settles who was asked, which
    keeps the columns it depends on as they were drawn. For what still breaks a rule other rows are drawn, from up to four
    pools, and the last ones get the ruled answers of a lawful row. Constraints between rows come last.
    """
    cells = draw(rows)
    linked_rules = rules.with_links(_learned(cells[0], rules, bits))
    made = _by_themselves(cells, draw, rules, linked_rules, bits)
    if not rules.denials:
        return made

    def more(n: int) -> tuple[Rows, ...]:
        return _by_themselves(draw(n), draw, rules, linked_rules, bits)

    return kept_apart(made, rules.denials, rules.domain, rules.columns, more, bits)


def _by_themselves(
    cells: Sequence[Cells], draw: Draw, planned: Rules, rules: Rules, bits: Bits
) -> tuple[Rows, ...]:
    """The cells as codes, every row lawful by itself. `planned` are the rules before links were learned."""
    rows = len(cells[0])
    made = _decoded(cells, rules, bits)
    bad = np.flatnonzero(_broken(made, rules))
    for _ in range(POOLS):
        if not len(bad):
            break
        pool = _decoded(draw(min(rows, max(LEAST, 2 * len(bad)))), rules, bits)
        good = np.flatnonzero(~_broken(pool, rules))[: len(bad)]
        for table, spare in zip(made, pool, strict=True):
            for name in table:
                table[name][bad[: len(good)]] = spare[name][good]
        bad = bad[len(good) :]
    for table in made:
        _mend(table, bad, planned, bits)
    return made


def _decoded(cells: Sequence[Cells], rules: Rules, bits: Bits) -> tuple[Rows, ...]:
    """Codes of every copy. Rows that break a rule are decoded again, a few times: a bin may lie on both sides of one."""
    made = _shared(cells, rules, bits)
    bad = np.flatnonzero(_broken(made, rules))
    for _ in range(PLACES if len(bad) else 0):
        again = _shared([each[bad] for each in cells], rules, bits)
        for table, part in zip(made, again, strict=True):
            for name, codes in part.items():
                table[name][bad] = codes
        bad = bad[_broken(again, rules)]
    for table in made:
        _ask_anew(table, rules, bits)
    return tuple(made)


def _shared(cells: Sequence[Cells], rules: Rules, bits: Bits) -> list[Rows]:
    """Codes of every copy. A cell that copies share has one code in all of them."""
    made = [decode(each, rules.domain, bits) for each in cells]
    for table, each in zip(made[1:], cells[1:], strict=True):
        for place, name in enumerate(rules.domain.columns):
            same = each[:, place] == cells[0][:, place]
            table[name] = np.where(same, made[0][name], table[name])
    return [linked(table, rules) for table in made]


def _ask_anew(table: Rows, rules: Rules, bits: Bits) -> None:
    """Whoever is outside a universe loses the answer; whoever is inside and has none gets that of a lawful row."""
    is_bad = unlawful(table, rules)
    bad, lawful = np.flatnonzero(is_bad), np.flatnonzero(~is_bad)
    part = {name: codes[bad] for name, codes in table.items()}
    for name, bound in rules.asked if len(bad) else ():
        is_asked = asked(bound, part, {each: status_of(codes) for each, codes in part.items()})
        lacking = np.flatnonzero(is_asked & (part[name] == UNASKED))
        part[name] = np.where(is_asked, part[name], UNASKED)
        spoke = lawful[table[name][lawful] > UNASKED]
        if len(spoke):
            part[name][lacking] = table[name][_lot(spoke, len(lacking), bits)]
    for name, codes in linked(part, rules).items():
        table[name][bad] = codes


def _broken(tables: Sequence[Rows], rules: Rules) -> Flags:
    """Rows that are unlawful in any copy."""
    return reduce(np.logical_or, [unlawful(table, rules) for table in tables])


def _learned(cells: Cells, rules: Rules, bits: Bits) -> list[Link]:
    """Links with their codes: those of the plan, or the answer drawn most often beside each answer of the source.

    It is learned from rows that keep the other rules, where there are any, or a link could settle on what can never be.
    """
    if all(link.codes is not None for link in rules.links):
        return list(rules.links)
    kept = cells[~unlawful(linked(decode(cells, rules.domain, bits), rules), rules)]
    return [
        link if link.codes is not None else _mode(kept if len(kept) else cells, link, rules.domain, bits)
        for link in rules.links
    ]


def _mode(cells: Cells, link: Link, domain: Domain, bits: Bits) -> Link:
    source, target = domain.axes[link.source], domain.axes[link.target]
    spoke = cells[cells[:, link.target] < target.answers]
    table = np.zeros((source.size, target.answers), dtype=np.int64)
    np.add.at(table, (spoke[:, link.source], spoke[:, link.target]), 1)
    table[table.sum(axis=1) == 0] = table.sum(axis=0)
    starts, widths = bins(target, domain.schema)
    chosen = table.argmax(axis=1)
    inside = (uniforms(source.size, bits) * widths[chosen]).astype(np.int64)
    codes = starts[chosen] + np.minimum(inside, widths[chosen] - 1)
    return Link(source=link.source, target=link.target, codes=codes)


def _mend(table: Rows, bad: Codes, rules: Rules, bits: Bits) -> None:
    """Give the rows `bad` all ruled answers of a lawful row, drawn or, where none was, found.

    A row that is found needs to keep the rules of the plan alone: then all rows get the same answers, which settle each other.
    """
    if not len(bad):
        return
    lawful = np.setdiff1d(np.arange(len(next(iter(table.values())))), bad)
    donors = _lot(lawful, len(bad), bits)
    found = {} if len(lawful) else lawful_row(rules)
    for name in rules.columns:
        table[name][bad] = table[name][donors] if len(lawful) else found[name]


def _lot(places: Codes, n: int, bits: Bits) -> Codes:
    """`n` of the places by lot, with replacement; none where there are none."""
    if not len(places):
        return np.zeros(0, dtype=np.int64)
    return places[np.minimum((uniforms(n, bits) * len(places)).astype(np.int64), len(places) - 1)]


MOST_GIVEN = 4
MOST_CELLS = 1 << 21
LOOKED_AT = 50_000
"""Rows looked at when choosing, taken at even distances."""


def associated(cells: Codes, domain: Domain, place: int) -> Places:
    """Columns to fill `place` from, the best first, silence in them taken as a value.

    The next one is that which raises the likelihood of the answers most, less one for each free number that it adds
    (Akaike 1974); none, where nothing is gained.
    """
    rows = cells[:: max(1, len(cells) // LOOKED_AT)]
    rows = rows[rows[:, place] < domain.axes[place].answers]
    chosen: Places = ()
    worth = _worth(rows, domain, place, chosen)
    while len(chosen) < MOST_GIVEN:
        others = [p for p in range(len(domain.axes)) if p != place and p not in chosen]
        tries = {
            p: _worth(rows, domain, place, (*chosen, p)) for p in others if _fits(domain, place, (*chosen, p))
        }
        best = max(tries, key=lambda p: tries[p], default=place)
        if best == place or tries[best] <= worth:
            break
        chosen, worth = (*chosen, best), tries[best]
    return chosen


def _fits(domain: Domain, place: int, given: Places) -> bool:
    return prod(domain.sizes((*given, place))) <= MOST_CELLS


def _worth(rows: Codes, domain: Domain, place: int, given: Places) -> float:
    """The log likelihood of the answers, less the free numbers of the lines that occur."""
    answers = domain.axes[place].answers
    line = numbered(rows, domain, given)
    each = np.bincount(line)
    joint = np.bincount(line * answers + rows[:, place])
    return _sum(joint) - _sum(each) - (answers - 1) * float((each > 0).sum())


def _sum(counts: Codes) -> float:
    some = counts[counts > 0].astype(np.float64)
    return float((some * np.log(some)).sum())


def numbered(rows: Codes, domain: Domain, given: Places) -> Codes:
    """The number of each row's line in a table over the cells of `given`."""
    line = np.zeros(len(rows), dtype=np.int64)
    for place in given:
        line = line * domain.axes[place].size + rows[:, place]
    return line


SWEEPS = 8
BLOCK = 1 << 16


def complete_rows(
    cells: NDArray[np.integer], domain: Domain, bits: Bits, copies: int = 1, *, sweeps: int = SWEEPS
) -> list[Codes]:
    """`copies` of the rows, each with every silent cell drawn once more. Other cells stay as they are.

    Whoever was silent was asked: a cell of the unasked is never drawn.
    """
    if copies < 1:
        raise PlanError("is a whole number from 1 up", field="copies")
    rows = np.array(cells, dtype=np.int64)
    silent = rows == np.array([axis.silence for axis in domain.axes])
    open_ = [place for place in range(len(domain.axes)) if silent[:, place].any()]
    given = {place: associated(rows, domain, place) for place in open_}
    return [_completed(rows, silent, given, domain, bits, sweeps) for _ in range(copies)]


def _completed(
    rows: Codes, silent: Flags, given: dict[int, Places], domain: Domain, bits: Bits, sweeps: int
) -> Codes:
    """First from the rows as they are, silence a value like others; then sweep by sweep from rows filled so far."""
    made = rows.copy()
    for place, near in given.items():
        made[silent[:, place], place] = _drawn(rows, rows, silent[:, place], place, near, domain, bits)
    for _ in range(sweeps if len(given) > 1 else 0):
        for place, near in given.items():
            made[silent[:, place], place] = _drawn(made, rows, silent[:, place], place, near, domain, bits)
    return made


def _drawn(
    made: Codes, rows: Codes, silent: Flags, place: int, near: Places, domain: Domain, bits: Bits
) -> Codes:
    """An answer for each silent row, from the answers of rows alike in `near`."""
    answers = domain.axes[place].answers
    spoke = rows[:, place] < answers
    tables = _tables(made[spoke], domain, place, near)
    line = numbered(made[silent], domain, near)
    u = uniforms(len(line), bits)
    return np.concatenate(
        [_inverse(tables[line[i : i + BLOCK]], u[i : i + BLOCK]) for i in range(0, max(1, len(line)), BLOCK)]
    )


def _inverse(chances: Floats, u: Floats) -> Codes:
    """Draws by inversion, one in each line."""
    sums = chances.cumsum(axis=1)
    return np.asarray((sums[:, :-1] <= (u * sums[:, -1])[:, None]).sum(axis=1))


def _tables(rows: Codes, domain: Domain, place: int, near: Places) -> Floats:
    """Conditional lines, each drawn towards that without the last given column by as many rows as there are answers.

    So a line with few rows leans on the coarser one, and one without any is the coarser one.
    """
    answers = domain.axes[place].answers
    lines = np.full((1, answers), 1 / answers)
    for depth in range(len(near) + 1):
        if depth:
            lines = np.repeat(lines, domain.axes[near[depth - 1]].size, axis=0)
        line = numbered(rows, domain, near[:depth])
        joint = np.bincount(line * answers + rows[:, place], minlength=lines.size).reshape(lines.shape)
        weight = float(answers) if depth else 1e-9
        lines = (joint + weight * lines) / (joint.sum(axis=1, keepdims=True) + weight)
    return lines
