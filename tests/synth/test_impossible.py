"""Which pairs of cells can be: as many as whole rows of the codebook show, no fewer, and no more where one answer settles it."""

from itertools import product

import numpy as np
import pytest

from reticent.schema.codebook import schema_from
from reticent.synth.domain import UNASKED, Domain, domain_of, encode
from reticent.synth.rules import lawful_pairs, read_rules, unlawful


def domain(columns: dict, *, bins: int = 3) -> Domain:  # type: ignore[type-arg]
    return domain_of(schema_from({"survey": {"name": "s", "unit": "row"}, "columns": columns}), bins=bins)


def number(most: int, universe: str = "") -> dict[str, object]:
    return {"kind": "integer", "bounds": [0, most], "universe": universe}


SURVEYS = {
    "on an edge": {"age": number(8), "wage": number(3, "age >= 3")},
    "inside a bin": {"age": number(8), "wage": number(3, "age >= 4")},
    "two ranges": {"age": number(8), "wage": number(3, "age < 2 or age > 5")},
    "later column first": {"wage": number(3, "age >= 3"), "age": number(8)},
    "chain": {"age": number(8), "job": number(2, "age >= 3"), "wage": number(3, "job >= 1")},
    "two gates": {"age": number(8), "sex": number(1), "wage": number(3, "age >= 3 and sex = 1")},
    "either": {"age": number(8), "sex": number(1), "wage": number(3, "age >= 3 or sex = 1")},
    "who answered": {"age": number(8), "sex": number(1), "wage": number(3, "sex is answered and age >= 3")},
}


def seen(made: Domain, pair: tuple[int, int]) -> np.ndarray:
    """Pairs of cells in some lawful row without a hole, by trying them all."""
    codes = [
        [*range(made.schema.coded[axis.column].high + 1), *([UNASKED] if axis.has_unasked else [])]
        for axis in made.axes
    ]
    rows = np.array(list(product(*codes)))
    table = {name: rows[:, place] for place, name in enumerate(made.columns)}
    lawful = ~unlawful(table, read_rules(made))
    cells = [encode(table[axis.column][lawful], axis, made.schema) for axis in made.axes]
    found = np.zeros(made.sizes(pair), dtype=bool)
    found[cells[pair[0]], cells[pair[1]]] = True
    return found


@pytest.mark.parametrize("name", SURVEYS)
def test_pairs_that_some_row_shows_are_lawful_and_others_settled_by_one_answer_are_not(name: str) -> None:
    made = domain(SURVEYS[name])
    pairs = lawful_pairs(made)
    assert pairs
    for pair, can_be in pairs.items():
        shown = seen(made, pair)
        assert not (shown & ~can_be).any()
        answers = tuple(np.s_[: made.axes[place].answers] for place in pair)
        apart = [cell for cell in (made.axes[place].unasked for place in pair) if cell is not None]
        if name not in ("chain", "who answered"):
            assert (can_be[answers] == shown[answers]).all() and apart


def test_a_silent_answer_settles_nothing() -> None:
    made = domain(SURVEYS["on an edge"])
    can_be = lawful_pairs(made)[0, 1]
    age, wage = made.axes
    assert can_be[age.silence].all()
    # Somebody outside the universe can neither answer nor be silent; somebody inside cannot be left out.
    assert can_be[0].tolist() == [cell == wage.unasked for cell in range(wage.size)]
    assert can_be[1].tolist() == [cell != wage.unasked for cell in range(wage.size)]


def test_without_universes_everything_can_be() -> None:
    assert lawful_pairs(domain({"age": number(8), "wage": number(3)})) == {}
