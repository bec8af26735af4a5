"""Drafts from SPSS, Stata and SAS files: what the header says is used, and a guess is marked."""

import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pyreadstat
import pytest
from typer.testing import CliRunner

from reticent.cli.main import app
from reticent.engine.sources.draft import draft_codebook

ROWS = pd.DataFrame(
    {
        "region": [1.0, 2.0, 9.0],
        "health": [1.0, 2.0, 3.0],
        "income": [12.5, 99.0, -1.0],
        "rooms": [3.0, 4.0, 97.0],
        "born": pd.to_datetime(["1980-01-02", "1990-01-02", "2000-01-02"]).date,
        "note": ["a", "b", "c"],
    }
)
LABELS = {
    "region": {1: "New England", 2: 'Middle "Atlantic"', 9: "No answer"},
    "health": {1: "bad", 2: "fair", 3: "good"},
    "income": {-1: "refused"},
    "rooms": {97: "don't know"},
}


@pytest.fixture
def sav(tmp_path: Path) -> Path:
    path = tmp_path / "survey.sav"
    pyreadstat.write_sav(
        ROWS,
        str(path),
        column_labels={"region": "Census division"},
        variable_value_labels=LABELS,
        missing_ranges={"region": [9], "rooms": [{"lo": 90, "hi": 99}]},
        variable_measure={"region": "nominal", "health": "ordinal", "income": "scale", "rooms": "scale"},
        variable_format={"income": "F8.2", "rooms": "F2.0"},
    )
    return path


def drafted(path: Path) -> tuple[dict[str, Any], str]:
    text = draft_codebook(str(path))
    return tomllib.loads(text)["columns"], text


def test_user_missing_values_are_missing_codes_and_never_levels(sav: Path) -> None:
    columns, text = drafted(sav)
    assert columns["region"]["levels"] == ["1", "2"] and columns["region"]["missing_codes"] == ["9"]
    assert columns["rooms"]["missing_codes"] == ["97"] and "90 to 99" in text


def test_ranges_of_missing_values_are_told_in_words(tmp_path: Path) -> None:
    """`LO THRU -1` is no number of three hundred digits, and a range whose every code has a label asks nothing more."""
    path, rows = tmp_path / "ranges.sav", pd.DataFrame({"open": [1.0, -2.0], "full": [1.0, 98.0]})
    pyreadstat.write_sav(
        rows,
        str(path),
        variable_value_labels={"open": {-2: "refused"}, "full": {98: "refused", 99: "no answer"}},
        missing_ranges={"open": [{"lo": -1.7e308, "hi": -1}], "full": [{"lo": 98, "hi": 99}]},
        variable_measure={"open": "scale", "full": "scale"},
    )
    columns, text = drafted(path)
    assert columns["open"]["missing_codes"] == ["-2"] and columns["full"]["missing_codes"] == ["98", "99"]
    assert "all of the numbers up to -1 missing" in text and "98 to 99" not in text
    assert max(map(len, text.splitlines())) < 200


def test_two_labels_that_begin_late_are_special_values_of_a_number(tmp_path: Path) -> None:
    """Of a number of children, 8 or more and no answer: not a list of all answers, where no measurement is known."""
    path = tmp_path / "children.dta"
    pyreadstat.write_dta(
        pd.DataFrame({"children": [1.0, 8.0, 9.0], "married": [1.0, 2.0, 1.0]}),
        str(path),
        variable_value_labels={"children": {8: "eight or more", 9: "dk"}, "married": {1: "yes", 2: "no"}},
    )
    columns, text = drafted(path)
    assert columns["children"]["kind"] == "decimal" and "missing_codes? 8 eight or more; 9 dk" in text
    assert columns["married"]["kind"] == "categorical"


def test_labels_are_drafted_and_measurement_level_is_used(sav: Path) -> None:
    columns, _ = drafted(sav)
    assert columns["region"]["labels"] == {"1": "New England", "2": 'Middle "Atlantic"'}
    assert columns["region"]["label"] == "Census division"
    assert (columns["region"]["kind"], columns["health"]["kind"]) == ("categorical", "ordinal")


def test_a_scale_with_one_label_stays_a_number_with_its_print_format(sav: Path) -> None:
    columns, text = drafted(sav)
    assert columns["income"]["kind"] == "decimal" and columns["income"]["grid"] == "0.01"
    assert columns["rooms"]["kind"] == "integer" and "levels" not in columns["rooms"]
    assert "missing_codes? -1 refused" in text


def test_a_date_is_left_out_with_the_way_out(sav: Path) -> None:
    columns, text = drafted(sav)
    assert not any(name.startswith("born") for name in columns) and "born is a date" in text


def test_a_stata_file_has_labels_and_marks_guesses(tmp_path: Path) -> None:
    """Stata knows no measurement level: yes and no are levels, a single code far off is none."""
    path = tmp_path / "survey.dta"
    frame = pd.DataFrame({"yes": [0, 1, 1], "hours": [40, 38, 98], "ok": [1, 2, 3]}).astype("int8")
    labels = {
        "yes": {0: "no", 1: "yes"},
        "hours": {98: "don't know"},
        "ok": {1: "good", 2: "bad", 3: "don't know"},
    }
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    columns, text = drafted(path)
    assert columns["yes"]["levels"] == ["0", "1"] and columns["hours"]["kind"] == "integer"
    assert "missing_codes rather than levels? 3 don't know" in text


def test_a_transport_file_is_drafted(tmp_path: Path) -> None:
    path = tmp_path / "survey.xpt"
    pyreadstat.write_xport(ROWS[["income", "note"]], str(path))
    columns, _ = drafted(path)
    assert set(columns) == {"income", "note"}


def test_a_codebook_is_not_finished_while_a_todo_is_left(sav: Path, tmp_path: Path) -> None:
    book = tmp_path / "book.toml"
    book.write_text(
        '[survey]\nname = "x"\nunit = "row"\n[columns.a]\nkind = "integer"\nbounds = [0, 9]  # TODO: really?\n',
        encoding="utf-8",
    )
    run = CliRunner().invoke(app, ["codebook", "check", str(book)])
    assert "1 TODO left" in run.output and "finished\n" not in run.output.replace("not finished", "")
    book.write_text(book.read_text().replace("  # TODO: really?", ""), encoding="utf-8")
    assert "; finished" in CliRunner().invoke(app, ["codebook", "check", str(book)]).output


def test_a_draft_that_cannot_be_read_yet_says_how_many_todos_are_left(sav: Path, tmp_path: Path) -> None:
    """What its first error asks is one of them."""
    book = tmp_path / "draft.codebook.toml"
    book.write_text(draft_codebook(str(sav)), encoding="utf-8")
    done = CliRunner().invoke(app, ["codebook", "check", str(book)])
    said = str(done.exception)
    assert done.exit_code != 0 and "draft.codebook.toml: not finished: " in said and "TODO left" in said


def test_missing_values_of_stata_are_never_levels(tmp_path: Path) -> None:
    """.a to .z stand beside all numbers: what they mean is told, and a level that no cell can have is not drafted."""
    path = tmp_path / "survey.dta"
    frame = pd.DataFrame({"happy": [1, 2, "a", "b"], "hours": [40, 38, "r", 20]}, dtype=object)
    labels = {
        "happy": {1: "very", 2: "pretty", 3: "not", "a": "Don't know", "b": "Refused"},
        "hours": {"r": "refused"},
    }
    missing = {"happy": ["a", "b"], "hours": ["r"]}
    pyreadstat.write_dta(frame, str(path), variable_value_labels=labels, missing_user_values=missing)
    columns, text = drafted(path)
    assert columns["happy"]["levels"] == ["1", "2", "3"] and "a" not in columns["happy"]["labels"]
    assert "read as missing, as the file says: .a Don't know; .b Refused" in text
    assert "levels" not in columns["hours"] and ".r refused" in text


def test_a_format_that_nobody_chose_is_a_guess(tmp_path: Path) -> None:
    """SPSS prints F8.2 where nobody said anything: two decimals of a year are a guess, and an order without labels is one."""
    path = tmp_path / "survey.sav"
    frame = pd.DataFrame({"year": [2021.0, 2022.0], "pay": [1.5, 2.5]})
    measured = {"year": "ordinal", "pay": "scale"}
    pyreadstat.write_sav(frame, str(path), variable_measure=measured, variable_format={"pay": "F9.2"})
    _, text = drafted(path)
    year, pay = text.split("[columns.pay]")
    assert "as it is printed; TODO" in year and "TODO: measured as ordinal" in year
    assert 'grid = "0.01"    # as it is printed\n' in pay


@pytest.mark.parametrize(
    ("labels", "is_guess"),
    [
        ({1: "yes"}, True),
        ({0: "not at all", 10: "very"}, True),
        ({1: "yes", 2: "no"}, False),
        ({"m": "male"}, True),
    ],
)
@pytest.mark.parametrize("measure", ["nominal", "ordinal"])
def test_labels_that_leave_room_for_other_answers_are_a_guess(
    tmp_path: Path, labels: dict[Any, str], is_guess: bool, measure: Any
) -> None:
    """Of a single label, or of labels at both ends, nobody knows that they are all answers; of 1 and 2 they may be."""
    path = tmp_path / "survey.sav"
    frame = pd.DataFrame({"asked": [*labels] * 2})
    pyreadstat.write_sav(
        frame, str(path), variable_value_labels={"asked": labels}, variable_measure={"asked": measure}
    )
    columns, text = drafted(path)
    assert len(columns["asked"]["levels"]) == len(labels)
    assert ("TODO: the file labels these alone" in text) == is_guess


def test_a_number_with_a_single_label_is_a_guess_where_no_measurement_is_known(tmp_path: Path) -> None:
    path = tmp_path / "survey.dta"
    frame = pd.DataFrame({"hours": [40, 38, 0]}).astype("int8")
    pyreadstat.write_dta(frame, str(path), variable_value_labels={"hours": {0: "none"}})
    columns, text = drafted(path)
    assert columns["hours"]["kind"] == "integer" and "levels" not in columns["hours"]
    assert "# TODO: labelled values of a number; missing_codes? 0 none" in text


def test_the_header_of_a_text_file_tells_no_kind(tmp_path: Path) -> None:
    (tmp_path / "rows.tsv").write_text("age\ttown\n3\tbonn\n", encoding="utf-8")
    columns, text = drafted(tmp_path / "rows.tsv")
    assert list(columns) == ["age", "town"] and text.count('# TODO: or ordinal; or "integer"') == 2


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_separator_is_read_off_the_header(tmp_path: Path, mark: str) -> None:
    """The draft declares it, and asks for what the header cannot tell."""
    header = mark.join(["age", '"what ever"', "town"])
    (tmp_path / "rows.csv").write_text(f"{header}\n{mark.join(['3', '1', 'bonn'])}\n", encoding="utf-8")
    text = draft_codebook(str(tmp_path / "rows.csv"))
    made = tomllib.loads(text)
    assert made["survey"]["csv"]["separator"] == mark and 'TODO: ","' in text
    assert [each.get("source", name) for name, each in made["columns"].items()] == [
        "age",
        "what ever",
        "town",
    ]
