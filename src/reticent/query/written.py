"""The words of a query in a plan, read piece by piece: a column, a condition, a centre, a step, the edges of bins."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm
from typing import Any

from reticent.errors import PlanError
from reticent.exact import read_decimal, show
from reticent.query.base import Subpopulation
from reticent.query.sides import Sides
from reticent.schema import Levels, Number, Schema
from reticent.schema.bind import bind
from reticent.schema.parse import parse
from reticent.schema.predicate import Predicate

MOST_CANDIDATES = 100_000
MOST_EDGES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQuery:
    """A query as it stands in a plan: its key, its options, whom it is about, and where it stands."""

    raw: Mapping[str, Any]
    key: str
    schema: Schema
    among: Subpopulation
    size: int | None
    field: str

    @property
    def value(self) -> Any:
        """What stands behind the key."""
        return self.raw[self.key]

    def number(self, name: Any) -> Number:
        """The numeric column of this name."""
        return self.schema.number(text_of(name, self.field), field=self.field)

    def scale(self, name: Any) -> Number:
        """The numeric column of this name, or the scale of an ordinal one."""
        return self.schema.scale(text_of(name, self.field), field=self.field)

    def predicate(self) -> Predicate:
        """The condition that stands behind the key."""
        return predicate_of(self.value, self.schema, self.field)

    def decimal(self, option: str) -> Fraction | None:
        """An option that is a plain decimal; None where it is not one."""
        return read_decimal(self.raw.get(option))

    def own_centre(self, column: Number) -> Fraction | None:
        """The option `centre`, where it is given."""
        if "centre" in self.raw and self.raw["centre"] is None:
            raise PlanError(_within(column), field=f"{self.field}.centre")
        return self.centre(column, self.raw.get("centre"))

    def centre(self, column: Number, text: Any) -> Fraction | None:
        """The point a column is centred on; None where the plan leaves it to us."""
        if text is None:
            return None
        centre = read_decimal(text)
        if centre is None or not column.lower <= centre <= column.upper:
            raise PlanError(_within(column), field=f"{self.field}.centre")
        if (2 * centre / column.grid).denominator != 1:
            raise PlanError(
                f"is a multiple of half the grid, {show(column.grid / 2)}", field=f"{self.field}.centre"
            )
        return centre

    def step(self, column: Number) -> Fraction:
        """How far apart the candidates for a quantile stand."""
        step = read_decimal(self.raw.get("step"))
        if step is None or step <= 0 or (step / column.grid).denominator != 1:
            raise PlanError(
                f'needs a step, a multiple of the grid {show(column.grid)}: candidates stand that far apart; step = "'
                f'{show(_like_step(column))}" gives about a hundred from {show(column.lower)} to {show(column.upper)}',
                field=self.field,
            )
        if (column.upper - column.lower) / step > MOST_CANDIDATES:
            raise PlanError(
                f"has more than {MOST_CANDIDATES} candidates; use a larger step", field=self.field
            )
        return step

    def band_step(self, column: Levels) -> Fraction | None:
        """Into steps of what length the bands of an ordinal column are cut; None where its levels are the candidates."""
        if "step" not in self.raw:
            return None
        step = read_decimal(self.raw["step"])
        if not column.bands:
            raise PlanError(
                f"{column.name} has levels: its quantiles are levels; leave step out, or declare bands in the codebook",
                field=self.field,
            )
        lengths = [high - low for low, high in pairwise(column.bands)]
        if step is None or step <= 0 or any((each / step).denominator != 1 for each in lengths):
            raise PlanError(
                f"needs a step that every band of {column.name} is a multiple of", field=self.field
            )
        pieces = [int(each / step) for each in lengths]
        if sum(pieces) > MOST_CANDIDATES or lcm(*pieces) > MOST_CANDIDATES:
            raise PlanError("cuts bands into too many steps; use a larger one", field=self.field)
        return step

    def edges(self, raw: Any, column: Number) -> tuple[Fraction, ...]:
        """Where the bins of a numeric column begin, and where the last one ends."""
        at = f"{self.field}.bins.{column.name}"
        if raw is None:
            raise PlanError(f"{column.name} is a number; say bins = {like_bins(column)}", field=at)
        if not isinstance(raw, list) or not 2 <= len(raw) <= MOST_EDGES:
            raise PlanError("lists at least two edges", field=at)
        edges = [read_decimal(edge) for edge in raw]
        if any(e is None or (e / column.grid).denominator != 1 for e in edges):
            raise PlanError(f"has edges on the grid {show(column.grid)}", field=at)
        exact = tuple(e for e in edges if e is not None)
        if any(b <= a for a, b in pairwise(exact)):
            raise PlanError("has increasing edges", field=at)
        if exact[0] != column.lower or exact[-1] < column.upper or exact[-2] > column.upper:
            inner = [show(each) for each in exact if column.lower < each < column.upper]
            raise PlanError(
                f"runs from {show(column.lower)} to at least {show(column.upper)}, the column's bounds: write "
                f"{column.name} = [{', '.join([show(column.lower), *inner, show(column.upper)])}]",
                field=at,
            )
        return exact

    def sides(self, columns: Any, *, like: str) -> Sides:
        """The sides of a table that the plan lists, numbers cut by the option `bins`; `like` shows how, in a refusal."""
        schema, at, bins = self.schema, self.field, self.raw.get("bins", {})
        if not isinstance(columns, list) or not columns or len(set(map(str, columns))) < len(columns):
            raise PlanError(f"lists columns, each once: {like}", field=at)
        found = {str(name): schema.column(str(name), field=at) for name in columns}
        if not isinstance(bins, Mapping):
            numbers = [each for each in found.values() if isinstance(each, Number)]
            like = like_bins(numbers[0]) if numbers else "{ age = [0, 18, 65, 99] }"
            raise PlanError(f"is a table: bins = {like}", field=f"{at}.bins")
        for name in bins:
            if not isinstance(found.get(name), Number):
                raise PlanError(f"{name} is not a number of this table", field=f"{at}.bins")
        edges = ((n, self.edges(bins.get(n), c)) for n, c in found.items() if isinstance(c, Number))
        return Sides(columns=tuple(found), bins=tuple(edges))


def like_bins(column: Number) -> str:
    """Bins of a column as a plan could say them: four, of about equal width, over its own range."""
    steps = int((column.upper - column.lower) / column.grid)
    places = sorted({steps * part // 4 for part in range(5)})
    edges = ", ".join(show(column.lower + column.grid * place) for place in places)
    return f"{{ {column.name} = [{edges}] }}"


def _like_step(column: Number) -> Fraction:
    """A step that makes about a hundred candidates of a column's range."""
    return column.grid * max(1, int((column.upper - column.lower) / column.grid) // 100)


def _within(column: Number) -> str:
    return f"is a decimal within the bounds of {column.name}, {show(column.lower)} to {show(column.upper)}"


def predicate_of(raw: Any, schema: Schema, field: str) -> Predicate:
    """A condition that speaks of columns of the codebook."""
    predicate = parse(text_of(raw, field), field=field)
    bind(predicate, schema.coded, field=field)
    return predicate


def text_of(raw: Any, field: str) -> str:
    """A text of a plan; refused where it is something else."""
    if not isinstance(raw, str):
        raise PlanError("is text in quotes", field=field)
    return raw
