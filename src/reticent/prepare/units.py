"""Primary sampling units as a codebook declares them: who was drawn together, paired and dealt into groups by public rules.

Units come from the codebook's levels, never from the rows, so a unit in which nobody answered is there and adds nothing.
Pairs are neighbours in the order of the codebook, within strata; those left over are paired across neighbouring strata.
Pairs are dealt into groups, with signs, by the digest of a public text. THEORY 13.2.
"""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from reticent.errors import PlanError
from reticent.schema import Levels, Schema

FEW_PAIRS, MANY_PAIRS = 25, 50
"""Into so many groups pairs are dealt: into the second number where there are at least twice as many pairs."""
FEW_UNITS = 30
"""With fewer units the degrees of freedom are too few for an interval to be relied on."""
MOST_UNITS = 100_000

Pair = tuple[int, int | None]


@dataclass(frozen=True, kw_only=True)
class SamplingUnits:
    """The primary sampling units in public order, each with the number of its stratum.

    `cells` has their places in the table over the levels of `columns`, the last fastest. `name` is the survey's, and enters
    the digest by which pairs are dealt. Units that are groups of respondents, who were not drawn together, are `is_dealt`.
    """

    columns: tuple[str, ...]
    strata: tuple[int, ...]
    cells: tuple[int, ...]
    name: str = ""
    is_dealt: bool = False

    def __post_init__(self) -> None:
        if not 2 <= len(self.strata) <= MOST_UNITS:
            raise PlanError(
                f"needs from 2 to {MOST_UNITS} primary sampling units in the codebook, it has {len(self.strata)}; "
                "list the units as levels of one column, with `strata` beside them",
                field="design",
            )

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Neighbours within strata, then the left over across strata; of an odd number the last stands alone."""
        paired: list[Pair] = []
        left: list[int] = []
        for members in self._members():
            paired += list(zip(members[::2], members[1::2], strict=False))
            left += members[len(members) // 2 * 2 :]
        paired += list(zip(left[::2], left[1::2], strict=False))
        return (*paired, *((one, None) for one in left[len(left) // 2 * 2 :]))

    @property
    def groups(self) -> int:
        """Into how many groups pairs are dealt where the plan does not say."""
        many = len(self.pairs) >= 2 * MANY_PAIRS
        return min(len(self.pairs), MANY_PAIRS if many else FEW_PAIRS)

    @property
    def single(self) -> int:
        """Strata with one unit, which is compared with one of another stratum."""
        return sum(len(members) == 1 for members in self._members())

    def dealt(self, groups: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every unit the number of its group, and its sign: +1 or -1, opposite within a pair."""
        if not 1 <= groups <= len(self.pairs):
            raise PlanError(
                f"is {groups}, but there are {len(self.pairs)} pairs of units; take at most as many",
                field="design.groups",
            )
        marks = [sha256(f"{self.name}|pair|{place}".encode()).digest() for place in range(len(self.pairs))]
        order = sorted(range(len(marks)), key=marks.__getitem__)
        group, sign = np.zeros(len(self.strata), np.int64), np.zeros(len(self.strata), np.int64)
        for place, number in enumerate(order):
            one, other = self.pairs[number]
            turn = 1 if marks[number][-1] & 1 else -1
            group[one], sign[one] = place % groups, turn
            if other is not None:
                group[other], sign[other] = place % groups, -turn
        return group, sign

    def _members(self) -> list[list[int]]:
        """The units of each stratum, in public order."""
        found: dict[int, list[int]] = {}
        for unit, stratum in enumerate(self.strata):
            found.setdefault(stratum, []).append(unit)
        return [found[stratum] for stratum in sorted(found)]


def units_of(schema: Schema) -> SamplingUnits | None:
    """The units that the codebook declares; None where it has no primary sampling unit."""
    psu, stratum = _with_role(schema, "psu"), _with_role(schema, "stratum")
    if psu is None:
        return None
    if psu.drawn and stratum is None:
        raise PlanError(
            f"columns.{psu.name}.drawn goes with a column of role 'stratum'; declare it", field="design"
        )
    if psu.strata or stratum is None:
        named = psu.strata or ("",) * len(psu.levels)
        order = {each: place for place, each in enumerate(dict.fromkeys(named))}
        return SamplingUnits(
            columns=(psu.name,),
            strata=tuple(order[each] for each in named),
            cells=tuple(range(len(named))),
            name=schema.name,
            is_dealt=bool(psu.dealt),
        )
    wide = len(psu.levels)
    if len(stratum.levels) * wide > MOST_UNITS:
        raise PlanError(
            f"{stratum.name} crossed with {psu.name} makes more than {MOST_UNITS} units; if units have names of their "
            f"own, list under columns.{psu.name}.strata the stratum of each",
            field="design",
        )
    drawn = psu.drawn or (wide,) * len(stratum.levels)
    if len(drawn) != len(stratum.levels):
        raise PlanError(
            f"columns.{psu.name}.drawn needs a number for each of the {len(stratum.levels)} levels of {stratum.name}",
            field="design",
        )
    places = [(each, number) for each, count in enumerate(drawn) for number in range(count)]
    return SamplingUnits(
        columns=(stratum.name, psu.name),
        strata=tuple(each for each, _ in places),
        cells=tuple(each * wide + number for each, number in places),
        name=schema.name,
        is_dealt=bool(psu.dealt),
    )


def _with_role(schema: Schema, role: str) -> Levels | None:
    found = [each for each in schema.columns.values() if each.role == role and isinstance(each, Levels)]
    if len(found) > 1:
        raise PlanError(
            f"{found[0].name} and {found[1].name} both have the role {role!r} in the codebook; keep it on one",
            field="design",
        )
    return found[0] if found else None
