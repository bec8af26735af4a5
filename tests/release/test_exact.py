"""No promise that anybody can buy stands in ideal reals: plans, models on arrays, charges, and who imports what."""

import ast
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import reticent
from reticent import PrivateImputer, PrivateRegression
from reticent.errors import PlanError
from reticent.lab.papers.objective import Objective
from reticent.lab.papers.robust import Robust
from reticent.models.design import records
from reticent.models.fit import SystemModelNoise
from reticent.plan.models import LINES, Feature, ModelRepair
from reticent.privacy.claim import Change, Claim
from reticent.python.charging import reserve_arrays
from reticent.python.private_imputer import claim_of, fit_lines
from reticent.release.models import ESTIMATORS
from reticent.sensitivity.bounds import Neighbours
from tests.release.synthetic import open_ledger
from tests.release.test_array_fit import Unread
from tests.release.test_model_repair import PAY, plan_of

# covers R03 R05

HOME = Path(reticent.__file__).parent
IDEAL = "ideal reals"
TILTED = {"lab/papers/objective.py", "lab/papers/classes.py"}
IDEAL_NAMES = {
    "reticent.lab.papers": {"classes", "objective"},
    "reticent.lab.papers.objective": {"Objective"},
    "reticent.lab.papers.classes": {"SoftmaxRegression"},
}
SPEAK_OF_IT = {"privacy/claim.py", "privacy/sampling.py", "report/words.py"}
"""They carry on and explain what a claim says, and make no claim themselves."""


def imputer(**more: Any) -> Any:
    model = PrivateImputer(epsilon="19", bounds=[(0, 1), (0, 1)], columns=[1], **more)
    return lambda: model.fit(Unread((9, 2)))


def regression(**more: Any) -> Any:
    model = PrivateRegression(epsilon="19", bounds_x=[(0, 1)], bounds_y=(0, 1), **more)
    return lambda: model.fit(Unread((9, 1)), Unread((9,)))


def test_a_plan_refuses_it_and_names_two_that_are_exact() -> None:
    with pytest.raises(PlanError, match="estimator: 'objective' is proved for ideal reals") as refused:
        plan_of({**PAY, "estimator": "objective"})
    named = {name for name in LINES if f"'{name}'" in str(refused.value)}
    assert named == {"centred", "output"}
    for name in named:
        assert plan_of({**PAY, "estimator": name}).claim.arithmetic == "exact"


@pytest.mark.parametrize("estimator", ["objective", "classes", "Objective", ""])
def test_no_door_of_python_takes_it_either(estimator: str) -> None:
    age = Feature(column="age", low=0, high=9)
    whole = ModelRepair(column="pay", features=(age,), epsilon=Fraction(1))
    with pytest.raises(PlanError, match="estimator"):
        ModelRepair(column="pay", features=(age,), epsilon=Fraction(1), estimator=estimator)
    with pytest.raises(PlanError, match="estimator"):
        replace(whole, estimator=estimator)


@pytest.mark.parametrize("change", list(Change))
@pytest.mark.parametrize("estimator", LINES)
def test_every_line_of_a_plan_is_exact(estimator: str, change: Change) -> None:
    assert set(ESTIMATORS) == set(LINES)
    assert plan_of({**PAY, "estimator": estimator}, change=change.value).claim.arithmetic == "exact"


@pytest.mark.parametrize("make", [imputer, regression])
def test_models_on_arrays_refuse_it_before_a_row_is_read(make: Any, tmp_path: Path) -> None:
    """With a ledger, which is not charged, and without one. Others get as far as the rows."""
    ledger = open_ledger(tmp_path)
    for account in (ledger, None):
        with pytest.raises(PlanError, match="estimator: guarantees in ideal reals"):
            make(estimator=Objective(), ledger=account)()
    assert ledger.spent == 0
    with pytest.raises(KeyboardInterrupt):  # the rows were asked for
        make(estimator=Robust())()


def test_the_naive_way_hands_it_out() -> None:
    """Without the check the same fit goes through, and its claim says ideal reals."""
    model = PrivateRegression(epsilon="19", bounds_x=[(0, 1)], bounds_y=(0, 1))
    (_, _), design = model._asked()
    rows = np.zeros((5, 1)), np.zeros(5)

    def fitted() -> Any:
        sums, add = records(design, *rows).sums(), Neighbours(replaced=False)
        return (Objective().fit(sums, epsilon=Fraction(19), neighbours=add, noise=SystemModelNoise()),)

    assert claim_of(fitted()).arithmetic == IDEAL
    with pytest.raises(PlanError, match="ideal reals"):
        fit_lines(None, "regression", words={}, sources=[], nobody=fitted, read=fitted)


def test_what_says_ideal_is_neither_planned_nor_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later mechanism that forgets: the plan has no claim to print, and the ledger is not charged."""
    ledger = open_ledger(tmp_path)
    claim = Claim(measure="pure", epsilon=Fraction(1), arithmetic=IDEAL)
    with pytest.raises(PlanError, match="ideal reals"):
        reserve_arrays(ledger, "regression", words={}, claim=claim)
    assert ledger.spent == 0
    plan = plan_of(PAY)
    honest = ModelRepair.claim
    monkeypatch.setattr(
        ModelRepair, "claim", lambda self, change: replace(honest(self, change), arithmetic=IDEAL)
    )
    with pytest.raises(PlanError, match="ideal reals"):
        _ = plan.claim


def imports_ideal(text: str) -> bool:
    """Whether a module imports an estimator whose claim stands in ideal reals, by name or with its whole module."""
    found = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom))
    return any(
        IDEAL_NAMES.get(node.module or "", set()) & {name.name for name in node.names} for node in found
    )


def test_only_the_lab_imports_what_stands_in_ideal_reals() -> None:
    """So neither a plan, a public class nor a command can come to it."""
    found = {path.relative_to(HOME).as_posix(): path.read_text() for path in HOME.rglob("*.py")}
    assert {path for path, text in found.items() if f'"{IDEAL}"' in text} == TILTED | SPEAK_OF_IT
    users = {path for path, text in found.items() if imports_ideal(text)} - TILTED
    assert users and all(path.startswith("lab/") for path in users)
    assert imports_ideal("from reticent.lab.papers.objective import Objective, least_ridge")
    assert not imports_ideal("from reticent.models.perturbed import Output")
