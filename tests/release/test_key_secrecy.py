"""A promise of a piece that rests on the ledger's key says so wherever it is printed."""

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from unittest.mock import patch
from zipfile import ZipFile

import pytest

from reticent.privacy.claim import while_secret
from reticent.privacy.sampling import KEY, KEY_GROUND
from reticent.release.release import Release
from reticent.report.page import page
from reticent.report.sheet import sheet
from tests.badinput.house import CODEBOOK, House, run

REPLACE, ADD = "one respondent's answers replaced", "one respondent added or removed"
SENTENCE = while_secret(KEY)
GROUND = {"theorem": KEY_GROUND[0], "proof": KEY_GROUND[1]}
PIECE = """
[survey]
source = "rows.csv"
codebook = "town.codebook.toml"
ledger = "town.ledger.db"
[release]
id = "piece-1"
[protect]
change = "CHANGE"
epsilon = "5"
[partition]
name = "analysts"
SECTION
[[statistic]]
name = "women"
query = { count = "*", where = "sex = 'f'" }
epsilon = "1"
[[cells]]
name = "age by sex"
cell = "sex"
y = "age"
estimate = { mean = true }
method = "smooth"
epsilon = "1"
count_epsilon = "1"
[[synth]]
name = "people"
method = "independent"
columns = ["sex", "age"]
rows = 20
epsilon = "1"
"""
BY_LOT = "pieces = 4\npiece = 2"
ONE_BY_ONE = f'{BY_LOT}\ndraw = "each on their own"'


def office(folder, section: str, change: str) -> House:
    plan = PIECE.replace("SECTION", section).replace("CHANGE", change)
    book = (
        CODEBOOK.replace('unit = "row"', 'unit = "row"\nsample_size = 80') if change == REPLACE else CODEBOOK
    )
    house = House(folder, plan=plan, codebook=book)
    if change == REPLACE:
        for each in folder.glob("town.ledger.db*"):
            each.unlink()
        house.open_ledger(change=REPLACE)
    return house


def claims(told: Any) -> Iterator[dict[str, Any]]:
    """Every claim in a document about the data held, wherever it stands."""
    if isinstance(told, dict):
        if "measure" in told and told.get("about") == "the incomplete data held":
            yield told
        for each in told.values():
            yield from claims(each)
    elif isinstance(told, list):
        for each in told:
            yield from claims(each)


def printed(house: House) -> dict[str, str]:
    """Every place in which the promise of a release is printed."""
    seen = {"preview": run("preview", str(house.plan)).out, "release": house.release().out}
    seen["ledger spent"] = run("ledger", "spent", str(house.ledger)).out
    made = Release.from_bytes((house.out / "piece-1.json").read_bytes())
    book = ZipFile(BytesIO(sheet(made)))
    seen["workbook"] = "".join(book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))
    seen["csv"] = (house.out / "piece-1.csv").read_text(encoding="utf-8")
    return {**seen, "page": page(made).decode(), "json": made.to_bytes().decode()}


@pytest.mark.parametrize("section", [BY_LOT, ONE_BY_ONE])
def test_the_key_is_named_wherever_the_promise_is_printed(section, tmp_path):
    """Whole, asks, tables and synthetic rows; in words and as a ground; but for the key itself."""
    house = office(tmp_path, section, REPLACE)
    seen = printed(house)
    for place, text in seen.items():
        words = (
            "while this ledger's key stays secret" if place == "ledger spent" else SENTENCE.removeprefix(", ")
        )
        assert words in text, place
    told = list(claims(json.loads(seen["json"])))
    assert len(told) == 4 and all(each["words"].endswith(SENTENCE) for each in told)
    assert all(GROUND in each["rests_on"] and each["secret"] == KEY for each in told)
    foreseen = json.loads(run("preview", str(house.plan), "--json").out)
    assert foreseen["guarantee"]["secret"] == KEY and GROUND in foreseen["guarantee"]["rests_on"]
    assert all(foreseen[kind][0]["guarantee"].endswith(SENTENCE) for kind in ("cells", "synth"))
    sentence = foreseen["piece"]["secret"]
    assert "one replaced answer" in sentence
    assert (
        all(sentence in seen[place] for place in ("preview", "json"))
        and "one replaced answer" in seen["page"]
    )


def test_a_release_that_forgets_the_key_would_be_noticed(tmp_path):
    """The naive twin: the whole's promise names it in a preview, and the document's claims do not."""
    house = office(tmp_path, BY_LOT, REPLACE)
    with patch("reticent.release.document.with_grounds", lambda told, plan: told):
        seen = house.release()
    told = json.loads((house.out / "piece-1.json").read_text(encoding="utf-8"))
    assert seen.status == 0 and not any(each["words"].endswith(SENTENCE) for each in claims(told))


def test_nothing_is_said_of_a_key_where_no_claim_rests_on_it(tmp_path):
    """One by one against adding or removing: given the lots, one respondent is in one piece. The frame's claim is
    another matter, and has its own words. The naive twin, which always says it, would be seen here."""
    house = office(tmp_path, ONE_BY_ONE, ADD)
    seen = printed(house)
    assert all(SENTENCE not in text for text in seen.values())
    assert "the most counts\n" in seen["ledger spent"]
    assert "nobody knows who is in which piece" in seen["preview"]
