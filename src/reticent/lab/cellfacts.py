"""What all runs on the simulated atlas share, and its exact numbers, beside printed ones that can be recomputed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np

from reticent.lab.atlas import Atlas, atlas
from reticent.lab.cellmethods import LEAST, own_estimates
from reticent.lab.experiment import Outcome
from reticent.smallcells.diagnostics import reliability
from reticent.smallcells.envelope import envelope
from reticent.smallcells.estimators import Predict
from reticent.smallcells.fits import Floats
from reticent.smallcells.local import local_sensitivity
from reticent.smallcells.moments import moments
from reticent.smallcells.standard import sampling_errors
from reticent.smallcells.suppress import Counts, FewEvents, scatters

ATLAS_SEED = 2026
ESTIMATOR = Predict(at=Fraction(1, 4))
PRINTED_CHI, PRINTED_BEFORE, PRINTED_AFTER, PRINTED_SHARE = 13.02, 71.8, 71.0, 0.8


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
    yield Outcome(item="chi (printed for data that are not published)", value=chi, printed=PRINTED_CHI)
    yield Outcome(item="chi of the middle state", value=float(np.median(by_state)))
    for least in (1, 5, 10, 20):
        here = tracts.asked >= least
        whole, kept = scatters(tracts.single[here], tracts.asked[here], events[here], FewEvents())
        yield Outcome(
            item=f"% of the slope of births that suppression takes away, {least} or more asked",
            value=100 * (1 - kept.slope / whole.slope),
        )


def printed() -> Iterator[Outcome]:
    """What can be said of printed numbers without the data behind them."""
    share, before = PRINTED_SHARE / 100, PRINTED_BEFORE / 100
    # The variance before the noise is 1; the noise's share of the variance of what is released is `share`.
    found = reliability(variance=1.0, sampling=1 - before, noise=share / (1 - share))
    yield Outcome(
        item="reliability in % after a noise share of 0.8 % (71.0 takes it off 71.8 in points)",
        value=100 * found.after,
        printed=PRINTED_AFTER,
    )
    yield Outcome(
        item="Figure 1: .349 less .212 (the cell's people are not published)",
        value=0.349 - 0.212,
        printed=0.137,
    )
