"""The documents item by item: every one has a row, a command that runs and a page, and printed numbers are its digits."""

import copy
import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from reticent.cli import lab as door
from reticent.errors import PlanError
from reticent.lab.experiments import EXPERIMENTS, donors_figures, small_cells_printed
from reticent.lab.papers.items import PaperItem, Printed, documents, items
from reticent.lab.run.experiment import Outcome, table_of
from reticent.lab.run.summary import rows_of

DOCS = Path(__file__).parents[2] / "docs"
NAMED = {  # what a reader with a document in hand may look for, written down apart from the table
    "donors": (
        "Figure 1; Figure 2; Figure 3 and Example 4.7; Figure 4; Figure 5; Figure 6; Law of silence; "
        "Smooth bound, noise and variance; Mean and variance after imputation; Remark 5.3(b); "
        "Theorem 3.8 and Corollaries 3.9, 5.2, 5.5 and 5.7; Definition 4.4(b)"
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
        "Finding: women 30-39, with bias; Finding: women 20-29; Statements 2.2.5 and 7.4.3; Theorem 5.3.1; Theorem 5.5.1; "
        "Section 5.7; Statement 6.3.4; Theorem 7.1.3; Statement 7.3.8"
    ),
    "synthesis": (
        "Tables and masks; Figure 2; Figure 3; Figure 4; Figure 5; Longer version; Finding: loss of F1 at 10 % missing; "
        "Finding: loss of utility; Finding: gain by adaptive methods; "
        "Finding: adaptive methods equal the no-missing line; Finding: which method; Finding: amplified cost; "
        "Lemma 4.2; Theorem 4.3; Example 5.1; Example 5.5; Example 5.7; Example 5.8; Example 5.11; Example 5.13; "
        "Table 1; Algorithm 1; Algorithm 2; Algorithm 3; Algorithm 4; Theorem 5.3; "
        "Proposition 5.4, Theorem 5.6 and Definition 5.9; Lemma 5.10; Theorem 5.12"
    ),
}


def test_every_item_of_every_document_has_one_row():
    wanted = [(name, item) for name, text in NAMED.items() for item in text.split("; ")]
    found = [(each.document, each.item) for each in items()]
    assert sorted(found) == sorted(wanted) and len(found) == len(set(found)) == 87
    assert list(documents()) == list(NAMED)


def test_every_command_names_an_experiment_and_every_page_is_there():
    for each in items():
        words = re.fullmatch(
            r"reticent lab run ([a-z-]+)((?: --[a-z]+(?: [a-z0-9.,-]+)?)*)", each.command, re.IGNORECASE
        )
        assert words is not None and words[1] in EXPERIMENTS if each.command else each.status == "left out"
        made = EXPERIMENTS[each.experiment]
        said = words[2].split()
        chosen = {flag: [b for a, b in pairwise(said) if a == flag] for flag in ("--only", "--skip")}
        everywhere = replace(made, lacks=None)
        runs = everywhere.wanted(1, chosen["--only"], chosen["--skip"])
        assert (len(runs) < len(made.pieces)) == bool(chosen["--only"]), each
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
        ("32,561", 32561),
        ("1/3.5", 2 / 7),
    ],
)
def test_digits_are_worth_what_they_say_and_are_kept(text, value):
    made = Printed(text, "thesis, Table 5.1")
    for each in (made, copy.copy(made), copy.deepcopy(made)):
        assert (each, each.digits, each.stands_in) == (value, text, "thesis, Table 5.1")


DIGITS = """
donors, Figure 3 and Example 4.7: 4 1 6
donors, Figure 4: 389899.14 397.25 1.3
donors, Figure 5: 116.9 7.3 1180.3 11.1
donors, Figure 6: 33×10⁻⁶ 1.4×10⁻⁶ 4.6×10⁻⁴ 7.5×10⁻⁷
donors, Smooth bound, noise and variance: 3
small-cells, Figure 1: 0.212 0.349 0.137
small-cells, Figure 2: 13.02
small-cells, Figure 3a: 0.136
small-cells, Precision: 0.8 71.8 71.0
small-cells, Suppression and differencing: 5 100 150 151
thesis, Chapter 2, parallel composition: 5
thesis, Figure 4.2: 0.05
thesis, Figure 5.1: 0.001 0.0005 0.5
thesis, Table 5.1: .087 .282 .387 .464 .498 .499 N/A .17 .26 .60 2.86 7.80
thesis, Chapter 6, experiment: 3.9×10⁵ 3.3×10⁻⁵
thesis, Figure 7.1: 5/1000 4/143 3/1000 2/143 1/100 5/1000 4/1000 3/1000 2/118 1/100
thesis, Figure 7.2: .063 .627 .052 .155 .104 .130 .118 .107 .430 .215
thesis, Figure 7.3: 1000 143 1000 143 100 1000 1000 1000 118 100
thesis, Figure 7.4: 6000 858 6000 858 600 6000 6000 6000 708 600
thesis, Figures 7.5 and 7.6: 100k 100k 100k 100k 100k 200k 300k 500k 1300 100 1200 1200 1200 1400 3600 5000 \
77 1000 83 83 83 143 83 100 1600 100 1600 1600 100 1700 3300 5000 63 1000 63 63 1000 118 91 100
thesis, Section 7.4: 5×10⁻⁵ .999 1000 2563
thesis, Cut-offs of the American Community Survey: 10 1/3.5
synthesis, Tables and masks: 32,561 45,211 38,000 15,012 5,000 1,000 1,000
synthesis, Finding: loss of F1 at 10 % missing: 4 18.5
synthesis, Finding: loss of utility: 5 23 10 190
synthesis, Finding: gain by adaptive methods: 15 72 68 66 24
synthesis, Finding: which method: 1
synthesis, Finding: amplified cost: 0.1 0.65
synthesis, Example 5.5: 0.421 27/64
synthesis, Example 5.7: 0.77 3/4 1 9/16
synthesis, Example 5.8: 0.83 0.81 3/4 1 1 9/16
synthesis, Example 5.11: 0.81 15 0
synthesis, Example 5.13: 0.9375 3/4
synthesis, Table 1: 0.88 0.77 0.65 0.47 0.44 0.83 0.68 0.55 0.41 0.31
"""  # read off the documents once more, apart from the table


def test_every_digit_of_the_table_of_facts_is_the_document_s():
    wanted = dict(line.rsplit(": ", 1) for line in DIGITS.strip().splitlines())
    found = {
        f"{each.document}, {each.item}": " ".join(each.printed.values()) for each in items() if each.printed
    }
    assert found == wanted


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


def rows_there_are(exact_rows, name: str) -> list[dict]:
    """Of an experiment: computed now where nothing is drawn, else those behind its page."""
    lines = [line for found, line in exact_rows if found == name]
    if lines:
        made = (
            small_cells_printed.experiment(tracts=500) if name == "small-cells-printed" else EXPERIMENTS[name]
        )
        return rows_of(made, table_of({0: lines}))
    return json.loads((DOCS / "lab" / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def test_every_item_has_its_rows_and_every_printed_number_stands_in_one_of_them(exact_rows):
    """A reader who asks for the item sees rows, and in them all that the document prints of it."""
    there = {name: rows_there_are(exact_rows, name) for name in {each.experiment for each in items()}}
    for each in items():
        found = [row for row in there[each.experiment] if each.holds(row)]
        assert found, each.item
        told = {(row["stands_in"], row["printed_digits"]) for row in found if "printed_digits" in row}
        assert stated(each) <= told, (each.item, stated(each) - told)
        assert all(
            sum(row.get("item", "").startswith(name) for row in found)
            for keys in each.rows
            for name in keys.get("item", ())
        ), each.item


def test_a_row_with_a_printed_number_is_shown_with_the_item_it_stands_in(exact_rows):
    for name in {each.experiment for each in items()}:
        about = {f"{each.document}, {each.item}": each for each in items() if each.experiment == name}
        for row in rows_there_are(exact_rows, name):
            assert "stands_in" not in row or about[row["stands_in"]].holds(row), row


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
    assert call.exit_code == 0 and set(made) == {"documents", "items"} and len(made["items"]) == 87
    assert {"document", "item", "command", "status", "differs"} <= set(made["items"][0])
    said = CliRunner().invoke(door.app, ["papers", "models"]).output
    assert "Proposition 3.2" in said and "Table 5.1" not in said
    assert (
        '    $ reticent lab run model-example --item "Proposition 3.2"\n' in said
        and max(map(len, said.splitlines())) <= 100
    )
    assert (
        "printed: global 389899.14; ignore 397.25"
        in CliRunner().invoke(door.app, ["papers", "donors"]).output
    )
    assert isinstance(CliRunner().invoke(door.app, ["papers", "modles"]).exception, PlanError)


def test_one_item_is_shown_alone_and_another_experiment_s_is_refused_before_the_run(tmp_path):
    run = ["run", "amplification-table", "--json", "--out", str(tmp_path), "--item"]
    rows = json.loads(CliRunner().invoke(door.app, [*run, "Table 5.1"]).output)["rows"]
    assert len(rows) == 12 and {row["stands_in"] for row in rows} == {"thesis, Table 5.1"}
    assert ["printed" in row for row in rows if row["printed_digits"] == "N/A"] == [False]
    other = ["run", "poststratify-example", "--json", "--out", str(tmp_path), "--item", "Figure 7.3"]
    rows = json.loads(CliRunner().invoke(door.app, other).output)["rows"]
    assert len(rows) == 10 and {row["stands_in"] for row in rows} == {"thesis, Figure 7.3"}
    for wrong, hint in (("Figure 7.3", "there are Table 5.1"), ("Tabel 5.1", "did you mean 'Table 5.1'")):
        (tmp_path / "none").mkdir(exist_ok=True)
        said = CliRunner().invoke(door.app, [*run[:-2], str(tmp_path / "none"), "--item", wrong]).exception
        assert isinstance(said, PlanError) and hint in str(said)
        assert not list((tmp_path / "none").iterdir())


def test_every_printed_digit_stands_on_the_page_of_its_item():
    for each in items():
        page = (DOCS / each.page).read_text(encoding="utf-8").replace(" × 10", "×10")
        missing = [
            text for _, text in stated(each) if not re.search(rf"(?<![\d.]){re.escape(text)}(?!\d)", page)
        ]
        assert not missing, (each.item, each.page)


def line_of(each: PaperItem) -> str:
    """An item's line of the page."""
    command = f"`{each.command}`" if each.command else ""
    page = f"[{Path(each.page).stem}]({each.page})"
    return f"| {each.item} | {each.what} | {command} | {page} | {each.status} | {each.differs} |"


def test_the_page_has_every_item_and_every_setting_and_no_other():
    lines = (DOCS / "papers.md").read_text(encoding="utf-8").splitlines()
    wanted = [line_of(each) for each in items()]
    wanted += [f"| {each.document} | {each.item} | {each.setting} |" for each in items() if each.setting]
    for line in wanted:
        assert lines.count(line) == 1, line
    first = tuple(f"| {name} | " for name in documents())
    told = [
        line
        for line in lines
        if line.startswith(first) or (line.startswith("|") and "`reticent lab run " in line)
    ]
    assert len(told) == len(wanted)
