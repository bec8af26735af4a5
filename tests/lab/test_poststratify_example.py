"""The running example of post-stratification: every number is the printed one, but for three that say why."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent.lab.cutoffs import collapse_by_cutoffs
from reticent.lab.experiments import find, poststratify_example
from reticent.prepare.strata import EQUAL, outward, separate
from reticent.sensitivity.poststrata import Tally

F = Fraction


@pytest.fixture(scope="module")
def lines():
    return {line.item: line for line in poststratify_example.run(0, 0)}


def is_printed(line) -> bool:
    """Equal to the last of the nine digits after the point, or of the six, that are printed."""
    digits = 9 if f"{line.printed:.9f}"[-3:] != "000" else 6
    return f"{line.value:.{digits}f}" == f"{line.printed:.{digits}f}"


def test_every_number_is_the_printed_one_or_says_why(lines):
    """THEORY 6.6; the three that differ have their reason in brackets."""
    printed = [line for line in lines.values() if line.printed is not None]
    assert len(printed) == 86
    differ = [line.item for line in printed if not is_printed(line)]
    assert len(differ) == 3 and all("(" in item for item in differ)
    assert [round(lines[item].value, 6) for item in differ] == [0.005, 1418.703899, 2557.620178]


def test_the_check_sees_a_wrong_digit(lines):
    line = lines["chance, A, minors"]
    assert is_printed(line) and not is_printed(replace(line, value=line.value + 2e-9))


def test_our_noise_and_price_cost_a_fifth(lines):
    """Expected sd of the document's design against the same budget spent as we do."""
    for sample in "AB":
        (before,) = [
            x.value for name, x in lines.items() if name.startswith(f"expected sd, {sample}, alpha 100")
        ]
        assert lines[f"expected sd, {sample}, alpha 200, Lomax noise"].value < 0.21 * before


def test_the_lab_finds_it_by_name():
    assert find("poststratify-example").exact


def of(*counts):
    n = np.array(counts)
    return Tally(count=n, total=n, matching=n, largest=np.zeros((len(n), 0), np.int64))


def test_cut_offs_look_at_records_and_at_the_ratio():
    """Nine records are too few; a ratio of 3.5 is allowed and one more is not, upwards and downwards."""
    start, order = separate([F(35), F(35), F(35)]), outward(3)

    def bins(*counts):
        return len(collapse_by_cutoffs(start, order, of(*counts), base=EQUAL).totals)

    assert bins(10, 10, 122) == 3
    assert bins(9, 30, 30) == 2 and bins(30, 30, 123) == 2
    wide = separate([F(36), F(35), F(35)])
    assert len(collapse_by_cutoffs(wide, order, of(10, 30, 30), base=EQUAL).totals) == 2


def test_one_respondent_can_decide_what_the_cut_offs_do():
    """Why they are not private: two neighbours, two different sets of bins, with certainty."""
    start = separate([F(20), F(20)])
    one, other = (collapse_by_cutoffs(start, outward(2), of(n, 20), base=EQUAL).bins for n in (9, 10))
    assert one != other


PAGE = Path(__file__).parents[2] / "docs" / "theory" / "weights.md"


def test_the_page_prints_the_numbers_that_were_computed(lines):
    """The last three lines of its table, and a changed digit is noticed."""
    page = PAGE.read_text(encoding="utf-8")
    for what in ("alpha 100", "alpha 200", "alpha 200, Lomax noise"):
        found = [
            f"{line.value:.2f}"
            for sample in "AB"
            for item, line in lines.items()
            if item.split(" (")[0] == f"expected sd, {sample}, {what}"
        ]
        assert f" | {' | '.join(found)} |" in page and f" | {' | '.join(found)}1 |" not in page
