"""`reticent amplify` prints the table, says what has no theorem, and refuses what it does not know."""

from math import expm1, hypot, log, sqrt

import pytest

from tests.badinput.house import run

REPLACED = "one respondent's answers replaced"


def numbers(out: str) -> list[str]:
    return [line.split()[-1] for line in out.splitlines() if line.startswith(("without", "each"))]


def test_the_table_has_every_design_with_a_theorem_and_names_the_one_without():
    seen = run("amplify", "--rate", "0.1", "--epsilon", "1")
    assert (seen.status, seen.err) == (0, "")
    assert numbers(seen.out) == ["0.158565078741", "0.158565078741", "0.22386341474"]
    assert "No theorem for simple, one respondent added or removed: " in seen.out
    assert "theorem 5.5.1 of Merrill 2021 gives 0.263925594399." in seen.out


def test_several_epsilons_are_composed_before_they_are_amplified():
    call = ("amplify", "--rate", "1/3", "--design", "simple", "--change", REPLACED)
    seen = run(*call, "--epsilon", "0.5", "--epsilon", "0.5")
    assert numbers(seen.out) == numbers(run(*call, "--epsilon", "1").out) == ["0.452832425264"]


def test_the_inverse_is_what_may_be_spent():
    seen = run("amplify", "--rate", "0.1", "--epsilon", "1", "--inverse")
    assert numbers(seen.out) == ["2.900477097889", "2.900477097889", "2.749726735507"]
    assert "epsilon for the sample" in seen.out and "Merrill" not in seen.out


def test_where_the_thesis_bound_is_no_gain_it_says_so():
    assert "is no gain from rate 0.086893565878 on" in run("amplify", "--rate", "0.1", "--epsilon", "0.1").out


@pytest.mark.parametrize(  # covers B120 R07
    ("arguments", "said"),
    [
        ([], "call: say --rate and --epsilon"),
        (["--rate", "0.1"], "call: say --rate and --epsilon"),
        (["--rate", "0", "--epsilon", "1"], "--rate: "),
        (["--rate", "1.5", "--epsilon", "1"], "--rate: "),
        (["--rate", "1/0", "--epsilon", "1"], "--rate: "),
        (["--rate", "1e-1", "--epsilon", "1"], "--rate: "),
        (["--rate", "0.1", "--epsilon", "-1"], "--epsilon: "),
        (
            ["--rate", "0.1", "--epsilon", "1", "--design", "cluster"],
            "design: cluster sampling is not amplified",
        ),
        (["--rate", "0.1", "--epsilon", "1", "--change", "nothing"], "--change: is one of: "),
        (["--rate", "0.1", "--epsilon", "1", "--rows", "3"], "--rows: leaves nobody"),
        (["--rate", "0.1", "--epsilon", "1", "--rows", "99", "--bounds", "1"], "--bounds: are two"),
        (["--rate", "0.1", "--epsilon", "1", "--rows", "99", "--bounds", "1,0"], "--bounds: are two"),
        (["--rate", "0.1", "--epsilon", "1", "--rows", "99", "--sd", "2"], "--sd: is a decimal"),
        (
            [
                "--rate",
                "0.1",
                "--epsilon",
                "1",
                "--design",
                "simple",
                "--change",
                "one respondent added or removed",
            ],
            "change: a sample of fixed size",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(arguments, said):
    seen = run("amplify", *arguments)
    assert (seen.status, seen.out) == (2, "")
    assert seen.err.startswith(f"error: {said}") and seen.err.count("\n") == 1


def test_partition_error_stands_beside_privacy_noise():
    """By hand: width/(n epsilon) times root two for the noise, sd/root n times the root of what was left out."""
    seen = run(
        *("amplify", "--rate", "0.1", "--epsilon", "0.5", "--inverse", "--rows", "10000"),
        *("--bounds", "0,100", "--sd", "15"),
    )
    lines = {line.split("  ")[0]: line.split()[-3:] for line in seen.out.splitlines() if "  " in line}
    spent, root = log(1 + 10 * expm1(0.5)), sqrt(2)
    by_hand = {
        "a piece of 1000 of 10000": (15 * sqrt(0.9 / 1000), root * 100 / (1000 * spent)),
        "everybody, at the same guarantee to all": (0, root * 100 / (10000 * 0.5)),
        "everybody, one of 10 equal shares": (0, root * 100 / (10000 * spent / 10)),
    }
    for name, (sampling, noise) in by_hand.items():
        assert lines[name] == [f"{each:.4g}" for each in (sampling, noise, hypot(sampling, noise))]


def test_without_a_spread_the_largest_there_can_be_is_taken():
    call = ("amplify", "--rate", "0.1", "--epsilon", "1", "--rows", "1000", "--bounds", "0,1")
    assert run(*call).out == run(*call, "--sd", "0.5").out
