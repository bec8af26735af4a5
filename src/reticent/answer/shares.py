"""How an ask on filled columns, or a correlation, shares out its epsilon: known before a row is read."""

from fractions import Fraction

from reticent.answer.parts import AnyMeasurement, HiddenScale, Measurement, plan_part
from reticent.answer.ratio import split
from reticent.answer.tasks import SumSpec, Tasks
from reticent.answer.variance import SQUARES_SHARE
from reticent.errors import PlanError
from reticent.prepare.donors import Bounding, Repair
from reticent.query.imputed import roles
from reticent.query.kinds import Correlation, Count, Mean, Proportion, Total, Variance
from reticent.refine.pivot import pivot
from reticent.schema import Schema
from reticent.sensitivity.book import published_beta
from reticent.sensitivity.hubs import LN2
from reticent.sensitivity.neighbours import Neighbours

Asked = Count | Total | Mean | Proportion | Variance | Correlation
Shares = tuple[tuple[SumSpec, Fraction], ...]

WHOLE, EIGHTH = Fraction(1), Fraction(1, 8)
SCALE = "noise scale"
PRODUCTS = Fraction(1, 4)
"""Of a correlation's epsilon, to the products; 3/16 to the squares of each column, the rest to their means."""
LEAST_BETA = Fraction(1, 2**16)
"""Below it a ladder has too many rungs to look at."""
PUBLISHED = "generalised Cauchy"


def planned(query: Asked, schema: Schema, neighbours: Neighbours, repair: Repair) -> Shares:
    """The tasks of an ask in the order they are measured, each with its share of the ask's epsilon.

    Squares and products are taken about means that are not known yet; here about one end, where they move most.
    """
    tasks = Tasks(query, schema, neighbours, repair)
    match query:
        case Count():
            return ((tasks.count(), WHOLE),)
        case Total():
            return ((tasks.total(query), WHOLE),)
        case Mean():
            return _ratio(tasks, tasks.centred(query.number(schema), query.centre), query.size)
        case Proportion():
            return _ratio(tasks, tasks.share(), query.size)
        case Variance():
            column = query.number(schema)
            mean = _ratio(tasks, tasks.centred(column, query.centre), query.size)
            about = tuple((task, share * (1 - SQUARES_SHARE)) for task, share in mean)
            return (*about, (tasks.squares(column, column.low), SQUARES_SHARE))
        case Correlation():
            return _correlation(query, schema, tasks)


def _ratio(tasks: Tasks, top: SumSpec, size: int | None) -> Shares:
    for_count, for_sum = split(WHOLE, size)
    return ((tasks.count(), for_count), (top, for_sum)) if for_count else ((top, for_sum),)


def _correlation(query: Correlation, schema: Schema, tasks: Tasks) -> Shares:
    y, z = query.numbers(schema)
    count = () if query.size is not None else ((tasks.count(), EIGHTH),)
    each = EIGHTH if count else EIGHTH * Fraction(3, 2)
    centred = tuple(
        (tasks.centred(column, centre, named=f" of {column.name}"), each)
        for column, centre in zip((y, z), query.centres, strict=True)
    )
    squares = tuple((tasks.squares_of(column, column.low), Fraction(3, 16)) for column in (y, z))
    return (*count, *centred, *squares, (tasks.products(y, z, (y.low, z.low)), PRODUCTS))


def planned_parts(
    query: Asked,
    epsilon: Fraction,
    bar: Fraction,
    *,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
) -> tuple[AnyMeasurement, ...]:
    """The parts an ask will be made of, from public numbers alone."""
    shares = planned(query, schema, neighbours, repair)
    smooth = sum((share for task, share in shares if task.is_smooth), Fraction(0))
    found: list[AnyMeasurement] = []
    for task, share in shares:
        if task.is_smooth:
            mine = bar * share / smooth
            found += smooth_parts(task, epsilon * share, mine, neighbours=neighbours, repair=repair)
        else:
            found.append(plan_part(task.what, bound=task.bound, grid=task.grid, epsilon=epsilon * share))
    return tuple(found)


def smooth_parts(
    task: SumSpec, epsilon: Fraction, bar: Fraction, *, neighbours: Neighbours, repair: Repair
) -> tuple[AnyMeasurement, ...]:
    """The part of a smooth task and, with a bar, that of its log scale."""
    each = epsilon / neighbours.steps
    if is_published(task, repair):
        return (
            HiddenScale(
                what=task.what,
                epsilon=epsilon,
                unit=task.grid,
                beta=published_beta(each),
                mechanism=PUBLISHED,
                proof="proofs/noise/cauchy.md",
            ),
        )
    beta = each / repair.smoothness
    hidden = HiddenScale(what=task.what, epsilon=epsilon, unit=task.grid, beta=beta)
    if not bar:
        return (hidden,)
    law = pivot(epsilon=each, beta=beta, epsilon_scale=bar, level=Fraction(1, 2), steps=neighbours.steps)
    scale = Measurement(
        what=SCALE,
        epsilon=bar,
        bound=law.sensitivity.bound * law.grid,
        unit=law.grid,
        scale=law.scale,
        theorem="Laplace mechanism on the logarithm of a smooth bound",
        proof="proofs/refine/pivot.md",
    )
    return (hidden, scale)


def is_published(task: SumSpec, repair: Repair) -> bool:
    """Whether the plan asks for the published bound of the task's columns."""
    return any(repair.of(ring.column).bounding is Bounding.PUBLISHED for ring, _ in task.moves.c1)


def check_budget(
    query: Asked,
    epsilon: Fraction,
    bar: Fraction,
    *,
    schema: Schema,
    neighbours: Neighbours,
    repair: Repair,
    field: str = "epsilon",
) -> None:
    """Refuse, from public numbers, an epsilon with which some part of the ask cannot be carried out."""
    if not roles(query, schema, repair):
        return
    for task, share in planned(query, schema, neighbours, repair):
        each = epsilon * share / neighbours.steps
        if task.is_smooth and is_published(task, repair):
            _check_published(task, each, bar, field)
        elif task.is_smooth and each / repair.smoothness < LEAST_BETA:
            raise PlanError(
                f"leaves {float(each):.2g} to the {task.what}, for one record; answers that donors gave need at "
                f"least {float(LEAST_BETA * repair.smoothness):.2g}.",
                field=field,
            )


def _check_published(task: SumSpec, each: Fraction, bar: Fraction, field: str) -> None:
    if each < 2 * LN2:
        raise PlanError(
            f"leaves {float(each):.4g} to the {task.what}, for one record; the published mechanism is proved for "
            "2 ln 2 = 1.3863 or more, and below 0.87 it loses more than it claims; use the hub ladder.",
            field=field,
        )
    if bar:
        raise PlanError(
            "the published mechanism has no error bar here; use the hub ladder, or leave it out.",
            field="interval.epsilon",
        )
