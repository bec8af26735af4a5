"""Waves of a panel in a plan: the `[wave]` section, which wave a release reads and how many a respondent can be in.

What a wave costs, and which waves count, is the ledger's to say (THEORY 16.4, `privacy/ledger/waves.py`). Nothing here or
there looks into the rows: that nobody is in more waves is known from the design of the sample, or not at all.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from reticent.errors import PlanError
from reticent.files import Section, fill
from reticent.privacy.ledger import ChargedWave
from reticent.privacy.ledger.waves import MOST_WAVES


class WaveSection(Section):
    """The `[wave]` section: one wave of a panel, charged to a lifetime budget.

    **Keys**

    - `name`: the name of the wave, by which a ledger knows it.
    - `at_most`: in how many waves one respondent can be, by design of the sample.
    - `of`: how many waves the design has.
    - `again`: the wave was released before, and this release adds to what it cost.
    """

    name: str = Field(min_length=1, max_length=100)
    at_most: int = Field(ge=1, le=MOST_WAVES)
    of: int = Field(ge=1, le=MOST_WAVES)
    again: bool = False


def read_wave(raw: Mapping[str, Any] | None, *, is_piece: bool) -> ChargedWave | None:
    """The wave that a plan reads; None where it says nothing of waves, and is charged in full."""
    if raw is None:
        return None
    section = fill(WaveSection, raw, error=PlanError, at="wave")
    if is_piece:
        raise PlanError(
            "does not go with [partition]: a respondent of several waves can be in another piece in each; leave one out",
            field="wave",
        )
    return ChargedWave(name=section.name, at_most=section.at_most, of=section.of, again=section.again)


def wave_words(wave: ChargedWave) -> str:
    """What a preview says of it."""
    return (
        f"wave {wave.name}: over a lifetime the {wave.at_most} most costly of {wave.of} waves count, since by design of the "
        f"sample a respondent is in at most {wave.at_most}; the office's word, which no row is read to check"
    )
