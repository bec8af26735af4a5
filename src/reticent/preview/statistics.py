"""The statistics of a plan in a preview: cost, parts and expected noise, as plain values and for the terminal.

Where the scale of the noise is confidential, it is shown under assumptions.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import isfinite

from reticent.answer.expect import Assumed
from reticent.answer.expect_donors import ASSUMED_HUB, HUBS, NOBODY
from reticent.answer.parts import AnyMeasurement, HiddenScale
from reticent.exact import level_words, margin_text, show
from reticent.plan.plan import Plan
from reticent.plan.statistics import Statistics
from reticent.preview.domains import alike
from reticent.preview.foreseen import Foreseen
from reticent.preview.preview import LEGEND, Expectation, Weighing, expectations
from reticent.release.document import part_cost
from reticent.release.product import Grid, Line

BELOW_ZERO = "counts of cells are unbiased, so small ones may come out below zero; [[tables]] publishes whole numbers from 0 on that add up"
Foretold = Sequence[tuple[Expectation, Fraction | None]]


def foresee_statistics(asked: Statistics, plan: Plan, cv: float = 0.0) -> Foreseen:
    """What each statistic will cost and how noisy it will be; for a wanted `cv`, which epsilon would do."""
    found = [
        (each, route.epsilon_for(cv) if cv else None)
        for each, route in zip(expectations(plan), plan.routes, strict=True)
    ]
    told = [_section(each, wanted) for each, wanted in found]
    hints = [each.words() for each in alike(asked.asks, plan.schema)]
    counted = [ask.name for ask in asked.asks if ask.query.has_cells]
    hints += [f"{'; '.join(counted)}: {BELOW_ZERO}"] * bool(counted)
    return Foreseen(key="statistics", told=told, lines=(*_lines(found, target=bool(cv)), *hints))


def _section(expectation: Expectation, wanted: Fraction | None) -> dict[str, object]:
    return {
        "name": expectation.name,
        "words": expectation.words,
        expectation.unit: show(expectation.epsilon),
        "parts": [_part(part) for part in expectation.parts],
        "margin": None if expectation.margin is None else float(expectation.margin),
        "how": expectation.how,
        "assumed": assumed_dicts(expectation),
        **({"warning": expectation.warning} if expectation.warning else {}),
        **({"weighing": expectation.weighing.as_dict()} if expectation.weighing else {}),
        f"{expectation.unit}_for_target": None if wanted is None else show(wanted),
    }


def _part(part: AnyMeasurement) -> dict[str, object]:
    bound = None if isinstance(part, HiddenScale) else show(part.bound)
    return {"what": part.what, **part_cost(part), "sensitivity": bound}


def assumed_dicts(expectation: Expectation) -> list[dict[str, object]]:
    """Noise by how many recipients the busiest donor serves; a spread without end is null."""
    return [
        {"hub": each.hub, "sd": each.sd if isfinite(each.sd) else None, "margin": each.margin}
        for each in expectation.assumed
    ]


def _lines(found: Foretold, *, target: bool) -> Iterator[Line]:
    named = " or ".join(dict.fromkeys(each.unit for each, _ in found)) or "epsilon"
    level = level_words(float(each.level) for each, _ in found)
    headings = ("statistic", named, "parts", f"{level}margin of noise", "kind")
    extra = (f"{named} for target",) if target else ()
    rows = [_row(each, wanted, target, not level) for each, wanted in found]
    yield Grid(headings=(*headings, *extra), rows=rows)
    for kind in dict.fromkeys(each.how for each, _ in found):
        yield f"{kind}: {LEGEND[kind]}"
    yield from _weighings([(each.name, each.weighing) for each, _ in found if each.weighing])
    yield from (f"warning: {each.warning}" for each, _ in found if each.warning)
    yield from _assumed([each for each, _ in found if each.assumed], target=target)


def _weighings(found: Sequence[tuple[str, Weighing]]) -> Iterator[Line]:
    """Margins at the expected mean weight, and if everybody weighed as much as the bound: a table for each weight."""
    for weight in dict.fromkeys(each.weight for _, each in found):
        mine = [(name, each) for name, each in found if each.weight == weight]
        (_, first), *_ = mine
        bound = f"if everybody weighed {show(first.bound)}"
        mean = "at the mean weight" if first.mean is None else f"at a mean weight of {show(first.mean)}"
        rows = [(name, _margin(each.at_mean), _margin(each.at_bound)) for name, each in mine]
        yield Grid(headings=("weighted statistic", mean, bound), rows=rows)
        said = f"{weight}: noise is made for {show(first.bound)}, the bound of the codebook, so a closer one helps"
        yield said if first.mean is not None else f"{said}; say [expect] mean_weight for margins to go by"


def _margin(margin: Fraction | None) -> str:
    return "" if margin is None else f"± {margin_text(float(margin))}"


def _row(expectation: Expectation, wanted: Fraction | None, target: bool, has_level: bool) -> tuple[str, ...]:
    """One statistic; its margin with the level, where levels differ."""
    parts = ", ".join(f"{part.what} {show(part.amount)}" for part in expectation.parts)
    margin, level = _margin(expectation.margin), level_words([float(expectation.level)]).strip()
    margin = f"{margin} ({level})" if margin and has_level else margin
    extra = (show(wanted) if wanted else "not known",) if target else ()
    cost = f"rho {show(expectation.epsilon)}" if expectation.unit == "rho" else show(expectation.epsilon)
    return (expectation.name, cost, parts, margin, expectation.how, *extra)


def _assumed(smooth: Sequence[Expectation], *, target: bool) -> Iterator[Line]:
    """Standard deviation and half-width of the noise, by how many recipients the busiest donor serves."""
    if not smooth:
        return
    yield "How busy donors are is confidential. If the busiest one served so many recipients, the noise would be"
    headings = ("statistic", *("nobody missing" if hub == NOBODY else f"{hub}" for hub in HUBS))
    yield Grid(headings=headings, rows=[(each.name, *map(_noise, each.assumed)) for each in smooth])
    yield (
        "sd is its standard deviation, ± the half-width of the interval if one is bought and else the same quantile of the noise"
    )
    if target:
        yield (
            f"for these statistics the epsilon for the target assumes that the busiest donor serves {ASSUMED_HUB}"
        )


def _noise(found: Assumed) -> str:
    return f"± {margin_text(found.margin)}\nsd {margin_text(found.sd)}"
