"""What every answer needs: the codebook, the tallies, who is protected, the noise, and the planning values."""

from dataclasses import dataclass, field

from reticent.engine.results import Tallies
from reticent.noise.source import Noise
from reticent.prepare.donors import NO_REPAIR, Repair
from reticent.query.rows import Subpopulation
from reticent.schema import Number, Schema
from reticent.sensitivity.neighbours import Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    schema: Schema
    neighbours: Neighbours
    tallies: Tallies = field(repr=False)
    noise: Noise = field(repr=False)
    rows: int | None = None
    repair: Repair = NO_REPAIR


def weight_of(among: Subpopulation, schema: Schema) -> Number | None:
    return schema.weight(among.weight, field="weight") if among.weight else None
