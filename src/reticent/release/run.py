"""Carry a plan out on rows: everything between the charge and the document, alike for a release and a rehearsal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from reticent.answer.choose_bins import Weighed
from reticent.answer.parts import Answer
from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.models.fit import SystemModelNoise
from reticent.noise.bits import SystemBits
from reticent.noise.source import SystemNoise
from reticent.plan.plan import Plan
from reticent.release.asks import book_of, check_ran, evaluate, wants_of, weigh_plan
from reticent.release.cells import cell_wants, run_cells
from reticent.release.copies import tally_copies
from reticent.release.document import document
from reticent.release.models import Modelled, fit_models
from reticent.release.synth import run_synths
from reticent.release.synth_table import SynthTable
from reticent.smallcells.table import CellTable
from reticent.synth.noise import SystemSynthNoise

Step = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a plan gave, after the noise."""

    answers: Mapping[str, Answer] = field(repr=False)
    tables: Mapping[str, CellTable] = field(repr=False)
    synths: Mapping[str, SynthTable] = field(repr=False)
    weighed: Weighed | None
    modelled: Modelled

    @property
    def epsilon(self) -> Fraction:
        """What was spent on all of it."""
        spent = sum((answer.epsilon for answer in self.answers.values()), start=self.modelled.epsilon)
        spent += sum((table.epsilon for table in self.tables.values()), start=Fraction(0))
        spent += sum((table.claim.epsilon for table in self.synths.values()), start=Fraction(0))
        return spent + (self.weighed.epsilon if self.weighed else 0)

    def told(
        self,
        plan: Plan,
        *,
        receipt: Mapping[str, Any] | None,
        engine: str,
        beside: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The document of it; without a receipt that of a rehearsal."""
        return document(
            plan,
            self.answers,
            receipt=receipt,
            engine=engine,
            tables=self.tables,
            synths=self.synths,
            weighed=self.weighed,
            modelled=self.modelled,
            beside=beside,
        )


def run_plan(plan: Plan, engine: Engine, lot: Lot | None, *, step: Step = lambda _: None) -> Results:
    """Read the rows and add the noise. Nothing but `Results` comes of it; `step` hears names of the plan alone."""
    noise, bits = SystemNoise(), SystemBits()
    modelled = fit_models(plan, engine, lot, noise=SystemModelNoise(), bits=bits)
    tallies = engine.tally(plan.schema, [*wants_of(plan), *cell_wants(plan)], modelled.repair, lot)
    copied = tally_copies(plan, engine, lot, modelled, bits=bits)
    step("tallied")
    book = book_of(plan, tallies, step=step)
    weighed = weigh_plan(plan, tallies, noise)
    answers = evaluate(plan, tallies, noise, step=step, book=book, weighed=weighed, copied=copied)
    check_ran(plan, answers)
    tables = run_cells(plan, tallies, bits, step=step)
    synths = run_synths(plan, engine, lot, repair=modelled.repair, noise=SystemSynthNoise(), step=step)
    return Results(answers=answers, tables=tables, synths=synths, weighed=weighed, modelled=modelled)
