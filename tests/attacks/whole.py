"""The replay of whole releases through the engine: pieces, models with draws, copies, small cells and synthetic rows at once.

What `run_plan` takes from the system is held fast: one transcript stands for all noise, the doors of small cells are shut, and
a row's own draws follow from its answers. By those draws neighbours are set side by side: a row that both surveys hold has the
same ones in both, as the proof of filling says it may.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.engine.sql.predict import DRAWS, HELD, NUMBER, Drawn
from reticent.engine.sql.sampling import Lot
from reticent.noise.bits import Bits
from reticent.plan.plan import Plan
from reticent.prepare.repair import FINE, WHOLE, Chances
from reticent.refine import pivot
from reticent.release import models as model_fit
from reticent.release import regression as lines_told
from reticent.release import run as carry
from reticent.release import synth as synth_run
from reticent.release.cells import cells_csv
from reticent.release.regression import regression_csv
from reticent.release.release import Release as Published
from reticent.release.run import Results, run_plan
from reticent.release.synth_table import to_csv
from tests.attacks.replay import violations
from tests.doubles import Call
from tests.models.doubles import FrozenModelNoise
from tests.noise.seeded import SeededBits
from tests.smallcells import doors
from tests.tables import Row, arrow

WIDTHS = lru_cache(100_000)(pivot.ratio_half_width)
"""Half-widths are functions of public numbers: each is computed once."""

KEY = "ab" * 32
"""The key of every partition here. Whoever knows it must learn nothing more than from the piece itself."""


@dataclass
class FrozenWhole(FrozenModelNoise):
    """One transcript for every kind of noise that a release meets."""

    bits: Bits = field(default_factory=lambda: SeededBits(5))

    def choose(self, scores: Sequence[int], *, sensitivity: int, epsilon: Fraction) -> int:
        return self._meet("select", tuple(scores), sensitivity, epsilon)[0]


@dataclass(frozen=True)
class Run:
    """What met the noise, what came back, what small cells handed over, what a bar heard, and what was seen."""

    calls: tuple[Call, ...]
    outputs: tuple[tuple[int, ...], ...]
    doors: doors.Doors
    seen: bytes


Way = Callable[[Plan, DuckDBEngine, Lot | None], bytes]
"""From rows in an engine to all that is visible."""


def ours(plan: Plan, engine: DuckDBEngine, lot: Lot | None) -> bytes:
    """Everything a reader or a watcher is given: the steps of the bar, the document, and every file of the release."""
    heard: list[str] = []
    done = run_plan(plan, engine, lot, step=heard.append)
    return "\n".join(heard).encode() + visible(plan, done)


def visible(plan: Plan, done: Results) -> bytes:
    release = Published(done.to_document(plan, receipt={"entry": 2}, engine="engine"))
    rows = [to_csv(table, copy) for table, copy in _tables(release)]
    files = (cells_csv(release.document), regression_csv(release.document))
    return b"\n".join([release.to_bytes(), release.to_csv(), *files, *rows])


def _tables(release: Published) -> Iterator[tuple[Mapping[str, Any], int]]:
    for table in release.document.get("synth", []):
        yield from ((table, copy) for copy in range(len(table["tables"])))


def run(plan: Plan, rows: Sequence[Row], along: Sequence[tuple[int, ...]] = (), way: Way = ours) -> Run:
    """One release along a transcript."""
    noise = FrozenWhole(prescribed=along)
    lot = plan.partition.lot(KEY) if plan.partition else None
    engine = DuckDBEngine(open_frame(arrow(rows, plan.schema)), threads=1)
    try:
        with held_fast(noise) as shut:
            engine.check(plan.schema)
            seen = way(plan, engine, lot)
    finally:
        engine.close()
    return Run(tuple(noise.calls), tuple(noise.outputs), shut, seen)


@contextmanager
def held_fast(noise: FrozenWhole) -> Iterator[doors.Doors]:
    """Every source of chance of a release in our hands."""
    with pytest.MonkeyPatch.context() as patch:
        for home, name in (
            (carry, "SystemNoise"),
            (model_fit, "SystemModelNoise"),
            (lines_told, "SystemModelNoise"),
            (synth_run, "SystemSynthNoise"),
        ):
            patch.setattr(home, name, lambda: noise)
        patch.setattr(carry, "SystemBits", lambda: SeededBits(6))
        patch.setattr(Drawn, "draw", _Coupled().draw)
        patch.setattr(pivot, "ratio_half_width", WIDTHS)
        yield doors.shut(patch)


class _Coupled:
    """Draws by a row's own answers, its number among equal rows, the line, and how often was drawn before."""

    def __init__(self) -> None:
        self.times = 0

    @property
    def draw(self) -> Callable[[Drawn], None]:
        def drawn(this: Drawn) -> None:
            self.times += 1
            found = this.tables.table(f'SELECT * FROM "{HELD}"')  # type: ignore[attr-defined]
            names = _names(found)
            made = {NUMBER: found[NUMBER]}
            for place in this.places:
                kind = isinstance(this.lines[place], Chances)
                made[f"z{place}"] = pa.array(
                    [_number((self.times, place, *n), kind) for n in names], pa.int32()
                )
            this.tables.give(DRAWS, pa.table(made))

        return drawn


def _names(held: pa.Table) -> list[tuple[Any, ...]]:
    """A row's codes, and its number among rows that agree in them: those are alike for every purpose."""
    codes = [name for name in held.column_names if name.startswith("c_")]
    met: dict[tuple[Any, ...], int] = {}
    names = []
    for row in zip(*(held[name].to_pylist() for name in codes), strict=True):
        met[row] = met.get(row, 0) + 1
        names.append((*row, met[row]))
    return names


def _number(name: tuple[Any, ...], is_even: bool) -> int:
    """A uniform number for chances, a normal one for lines, in their steps."""
    seed = int.from_bytes(hashlib.sha256(repr(name).encode()).digest()[:8])
    dice = np.random.default_rng(seed)
    return int(dice.integers(WHOLE)) if is_even else round(dice.standard_normal() * (1 << FINE))


def apart(one: Run, other: Run) -> list[str]:
    """What tells two runs along one transcript apart."""
    return violations(one, other) + doors.violations(one.doors, other.doors)  # type: ignore[arg-type]


def faults(
    plan: Plan,
    rows: Sequence[Row],
    others: Sequence[Sequence[Row]],
    way: Way = ours,
    *,
    back: int | None = None,
) -> Iterator[str]:
    """What tells neighbours apart, one by one; for the first `back` of them, or all, along their own transcripts, too."""
    here = run(plan, rows, way=way)
    for place, other in enumerate(others):
        yield from apart(here, run(plan, other, here.outputs, way))
        if back is None or place < back:
            there = run(plan, other, way=way)
            yield from apart(there, run(plan, rows, there.outputs, way))
