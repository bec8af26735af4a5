"""Lines of arrays are charged as a plan is: first, once each time, never over budget, never refunded."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pytest

from reticent import Ledger, PrivateImputer, PrivateRegression
from reticent.errors import BudgetError, LedgerError, PlanError, ResourceError
from reticent.lab.noise import NoModelNoise, SeededBits
from reticent.lab.papers.robust import Robust
from reticent.models.fit import Fit
from reticent.models.perturbed import Output
from reticent.models.privgene import PrivGene
from reticent.models.sums import AdaSSP, Centred, Functional
from reticent.privacy.claim import Change
from reticent.python.charging import reserve_arrays
from tests.release.synthetic import open_ledger

BOUNDS = [(0, 10), (-5, 5), (0, 40)]
Model = PrivateImputer | PrivateRegression
Make = Callable[..., Model]


def imputer(**more: Any) -> PrivateImputer:
    return PrivateImputer(**{"epsilon": "1", "bounds": BOUNDS, "columns": [1, 2], **more})


def regression(**more: Any) -> PrivateRegression:
    return PrivateRegression(**{"epsilon": "1", "bounds_x": BOUNDS[:2], "bounds_y": BOUNDS[2], **more})


MODELS = pytest.mark.parametrize("make", [imputer, regression])


def rows(n: int = 60) -> np.ndarray:
    x = np.random.default_rng(1).uniform([0, -5, 0], [10, 5, 40], (n, 3))
    x[::4, 1] = np.nan
    return x


def fit(model: Model, x: Any = None) -> Any:
    """Either of the two on the same rows."""
    x = rows() if x is None else x
    return model.fit(x) if isinstance(model, PrivateImputer) else model.fit(x[:, :2], x[:, 2])


@dataclass
class Unread:
    """Rows behind a door: their shape is told, and who reads them is noted and cut off."""

    shape: tuple[int, ...] = (60, 3)
    knocked: list[str] = field(default_factory=list)

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.knocked.append("rows")
        raise KeyboardInterrupt

    def __getitem__(self, at: Any) -> "Unread":
        return Unread(np.empty(self.shape)[at].shape, self.knocked)


@dataclass(frozen=True)
class Odd:
    """An estimator that looks at rows, and then fails with one of them or claims what nobody charged."""

    fails: bool
    requires: Literal["sums", "rows"] = "rows"

    def fit(self, data: Any, *, epsilon: Fraction, **given: Any) -> Fit:
        if self.fails and len(data.z):
            raise PlanError(f"the first is {data.z[0]}", field="row")
        return Centred().fit(data.sums(), epsilon=epsilon * (2 if len(data.z) else 1), **given)


# covers L01 L08
@MODELS
def test_the_charge_is_the_claim_and_each_fit_adds(make: Make, tmp_path: Path):
    """Exactly, as a path and as a ledger; the same model fitted again is charged again. What is noted is committed."""
    ledger = open_ledger(tmp_path)
    model = fit(make(epsilon="0.1", ledger=ledger))
    assert ledger.spent == model.claim_.epsilon == Fraction(1, 10)
    fit(make(epsilon="0.2", ledger=tmp_path / "ledger.db"))
    fit(make(epsilon="0.1", ledger=str(tmp_path / "ledger.db")))
    assert ledger.spent == Fraction(4, 10)
    fit(model)
    charges = [entry.body for entry in ledger.entries() if entry.kind == "reserve"]
    assert [body["amount"] for body in charges] == ["0.1", "0.2", "0.1", "0.1"]
    assert len({body["release"] for body in charges}) == 4 and len({body["plan"] for body in charges}) == 2
    assert charges[0]["claim"] == {**model.claim_.as_dict(), "accept_large": False}
    assert {ledger.state(body["release"]) for body in charges} == {"committed"}
    assert model.receipt_["release"] == charges[-1]["release"] and model.receipt_["charged"] == "0.1"
    ledger.verify([model.receipt_])


def test_thirds_of_epsilon_are_charged_as_the_whole(tmp_path: Path):
    ledger = open_ledger(tmp_path)
    made = imputer(bounds=[(0, 1)] * 4, columns=[1, 2, 3], ledger=ledger).fit(np.full((9, 4), 0.5))
    assert ledger.spent == made.claim_.epsilon == 1 and made.lines_[0].claim.epsilon == Fraction(1, 3)


# covers L04 T15
@MODELS
def test_a_crash_keeps_the_charge(make: Make, tmp_path: Path):
    """Cut off at the first row: charged, not answered, and the next attempt is charged anew."""
    ledger, x = open_ledger(tmp_path), Unread()
    for spent in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            fit(make(ledger=ledger), x)
        assert ledger.spent == spent
    assert len(x.knocked) == 2
    states = {ledger.state(entry.body["release"]) for entry in ledger.entries() if entry.kind == "reserve"}
    assert states == {"reserved"}


@MODELS
def test_the_naive_order_would_be_caught(make: Make, tmp_path: Path):
    """The twin reads first and charges after: cut off at the first row it has spent nothing, where ours has."""
    ledger, x = open_ledger(tmp_path), Unread()
    with pytest.raises(KeyboardInterrupt):
        reserve_arrays(ledger, "late", words={}, claim=fit(make(), x).claim_)
    assert ledger.spent == 0 and x.knocked == ["rows"]


# covers T13 T15
@MODELS
@pytest.mark.parametrize("fails", [True, False])
def test_a_fit_that_fails_is_charged_and_hands_out_nothing(make: Make, fails: bool, tmp_path: Path):
    """Whatever it says of a row, or a claim that is not the one that was charged: one constant text, and no line."""
    ledger = open_ledger(tmp_path)
    model = make(estimator=Odd(fails), ledger=ledger)
    with pytest.raises(ResourceError, match="the charge stays") as refused:
        fit(model)
    assert "first" not in str(refused.value) and refused.value.__cause__ is refused.value.__context__ is None
    assert ledger.spent == 1
    with pytest.raises(PlanError, match="call fit first"):
        _ = model.claim_
    assert not hasattr(model, "receipt_")


# covers L07
@MODELS
def test_what_would_overdraw_is_refused_unread(make: Make, tmp_path: Path):
    """So is another change, a ledger that is not there, and more than is sensible. Nothing is charged."""
    ledger, x = open_ledger(tmp_path, epsilon="1.5"), Unread()
    with pytest.raises(BudgetError, match=r"costs 1\.6, but 1\.5 of 1\.5 is left"):
        fit(make(epsilon="1.6", ledger=ledger), x)
    with pytest.raises(PlanError, match="change"):
        fit(make(replaced=True, ledger=ledger), x)
    with pytest.raises(PlanError, match="epsilon: is above 20"):
        fit(make(epsilon="20.5", ledger=ledger), x)
    with pytest.raises(LedgerError, match="there is no ledger"):
        fit(make(ledger=tmp_path / "none.db"), x)
    assert x.knocked == [] and ledger.spent == 0


def test_arguments_are_checked_before_the_charge(tmp_path: Path):
    """By trying them on nobody, and by the shape that arrays tell of themselves; lists tell none, and are refused."""
    ledger, x = open_ledger(tmp_path), Unread()
    for more in ({"columns": [3]}, {"shares": ["1"]}, {"bounds": BOUNDS[:2], "columns": [1]}):
        with pytest.raises(PlanError):
            imputer(ledger=ledger, **more).fit(x)
    for said in ({"delta": "0.1"}, {"public_size": 60}, {"bounds_x": BOUNDS}):
        with pytest.raises(PlanError):
            fit(regression(ledger=ledger, **said), x)
    with pytest.raises(PlanError, match="a value for each row"):
        regression(ledger=ledger).fit(Unread((60, 2), x.knocked), Unread((59,), x.knocked))
    with pytest.raises(PlanError, match="x: with a ledger"):
        imputer(ledger=ledger).fit(rows().tolist())
    with pytest.raises(PlanError, match="y: with a ledger"):
        regression(ledger=ledger).fit(x[:, :2], rows()[:, 2].tolist())
    assert x.knocked == [] and ledger.spent == 0


@MODELS
def test_noise_that_can_be_replayed_is_charged_to_no_ledger(make: Make, tmp_path: Path):
    ledger, x = open_ledger(tmp_path), Unread()
    model = make(ledger=ledger)
    model._noise = NoModelNoise()
    with pytest.raises(PlanError, match="ledger: noise that can be replayed"):
        fit(model, x)
    drawn = imputer(draws=True, ledger=ledger)
    drawn._bits = SeededBits(1)
    with pytest.raises(PlanError, match="ledger: noise that can be replayed"):
        fit(drawn, x)
    assert x.knocked == [] and ledger.spent == 0


@MODELS
def test_the_ledger_keeps_the_lines_that_were_handed_out(make: Make, tmp_path: Path):
    """Number for number, and nothing else."""
    ledger = open_ledger(tmp_path, change=Change.REPLACE.value)
    model = fit(make(replaced=True, ledger=ledger))
    lines = model.lines_ if isinstance(model, PrivateImputer) else (model.result_,)
    kept = json.loads(Ledger.open(tmp_path / "ledger.db").answer(model.receipt_["release"]) or b"")
    assert set(kept) == {"lines", "claim"} and kept["claim"] == model.claim_.as_dict()
    assert [Fraction(each["intercept"]) for each in kept["lines"]] == [fit.intercept for fit in lines]
    assert [tuple(map(Fraction, each["slopes"])) for each in kept["lines"]] == [fit.slopes for fit in lines]
    assert [Fraction(each["variance"]) for each in kept["lines"]] == [fit.variance for fit in lines]


@MODELS
@pytest.mark.parametrize("estimator", [AdaSSP(), Centred(), Functional(), Output(), PrivGene(), Robust()])
def test_every_estimator_claims_of_nobody_what_it_claims_of_rows(make: Make, estimator: Any, tmp_path: Path):
    """Else a fit would be charged and not handed out."""
    ledger = open_ledger(tmp_path)
    model = fit(make(estimator=estimator, ledger=ledger))
    assert ledger.spent == model.claim_.epsilon == 1 and model.claim_.arithmetic == "exact"


@MODELS
def test_frames_are_charged_too_and_without_a_ledger_nobody_counts(make: Make, tmp_path: Path):
    ledger, x = open_ledger(tmp_path), rows()
    for frame in (pd.DataFrame(x), pl.DataFrame(x)):
        model = make(ledger=ledger)
        given = (frame,) if make is imputer else (frame, frame[frame.columns[2]])
        if make is regression:
            model.set_params(bounds_x=BOUNDS)
        assert model.fit(*given).receipt_ is not None
    assert ledger.spent == 2
    assert fit(make()).receipt_ is None and fit(make(ledger=ledger).set_params(ledger=None)).receipt_ is None
    assert ledger.spent == 2


@MODELS
def test_a_clone_charges_the_same_ledger(make: Make, tmp_path: Path):
    """As scikit-learn copies it: arguments as they were given, no line and no receipt of its own."""
    clone = pytest.importorskip("sklearn.base").clone
    ledger = open_ledger(tmp_path)
    for account in (ledger, tmp_path / "ledger.db"):
        model = fit(make(ledger=account))
        other = clone(model)
        assert not hasattr(other, "receipt_") and set(other.get_params()) == set(model.get_params())
        assert other.get_params()["epsilon"] == "1" and fit(other).receipt_ != model.receipt_
    assert ledger.spent == 4
