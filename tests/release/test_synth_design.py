"""The design factor of a release in the intervals of its synthetic answers: taken by default, told, and needed to cover."""

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
import pytest

from reticent import Curator, Release, Survey
from reticent.refine.total import DesignFactor, paired_error, released_design_factor, student_half_width
from reticent.report.page import page
from reticent.synth.answer import ASKED, answer_directly
from reticent.synth.questions import read_question
from tests.release.synthetic import open_ledger
from tests.release.test_design import ASKS, BOOK, POOLED, people
from tests.synth.test_direct import ask, measured, vector

SHARE: dict[str, Any] = {"proportion": "y = 'yes'"}
ANSWERS = [
    {"name": "as released", "query": SHARE},
    {"name": "as declared", "query": SHARE, "design_effect": "1"},
]
TABLE = {
    "name": "people",
    "inference": True,
    "rows": 20,
    "epsilon": "8",
    "columns": ["y", "z"],
    "answer": ANSWERS,
}


def released(folder: Any, asks: Any = ASKS[:2], **sections: Any) -> Release:
    survey = Survey(people(), codebook={**BOOK, "survey": {"name": "tiny", "unit": "row"}})
    plan = survey.plan(
        "r-1",
        epsilon="19",
        statistics=asks,
        synth=[TABLE],
        **sections,
        protect={"accept_large": True},
    )
    return Curator(open_ledger(folder)).release(plan, survey, folder)


def answers(made: Release) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in made.document["synth"][0]["answers"]}


def test_a_bought_factor_is_taken_and_told_and_a_declared_one_wins(tmp_path):
    made = released(tmp_path, design=POOLED)
    told, factor = answers(made), released_design_factor(made.document)
    assert factor is not None and factor.effect > 1.5
    wide, plain = told["as released"], told["as declared"]
    assert wide["design"] == {
        "source": "bought",
        "design_effect": made.document["sampling"]["design_effect"],
        "degrees_of_freedom": made.document["sampling"]["degrees_of_freedom"],
    }
    assert "bought with this release, known with" in wide["meaning"]
    assert plain["design"] == {"source": ASKED, "design_effect": 1.0} and ASKED in plain["meaning"]
    assert wide["sampling_se"] == pytest.approx(factor.deft * plain["sampling_se"])
    assert wide["noise_se"] == plain["noise_se"]
    assert wide["total_high"] - wide["total_low"] > 1.2 * (plain["total_high"] - plain["total_low"])
    assert f"{factor.effect:g}, bought".encode() in page(made)
    again = Release.from_bytes((tmp_path / "r-1.json").read_bytes())
    (later,), (own,) = again.query(SHARE), again.query(SHARE, design_effect=1.0)
    assert (later.low, later.high, later.design) == (wide["total_low"], wide["total_high"], factor)
    assert (own.low, own.high) == (plain["total_low"], plain["total_high"])


@pytest.mark.parametrize("asks", [ASKS[:2], []], ids=["beside statistics", "alone"])
def test_a_survey_wide_declaration_is_taken_too(tmp_path, asks):
    made = released(tmp_path, asks, design={"design_effect": "4"})
    told = answers(made)
    assert told["as released"]["design"] == {"source": "declared", "design_effect": 4.0}
    assert told["as released"]["sampling_se"] == pytest.approx(2 * told["as declared"]["sampling_se"])
    assert "declared for the survey" in told["as released"]["meaning"]
    (later,) = made.query(SHARE)
    assert (later.low, later.high) == (told["as released"]["total_low"], told["as released"]["total_high"])


def test_without_a_factor_a_complex_survey_has_no_interval(tmp_path):
    made = released(tmp_path)
    told = answers(made)["as released"]
    assert told["total_low"] is None and "buy its design factor" in told["meaning"] and "design" not in told
    assert made.query(SHARE)[0].low is None


def test_students_quantile_goes_with_the_sampling_part_alone():
    """By hand: normal for the noise, whose variance is known; t for sampling, whose factor was estimated."""
    raw = {"proportion": "a = '0' and b = '0'"}
    factor = DesignFactor(deft=1.5, df=5.0, source="bought")
    (told,), (plain,) = ask(vector(is_complex=True), raw, released=factor), ask(vector(), raw)
    assert plain.design is None and told.noise == plain.noise
    t, z = student_half_width(5.0, 0.95), student_half_width(float("inf"), 0.95)
    half = sqrt((z * plain.noise) ** 2 + (t * 1.5 * plain.sampling) ** 2)
    assert (told.low, told.high) == pytest.approx((told.estimate - half, min(1.0, told.estimate + half)))


PAIRS, HEADS, SHARE_OF, NOISE, RUNS = 25, 40, 0.4, 15.0, 300


def drawn(bits: np.random.Generator) -> tuple[np.ndarray, DesignFactor]:
    """Yes by unit and item in a survey of clusters, within-cluster correlation 0.1; and its factor as THEORY 13.3 buys it."""
    rates = bits.beta(SHARE_OF * 9, (1 - SHARE_OF) * 9, 2 * PAIRS)
    yes = bits.binomial(HEADS, rates[:, None], (2 * PAIRS, 2))
    size = 2 * PAIRS * HEADS
    shares = yes.sum(axis=0) / size
    error = np.sqrt(shares * (1 - shares) / size)
    apart = np.abs(yes[::2] - yes[1::2]) / size / error
    scale = float((1 / size / error).mean()) / 0.5
    se, df = paired_error(apart.mean(axis=1).sum() + bits.laplace(0, scale), scale=scale, groups=PAIRS)
    told = {"source": "bought", "design_effect": max(1.0, se) ** 2, "degrees_of_freedom": df}
    factor = released_design_factor({"sampling": told})
    assert factor is not None
    return yes[:, 0], factor


def test_in_a_clustered_survey_the_factor_covers_and_its_naive_twin_does_not():
    """The design effect is 1 + 39/10 = 4.9: intervals for rows drawn one by one are less than half as wide as they need be."""
    bits = np.random.default_rng(24)
    held = {"released": 0, "naive": 0}
    widths = {"released": 0.0, "naive": 0.0}
    lists = vector(is_complex=True)
    question = read_question({"proportion": "a = '0'"}, lists.domain)
    for _ in range(RUNS):
        yes, factor = drawn(bits)
        size = yes.size * HEADS
        cells = np.array([yes.sum(), size - yes.sum()]) + bits.normal(0, NOISE, 2)
        here = survey_of(lists, cells, size)
        ways: dict[str, dict[str, Any]] = {"released": {"released": factor}, "naive": {"design_effect": 1.0}}
        for way, given in ways.items():
            (told,) = answer_directly(question, here, **given)
            assert told.low is not None and told.high is not None
            held[way] += told.low <= SHARE_OF <= told.high
            widths[way] += told.high - told.low
    assert held["released"] >= 0.92 * RUNS
    assert held["naive"] <= 0.75 * RUNS
    assert widths["naive"] < 0.6 * widths["released"]


def survey_of(lists: Any, cells: np.ndarray, size: int) -> Any:
    """The same domain with another column's noisy list, of a public number of rows."""
    return replace(
        lists, lists=(measured((0,), cells, NOISE), *lists.lists[1:]), total=float(size), total_variance=0.0
    )
