"""What all runs on the simulated atlas share, and its exact numbers.

Every method for small cells on the same points, as a reader sees it: estimates, intervals, standard errors.

The mechanisms are those of a release, drawn from bits that can be replayed. Who gets which budget:

    mos           epsilon for the estimates, as much again for counts and for standard errors, as published; no promise
    mos by state  the same, chi within each state
    smooth        epsilon for the estimates, as `mos` has it; the noise level is paid on top
    reticent      smooth with the noise level, all of it within epsilon: what a plan releases
    pooled        estimates, counts and chi, all of it within epsilon, and delta
    theil-sen     all of epsilon for the choice
    suppress      no noise and no promise; tracts with fewer than `LEAST` people are withheld
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import SupportsFloat

import numpy as np

from reticent.lab.papers.suppress import Counts, FewEvents, FewRespondents, scatters, suppress
from reticent.lab.run.experiment import OURS, Outcome
from reticent.lab.world.atlas import Atlas, atlas
from reticent.noise.bits import Bits
from reticent.smallcells.estimators import CellMean, Estimator, Floats, Predict, estimates
from reticent.smallcells.local import local_sensitivity, sampling_errors
from reticent.smallcells.observed import ObservedCells, envelope, release_observed
from reticent.smallcells.points import GridPoints, moments
from reticent.smallcells.pooled import PooledCells
from reticent.smallcells.smooth import SmoothCells
from reticent.smallcells.table import Estimand, noisy_counts
from reticent.smallcells.theilsen import TheilSenCells

LEAST = 20
LEAST_ASKED = 10
LEVEL = Fraction(95, 100)
SHARE = Fraction(1, 5)  # of the noise level in a whole budget
SMOOTHNESS = (
    10  # what a plan takes for such a share: a noise level of relative size 2/5, so that variances exist
)
POOLED = (Fraction(3, 5), Fraction(1, 10), Fraction(3, 10))  # estimates, counts, chi
POOLED_SMOOTHNESS = 32
DELTA = Fraction(1, 10**6)
CANDIDATES = 10**4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CellRun:
    """One table. `widths` are half-widths about the cell's own estimate, `errors` standard errors about the truth.

    Not a number where a cell is withheld; None where the method publishes no such thing.
    """

    estimates: Floats
    widths: Floats | None = None
    errors: Floats | None = None
    is_exact: bool = False


Method = Callable[[GridPoints, Estimator, Fraction, Bits], CellRun]


def own_estimates(points: GridPoints, estimator: Estimator) -> Floats:
    """What the people of each cell say without noise, kept within the range; not a number without a line."""
    return np.clip(estimates(estimator, moments(points)).floats(), 0, 1)


def mos(
    points: GridPoints,
    estimator: Estimator,
    epsilon: Fraction,
    bits: Bits,
    *,
    groups: tuple[int, ...] | None = None,
) -> CellRun:
    """The maximum observed sensitivity as published; intervals from the variance printed beside each estimate."""
    ask = ObservedCells(
        estimator=estimator,
        epsilon=epsilon,
        count_epsilon=epsilon,
        error_epsilon=epsilon,
        groups=groups,
        least=LEAST,
    )
    table = release_observed(points, ask, bits=bits)
    tail = -math.log(1 - float(LEVEL)) / math.sqrt(2)  # of Laplace noise, in standard deviations
    return CellRun(
        estimates=_floats(table.estimates),
        widths=tail * np.sqrt(_floats(table.noise_variance)),
        errors=_floats(table.standard_errors),
    )


def smooth(points: GridPoints, estimator: Estimator, epsilon: Fraction, bits: Bits) -> CellRun:
    """The smooth cell mechanism with all of epsilon for the estimates."""
    return _smooth(points, estimator, epsilon, epsilon * SHARE / (1 - SHARE), bits)


def reticent(points: GridPoints, estimator: Estimator, epsilon: Fraction, bits: Bits) -> CellRun:
    """The smooth cell mechanism, its noise level paid out of epsilon."""
    return _smooth(points, estimator, epsilon * (1 - SHARE), epsilon * SHARE, bits)


def _smooth(
    points: GridPoints, estimator: Estimator, epsilon: Fraction, level: Fraction, bits: Bits
) -> CellRun:
    asked = SmoothCells(
        aim=Estimand(estimator=estimator), epsilon=epsilon, m=SMOOTHNESS, noise_epsilon=level, level=LEVEL
    )
    table = asked.measure(points, bits=bits)
    return CellRun(estimates=_floats(table.estimates()), widths=table.half_widths())


def pooled(points: GridPoints, estimator: Estimator, epsilon: Fraction, bits: Bits) -> CellRun:
    """The pooled envelope."""
    own, counts, chi = (epsilon * share for share in POOLED)
    asked = PooledCells(
        aim=Estimand(estimator=estimator),
        epsilon=own,
        count_epsilon=counts,
        noise_epsilon=chi,
        delta=DELTA,
        least=LEAST,
        m=POOLED_SMOOTHNESS,
    )
    table = asked.measure(points, bits=bits)
    return CellRun(estimates=_floats(table.estimates()), widths=_floats(table.half_widths(LEVEL)))


def theil_sen(points: GridPoints, estimator: Estimator, epsilon: Fraction, bits: Bits) -> CellRun:
    """The median of lines through random pairs, by selection; it publishes no interval."""
    asked = TheilSenCells(aim=Estimand(estimator=estimator, steps=CANDIDATES), epsilon=epsilon)
    return CellRun(estimates=_floats(asked.measure(points, bits=bits).estimates()))


def suppressed(points: GridPoints, estimator: Estimator) -> CellRun:
    """Exact estimates of the cells that are large enough."""
    return CellRun(estimates=_floats(suppress(points, estimator, FewRespondents(least=LEAST))), is_exact=True)


METHODS: dict[str, Method] = {
    "mos": mos,
    "smooth": smooth,
    OURS: reticent,
    "pooled": pooled,
    "theil-sen": theil_sen,
}


def birth_rates(points: GridPoints, epsilon: Fraction, bits: Bits, *, is_observed: bool) -> Floats:
    """Noisy means of cells whose noisy count is at least `LEAST_ASKED`; not a number elsewhere.

    As observed, epsilon each for means and counts; by the smooth mechanism, three quarters and one quarter of it.
    """
    if is_observed:
        ask = ObservedCells(estimator=CellMean(), epsilon=epsilon, count_epsilon=epsilon)
        table = release_observed(points, ask, bits=bits)
        means, counts = _floats(table.estimates), _floats(table.counts)
    else:
        asked = SmoothCells(aim=Estimand(estimator=CellMean()), epsilon=epsilon * Fraction(3, 4))
        means = _floats(asked.measure(points, bits=bits).estimates())
        counts = _floats(noisy_counts(points.sizes, epsilon=epsilon / 4, bits=bits))
    return np.where(counts >= LEAST_ASKED, means, np.nan)


def _floats(values: Iterable[SupportsFloat | None]) -> Floats:
    """Numbers of any kind as doubles, None as not a number."""
    return np.array([math.nan if value is None else float(value) for value in values])


ATLAS_SEED = 2026
ESTIMATOR = Predict(at=Fraction(1, 4))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AtlasWorld:
    """The atlas, each tract's own estimate with its standard error, the tracts in use, and those whose errors are kept."""

    atlas: Atlas = field(repr=False)
    own: Floats = field(repr=False)
    sampling: Floats = field(repr=False)
    used: Counts = field(repr=False)
    shown: Counts = field(repr=False)


@cache
def world(tracts: int, shown: int) -> AtlasWorld:
    """Made once in every worker, and the same in all of them. The tracts shown lie evenly along their size."""
    made = atlas(tracts, seed=ATLAS_SEED)
    sizes = made.tracts.people
    own = own_estimates(made.ranks, ESTIMATOR)
    used = np.flatnonzero((sizes >= LEAST) & ~np.isnan(own))
    by_size = used[np.argsort(sizes[used], kind="stable")]
    evenly = np.linspace(0, len(by_size) - 1, min(shown, len(by_size))).round().astype(np.int64)
    return AtlasWorld(
        atlas=made,
        own=own,
        sampling=sampling_errors(ESTIMATOR, moments(made.ranks)),
        used=used,
        shown=by_size[evenly],
    )


def facts(shared: AtlasWorld) -> Iterator[Outcome]:
    """Sizes, chi, and how much of the slope of births suppression takes away."""
    tracts, sizes, events = shared.atlas.tracts, shared.atlas.tracts.people, shared.atlas.events()
    local = local_sensitivity(shared.atlas.ranks, ESTIMATOR)
    chi = float(envelope(local, sizes, least=LEAST).chi[0])
    by_state = [float(each) for each in envelope(local, sizes, groups=tracts.state, least=LEAST).chi if each]
    yield Outcome(item="people", value=float(sizes.sum()))
    yield Outcome(item=f"tracts with fewer than {LEAST} people", value=float((sizes < LEAST).sum()))
    yield Outcome(item="chi", value=chi)
    yield Outcome(item="chi of the middle state", value=float(np.median(by_state)))
    for least in (1, 5, 10, 20):
        here = tracts.asked >= least
        whole, kept = scatters(tracts.single[here], tracts.asked[here], events[here], FewEvents())
        yield Outcome(
            item=f"% of the slope of births that suppression takes away, {least} or more asked",
            value=100 * (1 - kept.slope / whole.slope),
        )
