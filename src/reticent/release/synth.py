"""Synthetic tables of a release: a private model for each, and rows that are drawn, completed, decoded and lawful.

Only the learning costs anything. What is drawn comes after the noise.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, ClassVar

from reticent.engine.protocol import Engine
from reticent.engine.sql.sampling import Lot
from reticent.errors import ResourceError
from reticent.noise.bits import Bits
from reticent.plan.plan import Plan
from reticent.plan.synth import PlannedAnswer, Synth, SyntheticTables, imputed_columns
from reticent.prepare.repair import Repair
from reticent.privacy.claim import Claim
from reticent.refine.total import DesignFactor, released_design_factor
from reticent.release.product import Document, PlanRun, Producer, ReleasedSection, Result
from reticent.release.synth_answers import answers_csv, direct_answer_section
from reticent.release.synth_table import SynthTable, measured_section, synths_section, to_csv, to_parquet
from reticent.synth.answer import DirectAnswer, answered
from reticent.synth.base import FitTask, Model, SynthNoise, in_brief
from reticent.synth.bootstrap import bootstrap
from reticent.synth.direct import MeasuredTables
from reticent.synth.domain import Rows
from reticent.synth.lawful import Cells, complete_rows, lawful_rows
from reticent.synth.lists import Lists
from reticent.synth.network import Network
from reticent.synth.rules import Rules
from reticent.synth.spending import SystemSynthNoise


def table_of(synth: Synth, model: Model, bits: Bits, *, released: DesignFactor | None = None) -> SynthTable:
    """The rows that the plan asks for. How many there are does not depend on how many were read.

    `released` is the survey's design factor as the release tells it, for the answers.
    """
    lists = model.lists if isinstance(model, Network) else None
    tables = (
        *draw_tables(model, synth.rules, synth.rows, synth.copies, bits),
        *bootstrap_tables(model, synth.rules, synth.rows, synth.bootstrap, bits),
    )
    found = answers_of(synth.answers, lists, tables[0], released=released)
    answers = [direct_answer_section(*each) for each in found]
    return SynthTable(
        claim=model.claim,
        respondents=max(0, floor(model.total + 0.5)),
        tables=tables,
        told={
            **({"bootstrap": synth.bootstrap} if synth.bootstrap else {}),
            **({"answers": answers} if answers else {}),
            **measured_section(lists),
        },
    )


def answers_of(
    planned: Sequence[PlannedAnswer],
    lists: Lists | None,
    rows: Rows,
    *,
    released: DesignFactor | None = None,
) -> Iterator[tuple[str, DirectAnswer]]:
    """By name, the answers to a plan's questions; coefficients of one regression have its name in common."""
    tables = MeasuredTables(lists) if lists is not None and planned else None
    for each in planned:
        found = answered(
            each.question,
            tables,
            lambda: rows,
            level=each.level,
            design_effect=each.design_effect,
            released=released,
        )
        yield from ((each.name, answer) for answer in found)


def draw_tables(model: Model, rules: Rules, rows: int, copies: int, bits: Bits) -> tuple[Rows, ...]:
    """One table of codes, or one for each completed copy of the same rows, every row as the rules want it."""

    def drawn(count: int) -> Sequence[Cells]:
        cells = model.draw(count, bits)
        return complete_rows(cells, model.domain, bits, copies) if copies else [cells]

    return lawful_rows(drawn, rules, rows, bits)


def bootstrap_tables(model: Model, rules: Rules, rows: int, copies: int, bits: Bits) -> Iterator[Rows]:
    """Tables of the same size from models as other surveys and other noise might have left. After the noise."""
    if copies and isinstance(model, Network):
        for again in bootstrap(model, copies, bits):
            yield draw_tables(again, rules, rows, 0, bits)[0]


FAILED = (
    "a synthetic table could not be made; nothing is published. Where its method needs a public sample size, see that it is "
    "the number of rows; else resume once memory is free, or plan it anew"
)
Step = Callable[[str], None]


def run_synths(
    synths: Sequence[Synth],
    engine: Engine,
    lot: Lot | None,
    *,
    repair: Repair,
    noise: SynthNoise,
    step: Step = lambda _: None,
    released: DesignFactor | None = None,
    imputed: Collection[str] = (),
) -> dict[str, SynthTable]:
    """Every synthetic table of the plan, in order; each must have cost what was planned.

    `imputed` are columns that the plan fills before rows are counted: answers about them have no interval.
    """
    made: dict[str, SynthTable] = {}
    for synth in synths:
        model = learn(synth, engine, lot, repair=repair, noise=noise, step=step)
        if model.claim != synth.claim:
            raise ResourceError("was planned otherwise than it ran; nothing is published", field="synth")
        told = _with_imputed(model, imputed)
        made[synth.name] = table_of(synth, told, noise.bits, released=released)
        step(synth.name)
    return made


def _with_imputed(model: Model, imputed: Collection[str]) -> Model:
    """The model, whose noisy tables say which of its columns were filled before they were counted."""
    if not isinstance(model, Network) or model.lists is None:
        return model
    filled = tuple(name for name in model.domain.columns if name in imputed)
    return replace(model, lists=replace(model.lists, filled=filled))


def learn(
    synth: Synth, engine: Engine, lot: Lot | None, *, repair: Repair, noise: SynthNoise, step: Step
) -> Model:
    """The model of one table, in one reading of the rows.

    Guarantee   that of `synth.claim`.
    Adjacency   `synth.spend.neighbours`.
    Theorem     that of the method, on rows of which a respondent owns at most `at_most`.
    Proof       proofs/release/synth_run.md
    Assumes     the method keeps its promise; `repair` deduces from a record itself or from released lines.
    Keeps back  the rows, and why a fit failed.
    """
    model = None
    # Whatever a fit says when it fails may hold something read from a row.
    with engine.coded(synth.domain.schema, synth.keys, repair, lot) as counts, suppress(Exception):
        model = synth.method.fit(
            FitTask(
                counts,
                synth.domain,
                synth.holes,
                synth.spend,
                noise=noise,
                step=step,
                public=synth.public,
            )
        )
    if model is None:
        raise ResourceError(FAILED, field="synth")
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntheticResult(Result):
    """The synthetic tables by name."""

    asked: SyntheticTables
    plan: Plan
    tables: Mapping[str, SynthTable] = field(repr=False)

    @property
    def epsilon(self) -> Fraction:
        return sum((table.claim.epsilon for table in self.tables.values()), start=Fraction(0))

    @property
    def claims(self) -> Sequence[Claim]:
        return [self.tables[synth.name].claim for synth in self.asked.tables]

    @property
    def keys(self) -> Sequence[str]:
        return [name for synth in self.asked.tables for name in synth.domain.columns]

    def document(self) -> dict[str, Any]:
        return synths_section(self.asked.tables, self.tables, self.plan.release_id)


FEW = 20


def small_of(synth: Synth) -> Synth:
    """What is tried of a table on nobody, before anything is charged."""
    return replace(synth, rows=min(synth.rows, FEW), method=in_brief(synth.method))


class SyntheticProducer(Producer[SyntheticTables]):
    """Learns and draws every synthetic table, in order, each in a reading of the rows of its own."""

    __slots__ = ()

    is_tried_whole: ClassVar[bool] = False

    @property
    def steps(self) -> int:
        return sum(synth.rounds for synth in self.asked.tables)

    @property
    def endings(self) -> tuple[str, ...]:
        has_answers = any(synth.answers for synth in self.asked.tables)
        return (
            *_endings(sum(synth.tables for synth in self.asked.tables)),
            *((ANSWERS,) if has_answers else ()),
        )

    def small(self) -> SyntheticTables:
        """A few rows, and of a training one step: more are more of the same."""
        return SyntheticTables(tables=tuple(map(small_of, self.asked.tables)))

    def run(self, on: PlanRun) -> SyntheticResult:
        tables = run_synths(
            self.asked.tables,
            on.engine,
            on.lot,
            repair=on.repair,
            noise=SystemSynthNoise(),
            step=on.step,
            released=_released_factor(on) if any(each.answers for each in self.asked.tables) else None,
            imputed=imputed_columns(on.plan),
        )
        return SyntheticResult(asked=self.asked, plan=on.plan, tables=tables)


def _released_factor(on: PlanRun) -> DesignFactor | None:
    """The survey's design factor as the release will tell it, so that whoever asks it later is told the same interval."""
    told = {key: section for done in on.results for key, section in done.grounds().items()}
    return released_design_factor(told) or on.plan.design.factor("")


WRITERS: Mapping[str, Callable[[Document, int], bytes]] = {".csv": to_csv, ".parquet": to_parquet}


def _endings(count: int) -> dict[str, Callable[[Document], bytes]]:
    """By ending: `.1.synth.csv`, `.1.synth.parquet`, and so on for `count` tables."""
    return {
        f".{number}.synth{ending}": partial(_file, number=number, write=write)
        for number in range(1, count + 1)
        for ending, write in WRITERS.items()
    }


def _file(document: Document, *, number: int, write: Callable[[Document, int], bytes]) -> bytes:
    tables = [(table, copy) for table in document["synth"] for copy in range(len(table["tables"]))]
    return write(*tables[number - 1])


ANSWERS = ".answers.csv"


def _files(document: Document) -> dict[str, Callable[[Document], bytes]]:
    made = _endings(sum(len(table["tables"]) for table in document["synth"]))
    has_answers = any(table.get("answers") for table in document["synth"])
    return {**made, **({ANSWERS: answers_csv} if has_answers else {})}


SYNTH = ReleasedSection(files=_files)
