"""Pieces of a survey: the exact loss of a cut, by enumeration, and the error of one piece, by enumeration."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.privacy.claim import Change, Claim
from reticent.privacy.sampling import (
    KEY,
    KEY_GROUND,
    Piece,
    allowed,
    amplified,
    by_lot,
    by_values,
    piece_error,
)
from tests.privacy.lots import Data, Law, added, geometric, histogram, loss, mixture, ones, replaced

ADD, REPLACE = Change.ADD_REMOVE, Change.REPLACE
HALF = Fraction(1, 2)


def pure(epsilon: float, change: Change) -> Claim:
    return Claim(measure="pure", epsilon=Fraction(str(epsilon)), change=change)


def pieces(shares: list[Fraction], epsilons: list[float | None], change: Change) -> list[Piece]:
    return [
        Piece(share=share, claim=None if epsilon is None else pure(epsilon, change))
        for share, epsilon in zip(shares, epsilons, strict=True)
    ]


def jointly(laws: list[Law]) -> Law:
    """Independent results side by side."""
    return {
        keys: math.prod(law[key] for law, key in zip(laws, keys, strict=True))
        for keys in product(*(list(law) for law in laws))
    }


def cuts(data: Data, sizes: tuple[int, ...]) -> Iterator[list[Data]]:
    """Every order of the records, cut at fixed places."""
    for order in permutations(data):
        ends = np.cumsum((0, *sizes))
        yield [order[a:b] for a, b in pairwise(ends)]


def fixed(data: Data, sizes: tuple[int, ...], epsilons: list[float | None]) -> Law:
    made = Counter(tuple(tuple(sorted(piece)) for piece in cut) for cut in cuts(data, sizes))
    total = sum(made.values())
    return mixture((n / total, released(list(cut), epsilons, ones)) for cut, n in made.items())


def at_random(data: Data, shares: list[float], epsilons: list[float | None], mechanism) -> Law:
    parts = []
    for where in product(range(len(shares)), repeat=len(data)):
        cut = [tuple(x for x, w in zip(data, where, strict=True) if w == i) for i in range(len(shares))]
        parts.append((math.prod(shares[w] for w in where), released(cut, epsilons, mechanism)))
    return mixture(parts)


def released(cut: list[Data], epsilons: list[float | None], mechanism) -> Law:
    laws = [mechanism(piece, e) for piece, e in zip(cut, epsilons, strict=True) if e is not None]
    return jointly([{k: v for k, v in law.items() if small(k)} for law in laws])


def small(key: object) -> bool:
    """A few results beyond every true count are enough: further out, ratios repeat."""
    return all(-1 <= k <= 4 for k in (key if isinstance(key, tuple) else (key,)))


SIZES = [
    ((1, 2), [1.0, 1.0]),
    ((2, 2), [0.5, 0.5]),
    ((1, 1, 2), [1.0, 1.0, 1.0]),
    ((1, 3), [2.0, 0.5]),
    ((2, 2), [1.0, None]),
    ((1, 1, 2), [1.0, 0.3, None]),
]


@pytest.mark.parametrize(("sizes", "epsilons"), SIZES)
def test_pieces_of_fixed_sizes_cost_at_most_what_is_claimed(sizes, epsilons):
    """All data sets, all cuts. With one epsilon for all pieces the claim is the exact loss."""
    n = sum(sizes)
    shares = [Fraction(size, n) for size in sizes]
    claim = by_lot(pieces(shares, epsilons, REPLACE), sizes="fixed", change=REPLACE)
    worst = max(loss(fixed(a, sizes, epsilons), fixed(b, sizes, epsilons)) for a, b in replaced(n))
    assert worst <= float(claim.epsilon) + 1e-11
    if len({e for e in epsilons if e is not None}) == 1:
        assert worst == pytest.approx(float(claim.epsilon), abs=1e-11)


def given_key(
    lots: dict[str, int], records: dict[str, int], sizes: tuple[int, ...], epsilons: list[float]
) -> Law:
    """The law of all results for somebody who knows every lot: one cut, by rank, and nothing to average over."""
    order = tuple(records[name] for name in sorted(records, key=lots.__getitem__))
    ends = np.cumsum((0, *sizes))
    return released([order[a:b] for a, b in pairwise(ends)], epsilons, ones)


@pytest.mark.parametrize("pieces_", [2, 3, 4])
def test_with_the_lots_known_pieces_of_fixed_sizes_cost_the_sum(pieces_):
    """The naive page said that no secrecy is needed. Records 1, 0, 1, ... by their lots; the first is replaced by one
    that falls to the end: every count changes by one. Averaged over a secret lot the same surveys cost the largest."""
    epsilons: list[float | None] = [0.5] * pieces_
    others = {f"r{i}": i % 2 for i in range(1, pieces_)}
    lots = {"z": 0, **{f"r{i}": i for i in range(1, pieces_)}, "new": pieces_}
    # Answers alternate along the lots, and afterwards each piece holds what the next one held.
    here, there = {"z": 1 - others["r1"], **others}, {**others, "new": 1 - others[f"r{pieces_ - 1}"]}
    sizes = (1,) * pieces_
    known = loss(given_key(lots, here, sizes, epsilons), given_key(lots, there, sizes, epsilons))
    assert known == pytest.approx(0.5 * pieces_, abs=1e-11)
    claim = by_lot(pieces([Fraction(1, pieces_)] * pieces_, epsilons, REPLACE), sizes="fixed", change=REPLACE)
    assert claim.epsilon == HALF < known and claim.secret == KEY
    a, b = (tuple(records.values()) for records in (here, there))
    worst = max(loss(fixed(a, sizes, epsilons), fixed((b[-1], *b[:-1]), sizes, epsilons)), 0.0)
    assert worst <= 0.5 + 1e-11


def test_claims_that_rest_on_the_key_say_so():
    """Every promise by lot; not one by values."""
    halves = [HALF, HALF]
    by_key = [
        by_lot(pieces(halves, [1.0, e], change), sizes=sizes, change=change)
        for sizes, change in (("fixed", REPLACE), ("random", REPLACE), ("random", ADD))
        for e in (1.0, None)
    ]
    for claim in by_key:
        assert str(claim).endswith(", while the key of the partition stays secret")
        assert claim.as_dict()["secret"] == KEY
        assert {"theorem": KEY_GROUND[0], "proof": KEY_GROUND[1]} in claim.as_dict()["rests_on"]
    plain = by_values([pure(1.0, ADD)], change=REPLACE)
    assert "secret" not in str(plain) and "secret" not in plain.as_dict()


def test_fixed_sizes_by_hand():
    quarter = Fraction(1, 4)
    whole = by_lot(pieces([quarter, 3 * quarter], [1.0, 0.5], REPLACE), sizes="fixed", change=REPLACE)
    assert (whole.epsilon, whole.about) == (1, "the incomplete data held")
    part = by_lot(pieces([quarter, 3 * quarter], [1.0, None], REPLACE), sizes="fixed", change=REPLACE)
    assert part.epsilon == amplified(epsilon=Fraction(1), rate=quarter)
    assert part.about == "the frame it was drawn from"
    doubled = by_lot(pieces([quarter, 3 * quarter], [1.0, None], ADD), sizes="fixed", change=REPLACE)
    assert doubled.epsilon == amplified(epsilon=Fraction(2), rate=quarter)


RANDOM = [([0.5, 0.5], [1.0, 1.0]), ([0.25, 0.75], [2.0, 0.5]), ([0.2, 0.8], [1.0, None])]


@pytest.mark.parametrize(("shares", "epsilons"), RANDOM)
def test_pieces_of_random_sizes_cost_exactly_what_is_claimed(shares, epsilons):
    """Every respondent falls into a piece on their own; add/remove, and replace with histograms."""
    made = pieces([Fraction(str(s)) for s in shares], epsilons, ADD)
    for change, pairs, mechanism in ((ADD, added(2), ones), (REPLACE, replaced(2), histogram)):
        claim = by_lot(made, sizes="random", change=change)
        worst = max(
            loss(at_random(a, shares, epsilons, mechanism), at_random(b, shares, epsilons, mechanism))
            for a, b in pairs
        )
        assert worst == pytest.approx(float(claim.epsilon), abs=1e-11)


def test_random_sizes_with_promises_against_replacing_cost_the_largest():
    """Attained: mechanisms that tell how large their piece is, of which nothing is gained."""
    epsilons: list[float | None] = [1.0, 0.5]
    made = pieces([HALF, HALF], epsilons, REPLACE)

    def telling(piece: Data, epsilon: float) -> Law:
        return {(len(piece), o): mass for o, mass in geometric(sum(piece), epsilon).items()}

    laws = [at_random(data, [0.5, 0.5], epsilons, telling) for data in ((0, 0), (1, 0))]
    claim = by_lot(made, sizes="random", change=REPLACE)
    assert claim.epsilon == 1 == pytest.approx(loss(*laws))
    with pytest.raises(PlanError):
        by_lot(made, sizes="random", change=ADD)


def by_value(data: Data, epsilons: list[float]) -> Law:
    """One piece for each value, and how many are in it."""
    return jointly([geometric(sum(x == v for x in data), e) for v, e in enumerate(epsilons)])


def test_pieces_by_values_cost_the_two_largest_against_replacing():
    """Where the piece tells all that is read: nothing changes inside one."""
    epsilons, levels = [1.0, 0.5, 0.25], (0, 1, 2)
    claims, nothing = [pure(e, ADD) for e in epsilons], [Fraction(0)] * 3
    for change, pairs in ((ADD, added(2, levels)), (REPLACE, replaced(2, levels))):
        worst = max(loss(by_value(a, epsilons), by_value(b, epsilons)) for a, b in pairs)
        claim = by_values(claims, change=change, within=nothing)
        assert worst == pytest.approx(float(claim.epsilon))
    # The naive twin: the largest alone, against replacing.
    assert worst > max(epsilons) + 0.4
    with pytest.raises(PlanError, match="another"):
        by_values([pure(1.0, REPLACE)], change=REPLACE)


def test_an_answer_replaced_inside_a_piece_can_cost_more_than_a_move():
    """Pieces by value // 2, a histogram of value % 2 in each: 2 epsilon_1, above the sum of the two largest."""
    epsilons = [1.0, 0.25]

    def law(data: Data) -> Law:
        parts = [[x % 2 for x in data if x // 2 == piece] for piece in (0, 1)]
        return jointly([histogram(part, e) for part, e in zip(parts, epsilons, strict=True)])

    worst = max(loss(law(a), law(b)) for a, b in replaced(1, (0, 1, 2, 3)))
    claims = [pure(e, ADD) for e in epsilons]
    assert worst == pytest.approx(float(by_values(claims, change=REPLACE).epsilon)) == 2
    # The naive twin: the two largest together, whatever happens inside a piece.
    assert worst > float(by_values(claims, change=REPLACE, within=[Fraction(0)] * 2).epsilon)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: by_lot(pieces([HALF], [1.0], REPLACE), sizes="fixed", change=REPLACE),
        lambda: by_lot(pieces([HALF, HALF], [None, None], REPLACE), sizes="fixed", change=REPLACE),
        lambda: by_lot(pieces([HALF, HALF], [1.0, 1.0], ADD), sizes="fixed", change=ADD),
        lambda: by_values([], change=ADD),
        lambda: by_values([pure(1.0, ADD)], change=REPLACE, within=[]),
        lambda: by_values([pure(1.0, ADD)], change=REPLACE, within=[Fraction(-1)]),
        lambda: Piece(share=Fraction(0), claim=None),
        lambda: Piece(share=HALF, claim=Claim(measure="zcdp", rho=HALF)),
        lambda: replace(Piece(share=HALF, claim=None), share=Fraction(2)),
        lambda: Piece(share=HALF, claim=replace(pure(1.0, ADD), about="the frame it was drawn from")),
        lambda: piece_error(size=0, of=2, sd=1, width=1, epsilon=HALF),
        lambda: piece_error(size=3, of=2, sd=1, width=1, epsilon=HALF),
        lambda: piece_error(size=1, of=2, sd=math.nan, width=1, epsilon=HALF),
    ],
)
def test_pieces_that_do_not_fit_are_refused(wrong):
    with pytest.raises(PlanError):
        wrong()


# The error of one piece.


def test_sampling_variance_is_that_of_all_samples():
    """Every sample of three out of seven answers, by enumeration."""
    answers = np.array([0.0, 1.0, 1.0, 2.0, 5.0, 7.0, 9.0])
    means = [np.mean(drawn) for drawn in combinations(answers, 3)]
    found = piece_error(size=3, of=7, sd=float(np.std(answers, ddof=1)), width=10, epsilon=HALF)
    assert found.sampling == pytest.approx(np.var(means))
    assert found.noise == pytest.approx(2 * (10 / (3 * 0.5)) ** 2)
    assert found.sd == pytest.approx(math.sqrt(found.sampling + found.noise))
    # The naive twin forgets that the population is finite.
    assert answers.var(ddof=1) / 3 > 1.5 * np.var(means)


def test_all_respondents_have_no_sampling_error():
    assert piece_error(size=9, of=9, sd=3, width=1, epsilon=HALF).sampling == 0


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 999), st.integers(1, 10**6))
def test_a_sample_never_has_less_noise_than_everybody_at_the_same_promise(size, millionths):
    """Bernoulli's inequality: (1 + x)^(1/rate) >= 1 + x/rate. What sampling gains in epsilon it loses in size."""
    promised, of = Fraction(millionths, 10**5), 1000
    spent = allowed(epsilon=promised, rate=Fraction(size, of))
    everybody = piece_error(size=of, of=of, sd=1, width=1, epsilon=promised)
    assert piece_error(size=size, of=of, sd=1, width=1, epsilon=spent).noise >= everybody.noise
