"""Denial constraints between rows: counted as brute force counts them, kept in every table, refused where they cannot be."""

from itertools import permutations
from math import exp

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.schema.codebook import schema_from
from reticent.synth.denial import DenialIndex, kept_apart, read_denials
from reticent.synth.domain import HOLE, Domain, domain_of
from reticent.synth.lawful import lawful_rows
from reticent.synth.rules import read_rules
from tests.noise.seeded import SeededBits

# covers T27

BOOK = {
    "survey": {"name": "toy", "unit": "row"},
    "columns": {
        "state": {"kind": "categorical", "levels": ["n", "s", "w"]},
        "city": {"kind": "categorical", "levels": ["a", "b", "c", "d"]},
        "gain": {"kind": "integer", "bounds": [-3, 20]},
        "loss": {"kind": "integer", "bounds": [0, 15]},
    },
}
DOMAIN: Domain = domain_of(schema_from(BOOK), bins=4)
CITY = "t1.state = t2.state and t1.city != t2.city"
GAIN = "t1.gain > t2.gain and t1.loss < t2.loss"
SHAPES = [
    CITY,
    GAIN,
    "t1.city = t2.city",
    "t1.gain <= t2.gain and t2.loss <= t1.loss and t1.state = t2.state",
    "t1.state = t2.state and t1.gain < t2.gain and t1.city != t2.city",
    "t2.gain < t1.gain",
]


def rows_of(seed: int, n: int) -> dict[str, np.ndarray]:
    """Even rows with some holes."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in DOMAIN.columns:
        column = DOMAIN.schema.coded[name]
        codes = rng.integers(column.low, column.high + 1, n)
        made[name] = np.where(rng.random(n) < 0.05, HOLE, codes)
    return made


def violates(text: str, one: dict[str, int], other: dict[str, int]) -> bool:
    """Straight from the words, by the interpreter's own comparison."""
    for part in text.split(" and "):
        left, sign, right = part.split()
        sides = [({"t1": one, "t2": other}[side.split(".")[0]])[side.split(".")[1]] for side in (left, right)]
        if HOLE in sides:
            return False
        signs = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
        if not getattr(int(sides[0]), signs[sign])(int(sides[1])):
            return False
    return True


def as_rows(table: dict[str, np.ndarray]) -> list[dict[str, int]]:
    return [{name: int(codes[i]) for name, codes in table.items()} for i in range(len(table["state"]))]


def brute(text: str, table: dict[str, np.ndarray]) -> int:
    """Ordered pairs of rows that violate it."""
    return sum(violates(text, one, other) for one, other in permutations(as_rows(table), 2))


@pytest.mark.parametrize("text", SHAPES)
def test_the_index_counts_what_brute_force_counts(text: str) -> None:
    denial = read_denials([(text, "hard")], DOMAIN)[0]
    index, found, before = DenialIndex(denial, DOMAIN), 0, []
    for row in as_rows(rows_of(1, 80)):
        counted = index.violations(row)
        ways = [violates(text, row, other) + violates(text, other, row) for other in before]
        expected = sum(ways) if denial.orders else sum(map(bool, ways))
        assert counted == expected
        found += counted
        index.add(row)
        before.append(row)
    assert found > 0


def kept(texts: list[tuple[str, str]], n: int = 200) -> dict[str, np.ndarray]:
    denials = read_denials(texts, DOMAIN)
    seeds = iter(range(2, 10_000))
    return kept_apart(
        [rows_of(1, n)], denials, DOMAIN, (), lambda m: [rows_of(next(seeds), m)], SeededBits(3)
    )[0]


@pytest.mark.parametrize("text", [CITY, GAIN, f"{CITY} and t1.gain < t2.gain"])
def test_a_hard_constraint_holds_of_every_pair(text: str) -> None:
    """200 rows by brute force; before, the naive twin, many pairs violate it."""
    assert brute(text, rows_of(1, 200)) > 1000
    assert brute(text, kept([(text, "hard")])) == 0


def test_both_constraints_hold_together() -> None:
    made = kept([(CITY, "hard"), (GAIN, "hard")])
    assert brute(CITY, made) == brute(GAIN, made) == 0
    assert len(set(map(int, made["state"]))) > 2


def test_a_weight_draws_rows_in_proportion_to_what_violations_cost() -> None:
    """Two rows of three answers: the chance of equal ones is 3 w / (3 w + 6) with w = exp(-weight); 4,000 tables, six deviations."""
    book = {
        "survey": {"name": "t", "unit": "row"},
        "columns": {"a": {"kind": "categorical", "levels": ["x", "y", "z"]}},
    }
    domain = domain_of(schema_from(book))
    denials = read_denials([("t1.a = t2.a", "1.2")], domain)
    rng, bits, equal = np.random.default_rng(0), SeededBits(1), 0
    for _ in range(4000):
        drawn = {"a": rng.integers(0, 3, 2)}
        made = kept_apart([drawn], denials, domain, (), lambda m: [{"a": rng.integers(0, 3, m)}], bits)[0]
        equal += int(made["a"][0] == made["a"][1])
    chance = exp(-1.2) / (exp(-1.2) + 2)
    assert abs(equal / 4000 - chance) < 6 * (chance * (1 - chance) / 4000) ** 0.5
    assert abs(1 / 3 - chance) > 6 * (2 / 9 / 4000) ** 0.5  # the twin without a constraint would be noticed


def test_rules_within_rows_stay_kept() -> None:
    """Rows that take over answers of an accepted one take all that a rule ties together."""
    rules = read_rules(
        DOMAIN, never=["gain > 10 and loss > 5"], denial=[(GAIN, "hard"), (CITY, "hard")], rows=300
    )
    rng = np.random.default_rng(4)

    def draw(n: int) -> list[np.ndarray]:
        return [np.stack([rng.integers(0, axis.answers, n) for axis in DOMAIN.axes], axis=1)]

    made = lawful_rows(draw, rules, 150, SeededBits(5))[0]
    assert brute(GAIN, made) == brute(CITY, made) == 0
    assert not ((made["gain"] > 10) & (made["loss"] > 5)).any()


def test_every_copy_keeps_the_constraint() -> None:
    denials = read_denials([(CITY, "hard")], DOMAIN)
    seeds = iter(range(20, 10_000))

    def pair(m: int) -> list[dict[str, np.ndarray]]:
        first = rows_of(next(seeds), m)
        return [first, {**first, "city": rows_of(next(seeds), m)["city"]}]

    made = kept_apart(pair(100), denials, DOMAIN, (), pair, SeededBits(3))
    assert [brute(CITY, table) for table in made] == [0, 0]


REFUSED = {
    "a column that is not there": ("t1.stat = t2.stat", "hard", "did you mean 'state'"),
    "three rows": ("t1.state = t3.state", "hard", "third row"),
    "two columns": ("t1.gain > t2.loss", "hard", "does not compare one column"),
    "one row": ("t1.gain > t1.gain", "hard", "does not compare one column"),
    "a constant": ("t1.state = 'n'", "hard", "no comparison of two rows"),
    "an or": ("t1.state = t2.state or t1.city = t2.city", "hard", "no comparison of two rows"),
    "no order": ("t1.city < t2.city", "hard", "is nominal"),
    "two that differ": ("t1.city != t2.city and t1.state != t2.state", "hard", "not indexed"),
    "twice": ("t1.city = t2.city and t1.city != t2.city", "hard", "not indexed"),
    "no weight": (CITY, "much", "a decimal above 0"),
    "a negative weight": (CITY, "-1", "a decimal above 0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_indexed_is_refused_by_name(case: str) -> None:
    text, weight, words = REFUSED[case]
    with pytest.raises(PlanError, match=words):
        read_denials([(text, weight)], DOMAIN)


def test_rows_that_cannot_all_differ_are_refused_before_any_are_drawn() -> None:
    with pytest.raises(PlanError, match="leaves room for 12 rows and 13"):
        read_denials([("t1.state = t2.state and t1.city = t2.city", "hard")], DOMAIN, 13)
    assert read_denials([("t1.state = t2.state and t1.city = t2.city", "hard")], DOMAIN, 12)


def test_where_nothing_keeps_apart_the_refusal_says_so() -> None:
    """Four cities and five rows that all answer."""
    denials = read_denials([("t1.city = t2.city", "hard")], DOMAIN)
    rng = np.random.default_rng(0)

    def cities(n: int) -> list[dict[str, np.ndarray]]:
        return [{"city": rng.integers(0, 4, n)}]

    assert len(set(kept_apart(cities(4), denials, DOMAIN, (), cities, SeededBits(1))[0]["city"])) == 4
    with pytest.raises(PlanError, match="give the constraint a weight"):
        kept_apart(cities(5), denials, DOMAIN, (), cities, SeededBits(1))


def test_signs_mean_the_same_from_both_sides() -> None:
    for one, other in (
        ("t1.gain < t2.gain", "t2.gain > t1.gain"),
        ("t1.gain >= t2.gain", "t2.gain <= t1.gain"),
    ):
        made = [read_denials([(text, "hard")], DOMAIN)[0].orders for text in (one, other)]
        assert made[0] == made[1]
