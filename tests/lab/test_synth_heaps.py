"""The synth-heaps experiment: its heaps fit the codebooks, the truth has no error, and heaps bring the floor near it."""

import tomllib
from importlib.resources import files

import pytest

from reticent.lab.experiment import table_of
from reticent.lab.experiments import synth_heaps
from reticent.lab.experiments.synth_heaps import KNOWN, Setting
from reticent.lab.trials.tables import CENSUS, trial
from reticent.schema.load import schema_from
from reticent.synth.domain import domain_of

SMALL = Setting(rows=1_500, judges=("tree",), most=1_000)


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
    assert people.heaps == {} and people.domain() == domain_of(people.schema, people.columns)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != CENSUS])
def test_heaps_fit_the_codebook(name):
    text = files("reticent.lab.trials").joinpath(f"{name}.schema.toml").read_text(encoding="utf-8")
    schema = schema_from(tomllib.loads(text))
    plain, heaped = domain_of(schema), domain_of(schema, heaps=KNOWN[name])
    wider = [a.column for a, b in zip(plain.axes, heaped.axes, strict=True) if b.answers > a.answers]
    assert wider == list(KNOWN[name])
