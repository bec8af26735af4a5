"""Records that come a lot at a time are served as all of them at once are, and no more than a lot comes."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from reticent.engine.donors import circle, filling, levels, lots, runs, windows
from reticent.engine.duckdb import engine as duckdb_engine
from reticent.engine.postgres import rings
from reticent.engine.wants import Aggregate, Key, Rows, Sum, Table, Unserved
from reticent.prepare.repair import CappedDonors, Default, Match, MatchLevel, RegressionLine, Repair, Term
from tests.engine.conformance.cases import as_wholes, book, canonical

ROWS = 1200
WINDOWS = "by windows"


def ladder() -> Repair:
    """Cells side by side, and a partition of its own for another column."""
    near = (Match(column="many"), Match(column="age", starts=(0, 20, 40, 60, 80)))
    levels_ = tuple(MatchLevel(on=near[:some], serve=2 if some else 1) for some in (2, 1, 0))
    sizes = CappedDonors(columns=("size",), levels=levels_, defaults=(Default(code=3),))
    odd = (MatchLevel(on=near), MatchLevel(on=(Match(column="job"),)), MatchLevel())
    thirds = CappedDonors(columns=("thirds",), levels=odd, defaults=(Default(code=2),))
    return Repair(capped=(sizes, thirds), key="k")


def lined() -> Repair:
    """A default that a line makes, and a line that looks at what was filled."""
    first = ladder().capped[0]
    scarce = replace(first, levels=first.levels[:1], defaults=(Default(code=3, looks=("fine",)),))
    fine = Term(column="fine", slope=1 << 22, low=0, high=3_000_000, gap=0)
    size = Term(column="size", slope=1 << 28, low=-200, high=2000, gap=-200)
    lines = (
        RegressionLine(column="size", low=-200, high=2000, base=0, terms=(fine,)),
        RegressionLine(column="thirds", low=0, high=33, base=7 << 32, terms=(size,)),
    )
    return Repair(capped=(scarce,), lines=lines, key="k")


def some_wants() -> list[Aggregate]:
    """Sums of what is filled, where it was filled, and how many were not served."""
    found: list[Aggregate] = [Sum(rows=Rows(), value=name, power=2) for name in ("size", "thirds")]
    found.append(Table(rows=Rows(), keys=(Key(column="thirds", silent=True), Key(column="job", silent=True))))
    return [*found, Unserved(column="size"), Unserved(column="thirds")]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How often records came, and when they did not."""
    said: list[Any] = []
    labelled, there = lots.LotStaging._labelled, lots.LotStaging._serve_there

    def counted(self: Any, found: Any, first: int) -> Any:
        said.append(len(found["cell0"]))
        return labelled(self, found, first)

    def windows(self: Any) -> None:
        said.append(WINDOWS)
        there(self)

    monkeypatch.setattr(lots.LotStaging, "_labelled", counted)
    monkeypatch.setattr(lots.LotStaging, "_serve_there", windows)
    return said


def small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Lots of at most so many records; gifts are sent, or put aside, a few at a time."""
    for module in (circle, filling, lots, runs, duckdb_engine):
        monkeypatch.setattr(module, "LOT", size)
    for module in (levels, lots):
        monkeypatch.setattr(module, "HELD", size // 8)


def test_one_lot_or_many_or_none_give_the_same_bytes(
    remote: Any, local: Any, served: list[Any], monkeypatch: pytest.MonkeyPatch
):
    schema, table = book("pid", 2), as_wholes(Random("lots"), ROWS)
    wants = some_wants()
    once = canonical(local(table).tally(schema, wants, ladder()))
    engine = remote(table)
    assert canonical(engine.tally(schema, wants, ladder())) == once
    (everybody,) = served
    biggest = everybody // 2
    guesses = (0, ROWS) if engine.version.startswith("postgres") else (0,)
    for known in guesses:  # put in order late, or as they are packed
        served.clear()
        small(monkeypatch, biggest)
        monkeypatch.setattr(type(engine), "records_at_most", lambda _, known=known: known)
        assert canonical(engine.tally(schema, wants, ladder())) == once
        assert WINDOWS not in served and max(served) <= biggest
        assert len(served) > 4  # several lots, several times
    assert canonical(local(table).tally(schema, wants, ladder())) == once
    served.clear()
    small(monkeypatch, 1)  # no cell is as small, so no record comes
    assert canonical(engine.tally(schema, wants, ladder())) == once
    assert served == [WINDOWS]


@pytest.mark.parametrize("name", ["MOST", "MOST_LEFT"])
def test_what_would_be_too_much_to_hold_is_served_by_windows(
    remote: Any, local: Any, name: str, served: list[Any], monkeypatch: pytest.MonkeyPatch
):
    schema, table = book(), as_wholes(Random("left"), ROWS)
    wants = some_wants()
    once = canonical(local(table).tally(schema, wants, ladder()))
    small(monkeypatch, ROWS // 3)
    monkeypatch.setattr(lots, name, 0)
    assert canonical(remote(table).tally(schema, wants, ladder())) == once
    assert served.count(WINDOWS) == 1


@pytest.mark.parametrize("size", [1, ROWS])
def test_lines_follow_donors(
    remote: Any, local: Any, size: int, served: list[Any], monkeypatch: pytest.MonkeyPatch
):
    """Whether records come or are served by windows, a line fills what donors leave, and what it looks at was filled before."""
    schema, table = book(), as_wholes(Random("lined"), ROWS)
    wants = some_wants()[:3]
    once = canonical(local(table).tally(schema, wants, lined()))
    small(monkeypatch, size)
    assert canonical(remote(table).tally(schema, wants, lined())) == once
    assert (WINDOWS in served) is (size == 1)


@pytest.mark.parametrize("size", [1, ROWS // 2, ROWS])
def test_ties_are_settled_alike_everywhere(
    remote: Any, local: Any, size: int, monkeypatch: pytest.MonkeyPatch
):
    """With one place for everybody labels alone put records in order: by windows, in lots, and in local rows."""

    def one_place(key: str, count: int) -> list[int]:
        return circle.coefficients(key, count) if key.endswith("|spots") else [5, 0, 0, 0]

    for module in (levels, windows, rings):
        monkeypatch.setattr(module, "coefficients", one_place)
    schema, table = book("pid", 2), as_wholes(Random("ties"), ROWS)
    wants = some_wants()
    once = canonical(local(table).tally(schema, wants, ladder()))
    small(monkeypatch, size)
    for engine in (remote(table), local(table)):
        assert canonical(engine.tally(schema, wants, ladder())) == once
