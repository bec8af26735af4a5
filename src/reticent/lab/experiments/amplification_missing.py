"""Amplification by missingness: a paper's worked examples and table beside what holds, and beside all masks enumerated.

Nothing is drawn.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product

from reticent.lab.papers.items import printed, several
from reticent.lab.papers.stability import moved_by_one, one_coin
from reticent.lab.run.experiment import Experiment, Outcome
from reticent.privacy.missingness import (
    IndependentMask,
    Use,
    amplified,
    amplified_both_ways,
    amplified_delta,
    first_order,
    sets_of,
)
from reticent.privacy.missingness.bounds import Rated, amplified_at, gaussian
from reticent.privacy.missingness.masks import use
from reticent.privacy.missingness.printed import (
    first_order_partition,
    printed_algorithm4,
    printed_theorem512,
    sound_partition,
    sound_theorem512,
)

QUARTERS = Fraction(3, 4)
LAW = IndependentMask({"State": QUARTERS, "Occupation": Fraction(1), "Gender": QUARTERS, "Income": QUARTERS})
S, O, G, I = "State", "Occupation", "Gender", "Income"
EXAMPLES: dict[str, list[tuple[str, ...]]] = {  # what the mechanisms need
    "5.5": [(S, O, G, I)] * 4,
    "5.7": [(S,), (O,), (G, I)],
    "5.8": [(S,), (O,), (G,), (G, I)],
    "5.11": [(S,), (O,), (G,), (G, I)],
    "5.13": [(S,), (O,), (G,), (I,)],
}
FACTORS: dict[str, tuple[str, list[tuple[str, ...]]]] = {  # attributes that serve one mechanism alone
    "5.5": ("factor", [(S, O, G, I)]),
    "5.7": ("factors", [(S,), (O,), (G, I)]),
    "5.8": ("factors", [(S,), (O,), (), (G, I)]),
    "5.11": ("factor of Occupation", [(O,)]),
    "5.13": ("factor of one column", [(S,)]),
}
EPSILONS = ("0.1", "0.5", "1", "2")
# Amplified privacy of PrivBayesE at epsilon 1, by the share of cells that is missing: Table 1, Table 2 of the preprint
TABLE = {"Adult": 15, "BR2000": 14}  # columns
SHARES = ("0.1", "0.2", "0.3", "0.4", "0.5")
ABOVE = (
    "ours: more than is printed, where a chance is multiplied by epsilon; that product is below the true cost"
)
BELOW = "ours: less than is printed, where a mechanism or all columns but one are not amplified"
SHARED = "Gender serves the last mechanism, and this one needs nothing else"
AS_PRINTED = "the published account; no promise"
GROUPED = "the published grouping: Gender serves both mechanisms that need it"
FIRST = "for comparison: the sum of chance times epsilon; no promise"
MADE_SOUND = "the published search with log(1 + p (e^epsilon - 1)) for each group; sound, and never below the exact number"
ATTAINED = "the worst loss of noisy counts over all masks: the exact number is attained"
REPLACED = "ours: answers replaced, mechanisms proved for adding and removing only"
PRUNED = "lemma 5.10 of the paper leaves the best grouping out"
OTHER = "ours: no such number is printed"
CHOSEN = (
    "ours: what may be claimed before the rows are seen. The printed sets were chosen by the rows, choosing costs half of "
    "epsilon and uses nearly every row"
)


ENDS = f"as printed in Table 1 of the document; {CHOSEN}"
DOCUMENT, SHARE = "synthesis", "times epsilon"


STABLE = "attained; but the number missing is data, and no noise may be scaled by it"
WHOLE = "attained for answers replaced: all rows can change, so the cost is that of a group of all"
COIN = (
    "the vector is what independent rows would lose; one coin gives more, and all of epsilon with many rows"
)


def run(index: int, seed: int) -> list[Outcome]:
    """All items; neither argument matters. `query` says why numbers differ."""
    return [*_examples(), *_accounts(), *_others(), *_table(), *_stability(), *_coin()]


def _examples() -> Iterator[Outcome]:
    """Each at four epsilons; the share of epsilon that is printed stands beside epsilon 1."""
    for name, sets in EXAMPLES.items():
        for text in EPSILONS:
            uses = _uses(sets, Fraction(text))
            theirs, exact = _published(name, uses), amplified(uses, LAW)
            yield Outcome(
                item=f"Example {name}, epsilon {text}",
                printed=printed(DOCUMENT, f"Example {name}", SHARE) if text == "1" else None,
                as_printed=float(theirs),
                value=float(exact),
                query=ABOVE if exact > theirs else BELOW,
            )
    yield from _factors()
    uses = _uses(EXAMPLES["5.8"], Fraction(1))
    yield Outcome(
        item="Example 5.8, grouped, epsilon 1",
        printed=printed(DOCUMENT, "Example 5.8", f"{SHARE}, grouped"),
        as_printed=float(printed_algorithm4(uses, LAW)),
        value=float(amplified(uses, LAW)),
        query=GROUPED,
    )
    yield Outcome(
        item="Example 5.11, partitions of four mechanisms",
        printed=printed(DOCUMENT, "Example 5.11", "partitions"),
        as_printed=float(len(list(_partitions(range(4))))),
        query="all ways to group four",
    )


def _factors() -> Iterator[Outcome]:
    """What shares of epsilon are multiplied by in print: chances that what serves a mechanism alone is answered."""
    for name, (what, groups) in FACTORS.items():
        texts = several(DOCUMENT, f"Example {name}", what)
        for place, (stated, group) in enumerate(zip(texts, groups, strict=True)):
            yield Outcome(
                item=f"Example {name}, factor {place + 1} of {len(groups)}",
                printed=stated,
                value=float(math.prod(LAW.chances[each] for each in group)),
                query=f"the chance of an answer to {' and '.join(group)}" if group else SHARED,
            )


def _partitions(of: Sequence[int]) -> Iterator[list[list[int]]]:
    if not of:
        yield []
        return
    for rest in _partitions(of[1:]):
        yield [[of[0]], *rest]
        for place in range(len(rest)):
            yield [*rest[:place], [of[0], *rest[place]], *rest[place + 1 :]]


def _accounts() -> Iterator[Outcome]:
    """At epsilon 1: first order, the published account made sound, enumeration, and replaced answers."""
    for name, sets in EXAMPLES.items():
        uses = _uses(sets, Fraction(1))
        yield _item(f"Example {name}, first order", first_order(uses, LAW), FIRST)
        yield _item(f"Example {name}, made sound", _sound(name, uses), MADE_SOUND)
        yield _item(f"Example {name}, worst loss", worst_loss(uses, LAW), ATTAINED)
        yield _item(f"Example {name}, replaced", amplified_both_ways(uses, LAW), REPLACED)


def _published(name: str, uses: Sequence[Use]) -> Fraction:
    if name == "5.8":  # before the search: an attribute serves one mechanism, and Gender serves the last
        chances = (QUARTERS, Fraction(1), Fraction(1), QUARTERS * QUARTERS)
        return sum((u.epsilon * c for u, c in zip(uses, chances, strict=True)), Fraction(0))
    if name == "5.13":
        return printed_theorem512(dict.fromkeys(LAW.chances, uses[0].epsilon), LAW)
    return printed_algorithm4(uses, LAW)


def _sound(name: str, uses: Sequence[Use]) -> Fraction:
    if name == "5.13":
        return sound_theorem512(dict.fromkeys(LAW.chances, uses[0].epsilon), LAW)
    return sound_partition(uses, LAW)


def _others() -> Iterator[Outcome]:
    halves = IndependentMask({G: Fraction(1, 2), I: Fraction(1, 2)})
    nested = [use(G, epsilon=Fraction(1)), use(G, I, epsilon=Fraction(1))]
    yield _item("two nested mechanisms", amplified(nested, halves), OTHER)
    uneven = [use(G, epsilon=Fraction("0.1")), use(G, I, epsilon=Fraction("0.9"))]
    best = first_order_partition(uneven, halves)
    yield _item("two uneven mechanisms, algorithm 4", printed_algorithm4(uneven, halves), AS_PRINTED)
    yield _item("two uneven mechanisms, best grouping in first order", best, PRUNED)
    yield _item("two uneven mechanisms, exact", amplified(uneven, halves), OTHER)
    sets = EXAMPLES["5.8"]
    small = [Use(sets=u.sets, epsilon=u.epsilon, delta=Fraction(1, 10**6)) for u in _uses(sets, Fraction(1))]
    yield _item("Example 5.8, delta 0.000001 each", amplified_delta(small, LAW), OTHER)
    rated = [Rated(sets=u.sets, curve=gaussian(sigma=Fraction(4))) for u in small]
    for order in (2, 4, 8):
        yield _item(
            f"Example 5.8, sigma 4, order {order}",
            amplified_at(rated, LAW, order=Fraction(order)),
            OTHER,
        )


def _table() -> Iterator[Outcome]:
    """Table 1, and from where to where the introduction says that such costs are: its ends beside those of the table."""
    told, ours = [], []
    for data, columns in TABLE.items():
        for share, stated in zip(SHARES, several(DOCUMENT, "Table 1", data), strict=True):
            found = float(before_the_rows(columns, observed=1 - Fraction(share)))
            item = f"Table 1, {data}, {share} missing"
            yield Outcome(item=item, printed=stated, value=found, query=CHOSEN)
            told.append(float(stated))
            ours.append(found)
    cost = "Finding: amplified cost"
    for what, end in (("from", min), ("to", max)):
        stated = printed(DOCUMENT, cost, what)
        yield Outcome(
            item=f"{cost}, {what}", printed=stated, as_printed=end(told), value=end(ours), query=ENDS
        )


def before_the_rows(columns: int, *, observed: Fraction) -> Fraction:
    """PrivBayesE at epsilon 1 for any network the rows may lead to: half for choosing, half for a table for each column.

    A table needs at least the column it is for. A choice looks at candidates of which one may need a single column.
    """
    names = [f"column {place}" for place in range(columns)]
    tables = [use(name, epsilon=Fraction(1, 2 * columns)) for name in names]
    choices = Use(sets=sets_of(*({name} for name in names)), epsilon=Fraction(1, 2))
    return amplified([choices, *tables], IndependentMask(dict.fromkeys(names, observed)))


def worst_loss(uses: Sequence[Use], law: IndependentMask) -> float:
    """The largest log ratio of noisy counts of used rows, one row against none, over all masks and outputs."""
    names = list(law.chances)
    masks = [frozenset(each) for size in range(len(names) + 1) for each in combinations(names, size)]
    worst = 0.0
    for signs in product((-1, 1), repeat=len(uses)):  # each output high or low: beyond, the ratios repeat
        mean = 0.0
        for mask in masks:
            chance = math.prod(float(p if n in mask else 1 - p) for n, p in law.chances.items())
            loss = sum(g * float(u.epsilon) for g, u in zip(signs, uses, strict=True) if u.sets[0] <= mask)
            mean += chance * math.exp(loss)
        worst = max(worst, abs(math.log(mean)))
    return worst


def _stability() -> Iterator[Outcome]:
    """Lemma 4.2 and Theorem 4.3: how many rows of a filled table one replaced row can change, by brute force."""
    for gaps in (0, 1, 3):
        yield Outcome(
            item=f"Lemma 4.2, rows that one changes after imputing a column, {gaps} missing",
            as_printed=float(gaps + 1),
            value=float(moved_by_one(rows=5, gaps=gaps, columns=1)),
            query=STABLE,
        )
    for columns in (2, 3):
        yield Outcome(
            item=f"Theorem 4.3, rows that one changes after imputing {columns} columns, 5 rows",
            as_printed=5.0,
            value=float(moved_by_one(rows=5, gaps=4, columns=columns)),
            query=WHOLE,
        )


def _coin() -> Iterator[Outcome]:
    """Example 5.1: the same rate of missing cells, row by row, and by one coin for all rows."""
    for rows in (1, 5, 50):
        yield Outcome(
            item=f"Example 5.1, loss at epsilon 1 of a count of {rows} rows, one coin of 1/2 for all",
            value=one_coin(rows=rows, observed=0.5, epsilon=1.0),
            vector=float(amplified([use(G, epsilon=Fraction(1))], IndependentMask({G: Fraction(1, 2)}))),
            query=COIN,
        )


def _uses(sets: Sequence[Sequence[str]], epsilon: Fraction) -> list[Use]:
    return [use(*each, epsilon=epsilon / len(sets)) for each in sets]


def _item(item: str, value: Fraction | float, why: str) -> Outcome:
    return Outcome(item=item, value=float(value), query=why)


def experiment() -> Experiment:
    """Privacy amplification by missing values, as printed and as enumerated."""
    return Experiment(
        name="amplification-missing",
        title="Amplification by missingness: printed examples, the exact number, and enumeration",
        source="Differentially private data generation with missing data, Examples 5.5 to 5.13 and Table 1; THEORY 4.7",
        run=run,
        exact=True,
    )
