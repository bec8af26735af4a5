"""Functionals of one measured table: a share, a mean, a difference of means, and the coefficient of one predictor.

Each is a smooth function of the table's shares. Told are its value, its gradient in the cells, and the variances that
come on top of what the gradient says: of residuals within bins, and of the values of cells that were put together.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from reticent.engine.sql.clean import named
from reticent.errors import PlanError
from reticent.schema.bind import Bound
from reticent.synth.base import Floats, MissingMethod
from reticent.synth.direct import Estimated, NoInterval, estimated
from reticent.synth.domain import Axis
from reticent.synth.lists import Lists, NoisyList, sizes
from reticent.synth.questions import TableQuestion, Variable, asks_who_answered, holds_in, values_of
from reticent.synth.residuals import fine_axes, grid_of, half_widths, residual_places

Flags = NDArray[np.bool_]
NEWTON = 50
CUT = 0.4
"""The mean of what is above nothing of noise alone, in deviations: 1/sqrt(2 pi)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFunctional:
    """A value, its gradient in the cells of a table, and the variances that come on top of that gradient's.

    `residual_gradient` is what a residual adds to the gradient as far as noise goes: its sum is divided by a noisy mass. In
    the sample the same respondents are in both, and their part is in `sampling`. `is_of_midpoints` says that numbers count
    as the midpoints of their bins.
    """

    value: float
    gradient: Floats = field(repr=False)
    noise: float = 0.0
    sampling: float = 0.0
    residual_gradient: float | Floats = field(default=0.0, repr=False)
    is_of_midpoints: bool = False


def variable_of(question: TableQuestion) -> Variable:
    """What a question averages or explains."""
    if question.of is None:
        raise PlanError("names nothing to average or explain", field="query")
    return question.of


def _axes(table: Estimated) -> list[Axis]:
    return [table.lists.domain.axes[place] for place in table.places]


def _grouped(table: Estimated, flags: Flags) -> Flags:
    """Flags of the domain's cells as flags of the table's groups; refused where a group has both."""
    into = table.lists.into(table.lists.of(table.places)[0])
    shape = sizes(into)
    kept = np.ix_(*(np.flatnonzero(side >= 0) for side in into))
    group = np.ravel_multi_index(np.ix_(*(side[side >= 0] for side in into)), shape).ravel()
    holds = np.bincount(group, weights=flags[kept].ravel().astype(float), minlength=int(np.prod(shape)))
    many = np.bincount(group, minlength=int(np.prod(shape)))
    if ((holds > 0) & (holds < many)).any():
        raise NoInterval("it asks about a cell that was put together with others, being rare")
    return np.asarray(holds > 0)


def _holds(table: Estimated, bound: Bound) -> Floats:
    """1 where a filter holds, 0 where it does not or is not known."""
    if table.lists.missing is not MissingMethod.VALUES and asks_who_answered(bound):
        raise NoInterval(
            "it asks who answered, and the table is of those who did; missing = 'category' keeps missing answers as a value"
        )
    holds, _ = holds_in(bound, _axes(table), table.lists.domain.schema)
    found = _grouped(table, holds).astype(np.float64)
    if not found.any() and named(bound):
        raise NoInterval("no cell of the table meets its filter")
    return found


def _proportion(question: TableQuestion, table: Estimated) -> TableFunctional:
    q = _holds(table, question.share)
    if not named(question.groups[0]):
        return TableFunctional(value=float(q @ table.table), gradient=q)
    where = _holds(table, question.groups[0])
    mass = table.denominator(where, "the group that the share is of")
    value = float((q * where) @ table.table) / mass
    return TableFunctional(value=value, gradient=(q - value) * where / mass)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellValues:
    """What the groups of a column count for, in every cell of a table, and where; `doubt` is the variance of each value."""

    values: Floats
    counts: Floats
    doubt: Floats
    group: NDArray[np.int64]


def values_in(table: Estimated, variable: Variable) -> CellValues:
    """The values of a variable over the cells of a table. A merged group has the mean of its cells by the column's list."""
    lists, at = table.lists, _at(table, variable.column)
    place = table.places[at]
    axis = lists.domain.axes[place]
    values, is_counted = values_of(variable, axis, lists.domain.schema)
    into = lists.into(lists.of(table.places)[0])[at]
    many = int(into.max()) + 1
    found, doubt, counts = np.zeros(many), np.zeros(many), np.zeros(many)
    is_merged = len(table.places) > 1 and (np.bincount(into[into >= 0]) > 1).any()
    column = (estimated(lists, (place,)) if is_merged else None) or table
    for group in range(many):
        cells = np.flatnonzero(into == group)
        counts[group] = float(is_counted[cells].all())
        if is_counted[cells].any() and not is_counted[cells].all():
            raise NoInterval("a group of rare cells holds answers and silence")
        mass = np.maximum(column.table[lists.plain[place][cells]], 1e-12) if len(cells) > 1 else np.ones(1)
        found[group] = float(values[cells] @ mass) / float(mass.sum())
        if len(cells) > 1:
            noise = column.own.variance[lists.plain[place][cells]]
            doubt[group] = _group_doubt(values[cells] - found[group], mass, noise)
    index = np.indices(table.shape)[at].ravel()
    return CellValues(values=found[index], counts=counts[index], doubt=doubt, group=index)


def _group_doubt(apart: Floats, mass: Floats, noise: Floats) -> float:
    """The variance of a merged group's value: what noise makes of it and, squared, where it may lie all the same.

    Cells were merged because they are rare, and negative ones count as nothing, so part of the group's mass is noise
    that was cut off below: .4 deviations a cell. That part tells nothing of where its rows lie, which may be half the range off.
    """
    whole, most = float(mass.sum()), float(np.ptp(apart)) ** 2 / 4
    nothing = min(1.0, CUT * float(np.sqrt(noise).sum()) / whole)
    return min(float(noise @ np.square(apart)) / whole**2 + nothing**2 * most, most)


def _at(table: Estimated, column: str) -> int:
    return [axis.column for axis in _axes(table)].index(column)


def _doubtful(known: CellValues, change: Callable[[Floats], float]) -> float:
    """The variance that noisy values of merged groups add, by the change of the estimate with each of them."""
    found = 0.0
    for group in np.flatnonzero(known.doubt):
        step = max(1e-6, 1e-4 * float(np.ptp(known.values)))
        moved = np.where(known.group == group, step, 0.0)
        slope = (change(known.values + moved) - change(known.values - moved)) / (2 * step)
        found += slope**2 * float(known.doubt[group])
    return found


def _mean(question: TableQuestion, table: Estimated) -> TableFunctional:
    (group,) = question.groups
    return _means(variable_of(question), table, [(1.0, _holds(table, group))])


def _difference(question: TableQuestion, table: Estimated) -> TableFunctional:
    one, other = question.groups
    return _means(variable_of(question), table, [(1.0, _holds(table, one)), (-1.0, _holds(table, other))])


def _means(of: Variable, table: Estimated, terms: Sequence[tuple[float, Floats]]) -> TableFunctional:
    """A sum of means in groups of cells, each with its sign: the means of midpoints, and what residuals say beyond them."""
    known = values_in(table, of)
    signs, groups = [sign for sign, _ in terms], [where * known.counts for _, where in terms]
    masses = [table.denominator(where, "a group whose mean is asked") for where in groups]

    def middles(values: Floats) -> list[float]:
        return [float((values * where) @ table.table) / float(where @ table.table) for where in groups]

    at_midpoints = middles(known.values)
    middle = float(np.dot(signs, at_midpoints))
    value, gradient = middle, np.zeros(len(table.table))
    noise = _doubtful(known, lambda values: float(np.dot(signs, middles(values))))
    divided, rests = np.zeros(len(table.table)), []
    for sign, where, mass, own in zip(signs, groups, masses, at_midpoints, strict=True):
        rest = _residual(table, of.column, where, mass, middle)
        rests.append(rest.value)
        value += sign * rest.value
        gradient += sign * (known.values - own) * where / mass
        divided -= sign * rest.value * where / mass
        noise += rest.noise
    return TableFunctional(
        value=value,
        gradient=gradient,
        noise=noise,
        sampling=_within_bins(of, table, gradient, list(zip(signs, groups, rests, strict=True))),
        residual_gradient=divided,
    )


def _within_bins(
    of: Variable, table: Estimated, gradient: Floats, terms: Sequence[tuple[float, Floats, float]]
) -> float:
    """The most that answers inside their bins add to the sampling variance of means at midpoints.

    How far answers lie from their midpoints is known on average over a group, and is at most half a bin in each cell. Of all
    ways to lie that agree with both the worst puts each cell's answers at its ends; how much of a cell is at which is a
    linear program with one constraint, solved by the order of what is gained.
    """
    place = table.lists.domain.columns.index(of.column)
    axis = table.lists.domain.axes[place]
    if not axis.key.starts:
        return 0.0
    into = table.lists.into(table.lists.of(table.places)[0])[table.places.index(place)]
    widest = np.zeros(int(into.max()) + 1)
    np.maximum.at(widest, into[: axis.answers], half_widths(axis, table.lists.domain))
    half = widest[np.indices(table.shape)[table.places.index(place)].ravel()]
    moved, found = table.influence(gradient), 0.0
    for sign, where, rest in terms:
        shares = table.positive * where
        mass = float(shares.sum())
        if mass <= 0:
            continue
        rate = 1 / (table.own.response * mass)
        fixed = shares * ((np.square(half) + rest**2) * rate - 2 * rest * sign * moved) / mass
        found += float(fixed.sum()) + _most(2 * (sign * moved - rest * rate) / mass, shares, half, rest)
    return found / table.lists.total


def _most(gains: Floats, shares: Floats, half: Floats, mean: float) -> float:
    """The largest sum of gains times shares times r, with |r| at most `half` in each cell, and their mean as it is told."""
    order = np.argsort(-gains, kind="stable")
    room = 2 * (shares * half)[order]
    raised = float(np.clip(mean * shares.sum() + room.sum() / 2, 0.0, room.sum()))
    up = np.clip(raised - (np.cumsum(room) - room), 0.0, room)
    return float(gains[order] @ (up - room / 2))


def _residual(table: Estimated, column: str, where: Floats, mass: float, middle: float) -> TableFunctional:
    """What bins take from the mean of a group: nothing where each number has a cell of its own.

    Without residuals no interval holds, and what is told is `middle`, the whole answer at the midpoints of bins.
    """
    lists, none = table.lists, np.zeros(0)
    place = lists.domain.columns.index(column)
    if not lists.domain.axes[place].key.starts:
        return TableFunctional(value=0.0, gradient=none)
    kept = _residual_sums(table, place)
    if not kept:
        raise NoInterval(
            "the mean of bin midpoints is not the mean; fit with inference = true for residuals", middle
        )
    weights = [1 / np.square(deviations) for _, deviations in kept]
    total = sum(weights, np.zeros_like(weights[0]))
    sums = sum((w * s for w, (s, _) in zip(weights, kept, strict=True)), np.zeros_like(total)) / total
    here = _by_other(table, place, where) / _answering(table, place)
    unit = grid_of(column, lists.domain.schema) / 2 / (lists.total * mass)
    return TableFunctional(
        value=unit * float(here @ sums),
        gradient=none,
        noise=unit**2 * float(np.square(here) @ (1 / total)),
    )


def _residual_sums(table: Estimated, place: int) -> list[tuple[Floats, Floats]]:
    """The residuals of a number in each list of the table, with their deviations; none where a list has none."""
    found = [_sums(table, each, place) for each in table.lists.used(table.places)]
    return [] if any(sums is None for sums in found) else [sums for sums in found if sums is not None]


def _sums(table: Estimated, each: NoisyList, place: int) -> tuple[Floats, Floats] | None:
    """The residuals of a number in one list, with their deviations: one entry, or one for each group of the other column."""
    if not len(each.sums):
        return None
    at = 0
    for fine, other in residual_places(table.places, fine_axes(table.lists.domain)):
        many = 1 if other is None else table.shape[table.places.index(other)]
        if fine.place == place:
            return each.sums[at : at + many], each.sum_deviations[at : at + many]
        at += many
    return None


def _by_other(table: Estimated, place: int, where: Floats) -> Floats:
    """For each residual of a list whether its rows are in the group: it must not depend on the number itself."""
    at = table.places.index(place)
    by_number = np.moveaxis(where.reshape(table.shape), at, 0).reshape(table.shape[at], -1)
    asked = by_number[by_number.any(axis=1)]
    if not (asked == asked[0]).all() or (by_number.any(axis=1).sum() < _answer_groups(table, at)):
        raise NoInterval(
            "the group is made of the number's own bins, and residuals are summed over all of them"
        )
    return np.asarray(asked[0])


def _answering(table: Estimated, place: int) -> Floats:
    """For each residual of a list the share that answered, of the block that its rows are in: asked the number, and the other or not."""
    at = table.places.index(place)
    answers = table.lists.into(table.lists.of(table.places)[0])[at][0]
    by_number = np.moveaxis(table.own.response.reshape(table.shape), at, 0)
    return np.asarray(by_number[answers].ravel())


def _answer_groups(table: Estimated, at: int) -> int:
    axis = _axes(table)[at]
    into = table.lists.into(table.lists.of(table.places)[0])[at][: axis.answers]
    return len(np.unique(into))


def _slope(question: TableQuestion, table: Estimated) -> TableFunctional:
    """The coefficient of one predictor: covariance over variance, among those who answered both.

    On a filter of another column that is a difference of means, which residuals make that of the numbers themselves.
    """
    of, on = variable_of(question), question.on[0]
    y, x = values_in(table, of), values_in(table, on)
    if _has_exact_means(table, of, on) and np.isin(x.values[x.counts > 0], (0.0, 1.0)).all():
        return _means(of, table, [(1.0, x.counts * x.values), (-1.0, x.counts * (1 - x.values))])
    counts = y.counts * x.counts
    mass = table.denominator(counts, "the group that answered both")

    def moments(x_values: Floats, y_values: Floats) -> tuple[float, float, float, float]:
        p = table.table * counts / mass
        mx, my = float(x_values @ p), float(y_values @ p)
        sxx = float(np.square(x_values - mx) @ p)
        return mx, my, sxx, float(((x_values - mx) * (y_values - my)) @ p)

    mx, my, sxx, sxy = moments(x.values, y.values)
    table.denominator(counts * np.square(x.values - mx), "the variance of the predictor")
    slope = sxy / sxx
    gradient = counts * (x.values - mx) * (y.values - my - slope * (x.values - mx)) / sxx / mass
    doubt = _doubtful(x, lambda v: moments(v, y.values)[3] / moments(v, y.values)[2])
    doubt += _doubtful(y, lambda v: moments(x.values, v)[3] / moments(x.values, v)[2])
    binned = is_binned(of, table.lists) or is_binned(on, table.lists)
    return TableFunctional(value=slope, gradient=gradient, noise=doubt, is_of_midpoints=binned)


def _has_exact_means(table: Estimated, of: Variable, on: Variable) -> bool:
    """Whether means of a binned number by a filter of another column are known beyond the midpoints of its bins."""
    if not is_binned(of, table.lists) or on.bound is None or on.column == of.column:
        return False
    return bool(_residual_sums(table, table.lists.domain.columns.index(of.column)))


def is_binned(variable: Variable, lists: Lists) -> bool:
    """Whether a variable is a number that was put into bins: moments take it at their midpoints."""
    place = lists.domain.columns.index(variable.column)
    return variable.bound is None and bool(lists.domain.axes[place].key.starts)


def _logistic(question: TableQuestion, table: Estimated) -> TableFunctional:
    """The coefficient of a logistic regression: the score equations solved on the estimated table, negative cells and all."""
    of = variable_of(question)
    y, x = values_in(table, of), values_in(table, question.on[0])
    counts = y.counts * x.counts
    table.denominator(counts * y.values, "the group where it holds")
    table.denominator(counts * (1 - y.values), "the group where it does not hold")
    centre = float((x.values * counts) @ table.table) / float(counts @ table.table)
    table.denominator(counts * np.square(x.values - centre), "the variance of the predictor")
    p = table.table * counts
    found, bread = _newton(x.values - centre, y.values, p)
    rows = np.stack([np.ones_like(p), x.values - centre])
    fitted = 1 / (1 + np.exp(-(found[0] + found[1] * rows[1])))
    weights = counts * fitted * (1 - fitted)
    middle = float((weights * rows[1]) @ table.table) / float(weights @ table.table)
    table.denominator(weights * np.square(rows[1] - middle), "the information about the coefficient")
    gradient = counts * ((bread @ rows)[1] * (y.values - fitted))
    doubt = _doubtful(x, lambda v: float(_newton(v - centre, y.values, p)[0][1]))
    spread = sqrt(table.noise(gradient) + doubt + table.sampling(gradient))
    for end in (-1.96 * spread, 1.96 * spread):
        score = _profile_score(found[1] + end, found[0], rows[1], y.values, p)
        if not 0.5 < -score * float(bread[1, 1]) / end < 2:
            raise NoInterval(
                "the table tells so little of the coefficient that no interval about it is straight"
            )
    return TableFunctional(
        value=float(found[1]),
        gradient=gradient,
        noise=doubt,
        is_of_midpoints=is_binned(question.on[0], table.lists),
    )


def _profile_score(slope: float, start: float, x: Floats, y: Floats, p: Floats) -> float:
    """The score of a slope, its intercept solved for: a straight line where the delta method holds."""
    intercept = start
    for _ in range(NEWTON):
        fitted = 1 / (1 + np.exp(-np.clip(intercept + slope * x, -30, 30)))
        information = float(p @ (fitted * (1 - fitted)))
        if information < 1e-12:
            break
        step = float(p @ (y - fitted)) / information
        intercept += max(-2.0, min(2.0, step))
        if abs(step) < 1e-9:
            return float((p * x) @ (y - fitted))
    raise NoInterval("the logistic regression has no finite solution on this table")


def _newton(x: Floats, y: Floats, p: Floats) -> tuple[Floats, Floats]:
    """Coefficients of a logistic regression on weighted cells, and the inverse of the information."""
    scale = max(float(np.abs(x).max()), 1e-12)
    rows, found = np.stack([np.ones_like(x), x / scale]), np.zeros(2)
    bread: Floats = np.eye(2)
    for _ in range(NEWTON):
        fitted = 1 / (1 + np.exp(-np.clip(found @ rows, -30, 30)))
        information = (rows * (p * fitted * (1 - fitted))) @ rows.T
        if not np.isfinite(information).all() or abs(np.linalg.det(information)) < 1e-14:
            raise NoInterval("the logistic regression has no finite solution on this table")
        bread = np.asarray(np.linalg.inv(information), dtype=np.float64)
        step = bread @ (rows @ (p * (y - fitted)))
        found = found + step / max(1.0, float(np.abs(step).max()) / 4)
        if float(np.abs(step).max()) < 1e-10:
            units = np.array([1.0, 1 / scale])
            return found * units, bread * np.outer(units, units)
    raise NoInterval("the logistic regression has no finite solution on this table")


KINDS: dict[str, Callable[[TableQuestion, Estimated], TableFunctional]] = {
    "proportion": _proportion,
    "mean": _mean,
    "difference": _difference,
    "regression": _slope,
    "logistic": _logistic,
}
