"""The list of planted bugs keeps up with the code: each can still be planted, and the tests it names are there."""

import ast
import re
from pathlib import Path

import pytest
from tools.mutants import ROOT, Mutant, read_list, verdict

MUTANTS = read_list()
LEAST = 60
THREATS = (
    "half the scale", "four fifths", "one cell where an exchange changes two", "large numbers pass", "NaN passes",
    "empty cells dropped", "as many cells as were seen", "number of rows", "charged after", "not flushed", "no lock",
    "float amounts", "chain not checked", "fixed seed", "fork repeats", ">= for >", "delta not halved", "whole budget",
    "without beta", "a donor serves one", "uncapped", "in the order of the rows", "a traceback", "own words",
    "spill folder", "overwritten",
)  # fmt: skip
"""The least set that the threat catalogue asks for, as far as the library does such things."""


def defined(test: str) -> bool:
    """Whether a test is there: its file, and in it the function, whatever parameters are named."""
    file, _, name = test.partition("::")
    if not (ROOT / file).is_file():
        return False
    return (
        not name
        or re.search(rf"^def {re.escape(name.partition('[')[0])}\(", (ROOT / file).read_text(), re.MULTILINE)
        is not None
    )


def test_there_are_enough_of_every_kind() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= LEAST
    assert [word for word in THREATS if not any(word in name for name in names)] == []


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_can_be_planted(mutant: Mutant) -> None:
    """Its old text stands once in its file, what comes of it is Python, and the tests that should notice exist."""
    planted = mutant.planted((ROOT / mutant.file).read_text())
    ast.parse(planted)
    assert mutant.why and mutant.tests and all(map(defined, mutant.tests))


def test_a_text_that_is_gone_or_there_twice_is_noticed() -> None:
    """The list cannot rot in silence."""
    for text in ("nothing here", "a = 1\na = 1\n"):
        with pytest.raises(LookupError, match="occurs"):
            Mutant(name="m", file="f.py", old="a = 1", new="a = 2", why="w", tests=("t",)).planted(text)


def harmless() -> Mutant:
    """No bug at all: another wording of a docstring."""
    return Mutant(
        name="harmless",
        file="src/reticent/answer/parts.py",
        old="An integer with its noise, and the part that describes it.",
        new="An integer with noise, and the part that describes it.",
        why="nothing breaks",
        tests=("tests/answer/test_parts.py::test_the_declared_steps_are_reached",),
    )


def test_a_planted_bug_is_killed_and_no_bug_survives() -> None:
    """In a copy: the working tree stays as it is."""
    before = (ROOT / harmless().file).read_text()
    bug = next(mutant for mutant in MUTANTS if mutant.name == "measure: steps of the bound rounded down")
    assert verdict(bug)[0] == "killed"
    assert verdict(harmless())[0] == "survived"
    assert (ROOT / Path(bug.file)).read_text() == before
