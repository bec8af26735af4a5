"""Synthetic tables at the command line: no exact fact beside the noisy ones, and no word about any row."""

import csv
import hashlib
import json
import logging
import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from reticent.privacy.ledger import Ledger
from reticent.release.release import Release
from reticent.report.page import page
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.marginals import privbayes, weighted
from reticent.synth.marginals import privbayes as bayes_search
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes
from tests.attacks.synth_worlds import SMALL, Records
from tests.attacks.test_charges import telling
from tests.badinput.house import CODEBOOK, GOOD, HEADER, House, Seen, rows, run
from tests.badinput.oddrows import LINES
from tests.badinput.test_rows import CELLS, line_with
from tests.synth.standins import FrozenSynthNoise
from tests.tables import ADD, REPLACE

RUNS = 8
COUNT = 81
HEAD = """
[survey]
source = "rows.csv"
codebook = "town.codebook.toml"
ledger = "town.ledger.db"
[release]
id = "town-1"
[protect]
change = "one respondent's answers replaced"
epsilon = "20"
"""
SECTIONS = (
    ("independent", "impute-model"),
    ("privbayes", "complete"),
    ("privbayes-printed", "impute-random"),
    ("mst", "category"),
    ("aim", "available"),
)
PLAN = HEAD + "".join(
    f'[[synth]]\nname = "{method} {holes}"\nmethod = "{method}"\nmissing = "{holes}"\nrows = 40\nepsilon = "0.1"\nbins = 4\n'
    'columns = ["age", "sex"]\n'
    for method, holes in SECTIONS
)
SURVEY = CODEBOOK.replace('unit = "row"', f'unit = "row"\nsample_size = {COUNT}')
LINES_OF_D = [line if i % 7 else ",," + line.split(",", 2)[2] for i, line in enumerate(rows(COUNT))]


class Town(House):
    """The same house, with synthetic tables of a public number of rows."""

    def open_ledger(self, budget: str = "1000", change: str = ADD) -> None:
        change = REPLACE if REPLACE in self.plan.read_text() else ADD
        Ledger.create(self.ledger, dataset="town-2026", change=change, unit="epsilon", budget=budget)

    def synth(self, data: bytes) -> Seen:
        self.rows.write_bytes(data)
        seen = run("synth", str(self.plan))
        return Seen(seen.status, seen.out.replace(str(self.folder), "HERE"), seen.err)


def lines(some: Sequence[str]) -> bytes:
    return "\n".join([HEADER, *some, ""]).encode()


def facts(town: Town, seen: Seen) -> dict[str, Any]:
    """All that a release leaves for others. Rows drawn are one place each: their packed text."""
    document = json.loads((town.out / "town-1.json").read_bytes())
    files = {path.name: _file(path) for path in sorted(town.out.iterdir())}
    return {"said": [seen.status, seen.out, seen.err], "json": document, "files": files}


def _file(path: Path) -> dict[str, Any]:
    held = {"bytes": path.stat().st_size, "mode": path.stat().st_mode}
    if path.suffix == ".parquet":
        told = pq.read_metadata(path)
        return {
            **held,
            "rows": told.num_rows,
            "groups": told.num_row_groups,
            "schema": str(told.schema.to_arrow_schema()),
        }
    text = path.read_text().splitlines()
    return {**held, "lines": len(text), "header": text[0]} if path.suffix == ".csv" else held


# covers T12 T22 T27 R11
def test_no_place_of_a_release_tells_neighbours_apart_for_certain(folder: Path) -> None:
    """8 releases of each, all methods: a place constant on both and different would be exact.

    The only numbers of the rows are five noisy sizes, with no atom above 0.1, the drawn rows as packed, and sizes of files;
    that one is constant eight times on both sides and different comes by chance below 1e-12.
    """
    other = [*LINES_OF_D[:-1], "canarybird,,canarybird,canarybird"]
    sides: list[list[dict[str, Any]]] = [[], []]
    for side, data in enumerate((LINES_OF_D, other)):
        for place in range(RUNS):
            at = folder / f"{side}{place}"
            at.mkdir()
            town = Town(at, plan=PLAN, codebook=SURVEY)
            sides[side].append(facts(town, town.synth(lines(data))))
    assert sides[0][0]["said"][0] == 0 and sides[0][0]["said"][2] == ""
    assert telling(*sides) == []
    assert "canarybird" not in json.dumps(sides)
    assert all(each["json"]["synth"][3]["guarantee"]["epsilon"] == "0.1" for side in sides for each in side)

    def naive(side: Sequence[dict[str, Any]], data: Sequence[str]) -> list[dict[str, Any]]:
        """The twin says how many rows are complete, which words were met, and of which rows the model was made."""
        cells = list(csv.reader(data))
        complete = sum(all(row) for row in cells)
        words = sorted({row[2] for row in cells})
        return [
            {**each, "complete": complete, "words": words, "of": hashlib.sha256(lines(data)).hexdigest()}
            for each in side
        ]

    found = telling(naive(sides[0], LINES_OF_D), naive(sides[1], other))
    assert {"/complete", "/of"} <= set(found) and any(place.startswith("/words") for place in found)


def odd_files() -> dict[str, bytes]:
    """A good file, and files with all odd cells of the catalogue, all odd lines, no row at all, and nothing but holes."""
    good = rows(80)
    cells = [line_with(odd) for odd in CELLS]
    return {
        "good": lines([*good, GOOD]),
        "cells": lines([*good[:40], *cells, *good[40:]]),
        "lines": b"\n".join([HEADER.encode(), *(text for _, text, _ in LINES), *map(str.encode, good), b""]),
        "none": lines([]),
        "silent": lines([",,,"] * 5),
    }


def visible(town: Town, seen: Seen) -> str:
    """All but numbers of the rows: the noisy sizes, the rows drawn, the sizes of files."""
    made = facts(town, seen)
    made["json"].pop("receipt")
    for table in made["json"]["synth"]:
        table["tables"], table["respondents"] = len(table["tables"]), None
        table.pop("measured", None)  # noisy lists, and which were chosen with noise
    for file in made["files"].values():
        file.pop("bytes")
    return json.dumps([made, str(town.spent)])


# covers T13 T14 T27 R01 R10 B001-B055 B058-B065 B068 B069
def test_odd_rows_are_released_like_good_ones(folder: Path, caplog) -> None:
    """120 odd cells and lines, no rows, only holes: status, streams, files, words, charge and log are those of a good file."""
    plan = PLAN.replace(REPLACE, ADD)
    head, *sections = plan.split("[[synth]]")
    plan = "[[synth]]".join([head, *(part for part in sections if "printed" not in part)])
    seen, logged = {}, {}
    for name, data in odd_files().items():
        (folder / name).mkdir()
        town = Town(folder / name, plan=plan)
        with caplog.at_level(logging.DEBUG):
            caplog.clear()
            seen[name] = visible(town, town.synth(data))
            logged[name] = [record.getMessage() for record in caplog.records if "reticent" in record.name]
    assert len(set(seen.values())) == 1
    assert all(each == logged["good"] for each in logged.values())
    assert "DROP TABLE" not in "".join(seen.values()) and "5000" not in seen["cells"]


# covers T28
def test_words_of_a_plan_come_out_harmless(folder: Path) -> None:
    """Markup in the name of a table, formulas in levels: escaped in the page, defused in the file; control characters refused."""
    name = "<script>alert(1)</script>"
    plan = HEAD + PLAN.removeprefix(HEAD).split("[[synth]]")[1].join(["[[synth]]", ""]).replace(
        "independent impute-model", name
    )
    plan = plan.replace('epsilon = "0.1"', 'epsilon = "5"')
    book = SURVEY.replace('["f", "m"]', '["=cmd", "<b>m</b>"]')
    town = Town(folder, plan=plan, codebook=book)
    assert (
        town.synth(
            lines([f"{20 + i % 60},1,{'=cmd' if i % 2 else '<b>m</b>'},1" for i in range(COUNT)])
        ).status
        == 0
    )
    drawn = (town.out / "town-1.1.synth.csv").read_text()
    assert "'=cmd" in drawn and not re.search(r"(^|,)=cmd", drawn, re.MULTILINE)
    report = page(Release.from_bytes((town.out / "town-1.json").read_bytes())).decode()
    assert "&lt;script&gt;alert(1)" in report and name not in report and "<b>m</b>" not in report
    town.plan.write_text(plan.replace(name, "\\u001b[2J"))
    refused = town.synth(lines(rows(COUNT)))
    assert refused.status == 2 and "control character" in refused.err and "\x1b" not in refused.err


class Loud(FrozenSynthNoise):
    """A hundred thousand on top of every count, so that no noisy number looks like a true one."""

    def _give(self, met: Any) -> tuple[int, ...]:
        given = super()._give(met)
        return given if met.kind == "choose" else tuple(x + 100_000 * (1 + met.sensitivity) for x in given)


def test_no_repr_shows_a_count(monkeypatch) -> None:
    """3,571 rows in one cell and 2,003 in another: of a fit in progress no repr says either number, nor their sum."""
    kept: list[Any] = []

    class MarginalFit(weighted.MarginalFit):
        def __post_init__(self) -> None:
            super().__post_init__()
            kept.append(self)

    class Search(bayes_search.Search):
        def __post_init__(self) -> None:
            super().__post_init__()
            kept.append(self)

    monkeypatch.setattr(weighted, "MarginalFit", MarginalFit)
    monkeypatch.setattr(privbayes, "Search", Search)
    cells = np.repeat([[0, 0], [1, 1]], [3571, 2003], axis=0)
    here = Records(cells, (0,) * len(cells), SMALL)
    for method in (MST(iterations=2), PrivBayes()):
        network = method.fit(
            FitTask(
                here,
                SMALL,
                MissingMethod.AVAILABLE,
                Spend(epsilon=Fraction(1)),
                noise=Loud(),
                step=kept.append,  # type: ignore[arg-type]
            )
        )
        kept.append(network)
    told = repr(kept)
    assert len(kept) > 6 and not re.search(r"3571|2003|5574", told)
    assert "3571" in repr([kept[0].held]).replace(" ", "")  # the twin: the tables themselves
