"""What Python asks without a plan is charged as a plan is: first, once each time, never over budget, never refunded."""

import json
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reticent import Ledger, Survey, Synthesizer, ask_missing, describe_missing
from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.errors import BudgetError, LedgerError, PlanError, ResourceError, ReticentError, SourceError
from reticent.lab.noise import NoSynthNoise
from reticent.plan import synth as synth_section
from reticent.privacy.claim import Change
from reticent.python import synthesizer
from reticent.python.charging import reserve
from reticent.schema.codebook import schema_from
from tests.release.synthetic import BOOK, Flat, open_ledger, rows, survey

Ask = Callable[..., Any]


def fit(ledger: Any, *, epsilon: str = "1", replaced: bool = False, of: Survey | None = None) -> Any:
    made = Synthesizer(method="independent", epsilon=epsilon, replaced=replaced, ledger=ledger)
    return made.fit(of or survey()).claim_


def describe(ledger: Any, *, epsilon: str = "1", replaced: bool = False, of: Survey | None = None) -> Any:
    return describe_missing(of or survey(), epsilon=epsilon, replaced=replaced, ledger=ledger).claim


def ask_silence(ledger: Any, *, epsilon: str = "1", replaced: bool = False, of: Survey | None = None) -> Any:
    pairs = [("sex", "age"), ("age", "sex")]
    return ask_missing(of or survey(), epsilon=epsilon, pairs=pairs, replaced=replaced, ledger=ledger).claim


ASKS = pytest.mark.parametrize("ask", [fit, describe, ask_silence])


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The doors through which rows are read, barred; who knocks is noted."""
    knocked: list[str] = []

    def barred(name: str) -> Callable[..., None]:
        def door(*_: Any, **__: Any) -> None:
            knocked.append(name)
            raise KeyboardInterrupt

        return door

    for name in ("coded", "tally", "_reading", "fetch"):
        monkeypatch.setattr(DuckDBEngine, name, barred(name))
    return knocked


# covers L01 L08
@ASKS
def test_the_charge_is_the_claim_and_each_time_adds(ask: Ask, tmp_path: Path):
    """Exactly, as a path and as a ledger; what is noted is committed before it is handed out."""
    ledger = open_ledger(tmp_path)
    claim = ask(ledger, epsilon="0.1")
    assert ledger.spent == claim.epsilon == Fraction(1, 10)
    ask(tmp_path / "ledger.db", epsilon="0.2")
    ask(str(tmp_path / "ledger.db"), epsilon="0.1")
    assert ledger.spent == Fraction(4, 10)
    charges = [entry.body for entry in ledger.entries() if entry.kind == "reserve"]
    assert [body["amount"] for body in charges] == ["0.1", "0.2", "0.1"]
    assert len({body["release"] for body in charges}) == 3 and len({body["plan"] for body in charges}) == 2
    assert charges[0]["claim"] == {**claim.as_dict(), "accept_large": False}
    assert {ledger.state(body["release"]) for body in charges} == {"committed"}
    ledger.verify()


# covers L04 T15
@ASKS
def test_a_crash_keeps_the_charge(ask: Ask, tmp_path: Path, unread: list[str]):
    """Cut off at the first row: charged, not answered, and the next attempt is charged anew."""
    ledger = open_ledger(tmp_path)
    for spent in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            ask(ledger)
        assert ledger.spent == spent
    assert len(unread) == 2
    states = {ledger.state(entry.body["release"]) for entry in ledger.entries() if entry.kind == "reserve"}
    assert states == {"reserved"}


# covers T13 T15
@pytest.mark.parametrize("made", [Flat(fails=ValueError("age 47")), Flat(claimed=Fraction(2))])
def test_a_fit_that_fails_is_charged_and_hands_out_nothing(
    made: Flat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whatever it says of a row, or a claim that is not the one that was charged: one constant text, and no model."""
    monkeypatch.setattr(synth_section, "_method", lambda name, field: made)
    monkeypatch.setattr(
        synthesizer, "_try", lambda synth: None
    )  # the fault strikes after the trial on nobody
    ledger, model = open_ledger(tmp_path), Synthesizer(epsilon="1", ledger=tmp_path / "ledger.db")
    with pytest.raises(ResourceError) as refused:
        model.fit(survey())
    assert "47" not in str(refused.value) and refused.value.__cause__ is refused.value.__context__ is None
    assert ledger.spent == 1 and made.seen == [400]
    with pytest.raises(PlanError, match="call fit first"):
        model.sample(1)


# covers L07
@ASKS
def test_what_would_overdraw_is_refused_unread(ask: Ask, tmp_path: Path, unread: list[str]):
    """So is another change, a ledger that is not there, and a codebook of another survey. Nothing is charged."""
    ledger = open_ledger(tmp_path, epsilon="1.5")
    with pytest.raises(BudgetError, match=r"costs 1\.6, but 1\.5 of 1\.5 is left"):
        ask(ledger, epsilon="1.6")
    with pytest.raises(PlanError, match="change"):
        ask(ledger, replaced=True)
    with pytest.raises(LedgerError, match="there is no ledger"):
        ask(tmp_path / "none.db")
    with pytest.raises(PlanError, match="dataset"):
        ask(ledger, of=survey(codebook={**BOOK, "survey": {**BOOK["survey"], "name": "other"}}))
    assert unread == [] and ledger.spent == 0


@ASKS
def test_what_a_plan_would_be_refused_for_is_refused(ask: Ask, tmp_path: Path, unread: list[str]):
    """A header that does not fit, more than is sensible, an unfinished codebook, a public size that would differ."""
    ledger = open_ledger(tmp_path, epsilon="100")
    with pytest.raises(SourceError):
        ask(ledger, of=survey(rows().drop_columns(["job"])))
    with pytest.raises(PlanError, match="epsilon: is above 20"):
        ask(ledger, epsilon="20.5")
    for said, match in (({"unfinished": True}, "unfinished"), ({"sample_size": 400}, "sample size")):
        for account in (ledger, None):  # with nobody counting, too
            with pytest.raises(ReticentError, match=match):
                ask(account, of=survey(codebook={**BOOK, "survey": {**BOOK["survey"], **said}}))
    assert unread == [] and ledger.spent == 0


@ASKS
def test_without_a_ledger_nobody_counts(ask: Ask, tmp_path: Path):
    ledger = open_ledger(tmp_path)
    assert ask(None).epsilon == 1 and ledger.spent == 0


def test_the_naive_order_would_be_caught(tmp_path: Path, unread: list[str]):
    """The twin reads first and charges after: cut off at the first row it has spent nothing, where ours has."""
    ledger = open_ledger(tmp_path)

    def late() -> None:
        claim = fit(None)
        reserve(ledger, "late", words={}, codebook=BOOK, schema=schema_from(BOOK), claim=claim, files=())

    with pytest.raises(KeyboardInterrupt):
        late()
    assert ledger.spent == 0 and unread == ["coded"]


def test_noise_that_can_be_replayed_is_charged_to_no_ledger(tmp_path: Path, unread: list[str]):
    ledger = open_ledger(tmp_path)
    model = Synthesizer(method="independent", epsilon="1", ledger=ledger)
    model._noise = NoSynthNoise(np.random.default_rng(1))
    with pytest.raises(PlanError, match="ledger: noise that can be replayed"):
        model.fit(survey())
    assert unread == [] and ledger.spent == 0


def test_a_saved_model_is_the_one_that_was_charged(tmp_path: Path):
    """The ledger keeps the words of the model, digests of its arrays included; the receipt names the charge."""
    ledger = open_ledger(tmp_path)
    made = Synthesizer(method="independent", epsilon="1", delta="0.000001", ledger=ledger).fit(survey())
    made.save(tmp_path / "model")
    receipt = made.receipt_
    assert receipt is not None and receipt["charged"] == "1" and receipt["left_after"] == "19"
    kept = ledger.answer(receipt["release"])
    assert kept == (tmp_path / "model" / "model.toml").read_bytes()
    assert tomllib.loads(kept.decode())["claim"]["delta"] == "0.000001"
    ledger.verify([receipt])
    assert Synthesizer.load(tmp_path / "model", codebook=BOOK).receipt_ is None
    assert made.set_params(ledger=None).fit(survey()).receipt_ is None


def test_the_ledger_keeps_what_was_told_and_no_exact_count(tmp_path: Path):
    """The noisy numbers that were handed out, and those alone."""
    ledger = open_ledger(tmp_path, change=Change.REPLACE.value)
    told = describe_missing(survey(), epsilon="1", patterns=[("age",)], replaced=True, ledger=ledger)
    (charge,) = [entry.body for entry in ledger.entries() if entry.kind == "reserve"]
    kept = json.loads(Ledger.open(tmp_path / "ledger.db").answer(charge["release"]) or b"")
    assert kept == {
        "columns": list(told.columns),
        "missing": list(told.missing),
        "per_row": list(told.per_row),
        "declared": list(told.declared),
        "claim": told.claim.as_dict(),
    }
    assert told.is_private


def test_arguments_are_checked_before_the_charge(tmp_path: Path, unread: list[str]):
    ledger = open_ledger(tmp_path)
    wrong: list[dict[str, Any]] = [{"columns": ["aeg"]}, {"patterns": [["w"]]}, {"epsilon": "0"}]
    for each in wrong:
        with pytest.raises(PlanError):
            describe_missing(survey(), **{"epsilon": "1", "ledger": ledger, **each})
    with pytest.raises(PlanError):
        ask_missing(survey(), epsilon="1", pairs=[("pay", "age")], ledger=ledger)
    assert unread == [] and ledger.spent == 0


# covers L12
@ASKS
def test_in_a_ledger_in_rho_epsilon_squared_over_two_is_charged(ask: Ask, tmp_path: Path):
    """The claim handed out stays pure; what the ledger keeps is in its own unit."""
    ledger = open_ledger(tmp_path, unit="rho")
    claim = ask(ledger, epsilon="0.3")
    assert claim.measure == "pure" and ledger.spent == Fraction("0.045")
    (charge,) = [entry.body for entry in ledger.entries() if entry.kind == "reserve"]
    assert charge["claim"]["measure"] == "zcdp" and charge["claim"]["rho"] == charge["amount"] == "0.045"
    assert "epsilon" not in charge["claim"]


# covers L12
def test_a_delta_is_refused_by_a_ledger_in_rho_before_a_row_is_read(tmp_path: Path, unread: list[str]):
    """(epsilon, delta) implies no rho at all."""
    ledger = open_ledger(tmp_path, unit="rho")
    with pytest.raises(PlanError, match="delta of its own"):
        Synthesizer(method="independent", epsilon="1", delta="0.000001", ledger=ledger).fit(survey())
    assert unread == [] and ledger.spent == 0
