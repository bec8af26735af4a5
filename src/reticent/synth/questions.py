"""Questions to a fitted synthesizer: a share, a mean, a difference of means, linear and logistic coefficients.

They are written as the `query` of a statistic is, and read against the codebook alone. What a filter means is settled cell by
cell: a filter that cuts a bin in two has no answer from tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from reticent.engine.sql.clean import named
from reticent.errors import PlanError, nearest
from reticent.files import Section, fill
from reticent.schema import Levels, Schema
from reticent.schema.bind import AllOf, Always, AnyOf, Bound, Is, Negation, bind, truth_array
from reticent.schema.parse import parse
from reticent.synth.base import Floats
from reticent.synth.domain import Axis, Domain, bins
from reticent.synth.residuals import midpoints
from reticent.synth.rules import ranges_of

Flags = NDArray[np.bool_]
ALWAYS = Always()
LEVEL = 0.95
"""Of an interval, where none is said."""
MOST_PREDICTORS = 20
MOST_EDGES = 33
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class QuestionSection(Section):
    """The `query` of a `[[synth.answer]]`, as `Synthesizer.answer` and `Release.query` take it.

    **Keys**

    - `proportion`: a filter expression, whose share is asked.
    - `mean`: a number, or an ordinal column with positions, whose mean is asked.
    - `difference`: such a column, whose means in two groups are compared.
    - `between`: the two groups of a difference, as filter expressions of one column.
    - `regression`: what is explained by least squares: such a column, or a filter expression.
    - `logistic`: the same by logistic regression: a filter expression.
    - `on`: the predictors of a regression: columns that are numbers, or filter expressions of one column.
    - `where`: of whom a share or a mean is asked.
    """

    proportion: Text | None = None
    mean: Text | None = None
    difference: Text | None = None
    between: list[Text] | None = Field(default=None, min_length=2, max_length=2)
    regression: Text | None = None
    logistic: Text | None = None
    on: list[Text] | None = Field(default=None, min_length=1, max_length=MOST_PREDICTORS)
    where: Text | None = None


KINDS = ("proportion", "mean", "difference", "regression", "logistic")
NEEDS = {"difference": ("between",), "regression": ("on",), "logistic": ("on",)}
MAY = {"proportion": ("where",), "mean": ("where",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What a cell of one column counts for: its number, or 1 where a filter holds and 0 where it does not."""

    words: str
    column: str
    bound: Bound | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableQuestion:
    """A question, bound to the codebook. `of` is what is averaged or explained, `on` by what; `groups` are filters."""

    kind: str
    words: str
    schema: Schema = field(repr=False)
    of: Variable | None = None
    on: tuple[Variable, ...] = ()
    share: Bound = ALWAYS
    groups: tuple[Bound, ...] = (ALWAYS,)
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it speaks of."""
        found = [
            *([self.of.column] if self.of else ()),
            *(each.column for each in self.on),
            *named(self.share),
        ]
        return tuple(dict.fromkeys([*found, *(name for group in self.groups for name in named(group))]))

    @property
    def is_of_silence(self) -> bool:
        """Whether it asks who answered: rows of a model of complete respondents know nothing of that."""
        variables = [
            each.bound for each in (self.of, *self.on) if each is not None and each.bound is not None
        ]
        return any(map(asks_who_answered, (self.share, *self.groups, *variables)))


def read_question(raw: Mapping[str, Any], domain: Domain, *, at: str = "query") -> TableQuestion:
    """The question that `raw` writes down; refused where the codebook or the synthetic table does not have its words."""
    if not isinstance(raw, Mapping):
        raise PlanError("""is a table such as { proportion = "sex = 'f'" }""", field=at)
    if isinstance(raw.get("between"), list) and len(raw["between"]) != 2:
        raise PlanError("""needs two groups, such as between = ["sex = 'f'", "sex = 'm'"]""", field=at)
    listed = {**raw, "on": [raw["on"]]} if isinstance(raw.get("on"), str) else dict(raw)
    section = fill(QuestionSection, listed, error=PlanError, at=at)
    asked = [kind for kind in KINDS if getattr(section, kind) is not None]
    if len(asked) != 1:
        raise PlanError(f"asks for one of {', '.join(KINDS)}", field=at)
    kind = asked[0]
    for key in ("between", "on", "where"):
        is_given, needed = getattr(section, key) is not None, key in NEEDS.get(kind, ())
        if needed and not is_given:
            raise PlanError(f"{kind} needs {key!r}", field=at)
        if is_given and not (needed or key in MAY.get(kind, ())):
            raise PlanError(f"{key!r} does not go with {kind}; remove it", field=at)
    question = _question(kind, section, domain, at)
    for name in question.columns:
        if name not in domain.columns:
            hint = nearest(name, domain.columns)
            raise PlanError(f"{name[:80]!r} is not among the columns of this synthetic table{hint}", field=at)
    _check_filters(question, domain, at)
    return question


def _check_filters(question: TableQuestion, domain: Domain, at: str) -> None:
    """Refuse filters that cut a bin, from the codebook alone: before anything is charged."""
    variables = [
        each.bound for each in (question.of, *question.on) if each is not None and each.bound is not None
    ]
    for bound in (question.share, *question.groups, *variables):
        axes = [axis for axis in domain.axes if axis.column in set(named(bound))]
        if 1 <= len(axes) <= 2:
            holds_in(bound, axes, domain.schema, field=at)


def _question(kind: str, section: QuestionSection, domain: Domain, at: str) -> TableQuestion:
    schema, written = domain.schema, section.model_dump(exclude_none=True)
    if kind == "proportion":
        share, where = _bound(section.proportion, schema, at), _bound(section.where, schema, at)
        of = f" of those where {section.where}" if section.where else ""
        words = f"share where {section.proportion}{of}"
        return TableQuestion(
            kind=kind, words=words, schema=schema, share=share, groups=(where,), written=written
        )
    if kind == "mean":
        of_ = _number(section.mean, schema, at)
        words = f"mean of {section.mean}" + (f" where {section.where}" if section.where else "")
        return TableQuestion(
            kind=kind,
            words=words,
            schema=schema,
            of=of_,
            groups=(_bound(section.where, schema, at),),
            written=written,
        )
    if kind == "difference":
        one, other = section.between or ("", "")
        words = f"mean of {section.difference}, {one} less {other}"
        groups = (_bound(one, schema, at), _bound(other, schema, at))
        of_ = _number(section.difference, schema, at)
        return TableQuestion(kind=kind, words=words, schema=schema, of=of_, groups=groups, written=written)
    explained = section.regression if kind == "regression" else section.logistic
    on = tuple(_variable(text, schema, at) for text in section.on or ())
    of_ = _variable(explained or "", schema, at)
    if kind == "logistic" and (of_.bound is None or len(on) != 1):
        raise PlanError("logistic explains a filter expression by one predictor", field=at)
    words = f"{kind} of {explained} on {', '.join(each.words for each in on)}"
    return TableQuestion(kind=kind, words=words, schema=schema, of=of_, on=on, written=written)


def _bound(text: str | None, schema: Schema, at: str) -> Bound:
    return ALWAYS if text is None else bind(parse(text, field=at), schema.coded, field=at)


def _number(text: str | None, schema: Schema, at: str) -> Variable:
    name = text or ""
    if name not in schema.coded:
        raise PlanError(
            f"no column {name[:80]!r} in the codebook{nearest(name[:80], schema.coded)}", field=at
        )
    column = schema.coded[name]
    if isinstance(column, Levels) and not column.positions:
        raise PlanError(
            f"{name} has levels and no positions, so it has no mean; ask for a proportion", field=at
        )
    return Variable(words=name, column=name)


def _variable(text: str, schema: Schema, at: str) -> Variable:
    if text in schema.coded:
        return _number(text, schema, at)
    bound = _bound(text, schema, at)
    columns = list(named(bound))
    if len(columns) != 1:
        raise PlanError(f"{text[:80]!r} speaks of {len(columns)} columns; a variable is of one", field=at)
    return Variable(words=text, column=columns[0], bound=bound)


def values_of(variable: Variable, axis: Axis, schema: Schema) -> tuple[Floats, Flags]:
    """For each cell of the column what it counts for, and whether it counts: cells without an answer do not."""
    is_answer = np.arange(axis.size) < axis.answers
    if variable.bound is not None:
        holds, is_known = holds_in(variable.bound, (axis,), schema)
        return holds.astype(np.float64), is_known & is_answer
    column = schema.coded[axis.column]
    made = np.zeros(axis.size)
    if isinstance(column, Levels):
        made[: axis.answers] = [float(position) for position in column.positions]
    else:
        made[: axis.answers] = midpoints(axis, schema)
    return made, is_answer


def holds_in(
    bound: Bound, axes: Sequence[Axis], schema: Schema, *, field: str = "query"
) -> tuple[Flags, Flags]:
    """For every cell of a table over `axes`, whether the filter holds there, and whether that is known.

    Refused where a bin holds both answers of which the filter is true and answers of which it is false.
    """
    codes, cells = zip(*(_probes(bound, axis, schema) for axis in axes), strict=True)
    grids = np.meshgrid(*(np.arange(len(each)) for each in codes), indexing="ij")
    flat = [grid.ravel() for grid in grids]
    found = {axis.column: code[at] for axis, code, at in zip(axes, codes, flat, strict=True)}
    status = {
        axis.column: np.where(cell[at] < axis.answers, 0, np.where(cell[at] == axis.silence, 1, 2)).astype(
            np.int8
        )
        for axis, cell, at in zip(axes, cells, flat, strict=True)
    }
    spoken = set(named(bound))
    if not spoken <= {axis.column for axis in axes}:
        raise PlanError("speaks of a column that is not in the table", field="query")
    shape = tuple(axis.size for axis in axes)
    is_true, is_known = truth_array(bound, found, status) if spoken else (np.ones(len(flat[0]), bool),) * 2
    place = np.ravel_multi_index([cell[at] for cell, at in zip(cells, flat, strict=True)], shape)
    trues, knowns, probes = (
        np.bincount(place, weights=w, minlength=int(np.prod(shape))) for w in _ones(is_true, is_known)
    )
    if ((trues > 0) & (trues < probes)).any() or ((knowns > 0) & (knowns < probes)).any():
        raise PlanError(
            "cuts a bin of a number in two, and tables know bins as a whole; move its bound to the edge of a bin, or raise "
            f"the number of bins ({'; '.join(_bin_edges(axes, schema))})",
            field=field,
        )
    return (trues > 0).reshape(shape), (knowns > 0).reshape(shape)


def _bin_edges(axes: Sequence[Axis], schema: Schema) -> Iterator[str]:
    """Where bins begin, in words: from the codebook alone."""
    for axis in axes:
        if axis.key.starts:
            column = schema.coded[axis.column]
            edges = [column.text(start) for start in axis.key.starts]
            told = edges if len(edges) <= MOST_EDGES else [*edges[: MOST_EDGES - 1], "..."]
            yield f"those of {axis.column} begin at {', '.join(told)}"


def asks_who_answered(bound: Bound) -> bool:
    """Whether a filter asks if an answer was given, not which."""
    match bound:
        case Is(kind=kind):
            return kind != "structural"
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return any(asks_who_answered(part) for part in parts)
        case Negation(part=part):
            return asks_who_answered(part)
        case _:
            return False


def _ones(is_true: Flags, is_known: Flags) -> tuple[Floats, Floats, Floats]:
    return is_true.astype(np.float64), is_known.astype(np.float64), np.ones(is_true.shape)


def _probes(bound: Bound, axis: Axis, schema: Schema) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes at which a filter may change, with the cell of each; and one for silence, and for who was not asked."""
    column = schema.coded[axis.column]
    starts, _ = bins(axis, schema)
    codes = sorted({*starts.tolist(), *_edges(bound, axis.column, column.low, column.high)})
    cells = np.searchsorted(starts, codes, side="right") - 1
    spare = np.arange(axis.answers, axis.size)
    return np.append(codes, np.full(len(spare), column.low)), np.append(cells, spare)


def _edges(bound: Bound, name: str, low: int, high: int) -> Iterator[int]:
    for first, last in ranges_of(bound, name):
        yield from (edge for edge in (first, last + 1) if low <= edge <= high)
