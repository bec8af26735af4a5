"""Margins in rho by residuals: the published optimum, no neighbour farther than its bound, and tables that are the exact ones."""

from fractions import Fraction
from itertools import product
from math import prod, sqrt
from typing import Any

import numpy as np
import pytest

from reticent.answer.add_up import answer_tables, residual_of
from reticent.plan.plan import Plan
from reticent.plan.tables import AddUpTables
from reticent.refine.allocation import mean_variance, measured_residuals, residual_shares, told_by
from reticent.refine.residuals import ResidualAgreement
from reticent.sensitivity.bounds import Neighbours, length_residual
from tests.doubles import FrozenNoise, ZeroNoise
from tests.tables import ADD, REPLACE, Row, book, make_plan, plain_tallies

PAIRS = [(0, 1), (0, 2), (1, 2)]
PRINTED: list[tuple[tuple[int, ...], list[tuple[int, ...]], float]] = [
    ((8, 5, 10), list(PAIRS), 2.50),
    ((4, 2, 9), list(PAIRS), 2.06),
    ((10, 6, 8, 3), [(0, 1), (1, 2), (2, 3)], 2.53),
    ((10, 6, 8), [(0,), (1,), (2,), *PAIRS], 3.40),
]
"""THEORY 15.3: lengths, margins, mean variance per cell at rho = 1/2."""


@pytest.mark.parametrize(("shape", "asked", "variance"), PRINTED)
def test_the_mean_variance_is_the_published_optimum(shape, asked, variance):
    def scale(axes: tuple[int, ...], share: Fraction) -> float:
        lengths = [shape[axis] for axis in axes]
        return float(length_residual(lengths, neighbours=Neighbours()).bound) / prod(lengths) / sqrt(share)

    found = mean_variance(measured_residuals(shape, asked, scale=scale), asked)
    assert found == pytest.approx(variance, abs=0.005)
    assert sum(residual_shares(shape, asked)) == 1 and told_by(asked)[0] == ()


@pytest.mark.parametrize("lengths", [(2,), (5,), (2, 3), (4, 3), (2, 3, 2)])
@pytest.mark.parametrize("replaced", [False, True])
def test_no_record_moves_a_residual_further_than_its_bound(lengths, replaced):
    """Every cell that a record may come from and go to; attained. Twice the length of one, the twin, is more than needed."""
    cells = list(product(*map(range, lengths)))
    moves = []
    for here in cells:
        for there in cells if replaced else [None]:
            table = np.zeros(lengths, dtype=object)
            table[here] += 1
            if there is not None:
                table[there] -= 1
            moves.append(int((residual_of(table) ** 2).sum()))
    bound = length_residual(lengths, neighbours=Neighbours(replaced=replaced)).bound
    assert max(moves) <= bound**2 < max(moves) + Fraction(1, 2**30)
    if replaced:
        assert bound <= 2 * length_residual(lengths, neighbours=Neighbours()).bound


COLUMNS: dict[str, Any] = {
    "a": {"kind": "categorical", "levels": ["1", "2", "3"]},
    "b": {"kind": "categorical", "levels": ["1", "2"]},
    "c": {"kind": "categorical", "levels": ["1", "2", "3", "4"]},
}
TABLES = {"name": "t", "margins": [["a", "b"], ["b", "c"], ["a", "c"]], "rho": "0.5", "whole": False}
PEOPLE: list[Row] = [
    {"a": a, "b": b, "c": c}
    for a, b, c in [(0, 0, 0), (2, 1, 3), (1, None, 2), (None, None, None), (0, 1, 3)]
]


def planned(change: str, records: int = 1) -> Plan:
    codebook = book(COLUMNS, unit="who", at_most=records) if records > 1 else book(COLUMNS)
    rho = {"change": change, "measure": "zcdp", "rho": "1"}
    return make_plan([], codebook, protect=rho, tables=[TABLES])


def ran(plan: Plan, people: list[Row], noise: Any) -> Any:
    (asked,) = plan.product(AddUpTables).tables  # type: ignore[union-attr]
    wants = asked.wants(plan.schema, plan.neighbours)
    tallies = plain_tallies(plan, people, wants=wants)
    return answer_tables(asked, tallies, noise, schema=plan.schema, neighbours=plan.neighbours)


# covers T20
@pytest.mark.parametrize(("change", "records"), [(ADD, 1), (REPLACE, 1), (ADD, 2)], ids=str)
def test_all_residuals_together_lose_no_more_than_rho(change, records):
    """Everybody who comes, goes or answers otherwise: rho (d/D)^2 summed over the calls is at most the plan's."""
    plan = planned(change, records)
    (asked,) = plan.product(AddUpTables).tables  # type: ignore[union-attr]
    assert change == REPLACE or isinstance(asked.agreement(plan.schema, plan.neighbours), ResidualAgreement)
    assert sum(part.rho for part in asked.parts(plan.schema, plan.neighbours)) == asked.epsilon
    rest, worst = PEOPLE[:2], Fraction(0)
    for mine in (
        ([one] for one in PEOPLE) if records == 1 else ([one, two] for one in PEOPLE for two in PEOPLE)
    ):
        for other in [[each] for each in PEOPLE] if change == REPLACE else [[]]:
            here, there = FrozenNoise(), FrozenNoise()
            ran(plan, [*rest, *mine], here)
            ran(plan, [*rest, *other], there)
            loss = Fraction(0)
            for one, two in zip(here.calls, there.calls, strict=True):
                assert one.parameters == two.parameters
                far = sum((a - b) ** 2 for a, b in zip(one.answers, two.answers, strict=True))
                loss += one.epsilon * Fraction(far) / Fraction(one.sensitivity) ** 2
            worst = max(worst, loss)
    assert worst <= asked.epsilon
    assert worst > Fraction(999, 1000) * asked.epsilon or change == REPLACE


def test_without_noise_the_margins_are_the_exact_ones():
    plan = planned(ADD)
    made = ran(plan, PEOPLE, ZeroNoise())
    first = {dict(line.cell)["a"] + dict(line.cell)["b"]: line.value for line in made.margins[0]}
    assert first["11"] == pytest.approx(1) and first["12"] == pytest.approx(1)
    assert first["(all)(all)"] == pytest.approx(5) and first["21"] == pytest.approx(0, abs=1e-9)
