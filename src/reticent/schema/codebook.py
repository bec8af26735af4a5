"""A codebook: the columns, who is protected, and whether the sample size is public."""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

from reticent.errors import PlanError, SchemaError
from reticent.predicate.bind import Bound, bind
from reticent.predicate.tree import columns_used
from reticent.schema.columns import Column, Identifier, Levels, Number
from reticent.words import nearest

ROW = "row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Public facts only. `unit` is "row" or the identifier of the protected respondent."""

    name: str
    columns: Mapping[str, Column]
    unit: str
    at_most: int = 1
    sample_size: int | None = None
    title: str = ""
    finished: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        self._check_unit()
        self._check_sources()
        self._check_roles()
        for column in self.columns.values():
            if column.universe is not None:
                bind(column.universe, self.coded, field=f"columns.{column.name}.universe")
        _ = self.in_universe_order

    @property
    def coded(self) -> Mapping[str, Levels | Number]:
        """The columns that can be asked about: all but identifiers."""
        return {n: c for n, c in self.columns.items() if isinstance(c, Levels | Number)}

    @property
    def in_universe_order(self) -> tuple[str, ...]:
        """Columns sorted so that each comes after those its universe speaks of."""
        needs = {
            name: columns_used(column.universe) if column.universe is not None else frozenset()
            for name, column in self.coded.items()
        }
        try:
            return tuple(TopologicalSorter(needs).static_order())
        except CycleError:
            raise SchemaError("universes refer to each other in a circle", field="columns") from None

    def universe(self, name: str) -> Bound | None:
        """The bound universe of a column, or None where everybody is asked."""
        predicate = self.columns[name].universe
        return None if predicate is None else bind(predicate, self.coded, field=f"columns.{name}.universe")

    def number(self, name: str, *, field: str) -> Number:
        """The numeric column `name`, which is not the base weight; `field` is where it was asked for."""
        column = self.column(name, field=field)
        if not isinstance(column, Number):
            raise PlanError(f"{name} is not a number; ask for a table or a proportion instead", field=field)
        if column.role == "weight":
            raise PlanError(f"{name} is the base weight; write weight = {name!r} instead", field=field)
        return column

    def weight(self, name: str, *, field: str) -> Number:
        """The base weight `name`."""
        column = self.column(name, field=field)
        if not isinstance(column, Number) or column.role != "weight":
            raise PlanError(f"{name} is not declared with role = 'weight' in the codebook", field=field)
        return column

    def column(self, name: str, *, field: str) -> Levels | Number:
        """The column `name`, if it may be asked about."""
        if name in self.coded:
            return self.coded[name]
        if name in self.columns:
            raise PlanError(f"{name} identifies respondents; it cannot be asked about", field=field)
        raise PlanError(f"no column {name!r} in the codebook{nearest(name, self.coded)}", field=field)

    def _check_unit(self) -> None:
        if self.unit != ROW and not isinstance(self.columns.get(self.unit), Identifier):
            raise SchemaError(
                "is either 'row' (one record, one respondent) or the name of an identifier column",
                field="survey.unit",
            )
        if self.unit == ROW and self.at_most != 1:
            raise SchemaError("goes with an identifier as unit", field="survey.at_most")
        if not 1 <= self.at_most <= 10_000:
            raise SchemaError("is a whole number from 1 to 10000", field="survey.at_most")
        if self.sample_size is not None and not 1 <= self.sample_size <= 2**40:
            raise SchemaError("is a whole number from 1 to 2^40", field="survey.sample_size")
        identifiers = [name for name, column in self.columns.items() if isinstance(column, Identifier)]
        if self.unit == ROW and identifiers:
            raise SchemaError(
                f"is 'row', but {identifiers[0]} identifies respondents who may own several records; "
                f"write unit = {identifiers[0]!r} and at_most, or drop the column",
                field="survey.unit",
            )

    def _check_sources(self) -> None:
        if not self.coded:
            raise SchemaError("has no column to ask about", field="columns")
        sources = [column.source for column in self.columns.values()]
        twice = next((s for s in sources if sources.count(s) > 1), None)
        if twice is not None:
            raise SchemaError(f"two columns have the source {twice!r}", field="columns")

    def _check_roles(self) -> None:
        for name, column in self.columns.items():
            if column.role == "weight" and (not isinstance(column, Number) or column.lower < 0):
                raise SchemaError("is a weight: a number with bounds from 0 up", field=f"columns.{name}")
            if column.role == "stratum" and not isinstance(column, Levels):
                raise SchemaError("is a stratum: categorical or ordinal", field=f"columns.{name}")
