"""A second budget for the same rows is refused by their file, told to the curator by their fingerprint, and stated."""

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reticent.engine.duckdb.engine import DuckDBEngine
from reticent.engine.sources.open import open_frame, open_path
from reticent.errors import BudgetError, LedgerError
from reticent.privacy.ledger import Ledger, same_rows
from reticent.privacy.ledger.sqlite import head_path
from reticent.schema.codebook import schema_from
from tests.badinput.house import House, run
from tests.privacy.ledgers import in_child, make, release, reserve


@pytest.fixture
def rows(folder) -> Path:
    (folder / "data").mkdir()
    path = folder / "data" / "rows.csv"
    path.write_text("age\n30\n")
    return path


def charge(ledger: Ledger, *files: Path, release: str = "r1", table: str = "", out: Path | None = None):
    """What a release does: look, then charge."""
    found = [(path, table) for path in files]
    ledger.check_alone(found, out)
    held = reserve(ledger, release, files=found, dataset=ledger.facts.dataset)
    ledger.commit(held, b"noisy")
    return held


def second(folder: Path, name: str = "second survey", **changes) -> Ledger:
    """Another ledger, in a folder of its own."""
    (folder / "elsewhere").mkdir(exist_ok=True)
    return make(folder / "elsewhere" / "b.db", dataset=name, **changes)


def naive_is_known(ledger: Ledger, files: list[Path], seen: dict[str, str]) -> bool:
    """The naive twin: files as they are spelled, ledgers by the name of the data set."""
    return any(seen.get(str(path)) == ledger.facts.dataset for path in files)


def link(path: Path) -> Path:
    path.with_name("link.csv").symlink_to(path)
    return path.with_name("link.csv")


def hard_link(path: Path) -> Path:
    os.link(path, path.with_name("other.csv"))
    return path.with_name("other.csv")


def renamed(path: Path) -> Path:
    return path.rename(path.with_name("renamed.csv"))


def edited(path: Path) -> Path:
    path.write_text("age\n31\n")
    return path


def dotted(path: Path) -> Path:
    return path.parent / ".." / "data" / "." / path.name


def folder_moved(path: Path) -> Path:
    return path.parent.rename(path.parent.with_name("moved")) / path.name


def folder_copied(path: Path) -> Path:
    return Path(shutil.copytree(path.parent, path.parent.with_name("copied"))) / path.name


@pytest.mark.parametrize(
    "spell", [Path, link, hard_link, renamed, edited, dotted, folder_moved, folder_copied]
)
def test_a_second_ledger_for_the_same_file_is_refused(folder, rows, spell):
    """Wherever it lies and whatever it calls the data. The naive twin lets every one of them pass."""
    # covers L11 L13
    first = make(folder / "a.db")
    charge(first, rows)
    kept = {str(rows): first.facts.dataset}
    path = spell(rows)
    other = second(folder)
    assert not naive_is_known(other, [path], kept)
    with pytest.raises(LedgerError, match="--separate-budget") as refused:
        charge(other, path)
    assert refused.value.status == 5 and str(folder) not in str(refused.value)
    assert other.spent == 0 and [each.kind for each in other.entries()] == ["open"]
    charge(first, path, release="r2")  # its own ledger goes on


def test_a_refused_charge_claims_nothing(folder, rows):
    """Over budget with one ledger, then charged to the right one: no marker was left behind."""
    # covers L13
    wrong = second(folder, budget="0.5")
    with pytest.raises(BudgetError):
        charge(wrong, rows)
    assert list(rows.parent.iterdir()) == [rows]
    charge(make(folder / "a.db"), rows)


def test_without_the_marker_ledgers_in_one_folder_still_see_each_other(folder, rows):
    """As where the folder of the rows is read-only. By place, and by the file itself where it was moved."""
    # covers L13
    charge(make(folder / "a.db"), rows)
    beside = make(folder / "b.db", dataset="second survey")
    for path in (rows, hard_link(rows), rows.rename(folder / "moved.csv")):
        for marker in rows.parent.glob(".*"):
            marker.unlink()
        with pytest.raises(LedgerError, match=r"belongs to a\.db"):
            charge(beside, path)


def test_one_shared_file_of_many_is_enough(folder, rows):
    # covers L13
    more = [rows.with_name(f"{number}.csv") for number in range(3)]
    for path in more:
        path.write_text("age\n")
    charge(make(folder / "a.db"), rows, more[0])
    other = second(folder)
    with pytest.raises(LedgerError):
        charge(other, more[1], more[0])
    charge(other, more[1], more[2])


def test_tables_of_one_database_are_told_apart_and_capitals_are_not(folder, rows):
    # covers L13
    charge(make(folder / "a.db"), rows, table="people")
    other = second(folder)
    with pytest.raises(LedgerError):
        charge(other, rows, table="People")
    charge(other, rows, table="homes")


def test_another_file_is_no_matter(folder, rows):
    """Also where it was given the deleted file's number on the disk, and where markers are no markers."""
    # covers L13
    os.utime(rows, ns=(10**9, 10**9))  # long ago, however quick the machine
    charge(make(folder / "a.db"), rows)
    for name, data in {
        ".a.charged": b"{",
        ".b.charged": b"[" * 10**5,
        ".c.charged": b'{"ledger": 1}',
    }.items():
        (rows.parent / name).write_bytes(data)
    rows.rename(folder / "gone.csv").unlink()
    fresh = rows.with_name("fresh.csv")
    fresh.write_text("age\n40\n")
    charge(second(folder), fresh)


def test_a_separate_budget_is_let_through_and_every_receipt_says_so(folder, rows):
    # covers L13
    first = make(folder / "a.db")
    plain = charge(first, rows).receipt.as_dict()
    other = second(folder, separate_budget=True)
    stated = [charge(other, rows, release=name).receipt.as_dict() for name in ("r1", "r2")]
    assert "separate_budget" not in plain and all(each["separate_budget"] is True for each in stated)
    other.verify(stated)
    with pytest.raises(LedgerError):  # nor can a receipt be rid of it
        other.verify([{name: value for name, value in stated[0].items() if name != "separate_budget"}])
    charge(first, rows, release="r2")


def test_a_ledger_in_use_becomes_separate_by_a_note(folder, rows):
    """The way out for two ledgers that were charged before files were compared; it needs a reason."""
    # covers L13
    first, other = make(folder / "a.db"), second(folder)
    charge(other), charge(first, rows)
    with pytest.raises(LedgerError):
        charge(other, rows, release="r2")
    other.note("two projects share these rows", separate_budget=True)
    assert charge(other, rows, release="r2").receipt.separate_budget
    charge(first, rows, release="r2")


def test_what_a_resumed_release_reads_is_marked_too(folder, rows):
    """It may be told to read another file than the one that was charged for."""
    # covers L13 L04
    other = rows.with_name("more.csv")
    other.write_text("age\n50\n")
    first = make(folder / "a.db")
    reserve(first, files=[(rows, "")])
    first.resume("r1", "p", files=[(other, "")])
    with pytest.raises(LedgerError, match="--separate-budget"):
        charge(second(folder), other)


def test_a_second_ledger_beside_the_first_is_not_started(folder, rows):
    # covers L11 L13
    make(folder / "a.db", files=[(rows, "")])
    with pytest.raises(LedgerError, match=r'"state survey" has a ledger here, a\.db'):
        make(folder / "b.db")
    with pytest.raises(LedgerError, match=r"belongs to a\.db"):
        make(folder / "b.db", dataset="second survey", files=[(rows, "")])
    assert not (folder / "b.db").exists()
    make(folder / "b.db", separate_budget=True, files=[(rows, "")])


def test_a_deleted_ledger_is_missed_at_the_next_charge(folder, rows):
    """Ledger and head gone, receipts and rows still there: a new one with the same name cannot publish beside them."""
    # covers L11
    out = folder / "out"
    out.mkdir()
    ledger = make(folder / "a.db")
    receipt = charge(ledger, rows, out=out).receipt.as_dict()
    (out / "r1.json").write_text(json.dumps({"receipt": receipt}))
    (folder / "a.db").unlink(), head_path(folder / "a.db").unlink()
    begun = make(folder / "a.db")  # the naive twin: nobody looks
    with pytest.raises(LedgerError, match="another ledger, number"):
        charge(begun, rows, out=out)
    with pytest.raises(LedgerError, match="output folder holds receipts"):
        charge(begun, out=out)  # rows in memory have no file
    assert begun.spent == 0


def test_a_head_without_its_ledger_stops_a_new_one_beside_it(folder):
    """Under another file name too. A separate budget is let through; another program's .head is no head."""
    # covers L11
    make(folder / "a.db")
    (folder / "a.db").unlink()
    (folder / "other.head").write_text("ref: refs/heads/main\n")
    with pytest.raises(LedgerError, match=r"a\.db\.head has lost its ledger"):
        make(folder / "b.db")
    make(folder / "b.db", separate_budget=True)
    head_path(folder / "a.db").unlink()
    make(folder / "c.db", dataset="another survey")


def test_a_damaged_ledger_nearby_does_not_stop_others(folder, rows):
    # covers L11
    for name in ("x.db", "y.db"):
        (folder / name).write_bytes(b"garbage" * 1_000)
        (folder / f"{name}.head").write_bytes(b"{}")
    charge(make(folder / "a.db"), rows)


def test_two_who_charge_the_same_file_at_once_cannot_both_go_on(folder, rows):
    """Each may slip in one charge between the other's look and its own; after that at least one is refused."""
    # covers L13
    make(folder / "a.db"), second(folder)
    ledgers = [folder / "a.db", folder / "elsewhere" / "b.db"]
    waits = [in_child(lambda path=path: reserve_as(Ledger.open(path), rows)) for path in ledgers]
    assert [wait() for wait in waits].count(0) >= 1
    again = [in_child(lambda path=path: reserve_as(Ledger.open(path), rows, "r2"))() for path in ledgers]
    assert again.count(0) <= 1


def reserve_as(ledger: Ledger, rows: Path, name: str = "r1") -> None:
    charge(ledger, rows, release=name)


BOOK = {
    "survey": {"name": "one", "unit": "row"},
    "columns": {
        "age": {"kind": "integer", "bounds": [0, 99]},
        "sex": {"kind": "categorical", "levels": ["f", "m"], "source": "Sex"},
    },
}
OTHER = {
    "survey": {"name": "two", "unit": "row"},
    "columns": {
        "gender": {"kind": "categorical", "levels": ["m", "f", "x"], "source": "Sex"},
        "years": {"kind": "integer", "bounds": [0, 120], "source": "age"},
    },
}
PEOPLE = [(30, "f"), (30, "f"), (41, "m"), (None, "m"), (52, None), (7, "f")]


def table(people=PEOPLE) -> pa.Table:
    return pa.table({"age": [a for a, _ in people], "Sex": [s for _, s in people]})


def fingerprint(source, book=BOOK) -> str:
    engine = DuckDBEngine(source)
    try:
        return engine.fingerprint(schema_from(book))
    finally:
        engine.close()


def test_a_fingerprint_is_that_of_the_rows_and_of_nothing_else(folder):
    """Any order, any kind of file, names and order of columns and levels: alike. A digest of the bytes is not."""
    # covers L13
    ours = fingerprint(open_frame(table()))
    pq.write_table(table(PEOPLE[::-1]), folder / "rows.parquet")
    text = "".join(f"{'' if s is None else s},{'' if a is None else a}\n" for a, s in PEOPLE)
    (folder / "rows.csv").write_text("Sex,age\n" + text)
    same = [open_path(str(folder / name)) for name in ("rows.parquet", "rows.csv")]
    assert {fingerprint(source) for source in same} == {ours}
    assert fingerprint(open_frame(table()), OTHER) == ours
    assert (folder / "rows.csv").read_bytes() != (
        folder / "rows.parquet"
    ).read_bytes()  # the naive twin's two digests


@pytest.mark.parametrize(
    "people",
    [
        PEOPLE[1:],
        [*PEOPLE, PEOPLE[0]],
        [*PEOPLE, PEOPLE[2], PEOPLE[2]],  # a sum without carry, as exclusive or, would not see two more
        [(31, "f"), *PEOPLE[1:]],
        [(30, None), *PEOPLE[1:]],
        [(30, "m"), (30, "f"), (41, "f"), *PEOPLE[3:]],
        [],
    ],
)
def test_other_rows_have_another_fingerprint(people):
    # covers L13
    assert fingerprint(open_frame(table(PEOPLE))) != fingerprint(
        open_frame(table(people).cast(pa.schema([("age", pa.int64()), ("Sex", pa.string())])))
    )


def test_a_fingerprint_is_kept_under_the_key_of_each_ledger(folder):
    """The same rows in two ledgers: found by comparing, not by looking, and not without the ledger."""
    # covers L13 L18
    rows = fingerprint(open_frame(table()))
    first, other = make(folder / "a.db"), make(folder / "b.db", dataset="second survey")
    first.remember_rows(rows), other.remember_rows(rows), first.remember_rows(rows)
    kept = [
        [each.body["fingerprint"] for each in book.entries() if each.kind == "rows"]
        for book in (first, other)
    ]
    assert len(kept[0]) == len(kept[1]) == 1 and kept[0] != kept[1] and rows not in str(kept)
    assert same_rows(folder / "b.db", rows, []) == [("a.db", "state survey")]
    assert same_rows(folder / "b.db", fingerprint(open_frame(table(PEOPLE[1:]))), []) == []
    receipt = release(first).receipt.as_dict()
    assert not {rows, *kept[0]} & {str(value) for value in receipt.values()}


@pytest.fixture
def house(tmp_path) -> House:
    return House(tmp_path)


def rename(house: House, name: str) -> str:
    """The same rows copied and described under another name, in a plan with a ledger of its own."""
    for old, new in (
        (house.plan, "plan2.toml"),
        (house.codebook, "two.codebook.toml"),
        (house.rows, "copy.csv"),
    ):
        shutil.copy(old, house.folder / new)
    book, plan = house.folder / "two.codebook.toml", house.folder / "plan2.toml"
    book.write_text(book.read_text().replace('"town-2026"', f'"{name}"'))
    text = (
        plan.read_text()
        .replace("town.codebook.toml", "two.codebook.toml")
        .replace("town.ledger.db", "two.db")
    )
    plan.write_text(text.replace('"town-1"', '"two-1"'))
    return str(plan)


def test_the_command_line_refuses_by_file_and_warns_by_fingerprint(house):
    """A renamed data set is refused; a copy of its rows is opened, with a warning, and its release does not know."""
    # covers L13
    house.ledger.unlink(), head_path(house.ledger).unlink()
    assert run("ledger", "open", "--plan", str(house.plan), "--epsilon", "100").status == 0
    plan = rename(house, "two-2026")
    refused = run("ledger", "open", "--plan", plan, "--epsilon", "100")
    assert (
        refused.status == 5 and "--separate-budget" in refused.err and not (house.folder / "two.db").exists()
    )
    copied = ("--data", str(house.folder / "copy.csv"))
    opened = run("ledger", "open", "--plan", plan, "--epsilon", "100", *copied)
    assert (
        opened.status == 0
        and "CONFIDENTIAL" in opened.out
        and 'town.ledger.db, for "town-2026"' in opened.out
    )
    assert 'two.db, for "two-2026"' in house.check().out
    lines = (house.folder / "copy.csv").read_text().splitlines(keepends=True)
    (house.folder / "copy.csv").write_text("".join(lines[:-1]))
    assert "The same rows" not in run("check", plan, *copied).out
    assert house.release().status == 0


def test_no_release_looks_at_a_fingerprint(house, monkeypatch):
    """One that is released says, writes and costs the same whether its rows are known elsewhere or not."""
    # covers L13 R11

    def never(*_given):
        raise AssertionError("a release made a fingerprint")

    monkeypatch.setattr(DuckDBEngine, "fingerprint", never)
    assert house.release().status == 0
    kept = Ledger.open(house.ledger)
    assert [each.kind for each in kept.entries()][:3] == ["open", "source", "reserve"]
    assert "fingerprint" not in "".join(path.read_text() for path in house.out.glob("*.json"))


def test_separate_budgets_are_stated_in_the_published_file(house):
    # covers L13
    house.ledger.unlink(), head_path(house.ledger).unlink()
    opened = run("ledger", "open", "--plan", str(house.plan), "--epsilon", "100", "--separate-budget")
    assert opened.status == 0 and house.release().status == 0
    document = json.loads((house.out / "town-1.json").read_text())
    assert document["receipt"]["separate_budget"] is True
