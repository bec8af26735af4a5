"""The grammar: it reads back what it prints, and answers any text with a tree or a PlanError."""

import time
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.schema.parse import parse
from reticent.schema.predicate import (
    And,
    Compare,
    Everyone,
    Not,
    Or,
    Status,
    is_column_name,
    is_refused_character,
)
from tests.schema.worlds import kinds, trees_of

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True) | st.sampled_from(
    ("missing", "Everyone", "NULL", "none", "a" * 63)
)
names = names.filter(is_column_name)
texts = st.text(max_size=8).filter(lambda s: not any(map(is_refused_character, s)))
decimals = st.builds(lambda n, k: Fraction(n, 10**k), st.integers(-(10**12), 10**12), st.integers(0, 20))
literals = decimals | texts
compares = st.builds(
    lambda name, op, value: Compare(name, op, (value,)),
    names,
    st.sampled_from(("=", "!=", "<", "<=", ">", ">=")),
    literals,
)
lists = st.builds(lambda n, v: Compare(n, "in", tuple(v)), names, st.lists(literals, min_size=1, max_size=4))
spans = st.builds(lambda n, v: Compare(n, "between", tuple(sorted(v))), names, st.tuples(decimals, decimals))
trees = trees_of(compares | lists | spans | st.builds(Status, names, kinds) | st.just(Everyone()))

PIECES = "age sex and or not in between is missing everyone null ( ) , = != < <= > >= == -1 2.5 1e5 'f' ' \" -- ; é"
soup = st.lists(st.sampled_from(PIECES.split()), max_size=25)
A, B = Compare("a", "=", (Fraction(1),)), Compare("b", ">=", (Fraction(-5, 2),))


@given(trees)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_printed_reads_back(tree):
    """The printed text is canonical: it parses to the same tree."""
    text = str(tree)
    assume(len(text) <= 10_000)
    assert parse(text, field="where") == tree


def answered(text):
    """A tree, or an error that names the field, fits on one line and prints on any terminal."""
    try:
        tree = parse(text, field="ask 1.where")
    except PlanError as error:
        assert error.field == "ask 1.where"
        assert str(error).isascii() and str(error).isprintable()
        assert "at character" in str(error) and len(str(error)) < 300
        return None
    assert parse(str(tree), field="where") == tree
    return tree


@given(st.text(max_size=60) | soup.map(" ".join) | soup.map("".join))
@settings(max_examples=600, deadline=None)
def test_any_text_is_read_or_refused(text):
    """Never another exception."""
    answered(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(" * 9_999,
        "not " * 2_499 + "a=1",
        "(" * 5_000 + ")" * 5_000,
        "a=1 and (b=1 or " * 600 + "a=1",
        "'" * 9_999,
        "'" * 10_000,
        "a=" + "9" * 9_000,
        "a=0." + "9" * 9_000,
        "a" * 10_000,
        "a=1 or " * 100_000,
        "a in (" + "1," * 4_990 + "1)",
    ],
    ids=lambda text: text[:8] + f"x{len(text)}",
)
def test_monsters_are_answered_quickly(text):
    """Deep, long and repetitive texts, within a second of work each; waiting for a busy machine is not counted."""
    start = time.process_time()
    answered(text)
    assert time.process_time() - start < 1


def test_depth_is_limited_alike_in_text_and_tree():
    """Fifty is allowed, fifty-one is not; a tree at the limit still reads back."""
    assert parse("(" * 50 + "a=1" + ")" * 50, field="where") == A
    with pytest.raises(PlanError, match="50 deep"):
        parse("(" * 51 + "a=1" + ")" * 51, field="where")
    # Here the parentheses are few enough, but each pair adds an "or" and an "and" to the tree.
    with pytest.raises(PlanError, match="50 deep"):
        parse("a=1 or b=1 and (" * 40 + "a=1" + ")" * 40, field="where")
    tree = A
    for level in range(50):
        tree = (Not(tree), And((tree, B)), Or((B, tree)))[level % 3]
    assert parse(str(tree), field="where") == tree
    with pytest.raises(ValueError, match="50 deep"):
        Not(tree)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a=1", A),
        ("b>=-2.50", B),
        ("  A  =  '1' ", Compare("A", "=", ("1",))),
        ("a = 1 AND b >= -2.5 Or a = 1", Or((And((A, B)), A))),
        ("a=1 and (b>=-2.5 or a=1)", And((A, Or((B, A))))),
        ("NOT a=1 and b>=-2.5", And((Not(A), B))),
        ("not (a=1 and b>=-2.5)", Not(And((A, B)))),
        ("a between 1 and 2 and a=1", And((Compare("a", "between", (Fraction(1), Fraction(2))), A))),
        ("a not in ('don''t know', -0)", Not(Compare("a", "in", ("don't know", Fraction(0))))),
        ("a is not missing", Not(Status("a", "missing"))),
        ("a IS Structural or a is answered", Or((Status("a", "structural"), Status("a", "answered")))),
        ("everyone", Everyone()),
        ("everyone = 1", Compare("everyone", "=", (Fraction(1),))),
        ("missing is missing", Status("missing", "missing")),
        ("a = 0.1", Compare("a", "=", (Fraction(1, 10),))),
    ],
)
def test_what_the_grammar_means(text, tree):
    """Precedence, case, negated forms, exact numbers."""
    assert parse(text, field="where") == tree


@pytest.mark.parametrize(
    ("text", "at", "remedy"),
    [
        ("", 1, "everyone"),
        ("   ", 4, "everyone"),
        ("age == 3", 5, 'write "="'),
        ("age <> 3", 5, 'write "!="'),
        ("age ≥ 3", 5, 'write ">="'),
        ("age = null", 7, "is missing"),
        ("age != None", 8, "is missing"),
        ("age in (1, NA)", 12, "is missing"),
        ("age is null", 8, "is missing"),
        ("age is not 3", 12, "is answered"),
        ('sex = "f"', 7, "single quotes"),
        ("sex = ‘f’", 7, "single quotes"),
        ("sex = f", 7, "'f' in single quotes"),
        ("sex = 'f", 7, "close it"),
        ("18 <= age", 1, "column first"),
        ("18 <= age < 65", 1, "column first"),
        ("age > 18 < 65", 10, "between"),
        ("age between 65 and 18", 1, "swap"),
        ("age between 1, 2", 14, "write and"),
        ("age in ()", 9, "a number or text"),
        ("age in 1", 8, "write ("),
        ("age in (1", 10, "write )"),
        ("(age = 1", 9, "write )"),
        ("age = 1)", 8, "and"),
        ("age = 1 sex = 'f'", 9, "and"),
        ("age = 1 and", 12, "condition"),
        ("and age = 1", 1, "condition"),
        ("age", 4, "compare with"),
        ("age not = 3", 9, "compare with"),
        ("age = 1e5", 7, "in full"),
        ("age = 1.", 7, "in full"),
        ("age = .5", 7, "in full"),
        ("age = 1 && sex = 'f'", 9, "and"),
        ("age = 1; drop table x", 8, "not part"),
        ("age\n= 1", 4, "one line"),
        ("sex = '\u202ef'", 8, "U+202E"),
        ("größe = 1", 3, "U+00F6"),
        ("a" * 64 + " = 1", 1, "63"),
        ("age = " + "9" * 31, 7, "30 digits"),
    ],
)
def test_a_refusal_names_place_and_remedy(text, at, remedy):
    """One sentence: field, position, way out."""
    with pytest.raises(PlanError) as caught:
        parse(text, field="ask.where")
    said = str(caught.value)
    assert said.startswith(f"ask.where: at character {at}: ") and said.endswith(".")
    assert remedy in said
