"""Synthetic tables of a release: a private model for each, and rows that are drawn, completed, decoded and lawful.

Only the learning costs anything. What is drawn comes after the noise.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import floor

from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.errors import ResourceError
from reticent.noise.bits import Bits
from reticent.plan.plan import Plan
from reticent.plan.synth import Synth
from reticent.prepare.repair import Repair
from reticent.release.synth_table import SynthTable
from reticent.synth.base import Model, SynthNoise
from reticent.synth.complete import complete_rows
from reticent.synth.decode import Rows
from reticent.synth.lawful import Cells, lawful_rows
from reticent.synth.rules import Rules


def table_of(synth: Synth, model: Model, bits: Bits) -> SynthTable:
    """The rows that the plan asks for. How many there are does not depend on how many were read."""
    return SynthTable(
        claim=model.claim,
        respondents=max(0, floor(model.total + 0.5)),
        tables=draw_tables(model, synth.rules, synth.rows, synth.copies, bits),
    )


def draw_tables(model: Model, rules: Rules, rows: int, copies: int, bits: Bits) -> tuple[Rows, ...]:
    """One table of codes, or one for each completed copy of the same rows, every row as the rules want it."""

    def drawn(count: int) -> Sequence[Cells]:
        cells = model.draw(count, bits)
        return complete_rows(cells, model.domain, bits, copies) if copies else [cells]

    return lawful_rows(drawn, rules, rows, bits)


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
        model = learn(synth, engine, lot, repair=repair, noise=noise, step=step)
        if model.claim != synth.claim:
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="synth")
        made[synth.name] = table_of(synth, model, noise.bits)
        step(synth.name)
    return made


def learn(
    synth: Synth, engine: Engine, lot: Lot | None, *, repair: Repair, noise: SynthNoise, step: Step
) -> Model:
    """The model of one table, in one reading of the rows.

    Guarantee   that of `synth.claim`.
    Adjacency   `synth.spend.neighbours`.
    Theorem     that of the method, on rows of which a respondent owns at most `at_most`.
    Proof       proofs/release/synth_run.md
    Assumes     the method keeps its promise; `repair` deduces from a record itself or from released lines.
    Keeps back  the rows, and why a fit failed.
    """
    model = None
    keys = tuple(axis.key for axis in synth.domain.axes)
    # Whatever a fit says when it fails may hold something read from a row.
    with engine.coded(synth.domain.schema, keys, repair, lot) as counts, suppress(Exception):
        model = synth.method.fit(counts, synth.domain, synth.holes, synth.spend, noise=noise, step=step)
    if model is None:
        raise ResourceError(FAILED, field="synth")
    return model
