"""The running example of post-stratification: printed digits, the published formula, and ours."""

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


THEORY = {  # 6.6: chances at alpha 100 and at alpha 200
    "A": (
        "0.062888187 0.627258249 0.051488493 0.154679980 0.103685091",
        "0.009097313 0.905039977 0.006098111 0.055035538 0.024729061",
    ),
    "B": (
        "0.129998332 0.117627355 0.106433633 0.431609664 0.214331016",
        "0.061612362 0.050443936 0.041300001 0.679163936 0.167479765",
    ),
}
SUMS = {"A": (1418.703899, 928.931854, 2174.712008), "B": (2557.620178, 1500.035492, 3610.865936)}


@pytest.mark.parametrize("sample", "AB")
def test_chances_and_sums_are_those_of_our_statements(lines, sample):
    """THEORY 6.6 to nine digits; a digit changed is noticed."""
    found = [line for item, line in lines.items() if item.startswith(f"chance at epsilon 0.01, {sample}")]
    for line, theirs, ours in zip(found, *(text.split() for text in THEORY[sample]), strict=True):
        assert (f"{line.as_printed:.9f}", f"{line.value:.9f}") == (theirs, ours)
        assert f"{line.as_printed + 2e-9:.9f}" != theirs
    names = ("expected sd, {}", "expected sd, {}, published noise", "root mean square sd, {}")
    made = [lines[name.format(sample)] for name in names]
    assert [round(x.as_printed or x.value, 6) for x in made] == list(SUMS[sample])


def test_what_is_printed_is_what_the_formula_gives_rounded_or_it_is_known_why(lines):
    """Printed to three digits or to whole numbers; scores and chances are printed from rounded weights, and one sum is wrong."""
    off = []
    for item, line in lines.items():
        if line.printed is not None and line.as_printed is not None:
            step = 0.001 if "chance" in item else 1 if line.printed > 1 else 1e-4
            if abs(line.printed - line.as_printed) > step / 2 + 1e-12:
                off.append(item)
    assert set(off) == {
        "score, B, minors-adults",
        "sd at epsilon 1, A, minors",
        "sd at epsilon 1, A, minors-adults",
        "sd at epsilon 1, B, minors-adults",
        "chance at epsilon 0.01, A, adults",
        "chance at epsilon 0.01, B, adults",
        "chance at epsilon 0.01, B, minors-adults",
        "chance at epsilon 0.01, B, all",
        "chance of the best at epsilon 0.1, A",
        *(f"expected sd, {sample}" for sample in "AB"),
        "expected sd, A, rounded",
    }
    # six times a weight that was rounded before
    assert lines["sd at epsilon 1, A, minors"].printed == 6 * lines["largest weight, A, minors"].printed


def test_our_noise_and_price_cost_a_fifth(lines):
    """Expected sd of the document's design against the same budget spent as we do."""
    for sample in "AB":
        line = lines[f"expected sd, {sample}"]
        assert line.value < 0.21 * line.as_printed


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
    both = [lines[f"expected sd, {sample}"] for sample in "AB"]
    found = [
        [line.as_printed for line in both],
        [lines[f"expected sd, {sample}, published noise"].value for sample in "AB"],
        [line.value for line in both],
    ]
    for row in found:
        said = " | ".join(f"{number:.2f}" for number in row)
        assert f" | {said} |" in page and f" | {said}1 |" not in page
