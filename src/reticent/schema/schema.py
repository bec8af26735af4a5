"""A survey's public facts as one value: its columns, who is protected, and whether the sample size is public.

What does not fit together is refused when the value is made; nothing here has seen a row.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType

from reticent.errors import PlanError, SchemaError, nearest
from reticent.schema.bind import Bound, bind
from reticent.schema.columns import Column, Identifier, Levels, Number
from reticent.schema.predicate import columns_used
from reticent.schema.replicates import REPLICATE, Replicates

ROW = "row"


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvDialect:
    """How a CSV file is written: what separates its cells, how numbers are written, and its code page."""

    separator: str = ""
    decimal: str = "."
    thousands: str = ""
    encoding: str = "utf-8"

    @property
    def has_numbers(self) -> bool:
        """Whether numbers are written otherwise than everywhere else."""
        return self.decimal != "." or self.thousands != ""


PLAIN_CSV = CsvDialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A codebook: public facts only. `unit` is "row" or the identifier of the protected respondent.

    **Parameters**

    - `name`: the public name of the data set, by which a ledger knows it.
    - `columns`: the columns by name.
    - `unit`: who is protected: `"row"`, or the identifier of the respondent.
    - `at_most`: how many rows one respondent may own.
    - `sample_size`: the number of respondents, where it is public.
    - `title`: for readers.
    - `finished`: false for a draft that nobody has read through.
    - `csv`: how the rows are written, where they are a CSV file.
    - `replicates`: the replicate weights, where the file has some.
    - `unit_name`: what the protected unit is called, such as a household.
    """

    name: str
    columns: Mapping[str, Column]
    unit: str
    at_most: int = 1
    sample_size: int | None = None
    title: str = ""
    finished: bool = True
    csv: CsvDialect = PLAIN_CSV
    replicates: Replicates | None = None
    unit_name: str = "respondent"

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
    def questions(self) -> tuple[str, ...]:
        """The columns that respondents answered: no weights, and no groups that they were dealt into."""
        beside = ("weight", REPLICATE)
        return tuple(n for n, c in self.coded.items() if c.role not in beside and n not in self.computed)

    @property
    def dealt(self) -> tuple[str, ...]:
        """Groups into which respondents are dealt by a digest."""
        return tuple(n for n, c in self.columns.items() if isinstance(c, Levels) and c.dealt)

    @property
    def first(self) -> str | None:
        """The column that marks one record of each household; None where the unit has no name of its own."""
        return next((n for n, c in self.columns.items() if isinstance(c, Levels) and c.is_first), None)

    @property
    def computed(self) -> tuple[str, ...]:
        """Columns that are in no file."""
        return (*self.dealt, *([self.first] if self.first else []))

    @property
    def headers(self) -> Mapping[str, str]:
        """Under which header each column is given back: that of the file, but of a recode its own name."""
        found: dict[str, str] = {}
        theirs = {column.source for column in self.columns.values()}
        for name, column in self.columns.items():
            header = column.source
            if (isinstance(column, Levels) and column.members) or header in found.values():
                header = name
                while header in found.values() or (header in theirs and header != column.source):
                    header += "_"
            found[name] = header
        return found

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

    def scale(self, name: str, *, field: str) -> Number:
        """The numeric column `name`, or the scale of an ordinal one whose levels have positions."""
        column = self.column(name, field=field)
        if not isinstance(column, Levels):
            return self.number(name, field=field)
        found = column.scale
        if found is None:
            raise PlanError(
                f"{name} has levels without positions; declare them in the codebook, or ask for a table or a proportion",
                field=field,
            )
        return found

    def weight(self, name: str, *, field: str) -> Number:
        """The base weight `name`."""
        column = self.column(name, field=field)
        if not isinstance(column, Number) or column.role != "weight":
            raise PlanError(f"{name} is not declared with role = 'weight' in the codebook", field=field)
        return column

    def column(self, name: str, *, field: str) -> Levels | Number:
        """The column `name`, if it may be asked about."""
        if name in self.computed or (name in self.coded and self.coded[name].role == REPLICATE):
            raise PlanError(f"{name} is not an answer; it cannot be asked about", field=field)
        if name in self.coded:
            return self.coded[name]
        if name in self.columns:
            raise PlanError(f"{name} identifies respondents; it cannot be asked about", field=field)
        hint = nearest(name, self.coded) or "; declare it there, with its levels or bounds"
        raise PlanError(f"no column {name!r} in the codebook{hint}", field=field)

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
        for source, found in self._by_source().items():
            if len(found) > 1 and any(isinstance(column, Identifier) for column in found):
                raise SchemaError(
                    f"two columns have the source {source!r}, and one is an identifier, which is never asked about",
                    field="columns",
                )
            if len({isinstance(column, Number) for column in found}) > 1 and self.csv.has_numbers:
                raise SchemaError(
                    f"{source!r} is the source of a number and of levels, and [survey.csv] says how numbers are written; "
                    "keep one of the two",
                    field="columns",
                )

    def _by_source(self) -> dict[str, list[Column]]:
        """The columns that are read from each header: a recode may stand beside its original."""
        found: dict[str, list[Column]] = {}
        for name, column in self.columns.items():
            if name not in self.computed:
                found.setdefault(column.source, []).append(column)
        return found

    def _check_roles(self) -> None:
        for name, column in self.columns.items():
            if column.of not in ("", self.unit_name):
                raise SchemaError(
                    f"is {self.unit_name!r}, the survey's unit_name, or left out", field=f"columns.{name}.of"
                )
            if column.role == "weight" and (not isinstance(column, Number) or column.lower < 0):
                raise SchemaError("is a weight: a number with bounds from 0 up", field=f"columns.{name}")
            if column.role in ("stratum", "psu") and not isinstance(column, Levels):
                raise SchemaError(
                    f"is a {column.role}: categorical or ordinal, with every one that was drawn among its levels",
                    field=f"columns.{name}",
                )
            if isinstance(column, Levels) and (column.strata or column.drawn or column.dealt):
                self._check_psu(column)

    def _check_psu(self, column: Levels) -> None:
        """Strata of units, or units drawn in strata: of a primary sampling unit, and one of the two."""
        given = sum(map(bool, (column.strata, column.drawn, column.dealt)))
        if column.role != "psu" or given > 1 or (column.dealt and column.universe is not None):
            raise SchemaError(
                "gives strata, drawn or dealt, one of them, with role = 'psu'", field=f"columns.{column.name}"
            )
        declared = {
            level
            for each in self.columns.values()
            if isinstance(each, Levels) and each.role == "stratum"
            for level in each.levels
        }
        unknown = [each for each in column.strata if declared and each not in declared]
        if unknown:
            raise SchemaError(
                f"names {unknown[0]!r}, which is no level of the column with role = 'stratum'; name its levels",
                field=f"columns.{column.name}.strata",
            )
