"""A thesis's table of amplification by sampling beside what holds, and beside all data sets enumerated. Nothing is drawn."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, pairwise

from reticent.lab.papers.items import printed
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.privacy.sampling import amplified, thesis_bound, thesis_largest_rate

RATE = Fraction(1, 10)
EPSILONS = (".1", ".5", "1", "2", "5", "10")
NOT_USEFUL = ".1"  # here the thesis has N/A, for its epsilon is above the one it starts from
ATTAINED = ((3, 1, "1", "0.452832"), (5, 2, "1.5", "0.872412"))  # n, n', epsilon, the loss by THEORY 5.3
RATES = "by theorem 5.5.1; a sample of any rate below 1 is worth something"
CUT_OFF = "by theorem 5.5.1; .499 is cut off, rounding gives .500"
SMALLER = "ours: smaller by -log(1 - rate), for one who is drawn can be exchanged for one who is not"
NO_NUMBER = "N/A is printed, for theorem 5.5.1 gives more than epsilon here; ours does not"
SAME = "ours, beside the vector of our statements"
ENUMERATED = "ours is attained: the worst loss of all data sets and samples"


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says why numbers differ."""
    return [*_table(), *_attained(), *_pieces()]


def _table() -> Iterator[Outcome]:
    for text in EPSILONS:
        epsilon = Fraction(text)
        yield Outcome(
            item=(item := f"largest rate, epsilon {text}"),
            printed=printed("thesis", "Table 5.1", item),
            as_printed=float(thesis_largest_rate(epsilon=epsilon)),
            query=CUT_OFF if text == "10" else RATES,
        )
        yield Outcome(
            item=(item := f"epsilon at rate 1/10, epsilon {text}"),
            printed=printed("thesis", "Table 5.1", item),
            as_printed=float(thesis_bound(epsilon=epsilon, rate=RATE)),
            value=float(amplified(epsilon=epsilon, rate=RATE)),
            query=NO_NUMBER if text == NOT_USEFUL else SMALLER,
        )


def _attained() -> Iterator[Outcome]:
    for n, size, text, vector in ATTAINED:
        bound = float(amplified(epsilon=Fraction(text), rate=Fraction(size, n)))
        worst, name = worst_loss(n, size, float(text)), f"{size} of {n} drawn, epsilon {text}"
        yield Outcome(item=f"epsilon, {name}", value=bound, vector=float(vector), query=SAME)
        yield Outcome(
            item=f"worst loss of a count, {name}", value=worst, vector=float(vector), query=ENUMERATED
        )


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


def _pieces() -> Iterator[Outcome]:
    """Theorem 5.3.1: all pieces of a cut by lot are answered, each with its own epsilon."""
    for sizes, epsilons in (((2, 2), (1.0, 1.0)), ((1, 3), (1.0, 0.5)), ((2, 3), (0.5, 1.5))):
        each = " and ".join(f"{size} with epsilon {e:g}" for size, e in zip(sizes, epsilons, strict=True))
        yield Outcome(
            item=f"Theorem 5.3.1, pieces of {each}",
            as_printed=max(epsilons),
            value=worst_of_pieces(sizes, epsilons),
            query="ours: the worst loss of noisy counts of all data sets and cuts",
        )


def worst_of_pieces(sizes: tuple[int, int], epsilons: tuple[float, float]) -> float:
    """The largest log ratio of two counts together, over all data sets of zeroes and ones that differ in one answer."""
    n = sum(sizes)
    laws = [_law_of_pieces(ones, sizes, epsilons) for ones in range(n + 1)]
    return max(
        abs(math.log(a / b)) for here, there in pairwise(laws) for a, b in zip(here, there, strict=True)
    )


def _law_of_pieces(ones: int, sizes: tuple[int, int], epsilons: tuple[float, float]) -> list[float]:
    """Chances of all pairs of counts from -1 to n + 1, up to a constant; further out the ratios repeat."""
    n = sum(sizes)
    cuts = [sum(place < ones for place in cut) for cut in combinations(range(n), sizes[0])]
    first, second = (math.exp(-e) for e in epsilons)
    outputs = range(-1, n + 2)
    return [
        sum(first ** abs(a - held) * second ** abs(b - (ones - held)) for held in cuts)
        for a in outputs
        for b in outputs
    ]


def experiment() -> Experiment:
    """Privacy amplification by sampling, as printed and as enumerated."""
    return Experiment(
        name="amplification-table",
        title="Amplification by sampling: a printed table, the sound number, and enumeration",
        source="Privacy in complex sample based surveys, Table 5.1; THEORY 5.3",
        run=run,
        exact=True,
    )
