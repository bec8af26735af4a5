"""Synthetic tables from rows to documents, through the real engine: nothing but noisy answers tells neighbours apart."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from reticent.engine import coded
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError, ReticentError
from reticent.plan import plan as plan_file
from reticent.plan.plan import Plan
from reticent.privacy.claim import Change
from reticent.release import synth as synth_run
from reticent.release.synth import run_synths
from reticent.release.synth_table import synths_section, to_csv
from reticent.synth.base import MissingMethod
from tests.attacks.people import ORDINARY, Person, person
from tests.attacks.synth_worlds import METHODS, allows, within
from tests.release.synthetic import plan
from tests.synth.standins import FrozenSynthNoise, Met
from tests.tables import ADD, REPLACE, arrow, book, synths_of, with_synths

ROWS = 9
BASE = ORDINARY[:ROWS]
LOTS = np.random.default_rng(3).random(64)
MARKS = ("canary", "471104711047", "123456789012.5")
"""No digest and no packed row says so much by chance; of four digits some do."""
CANARY = person(MARKS[0], int(MARKS[1]), float(MARKS[2]), 1)
SOME = [CANARY, person("f", 14, float("nan"), 1), person(None, None, None, None)]
"""One outside the codebook in every column, a child who was not asked and answered, and one who said nothing."""


@pytest.fixture(autouse=True)
def draws_by_place(monkeypatch) -> None:
    """Rows fill their cells by their place among the silent: who comes last leaves the draws of others alone."""
    monkeypatch.setattr(coded, "_uniforms", lambda n, bits: LOTS[:n])


@cache
def planned(change: str, holes: MissingMethod) -> Plan:
    """Every method that can promise this, a section each, fitted quickly."""
    wanted = {"missing": holes.value, "rows": 12, "bins": 4}
    some = [
        m
        for m in METHODS
        if m.name != "privbayes-printed" or (change == REPLACE and holes is MissingMethod.MEAN)
    ]
    made = plan(
        *({"name": method.name, "method": method.name, **wanted} for method in some),
        codebook=book(sample_size=ROWS) if change == REPLACE else book(),
        protect={"change": change},
    )
    assert all(allows(method, holes, each.spend) for method, each in zip(some, synths_of(made), strict=True))
    swapped = zip(synths_of(made), some, strict=True)
    return with_synths(made, [replace(synth, method=method) for synth, method in swapped])


@dataclass(frozen=True)
class Run:
    """What met the noise, what came back, and all that a reader would be given."""

    met: tuple[Met, ...]
    given: tuple[tuple[int, ...], ...]
    seen: str


def released(wanted: Plan, people: Sequence[Person], along: Sequence[tuple[int, ...]] = ()) -> Run:
    noise = FrozenSynthNoise(script=along)
    engine = DuckDBEngine(open_frame(arrow(people, wanted.schema)), threads=1)
    try:
        engine.check(wanted.schema)
        made = run_synths(synths_of(wanted), engine, None, repair=wanted.repair, noise=noise)
    finally:
        engine.close()
    told = synths_section(synths_of(wanted), made, wanted.release_id)
    seen = json.dumps([told, *(to_csv(table).decode().splitlines() for table in told["synth"])])
    return Run(tuple(noise.met), tuple(noise.given), seen)


def violations(wanted: Plan, people: Sequence[Person], others: Sequence[Sequence[Person]]) -> set[str]:
    here, found = released(wanted, people), set()
    for other in others:
        there = released(wanted, other, here.given)
        if [met.parameters for met in there.met] != [met.parameters for met in here.met]:
            found.add("other calls")
        elif not all(within(a, b) for a, b in zip(here.met, there.met, strict=True)):
            found.add("moved")
        if there.seen != here.seen:
            found.add("seen")
        if any(word in there.seen for word in MARKS):
            found.add("canary")
    return found


# covers T06 T10 T11 T12 T20 T27 R02
@pytest.mark.parametrize(
    "holes", [MissingMethod.COMPLETE, MissingMethod.MODEL, MissingMethod.AVAILABLE, MissingMethod.VALUES]
)
def test_a_respondent_more_or_less_is_not_seen(holes: MissingMethod) -> None:
    """Three strangers, one record less, and nobody at all against one: the same rows, as many as planned, no canary."""
    wanted = planned(ADD, holes)
    assert violations(wanted, BASE, [[*BASE, each] for each in SOME] + [BASE[:-1]]) == set()
    assert violations(wanted, [], [[CANARY]]) == set()


# covers T20 T27
@pytest.mark.parametrize("holes", [MissingMethod.MEAN, MissingMethod.VALUES])
def test_a_respondent_who_answers_otherwise_is_not_seen(holes: MissingMethod) -> None:
    """The printed PrivBayes among them, where it can promise: the codebook says how many rows there are."""
    wanted = planned(REPLACE, holes)
    assert violations(wanted, BASE, [[*BASE[:-1], each] for each in SOME]) == set()


# --- twins on the way from rows to documents ------------------------------------------------------------------------


def test_bins_from_the_data_are_caught(monkeypatch) -> None:
    """The naive twin puts its bins between the smallest and the largest answer, before anything is paid for."""
    honest = synth_run.learn

    def binned(synth: Any, engine: Any, lot: Any, **given: Any) -> Any:
        with engine.coded(synth.domain.schema, [axis.key for axis in synth.domain.axes]) as counts:
            (ages,) = counts.count([(1,)])
        top = int(np.flatnonzero(ages[:4]).max(initial=0))
        starts = tuple(int(x) for x in np.linspace(0, 25 * (top + 1), 5)[:-1].astype(int))
        axes = list(synth.domain.axes)
        axes[1] = replace(axes[1], key=replace(axes[1].key, starts=starts))
        return honest(replace(synth, domain=replace(synth.domain, axes=tuple(axes))), engine, lot, **given)

    wanted = planned(ADD, MissingMethod.AVAILABLE)
    wanted = with_synths(wanted, synths_of(wanted)[:1])
    young = [person("f", age, 1, 1) for age in (3, 15, 30, 44, 30, 15)]
    others = [[*young, person("f", 99, 1, 1)]]
    assert violations(wanted, young, others) == set()
    monkeypatch.setattr(synth_run, "learn", binned)
    assert violations(wanted, young, others)


def test_as_many_rows_as_were_read_are_caught(monkeypatch) -> None:
    """The naive twin draws a row for every respondent. A release that holds other than the planned rows is not whole."""
    honest, read = synth_run.learn, []

    def counted(synth: Any, engine: Any, lot: Any, **given: Any) -> Any:
        with engine.coded(synth.domain.schema, [axis.key for axis in synth.domain.axes]) as counts:
            read.append(int(counts.count([()])[0]))
        return honest(synth, engine, lot, **given)

    honest_table = synth_run.table_of
    monkeypatch.setattr(synth_run, "learn", counted)
    monkeypatch.setattr(
        synth_run,
        "table_of",
        lambda synth, *given, **more: honest_table(replace(synth, rows=read[-1]), *given, **more),
    )
    wanted = planned(ADD, MissingMethod.AVAILABLE)
    with pytest.raises(ReticentError, match="not whole"):
        released(with_synths(wanted, synths_of(wanted)[:1]), BASE)


def test_a_fit_that_stops_at_a_strange_answer_is_caught(monkeypatch) -> None:
    """The naive twin refuses a table without a complete row: one respondent decides whether there is a release."""
    wanted = planned(ADD, MissingMethod.COMPLETE)
    wanted = with_synths(wanted, synths_of(wanted)[:1])
    method = synths_of(wanted)[0].method
    honest = type(method).fit

    def strict(self: Any, task: Any) -> Any:
        if not task.counts.complete().count([()])[0]:
            raise ValueError("no complete row")
        return honest(self, task)

    silent = [SOME[-1]] * 3
    assert violations(wanted, silent, [[*silent, person("f", 30, 1, 1)]]) == set()
    monkeypatch.setattr(type(method), "fit", strict)
    released(wanted, [*silent, person("f", 30, 1, 1)])
    with pytest.raises(synth_run.ResourceError):
        released(wanted, silent)


# --- pieces ---------------------------------------------------------------------------------------------------------


def naive_partition(patch: pytest.MonkeyPatch) -> None:
    """The naive twin tells methods the size of the whole survey, whatever piece they are handed."""
    patch.setattr(plan_file, "replace", lambda schema, **_: schema)


# covers T12 T15
def test_the_public_size_of_a_survey_is_not_that_of_a_piece(monkeypatch) -> None:
    """A method that needs one is refused before anything is charged; one that can do without pays for a noisy count."""
    given: dict[str, Any] = {
        "codebook": book(sample_size=ROWS),
        "protect": {"change": REPLACE},
        "partition": {"name": "halves", "piece": 1, "pieces": 2},
    }
    printed = {"method": "privbayes-printed", "missing": "impute-random"}
    with pytest.raises(PlanError, match="with n public"):
        plan(printed, **given)
    assert synths_of(plan({"method": "privbayes"}, **given))[0].domain.schema.sample_size is None
    assert synths_of(plan(printed, **{**given, "partition": None}))[0].domain.schema.sample_size == ROWS
    naive_partition(monkeypatch)
    assert synths_of(plan(printed, **given))[0].domain.schema.sample_size == ROWS


@pytest.mark.parametrize(
    "other",
    [{"epsilon": Fraction(2)}, {"change": Change.REPLACE}, {"rests_on": ()}],
    ids=lambda each: next(iter(each)),
)
def test_a_network_that_promises_otherwise_than_planned_is_not_published(other, monkeypatch) -> None:
    """Another epsilon, another change, another proof: each is another promise than the one that was charged."""
    wanted = planned(ADD, MissingMethod.AVAILABLE)
    wanted = with_synths(wanted, synths_of(wanted)[:1])
    honest = synth_run.learn

    def learned(*given: Any, **more: Any) -> Any:
        network = honest(*given, **more)
        return replace(network, claim=replace(network.claim, **other))

    released(wanted, BASE)
    monkeypatch.setattr(synth_run, "learn", learned)
    with pytest.raises(ReticentError, match="planned otherwise"):
        released(wanted, BASE)


# covers T15 B090
@pytest.mark.parametrize("method", ["mst", "aim"])
def test_more_pairs_than_are_counted_at_once_are_refused_before_the_charge(method: str) -> None:
    """170 columns of 98 bins. The engine would refuse them too, once all is charged: the naive twin leaves it to that."""
    columns = {f"q{i}": {"kind": "integer", "bounds": [0, 999]} for i in range(170)}
    wanted = {"method": method, "bins": 98, "rows": 10}
    with pytest.raises(PlanError, match=r"synth\[0\]\.columns: makes pairs of 140,\d+,\d+ cells"):
        plan(wanted, codebook=book(columns))
    assert synths_of(plan({**wanted, "bins": 90}, codebook=book(columns)))[0].method.name == method
    held = coded.LocalCodedRows(sizes=[99] * 170, silences=[98] * 170, blocks=[])
    with pytest.raises(PlanError, match="ask for less"):
        held.count([(a, b) for a in range(170) for b in range(a)])
