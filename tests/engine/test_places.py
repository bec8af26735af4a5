"""Places are those of the polynomial, for every number that a label can hold."""

from random import Random

import numpy as np

from reticent.engine.donors.circle import PRIME, _times, coefficients, placed, sums
from tests.engine.donors_reference import place_of

EDGES = [0, 1, 2, 2**31 - 1, 2**31, 2**61 - 2, 2**61 - 1, 2**61, 2**62, 2**63 - 2, 2**63 - 1]


def test_products_are_those_of_the_field():
    """All pairs of edges below 2^61 + 8, and 4,000 even pairs, against whole numbers of any size."""
    dice = Random(1)
    low = [edge for edge in EDGES if edge < 2**61] + [2**61 + i for i in range(8)]
    pairs = [(a, b) for a in low for b in low] + [
        (dice.randrange(2**61 + 8), dice.randrange(2**61 + 8)) for _ in range(4_000)
    ]
    a, b = (np.array(each, np.uint64) for each in zip(*pairs, strict=True))
    found = _times(a, b).tolist()
    assert [x % PRIME for x in found] == [x * y % PRIME for x, y in pairs]
    assert max(found) < 2**61 + 8


def test_places_are_those_of_the_definition():
    """Labels of one to four words with and without an owner, at the edges and between, one row or many pieces."""
    dice = Random(2)
    for words, owned, rows in ((1, False, 1), (1, True, 300), (4, False, 300), (3, True, 70_000)):
        label = [[dice.choice(EDGES) for _ in range(300)] for _ in range(words + 1 + owned)]
        arrays = [np.resize(np.array(each), rows) for each in label]
        a0, *c = coefficients("a key", words + 7)
        by = [*c[4:], 0]
        by_number = by.pop(words)
        others = [array for i, array in enumerate(arrays) if i != words]
        found = placed(sums(others, a0, by[: len(others)]), arrays[words], by_number, c[:4])
        for row in dice.sample(range(rows), min(rows, 200)):
            assert found[row] == place_of("a key", [int(array[row]) for array in arrays])


def test_a_place_is_below_the_prime():
    """Of z = p - 1 and c = (1, 1, 0, 0) the sum is p, which is 0."""
    z, none = np.array([PRIME - 1, PRIME, 0], np.uint64), np.zeros(3, np.int64)
    assert placed(z, none, 5, (1, 1, 0, 0)).tolist() == [0, 1, 1]
