"""Table 1 on picked tables: what is counted, that it lies between its bounds, and that the page has the numbers."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent.lab.experiments import synth_picked as lab
from reticent.lab.run.experiment import table_of
from reticent.privacy.missingness import IndependentMask, amplified
from reticent.privacy.missingness.masks import use

DOCS = Path(__file__).parents[2] / "docs" / "lab"


def test_costs_lie_between_chance_times_epsilon_and_what_may_be_claimed():
    """A chain, a star and single columns of five; more columns in a table, less cost."""
    shapes = {
        "single": [(place,) for place in range(5)],
        "chain": [tuple({place, max(0, place - 1)}) for place in range(5)],
        "star": [tuple({place, 0}) for place in range(5)],
    }
    found = {name: lab.costs(sets, observed=Fraction(4, 5)) for name, sets in shapes.items()}
    for each in found.values():
        assert each["first order"] < each["exact"] <= each["claimed"] < 1
    assert found["single"]["exact"] == found["single"]["claimed"]
    assert found["chain"]["exact"] < found["single"]["exact"]


def test_two_columns_by_hand():
    """Half for choosing, met unless both are missing; a quarter for each of one single and one pair."""
    made = lab.costs([(0,), (0, 1)], observed=Fraction(1, 2))
    assert made["first order"] == pytest.approx(0.5 * 0.75 + 0.25 * 0.5 + 0.25 * 0.25)
    law = IndependentMask({"x": Fraction(1, 2)})
    assert made["exact"] > float(amplified([use("x", epsilon=Fraction(1, 2))], law))


def test_what_privbayes_measures_is_counted():
    """On 300 simulated people: every column has one table, whose columns were there before it or are it."""
    sets = lab.picked("census", "0.2", np.random.default_rng(1), rows=300)
    assert {place for each in sets for place in each} == set(range(len(sets)))
    again = lab.picked("census", "0.2", np.random.default_rng(1), rows=300)
    assert sets == again


def test_a_row_has_all_numbers_beside_the_printed_one():
    made = lab.experiment(("census",), rows=300)
    index = made.pieces.index("census/0.3")
    row, *others = lab.told(
        table_of({index: made.run(index, 7), index + len(made.pieces): made.run(index, 8)})
    )
    assert not others and row["runs"] == 2 and row["printed"] is None
    assert {"dataset", "rate", "first order", "exact", "claimed", "columns a table"} <= set(row)


def test_the_page_prints_what_was_run():
    rows = json.loads((DOCS / "synth-picked.json").read_text())["rows"]
    page = (DOCS / "amplification-missing.md").read_text().splitlines()
    for dataset, name in lab.PRINTED.items():
        for key, said in (
            ("first order", "chance times epsilon"),
            ("exact", "exact, had the tables been fixed"),
        ):
            cells = [f"{row[key]:.3f}" for row in rows if row["dataset"] == dataset]
            assert len(cells) == len(lab.RATES)
            assert f"| {name}, {said} | {' | '.join(cells)} |" in page
