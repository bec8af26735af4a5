"""The documents item by item: every one has a row, a command that runs and a page, and printed numbers are its digits."""

import copy
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli import lab as door
from reticent.errors import PlanError
from reticent.lab.experiments import EXPERIMENTS, donors_figures, small_cells_printed
from reticent.lab.papers.items import PaperItem, Printed, documents, items, printed
from reticent.lab.run.experiment import Outcome, table_of
from reticent.lab.run.summary import rows_of

DOCS = Path(__file__).parents[2] / "docs"
NAMED = {  # what a reader with a document in hand may look for, written down apart from the table
    "donors": (
        "Figure 1; Figure 2; Figure 3 and Example 4.7; Figure 4; Figure 5; Figure 6; Law of silence; "
        "Smooth bound, noise and variance; Mean and variance after imputation; Remark 5.3(b)"
    ),
    "small-cells": (
        "Figure 1; Figure 2; Figure 3a; Figure 3b; Precision; Algorithm; Suppression and differencing; "
        "Placebo estimates; Public example"
    ),
    "models": "Figure 1; Strategy (ii); Strategy (iii); Proposition 3.2; Sweeps left open",
    "thesis": (
        "Chapter 2, parallel composition; Figure 4.1; Figure 4.2; Figure 4.3; Figure 5.1; "
        "Variance of a proportion from a piece; Table 5.1; Figures 6.1 to 6.3 and Example 6.3.7; "
        "Chapter 6, experiment; Figure 7.1; Figure 7.2; Figure 7.3; Figure 7.4; Figures 7.5 and 7.6; Section 7.4; "
        "Example 7.2.2; Cut-offs of the American Community Survey; Figure 7.7; Figure 7.8; Figure 7.9; "
        "Finding: everybody, without bias; Finding: women 30-39, without bias; Finding: everybody, with bias; "
        "Finding: women 30-39, with bias; Finding: women 20-29"
    ),
    "synthesis": (
        "Tables and masks; Figure 2; Figure 3; Figure 4; Figure 5; Longer version; Finding: loss of F1 at 10 % missing; "
        "Finding: loss of utility; Finding: gain by adaptive methods; "
        "Finding: adaptive methods equal the no-missing line; Finding: which method; Finding: amplified cost; "
        "Lemma 4.2; Theorem 4.3; Example 5.1; Example 5.5; Example 5.7; Example 5.8; Example 5.11; Example 5.13; "
        "Table 1; Algorithm 1; Algorithm 2; Algorithm 3; Algorithm 4"
    ),
}


def test_every_item_of_every_document_has_one_row():
    wanted = [(name, item) for name, text in NAMED.items() for item in text.split("; ")]
    found = [(each.document, each.item) for each in items()]
    assert sorted(found) == sorted(wanted) and len(found) == len(set(found)) == 74
    assert list(documents()) == list(NAMED)


def test_every_command_names_an_experiment_and_every_page_is_there():
    for each in items():
        words = re.fullmatch(r"reticent lab run ([a-z-]+)(?: --figures)?", each.command)
        assert words is not None and words[1] in EXPERIMENTS if each.command else each.status == "left out"
        assert (DOCS / each.page).is_file(), each


def test_a_row_without_a_command_or_with_another_status_is_refused():
    told = {"document": "thesis", "item": "x", "what": "", "page": "", "differs": ""}
    for status, command in (("repeated", ""), ("done", "reticent lab run x")):
        with pytest.raises(PlanError, match="status"):
            PaperItem(status=status, command=command, **told)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".17", 0.17),
        ("5/1000", 0.005),
        ("33×10⁻⁶", 3.3e-5),
        ("3.9×10⁵", 390_000),
        ("100k", 100_000),
        ("389899.14", 389899.14),
    ],
)
def test_digits_are_worth_what_they_say_and_are_kept(text, value):
    made = Printed(text, "thesis, Table 5.1")
    for each in (made, copy.copy(made), copy.deepcopy(made)):
        assert (each, each.digits, each.stands_in) == (value, text, "thesis, Table 5.1")


ELEVEN = {  # the mean squared errors of Figures 4 to 6, once more by hand
    ("Figure 4", "global"): 389899.14,
    ("Figure 4", "ignore"): 397.25,
    ("Figure 4", "published"): 1.3,
    ("Figure 5", "20-29, ignore"): 116.9,
    ("Figure 5", "20-29, published"): 7.3,
    ("Figure 5", "40-49, ignore"): 1180.3,
    ("Figure 5", "40-49, published"): 11.1,
    ("Figure 6", "20-29, ignore"): 33e-6,
    ("Figure 6", "20-29, published"): 1.4e-6,
    ("Figure 6", "40-49, ignore"): 4.6e-4,
    ("Figure 6", "40-49, published"): 7.5e-7,
}


def test_the_eleven_errors_are_digit_for_digit():
    for (figure, what), value in ELEVEN.items():
        assert printed("donors", figure, what) == value


@pytest.fixture(scope="module")
def exact_rows():
    """All rows of the experiments in which nothing is drawn; the atlas is a small one."""
    small = small_cells_printed.experiment(tracts=500)
    made = [small if each.name == small.name else each for each in EXPERIMENTS.values() if each.exact]
    return [(each.name, line) for each in made for line in each.run(0, 1)]


def stated(each: PaperItem) -> set[tuple[str, str]]:
    """Where its digits stand, and each of them."""
    return {
        (f"{each.document}, {each.item}", text) for said in each.printed.values() for text in said.split()
    }


def test_what_experiments_call_printed_stands_in_the_table_of_facts(exact_rows):
    """Of those that only compute: the digits of every printed number are one of the item's that names the experiment."""
    known = {
        name: set().union(*(stated(each) for each in items() if each.command.split()[3:4] == [name]))
        for name in EXPERIMENTS
    }
    rows = [(name, line) for name, line in exact_rows if line.printed is not None]
    assert len(rows) > 80
    for name, line in rows:
        assert (line.printed.stands_in, line.printed.digits) in known[name], line.item


def test_every_printed_number_of_a_row_stands_there_digit_for_digit(exact_rows, tmp_path):
    """As text, beside the number: .60 is not 0.6, and 4/143 is no decimal."""
    found = {line.printed.digits for _, line in exact_rows if line.printed is not None}
    assert {".60", "7.80", "4/143", "71.0", "5×10⁻⁵"} <= found
    call = CliRunner().invoke(door.app, ["run", "amplification-table", "--json", "--out", str(tmp_path)])
    rows = [row for row in json.loads(call.output)["rows"] if "printed" in row]
    assert {".17", ".60", "7.80", ".499"} <= {row["printed_digits"] for row in rows}
    assert {row["stands_in"] for row in rows} == {"thesis, Table 5.1"}


def test_each_document_keeps_its_own_digits_of_the_same_number():
    """33×10⁻⁶ in one document and 3.3×10⁻⁵ in the other, in rows of one experiment; what has no digits is not printed."""
    small = donors_figures.experiment(size=4_000, rows=1_000)
    rows = rows_of(small, table_of({0: small.run(0, 1)}))
    told = {row["stands_in"]: row["printed_digits"] for row in rows if row.get("printed") == 33e-6}
    assert told == {"donors, Figure 6": "33×10⁻⁶", "thesis, Chapter 6, experiment": "3.3×10⁻⁵"}
    assert all("printed_digits" in row for row in rows if "printed" in row)
    for wrong in (
        {"item": "x", "printed": 0.17},
        {"method": "m", "truth": 0, "estimate": 0, "printed": Printed(".17", "x")},
    ):
        with pytest.raises(PlanError, match="digits"):
            Outcome(**wrong)


def test_every_number_of_the_table_is_in_a_row_where_its_experiment_only_computes(exact_rows):
    shown: dict[str, set[tuple[str, str]]] = {}
    for name, line in exact_rows:
        told = {(line.printed.stands_in, line.printed.digits)} if line.printed is not None else set()
        shown.setdefault(name, set()).update(told)
    for each in items():
        name = each.command.removeprefix("reticent lab run ")
        assert name not in shown or stated(each) <= shown[name], each.item


def test_what_measured_rows_call_printed_stands_in_the_table_of_facts():
    """The rows behind the pages, each document with its own digits."""
    known = set().union(*(stated(each) for each in items()))
    made = [json.loads(path.read_text(encoding="utf-8"))["rows"] for path in (DOCS / "lab").glob("*.json")]
    rows = [row for each in made for row in each if row.get("printed") is not None]
    assert len(rows) > 40
    for row in rows:
        assert (row["stands_in"], row["printed_digits"]) in known, row
        assert Printed(row["printed_digits"], row["stands_in"]) == row["printed"], row


def test_the_command_lists_them_and_refuses_another_name():
    call = CliRunner().invoke(door.app, ["papers", "--json"])
    made = json.loads(call.output)
    assert call.exit_code == 0 and set(made) == {"documents", "items"} and len(made["items"]) == 74
    assert {"document", "item", "command", "status", "differs"} <= set(made["items"][0])
    said = CliRunner().invoke(door.app, ["papers", "models"]).output
    assert "Proposition 3.2" in said and "Table 5.1" not in said
    assert "    $ reticent lab run model-example\n" in said and max(map(len, said.splitlines())) <= 100
    assert (
        "printed: global 389899.14; ignore 397.25"
        in CliRunner().invoke(door.app, ["papers", "donors"]).output
    )
    assert isinstance(CliRunner().invoke(door.app, ["papers", "modles"]).exception, PlanError)


def line_of(each: PaperItem) -> str:
    """An item's line of the page."""
    command = f"`{each.command}`" if each.command else ""
    page = f"[{Path(each.page).stem}]({each.page})"
    return f"| {each.item} | {each.what} | {command} | {page} | {each.status} | {each.differs} |"


def test_the_page_has_every_item_and_no_other():
    lines = (DOCS / "papers.md").read_text(encoding="utf-8").splitlines()
    for each in items():
        assert line_of(each) in lines, each.item
    assert sum("reticent lab run" in line for line in lines if line.startswith("|")) == sum(
        bool(each.command) for each in items()
    )
