"""The `[weight.rake]` section of a plan: margins that are known, where the full table of totals is not. Public, all of it."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite, prod

import numpy as np

from reticent.answer.raked import Fitting
from reticent.decimals import read_decimal
from reticent.errors import PlanError
from reticent.prepare.bins import BaseCells
from reticent.privacy.claim import amount
from reticent.refine.margins import Margin, Mask
from reticent.refine.zeroes import Coarsening
from reticent.release.totals import RAKE, Totals, read_totals
from reticent.release.weights_cells import groups_of_labels, known_names, label_of
from reticent.release.weights_sections import MarginSection, RakeSection, WeightSection

Labels = Mapping[str, Sequence[str]]
MOST_CELLS = 100_000


def fitting_of(section: WeightSection, cells: BaseCells, labels: Labels) -> Fitting | None:
    """What totals are raked from; None where they are known."""
    if (section.totals == RAKE) != (section.rake is not None):
        raise PlanError(
            f"totals = {RAKE!r} goes with [weight.rake], and the other way round", field="weight.totals"
        )
    if section.rake is None:
        return None
    if cells.size > MOST_CELLS:
        raise PlanError(f"at most {MOST_CELLS} base cells can be raked; use fewer bins", field="weight.by")
    rake = section.rake
    try:
        return Fitting(
            shape=cells.shape,
            margins=tuple(_margin(each, labels, place) for place, each in enumerate(rake.margin)),
            ladder=_ladder(rake, cells, labels),
            zeroes=_zeroes(rake, cells, labels),
            least=_least(rake),
            epsilon=amount(rake.epsilon, field="weight.rake.epsilon"),
        )
    except PlanError as problem:
        field = problem.field if str(problem.field).startswith("weight.") else "weight.rake"
        raise PlanError(str(problem.args[0]), field=field) from None


def assumed_totals(fitting: Fitting, labels: Labels) -> Totals:
    """What the margins alone say of every base cell."""
    return Totals(by=tuple(labels), of=dict(zip(product(*labels.values()), fitting.assumed, strict=True)))


def _margin(section: MarginSection, labels: Labels, place: int) -> Margin:
    at = f"weight.rake.margin[{place}]"
    by = known_names(section.by, labels, f"{at}.by")
    found = read_totals(section.totals, {name: labels[name] for name in by}, field=f"{at}.totals")
    shape = [len(labels[name]) for name in by]
    axes = [list(labels).index(name) for name in by]
    return Margin(axes, np.array([float(total) for total in found.of.values()]).reshape(shape))


def _zeroes(section: RakeSection, cells: BaseCells, labels: Labels) -> Mask | None:
    """Cells where nobody can be; a line that leaves a stratifier out means all its bins."""
    if not section.zero:
        return None
    mask = np.zeros(cells.shape, dtype=np.bool_)
    for place, line in enumerate(section.zero):
        at = f"weight.rake.zero[{place}]"
        known_names(list(line), labels, at)
        if not line:
            raise PlanError("names no bin", field=at)
        here = [
            label_of(str(line[name]), labels[name], at) if name in line else slice(None) for name in labels
        ]
        mask[tuple(here)] = True
    return mask


def _ladder(section: RakeSection, cells: BaseCells, labels: Labels) -> tuple[Coarsening, ...]:
    """As it is, then as the plan joins bins, and in the end everybody in one cell."""
    steps = [Coarsening(cells.shape, [None] * len(cells.shape))]
    for place, joined in enumerate(section.join):
        at = f"weight.rake.join[{place}]"
        groups = groups_of_labels(joined, list(labels), labels, at)
        levels = [
            each.groups_of(groups[each.name]).tolist() if each.name in groups else None
            for each in cells.stratifiers
        ]
        steps.append(Coarsening(cells.shape, levels))
    if not steps[-1].joined or prod(steps[-1].coarse_shape) > 1:
        steps.append(Coarsening(cells.shape, [[0] * bins for bins in cells.shape]))
    return tuple(steps)


def _least(section: RakeSection) -> float:
    least = read_decimal(section.least)
    if least is None or least < 0 or not isfinite(float(least)):
        raise PlanError("is a plain decimal, 0 or more", field="weight.rake.least")
    return float(least)
