"""The how-to page says what happens: its examples run, and its table parses."""

import doctest
import re
from pathlib import Path

from reticent.schema.parse import parse

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "predicates.md"


def test_the_examples_of_the_page_run():
    """Every prompt on the page, as printed."""
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted == 4 and found.failed == 0


def test_the_conditions_of_the_page_parse():
    """Every condition quoted in its table, and the three lines on silence."""
    text = PAGE.read_text(encoding="utf-8")
    first_cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    conditions = [c for cell in first_cells for c in re.findall(r"`([^`]+)`", cell) if "..." not in c]
    on_silence = re.search(r"```\n(.*?)```", text[text.index("Those who did not") :], re.DOTALL)
    lines = on_silence.group(1).splitlines()
    assert len(conditions) > 12 and len(lines) == 3
    for condition in (*conditions, *lines):
        parse(condition, field="page")
