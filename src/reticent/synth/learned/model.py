"""A fitted network with its guarantee: rows to draw, and files of numbers to save. All of it comes after the noise."""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from reticent.engine.protocol import RowFill
from reticent.errors import PlanError
from reticent.noise.bits import Bits
from reticent.privacy.claim import Claim
from reticent.synth.base import Cells, Floats, MissingMethod
from reticent.synth.domain import Domain, uniforms
from reticent.synth.marginals.study import View, plain
from reticent.synth.written import bytes_of, common, sealed

Whole = NDArray[np.int64]

PARAMETERS = "parameters.npy"
BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedModel(ABC):
    """What a learned synthesizer leaves behind. A kind of it says how many numbers it has and how rows are drawn.

    Parameters
    ----------
    domain : the columns and their cells
    holes : what was done about missing values, which says whether they are cells to draw
    parameters : all numbers that were learned, in one list
    total : the noisy number of respondents
    claim : the guarantee
    """

    kind: ClassVar[str]

    domain: Domain
    holes: MissingMethod
    parameters: Floats = field(repr=False)
    total: float
    claim: Claim

    @classmethod
    @abstractmethod
    def size(cls, domain: Domain, holes: MissingMethod) -> int:
        """How many numbers such a model has."""

    @classmethod
    def is_sound(cls, domain: Domain, parameters: Floats) -> bool:
        """Whether numbers that were read from a file can be those of such a model, beyond how many they are."""
        return True

    def fills(self) -> tuple[RowFill, ...]:
        """How rows with missing answers are completed, column after column, each from itself; not every kind can."""
        raise PlanError("cannot complete rows; use another model to impute with", field="impute_model")

    @abstractmethod
    def fill(self, view: View, groups: Whole, bits: Bits) -> None:
        """Write the groups of `view` that are drawn into `groups`, a line for each row."""

    def draw(self, rows: int, bits: Bits) -> Cells:
        """`rows` rows of cells. Costs nothing."""
        if rows < 0:
            raise PlanError("is a whole number from 0 up", field="rows")
        view = plain(self.domain, self.holes)
        made = np.zeros((rows, len(view.sides)), dtype=np.int64)
        for first in range(0, rows, BLOCK):
            self.fill(view, made[first : first + BLOCK], bits)
        cells = [_cells(view, place)[made[:, place]] for place in range(made.shape[1])]
        return np.stack(cells, axis=1).astype(np.int32)

    def files(self) -> dict[str, bytes]:
        """A TOML file that says what it is, and the array of its parameters."""
        data = bytes_of(self.parameters)
        digest = hashlib.sha256(data).hexdigest()
        said = {"kind": self.kind, "missing": str(self.holes), "parameters": digest}
        return sealed({**common(self.domain, self.total, self.claim), **said}, {PARAMETERS: data})


def group_sizes(domain: Domain, holes: MissingMethod) -> list[int]:
    """How many groups every column has, as `plain` makes them; without the arrays, so that too many can be refused."""
    return [axis.size - (holes is not MissingMethod.VALUES) for axis in domain.axes]


def fill_cells_of(domain: Domain, view: View, place: int) -> dict[str, Any]:
    """What a fill of one column knows of its cells: which is missing, that of each group, and the group of `not asked`."""
    side, axis = view.sides[place], domain.axes[place]
    barred = -1 if axis.unasked is None else int(side.into[axis.unasked])
    return {"silence": axis.silence, "cells": _cells(view, place), "barred": barred}


def _cells(view: View, place: int) -> Whole:
    """The cell of every group; each has one, since nothing is merged."""
    return np.asarray(view.sides[place].within.argmax(axis=1), dtype=np.int64)


def drawn(odds: Floats, bits: Bits) -> Whole:
    """One group for every row, in proportion to its odds; uniform numbers are spread evenly over the rows, by lot."""
    n = len(odds)
    even = (np.argsort(uniforms(n, bits)) + uniforms(n, bits)) / max(n, 1)
    reached = np.cumsum(odds, axis=1)
    place = (reached <= even[:, None] * reached[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(place, odds.shape[1] - 1), dtype=np.int64)
