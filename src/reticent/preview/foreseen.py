"""What can be said of one product before a row is read, as plain values and for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reticent.release.product import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a preview says of one product.

    **Fields**

    - `key`: its section in the JSON of a preview.
    - `told`: one entry for each statistic or table, in plain values.
    - `lines`: the same for the terminal.
    """

    key: str
    told: Sequence[dict[str, Any]]
    lines: Sequence[Line]
