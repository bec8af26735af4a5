"""One query in every domain: `by = ["region", "sex"]` gives a table of answers, under one epsilon (THEORY 14.1)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from reticent.engine.wants import MOST_CELLS, Rows, Table
from reticent.errors import PlanError
from reticent.query.base import Query, RowQuery
from reticent.query.sides import MISSING, NOT_ASKED, Sides
from reticent.query.written import WrittenQuery
from reticent.schema import Schema
from reticent.schema.predicate import Predicate

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

    def domains(self, schema: Schema) -> list[tuple[tuple[str, str], ...]]:
        """Every domain by the names of its sides, in order."""
        return self.sides.cells(schema)

    def is_shown(self, domain: tuple[tuple[str, str], ...]) -> bool:
        """Whether the estimate of a domain is published: it is measured in any case."""
        return self.show_missing or not {MISSING, NOT_ASKED} & {name for _, name in domain}


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
    return found


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
