"""Learned synthesizers from a plan to files: what bad input gets, effort, progress, odd rows, saved weights, failed fits."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from reticent import Curator, Synthesizer
from reticent.errors import PlanError, ResourceError, SourceError
from reticent.preview.synth import _section
from reticent.preview.units import in_both_units, unit_line
from reticent.release.synth import small_of
from reticent.synth import registry
from reticent.synth.learned import chain, descent, kamino
from reticent.synth.learned.adversarial import Game
from reticent.synth.learned.descent import Pace
from reticent.synth.learned.kamino import ColumnPace
from reticent.synth.spending import total_of
from tests.release.synthetic import BOOK, COLUMNS, odd_row, open_ledger, plan, rows, said_of_odd, survey
from tests.tables import book, synths_of

# covers T13 T14 T21 T27 B001 B117

LEARNED = ("chain", "kamino", "kamino-i", "misgan", "dpctgan", "dpautogan")
DELTA = {"delta": "0.000001"}
SAMPLING = {"rate": "0.1", "steps": 4}
SMALL = Game(steps=3, turns=1, batch=16, fakes=32, hidden=4, settled=64)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps under the usual names."""
    for name, change in (
        ("chain", {"pace": Pace(steps=4)}),
        *((each, {"pace": ColumnPace(steps=2)}) for each in ("kamino", "kamino-i")),
        *((each, {"game": SMALL}) for each in ("misgan", "dpctgan", "dpautogan")),
    ):
        monkeypatch.setitem(registry.KNOWN, name, replace(registry.KNOWN[name], **change))
    for module in (descent, kamino):
        monkeypatch.setattr(module, "SIMULATED", 64)


def missing_of(method: str) -> str:
    return "complete" if method in ("dpctgan", "dpautogan") else "available"


def asked(method: str, *, expect: int | None = None, **rest):
    given = {"expect": {"rows": expect}} if expect is not None else {}
    section = {"method": method, "missing": missing_of(method), **DELTA, **rest}
    return plan(section, protect=DELTA, **given)


@pytest.mark.parametrize("method", LEARNED)
def test_what_is_refused_says_why_and_what_to_do(method: str) -> None:
    """Before a row: no delta, one column, too many numbers, and noise that nobody could be heard above."""
    with pytest.raises(PlanError, match=r"synth\[0\]\.delta: .*needs a delta, such as"):
        plan({"method": method, "missing": missing_of(method)})
    with pytest.raises(PlanError, match=r"synth\[0\]\.columns: .*for one, use independent"):
        asked(method, columns=["age"])
    drowned = r"synth\[0\]\.epsilon: the noise on every number of a step would be that of [\d,]+ respondents, and 3 are expected"
    with pytest.raises(PlanError, match=drowned):
        asked(method, expect=3)
    asked(method, expect=30_000)


WRONG_SAMPLING = {
    "nothing expected": (
        {"sampling": SAMPLING},
        None,
        r"sampling: needs the number of rows that is expected",
    ),
    "above one half": ({"sampling": {**SAMPLING, "rate": "0.6"}}, 10**5, "all rows are in every step"),
    "no chance": ({"sampling": {**SAMPLING, "rate": "0"}}, 10**5, r"sampling\.rate"),
    "no step": ({"sampling": {**SAMPLING, "steps": 0}}, 10**5, r"sampling\.steps"),
    "too many steps": ({"sampling": {**SAMPLING, "steps": 10**6}}, 10**5, "1 to 100,000 steps"),
    "unknown key": ({"sampling": {**SAMPLING, "size": 3}}, 10**5, r"sampling\.size: is not a known key"),
    "another method": (
        {"method": "kamino", "sampling": SAMPLING},
        10**5,
        "goes with chain, and not with kamino",
    ),
    "paid fills": ({"missing": "impute-mean", "sampling": SAMPLING}, 10**5, "does not go with impute-mean"),
    "another imputer": (
        {"missing": "impute-model", "impute_model": "mst", "sampling": SAMPLING},
        10**5,
        "impute_model: does not go with sampling",
    ),
    "drowned": (
        {"sampling": {"rate": "0.01", "steps": 4}},
        20,
        "and 20 are expected: nothing could be learned",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_SAMPLING)
def test_samples_are_refused_by_their_names(wrong: str) -> None:
    section, expect, words = WRONG_SAMPLING[wrong]
    with pytest.raises(PlanError, match=words):
        asked(**{"method": "chain", "expect": expect, **section})


def test_a_plan_with_samples_says_so_and_rests_on_their_page() -> None:
    made = asked("chain", expect=10**5, sampling=SAMPLING)
    synth = synths_of(made)[0]
    assert "in 4 steps that each look at a record with chance 0.1" in synth.words()
    assert "proofs/privacy/renyi.md" in [page for _, page in synth.claim.rests_on]
    assert asked("chain", expect=10**5).digest != made.digest


def test_a_preview_names_no_rho_for_what_is_learned_from_samples() -> None:
    """Sampled steps have no rho, so no advice to buy them in it, and no epsilon computed from one; full steps have one."""
    sampled, full = (asked("chain", expect=10**5, **rest) for rest in ({"sampling": SAMPLING}, {}))
    assert in_both_units(sampled).rho is None and in_both_units(sampled).epsilon == 1
    assert unit_line(sampled) == "units: counted in epsilon; something in this plan has no budget in rho"
    assert in_both_units(full).rho == total_of(synths_of(full)[0].spend)


@pytest.mark.parametrize("method", [*LEARNED, "sampled"])
def test_memory_and_time_are_in_the_preview(method: str) -> None:
    rest = {"sampling": SAMPLING} if method == "sampled" else {}
    made = asked("chain" if method == "sampled" else method, expect=10**5, **rest)
    copies = "3 copies of the rows" if method == "kamino-i" else "the rows"
    assert f"MB beside {copies}; about" in _section(synths_of(made)[0], made, 1)["effort"]


def test_an_imputation_by_another_model_is_foreseen_with_what_learns_from_it() -> None:
    """Time of both, noise of whichever steps have the more; methods that measure tables are quick and say nothing."""

    def given(method: str, by: str, **rest):
        section = {"method": method, "missing": "impute-model", "impute_model": by, "impute_share": "0.25"}
        return plan({**section, **DELTA}, protect=DELTA, **rest)

    def seconds(made) -> float:
        synth = synths_of(made)[0]
        return synth.method.effort(synth.domain, synth.holes).seconds_each

    both = given("chain", "kamino")
    one = synths_of(asked("chain"))[0]
    assert seconds(both) > one.method.effort(one.domain, one.holes).seconds_each
    assert "MB beside 3 copies of the rows" in _section(synths_of(both)[0], both, 1)["effort"]
    quick = given("mst", "independent")
    assert "effort" not in _section(synths_of(quick)[0], quick, 1)
    with pytest.raises(PlanError, match=r"respondents, and 3 are expected"):
        given("mst", "chain", expect={"rows": 3})
    given("mst", "independent", expect={"rows": 3})


def test_what_is_done_about_missing_answers_is_told_as_it_is_done() -> None:
    """No table is counted over those who answered: the usual sentence would not be true."""
    for method, words in (
        ("chain", "missing ones had no part in it"),
        ("kamino", "missing ones had no part in it"),
        ("kamino-i", "missing answers were drawn from the model learned so far"),
    ):
        assert words in synths_of(asked(method))[0].words()
    whole = synths_of(plan({"method": "chain", "missing": "complete", **DELTA}, protect=DELTA))[0]
    assert "left out before anything was counted" in whole.words()


@pytest.mark.parametrize("method", [*LEARNED, "sampled"])
def test_a_release_tells_steps_and_nothing_of_odd_rows(method: str, tmp_path: Path) -> None:
    """As many rows as planned, words of the codebook alone, and no more steps than a progress bar was promised."""
    table = rows(120)
    table = pa.concat_tables([table, odd_row(table.schema)])
    rest = {"sampling": SAMPLING} if method == "sampled" else {}
    wanted = asked("chain" if method == "sampled" else method, expect=10**5, **rest)
    told: list[str] = []
    Curator(open_ledger(tmp_path)).release(wanted, survey(table), tmp_path, step=told.append)
    found = list(csv.DictReader(io.StringIO((tmp_path / "s1.1.synth.csv").read_text())))
    assert len(found) == 200 and {row["Sex, as told"] for row in found} <= {"f", "'=1+1"}
    assert {row["job"] for row in found} <= {"yes", "no, never", ""}
    text = b"".join(path.read_bytes() for path in tmp_path.glob("s1*"))
    assert not said_of_odd(text)
    heard = [each for each in told if "gradient" in each or each in ("columns", "people")]
    assert 4 <= len(heard) <= synths_of(wanted)[0].rounds


@pytest.mark.parametrize("method", LEARNED)
@pytest.mark.parametrize("count", [0, 1, "silent", "one never answered"])
def test_few_rows_or_none_and_silence_take_the_same_path(method: str, count, tmp_path: Path) -> None:
    table = rows(0 if count == 0 else 1 if count == 1 else 30)
    if isinstance(count, str):
        nobody = ["job"] if count == "one never answered" else table.column_names
        for name in nobody:
            gone = pa.nulls(table.num_rows, table.schema.field(name).type)
            table = table.set_column(table.column_names.index(name), name, gone)
    made = Curator(open_ledger(tmp_path)).release(asked(method), survey(table), tmp_path)
    assert made.synthetic("people").num_rows == 200


GIVEN = {"epsilon": "1", **DELTA, "codebook": BOOK, "columns": ["age", "sex", "job"]}


@pytest.mark.parametrize("method", LEARNED)
def test_saved_weights_of_another_shape_or_codebook_are_refused_naming_the_file(
    method: str, tmp_path: Path
) -> None:
    made = Synthesizer(method=method, missing=missing_of(method), **GIVEN).fit(rows(200))
    made.save(tmp_path / "model")
    names = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert names == ["model.toml", "parameters.npy"]
    assert Synthesizer.load(tmp_path / "model", codebook=BOOK).sample(10).num_rows == 10
    other = json.loads(json.dumps(BOOK))
    other["columns"]["sex"]["levels"] = ["f", "m", "x"]
    with pytest.raises(SourceError, match=r"model\.toml: the codebook has other levels"):
        Synthesizer.load(tmp_path / "model", codebook=other)
    for name, bent in (
        ("nan", np.where(np.arange(len(made.model_.parameters)) == 3, np.nan, made.model_.parameters)),
        ("short", made.model_.parameters[:-1]),
    ):
        made.model_ = replace(made.model_, parameters=bent)
        made.save(tmp_path / name)
        with pytest.raises(SourceError, match=r"parameters\.npy"):
            Synthesizer.load(tmp_path / name, codebook=BOOK)


def broken(above: int) -> type[chain.ChainGradient]:
    """A step that fails on more rows than that."""

    class Broken(chain.ChainGradient):
        def add(self, block, totals) -> None:
            if block.shape[1] > above:
                raise ValueError("age 47")

    return Broken


def test_a_step_that_cannot_run_is_refused_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step is tried on a made-up row, from a plan and from Python; what fails there fails from public numbers."""
    monkeypatch.setattr(chain, "ChainGradient", broken(above=0))
    ledger = open_ledger(tmp_path)
    with pytest.raises(PlanError, match=r"synth\[0\] 'people': .*Nothing was charged"):
        Curator(ledger).release(asked("chain"), survey(), tmp_path)
    with pytest.raises(PlanError, match="Nothing was charged"):
        Synthesizer(method="chain", ledger=ledger, **GIVEN).fit(rows(200))
    assert ledger.spent == 0


@pytest.mark.parametrize("method", LEARNED)
def test_the_trial_takes_one_step_of_each_kind_with_the_noise_of_the_real_ones(method: str) -> None:
    """At hundreds of steps the trial is no second fit, and it tries the same noise."""
    many = {"pace": 400} if hasattr(registry.KNOWN[method], "pace") else {"game": 400}
    ((part, steps),) = many.items()
    long = replace(
        registry.KNOWN[method], **{part: replace(getattr(registry.KNOWN[method], part), steps=steps)}
    )
    synth = replace(synths_of(asked(method))[0], method=long)
    tried = small_of(synth)
    assert getattr(tried.method, part).steps == 1 and tried.rows == 20
    noises = [each.method.step_noise(each.domain, each.holes, each.spend) for each in (synth, tried)]
    assert noises[0] == pytest.approx(noises[1])
    assert tried.claim == synth.claim and tried.rounds < synth.rounds


def test_of_samples_and_of_imputation_by_a_model_one_step_is_tried() -> None:
    sampled = small_of(synths_of(asked("chain", expect=10**5, sampling=SAMPLING))[0]).method
    assert sampled.pace.steps == sampled.sample.steps == 1
    both = {"method": "kamino", "missing": "impute-model", "impute_model": "chain", **DELTA}
    first = small_of(synths_of(plan(both, protect=DELTA))[0]).method
    assert first.imputer.pace.steps == first.method.pace.steps == 1


def test_layers_too_wide_for_exact_sums_are_refused_by_name() -> None:
    """The decoder of dpautogan has a number for every group: 4,104 are above what doubles add exactly."""
    wide = {**COLUMNS, "job": {"kind": "categorical", "levels": [f"job {i}" for i in range(4_000)]}}
    section = {"missing": "complete", "columns": ["age", "sex", "job"], "bins": 100, **DELTA}
    said = r"synth\[0\]\.columns: dpautogan would read rows by a layer of 4,102 numbers, and above 4,096"
    with pytest.raises(PlanError, match=said):
        plan({"method": "dpautogan", **section}, protect=DELTA, codebook=book(wide))
    plan({"method": "misgan", **section}, protect=DELTA, codebook=book(wide))


def test_a_fit_that_fails_says_one_constant_sentence_and_keeps_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On these rows only: the trial on one made-up row, before the charge, goes through."""
    monkeypatch.setattr(chain, "ChainGradient", broken(above=1))
    ledger = open_ledger(tmp_path)
    with pytest.raises(ResourceError, match="a synthetic table could not be made") as failed:
        Curator(ledger).release(asked("chain"), survey(), tmp_path)
    assert "47" not in str(failed.value) and failed.value.__cause__ is None
    assert ledger.spent == 1
