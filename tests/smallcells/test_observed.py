"""The observed method does what was published, says what it is, and hides no more than it says."""

import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent.errors import PlanError
from reticent.noise.laplace import add_lomax
from reticent.sensitivity.bounds import Global, Observed, Smooth
from reticent.smallcells.estimators import CellMean, Slope
from reticent.smallcells.local import UP, error_sensitivity, local_sensitivity, sampling_errors
from reticent.smallcells.observed import (
    LABEL,
    Noises,
    ObservedCells,
    measure,
    observed_noise,
    publish,
    release_observed,
    unprotected,
)
from reticent.smallcells.points import GridPoints, moments
from tests.audit import ALARM, chi_square
from tests.noise import laws
from tests.noise.seeded import SeededBits, chosen_bits
from tests.smallcells.squares import COMB, ESTIMATORS, PLAIN, QUARTER, points, refit, spots

ONE = Fraction(1)
DATA = Path(os.environ.get("RETICENT_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLE = DATA / "mose_example.parquet"


def ask(**how) -> ObservedCells:
    return ObservedCells(**{"estimator": QUARTER, "epsilon": Fraction(4), "count_epsilon": ONE, **how})


def table(*sizes: int, seed: int = 5) -> GridPoints:
    rng = np.random.default_rng(seed)
    return points([[(int(a), int(b)) for a, b in rng.integers(0, 101, (n, 2))] for n in sizes], 100, 100)


def quiet(found_in: GridPoints, asked: ObservedCells):
    """The table with the noise taken out."""
    found = measure(found_in, asked)
    zeros = [0] * found_in.cells
    return publish(
        asked,
        steps=found.steps,
        sizes=found.sizes,
        errors=found.errors,
        scaled_to=found.of_estimates,
        errors_scaled_to=found.of_errors,
        noises=Noises(estimates=zeros, counts=zeros, errors=zeros),
        is_real=False,
    )


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_without_noise_it_is_the_textbook_table(estimator):
    """Estimates to half a step of the grid, counts exactly, variances and standard errors from their formulas."""
    cells = [PLAIN, [], [(3, 3)], COMB[:9], PLAIN[:3]]
    asked = ask(estimator=estimator, error_epsilon=ONE, grid=Fraction(1, 10**9))
    made = quiet(points(cells, 20, 20), asked)
    assert made.counts == tuple(map(len, cells))
    for g, cell in enumerate(cells):
        exact = refit(estimator, spots(cell, 20, 20))
        assert (made.estimates[g] is None) == (exact is None)
        if exact is not None:
            assert abs(made.estimates[g] - exact) <= asked.grid / 2
            noise = 2 * (made.chi[0] / (4 * len(cell))) ** 2
            assert math.isclose(made.noise_variance[g], noise, rel_tol=1e-12)
        spread = textbook_error(estimator, cell)
        if spread is not None and exact is not None:
            assert math.isclose(made.standard_errors[g], math.hypot(spread, math.sqrt(noise)), rel_tol=1e-6)


def textbook_error(estimator, cell, steps: int = 20) -> float | None:
    """By the design matrix: s**2 c' (X'X)^-1 c."""
    x, y = (
        (np.array(each, dtype=np.float64) / steps for each in zip(*cell, strict=True)) if cell else ((), ())
    )
    wide = np.ones((len(x), 1)) if isinstance(estimator, CellMean) else np.column_stack([np.ones(len(x)), x])
    at = [1.0] if isinstance(estimator, CellMean) else [0.0, 1.0] if estimator == Slope() else None
    c = np.array(at if at else [1.0, float(estimator.at)])
    if len(x) <= wide.shape[1] or np.linalg.matrix_rank(wide) < wide.shape[1]:
        return None
    beta = np.linalg.lstsq(wide, np.asarray(y), rcond=None)[0]
    s2 = ((y - wide @ beta) ** 2).sum() / (len(x) - wide.shape[1])
    return float(np.sqrt(s2 * c @ np.linalg.inv(wide.T @ wide) @ c))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_standard_errors_move_as_refitting_says(estimator):
    """Every removal and every corner, refitted; equal to eight places."""
    cell = [*PLAIN, (2, 9), (8, 1)]
    here = textbook_error(estimator, cell, 10)
    others = [cell[:i] + cell[i + 1 :] for i in range(8)] + [
        [*cell, (a, b)] for a in (0, 10) for b in (0, 10)
    ]
    moved = max(abs(textbook_error(estimator, other, 10) - here) for other in others)
    held = points([cell], 10, 10)
    assert math.isclose(sampling_errors(estimator, moments(held))[0], here, rel_tol=1e-10)
    assert math.isclose(error_sensitivity(held, estimator)[0], moved * UP, rel_tol=1e-9)


def test_the_noise_has_the_scale_chi_over_epsilon_n():  # covers T07 T26
    """20,000 draws for each of two cells, false alarm 1e-9; the other cell's scale, and half of one's own, are seen."""
    bounds = [Observed(bound=Fraction(1, 50)), Observed(bound=Fraction(1, 20)), None]
    drawn = observed_noise(bounds * 20_000, epsilon=Fraction(4), grid=Fraction(1, 10**5), bits=chosen_bits(7))
    first, second, none = drawn[::3], drawn[1::3], drawn[2::3]
    assert chi_square(first, laws.laplace(500), cells=12) > ALARM
    assert chi_square(second, laws.laplace(1250), cells=12) > ALARM
    assert chi_square(second, laws.laplace(500), cells=12) < ALARM
    assert chi_square(second, laws.laplace(625), cells=12) < ALARM
    assert not any(none)


def test_counts_and_estimates_have_noise_of_their_own():
    """The published example draws once for both. Then one integer guess for N undoes the noise of the estimate."""
    held, asked = table(*[30] * 400), ask(grid=Fraction(1, 10**9))
    plain, made = quiet(held, asked), release_observed(held, asked, bits=SeededBits(9))
    moved = np.array([float(a - b) for a, b in zip(made.estimates, plain.estimates, strict=True)])
    counted = np.array(made.counts) - 30
    assert abs(np.corrcoef(moved, counted)[0, 1]) < 6.2 / math.sqrt(400)  # false alarm below 1e-9

    shared = np.random.default_rng(1).laplace(size=400)  # the naive twin
    naive, naive_counts = shared * float(plain.chi[0]) / (4 * 30), 30 + shared / 1.0
    undone = naive - float(plain.chi[0]) / (4 * 30) * (naive_counts - 30)
    assert np.abs(undone).max() < 1e-12


def test_one_respondent_changes_the_noise_of_other_cells():
    """Why there is no promise: added to one cell, a respondent changes chi and with it every cell's scale."""
    quiet_cell = [(i, 50) for i in range(0, 101, 5)]
    before = points([quiet_cell, [(49, 50), (51, 50), (50, 50)]], 100, 100)
    after = points([quiet_cell, [(49, 50), (51, 50), (50, 50), (50, 100)]], 100, 100)
    chis = [measure(each, ask()).of_estimates.chi[0] for each in (before, after)]
    assert abs(chis[0] / chis[1] - 1) > Fraction(1, 10)
    # Two Laplace laws of scales s < t: the log ratio of densities grows without end, by (1/s - 1/t)|z|.
    s, t = sorted(float(chi) / (4 * len(quiet_cell)) for chi in chis)
    losses = [abs(math.log(t / s) - z * (1 / s - 1 / t)) for z in (1.0, 10.0, 100.0)]
    assert losses[0] < losses[1] < losses[2] and losses[2] > 100


def test_every_declared_cell_has_a_count_and_what_is_left_out_is_said():  # covers T10
    held = table(30, 0, 1, 12)
    made = release_observed(held, ask(least=15), bits=SeededBits(2))
    assert [e is None for e in made.estimates] == [False, True, True, True]
    assert len(made.counts) == 4 and all(type(n) is int for n in made.counts)
    assert [v is None for v in made.noise_variance] == [False, True, True, True]
    assert made.standard_errors == (None,) * 4 and made.is_real is False
    assert any("fewer than 15" in line for line in made.unprotected)
    filled = quiet(held, ask(span=ONE))
    assert filled.estimates[2] == Fraction(1, 2) and filled.estimates[1] is None


def test_true_sizes_are_printed_only_when_asked_for():
    """Left off, the variance is a function of chi and the noisy count; with it, the true count can be read back."""
    held = table(30, 40)
    made = release_observed(held, ask(), bits=SeededBits(3))
    for g in range(2):
        assert made.noise_variance[g] == float(2 * (made.chi[0] / (4 * max(1, made.counts[g]))) ** 2)
    told = release_observed(held, ask(true_sizes=True), bits=SeededBits(3))
    back = [float(told.chi[0]) / (4 * math.sqrt(v / 2)) for v in told.noise_variance]
    assert [round(n) for n in back] == [30, 40]
    assert any("gives the counts away" in line for line in told.unprotected)
    assert not any("gives the counts away" in line for line in made.unprotected)


def test_the_label_and_the_claim_promise_nothing():
    """No word of a formal promise but in the negative, and epsilon never stands before DP."""
    asked = ask(error_epsilon=ONE, true_sizes=True, span=ONE)
    made = quiet(table(5), asked)
    assert made.label == LABEL == "observed, not differentially private"
    claim = asked.claim()
    assert (
        claim.measure == "observed"
        and claim.epsilon == 0
        and str(claim).startswith("not differentially private")
    )
    assert asked.cost == 6 and ask().cost == 5
    words = " ".join([*unprotected(asked), LABEL, repr(asked), repr(made)]).lower()
    for word in ("-dp", "guarantee", "budget", "privacy loss", "protects", "is private"):
        assert word not in words
    assert words.count("differentially private") == words.count("not differentially private")


def test_nothing_formal_takes_an_observed_bound():
    seen = Observed(bound=ONE)
    assert not isinstance(seen, Global | Smooth) and "bound" not in repr(seen)
    with pytest.raises(AttributeError):
        add_lomax(0, sensitivity=seen, epsilon=ONE, grid=ONE, bits=SeededBits(1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "how", [{"epsilon": Fraction(0)}, {"error_epsilon": Fraction(-1)}, {"least": 0}, {"grid": Fraction(0)}]
)
def test_what_cannot_be_is_refused(how):
    with pytest.raises(PlanError):
        ask(**how)


def test_groups_cover_every_cell():
    with pytest.raises(PlanError, match="group"):
        measure(table(5, 5), ask(groups=(0,)))


@pytest.mark.data
@pytest.mark.skipif(not EXAMPLE.is_file(), reason="the data folder is not here")
def test_the_published_example_recomputed():
    """Its chi to the six places its own data give, 2.970233, and every cell's noise, by refitting with numpy.

    The paper's 13.02 is for hypothetical data it does not publish.
    """
    held, cells = example()
    published = ask(corners_only=True, removals=False, true_sizes=True)
    made = quiet(held, published)
    chi = max(len(x) * refitted(x, y) for x, y in cells)
    assert round(chi, 6) == 2.970233 and chi <= made.chi[0] <= chi * UP**2 + 1e-9
    for g, (x, _) in enumerate(cells):
        assert math.isclose(made.noise_variance[g], 2 * (chi / (4 * len(x))) ** 2, rel_tol=1e-6)
    # Additions in the interior and removals do not change chi here; for the slope, removals do.
    assert measure(held, ask()).of_estimates.chi == made.chi
    slopes = [local_sensitivity(held, Slope(), removals=r) * np.diff(held.starts) for r in (False, True)]
    assert slopes[0].max() < slopes[1].max()


def example() -> tuple[GridPoints, list[tuple[np.ndarray, np.ndarray]]]:
    import pandas as pd

    frame = pd.read_parquet(EXAMPLE).astype("float64").sort_values(["cell", "parent_rank", "kid_rank"])
    cells = [(g.parent_rank.to_numpy(), g.kid_rank.to_numpy()) for _, g in frame.groupby("cell")]
    x, y = (np.rint(frame[name].to_numpy() * 2**31).astype(np.int64) for name in ("parent_rank", "kid_rank"))
    starts = np.cumsum([0, *(len(a) for a, _ in cells)]).astype(np.int64)
    return GridPoints(starts=starts, x=x, y=y, x_steps=2**31, y_steps=2**31), cells


def refitted(x: np.ndarray, y: np.ndarray) -> float:
    """The largest move over the four corners, by polyfit."""
    here = np.polyval(np.polyfit(x, y, 1), 0.25)
    corners = [(a, b) for a in (0, 1) for b in (0, 1)]
    there = [np.polyval(np.polyfit(np.append(x, a), np.append(y, b), 1), 0.25) for a, b in corners]
    return float(max(abs(t - here) for t in there))
