"""Public margins: rows agree with them, promises and direct answers do not change, and what does not fit is refused."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.plan.plan import read_plan
from reticent.synth.base import FitTask, MissingMethod, PublicMargin, Spend
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.public import read_margins
from tests.noise.seeded import SeededBits
from tests.release.synthetic import plan
from tests.synth.standins import ArrayCounts, QuickSynthNoise, toy
from tests.tables import synths_of

SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
METHODS = (AIM(), MST(iterations=100), AllPairs(residuals=False))
CENSUS = np.array([0.1, 0.2, 0.7])


def village(rows: int = 2_000) -> ArrayCounts:
    """Three columns; the first has its levels about equally often, and the second follows it."""
    dice, domain = np.random.default_rng(3), toy([3, 2, 4])
    first = dice.integers(0, 3, rows)
    second = (dice.random(rows) < 0.2 + 0.3 * first).astype(int)
    cells = np.stack([first, second, dice.integers(0, 4, rows)], axis=1)
    silent = dice.random(cells.shape) < 0.1
    return ArrayCounts(np.where(silent, [axis.silence for axis in domain.axes], cells), domain)


def margin(place: int, shares: Any) -> PublicMargin:
    """A margin of one column with a cell for missing answers, which has no share."""
    return PublicMargin(places=(place,), shares=np.append(shares, 0.0))


def fitted(method: Any, public: tuple[PublicMargin, ...], missing: MissingMethod) -> Any:
    counts = village()
    noise = QuickSynthNoise(seed=4)
    task = FitTask(counts, counts.domain, missing, SPEND, noise=noise, step=lambda _: None, public=public)
    return method.fit(task)


@pytest.mark.parametrize("missing", [MissingMethod.WEIGHTED, MissingMethod.AVAILABLE])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_rows_agree_with_a_census_and_promise_the_same(method: Any, missing: MissingMethod):
    """A third of the rows has each level; of the census a tenth, a fifth and seven tenths. What follows it stays as it was."""
    plain, adjusted = (fitted(method, public, missing) for public in ((), (margin(0, CENSUS),)))
    rows = adjusted.draw(20_000, SeededBits(1))
    shares = np.bincount(rows[:, 0], minlength=3)[:3] / len(rows)
    assert shares == pytest.approx(CENSUS, abs=0.01)
    before = plain.draw(20_000, SeededBits(1))
    assert np.bincount(before[:, 0], minlength=3)[:3] / len(before) == pytest.approx([1 / 3] * 3, abs=0.06)
    for each in (before, rows):
        at_last = each[each[:, 0] == 2, 1].mean()
        assert at_last == pytest.approx(0.8, abs=0.12)
    assert adjusted.claim == plain.claim
    assert adjusted.lists.columns[0].cells.sum() == pytest.approx(2_000, abs=400)


def test_lists_come_from_rows_alone():
    """All pairs are measured whatever is public, with the same noise: direct answers are the same."""
    method = AllPairs(residuals=False)
    plain, adjusted = (fitted(method, p, MissingMethod.WEIGHTED).lists for p in ((), (margin(0, CENSUS),)))
    for one, other in zip(plain.lists, adjusted.lists, strict=True):
        assert np.array_equal(one.cells, other.cells)


def test_a_margin_of_two_columns_is_in_the_model():
    shares = np.zeros((4, 3))
    shares[:3, :2] = [[0.3, 0.0], [0.0, 0.3], [0.2, 0.2]]
    network = fitted(AIM(), (PublicMargin(places=(0, 1), shares=shares),), MissingMethod.WEIGHTED)
    rows = network.draw(20_000, SeededBits(1))
    found = np.zeros((3, 2))
    np.add.at(found, (rows[:, 0], rows[:, 1]), 1 / len(rows))
    assert found == pytest.approx(shares[:3, :2], abs=0.02)


def read(*sections: dict[str, Any]) -> tuple[PublicMargin, ...]:
    domain = synths_of(plan({"method": "mst"}))[0].domain
    return read_margins(list(sections), domain)


def test_levels_numbers_ranges_and_those_not_asked():
    """Ages in 16 bins of 6 or 7 years: a range is spread by the years that it shares with each."""
    (ages,) = read({"columns": ["age"], "lines": [["0..49", "10"], ["50..99", "30"], ["99", "0"]]})
    assert ages.shares.sum() == pytest.approx(1) and ages.shares[:8].sum() == pytest.approx(0.25, abs=0.01)
    (jobs,) = read(
        {"columns": ["job", "sex"], "lines": [["yes", "f", "2"], ["", "f", "1"], ["no, never", "=1+1", "1"]]}
    )
    sexes, work = jobs.shares.sum(axis=1), jobs.shares.sum(axis=0)
    assert jobs.places == (1, 2) and sexes[:2] == pytest.approx([0.75, 0.25])
    assert work == pytest.approx([0.5, 0.25, 0.0, 0.25])  # yes, no, silent, not asked


SEX = {"columns": ["sex"], "lines": [["f", "1"], ["=1+1", "1"]]}
WRONG: dict[str, tuple[Any, str]] = {
    "a file": ("census.csv", "names a file, which a plan file reads"),
    "unknown column": ([{**SEX, "columns": ["height"]}], "has a header that is no column"),
    "three columns": ([{**SEX, "columns": ["sex", "age", "job"]}], "one column or two"),
    "column twice": ([{"columns": ["sex", "sex"], "lines": [["f", "f", "1"]]}], "names sex twice"),
    "unknown level": ([{**SEX, "lines": [["x", "1"]]}], "line 2 has no level of sex"),
    "no number": ([{**SEX, "lines": [["f", "many"]]}], "line 2 needs a count from 0 up"),
    "negative": ([{**SEX, "lines": [["f", "-1"]]}], "line 2 needs a count from 0 up"),
    "nobody": ([{**SEX, "lines": [["f", "0"]]}], "counts nobody"),
    "short line": ([{**SEX, "lines": [["f"]]}], "line 2 has 1 entries for 1 columns and a count"),
    "not asked of all": ([{"columns": ["job"], "lines": [["yes", "1"]]}], "job is not asked of everybody"),
    "asked of all": ([{**SEX, "lines": [["", "1"]]}], "sex is asked of everybody"),
    "outside": ([{"columns": ["age"], "lines": [["100", "1"]]}], "line 2 has no value of age"),
    "backwards": ([{"columns": ["age"], "lines": [["20..10", "1"]]}], "line 2 has no value of age"),
    "the same twice": ([SEX, SEX], "two margins of the same columns"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_does_not_fit_is_refused_at_its_place(wrong: str):
    raw, words = WRONG[wrong]
    with pytest.raises(PlanError, match=rf"synth\[0\]\.public: .*{words}"):
        plan({"method": "mst", "public": raw})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"method": "privbayes"}, "privbayes fits no tables; use aim, mst or pairs"),
        ({"method": "mst", "missing": "category"}, "says nothing of missing answers"),
        (
            {"method": "pairs", "inference": True, "copies": 5},
            "bootstrap copies are surveys that nobody adjusted",
        ),
    ],
)
def test_what_cannot_take_margins_says_so(more: dict[str, Any], words: str):
    section = {key: value for key, value in {"public": [SEX], **more}.items() if value is not None}
    with pytest.raises(PlanError, match=rf"synth\[0\]\.public: .*{words}"):
        plan(section)


PLAN = """
[survey]
source = "rows.csv"
codebook = "book.toml"
ledger = "ledger.db"

[release]
id = "r1"

[protect]
change = "one respondent added or removed"
epsilon = "1"

[[synth]]
name = "people"
method = "mst"
rows = 100
epsilon = "1"
public = "{file}"
"""
BOOK = """
[survey]
name = "v"
unit = "row"

[columns.sex]
kind = "categorical"
levels = ["f", "m"]

[columns.age]
kind = "integer"
bounds = [0, 99]
"""


def test_a_plan_names_its_file_and_tells_what_of_it_leaves(tmp_path):
    (tmp_path / "book.toml").write_text(BOOK)
    (tmp_path / "rows.csv").write_text("sex,age\nf,3\n")
    (tmp_path / "census.csv").write_text("sex,count\nf,512\nm,488\n")
    (tmp_path / "plan.toml").write_text(PLAN.format(file="census.csv"))
    made = read_plan(tmp_path / "plan.toml")
    (synth,) = synths_of(made)
    assert synth.public[0].shares[:2] == pytest.approx([0.512, 0.488])
    assert "rows agree with public margins of sex" in synth.words()
    assert [each.published for each in made.files if each.name == "census.csv"] == [("sex",)]
    (tmp_path / "census.csv").write_text("sex,count\nf,500\nm,500\n")
    assert read_plan(tmp_path / "plan.toml").digest != made.digest
    (tmp_path / "plan.toml").write_text(PLAN.format(file="rows.csv"))
    with pytest.raises(PlanError, match="the rows"):
        read_plan(tmp_path / "plan.toml")
    (tmp_path / "census.csv").write_text("sex\nf\n")
    (tmp_path / "plan.toml").write_text(PLAN.format(file="census.csv"))
    with pytest.raises(PlanError, match="needs a line of headers"):
        read_plan(tmp_path / "plan.toml")
