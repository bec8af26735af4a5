"""Sum one large table into many small ones, and multiply many small ones into it, by way of the same middle tables.

A table over a, b, c, d is summed over d once for all sets without d, and so on down. Multiplying is the same way
back. So the large table is walked through a few times and not once for every set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reticent.synth.base import Floats, Places


@dataclass(slots=True, kw_only=True)
class Middle:
    """One table on the way, its memory, what is handed out from it, and the smaller ones below."""

    axes: Places
    room: Floats = field(repr=False)
    dropped: Places = ()  # sides of the table above that are summed here
    lifted: tuple[int, ...] = ()  # this table's sizes seen from above
    targets: list[tuple[int, Places, Places]] = field(default_factory=list)  # number, sides there, sides here
    below: list["Middle"] = field(default_factory=list)

    def collect(self, tables: Sequence[Floats]) -> None:
        """Write the sums of this table into the targets among `tables`."""
        for number, there, _ in self.targets:
            tables[number][...] = self.room.transpose(there)
        for part in self.below:
            np.add.reduce(self.room, axis=part.dropped, out=part.room)
            part.collect(tables)

    def spread(self, tables: Sequence[Floats], joined: np.ufunc) -> None:
        """Make this table the product, or the sum, of the targets among `tables`."""
        for part in self.below:
            part.spread(tables, joined)
        parts = [part.room.reshape(part.lifted) for part in self.below]
        parts += [tables[number].transpose(here) for number, _, here in self.targets]
        if len(parts) > 1:
            joined(parts[0], parts[1], out=self.room)
        else:
            self.room[...] = parts[0] if parts else joined.identity
        for more in parts[2:]:
            joined(self.room, more, out=self.room)


def middle_tables(axes: Places, shape: Sequence[int], targets: Sequence[tuple[int, Places]]) -> Middle:
    """The way from a table over `axes` (in that order) to numbered targets, each with its own order of axes."""
    made = Middle(axes=axes, room=np.zeros([shape[axis] for axis in axes]))
    left = []
    for number, places in targets:
        if set(places) == set(axes):
            made.targets.append((number, _order(axes, places), _order(places, axes)))
        else:
            left.append((number, places))
    while left:
        # Drop the axis that most targets lack, and with it whatever none of those needs.
        gone = max(axes, key=lambda axis: (sum(axis not in places for _, places in left), shape[axis]))
        group = [target for target in left if gone not in target[1]]
        left = [target for target in left if gone in target[1]]
        made.below.append(_part(axes, shape, group))
    return made


def _order(axes: Places, wanted: Places) -> Places:
    return tuple(axes.index(place) for place in wanted)


def _part(axes: Places, shape: Sequence[int], group: Sequence[tuple[int, Places]]) -> Middle:
    used = {place for _, places in group for place in places}
    part = middle_tables(tuple(axis for axis in axes if axis in used), shape, group)
    part.dropped = tuple(i for i, axis in enumerate(axes) if axis not in used)
    part.lifted = tuple(shape[axis] if axis in used else 1 for axis in axes)
    return part
