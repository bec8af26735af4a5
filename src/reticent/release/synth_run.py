"""Learn every synthetic table of a plan, draw its rows, and see that they are lawful. What is drawn comes after the noise."""

from collections.abc import Callable
from contextlib import suppress

from reticent.engine.base import Engine
from reticent.engine.lots import Lot
from reticent.errors import ResourceError
from reticent.prepare.donors import Repair
from reticent.release.plan import Plan
from reticent.release.synth_plan import Synth
from reticent.release.synth_rows import table_of
from reticent.release.synth_table import SynthTable
from reticent.synth.base import Network, SynthNoise

FAILED = (
    "a synthetic table could not be made; nothing is published. Where its method needs a public sample size, see that it is "
    "the number of rows; else resume once memory is free, or plan it anew"
)
Step = Callable[[str], None]


def run_synths(
    plan: Plan,
    engine: Engine,
    lot: Lot | None,
    *,
    repair: Repair,
    noise: SynthNoise,
    step: Step = lambda _: None,
) -> dict[str, SynthTable]:
    """Every synthetic table of the plan, in order; each must have cost what was planned."""
    made: dict[str, SynthTable] = {}
    for synth in plan.synths:
        network = learn(synth, engine, lot, repair=repair, noise=noise, step=step)
        if network.claim != synth.claim:
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="synth")
        made[synth.name] = table_of(synth, network, noise.bits)
        step(synth.name)
    return made


def learn(
    synth: Synth, engine: Engine, lot: Lot | None, *, repair: Repair, noise: SynthNoise, step: Step
) -> Network:
    """The network of one table, in one reading of the rows.

    Guarantee   that of `synth.claim`.
    Adjacency   `synth.spend.neighbours`.
    Theorem     that of the method, on rows of which a respondent owns at most `at_most`.
    Proof       proofs/release/synth_run.md
    Assumes     the method keeps its promise; `repair` deduces from a record itself or from released lines.
    Keeps back  the rows, and why a fit failed.
    """
    network = None
    keys = tuple(axis.key for axis in synth.domain.axes)
    # Whatever a fit says when it fails may hold something read from a row.
    with engine.coded(synth.domain.schema, keys, repair, lot) as counts, suppress(Exception):
        network = synth.method.fit(counts, synth.domain, synth.holes, synth.spend, noise=noise, step=step)
    if network is None:
        raise ResourceError(FAILED, field="synth")
    return network
