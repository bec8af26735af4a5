"""Rules: every row keeps them, there are as many rows as planned, and what cannot be kept is refused."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.schema.bind import MISSING, STRUCTURAL, Absent, bind, truth
from reticent.schema.codebook import schema_from
from reticent.schema.parse import parse
from reticent.synth import rules as rules_search
from reticent.synth.domain import HOLE, UNASKED, Domain, Rows, decode, domain_of
from reticent.synth.lawful import lawful_rows
from reticent.synth.rules import Rules, lawful_row, read_rules, unlawful
from tests.noise.seeded import SeededBits
from tests.synth.standins import toy

COLUMNS = {
    "age": {"kind": "integer", "bounds": [0, 99]},
    "marital": {"kind": "categorical", "levels": ["single", "married", "widowed"], "universe": "age >= 15"},
    "wage": {"kind": "integer", "bounds": [0, 99], "universe": "age >= 15 and marital != 'widowed'"},
    "school": {"kind": "ordinal", "levels": ["none", "some", "degree"]},
    "years": {"kind": "integer", "bounds": [0, 20]},
}
NEVER = ("age < 20 and marital = 'widowed'", "school = 'degree' and age < 18")


def survey() -> Domain:
    """Bins of six or seven years: one of them lies on both sides of 15, 18 and 20."""
    return domain_of(schema_from({"survey": {"name": "s", "unit": "row"}, "columns": COLUMNS}))


def anything(domain: Domain, seed: int):  # type: ignore[no-untyped-def]
    """Cells without any order in them, silence left out."""
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> list[np.ndarray]:
        cells = np.stack([rng.integers(0, axis.size, rows) for axis in domain.axes], axis=1)
        return [np.where(cells == [axis.silence for axis in domain.axes], 0, cells)]

    return draw


def faults(rows: Rows, domain: Domain, never: Sequence[str]) -> int:
    """How many rows break a universe or are what can never be, judged one by one and by the codebook's own words."""
    found, rules = 0, read_rules(domain, never=never)
    for at in range(len(rows["age"])):
        row = {name: _cell(int(codes[at])) for name, codes in rows.items()}
        asked = {
            name: truth(bound, row) is True
            or (truth(bound, row) is None and not any(row[n] is STRUCTURAL for n in ("age", "marital")))
            for name, bound in rules.asked
        }
        wrong = any((row[name] is STRUCTURAL) == is_asked for name, is_asked in asked.items())
        found += wrong or any(truth(bound, row) is True for bound in rules.never)
    return found


def _cell(code: int) -> int | Absent:
    return {HOLE: MISSING, UNASKED: STRUCTURAL}.get(code, code)


@pytest.mark.parametrize("rows", [1, 30, 700])
def test_every_row_is_lawful_and_there_are_as_many_as_planned(rows: int) -> None:
    """From cells drawn at random, most of which break a rule; without the rules many rows stay broken (the twin)."""
    domain = survey()
    rules = read_rules(domain, never=NEVER)
    (made,) = lawful_rows(anything(domain, rows), rules, rows, SeededBits(1))
    assert {len(codes) for codes in made.values()} == {rows}
    assert faults(made, domain, NEVER) == 0 and not unlawful(made, rules).any()
    for name, codes in made.items():
        column = domain.schema.coded[name]
        assert ((codes <= UNASKED) | ((column.low <= codes) & (codes <= column.high))).all()


def test_decoding_alone_breaks_rules() -> None:
    """The naive twin: 700 rows decoded without rules, of cells that are lawful as cells."""
    domain = survey()
    cells = anything(domain, 2)(700)[0]
    assert faults(decode(cells, domain, SeededBits(2)), domain, NEVER) > 300


def test_a_bin_on_both_sides_of_a_rule_is_decoded_on_the_right_one() -> None:
    """Cells of 13 to 18 years, some asked and some not: nobody is redrawn, and ages follow who was asked."""
    domain = survey()
    place = 2  # 13 to 18
    asked_cells = np.array([[place, 0, 0, 0, 0]] * 300)
    unasked_cells = np.array([[place, 4, 17, 0, 0]] * 300)
    cells = np.vstack([asked_cells, unasked_cells])
    calls = []

    def draw(rows: int) -> list[np.ndarray]:
        calls.append(rows)
        return [cells[:rows]]

    (made,) = lawful_rows(draw, read_rules(domain), 600, SeededBits(3))
    # Two of six ages fit the unasked, four the asked: eight more tries miss with chance below (2/3)^9 each; pools follow.
    ages = made["age"]
    assert (ages[made["marital"] == UNASKED] < 15).all() and (ages[made["marital"] != UNASKED] >= 15).all()
    assert set(ages[made["marital"] == UNASKED].tolist()) == {13, 14}
    assert set(ages[made["marital"] != UNASKED].tolist()) == {15, 16, 17, 18}
    assert len(calls) <= 5


def test_rows_follow_the_law_of_the_model_given_the_rules() -> None:
    """a and b fair coins, never both 1: each of three rows a third. 9,000 rows, within .04: chance below 1e-12."""
    domain = toy([2, 2])
    rng = np.random.default_rng(4)
    rules = read_rules(domain, never=["a = '1' and b = '1'"])
    (made,) = lawful_rows(lambda n: [rng.integers(0, 2, (n, 2))], rules, 9000, SeededBits(4))
    found = np.bincount(2 * made["a"] + made["b"], minlength=4) / 9000
    assert (abs(found[:3] - 1 / 3) < 0.04).all() and found[3] == 0


def test_a_model_that_draws_no_lawful_row_gets_one_that_is() -> None:
    """Only forbidden cells, in every pool: the ruled columns are mended and others stay as drawn."""
    domain = toy([2, 2, 3])
    rules = read_rules(domain, never=["a = '1' and b = '1'"])
    (made,) = lawful_rows(lambda n: [np.tile([1, 1, 2], (n, 1))], rules, 40, SeededBits(5))
    assert not unlawful(made, rules).any() and len(made["a"]) == 40
    assert (made["c"] == 2).all()


def test_rules_that_leave_no_row_are_refused() -> None:
    """Before anything is drawn; also where a universe is part of the contradiction."""
    with pytest.raises(PlanError, match="no row"):
        read_rules(toy([2, 2]), never=["a = '0'", "a = '1'"])
    with pytest.raises(PlanError, match="no row"):
        read_rules(toy([2, 2], universes={"b": "a = '1'"}), never=["b is answered", "b is structural"])
    assert read_rules(toy([2, 2]), never=["a = '0' and b = '0'"]).never


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=8))
def test_a_lawful_row_is_found_exactly_where_there_is_one(clauses: list[tuple[int, int, bool]]) -> None:
    """Against trying all nine rows."""
    domain = toy([3, 3])
    never = [f"a = '{i}' and b {'=' if same else '!='} '{j}'" for i, j, same in clauses]
    rows = {"a": np.repeat(np.arange(3), 3), "b": np.tile(np.arange(3), 3)}
    rules = Rules(domain=domain, never=_read(domain, never))
    if unlawful(rows, rules).all():
        with pytest.raises(PlanError):
            lawful_row(rules)
    else:
        found = lawful_row(rules)
        assert not unlawful({name: np.array([code]) for name, code in found.items()}, rules).any()


def _read(domain: Domain, never: Sequence[str]):  # type: ignore[no-untyped-def]
    return tuple(bind(parse(text, field=""), domain.schema.coded, field="") for text in never)


def functional(source: np.ndarray, target: np.ndarray) -> bool:
    """Whether equal answers come with equal answers."""
    return len(set(zip(source.tolist(), target.tolist(), strict=True))) == len(set(source.tolist()))


def test_one_column_settles_another_in_every_row() -> None:
    """Learned from the rows drawn, also into bins; the naive twin decodes each row by itself."""
    domain = survey()
    rules = read_rules(domain, determines={"school": "years"}, never=NEVER)
    (made,) = lawful_rows(anything(domain, 6), rules, 500, SeededBits(6))
    assert functional(made["school"], made["years"])
    twin = decode(anything(domain, 6)(500)[0], domain, SeededBits(6))
    assert not functional(twin["school"], twin["years"])


def test_a_learned_link_is_the_answer_drawn_most_often() -> None:
    domain = toy([3, 3])
    cells = np.array([[0, 2]] * 5 + [[0, 1]] * 4 + [[1, 1]] * 3 + [[1, 0]])
    (made,) = lawful_rows(lambda n: [cells[:n]], read_rules(domain, determines={"a": "b"}), 13, SeededBits(7))
    assert set(zip(made["a"].tolist(), made["b"].tolist(), strict=True)) == {(0, 2), (1, 1)}


def test_a_map_of_the_plan_is_followed_word_by_word() -> None:
    domain = survey()
    known = {"school": {"none": "0", "some": "8", "degree": "16"}}
    rules = read_rules(domain, determines={"school": "years"}, known=known)
    (made,) = lawful_rows(anything(domain, 8), rules, 400, SeededBits(8))
    assert set(zip(made["school"].tolist(), made["years"].tolist(), strict=True)) == {(0, 0), (1, 8), (2, 16)}


def test_links_may_follow_each_other_but_not_in_a_circle() -> None:
    domain = toy([3, 3, 3])
    rules = read_rules(domain, determines={"b": "c", "a": "b"})
    cells = np.random.default_rng(9).integers(0, 3, (200, 3))
    (made,) = lawful_rows(lambda _: [cells], rules, 200, SeededBits(9))
    assert functional(made["a"], made["b"]) and functional(made["b"], made["c"])
    for wrong in ({"a": "b", "b": "a"}, {"a": "c", "b": "c"}, {"a": "x"}, {"a": "a"}):
        with pytest.raises(PlanError):
            read_rules(domain, determines=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"never": ["x = 1"]},
        {"never": ["age <"]},
        {"determines": {"school": "years"}, "known": {"age": {}}},
        {"determines": {"school": "years"}, "known": {"school": {"much": "3"}}},
        {"determines": {"school": "years"}, "known": {"school": {"none": "many"}}},
        {"determines": {"school": "years"}, "known": {"school": {"none": "99"}}},
        {"determines": {"age": "years"}, "known": {"age": {"3": "3"}}},
    ],
)
def test_rules_that_do_not_fit_the_codebook_are_refused(wrong: dict) -> None:
    with pytest.raises(PlanError):
        read_rules(survey(), **wrong)


def test_copies_stay_lawful_and_keep_what_they_share() -> None:
    """Three copies that differ in one column: every one is lawful, and shared cells have the same codes unless mended."""
    domain = survey()
    rng = np.random.default_rng(10)

    def draw(rows: int) -> list[np.ndarray]:
        cells = np.stack([rng.integers(4, 16, rows), *([rng.integers(0, 2, rows)] * 4)], axis=1)
        copies = [cells.copy() for _ in range(3)]
        for copy in copies:
            copy[:, 4] = rng.integers(0, 16, rows)
        return copies

    rules = read_rules(domain, never=["age > 90 and school = 'none'"])
    made = lawful_rows(draw, rules, 300, SeededBits(10))
    assert len(made) == 3 and not any(unlawful(copy, rules).any() for copy in made)
    assert (made[0]["age"] == made[1]["age"]).mean() > 0.9
    assert (made[0]["years"] != made[1]["years"]).any()


def test_universes_that_need_other_columns_are_left_as_drawn() -> None:
    domain = domain_of(survey().schema, ["marital", "school"])
    (made,) = lawful_rows(lambda n: [np.tile([4, 0], (n, 1))], read_rules(domain), 5, SeededBits(11))
    assert (made["marital"] == UNASKED).all()


def test_silent_cells_leave_rules_open() -> None:
    """A hole is neither married nor under age: rows that keep their holes are judged by what they say."""
    domain = survey()
    cells = np.array([[16, 3, 16, 2, 3]])
    (made,) = lawful_rows(lambda n: [cells], read_rules(domain, never=NEVER), 1, SeededBits(12))
    assert (made["age"] == HOLE).all() and (made["marital"] == HOLE).all()


def test_who_is_asked_follows_the_answers_drawn_and_not_the_other_way() -> None:
    """a is a fair coin and b is asked of a = 1, in a model that knows nothing of it. 20,000 rows: .03 off with chance 5e-16.

    The naive twin keeps the lawful rows alone, and makes nine of ten say 1.
    """
    domain = toy([2, 2], universes={"b": "a = '1'"})
    rng = np.random.default_rng(13)

    def draw(rows: int) -> list[np.ndarray]:
        answered = rng.integers(0, 2, rows)
        return [np.stack([rng.integers(0, 2, rows), np.where(rng.random(rows) < 0.1, 3, answered)], axis=1)]

    rules = read_rules(domain)
    (made,) = lawful_rows(draw, rules, 20_000, SeededBits(13))
    assert not unlawful(made, rules).any()
    assert abs(made["a"].mean() - 0.5) < 0.03
    assert abs(made["b"][made["b"] != UNASKED].mean() - 0.5) < 0.05
    raw = decode(draw(20_000)[0], domain, SeededBits(13))
    assert raw["a"][~unlawful(raw, rules)].mean() > 0.85


def these(cells: Sequence[Sequence[int]]):  # type: ignore[no-untyped-def]
    """The same cells over and over."""
    return lambda rows: [np.array([cells[i % len(cells)] for i in range(rows)])]


def test_a_link_is_learned_from_rows_that_can_be() -> None:
    """Most rows with the first answer of a break a rule: their answer in b is not the one that a settles."""
    domain = toy([2, 2])
    rules = read_rules(domain, never=["a = '0' and b = '1'"], determines={"a": "b"})
    (made,) = lawful_rows(these([[0, 1], [0, 1], [0, 0], [1, 1]]), rules, 400, SeededBits(1))
    assert {*zip(made["a"].tolist(), made["b"].tolist(), strict=True)} == {(0, 0), (1, 1)}
    # The naive twin learns from all rows: then nobody is left who answers 0.
    cells = these([[0, 1], [0, 1], [0, 0], [1, 1]])(400)[0]
    assert np.bincount(cells[cells[:, 0] == 0, 1]).argmax() == 1


@pytest.mark.parametrize("rows", [1, 50])
def test_rows_come_even_where_none_that_was_drawn_is_lawful(rows: int) -> None:
    """The link that such rows teach would leave no lawful row at all; one of the plan's rules is found instead."""
    domain = toy([2, 3])
    rules = read_rules(domain, never=["b = '1'", "b = '2'"], determines={"a": "b"})
    (made,) = lawful_rows(these([[0, 1], [1, 2]]), rules, rows, SeededBits(1))
    assert made["b"].tolist() == [0] * rows and len({*made["a"].tolist()}) == 1
    assert not unlawful(made, rules).any()


def test_a_search_that_gave_up_does_not_say_that_there_is_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only lawful row is the last of nine."""
    never = ["a = '0'", "a = '1'", "b = '0'", "b = '1'"]
    assert lawful_row(read_rules(toy([3, 3]), never=never)) == {"a": 2, "b": 2}
    monkeypatch.setattr(rules_search, "MOST_TRIES", 3)
    with pytest.raises(PlanError, match="found among 3"):
        read_rules(toy([3, 3]), never=never)
    monkeypatch.setattr(rules_search, "MOST_TRIES", 100)
    with pytest.raises(PlanError, match="leave no row"):
        read_rules(toy([3, 3]), never=[*never, "a = '2'"])
