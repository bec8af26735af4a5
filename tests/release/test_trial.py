"""What can fail from public numbers fails before the charge: a plan of any numbers is refused at no cost, or released."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.open import Nobody
from reticent.engine.sources.open import open_frame
from reticent.errors import PlanError, ResourceError, ReticentError
from reticent.plan import synth as synth_section
from reticent.plan.plan import Plan
from reticent.privacy.ledger import Ledger
from reticent.python import synthesizer
from reticent.python.synthesizer import Synthesizer
from reticent.release.curator import Curator
from reticent.release.run import try_plan
from reticent.release.statistics import wants_of
from reticent.release.survey import Survey
from reticent.synth.registry import KNOWN
from tests.badinput.house import House, assert_refused, run
from tests.doubles import passed
from tests.release.synthetic import Flat, open_ledger, survey
from tests.tables import ADD, REPLACE, book, every_plan, make_plan, steps

EXTREMES = ("0.000001", "0.00001", "0.001", "0.5", "1", "20", "700", "2000", "1000000", "999999999999")
EPSILONS = st.sampled_from(EXTREMES) | st.integers(1, 10**18).map(lambda n: f"{n // 10**6}.{n % 10**6:06}")
WIDTHS = (((0, 1), "1"), ((0, 99), "0.000001"), ((-50, 150), "0.5"), ((0, 1000), "0.000000000001"))
WIDTHS += (
    ((-(10**9), 10**9), "0.000001"),
    ((0, 2**40), "0.001"),
    ((0, 2**52), "1"),
    ((-(2**52), 2**52), "1"),
)
LEVELS = st.sampled_from(["0.5", "0.9", "0.95", "0.9999"])
MANY = st.sampled_from([1, 2, 3, 40, 10**6, 2**40])
WEIGHTS = ((1, "1"), (4, "0.25"), (10**6, "0.001"), (10**12, "1"))
DONORS = {"method": "donors", "bound": "hubs", "match": ["sex"]}
REPAIRS: tuple[list[dict[str, Any]], ...] = (
    [],
    [DONORS | {"column": "pay"}],
    [DONORS | {"column": "pay", "k": 4, "smoothness": 64}],
    [DONORS | {"column": "pay", "smoothness": 3}],
)
QUERIES: tuple[dict[str, Any], ...] = (
    {"count": "*"},
    {"count": "*", "weight": "w"},
    {"total": "pay"},
    {"total": "pay", "weight": "w"},
    {"mean": "pay"},
    {"mean": "pay", "weight": "w"},
    {"proportion": "pay > 0"},
    {"variance": "pay"},
    {"variance": "pay", "weight": "w"},
    {"correlation": ["pay", "age"]},
    {"median": "pay"},
    {"quantile": "pay", "at": "0.999", "weight": "w"},
    {"table": ["sex"]},
    {"table": ["sex"], "weight": "w"},
)
ROWS = pa.table(
    {
        "sex": ["f", "m", "f", None],
        "age": ["30", "40", None, "99"],
        "pay": ["1", "1000000", None, None],
        "w": ["1", "2", "0.5", "4"],
        "pid": ["a", "b", "c", "d"],
    }
)


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    """The public numbers of a plan, each drawn to the edge of what its own rule allows."""
    query = dict(draw(st.sampled_from(QUERIES)))
    if "median" in query or "quantile" in query:
        query |= draw(st.sampled_from([{}, {"step": "1"}, {"step": "0.5"}, {"step": "1000"}]))
    ask: dict[str, Any] = {"name": "asked", "query": query, "epsilon": draw(EPSILONS)}
    repair = draw(
        st.sampled_from(REPAIRS)
        | EPSILONS.map(
            lambda each: [{"method": "regression", "column": "pay", "from": ["age"], "epsilon": each}]
        )
    )
    is_bought = {"median", "quantile"} & set(query) or (repair and repair[0]["method"] == "donors")
    bar = {"level": draw(LEVELS)}
    bar |= draw(st.just({}) | EPSILONS.map(lambda each: {"epsilon": each})) if is_bought else {}
    ask["interval"] = bar
    if {"mean", "variance", "correlation", "proportion"} & set(query):
        ask |= draw(st.just({}) | MANY.map(lambda n: {"size": {"weight": n} if "weight" in query else n}))
    (bounds, grid), (heavy, fine) = draw(st.sampled_from(WIDTHS)), draw(st.sampled_from(WEIGHTS))
    return {
        "statistic": ask,
        "bounds": bounds,
        "grid": grid,
        "weight": (heavy, fine),
        "at_most": draw(st.sampled_from([1, 1, 7, 10_000])),
        "change": draw(st.sampled_from([ADD, REPLACE])),
        **steps(repair),
        "expect": {"rows": draw(MANY), "design_effect": draw(st.sampled_from(["0.01", "1", "1000"]))},
    }


def codebook(given_: dict[str, Any]) -> dict[str, Any]:
    low, high = given_["bounds"]
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m", "x"]},
        "age": {"kind": "integer", "bounds": [0, 99]},
        "pay": {"kind": "decimal", "bounds": [low, high], "grid": given_["grid"]},
        "w": {
            "kind": "decimal",
            "bounds": [0, given_["weight"][0]],
            "grid": given_["weight"][1],
            "role": "weight",
        },
    }
    return book(columns, unit="pid" if given_["at_most"] > 1 else "row", at_most=given_["at_most"])


def plan_of(given_: dict[str, Any]) -> Plan:
    return Survey(ROWS, codebook=codebook(given_)).plan(
        "r-1",
        epsilon="999999999999",
        statistics=[given_["statistic"]],
        protect={"accept_large": True, "change": given_["change"]},
        **({"impute": given_["impute"]} if "impute" in given_ else {}),
        expect=given_["expect"],
    )


def fate(folder: Path, given_: dict[str, Any]) -> tuple[str, bool]:
    """What became of a release: released, refused or failed; and whether anything was charged."""
    for old in folder.iterdir():
        old.unlink()
    ledger = Ledger.create(
        folder / "a.db", dataset="tiny", change=given_["change"], unit="epsilon", budget="999999999999"
    )
    try:
        Curator(ledger).release(plan_of(given_), Survey(ROWS, codebook=codebook(given_)), folder)
        fared = "released"
    except ReticentError as problem:
        fared = "refused" if problem.status in (2, 3) else "failed"
    except Exception:  # noqa: BLE001 - the command line would say "internal"
        fared = "failed"
    return fared, ledger.spent > 0


HUGE: dict[str, Any] = {
    "statistic": {"name": "asked", "query": {"mean": "pay"}, "epsilon": "2000"},
    "bounds": (-50, 150),
    "grid": "0.5",
    "weight": (4, "0.25"),
    "at_most": 1,
    "change": ADD,
    **steps([DONORS | {"column": "pay"}]),
    "expect": {"rows": 40},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(given_=numbers())
@example(given_=HUGE)
def test_public_numbers_are_refused_at_no_cost_or_released(folder, given_):
    """Whatever the numbers are: never charged and then failed."""
    # covers B082 B084 B088
    assert fate(folder, given_) in (("released", True), ("refused", False))


def test_without_the_trial_a_plan_is_charged_and_fails(folder, monkeypatch):
    """The naive twin, on the epsilon that was found: paid for, and nothing to show for it."""
    assert fate(folder, HUGE) == ("refused", False)
    passed(monkeypatch)
    fared, charged = fate(folder, HUGE)
    assert charged and fared != "released"


def test_the_refusal_names_the_statistic_and_a_way_out():
    with pytest.raises(PlanError, match=r"statistic\[0\] 'asked': no noise .* take a smaller one"):
        try_plan(plan_of(HUGE))


def test_a_failure_without_words_is_a_refusal_with_some(monkeypatch):
    """Whatever is raised, on nobody it is a matter of public numbers. Memory is not."""
    plan = plan_of({**HUGE, **steps([]), "statistic": {**HUGE["statistic"], "epsilon": "1"}})

    def broken(problem):
        def evaluate(*_, **__):
            raise problem

        return evaluate

    monkeypatch.setattr(
        "reticent.release.statistics.evaluate_sampled", broken(OverflowError("int too large"))
    )
    with pytest.raises(PlanError, match=r"statistic\[0\] 'asked': cannot be computed.*Nothing was charged"):
        try_plan(plan)
    monkeypatch.setattr("reticent.release.statistics.evaluate_sampled", broken(MemoryError()))
    with pytest.raises(MemoryError):
        try_plan(plan)


@pytest.mark.parametrize("command", ["preview", "rehearse", "release"])
def test_every_door_tells_the_same_refusal(command, tmp_path):
    """Preview and rehearsal say what a release would say, with status 2."""
    house = House(tmp_path)
    house.edit('epsilon = "20"', 'epsilon = "2016"\naccept_large = true')
    house.edit('centre = "400" }\nepsilon = "6"', 'centre = "400" }\nepsilon = "2000"')
    house.edit(
        "[[statistic]]",
        '[[impute]]\nmethod = "donors"\nbound = "hubs"\ncolumn = "rent"\nmatch = ["sex"]\n\n[[statistic]]',
    )
    before = house.digests()
    assert_refused(run(command, str(house.plan)), "statistic 'mean rent of adults': no noise")
    assert house.digests() == before


TRIED: dict[str, dict[str, Any]] = {
    "asks": {},
    "donors": {
        "repair": [
            {
                "method": "donors",
                "bound": "hubs",
                "column": "pay",
                "match": ["sex", {"column": "age", "groups": [0, 30, 99]}],
            }
        ]
    },
}


@pytest.mark.parametrize("name", TRIED)
def test_nobody_answers_as_an_empty_source_does(name):
    """The trial's tallies are those of the real engine on a header without rows."""
    plan = every_plan(**TRIED[name]) if name == "asks" else make_plan([{"mean": "pay"}], **TRIED[name])
    empty = pa.table({column.source: pa.array([], pa.string()) for column in plan.schema.columns.values()})
    engine = DuckDBEngine(open_frame(empty))
    try:
        real = engine.tally(plan.schema, wants_of(plan), plan.repair)
    finally:
        engine.close()
    ours = Nobody().tally(plan.schema, wants_of(plan), plan.repair)
    assert ours.statistics == real.statistics and ours.tables == real.tables
    assert list(ours.rings) == list(real.rings) and (name == "asks" or ours.rings)
    for ring, table in real.rings.items():
        for part in ("donors", "recipients", "gaps"):
            assert (getattr(ours.rings[ring], part) == getattr(table, part)).all()
            assert getattr(ours.rings[ring], part).shape == getattr(table, part).shape


def test_the_trial_reads_no_row_and_leaves_no_file(tmp_path, monkeypatch):
    """Before the charge no engine but that of nobody is asked for anything but its header."""
    asked: list[str] = []
    monkeypatch.setattr(DuckDBEngine, "tally", lambda *_, **__: asked.append("rows"))
    plan = plan_of({**HUGE, "statistic": {**HUGE["statistic"], "epsilon": "1"}})
    monkeypatch.chdir(tmp_path)
    try_plan(plan)
    assert asked == [] and list(tmp_path.iterdir()) == []


def test_a_synthesizer_that_cannot_work_is_not_charged(tmp_path, monkeypatch):
    """The door of Python: learned from nobody first. Without a trial it is charged, and fails."""
    monkeypatch.setattr(synth_section, "_method", lambda name, field: Flat(fails=OverflowError()))
    ledger = open_ledger(tmp_path)
    learner = Synthesizer(method="flat", epsilon="1", ledger=ledger)
    with pytest.raises(PlanError, match="epsilon: cannot be computed"):
        learner.fit(survey())
    assert ledger.spent == 0
    monkeypatch.setattr(synthesizer, "_try", lambda synth: None)
    with pytest.raises(ResourceError):
        learner.fit(survey())
    assert ledger.spent == 1


@pytest.mark.parametrize("method", [name for name in KNOWN if name != "privbayes-printed"])
def test_every_synthesizer_takes_a_number_in_bins(method):
    """As a plan names it, with no other word: what its own defaults cannot carry out is no method to offer."""
    whole = {"missing": "category"} if method in ("dpctgan", "dpautogan") else {}
    asked = {"name": "people", "method": method, "rows": 20, "epsilon": "1", "delta": "0.000001", **whole}
    codebook = book(
        {"age": {"kind": "integer", "bounds": [0, 99]}, "sex": {"kind": "categorical", "levels": ["f", "m"]}}
    )
    plan = Survey("rows.csv", codebook=codebook).plan("s1", epsilon="1", delta="0.000001", synth=[asked])
    try_plan(plan)
