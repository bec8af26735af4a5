"""A thesis's table of amplification by sampling beside what holds, and beside all data sets enumerated. Nothing is drawn."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise

from reticent.lab.run.experiment import Experiment, Outcome
from reticent.privacy.sampling import amplified, thesis_bound, thesis_largest_rate

RATE = Fraction(1, 10)
# epsilon: the thesis's largest useful rate, and its epsilon at a rate of 1/10 where that is below epsilon; the
# digits are those of THEORY 5.3
TABLE = """
0.1  0.086893566
0.5  0.282366701  0.168215239
1    0.387300163  0.263925594
2    0.463710558  0.599389224
5    0.498309819  2.861649358
10   0.499988650  7.803183939
"""
ATTAINED = ((3, 1, "1", "0.452832"), (5, 2, "1.5", "0.872412"))  # n, n', epsilon, the loss
SAME = "as printed"
NOT_USEFUL = "not in the table: above epsilon, so the thesis prints N/A"
SMALLER = "ours: smaller by -log(1 - rate), for one who is drawn can be exchanged for one who is not"
ENUMERATED = "ours is attained: the worst loss of all data sets and samples"


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says why a value differs from the printed one."""
    return [*_table(), *_attained()]


def _table() -> Iterator[Outcome]:
    for line in TABLE.strip().splitlines():
        text, largest, *rest = line.split()
        epsilon, printed = Fraction(text), float(rest[0]) if rest else None
        yield _item(
            f"largest useful rate, epsilon {text}", thesis_largest_rate(epsilon=epsilon), SAME, float(largest)
        )
        theirs, ours = thesis_bound(epsilon=epsilon, rate=RATE), amplified(epsilon=epsilon, rate=RATE)
        why = SAME if rest else NOT_USEFUL
        yield _item(f"epsilon at rate 1/10, epsilon {text}, by theorem 5.5.1", theirs, why, printed)
        yield _item(f"epsilon at rate 1/10, epsilon {text}", ours, SMALLER, printed)


def _attained() -> Iterator[Outcome]:
    for n, size, text, printed in ATTAINED:
        bound = amplified(epsilon=Fraction(text), rate=Fraction(size, n))
        name = f"{size} of {n} drawn, epsilon {text}"
        yield _item(f"epsilon, {name}", bound, SAME, float(printed))
        yield _item(
            f"worst loss of a count, {name}", worst_loss(n, size, float(text)), ENUMERATED, float(printed)
        )


def _item(item: str, value: Fraction | float, why: str, printed: float | None) -> Outcome:
    return Outcome(item=item, value=float(value), query=why, printed=printed)


def worst_loss(n: int, size: int, epsilon: float) -> float:
    """The largest log ratio of geometric counts of ones on a sample, over all data sets of `n` zeroes and ones."""
    laws = [_law(ones, n, size, epsilon) for ones in range(n + 1)]
    return max(
        abs(math.log(a / b)) for here, there in pairwise(laws) for a, b in zip(here, there, strict=True)
    )


def _law(ones: int, n: int, size: int, epsilon: float) -> list[float]:
    """Chances of the counts from -1 to n + 1; further out the ratios repeat."""
    drawn = [sum(place < ones for place in sample) for sample in combinations(range(n), size)]
    ratio = math.exp(-epsilon)
    return [
        sum(ratio ** abs(o - count) for count in drawn) * (1 - ratio) / (1 + ratio) / len(drawn)
        for o in range(-1, n + 2)
    ]


def experiment() -> Experiment:
    return Experiment(
        name="amplification-table",
        title="Amplification by sampling: a printed table, the sound number, and enumeration",
        source="Privacy in complex sample based surveys, Table 5.1; THEORY 5.3",
        run=run,
        exact=True,
    )
