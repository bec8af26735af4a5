"""Amplification by missingness against all masks, rows and outputs of tiny tables: attained, and never passed."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from reticent.privacy.missingness import (
    EVERY_ROW,
    IndependentMask,
    MaskTable,
    Use,
    amplified,
    amplified_both_ways,
    amplified_delta,
    amplified_replaced,
    columnwise,
    first_order,
    sets_of,
)
from reticent.privacy.missingness.bounds import Rated, amplified_at
from tests.privacy.masked import (
    Mask,
    Masked,
    both,
    count,
    divergence,
    excess,
    geometric,
    independent,
    is_used,
    loss,
    ones,
    released,
    rows,
    subsets,
)

CLOSE = 1e-9
SYSTEMS = {  # sets and epsilons; chances of a, b and c
    "one": ([("a", 1.0)], (0.5, 1.0, 1.0)),
    "nested": ([("a", 1.0), ("ab", 1.0)], (0.5, 0.5, 1.0)),
    "chain": ([("ab", 0.7), ("bc", 1.1)], (0.8, 0.6, 0.3)),
    "star": ([("a", 0.5), ("ab", 0.5), ("ac", 1.5)], (0.3, 0.9, 0.5)),
    "all": ([("abc", 2.0), ("a", 0.1)], (0.9, 0.8, 0.7)),
}


def uses_of(system: list[tuple[str, float]]) -> list[Use]:
    return [Use(sets=(frozenset(s),), epsilon=Fraction(str(e))) for s, e in system]


def exact_law(chances: tuple[float, ...]) -> IndependentMask:
    return IndependentMask({n: Fraction(str(p)) for n, p in zip("abc", chances, strict=True)})


def masks(chances: tuple[float, ...]):
    return independent(dict(zip("abc", chances, strict=True)))


def added(mechanisms, law, names="abc", others=(0, 1)):
    """The largest log ratio each way, over every row added to every table of up to one other."""
    up = down = 0.0
    for size in others:
        for rest in combinations_with_replacement(rows(names), size):
            without = np.log(released(rest, law, mechanisms))
            for row in rows(names):
                ratio = np.log(released((*rest, row), law, mechanisms)) - without
                up, down = max(up, float(ratio.max())), max(down, float(-ratio.min()))
    return up, down


# Add or remove.


@pytest.mark.parametrize("name", SYSTEMS)
def test_adding_a_row_attains_the_bound_and_nothing_passes_it(name):
    """Counts of used rows, up to two rows, all masks. The naive twin, chance times epsilon, is passed."""
    system, chances = SYSTEMS[name]
    uses, law = uses_of(system), exact_law(chances)
    up, down = added([count(s, epsilon=e) for s, e in system], masks(chances))
    bound = float(amplified(uses, law))
    assert abs(up - bound) < CLOSE
    back = float(amplified_both_ways(uses, law)) - bound
    assert abs(down - back) < CLOSE and down <= bound
    assert up > float(first_order(uses, law)) + 0.01  # the naive twin; covers T25


def test_a_choice_uses_the_row_when_any_candidate_is_observed():
    """A mechanism on rows with {a, b} or {a, c}; the naive twin counts the set that was chosen only."""
    chances = (0.8, 0.5, 0.5)
    up, _ = added([count("ab", "ac", epsilon=1.0), count("ab", epsilon=1.0)], masks(chances))
    choice = Use(sets=sets_of({"a", "b"}, {"a", "c"}), epsilon=Fraction(1))
    then = Use(sets=sets_of({"a", "b"}), epsilon=Fraction(1))
    assert abs(up - float(amplified([choice, then], exact_law(chances)))) < CLOSE
    assert up > float(amplified([then, then], exact_law(chances))) + 0.05  # the naive twin


def test_a_list_with_an_entry_for_rows_left_out_is_not_amplified():
    """What our synthesizers measure of available cells: whoever lacks an answer is in the last entry, so used."""

    def parted(name: str, epsilon: float):
        def law(table: Masked) -> np.ndarray:
            held = sum(name in mask for _, mask in table)
            return np.multiply.outer(geometric(held, epsilon, 2), geometric(len(table) - held, epsilon, 2))

        return law

    chances = (0.5, 1.0, 1.0)
    up, _ = added([parted("a", 1.0)], masks(chances))
    assert abs(up - 1) < CLOSE
    assert (
        up > float(amplified([Use(sets=sets_of({"a"}), epsilon=Fraction(1))], exact_law(chances))) + 0.3
    )  # naive
    assert amplified([Use(sets=EVERY_ROW, epsilon=Fraction(1))], exact_law(chances)) == 1


def test_columnwise_imputation_is_amplified_in_every_column():
    """Each column's model counts rows that hold it, by the value of another cell, filled where it is missing."""

    def model(name: str, other: str, epsilon: float):
        def law(table: Masked) -> np.ndarray:
            held = [(row, mask) for row, mask in table if name in mask]
            said = sum(row[other] if other in mask else 1 for row, mask in held)
            ratio = math.exp(-epsilon)
            return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-1, 4) - said)

        return law

    chances = (0.6, 0.3, 1.0)
    up, down = added([model("a", "b", 1.0), model("b", "a", 0.5)], masks(chances))
    bound = columnwise({"a": Fraction(1), "b": Fraction(1, 2)}, exact_law(chances))
    assert abs(up - float(bound)) < CLOSE and down <= float(bound)


# Replace.


def replaced(mechanisms, law, names="ab"):
    worst = 0.0
    for rest in [(), *((row,) for row in rows(names))]:
        laws = [released((*rest, row), law, mechanisms) for row in rows(names)]
        worst = max(worst, *(loss(a, b) for a, b in product(laws, repeat=2)))
    return worst


@pytest.mark.parametrize("name", ["one", "nested"])
def test_replacing_a_row_attains_the_bound_where_mechanisms_hide_adding_only(name):
    """A count for each answer, so one row lifts what the other lowers. The bound for adding is passed."""
    system, chances = SYSTEMS[name]
    uses, law = uses_of(system), exact_law(chances)
    worst = replaced([both(s, epsilon=e, top=1) for s, e in system], masks(chances))
    assert abs(worst - float(amplified_both_ways(uses, law))) < CLOSE
    assert worst > float(amplified(uses, law)) + 0.1  # the naive twin
    assert worst < 2 * float(amplified(uses, law))  # so `under` would be right, and more than is needed


@pytest.mark.parametrize("name", ["one", "nested", "chain"])
def test_replacing_a_row_costs_no_more_than_adding_where_mechanisms_hide_both(name):
    """Counts of ones: attained by an answer of 1 against one of 0."""
    system, chances = SYSTEMS[name]
    names = "abc" if name == "chain" else "ab"
    worst = replaced([ones(s, epsilon=e) for s, e in system], masks(chances), names)
    assert abs(worst - float(amplified_replaced(uses_of(system), exact_law(chances)))) < CLOSE


# Any mechanism at all.

OUTPUTS = 3


def random_mechanism(rng, sets: tuple[Mask, ...], tilt: float):
    """A law for every content of the used rows, tilted at will; what it promises is measured."""
    laws: dict[object, np.ndarray] = {}

    def content(table: Masked):
        used = [(row, mask) for row, mask in table if is_used(mask, sets)]
        return tuple(sorted(tuple(sorted((n, row[n]) for n in mask)) for row, mask in used))

    def law(table: Masked) -> np.ndarray:
        key = content(table)
        if key not in laws:
            weights = np.exp(rng.choice([-tilt, tilt], OUTPUTS))
            laws[key] = weights / weights.sum()
        return laws[key]

    return law


def used_tables(sets: tuple[Mask, ...], names: str) -> list[Masked]:
    """Every table of at most two rows, all of them used."""
    cells = [(row, mask) for row in rows(names) for mask in subsets(names) if is_used(mask, sets)]
    return [t for size in range(3) for t in combinations_with_replacement(cells, size)]


def measured(mechanism, sets, names="ab", distance=loss):
    """The worst distance when a used row is added, and when one is replaced."""
    tables = used_tables(sets, names)
    cells = [table[0] for table in tables if len(table) == 1]
    small = [table for table in tables if len(table) < 2]
    add = max(distance(mechanism(t), mechanism((*t, cell))) for t in small for cell in cells)
    swap = max(distance(mechanism((*t, c)), mechanism((*t, d))) for t in small for c in cells for d in cells)
    return add, swap


def some_mechanisms(rng, tilts):
    sets = [sets_of({"a"}), sets_of({"a", "b"}), sets_of({"a"}, {"b"})]
    return [(s, random_mechanism(rng, s, t)) for s, t in zip(sets, tilts, strict=True)]


def up(value: float) -> Fraction:
    return Fraction(max(value, 1e-9)) + Fraction(1, 10**9)


def neighbours():
    """Up to one other row; a row added, and that row replaced."""
    for rest in [(), *((row,) for row in rows("ab"))]:
        for row in rows("ab"):
            yield rest, (*rest, row), [(*rest, other) for other in rows("ab")]


def test_no_mechanism_passes_the_bounds():
    """12 times three random mechanisms, one a choice among sets: add, remove, replace; each promise is measured."""
    rng = np.random.default_rng(4)
    twin_passed = 0
    for _ in range(12):
        chances = {"a": float(rng.uniform(0.1, 0.9)), "b": float(rng.uniform(0.1, 0.9))}
        parts = some_mechanisms(rng, rng.uniform(0.2, 1.5, 3))
        promised = [measured(mechanism, sets) for sets, mechanism in parts]
        law, mechanisms = independent(chances), [m for _, m in parts]
        exact = IndependentMask({n: Fraction(p) for n, p in chances.items()})
        adding = [Use(sets=s, epsilon=up(a)) for (s, _), (a, _) in zip(parts, promised, strict=True)]
        hiding = [Use(sets=s, epsilon=up(max(p))) for (s, _), p in zip(parts, promised, strict=True)]
        one, two, three = (
            amplified(adding, exact),
            amplified_both_ways(adding, exact),
            amplified(hiding, exact),
        )
        for rest, more, others in neighbours():
            here = released(more, law, mechanisms)
            lost = loss(here, released(rest, law, mechanisms))
            assert lost <= one
            twin_passed += lost > first_order(adding, exact)
            for other in others:
                assert loss(here, released(other, law, mechanisms)) <= min(two, three)
    assert twin_passed > 0


def test_no_mechanism_passes_delta():
    """6 times three random mechanisms, each promised at half its own epsilon, the rest in delta."""
    rng = np.random.default_rng(5)
    near = 0.0
    for _ in range(6):
        chances = {"a": float(rng.uniform(0.2, 0.9)), "b": float(rng.uniform(0.2, 0.9))}
        parts = some_mechanisms(rng, rng.uniform(0.2, 1.0, 3))
        law = independent(chances)
        exact = IndependentMask({n: Fraction(p) for n, p in chances.items()})
        uses = []
        for sets, mechanism in parts:
            half = measured(mechanism, sets)[0] / 2 + 1e-6

            def beyond(a, b, half=half):
                return excess(a, b, half)

            uses.append(
                Use(
                    sets=sets,
                    epsilon=Fraction(half),
                    delta=up(measured(mechanism, sets, distance=beyond)[0]),
                )
            )
        epsilon, delta = float(amplified(uses, exact)), float(amplified_delta(uses, exact))
        for rest, more, _ in neighbours():
            lost = excess(
                released(more, law, [m for _, m in parts]),
                released(rest, law, [m for _, m in parts]),
                epsilon,
            )
            assert lost <= delta
            near = max(near, lost / delta)
    assert near > 0.1  # the bound is not idle


def test_delta_is_attained_by_a_mechanism_that_tells_all_now_and_then():
    """With chance 0.01 it says that a row is there. The naive twin keeps delta as small as the rarest set's."""

    def tells(names: str):
        def law(table: Masked) -> np.ndarray:
            there = any(set(names) <= mask for _, mask in table)
            return np.array([0.99, 0.01]) if there else np.array([1.0, 0.0])

        return law

    mask = independent({"a": 0.5, "b": 0.25})
    here, there = (released(t, mask, [tells("a"), tells("ab")]) for t in ([rows("ab")[0]], []))
    tiny = Fraction(1, 10**12)
    uses = [Use(sets=sets_of(set(s)), epsilon=tiny, delta=Fraction(1, 100)) for s in ("a", "ab")]
    law = IndependentMask({"a": Fraction(1, 2), "b": Fraction(1, 4)})
    delta = amplified_delta(uses, law)
    assert delta == Fraction("0.00625")
    overlap = 0.125 * 0.0001  # where both tell, it is counted twice
    assert excess(here, there, float(amplified(uses, law))) == pytest.approx(float(delta) - overlap, abs=1e-9)
    assert excess(here, there, 0.0) > 2 * 0.125 * 0.01 + 0.001


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_no_mechanism_passes_the_renyi_bound(order):
    """3 times three random mechanisms, both directions."""
    rng = np.random.default_rng(6)
    for _ in range(3):
        chances = {"a": float(rng.uniform(0.2, 0.9)), "b": float(rng.uniform(0.2, 0.9))}
        parts = some_mechanisms(rng, rng.uniform(0.2, 1.0, 3))
        law, mechanisms = independent(chances), [m for _, m in parts]
        rhos = [up(measured(m, s, distance=lambda a, b: divergence(a, b, order))[0]) for s, m in parts]
        rated = [Rated(sets=s, curve=lambda _, rho=rho: rho) for (s, _), rho in zip(parts, rhos, strict=True)]
        exact = IndependentMask({n: Fraction(p) for n, p in chances.items()})
        bound = amplified_at(rated, exact, order=Fraction(order))
        for rest, more, _ in neighbours():
            here, there = released(more, law, mechanisms), released(rest, law, mechanisms)
            assert divergence(here, there, order) <= bound


def test_in_renyi_too_the_chance_times_the_cost_is_passed():
    """The naive twin: one count on rows that are observed half the time, order 8. Ours is not passed."""
    mechanism, row = count("a", epsilon=2.0, top=1), rows("a")[0]
    used = divergence(mechanism(((row, frozenset("a")),)), mechanism(()), 8.0)
    lost = divergence(*(released(t, independent({"a": 0.5}), [mechanism]) for t in ([row], [])), 8.0)
    rated = [Rated(sets=sets_of({"a"}), curve=lambda _: up(used))]
    assert (
        used / 2 + 0.1
        < lost
        <= amplified_at(rated, IndependentMask({"a": Fraction(1, 2)}), order=Fraction(8))
    )


# Masks that look at the row, or at each other.


def test_masks_may_look_at_their_own_row_within_the_bounds():
    """b is observed with chance 0.9 by those who say 1 to a, else with 0.2. The naive twin, the average chance, is passed."""

    def masks_by_row(row):
        return independent({"a": 0.5, "b": 0.9 if row["a"] else 0.2})(row)

    system = [("a", 0.5), ("ab", 1.5)]
    mechanisms = [count(s, epsilon=e) for s, e in system]
    bounds = IndependentMask({"a": Fraction("0.5"), "b": Fraction("0.9")})
    up_, down = added(mechanisms, masks_by_row, "ab")
    assert abs(up_ - float(amplified(uses_of(system), bounds))) < CLOSE and down <= up_
    worst = replaced([ones(s, epsilon=e) for s, e in system], masks_by_row)
    assert worst <= float(amplified_replaced(uses_of(system), bounds)) + CLOSE
    assert replaced(mechanisms, masks_by_row) <= float(amplified_both_ways(uses_of(system), bounds)) + CLOSE
    average = IndependentMask({"a": Fraction("0.5"), "b": Fraction("0.55")})
    assert up_ > float(amplified(uses_of(system), average)) + 0.05


def test_masks_of_one_row_may_depend_on_each_other_if_their_law_is_known():
    """Both answers or none: the table of masks is attained; the naive twin, independent bits, is passed."""
    together = {frozenset("ab"): Fraction(1, 2), frozenset(): Fraction(1, 2)}
    system = [("a", 1.0), ("b", 1.0)]

    def clustered(row):
        return [(mask, float(share)) for mask, share in together.items()]

    up_, down = added([count(s, epsilon=e) for s, e in system], clustered, "ab")
    bound = float(amplified(uses_of(system), MaskTable([together])))
    assert abs(up_ - bound) < CLOSE and down <= bound
    halves = IndependentMask({"a": Fraction(1, 2), "b": Fraction(1, 2)})
    assert up_ > float(amplified(uses_of(system), halves)) + 0.1


def by_answer(classes):
    """A law for each answer to a."""
    return lambda row: [(mask, float(share)) for mask, share in classes[row["a"]].items()]


def test_a_replaced_row_may_leave_one_class_for_another():
    """Who says 1 shows both answers or none, who says 0 always a: the dearer of each direction is in another class."""
    half = Fraction(1, 2)
    classes = [{frozenset("a"): Fraction(1)}, {frozenset("ab"): half, frozenset(): half}]
    system = [("a", 1.0), ("b", 1.0)]
    mechanisms = [both(s, epsilon=e, top=1) for s, e in system]
    laws = [released([{"a": said, "b": said}], by_answer(classes), mechanisms) for said in (0, 1)]
    bound = float(amplified_both_ways(uses_of(system), MaskTable(classes)))
    assert abs(loss(*laws) - bound) < CLOSE
    # The naive twin: one class at a time. Of the first, a row is used once and no more.
    alone = [
        amplified_both_ways(uses, MaskTable([each]))
        for uses, each in zip((uses_of(system[:1]), uses_of(system)), classes, strict=True)
    ]
    assert bound > float(max(alone)) + 0.4


def test_mechanisms_that_hide_both_may_still_tell_one_class_from_another():
    """One answer is observed or the other: counts of used rows, which no used row moves by its answer, lose the sum."""
    classes = [{frozenset("b"): Fraction(1)}, {frozenset("a"): Fraction(1)}]
    system = [("a", 1.0), ("b", 1.0)]
    worst = replaced([count(s, epsilon=e) for s, e in system], by_answer(classes))
    law = MaskTable(classes)
    assert worst == pytest.approx(2) and amplified_replaced(uses_of(system), law) == 2
    assert amplified(uses_of(system), law) < 1.01  # the naive twin: Harris where bits hang together


def test_in_renyi_too_the_dearest_class_counts():
    seen, unseen = {frozenset("a"): Fraction(1)}, {frozenset(): Fraction(1)}
    rated = [Rated(sets=sets_of({"a"}), curve=lambda order: order / 8)]
    for classes in ([seen, unseen], [unseen, seen], [seen]):
        found = amplified_at(rated, MaskTable(classes), order=Fraction(2))
        assert abs(found - Fraction(1, 4)) <= Fraction(1, 10**11)


def test_delta_of_dependent_masks_is_covered_both_ways():
    """a is observed where b is not: looking back, e^-s weighs the rows with a, and the mean of delta is passed."""
    apart = {frozenset("a"): Fraction(1, 2), frozenset("b"): Fraction(1, 2)}
    uses = [
        Use(sets=sets_of({"a"}), epsilon=Fraction(1, 1000), delta=Fraction(1, 100)),
        Use(sets=sets_of({"b"}), epsilon=Fraction(3)),
    ]
    by_harris = first_order([Use(sets=uses[0].sets, epsilon=uses[0].delta)], MaskTable([apart]))
    assert by_harris == Fraction(1, 200)
    assert amplified_delta(uses, MaskTable([apart])) > Fraction(9, 1000)


# Rows that are masked together: Example 5.1 of the paper, as we read it.


def test_one_mask_for_all_rows_amplifies_nothing():
    """A coin for the whole table: ten rows observed, or none. The count's loss is near epsilon, far above the bound."""
    epsilon, p = 1.0, 0.5

    def law(n: int) -> np.ndarray:
        ratio = math.exp(-epsilon)
        outputs = np.arange(-1, 13)
        seen = (1 - ratio) / (1 + ratio) * ratio ** np.abs(outputs - n)
        unseen = (1 - ratio) / (1 + ratio) * ratio ** np.abs(outputs)
        return p * seen + (1 - p) * unseen

    bound = float(
        amplified([Use(sets=sets_of({"a"}), epsilon=Fraction(1))], IndependentMask({"a": Fraction(1, 2)}))
    )
    assert loss(law(11), law(10)) > 0.999 > bound + 0.3


def test_masks_that_look_at_another_row_break_even_the_promise_about_the_data_held():
    """If the first respondent says 1, nobody else is observed: a 1-DP count of three others loses 3."""

    def law(first: int) -> np.ndarray:
        ratio = math.exp(-1.0)
        return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-1, 5) - (0 if first else 3))

    assert loss(law(0), law(1)) == pytest.approx(3)


def test_masks_that_the_reader_knows_amplify_nothing():
    """Given that somebody answered everything, the loss is the sum."""
    system, _ = SYSTEMS["nested"]
    mechanisms = [count(s, epsilon=e) for s, e in system]
    row = rows("abc")[0]
    seen = released([row], lambda _: [(frozenset("abc"), 1.0)], mechanisms)
    assert loss(seen, released([], lambda _: [], mechanisms)) == pytest.approx(2)
