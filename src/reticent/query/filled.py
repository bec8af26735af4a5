"""What donors' answers do in an ask: which filled columns it rests on, and whose gaps could matter to it.

Everything here is public: it follows from the query, the codebook and the repair. A filled column gives a
value, or decides who is a member, or both. Structural cells, universes and statuses are decided by a record's
own answers before anything is filled, so only comparisons with a filled column, and its values, count.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from reticent.engine.wants import Aggregate, Ring, Rows
from reticent.errors import PlanError
from reticent.prepare.repair import Bounding, Repair
from reticent.query.base import Query
from reticent.schema import Schema
from reticent.schema.bind import AllOf, Always, AnyOf, Bound, CodeIn, Is, Negation
from reticent.schema.predicate import statuses

ALWAYS, NEVER = Always(), Negation(Always())


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A filled column in an ask: whether it gives the value, whether it decides membership, and its ring.

    Where it tells domains apart, a recipient who leaves one enters another.
    """

    ring: Ring
    value: bool
    membership: bool
    domain: bool = False

    @property
    def column(self) -> str:
        return self.ring.column


def roles(query: Query, schema: Schema, repair: Repair) -> tuple[Role, ...]:
    """The filled columns an ask rests on, in the codebook's order; none if what it asks was never filled.

    The recipients of each ring are those who may be members, whatever is imputed to anybody.
    """
    counted = query.rows(schema) if repair.filled() else None
    if counted is None:
        return ()
    filled, values, apart = repair.filled(), query.values, frozenset(query.apart_by)
    decisive, rows = query.decisive(schema, filled) | apart, possible(counted, filled)
    return tuple(
        Role(
            ring=Ring(column=name, rows=rows, weight=query.weight),
            value=name in values,
            membership=name in decisive,
            domain=name in apart,
        )
        for name in schema.coded
        if name in filled and (name in values or name in decisive)
    )


def wants(query: Query, schema: Schema, repair: Repair) -> tuple[Aggregate, ...]:
    """All that an ask needs from the rows: its sums or its table, and the rings of what nearest donors filled."""
    rings = () if repair.capped else (role.ring for role in roles(query, schema, repair))
    return (*query.wants(schema), *rings)


def uses_smooth(query: Query, schema: Schema, repair: Repair) -> bool:
    """Whether some part of the ask has noise scaled by a smooth bound; an epsilon for its error bar is then used."""
    return not repair.capped and bool(roles(query, schema, repair))


def check(
    query: Query, schema: Schema, repair: Repair, *, field: str = "query", is_bounded: bool = False
) -> None:
    """Refuse what no theorem covers, from public facts alone; one that `is_bounded` has a theorem though it is not made of sums."""
    if query.weight in repair.filled():
        raise PlanError(f"{query.weight} is a weight; donors do not fill weights.", field=field)
    _check_missingness(query, repair, field)
    found = () if repair.capped else roles(query, schema, repair)
    if found and query.shape(schema) is None and not is_bounded:
        raise PlanError(
            f"{found[0].column} is filled by donors, and no theorem bounds {query.not_imputed} Or leave bound = 'hubs' "
            "out: capped donors have a bound.",
            field=field,
        )
    if len({repair.of(role.column).bounding is Bounding.PUBLISHED for role in found}) > 1:
        raise PlanError("rests on one column bounded as published and one that is not; use one.", field=field)


def _check_missingness(query: Query, repair: Repair, field: str) -> None:
    """Once a column is filled, nobody is silent there any more: a question about silence would be answered wrongly."""
    for status in (each for predicate in query.predicates for each in statuses(predicate)):
        if status.column in repair.filled() and status.kind != "structural":
            raise PlanError(
                f"donors fill {status.column}, so after the repair nobody's is missing and {status} says nothing; ask it "
                "in a release without this repair, or of a column that is not filled.",
                field=field,
            )


def possible(rows: Rows, filled: Iterable[str]) -> Rows:
    """The rows that may count whatever is imputed: a superset that speaks of no filled column.

    A filled column is never missing, so `known` and `answered` lose it; what it is compared with is left open.
    """
    names = frozenset(filled)
    return Rows(
        where=relaxed(rows.where, names),
        known=tuple(sorted(set(rows.known) - names)),
        answered=tuple(sorted(set(rows.answered) - names)),
    )


def relaxed(where: Bound, filled: frozenset[str]) -> Bound:
    """A condition that holds wherever `where` may become true by changing cells of filled columns.

    In negation normal form, by Kleene's rules, a condition is the more true the more true its leaves are; so
    every leaf about a filled column becomes true, and nothing that could be true is lost.
    """
    return _relaxed(where, filled, holds=True)


def _relaxed(where: Bound, filled: frozenset[str], *, holds: bool) -> Bound:
    match where:
        case CodeIn(column=name) | Is(column=name):
            leaf = where if holds else Negation(where)
            return ALWAYS if name in filled else leaf
        case AllOf(parts=parts) | AnyOf(parts=parts):
            each = tuple(_relaxed(part, filled, holds=holds) for part in parts)
            return _all(each) if isinstance(where, AllOf) is holds else _any(each)
        case Negation(part=part):
            return _relaxed(part, filled, holds=not holds)
        case Always():
            return ALWAYS if holds else NEVER


def _all(parts: tuple[Bound, ...]) -> Bound:
    left = tuple(part for part in parts if part != ALWAYS)
    return AllOf(left) if len(left) > 1 else left[0] if left else ALWAYS


def _any(parts: tuple[Bound, ...]) -> Bound:
    return ALWAYS if ALWAYS in parts else AnyOf(parts) if len(parts) > 1 else parts[0]
