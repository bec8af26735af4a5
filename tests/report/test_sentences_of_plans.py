"""Each sentence that once stood in the wrong report, held against rehearsals of plans of every kind."""

import io
import zipfile
from typing import Any

import pytest

from reticent.engine.open import open_engine
from reticent.plan.plan import Plan
from reticent.release.release import Release
from reticent.release.run import run_plan
from reticent.release.survey import Survey, simulate
from reticent.report import words
from reticent.report.charts import specs
from reticent.report.methodology import methodology
from reticent.report.numbers import variation
from reticent.report.page import page
from reticent.report.sheet import sheet
from tests.report.test_true_sentences import BOOK, CELLS, COUNT, DONOR, MODEL

MEAN = {"name": "mean pay", "query": {"mean": "pay", "centre": "500"}, "epsilon": "0.5"}
WEIGHED = {"name": "weighed", "query": {"count": "*", "weight": "poststratified"}, "epsilon": "0.5"}
SYNTH = [{"name": "rows", "columns": ["age", "area"], "rows": 50, "method": "mst", "epsilon": "1"}]
KNOWN = {
    "by": [{"column": "area", "missing": "1"}],
    "totals": [{"area": level, "total": "5000"} for level in ("1", "2")],
}
FACTORS = {**KNOWN, "factors": {"epsilon": "0.2"}}
WEIGHED_PAY = {"name": "weighed pay", "query": {"mean": "pay", "weight": "poststratified"}, "epsilon": "1"}
RICH = {"name": "rich", "query": {"proportion": "pay >= 500", "by": ["area"]}, "epsilon": "1"}
MIDDLE = {
    "name": "middle",
    "query": {"median": "pay", "step": "50"},
    "epsilon": "1",
    "interval": {"epsilon": "1"},
}
NEAREST = [{**DONOR[0], "bound": "hubs"}]
DECLARED = {"design_effect": "1.5"}
SLOPES = [
    {
        **CELLS[0],
        "name": "pay on age by area",
        "x": "age",
        "estimate": {"slope": True},
        "method": "observed",
        "accept_observed": True,
        "count_epsilon": "0.5",
        "error_epsilon": "0.5",
    }
]
LINE = [{"name": "slope", "y": "pay", "x": ["age"], "epsilon": "1"}]
TABLES = [{"name": "areas", "margins": [["area"]], "epsilon": "0.5"}]
PLANS: dict[str, dict[str, Any]] = {
    "plain": {"statistics": [*COUNT, MEAN]},
    "weights": {"statistics": [*COUNT, WEIGHED], "weight": KNOWN},
    "factors": {"statistics": [*COUNT, WEIGHED], "weight": FACTORS},
    "model": {"statistics": [*COUNT, MEAN], "impute": MODEL},
    "donors": {"statistics": [*COUNT, MEAN], "impute": DONOR},
    "cells": {"statistics": COUNT, "cells": CELLS},
    "cells and model": {"statistics": COUNT, "cells": CELLS, "impute": MODEL},
    "cells and donors": {"statistics": COUNT, "cells": CELLS, "impute": DONOR},
    "synth": {"synth": SYNTH},
    "tables and line": {"tables": TABLES, "regression": LINE},
    "nearest donors": {"statistics": [*COUNT, MEAN], "impute": NEAREST},
    "factors and donors": {"statistics": [WEIGHED_PAY], "weight": FACTORS, "impute": DONOR},
    "model and design": {"statistics": [*COUNT, RICH, MIDDLE], "impute": MODEL, "design": DECLARED},
    "observed cells": {"cells": SLOPES},
    "line and donors": {"regression": LINE, "impute": DONOR},
}
FILLED = {name for name, sections in PLANS.items() if "impute" in sections}


def of(**sections: Any) -> tuple[Plan, Release]:
    plan = Survey("rows.csv", codebook=BOOK).plan("r", epsilon="10", expect={"rows": 500}, **sections)
    engine = open_engine(simulate(plan.schema, 500))
    try:
        told = run_plan(plan, engine, None).to_document(plan, receipt=None, engine="none")
    finally:
        engine.close()
    return plan, Release(told)


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    return {name: of(**sections)[1] for name, sections in PLANS.items()}


def workbook(release: Release) -> str:
    with zipfile.ZipFile(io.BytesIO(sheet(release))) as book:
        return book.read("xl/sharedStrings.xml").decode()


def everything(release: Release) -> str:
    """What a reader reads: page, workbook, methodology and every description."""
    return "\n".join([page(release).decode(), workbook(release), methodology(release.document)])


@pytest.mark.parametrize("name", PLANS)
def test_donors_are_spoken_of_where_there_are_donors(name: str, releases: dict[str, Release]) -> None:
    """(a) And weights of weights, lines of lines."""
    text = everything(releases[name])
    assert ("may now stand in several rows" in text) == ("donors" in name)
    assert ("no answer reaches another respondent" in text) == ("model" in name)
    assert ("all who share their bin" in text) == (name == "weights")
    assert ("a factor that was released with noise" in text) == name.startswith("factors")


@pytest.mark.parametrize("name", PLANS)
def test_an_estimate_without_an_interval_says_what_makes_its_noise_confidential(
    name: str, releases: dict[str, Release]
) -> None:
    """(a) Bins of weights, or donors: each only where it is so."""
    text = everything(releases[name])
    assert ("how many recipients a donor serves" in text) == (name == "nearest donors")
    assert ("how many respondents share a bin" in text) == (name == "weights")


def test_no_record_has_a_base_weight_where_the_plan_names_none(releases: dict[str, Release]) -> None:
    """(a) And weights to known totals are called by what they are, not by the plan's name for them."""
    text = everything(releases["factors and donors"])
    assert "base weight times" not in text and "weighted by poststratified" not in text
    assert "who answered pay, weighted to known totals by area; missing values of pay were filled" in text


@pytest.mark.parametrize("name", PLANS)
def test_a_total_over_values_that_a_line_filled_says_so(name: str, releases: dict[str, Release]) -> None:
    """(b) It holds sampling and noise, and neither the line's error nor that of its fills; of a median, too."""
    said = {
        each["name"]: "as if they had been given" in each["total"]["meaning"]
        for each in releases[name].document["statistics"]
    }
    about = {"mean pay", "rich", "middle"} if "model" in name else set()
    assert said == {each: each in about for each in said}
    if name == "model and design":
        (middle,) = [each for each in releases[name].document["statistics"] if each["name"] == "middle"]
        assert "its own error is not covered" in middle["interval"]["meaning"]


@pytest.mark.parametrize("name", PLANS)
def test_bars_are_called_what_they_are(name: str, releases: dict[str, Release]) -> None:
    """(b) An interval that holds sampling is drawn thin, and a kind of bar that no picture has is not explained."""
    rows = [
        row
        for chart in specs(releases[name])
        for row in chart.spec.get("data", {}).get("values", [])
        if "label" in row
    ]
    text = page(releases[name]).decode()
    for said, end in (("thick bar", "low"), ("thin line", "total_low")):
        assert (said in text) == any(row.get(end) is not None for row in rows)
    if name == "observed cells":
        assert "thick bar" not in text and "thin line" in text
        assert "dollars per unit of age" in text


def test_nothing_is_advised_that_would_not_help() -> None:
    """No design gives a variance a total interval, or one with weights made of who answered."""
    spread = {"name": "spread", "query": {"variance": "pay"}, "epsilon": "1"}
    made = of(statistics=[spread, WEIGHED, MIDDLE], weight=KNOWN)[1]
    told = {each["name"]: each["total"]["empty"] for each in made.document["statistics"]}
    assert "[design]" in told["middle"] and "give interval" not in told["middle"]
    assert "fourth moments" in told["spread"] and "factors = " in told["weighed"]


def test_levels_of_donors_are_told_once() -> None:
    """Of several columns with the same levels; what differs between them is told of each."""
    both = [
        {
            "method": "donors",
            "columns": ["age", "pay"],
            "match": ["area"],
            "default": {"age": "40", "pay": "500"},
        }
    ]
    told = of(statistics=COUNT, impute=both)[1].document["imputation"]
    assert len(told) == 2 and "agrees in area" in told[0] and "40 stood in" in told[0]
    assert "agrees in" not in told[1] and "as age;" in told[1] and "500 stood in" in told[1]
    single = of(statistics=COUNT, impute=[{**DONOR[0], "match": ["area"]}])[1].document["imputation"]
    assert "agrees in area" in single[0]


@pytest.mark.parametrize(
    ("cv", "said"), [(0.166, "16.6"), (10.0, "1,000"), (3_023_233.2, "over 1,000"), (None, "")]
)
def test_a_variation_beyond_all_use_has_no_digits(cv: float | None, said: str) -> None:
    assert variation(cv) == (f"{said}\N{NO-BREAK SPACE}%" if said else "")


@pytest.mark.parametrize("name", PLANS)
def test_nothing_else_is_said_of_intervals_for_privacy_noise_alone(
    name: str, releases: dict[str, Release]
) -> None:
    """(b) Never without such an interval, and never of the release as a whole."""
    document = releases[name].document
    text = everything(releases[name])
    has_noise = any(document.get(key) for key in ("statistics", "tables", "regression"))
    assert ("and nothing else" in text) == has_noise
    others = any(document.get(key) for key in ("cells", "tables", "regression", "synth"))
    assert ("The intervals of this release" in text) == (
        bool(document["statistics"]) and not others and "design" not in name
    )


@pytest.mark.parametrize("name", PLANS)
def test_those_who_did_not_answer_are_spoken_of_where_their_answers_were_filled(
    name: str, releases: dict[str, Release]
) -> None:
    """(c) In whatever rests on a filled column, and nowhere else."""
    document = releases[name].document
    sections = [each for key in ("statistics", "cells", "regression") for each in document.get(key) or []]
    about_pay = [each["words"] for each in sections if "pay" in each["words"]]
    said = ("count as answers", "or had it filled")
    assert all(any(each in words for each in said) == (name in FILLED) for words in about_pay)
    assert not any(
        each in words
        for each in said
        for words in (each["words"] for each in sections if "pay" not in each["words"])
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_workbook_says_what_was_done_about_missing_answers(
    name: str, releases: dict[str, Release]
) -> None:
    """(d) That nothing was filled where nothing was, and never that anything was used as it is."""
    text = workbook(releases[name])
    assert "used as they are" not in text and "used as it is" not in text
    assert ("none was filled" in text) == (name not in FILLED)


@pytest.mark.parametrize(
    ("sections", "heading", "others"),
    [
        ({"impute": DONOR}, words.ITEM_NONRESPONSE, (words.KNOWN_TOTALS, words.ROWS_READ)),
        ({"weight": FACTORS}, words.KNOWN_TOTALS, (words.ITEM_NONRESPONSE, words.ROWS_READ)),
        ({"weight": KNOWN}, words.KNOWN_TOTALS, (words.ITEM_NONRESPONSE, words.ROWS_READ)),
    ],
)
def test_weights_are_no_imputation(sections: Any, heading: str, others: tuple[str, ...]) -> None:
    """What was done stands under its own heading, in its own row of the workbook, and in the methodology."""
    asked = [WEIGHED] if "weight" in sections else [MEAN]
    made = of(statistics=asked, **sections)[1]
    text = page(made).decode()
    assert f"<h2>{heading}</h2>" in text and not any(f"<h2>{each}</h2>" in text for each in others)
    is_said = "Answers weighted to known totals by area" in methodology(made.document)
    assert is_said == ("weight" in sections) == ("none was filled" in workbook(made))


def test_a_piece_of_a_survey_is_no_imputation() -> None:
    """A release of one piece says which rows were read, on the page and in the paragraph to paste."""
    told = {**of(statistics=COUNT)[1].document, "piece": {"words": "piece 2 of 3 of the partition 'thirds'"}}
    text = page(Release(told)).decode()
    assert f"<h2>{words.ROWS_READ}</h2>" in text and words.ITEM_NONRESPONSE not in text
    assert "Only piece 2 of 3" in methodology(told) and "none was filled" in workbook(Release(told))


@pytest.mark.parametrize("name", PLANS)
def test_the_level_stands_over_every_interval(name: str, releases: dict[str, Release]) -> None:
    """No heading speaks of an interval without saying at which level."""
    text = page(releases[name]).decode()
    heads = [piece.split("</th>")[0] for piece in text.split("<th ")[1:]]
    about = [head.split(">", 1)[1] for head in heads if "nterval" in head]
    assert all(head.startswith("95 %") for head in about)
    assert bool(about) == (name not in ("synth", "line and donors"))
