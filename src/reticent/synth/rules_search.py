"""Is there a lawful row at all? Found by trial, column by column, over the few codes that rules tell apart. Public."""

from collections.abc import Iterator
from itertools import count

from reticent.engine.cells import named
from reticent.errors import PlanError
from reticent.predicate.bind import AllOf, AnyOf, Bound, CodeIn, Is, Negation
from reticent.predicate.truth import STRUCTURAL, Cell, truth
from reticent.synth.decode import HOLE, UNASKED, bins
from reticent.synth.ruled import Rules

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
    match bound:
        case CodeIn(column=column, ranges=ranges) if column == name:
            yield from ranges
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for part in parts:
                yield from ranges_of(part, name)
        case Negation(part=part):
            yield from ranges_of(part, name)
