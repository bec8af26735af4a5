"""The synth-heaps experiment: its heaps fit the codebooks, the truth has no error, and heaps bring the floor near it."""

import json
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from reticent.lab.experiments import synth_heaps
from reticent.lab.experiments.synth_heaps import KNOWN
from reticent.lab.run.experiment import table_of
from reticent.lab.trials.tables import CENSUS, trial
from reticent.lab.trials.teaching import TrialSize
from reticent.schema.codebook import schema_from
from reticent.synth.domain import domain_of

DOCS = Path(__file__).parents[2] / "docs"
SMALL = TrialSize(rows=1_500, judges=("tree",), most=1_000)


@pytest.fixture(scope="module")
def rows():
    """The pieces without a synthesizer on 1,500 simulated people, once; those with one are fitted in tests of their own."""
    made = synth_heaps.experiment((CENSUS,), setting=SMALL)
    runs = {
        index: made.run(index, made.seed_of(index, 1)) for index in made.wanted(1, ["truth,decode-floor"])
    }
    return {(row["method"], row["bins"], row["query"]): row for row in synth_heaps.told(table_of(runs))}


def test_every_piece_is_measured_alike(rows):
    queries = {*(f"mean {name}" for name in KNOWN[CENSUS]), "tvd2", "f1"}
    ways = [way for way in synth_heaps.WAYS if way[0] != synth_heaps.AIM]
    assert set(rows) == {(*way, query) for way in ways for query in queries}


def test_the_truth_has_no_error_and_equal_bins_have_one(rows):
    """A third earns nothing and is spread over 31,250 dollars: the mean wage is off by thousands. Heaps take most of that away."""
    for name in KNOWN[CENSUS]:
        assert rows["truth", "equal", f"mean {name}"]["error"] == 0
    floor = {way: rows["decode-floor", way, "mean wage"]["error"] for way in ("equal", "heaps")}
    assert floor["equal"] > 2_000 and floor["heaps"] < 0.5 * floor["equal"]


def test_heaps_change_how_rows_are_made_and_not_how_they_are_judged(rows):
    """The distance is over equal bins, of which a round trip keeps every one."""
    assert rows["decode-floor", "heaps", "tvd2"]["estimate"] == 0
    assert rows["decode-floor", "equal", "tvd2"]["estimate"] == 0
    people = trial(CENSUS, rows=50)
    assert people.point_masses == {} and people.domain() == domain_of(people.schema, people.columns)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != CENSUS])
def test_heaps_fit_the_codebook(name):
    text = files("reticent.lab.trials").joinpath(f"{name}.codebook.toml").read_text(encoding="utf-8")
    schema = schema_from(tomllib.loads(text))
    plain, heaped = domain_of(schema), domain_of(schema, point_masses=KNOWN[name])
    wider = [a.column for a, b in zip(plain.axes, heaped.axes, strict=True) if b.answers > a.answers]
    assert wider == list(KNOWN[name])


def measured() -> dict[tuple[str, ...], float]:
    """The means behind the page, by table, method, bins and what is measured."""
    rows = json.loads((DOCS / "lab" / "synth-heaps.json").read_text())["rows"]
    return {
        tuple(row[key] for key in ("dataset", "method", "bins", "query")): row["estimate"] for row in rows
    }


def page_line(words: str, found: dict[tuple[str, ...], float], *way: str) -> str:
    """What the page must print of one way."""
    gain, loss, hours = (found["adult", *way, f"mean {name}"] for name in KNOWN["adult"])
    far, f1 = found["adult", *way, "tvd2"], found["adult", *way, "f1"]
    short = [f"{far:.4f}".removeprefix("0"), f"{f1:.3f}".removeprefix("0")]
    return f"| {words} | {gain:,.0f} | {loss:.1f} | {hours:.2f} | {' | '.join(short)} |"


def test_the_page_prints_the_numbers_that_were_measured():
    """Every line of its table, whole; and what it says of heaps is so."""
    found, page = measured(), (DOCS / "howto" / "synthesis-choice.md").read_text()
    names = {"decode-floor": "`decode-floor`", "aim": "`aim`"}
    wanted = [page_line("the rows themselves", found, "truth", "equal")]
    wanted += [
        page_line(f"{said}, {words}", found, method, way)
        for method, said in names.items()
        for way, words in (("equal", "equal bins"), ("heaps", "heaps"))
    ]
    assert not set(wanted) - set(page.splitlines())
    page = " ".join(page.split())  # sentences may break anywhere
    truth, equal, heaped = (
        found["adult", *way, "f1"] for way in (("truth", "equal"), ("aim", "equal"), ("aim", "heaps"))
    )
    assert heaped - equal > (truth - equal) / 2
    off = {
        way: abs(found["census", "aim", way, "mean wage"] - found["census", "truth", "equal", "mean wage"])
        for way in ("equal", "heaps")
    }
    assert f"off by {off['heaps']:.0f} dollars" in page and f"off by {off['equal']:,.0f}." in page
    far = {name: found[name, "aim", "heaps", "tvd2"] / found[name, "aim", "equal", "tvd2"] for name in KNOWN}
    assert f"raise the distance by {100 * far['adult'] - 100:.0f} %" in page
    assert f"the distance rises by {100 * far[CENSUS] - 100:.0f} %" in page
