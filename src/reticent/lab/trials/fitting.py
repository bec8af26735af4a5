"""From a table with holes to synthetic rows, by the library's own synthesizers and noise that can be replayed."""

from fractions import Fraction

import numpy as np

from reticent.lab.quicksynth import NoSynthNoise, QuickSynthNoise
from reticent.lab.trials.coding import Codes, cells_of, with_holes
from reticent.lab.trials.counts import Held
from reticent.lab.trials.masks import Mask
from reticent.lab.trials.tables import Trial
from reticent.release.synth_rows import draw_tables
from reticent.synth.base import Holes, Spend
from reticent.synth.registry import find
from reticent.synth.rules import read_rules

DELTA = Fraction(1, 1_000_000)
NO_MISSING = "no-missing"
WITHOUT = Fraction(100)  # what a method is told it may spend when the noise is switched off


def holes_of(strategy: str) -> Holes:
    """What a strategy of the document does about missing values; its *holes* are a category of their own."""
    if strategy == NO_MISSING:
        return Holes.COMPLETE
    return Holes.VALUES if strategy == "holes" else Holes(strategy)


def synthesize(
    table: Trial,
    lost: Mask,
    *,
    method: str,
    strategy: str,
    epsilon: Fraction | None,
    rng: np.random.Generator,
) -> Codes:
    """As many synthetic rows as the table has. Without an epsilon there is no noise, and the draws are still by chance."""
    domain = table.domain()
    codes = table.codes if strategy == NO_MISSING else with_holes(table.codes, lost)
    holes = holes_of(strategy)
    noise = NoSynthNoise(rng) if epsilon is None else QuickSynthNoise(rng)
    spend = Spend(epsilon=WITHOUT if epsilon is None else epsilon, delta=DELTA)
    held = Held(domain=domain, cells=cells_of(codes, domain))
    network = find(method).fit(held, domain, holes, spend, noise=noise, step=_silently)
    copies = 1 if holes is Holes.VALUES else 0
    rows = draw_tables(network, read_rules(domain), len(table.codes), copies, noise.bits)[0]
    return np.stack([rows[name] for name in table.columns], axis=1)


def _silently(_: str) -> None:
    """No bar: a run of the lab has its own."""
