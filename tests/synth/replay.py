"""Replay on neighbours: same calls, same public parameters, moves within the stated sensitivity, same result."""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from reticent.synth.base import FitTask, MissingMethod, Model, Spend, SynthesisMethod, SynthNoise
from reticent.synth.domain import Domain
from reticent.synth.network import Network
from reticent.synth.spending import total_of
from tests.noise.seeded import SeededBits
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, spent

PURE = Spend(epsilon=Fraction(1))
APPROXIMATE = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
RHO = Spend(rho=Fraction("0.02"))
NOT_FILLED = (MissingMethod.COMPLETE, MissingMethod.AVAILABLE, MissingMethod.VALUES)
COUNTED = (*NOT_FILLED, MissingMethod.WEIGHTED)


def random_rows(domain: Domain, rows: int, seed: int) -> ArrayCounts:
    """Every cell alike, silence and unasked included."""
    rng = np.random.default_rng(seed)
    cells = np.stack([rng.integers(0, size, rows) for size in domain.shape], axis=1)
    return ArrayCounts(cells.reshape(rows, len(domain.axes)), domain)


def neighbours(counts: ArrayCounts) -> Iterator[ArrayCounts]:
    """One record fewer, every one in turn, and one more: one silent everywhere, one in the first, one in the last cells."""
    for row in range(len(counts.cells)):
        yield counts.without(row)
    axes = counts.domain.axes
    silent = [axis.silence for axis in axes]
    for new in (silent, [0] * len(axes), [axis.size - 1 for axis in axes]):
        yield ArrayCounts(np.vstack([counts.cells, [new]]), counts.domain)


def run(
    method: SynthesisMethod,
    counts: ArrayCounts,
    holes: MissingMethod,
    spend: Spend,
    noise: SynthNoise,
    domain: Domain | None = None,
) -> Model:
    """Fit. `domain` is that of the model, where rows are counted by more axes than it has."""
    return method.fit(
        FitTask(counts, domain or counts.domain, holes, spend, noise=noise, step=lambda _: None)
    )


def faults(
    method: SynthesisMethod,
    counts: ArrayCounts,
    holes: MissingMethod,
    spend: Spend,
    domain: Domain | None = None,
    others: Sequence[ArrayCounts] = (),
) -> list[str]:
    """What a reader of one transcript could hold against the method; nothing, where it keeps its promise."""
    found = []
    first = FrozenSynthNoise()
    network = run(method, counts, holes, spend, first, domain)
    budget = total_of(spend)
    if spent(first.met, pure=spend.is_pure) > budget:
        found.append("spends more than it has")
    for other in others or neighbours(counts):
        again = FrozenSynthNoise(script=first.given)
        same = run(method, other, holes, spend, again, domain)
        if [m.parameters for m in again.met] != [m.parameters for m in first.met]:
            found.append("asks otherwise of a neighbour")
            continue
        if any(a.distance(b) > a.sensitivity for a, b in zip(first.met, again.met, strict=True)):
            found.append("moves further than it says")
        if not alike(network, same):
            found.append("says more than the noise let out")
    return found


def alike(one: Model, other: Model) -> bool:
    """Whether all that would be saved of them is the same, to the last bit."""
    return one.files() == other.files()


def is_drawable(model: Model) -> bool:
    """Rows within their cells; of a network, every column once, given only earlier ones, lines that sum to one."""
    drawn = model.draw(50, SeededBits(1))
    if not ((drawn >= 0) & (drawn < np.array(model.domain.shape))).all():
        return False
    return not isinstance(model, Network) or _is_ordered(model)


def _is_ordered(network: Network) -> bool:
    domain, seen = network.domain, set()
    for step in network.steps:
        if not seen.issuperset(step.given) or step.table.shape != domain.sizes((*step.given, step.place)):
            return False
        seen.add(step.place)
        if (step.table < 0).any() or not np.allclose(step.table.sum(axis=-1), 1):
            return False
    return len(seen) == len(network.steps) == len(domain.axes)
