"""A plan with repairs through every door of the command line."""

import json

import pytest

from tests.badinput.house import House, assert_refused, run

REPAIR = """
[[edit]]
if = "age < 18"
then = { rent = "0" }

[[impute]]
method = "donors"
bound = "hubs"
column = "rent"
match = [{ column = "age", by = "20" }, "sex"]
default = "400"

[[statistic]]
name = "rents paid"
query = { total = "rent" }
epsilon = "2"
interval = { epsilon = "1" }
expect = { value = "30000" }

[[statistic]]
name = "low rents"
query = { count = "*", where = "rent < 350" }
epsilon = "2"
"""
SAID = "missing rent was taken from the nearest donor in age (5 groups) and sex; where donors were lacking, 400 stood in"


@pytest.fixture
def house(tmp_path) -> House:
    made = House(tmp_path)
    made.edit("[[statistic]]", f"{REPAIR}\n[[statistic]]")
    made.edit('epsilon = "20"', 'epsilon = "25"\naccept_large = true')
    made.fill([f"{20 + i % 60},{'' if i % 5 == 0 else 300 + i},{'fm'[i % 2]},1" for i in range(80)])
    return made


def test_preview_says_what_is_filled_the_floor_and_the_assumptions(house):
    """Without rows; the default is stated, and the target says what it assumes."""
    house.rows.unlink()
    before = house.digests()
    seen = run("preview", str(house.plan), "--target", "cv=5%")
    assert (seen.status, seen.err) == (0, "") and f"imputation: {SAID}" in seen.out
    assert "imputation: where age < 18, rent was set to 0, if it was missing" in seen.out
    assert "nobody missing" in seen.out and "assumes that the busiest donor serves 5" in seen.out
    told = json.loads(run("preview", str(house.plan), "--json").out)
    assert told["imputation"][1] == SAID and told["guarantee"]["epsilon"] == "25"
    rents = next(ask for ask in told["statistics"] if ask["name"] == "rents paid")
    assert [each["hub"] for each in rents["assumed"]] == [0, 5, 20, 100] and rents["how"] == "at least"
    assert [part["sensitivity"] is None for part in rents["parts"]] == [True, False]  # the total, its scale
    people = next(ask for ask in told["statistics"] if ask["name"] == "everybody")
    assert people["assumed"] == [] and people["how"] == "exact"
    assert house.digests() == before


def test_rehearse_fills_made_up_rows(house):
    house.rows.unlink()
    seen = run("rehearse", str(house.plan))
    assert (
        (seen.status, seen.err) == (0, "") and seen.out.startswith("REHEARSAL") and "rents paid" in seen.out
    )


def test_check_counts_donors_and_recipients_for_the_curator(house):
    seen = house.check()
    assert (seen.status, seen.err) == (0, "") and seen.out.startswith("CONFIDENTIAL")
    line = next(line for line in seen.out.splitlines() if "rent" in line and "0.25" in line)
    assert line.split("│")[1:6] == [" rent   ", " 16      ", " 16          ", " 16         ", " 64     "]


def test_release_charges_publishes_and_says_what_was_filled(house):
    seen = house.release()
    assert (seen.status, seen.err) == (0, "") and house.spent == 25
    document = json.loads((house.out / "town-1.json").read_text())
    assert document["imputation"][1] == SAID
    answers = {answer["name"]: answer for answer in document["statistics"]}
    assert answers["rents paid"]["estimates"][0]["privacy_low"] is not None
    assert "hidden" in answers["low rents"]["parts"][0]
    line = next(line for line in (house.out / "town-1.csv").read_text().splitlines() if "low rents" in line)
    assert line.startswith("town-1,low rents,,")
    before = house.digests()
    assert house.release().status == 0 and house.digests() == before


def test_two_donors_or_none_make_no_difference_to_what_is_seen(house):  # covers T13 B096
    """Statuses, files and words alike when everybody, nobody or one answered."""
    seen, made = [], []
    for place, rents in enumerate([["400"] * 9, [""] * 9, ["400", *[""] * 8]]):
        house.fill([f"{20 + i},{rent},f,1" for i, rent in enumerate(rents)])
        house.edit(f'id = "town-{place or 1}"', f'id = "town-{place + 1}"')
        seen.append(house.release())
        made.append(sorted(path.suffix for path in house.out.glob(f"town-{place + 1}.*")))
    assert {each.status for each in seen} == {0} and all(each.err == "" for each in seen)
    assert made[0] == made[1] == made[2]


MEDIAN = 'query = { median = "rent", step = "10", by = ["sex"] }'
REFUSED = [
    ('method = "donors"', 'method = "hot deck"', ("impute 'rent'.method", "donor rotation")),
    ('"sex"]', '"rent"]', ("impute.match", "chain")),
    ('"sex"]', '"weight"]', ("impute 'rent'.match[1]", "base weight")),
    ('default = "400"', 'default = "4000"', ("impute 'rent'.default", "bounds")),
    ('bound = "hubs"', 'bound = "published"', ("statistic 'rents paid'.interval.epsilon", "published")),
    (
        'query = { total = "rent" }',
        'query = { total = "age" }',
        ("statistic 'rents paid'.interval.epsilon", "not needed"),
    ),
    ('query = { total = "rent" }', MEDIAN, ("statistic 'rents paid'",)),
]


@pytest.mark.parametrize(("old", "new", "words"), REFUSED)
def test_refusals_are_one_line_before_the_charge(house, old, new, words):  # covers B091
    house.edit(old, new)
    before = house.digests()
    assert_refused(run("preview", str(house.plan)), *words)
    assert_refused(house.release(), *words)
    assert house.digests() == before
