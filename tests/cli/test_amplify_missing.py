"""`reticent amplify --missing` prints the exact number and the published ones beside it, and says when it may be claimed."""

import json
import math
from fractions import Fraction

import pytest

from reticent.privacy.missingness import MaskTable, amplified
from reticent.privacy.missingness.claims import REFUSED
from reticent.privacy.missingness.masks import use
from tests.badinput.house import run

CHANCES = "state=0.75,occupation=1,gender=0.75,income=3/4"
SETS = ("state", "occupation", "gender", "gender,income")
CALL = ("amplify", "--missing", CHANCES, *(w for s in SETS for w in ("--mechanism", f"{s}:0.25")))
FILE = """
[observed]
state = "0.75"
occupation = "1"
gender = "0.75"
income = "3/4"

[[mechanism]]
on = ["state"]
epsilon = "0.25"

[[mechanism]]
on = ["occupation"]
epsilon = "0.25"

[[mechanism]]
on = ["gender"]
epsilon = "0.25"

[[mechanism]]
any_of = [["gender", "income"]]
epsilon = "0.25"
"""


def test_the_worked_example_in_words():
    seen = run(*CALL)
    assert (seen.status, seen.err) == (0, "")
    ends = [line.split()[-1] for line in seen.out.splitlines() if line.startswith("one respondent")]
    assert ends == ["0.792472940492", "1.528772110163", "0.792472940492"]
    assert "not a guarantee: the sum of chance times epsilon is 0.765625." in seen.out
    assert "not a guarantee: algorithm 4 of Mohapatra et al. 2024 gives 0.8125." in seen.out
    assert "Made sound, that algorithm gives 0.829337035062." in seen.out
    assert "It may be claimed while nobody" in seen.out


def test_it_says_that_questions_are_skipped_one_by_one():
    """Two answers that go missing together, each there half the time: more is lost than the number printed for coins of
    their own, and a law of the whole pattern gives it. So what is printed has to name that condition."""
    told = json.loads(
        run("amplify", "--missing", "a=0.5,b=0.5", "--json", "--mechanism", "a:1", "--mechanism", "b:1").out
    )
    both, none = frozenset({"a", "b"}), frozenset[str]()
    together = MaskTable([{both: Fraction(1, 2), none: Fraction(1, 2)}])
    uses = [use(name, epsilon=Fraction(1)) for name in "ab"]
    assert amplified(uses, together) > Fraction(told["rows"][0]["epsilon"]) + Fraction(1, 10)
    assert "nor on which other questions are answered" in told["claim_only_if"]
    assert "whatever their answers" in told["claim_only_if"]


def test_the_same_as_json_and_from_a_file(tmp_path):
    typed = json.loads(run(*CALL, "--json").out)
    assert [row["epsilon"] for row in typed["rows"]] == ["0.792472940492", "1.528772110163", "0.792472940492"]
    assert typed["taken_as_observed"] == [] and typed["comparison"]["algorithm_4"] == "0.8125"
    (tmp_path / "holes.toml").write_text(FILE)
    assert json.loads(run("amplify", "--missing", str(tmp_path / "holes.toml"), "--json").out) == typed


def test_a_choice_a_delta_and_every_row():
    call = ("amplify", "--missing", "a=0.5,b=0.5", "--json", "--mechanism")
    choice = json.loads(run(*call, "a|b:1").out)
    assert float(choice["rows"][0]["epsilon"]) == pytest.approx(math.log1p(0.75 * math.expm1(1)), abs=2e-12)
    assert "algorithm_4" not in choice["comparison"]
    small = json.loads(run(*call, "a:1:0.000001").out)
    assert small["delta"] == "0.0000005" and len(small["rows"]) == 1
    every = json.loads(run(*call, "*:1").out)
    assert every["rows"][0]["epsilon"] == "1"


@pytest.mark.parametrize("name", REFUSED)
def test_states_of_the_masks_without_a_theorem_are_refused(name):
    seen = run(*CALL, "--masks", name)
    assert (seen.status, seen.out) == (2, "")
    assert seen.err.startswith("error: masks: nothing is amplified where masks are ")


@pytest.mark.parametrize(  # covers B120 R07
    ("arguments", "said"),
    [
        (["--mechanism", "a:1"], "call: say --missing"),
        (["--json"], "call: say --missing"),
        (["--missing", "a=0.5"], "call: say --mechanism"),
        (["--missing", "a=0.5", "--mechanism", "a:1", "--rate", "0.1"], "call: --missing goes with"),
        (["--missing", "a", "--mechanism", "a:1"], "--missing: is written as"),
        (["--missing", "a=0.5,a=1", "--mechanism", "a:1"], "--missing: names an answer twice"),
        (["--missing", "a=0.5,,b=1", "--mechanism", "a:1"], "--missing: has an empty name"),
        (["--missing", "a=1.5", "--mechanism", "a:1"], "observed: "),
        (["--missing", "a=1e-1", "--mechanism", "a:1"], "--missing: "),
        (["--missing", "a=1/0", "--mechanism", "a:1"], "--missing: "),
        (["--missing", "a=0.5", "--mechanism", "a"], "--mechanism: is written as"),
        (["--missing", "a=0.5", "--mechanism", "a:1:0.1:2"], "--mechanism: is written as"),
        (["--missing", "a=0.5", "--mechanism", "a:-1"], "--mechanism: "),
        (["--missing", "a=0.5", "--mechanism", "a:1:1"], "delta: "),
        (["--missing", "a=0.5", "--mechanism", ":1"], "--mechanism: has an empty name"),
        (["--missing", "age=0.5", "--mechanism", "agr:1"], "observed: nothing says how often 'agr'"),
        (["--missing", "a=0.5", "--mechanism", "a:1", "--masks", "open"], "masks: 'open' is not secret"),
        (["--missing", "nowhere.toml"], "nowhere.toml: cannot be opened"),
        (["--missing", "nowhere.toml", "--mechanism", "a:1"], "call: the file lists the mechanisms"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arguments, said):
    seen = run("amplify", *arguments)
    assert (seen.status, seen.out) == (2, "")
    assert seen.err.startswith(f"error: {said}") and seen.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[observed]\na = 0.5\n[[mechanism]]\non = ['a']\nepsilon = '1'\n", "observed.a: "),
        ("[observed]\na = '0.5'\n[[mechanism]]\nepsilon = '1'\n", "mechanism[0]: say one of"),
        (
            "[observed]\na = '0.5'\n[[mechanism]]\non = ['a']\nepsilom = '1'\n",
            "mechanism[0].epsilom: is not a known",
        ),
        ("[observed]\na = '0.5'\n", "mechanism: "),
        (
            "[observed]\na = '0.5'\n[[mechanism]]\non = ['a']\nevery_row = true\nepsilon = '1'\n",
            "mechanism[0]: say",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_line(tmp_path, text, said):
    (tmp_path / "holes.toml").write_text(text)
    seen = run("amplify", "--missing", str(tmp_path / "holes.toml"))
    assert (seen.status, seen.out) == (2, "")
    assert seen.err.startswith(f"error: {said}") and seen.err.count("\n") == 1


def test_deltas_are_said_of_the_table_too_and_refused_where_they_promise_nothing():
    call = ("amplify", "--missing", "a=0.5", "--mechanism", "a:1:0.5", "--mechanism", "*:1:0.25")
    assert run(*call).out.startswith("epsilon 2, delta 0.75 about the data held, 2 mechanisms\n")
    held = json.loads(run(*call, "--json").out)
    assert (held["held"]["delta"], held["delta"]) == ("0.75", "0.5")
    seen = run(*call, "--mechanism", "*:1:0.5")
    assert seen.status == 2 and seen.out == ""
    assert seen.err.startswith("error: delta: they come to 1 for the truth")
