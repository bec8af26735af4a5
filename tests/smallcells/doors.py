"""The doors at which small cells meet their noise, held shut: what goes in is noted, what comes out was fixed before.

Along one and the same transcript of noisy numbers, everything visible must be the same for neighbours; what was
noted must be no further apart than the noise was scaled for.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.refine.pivot import Pivot
from reticent.sensitivity.bounds import Smooth
from reticent.smallcells import pooled, run, smooth, theilsen
from reticent.smallcells.readings import CellReadings


@dataclass
class Doors:
    """What was handed to the noise, in order: the kind of door, public parameters, private numbers."""

    noted: list[tuple[str, tuple[Any, ...], list[float]]] = field(default_factory=list)

    def note(self, kind: str, public: tuple[Any, ...], private: Any) -> None:
        self.noted.append((kind, public, [float(each) for each in private]))


def shut(monkeypatch: pytest.MonkeyPatch) -> Doors:
    """Hold every door of the formal methods shut."""
    doors = Doors()

    def lomax(answers: Any, *, bounds: Any, beta: Fraction, epsilon: Fraction, bits: Any) -> list[int]:
        doors.note("estimates", (beta, epsilon, len(answers)), answers)
        doors.note("log bounds", (beta,), np.log(bounds))
        return [500_000 + 7 * place for place in range(len(answers))]

    def levels(self: Any, bounds: Any, bits: Any) -> list[int]:
        law: Pivot = self.pivot
        heights = [law.height(Smooth(bound=Fraction(float(b)), beta=self.beta)) for b in bounds]
        doors.note("levels", (law.scale, law.sensitivity.bound), heights)
        return [3 * place - 900 for place in range(len(bounds))]

    def counts(sizes: Any, *, epsilon: Fraction, bits: Any) -> list[int]:
        doors.note("counts", (epsilon,), sizes)
        return [40 + place for place in range(len(sizes))]

    def chi_of(self: Any, told: int) -> int:
        doors.note("chi", (self.chi_scale,), [told])
        return 2_000_000

    def noised(self: Any, read: CellReadings, *, bits: Any) -> pooled.PooledTable:
        doors.note("pooled estimates", (self.aim,), read.steps)
        return real(self, replace(read, steps=np.full(read.cells, 400_000, object)), bits=bits)

    def chosen(self: Any, points: Any, *, bits: Any) -> CellReadings:
        return CellReadings(sizes=points.sizes, steps=np.full(points.cells, 5_000, object))

    def told(self: Any, read: CellReadings) -> theilsen.TheilSenTable:
        doors.note("choice", (self.rate, read.cells), [])
        return theilsen.TheilSenTable(asked=self, steps=read.steps.tolist())

    real = pooled.PooledCells.noised
    monkeypatch.setattr(smooth, "add_lomax_many", lomax)
    monkeypatch.setattr(smooth.SmoothCells, "_levels", levels)
    monkeypatch.setattr(run, "noisy_counts", counts)
    monkeypatch.setattr(pooled, "noisy_counts", counts)
    monkeypatch.setattr(pooled, "draw_laplace", lambda n, *, scale, bits: [0] * n)
    monkeypatch.setattr(pooled, "draw_laplace_each", lambda scales, *, bits: [0] * len(scales))
    monkeypatch.setattr(pooled.PooledCells, "chi_of", chi_of)
    monkeypatch.setattr(pooled.PooledCells, "noised", noised)
    monkeypatch.setattr(theilsen.TheilSenCells, "read", chosen)
    monkeypatch.setattr(theilsen.TheilSenCells, "told", told)
    return doors


def violations(one: Doors, other: Doors) -> list[str]:
    """In words, what tells two runs apart by more than the noise was made for: one respondent, one record."""
    if [note[:2] for note in one.noted] != [note[:2] for note in other.noted]:
        return ["other calls or other parameters"]
    found, before = [], np.zeros(0)
    for (kind, public, here), (_, _, there) in zip(one.noted, other.noted, strict=True):
        moves = np.abs(np.array(here) - np.array(there))
        if np.count_nonzero(moves) > 1:
            found.append(f"{kind}: one respondent moved {np.count_nonzero(moves)} cells")
        most = {"log bounds": public[0], "levels": public[-1], "counts": 1, "chi": pooled.FINENESS}.get(kind)
        if most is not None and moves.max(initial=0) > float(most) * (1 + 1e-12):
            found.append(f"{kind} moved {moves.max()}, declared {most}")
        if kind == "log bounds" and (before > np.exp(np.minimum(here, there))).any():
            found.append("an estimate moved further than its bound")
        before = moves
    return found
