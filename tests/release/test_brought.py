"""Gaps filled before the rows came here: group privacy as printed, by vectors and by every neighbour of small surveys."""

import json
from fractions import Fraction
from itertools import product
from math import exp, log
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.errors import PlanError
from reticent.plan.repairs import ExternalImputation, external_imputation_section, read_external
from reticent.privacy.claim import Change, Claim
from reticent.privacy.sampling import amplified
from tests.tables import ADD, REPLACE, make_plan


def claim(change: Change, epsilon: str = "1", delta: str = "0") -> Claim:
    measure: Any = "approximate" if Fraction(delta) else "pure"
    return Claim(
        measure=measure, epsilon=Fraction(epsilon), delta=Fraction(delta), change=change, rests_on=()
    )


def test_vectors_of_group_privacy() -> None:  # covers T08
    """THEORY 7.4: k = 3 at epsilon 1, k = 10 at 0.1, delta 1e-6; added or removed counts moved rows twice."""
    three = ExternalImputation(reach=2).worth(claim(Change.REPLACE, "1", "1/1000000"))
    ten = ExternalImputation(reach=9).worth(claim(Change.REPLACE, "1/10", "1/1000000"))
    assert (
        three is not None
        and three[0] == 3
        and float(three[1] or 0) == pytest.approx(1.110733793e-05, rel=1e-9)
    )
    assert ten is not None and ten[0] == 1 and float(ten[1] or 0) == pytest.approx(1.633799400e-05, rel=1e-9)
    assert ExternalImputation(reach=1).worth(claim(Change.ADD_REMOVE, "1", "1/1000000")) == three
    assert ExternalImputation(reach=40).worth(claim(Change.ADD_REMOVE)) == (81, 0)


def filled(rows: tuple[Any, ...]) -> list[float]:
    """Gaps take the mean of the answers, or 0."""
    told = [value for value in rows if value is not None]
    mean = sum(told) / len(told) if told else 0.0
    return sorted(mean if value is None else float(value) for value in rows)


def apart(one: list[float], two: list[float]) -> int:
    """Rows that must be removed and added to get from one multiset to the other."""
    left = list(two)
    gone = 0
    for value in one:
        if value in left:
            left.remove(value)
        else:
            gone += 1
    return gone + len(left)


@pytest.mark.parametrize("change", list(Change))
def test_the_group_is_large_enough_and_no_larger(change: Change) -> None:
    """All surveys of four rows of 0, 1 or silence, mean imputation: 3 others at most are moved, and some survey moves as
    many as the group says. A group without the moved rows, the naive twin, is too small."""
    farthest = 0
    for rows in product((0, 1, None), repeat=4):
        here = filled(rows)
        others = [filled((*rows[:-1], new)) for new in (0, 1, None)]
        others = [filled(rows[:-1])] if change is Change.ADD_REMOVE else others
        farthest = max(farthest, *(apart(here, other) for other in others))
    steps = 2 if change is Change.REPLACE else 1  # a replaced row is one removed and one added
    size = ExternalImputation(reach=3).size(change)
    assert farthest == steps * size if change is Change.REPLACE else 1 < farthest <= size


def test_it_is_read_and_refused() -> None:
    assert read_external(None) is None
    assert read_external({"rule": "deterministic", "reach": 40}) == ExternalImputation(reach=40)
    for raw in (
        {"reach": 0},
        {"rule": "multiple", "reach": 3},
        {"rule": "deterministic"},
        {"reach": 3, "x": 1},
    ):
        with pytest.raises(PlanError):
            read_external(raw)


def test_a_delta_that_reaches_one_promises_nothing_and_says_so() -> None:
    told = external_imputation_section(
        ExternalImputation(reach=10**6), claim(Change.REPLACE, "1", "1/1000000")
    )["imputed_before"]
    assert told["delta"] == "1" and "which guarantees nothing" in told["words"]
    assert external_imputation_section(None, claim(Change.REPLACE)) == {}


@pytest.mark.parametrize(("change", "group"), [(ADD, 81), (REPLACE, 41)])
def test_the_plan_says_it_and_its_digest_knows(change: str, group: int) -> None:
    survey = {"source": "r.csv", "codebook": "c.toml", "ledger": "l.db"}
    plain = make_plan([{"count": "*"}], change=change, survey=survey)
    made = make_plan([{"count": "*"}], change=change, survey={**survey, "imputed_before": {"reach": 40}})
    assert made.external == ExternalImputation(reach=40) and made.digest != plain.digest
    told = external_imputation_section(made.external, made.claim)["imputed_before"]
    assert told["group"] == group and told["epsilon"] == str(group)


def frame_loss(rows: tuple[Any, ...], epsilon: float) -> float:
    """The exact loss of a noisy count of ones when the last of `rows` leaves a frame of which each is drawn with chance 1/2
    and gaps are then filled with the mean; far out, where every count is on one side."""

    def far(frame: tuple[Any, ...]) -> float:
        drawn = [tuple(row for row, is_in in zip(frame, lot, strict=True) if is_in) for lot in lots(frame)]
        return sum(exp(epsilon * filled(each).count(1.0)) for each in drawn) / len(drawn)

    def lots(frame: tuple[Any, ...]) -> list[tuple[bool, ...]]:
        return list(product((False, True), repeat=len(frame)))

    return log(far(rows) / far(rows[:-1]))


def test_a_frame_is_not_promised_what_the_filled_rows_are() -> None:  # covers T08
    """One answer and three gaps, each person drawn with chance 1/2: the loss passes the amplified epsilon of filled rows,
    the naive twin, and stays within that of the group. So no frame is told of where rows were filled before."""
    loss = frame_loss((None, None, None, 1), 1.0)
    group = ExternalImputation(reach=3).size(Change.ADD_REMOVE)
    assert loss > float(amplified(epsilon=Fraction(1), rate=Fraction(1, 2)))
    assert loss < float(amplified(epsilon=Fraction(group), rate=Fraction(1, 2)))
    survey = {"source": "r.csv", "codebook": "c.toml", "ledger": "l.db"}
    filled_before = {**survey, "imputed_before": {"reach": 3}}
    sample, cut = {"design": "poisson", "rate": "0.5"}, {"name": "cut", "pieces": 2, "piece": 1}
    for sections in ({"sample": sample}, {"partition": cut}):
        assert make_plan([{"count": "*"}], survey=survey, **sections).frames
    assert make_plan([{"count": "*"}], survey=filled_before, partition=cut).frames == ()
    with pytest.raises(PlanError, match="filled before"):
        make_plan([{"count": "*"}], survey=filled_before, sample=sample)


def test_preview_prints_it(tmp_path: Path) -> None:
    runner = CliRunner()
    runner.invoke(app, ["demo", "--out", str(tmp_path / "demo"), "--rows", "200"])
    text = (tmp_path / "demo" / "plan.toml").read_text()
    plan = tmp_path / "demo" / "brought.toml"
    plan.write_text(
        text.replace("[survey]\n", '[survey]\nimputed_before = { rule = "deterministic", reach = 40 }\n', 1)
    )
    shown = runner.invoke(app, ["preview", str(plan)])
    assert shown.exit_code == 0 and "one respondent moves up to 40 rows of others" in " ".join(
        shown.output.split()
    )
    told = json.loads(runner.invoke(app, ["preview", str(plan), "--json"]).output)
    assert told["imputed_before"]["group"] == 81
