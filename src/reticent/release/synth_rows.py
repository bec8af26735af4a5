"""From a private network to the rows of a table: drawn, completed, decoded and lawful. All of it comes after the noise."""

from collections.abc import Sequence
from math import floor

from reticent.noise.bits import Bits
from reticent.release.synth_plan import Synth
from reticent.release.synth_table import SynthTable
from reticent.synth.base import Network
from reticent.synth.completing import complete_rows
from reticent.synth.decode import Rows
from reticent.synth.lawful import Cells, lawful_rows
from reticent.synth.network import draw
from reticent.synth.ruled import Rules


def table_of(synth: Synth, network: Network, bits: Bits) -> SynthTable:
    """The rows that the plan asks for. How many there are does not depend on how many were read."""
    return SynthTable(
        claim=network.claim,
        respondents=max(0, floor(network.total + 0.5)),
        tables=draw_tables(network, synth.rules, synth.rows, synth.copies, bits),
    )


def draw_tables(network: Network, rules: Rules, rows: int, copies: int, bits: Bits) -> tuple[Rows, ...]:
    """One table of codes, or one for each completed copy of the same rows, every row as the rules want it."""

    def drawn(count: int) -> Sequence[Cells]:
        cells = draw(network, count, bits)
        return complete_rows(cells, network.domain, bits, copies) if copies else [cells]

    return lawful_rows(drawn, rules, rows, bits)
