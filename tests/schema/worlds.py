"""Small worlds to try predicates in: columns with few codes, all their rows, and any predicate over them."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from reticent.schema.bind import MISSING, STRUCTURAL, AllOf, Always, AnyOf, CodeIn, Is, Negation
from reticent.schema.predicate import And, Compare, Everyone, Not, Or, Status

NASTY = (
    "'; drop table people; --",
    "don't know",
    "''",
    '"quoted"',
    "-- 1=1",
    "/* x */",
    "sí, ж, 女",
    "\\' or 1=1",
    "$1 ? %s {0}",
    "null",
    "",
    " ",
)
ORDERED = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "between": lambda x, y, z: y <= x <= z,
}


@dataclass(frozen=True)
class Column:
    """A column by its answers in code order, from code `first` on; a rank for each where it has an order."""

    answers: tuple
    first: int = 0
    is_ordered: bool = True

    def codes(self):
        return range(self.first, self.first + len(self.answers))

    def holds(self, op, literals, code):
        """The meaning of a comparison, said on the answers themselves."""
        answer = self.answers[code - self.first]
        if op in ("=", "in"):
            return answer in literals
        if op == "!=":
            return answer != literals[0]
        rank = self.answers.index if isinstance(answer, str) else Fraction
        return ORDERED[op](rank(answer), *map(rank, literals))

    def matching(self, op, literals, *, field):
        return tuple((code, code) for code in self.codes() if self.holds(op, literals, code))

    def comparisons(self, name):
        """Any comparison that fits the column; numbers also between and beyond its answers."""
        order = ("<", "<=", ">", ">=", "between") if self.is_ordered else ()
        literal = st.sampled_from(self.answers)
        if isinstance(self.answers[0], Fraction):
            literal |= st.integers(-20, 20).map(lambda n: Fraction(n, 4))
        return st.sampled_from(("=", "!=", "in", *order)).flatmap(lambda op: _compared(name, op, literal))


def _compared(name, op, literal):
    size = {"in": st.integers(1, 4), "between": st.just(2)}.get(op, st.just(1))
    values = size.flatmap(lambda n: st.lists(literal, min_size=n, max_size=n))
    in_order = values.map(lambda v: sorted(v) if op == "between" and isinstance(v[0], Fraction) else v)
    return in_order.map(lambda v: Compare(name, op, tuple(v)))


numbers = st.builds(
    lambda first, size, grid: Column(tuple(n * grid for n in range(first, first + size)), first),
    st.integers(-4, 3),
    st.integers(1, 4),
    st.sampled_from((Fraction(1), Fraction(1, 4), Fraction(3, 2))),
)
levels = st.builds(
    lambda names, is_ordered: Column(tuple(names), 0, is_ordered),
    st.lists(st.sampled_from(NASTY), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
worlds = st.lists(numbers | levels, min_size=1, max_size=3).map(
    lambda columns: {f"c{i}": column for i, column in enumerate(columns)}
)
kinds = st.sampled_from(("missing", "answered", "structural"))


def trees_of(leaves, max_leaves=8):
    """Any predicate over the leaves."""
    return st.recursive(
        leaves,
        lambda parts: (
            parts.map(Not)
            | st.lists(parts, min_size=2, max_size=4).map(lambda p: And(tuple(p)))
            | st.lists(parts, min_size=2, max_size=4).map(lambda p: Or(tuple(p)))
        ),
        max_leaves=max_leaves,
    )


@st.composite
def worlds_and_trees(draw):
    world = draw(worlds)
    compared = st.one_of([column.comparisons(name) for name, column in world.items()])
    status = st.builds(Status, st.sampled_from(sorted(world)), kinds)
    return world, draw(trees_of(compared | compared | status | st.just(Everyone())))


def rows_of(world):
    """Every row the world can hold."""
    cells = [(*column.codes(), MISSING, STRUCTURAL) for column in world.values()]
    return [dict(zip(world, row, strict=True)) for row in product(*cells)]


def meaning(tree, row, world):
    """Said on the answers, with truth as a number (false 0, unknown 1/2, true 1): and is min, or is max."""
    half = Fraction(1, 2)
    match tree:
        case Compare(column=name):
            absent = row[name] in (MISSING, STRUCTURAL)
            return half if absent else Fraction(world[name].holds(tree.op, tree.literals, row[name]))
        case Status(column=name, kind=kind):
            found = {MISSING: "missing", STRUCTURAL: "structural"}.get(row[name], "answered")
            return Fraction(found == kind)
        case And(parts=parts):
            return min(meaning(part, row, world) for part in parts)
        case Or(parts=parts):
            return max(meaning(part, row, world) for part in parts)
        case Not(part=part):
            return 1 - meaning(part, row, world)
        case Everyone():
            return Fraction(1)


def two_valued(bound, row):
    """The naive twin: a comparison with a missing cell is false, and `not` is Python's."""
    match bound:
        case CodeIn(column=name, ranges=ranges):
            return isinstance(row[name], int) and any(low <= row[name] <= high for low, high in ranges)
        case Is(column=name, kind=kind):
            return kind == {MISSING: "missing", STRUCTURAL: "structural"}.get(row[name], "answered")
        case AllOf(parts=parts):
            return all(two_valued(part, row) for part in parts)
        case AnyOf(parts=parts):
            return any(two_valued(part, row) for part in parts)
        case Negation(part=part):
            return not two_valued(part, row)
        case Always():
            return True
