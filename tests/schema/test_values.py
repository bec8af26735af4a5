"""Trees and bound nodes keep their own rules, by every door; binding names what the codebook lacks."""

from dataclasses import replace
from fractions import Fraction

import pytest

from reticent.errors import PlanError
from reticent.schema.bind import AllOf, Always, AnyOf, CodeIn, Is, Negation, bind
from reticent.schema.parse import parse
from reticent.schema.predicate import And, Compare, Everyone, Not, Or, Status, columns_compared, columns_used
from tests.schema.worlds import Column

ONE = Fraction(1)
AGE = Compare("age", "=", (ONE,))


@pytest.mark.parametrize(
    "change",
    [
        {"column": "marital-status"},
        {"column": "a" * 64},
        {"column": "Not"},
        {"column": ""},
        {"op": "=="},
        {"literals": ()},
        {"literals": (ONE, ONE)},
        {"literals": (1,)},
        {"literals": (0.5,)},
        {"literals": (None,)},
        {"literals": (Fraction(1, 3),)},
        {"literals": (Fraction(10**30),)},
        {"literals": ("a\nb",)},
        {"literals": ("\ud800",)},
        {"op": "between"},
        {"op": "between", "literals": (Fraction(2), ONE)},
        {"op": "in", "literals": ()},
    ],
)
def test_a_comparison_that_cannot_be_written_cannot_be_made(change):
    """By the constructor and by `replace`."""
    with pytest.raises(ValueError):
        replace(AGE, **change)
    with pytest.raises(ValueError):
        Compare(**{"column": "age", "op": "=", "literals": (ONE,)} | change)


def test_connectives_hold_predicates():
    """Parts are a tuple of two or more predicates; a status is one of three."""
    for make in (And, Or):
        for parts in ((), (AGE,), [AGE, AGE], (AGE, "age = 1")):
            with pytest.raises(ValueError):
                make(parts)
    with pytest.raises(ValueError):
        Not("age = 1")
    with pytest.raises(ValueError):
        Status("age", "null")


@pytest.mark.parametrize(
    "ranges", [((2, 1),), ((1, 3), (3, 5)), ((4, 5), (1, 2)), ((0, 2**63),), ((-(2**63) - 1, 0),)]
)
def test_ranges_of_codes_are_sorted_and_disjoint(ranges):
    """A codebook that answers otherwise is found out at once."""
    with pytest.raises(ValueError):
        CodeIn("age", ranges)
    with pytest.raises(ValueError):
        replace(CodeIn("age", ()), ranges=ranges)


def test_touching_ranges_are_joined():
    """The same codes are the same value."""
    assert CodeIn("age", ((1, 2), (3, 3), (5, 6))) == CodeIn("age", ((1, 3), (5, 6)))


def test_columns_come_once_in_order():
    """What is compared, and what is only asked after."""
    tree = parse("b = 1 and (a is missing or not b > 2) and c in (1)", field="where")
    assert columns_compared(tree) == ("b", "c")
    assert columns_used(tree) == ("b", "a", "c")
    assert columns_used(Everyone()) == ()


def test_binding_keeps_the_shape():
    """Each node becomes its bound twin, each literal its codes."""
    world = {"age": Column(tuple(map(Fraction, range(5))), 10), "sex": Column(("f", "m"))}
    tree = parse("age >= 2 and not (sex = 'm' or sex is missing) and everyone", field="where")
    assert bind(tree, world, field="where") == AllOf(
        (
            CodeIn("age", ((12, 14),)),
            Negation(AnyOf((CodeIn("sex", ((1, 1),)), Is("sex", "missing")))),
            Always(),
        )
    )


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("incme = 1", 'mean "income"'),
        ("Income is missing", 'mean "income"'),
        ("not (age = 1 or ag = 1)", 'mean "age"'),
        ("zzz = 1", "that the codebook declares"),
    ],
)
def test_an_unknown_column_gets_the_nearest_name(text, way_out):
    """Wherever in the tree it stands."""
    world = {"age": Column((ONE,)), "income": Column((ONE,))}
    with pytest.raises(PlanError, match=way_out) as caught:
        bind(parse(text, field="ask.where"), world, field="ask.where")
    assert caught.value.field == "ask.where"
