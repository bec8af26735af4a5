"""The published accounts of Mohapatra, Zong, Kerschbaum and He (2024), section 5, by name, and made sound.

They put mechanisms into groups, give each group attributes that all its members need and no other group has, and
multiply the group's epsilon by the chance that these are observed. That product is below the true cost. With
log(1 + p (e^epsilon - 1)) in its place the account holds, and is never below `amplified`.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from flint import arb, ctx

from reticent.errors import PlanError
from reticent.exact import ball
from reticent.privacy.convert import ball_up
from reticent.privacy.missingness.bounds import BITS, check_uses, columnwise
from reticent.privacy.missingness.masks import IndependentMask, Use, use

MOST_MECHANISMS = 8
MOST_GROUPINGS = 200_000
Group = tuple[tuple[int, ...], frozenset[str]]
"""Which mechanisms, by place, and the attributes they are amplified by together."""


def printed_algorithm4(uses: Sequence[Use], law: IndependentMask) -> Fraction:
    """Algorithm 4 as printed: the least sum of chance times epsilon over groups that all have an attribute.

    For comparison, not a guarantee: a chance times epsilon is below the true cost. That no group may go without an
    attribute is how its lemma 5.10 prunes the search; the lemma is not true, so it is not the least either. What
    uses every row has none to be given.
    """
    bare = {place for place, each in enumerate(uses) if not each.sets[0]}
    kept = (g for g in _searched(uses) if all(own or set(members) <= bare for members, own in g))
    return min(_exactly(groups, uses, law) for groups in kept)


def first_order_partition(uses: Sequence[Use], law: IndependentMask) -> Fraction:
    """The least such sum, groups without an attribute allowed. For comparison, not a guarantee."""
    return min(_exactly(groups, uses, law) for groups in _searched(uses))


def printed_theorem512(epsilons: Mapping[str, Fraction], law: IndependentMask) -> Fraction:
    """Theorem 5.12 as printed: of all columns one is amplified, by its chance times epsilon; here the best one.

    For comparison, not a guarantee.
    """
    check_uses([use(name, epsilon=epsilon) for name, epsilon in epsilons.items()], law)
    saved = max((1 - law.chances[name]) * epsilon for name, epsilon in epsilons.items())
    return sum(epsilons.values(), Fraction(0)) - saved


def sound_theorem512(epsilons: Mapping[str, Fraction], law: IndependentMask) -> Fraction:
    """One column amplified, as it should be; `columnwise` amplifies them all.

    Guarantee   pure DP for the complete truth, of all models together.
    Adjacency   add/remove, for the models and for the truth.
    Theorem     THEORY 4.2, with the other columns taken as always observed.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `columnwise`.
    Keeps back  which answers are missing.
    """
    costs = []
    for name in epsilons:
        only = IndependentMask(
            {other: law.chances[name] if other == name else Fraction(1) for other in epsilons}
        )
        costs.append(columnwise(epsilons, only))
    return min(costs)


def partition_cost(uses: Sequence[Use], law: IndependentMask, *, groups: Sequence[Group]) -> Fraction:
    """sum over groups of log(1 + p (e^epsilon - 1)), rounded up; p of the group's attributes, epsilon of its members.

    Guarantee   pure DP for the complete truth, of all mechanisms together.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.1, with attributes dropped.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`.
    Keeps back  which answers are missing.
    """
    _check_groups(uses, groups)
    with ctx.workprec(BITS):
        parts = [
            (ball(_chance(own, law)) * ball(_epsilon(members, uses)).expm1()).log1p()
            for members, own in groups
        ]
        return min(ball_up(sum(parts, arb(0))), _epsilon(range(len(uses)), uses))


def sound_partition(uses: Sequence[Use], law: IndependentMask) -> Fraction:
    """Algorithm 4 made sound: the least `partition_cost`. Never below `amplified`, which is exact.

    Guarantee   pure DP for the complete truth, of all mechanisms together.
    Adjacency   add/remove, for the mechanisms and for the truth.
    Theorem     THEORY 4.1, with attributes dropped.
    Proof       proofs/privacy/missingness.md
    Assumes     as for `amplified`.
    Keeps back  which answers are missing.
    """

    def about(groups: Sequence[Group]) -> float:  # only to choose: every choice is sound
        return sum(
            math.log1p(float(_chance(own, law)) * math.expm1(min(float(_epsilon(members, uses)), 700.0)))
            for members, own in groups
        )

    return partition_cost(uses, law, groups=_best(uses, about))


def _best(uses: Sequence[Use], cost: Callable[[Sequence[Group]], float]) -> Sequence[Group]:
    return min(_searched(uses), key=cost)


def _exactly(groups: Sequence[Group], uses: Sequence[Use], law: IndependentMask) -> Fraction:
    return sum((_chance(own, law) * _epsilon(members, uses) for members, own in groups), Fraction(0))


def _searched(uses: Sequence[Use]) -> Iterator[list[Group]]:
    """Every way to put mechanisms into groups, and to give attributes to groups that can use them."""
    if not 1 <= len(uses) <= MOST_MECHANISMS or any(len(each.sets) > 1 for each in uses):
        raise PlanError(
            f"the published search is tried for one to {MOST_MECHANISMS} mechanisms of one set each; use amplified().",
            field="mechanisms",
        )
    tried = 0
    for members in _partitions(list(range(len(uses)))):
        common = [frozenset.intersection(*(uses[place].sets[0] for place in each)) for each in members]
        names = sorted(frozenset().union(*common))
        for owners in product(*([k for k, own in enumerate(common) if name in own] for name in names)):
            tried += 1
            if tried > MOST_GROUPINGS:
                raise PlanError(
                    "there are too many groupings to search; use amplified().", field="mechanisms"
                )
            held = [
                frozenset(n for n, o in zip(names, owners, strict=True) if o == k) for k in range(len(common))
            ]
            yield list(zip(members, held, strict=True))


def _partitions(places: list[int]) -> Iterator[list[tuple[int, ...]]]:
    if not places:
        yield []
        return
    first, rest = places[0], places[1:]
    for smaller in _partitions(rest):
        yield [(first,), *smaller]
        for k, group in enumerate(smaller):
            yield [*smaller[:k], (first, *group), *smaller[k + 1 :]]


def _check_groups(uses: Sequence[Use], groups: Sequence[Group]) -> None:
    places = sorted(place for members, _ in groups for place in members)
    names = [name for _, own in groups for name in own]
    if places != list(range(len(uses))) or len(set(names)) < len(names):
        raise PlanError("every mechanism is in one group, and no attribute in two.", field="groups")
    if not all(own <= one for members, own in groups for place in members for one in uses[place].sets):
        raise PlanError("a group's attributes are among those of each of its members.", field="groups")


def _chance(names: frozenset[str], law: IndependentMask) -> Fraction:
    return math.prod((law.chances[name] for name in names), start=Fraction(1))


def _epsilon(members: Sequence[int], uses: Sequence[Use]) -> Fraction:
    return sum((uses[place].epsilon for place in members), Fraction(0))
