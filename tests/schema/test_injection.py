"""No text of a plan or a codebook reaches the engine: literals are codes before SQL is written (R13, T28)."""

import re

import pytest
from hypothesis import HealthCheck, given, settings

from reticent.schema.bind import bind
from reticent.schema.parse import parse
from reticent.schema.predicate import Compare
from tests.schema.test_three_values import sql_of
from tests.schema.worlds import NASTY, Column, worlds_and_trees

OURS = re.compile(r"(\"?c[0-9](_status)?\"?|-?[0-9]+|[()=,]|<>|AND|OR|NOT|IN|BETWEEN|IS|NULL|TRUE| )*")


def is_ours(sql):
    """Nothing but our columns, integers and the engine's words."""
    return OURS.fullmatch(sql) is not None and "--" not in sql


@given(worlds_and_trees())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rendered_sql_holds_integers_and_our_names_only(drawn):
    """Any predicate over columns with hostile level names."""
    world, tree = drawn
    assert is_ours(sql_of(bind(tree, world, field="where")))


@pytest.mark.parametrize("level", NASTY)
def test_a_hostile_level_is_a_level_like_any_other(level):
    """Through the whole door, from the plan's text on; the naive twin pastes the literal into SQL."""
    text = str(Compare("c0", "=", (level,)))
    bound = bind(parse(text, field="where"), {"c0": Column(("x", level))}, field="where")
    assert sql_of(bound) == '"c0" = 1'
    assert not is_ours(f"\"c0\" = '{level}'")
