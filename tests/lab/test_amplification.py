"""The table of amplification: every printed number is found, and where ours differs the reason stands beside it."""

from fractions import Fraction

import pytest

from reticent.lab.experiments import amplification
from reticent.privacy.sampling import amplified


@pytest.fixture(scope="module")
def lines():
    return amplification.run(0, 0)


def test_every_item_has_its_reason_and_no_item_comes_twice(lines):
    assert len(lines) == len({line.item for line in lines}) == 19
    assert all(line.query for line in lines)


VECTORS = {  # THEORY 5.3: the largest rate by the thesis's formula, and its epsilon at 1/10
    ".1": (0.086893566, 0.115822568),
    ".5": (0.282366701, 0.168215239),
    "1": (0.387300163, 0.263925594),
    "2": (0.463710558, 0.599389224),
    "5": (0.498309819, 2.861649358),
    "10": (0.499988650, 7.803183939),
}


def test_the_published_formula_gives_the_printed_digits_and_our_vectors(lines):
    """Rounded to the digits printed, all but the one that is cut off; and to nine digits, the vectors."""
    found = {line.item: line for line in lines}
    for epsilon, vectors in VECTORS.items():
        for item, vector in zip(("largest rate", "epsilon at rate 1/10"), vectors, strict=True):
            line = found[f"{item}, epsilon {epsilon}"]
            if epsilon != ".1" or item == "largest rate":
                digits = 3 if item == "largest rate" else 2
                rounded = line.printed == round(line.as_printed, digits)
                assert rounded == (line.query != amplification.CUT_OFF), line.item
                assert line.as_printed == pytest.approx(vector, abs=6e-10), line.item


def test_ours_is_below_theirs_and_the_reason_is_the_true_difference(lines):
    ours = [line for line in lines if line.query in (amplification.SMALLER, amplification.NO_NUMBER)]
    assert len(ours) == 6
    for line in ours:
        assert line.as_printed - line.value == pytest.approx(0.105360516, abs=2e-9)  # -log(0.9)
    for line in lines:
        assert line.vector is None or line.value == pytest.approx(line.vector, abs=6e-7)


@pytest.mark.parametrize(("n", "size"), [(2, 1), (3, 2), (4, 1), (4, 3), (6, 2)])
def test_enumeration_attains_the_formula_and_not_the_naive_one(n, size):
    """The naive twin, rate times epsilon, is passed."""
    worst = amplification.worst_loss(n, size, 1.0)
    assert worst == pytest.approx(float(amplified(epsilon=Fraction(1), rate=Fraction(size, n))), abs=1e-11)
    assert worst > size / n + 0.01


def test_pieces_by_lot_cost_the_largest_epsilon_and_no_less_would_do():
    """By enumeration; the naive twin, that the smallest is enough, is passed where the pieces differ."""
    for sizes, epsilons in (((2, 2), (1.0, 1.0)), ((1, 3), (1.0, 0.5)), ((2, 3), (0.5, 1.5))):
        worst = amplification.worst_of_pieces(sizes, epsilons)
        assert worst <= max(epsilons) + 1e-12
        assert worst > min(epsilons) + 0.1 or len(set(epsilons)) == 1
    assert amplification.worst_of_pieces((2, 2), (1.0, 1.0)) == pytest.approx(1.0)
