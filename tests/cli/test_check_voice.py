"""`check` raises its voice: whatever would silently become missing or clamped is said, with the key that mends it."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from reticent.cli.main import app

BOOK = """
format = 2
[survey]
name = "voices"
unit = "row"
{csv}
[columns.pay]
kind = "decimal"
bounds = [0, 100000]
grid = "0.01"
[columns.age]
kind = "integer"
bounds = [0, 99]
[columns.town]
kind = "categorical"
levels = ["köln", "bonn"]
"""
PLAN = """
format = 2
[survey]
source = "rows.csv"
codebook = "book.codebook.toml"
ledger = "book.ledger.db"
[release]
id = "r-1"
[protect]
change = "one respondent added or removed"
epsilon = 1
[[statistic]]
name = "people"
query = { count = "*" }
epsilon = 0.5
"""
MODEL = """
[[impute]]
method = "regression"
column = "pay"
from = ["age"]
epsilon = 0.4
"""
DIALECT = '[survey.csv]\nseparator = ";"\n'


def ran(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, str(folder / "plan.toml")], env={"COLUMNS": "80"})
    return " ".join(done.output.split())


def folder_of(place: Path, rows: bytes | str, *, csv: str = "", more: str = "") -> Path:
    """A survey of these rows with its codebook and plan."""
    (place / "rows.csv").write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    (place / "book.codebook.toml").write_text(BOOK.format(csv=csv), encoding="utf-8")
    (place / "plan.toml").write_text(PLAN + more, encoding="utf-8")
    return place


def lines(*cells: str, header: str = "pay;age;town") -> str:
    return "\n".join([header, *cells]) + "\n"


@pytest.mark.parametrize(
    ("rows", "csv", "said"),
    [
        (lines("1,5;2;bonn", "2,5;3;bonn"), DIALECT, 'pay holds numbers with a comma, which do not fit: say [survey.csv] decimal = ","'),
        (lines("1.234,5;2;bonn"), DIALECT, '[survey.csv] decimal = "," and thousands = "." in the codebook'),
        (lines("1,234;2;bonn", "2,500;2;bonn"), DIALECT, 'say [survey.csv] thousands = "," in the codebook'),
        (lines("0,500;2;bonn", "12,250;2;bonn"), DIALECT, 'pay holds numbers with a comma, which do not fit: say [survey.csv] decimal = "," in'),
        (lines("-0,500;2;bonn"), DIALECT + 'thousands = ","\n', 'say [survey.csv] decimal = "," in place of thousands = ","'),
        (lines("0.500;2;bonn"), DIALECT + 'decimal = ","\nthousands = "."\n', "pay holds numbers with a decimal point"),
        (lines("1.234,5;2;bonn"), DIALECT + 'decimal = ","\n', 'say [survey.csv] thousands = "." in the codebook'),
        (lines("1;12.500;bonn", "2;30.000;bonn"), DIALECT, "others were read a thousand times too small"),
        (lines("12.500;2;bonn"), DIALECT + 'decimal = ","\n', 'say [survey.csv] thousands = "." in the codebook'),
        (lines("3.5;2;bonn"), DIALECT + 'decimal = ","\n', "pay holds numbers with a decimal point"),
        (lines("3.5;2;bonn"), DIALECT + 'decimal = ","\n', "pay does not fit, such as: '3.5'"),
        (lines("3;2;köln").encode("cp1252"), DIALECT, "town holds bytes that are no utf-8: say [survey.csv] encoding"),
        (lines("3;2;KÖLN "), DIALECT, "town holds 'KÖLN ' where the codebook has 'köln'"),
        (lines("3;2;x"), DIALECT, "town is wholly missing"),
        (lines("3;200;bonn", "4;300;bonn"), DIALECT, "age has every value outside its bounds"),
        (lines("3;2;bonn", "3;2;bonn", "4;2;bonn"), DIALECT, "2 rows are like another in every column"),
    ],
)  # fmt: skip
def test_check_says_what_is_wrong_and_what_mends_it(tmp_path: Path, rows: Any, csv: str, said: str) -> None:
    assert said in ran(folder_of(tmp_path, rows, csv=csv), "check")


def test_a_file_that_fits_gives_no_warning(tmp_path: Path) -> None:
    rows = lines("1.234,5;20;köln", "2,25;30;BONN ", "3;40;bonn").encode("cp1252")
    csv = DIALECT + 'decimal = ","\nthousands = "."\nencoding = "cp1252"\n'
    place = folder_of(tmp_path, rows, csv=csv)
    book = place / "book.codebook.toml"
    book.write_text(book.read_text(encoding="utf-8") + 'ignore = ["case", "spacing"]\n', encoding="utf-8")
    said = ran(place, "check")
    assert "WARNING" not in said and "100.0%" not in said


def test_three_digits_after_a_zero_are_no_thousands(tmp_path: Path) -> None:
    """An age of 0.500 is no five hundred, and nothing was read a thousand times too small."""
    place = folder_of(tmp_path, lines("1;0.500;bonn", "2;30;bonn"), csv=DIALECT)
    assert "thousand times too small" not in ran(place, "check")


def test_a_mass_at_one_value_is_told_before_a_regression_goes_through_it(tmp_path: Path) -> None:
    rows = lines(*(f"{0 if i % 2 else 1000 + i};{i};bonn" for i in range(60)))
    assert "pay has 50% of its answers at 0" in ran(
        folder_of(tmp_path, rows, csv=DIALECT, more=MODEL), "check"
    )
    assert "of its answers at" not in ran(folder_of(tmp_path, rows, csv=DIALECT), "check")


def test_rehearse_and_release_remind_until_check_has_been_run(tmp_path: Path) -> None:
    """The reminder is a command that works from where one stands, and comes back when the codebook changes."""
    place = folder_of(tmp_path, lines("3;2;bonn"), csv=DIALECT)
    reminder = f"`reticent check {place / 'plan.toml'}` has not been run"
    opened = ["ledger", "open", str(place / "book.ledger.db"), "--dataset", "voices", "--epsilon", "9"]
    assert CliRunner().invoke(app, opened).exit_code == 0
    assert reminder in ran(place, "rehearse")
    assert reminder in ran(place, "release")
    ran(place, "check")
    assert "has not been run" not in ran(place, "rehearse") + ran(place, "release")
    book = place / "book.codebook.toml"
    book.write_text(book.read_text(encoding="utf-8") + "# another thought\n", encoding="utf-8")
    assert reminder in ran(place, "rehearse")


def test_percentages_stand_whole_at_80_columns(tmp_path: Path) -> None:
    """A long name of a column does not push the share of missing answers off the terminal."""
    place = folder_of(tmp_path, lines("3;2;", "3;3;bonn", "4;;bonn"), csv=DIALECT)
    done = CliRunner().invoke(app, ["check", str(place / "plan.toml")], env={"COLUMNS": "80"})
    shown = done.output.splitlines()
    assert any("33.3%" in line and "town" in line for line in shown)
    assert all(len(line) <= 80 for line in shown if line.startswith(("│", "┃", "┏", "└")))


def test_flags_that_never_vary_are_said_to_go_with_nothing(tmp_path: Path) -> None:
    """Of a column wholly missing no correlation is told, and none that is zero."""
    rows = lines(
        *(f"{'' if place % 2 else 1},{'' if place % 2 else 2},ulm" for place in range(20)),
        header="pay,age,town",
    )
    said = ran(folder_of(tmp_path, rows), "check")
    assert "+1.00 pay, age" in said and "pay, town" not in said
