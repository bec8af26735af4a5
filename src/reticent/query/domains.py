"""One query in every domain: `by = ["region", "sex"]` gives a table of answers, under one epsilon (THEORY 14.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, TypeAlias

from reticent.engine.wants import MOST_CELLS, Rows, Table, has_universe
from reticent.errors import PlanError
from reticent.query.base import EVERYONE, Query, RowQuery, Subpopulation
from reticent.query.sides import MISSING, NOT_ASKED, Sides
from reticent.query.written import WrittenQuery
from reticent.schema import Schema
from reticent.schema.bind import Absent, Span, may_be
from reticent.schema.predicate import Predicate

Domain: TypeAlias = tuple[tuple[str, str], ...]
"""By the names of its columns and levels or bins."""
OPTIONS = frozenset({"by", "bins", "show_missing"})
MOST_DOMAINS = 10_000
"""Each has intervals of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByDomain(Query):
    """A query in every cell of some columns. Those who did not say, or were not asked, are domains too."""

    has_one_estimate: ClassVar[bool] = False
    not_imputed: ClassVar[str] = (
        "statistics by domain of imputed answers; ask for it without `by`, or impute with caps that are public."
    )

    of: RowQuery
    sides: Sides
    show_missing: bool = True
    empty: frozenset[Domain] = field(default=frozenset(), repr=False)

    @property
    def weight(self) -> str | None:
        return self.of.weight

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        return self.of.predicates

    @property
    def has_cells(self) -> bool:
        return self.of.counts_respondents and self.of.weight is None

    @property
    def is_variance(self) -> bool:  # type: ignore[override]
        return self.of.is_variance

    @property
    def no_total(self) -> str:  # type: ignore[override]
        return self.of.no_total

    @property
    def values(self) -> frozenset[str]:
        return self.of.values

    def wants(self, schema: Schema) -> tuple[Table, ...]:
        """Each aggregate of the query in every domain."""
        keys = self.sides.keys(schema)
        return tuple(want.by(keys) for want in self.of.wants(schema))

    def rows(self, schema: Schema) -> Rows | None:
        return self.of.rows(schema)

    def decisive(self, schema: Schema, filled: frozenset[str]) -> frozenset[str]:
        """The columns of `by` decide in whose domain a record counts."""
        return self.of.decisive(schema, filled) | frozenset(self.sides.columns)

    def expected(self, rows: int | None) -> Fraction | None:
        return self.of.expected(rows)

    def unit(self, schema: Schema, units: Mapping[str, str]) -> str:
        return self.of.unit(schema, units)

    def words(self, schema: Schema) -> str:
        return f"{self.of.words(schema)}, by {' and '.join(self.sides.columns)}"

    def domains(self, schema: Schema) -> list[Domain]:
        """Every domain by the names of its sides, in order."""
        return self.sides.cells(schema)

    def is_shown(self, domain: Domain) -> bool:
        """Whether the estimate of a domain is published: it is measured in any case."""
        silent = {MISSING, NOT_ASKED} & {name for _, name in domain}
        return domain not in self.empty and (self.show_missing or not silent)


def read_domains(query: Query, written: WrittenQuery) -> Query:
    """The query by the domains that the plan lists."""
    at = f"{written.field.rpartition('.')[0]}.by"
    if not isinstance(query, RowQuery) or not query.takes_domains:
        raise PlanError(
            f"does not go with {written.key}; counts, totals, proportions, means, variances and quantiles have domains",
            field=at,
        )
    if written.size is not None:
        raise PlanError(
            "a public size does not go with domains: remove it, and each domain's own is measured", field=at
        )
    raw = written.raw
    like = f'{written.key} = "...", by = ["region", "sex"]'
    sides = replace(written, field=at).sides(raw["by"], like=like)
    shown = raw.get("show_missing", True)
    if not isinstance(shown, bool):
        raise PlanError("is true or false", field=at.replace(".by", ".show_missing"))
    found = ByDomain(of=query, sides=sides, show_missing=shown)
    _check_size(found, written.schema, at)
    return replace(found, empty=without_anybody(sides, query.among, written.schema, at))


def without_anybody(sides: Sides, among: Subpopulation, schema: Schema, at: str) -> frozenset[Domain]:
    """The domains that a condition leaves nobody in, by what is public alone, such as those under 20 of everybody from 20 on."""
    if among.where == EVERYONE:
        return frozenset()
    where, spans = among.bound(schema), product(*(_spans(sides, name, schema) for name in sides.columns))
    held = zip(sides.cells(schema), spans, strict=True)
    found = frozenset(
        domain for domain, each in held if not may_be(where, dict(zip(sides.columns, each, strict=True)))
    )
    if len(found) == sides.size(schema):
        raise PlanError(
            "has nobody in any domain: correct where, which leaves none of them anybody", field=at
        )
    return found


def _spans(sides: Sides, name: str, schema: Schema) -> tuple[Span, ...]:
    """What each domain holds of one column, in the order of its labels."""
    column, key = schema.coded[name], sides.key(schema, name)
    starts = key.starts or tuple(range(column.low, column.high + 1))
    ends = (*(each - 1 for each in starts[1:]), column.high)
    silent = (Absent.MISSING, Absent.STRUCTURAL) if has_universe(schema, name) else (Absent.MISSING,)
    return (*zip(starts, ends, strict=True), *silent)


def _check_size(query: ByDomain, schema: Schema, at: str) -> None:
    domains = query.sides.size(schema)
    if domains > MOST_DOMAINS:
        raise PlanError(
            f"has {domains} domains, more than {MOST_DOMAINS}; drop a column or use wider bins", field=at
        )
    cells = max(want.size(schema) for want in query.wants(schema))
    if cells > MOST_CELLS:
        raise PlanError(
            f"has {domains} domains of {cells // domains} candidates each, more than {MOST_CELLS} cells; use a larger "
            "step, or fewer domains",
            field=at,
        )


def options_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What the query in each domain is read from."""
    return {key: value for key, value in raw.items() if key not in OPTIONS}
