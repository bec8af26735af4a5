"""The lab on pieces and on weights to known totals, small: the methods are what they say, and the ways differ as they must."""

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from reticent.lab.experiments import anonymity, find, partition, poststratify
from reticent.lab.noise import QuickNoise
from reticent.lab.run.experiment import OURS, table_of
from reticent.lab.run.summary import rows_of
from reticent.lab.world.poverty import BY_MARGINS, QUERIES, OneWay, one_way_state, small_state

DOCS = Path(__file__).parents[2] / "docs" / "lab"
SIZE = 40_000
RUNS = 12


def lines_of(made):
    return {index: made.run(index, made.seed_of(index, 1)) for index in range(RUNS)}


@pytest.fixture(scope="module")
def runs():
    """Twelve runs on a state of 40,000: only one-way totals known, and the joint table."""
    return {
        made.name: lines_of(made)
        for made in (poststratify.experiment(size=SIZE), poststratify.joint(size=SIZE))
    }


@pytest.fixture(scope="module", params=["poststratify", "poststratify-joint"])
def lines(request, runs):
    found = defaultdict(list)
    for made in runs[request.param].values():
        for line in made:
            found[line.method, line.query, line.epsilon].append(line)
    return found


def errors(lines, method, query, epsilon=5.0):
    return np.array([x.estimate - x.truth for x in lines[method, query, epsilon]])


def test_the_state_is_what_strategies_and_queries_say():
    state = small_state(SIZE)
    assert {int(sum(each.totals)) for each in state.known.strategies} == {SIZE}
    counts = [int(state.counted[query].sum()) for query in QUERIES]
    assert counts[0] > counts[1] > 0 and counts[2] > 0
    assert not (state.counted[QUERIES[1]] & ~state.counted[QUERIES[0]]).any()


def test_only_one_way_totals_are_known_and_nobody_is_where_nobody_can_be():
    """No margin speaks of two attributes, the totals are the state's, and the cells called empty are."""
    state = one_way_state(SIZE)
    assert isinstance(state.known, OneWay)
    assert [margin.axes for margin in state.known.margins] == [(axis,) for axis in range(5)]
    table = np.bincount(state.cells, minlength=BY_MARGINS.size).reshape(BY_MARGINS.shape)
    for axis, margin in enumerate(state.known.margins):
        others = tuple(each for each in range(5) if each != axis)
        assert (table.sum(axis=others) == margin.totals).all()
    assert state.known.zeroes.any() and not table[state.known.zeroes].any()


def test_the_two_naive_ways_are_those_of_the_thesis(lines):
    """By their formulas, to the noise: the sample's count times ten; the sample's share times the known size.

    Scales of the noise at epsilon 5 are 2 and about 2: an error beyond 60 has chance below e^-30.
    """
    for state in (small_state(SIZE), one_way_state(SIZE)):
        rng = np.random.default_rng(1)
        drawn = poststratify._sample(poststratify.HALF, state, rng)
        tallies = {query: poststratify._tally(drawn, state, query) for query in QUERIES}
        epsilon, noise = Fraction(5), QuickNoise(rng)
        scaled = poststratify._scaled(state, tallies, epsilon, noise)
        shares = poststratify._share(state, drawn, tallies, epsilon, noise)
        for query in QUERIES:
            poor, asked = int(state.counted[query][drawn].sum()), int(state.asked[query][drawn].sum())
            assert abs(scaled[query][0] - 10 * poor) < 60
            assert abs(shares[query][0] - poor / asked * state.asked[query].sum()) < 60


def test_half_of_the_young_are_lost_and_the_sample_times_ten_does_not_notice(lines):
    """The poor are young: times ten is too low by a sixth or so for all, by a quarter for women 20-29; weights mend most of it."""
    for query, least in ((QUERIES[0], 0.1), (QUERIES[2], 0.2)):
        asked = f"{query}, {poststratify.HALF}"
        truth = lines[OURS, asked, 5.0][0].truth
        naive = errors(lines, poststratify.SAMP, asked).mean() / truth
        assert naive < -least and abs(errors(lines, OURS, asked).mean()) / truth < -naive / 2


def test_the_error_of_times_ten_is_what_the_state_says():
    """Its exact law at full size: the page states it, and the 200 runs of the page lie within four standard errors of it."""
    state, rows = (
        one_way_state(200_000),
        json.loads((DOCS / "poststratify.json").read_text(encoding="utf-8"))["rows"],
    )
    drawn, page = state.size // 10, (DOCS / "poststratify.md").read_text(encoding="utf-8")
    for query in QUERIES:
        kept = (
            np.where(state.young, 0.5, 1.0) * state.counted[query]
        )  # the chance that one who is drawn answers and counts
        mean = drawn / state.size * kept.sum()
        pairs = drawn * (drawn - 1) / (state.size * (state.size - 1)) * (kept.sum() ** 2 - (kept**2).sum())
        bias, variance = 10 * mean - state.counted[query].sum(), 100 * (mean + pairs - mean**2)
        exact = np.sqrt(bias**2 + variance)
        (found,) = [
            row for row in rows
            if (row.get("method"), row.get("epsilon"), row["query"]) == ("naive-samp", 5.0, f"{query}, {poststratify.HALF}")
        ]  # fmt: skip
        assert abs(found["rmse"] - exact) < 4 * found["rmse_se"] and f"{exact:,.0f} for " in page


def test_the_share_of_the_sample_is_hard_to_beat_for_a_group_of_one_age(lines):
    """Women 30-39 are sampled alike: shares have no bias, and the old reading of that baseline had one of a tenth."""
    asked = f"{QUERIES[1]}, {poststratify.HALF}"
    made = errors(lines, poststratify.POP, asked)
    assert abs(made.mean()) < 4 * made.std(ddof=1) / np.sqrt(RUNS)
    assert np.sqrt((made**2).mean()) < 0.2 * lines[OURS, asked, 5.0][0].truth


def test_a_naive_way_is_after_a_sample_and_not_after_everybody(lines):
    """The earlier twin added noise to the truth: an error of a few people, which no sample has."""
    for way in (poststratify.HALF, poststratify.EVEN):
        made = errors(lines, poststratify.POP, f"{QUERIES[0]}, {way}")
        assert np.sqrt((made**2).mean()) > 50


def test_intervals_are_told_where_they_are_known(lines):
    for (method, _, _), found in lines.items():
        assert all((x.low is None) == (method == poststratify.THESIS) for x in found)


def test_findings_have_a_row_for_every_figure(runs):
    rows = poststratify.findings(table_of(runs["poststratify"]))
    assert len(rows) == 40 and {row["item"].split(",")[0] for row in rows} == {
        f"Figure {figure}" for figure in poststratify.FIGURES.values()
    }
    biased = [r for r in rows if r["item"] == "Figure 7.8 left, rmse of reticent over that of naive-samp"]
    assert biased[0]["value"] < 0.5
    others = (poststratify.joint(size=SIZE), poststratify.small_bin(size=SIZE))
    assert not any(other.more for other in others)  # with a joint table known it is no figure of the thesis


def test_one_run_has_errors_and_no_spread(runs):
    """Its rows can be printed as JSON: no number stands for a spread that is not there."""
    made = poststratify.experiment(size=SIZE)
    rows = rows_of(made, table_of({0: runs[made.name][0]}))
    json.dumps(rows, allow_nan=False)
    told = {row["item"].split(", ")[1].split(" of ")[0] for row in rows if "item" in row}
    assert told == {"rmse"}


def test_one_small_bin_makes_a_choice_a_lottery():
    """Delta, which the choice is paid in, grows with bins over the smallest total."""
    plain, small = (small_state(SIZE, each).known for each in (False, True))
    assert small.delta > 100 * plain.delta and len(small.strategies) == len(plain.strategies) + 1


def test_a_run_is_a_function_of_its_seed():
    made = poststratify.experiment(size=SIZE)
    assert made.run(3, 5) == made.run(3, 5) and find("poststratify").runs == 200


def test_a_piece_has_the_noise_of_a_tenth_of_epsilon_and_sampling_error_on_top():
    """40 runs of 4,000. At 0.1 noise rules and both ways are alike; at 10 the smaller sample is what costs."""
    made = partition.experiment(size=20_000, rows=4_000)
    errors = defaultdict(list)
    for index in range(40):
        for line in made.run(index, made.seed_of(index, 1)):
            errors[line.method, line.epsilon].append(line.estimate - line.truth)
    spread = {key: float(np.sqrt(np.mean(np.square(values)))) for key, values in errors.items()}
    assert spread[partition.FULL, 10.0] < spread[partition.PIECE, 10.0]
    assert spread[partition.FULL, 0.1] < spread[partition.PIECE, 0.1]
    assert spread[partition.SHARED, 10.0] < spread[partition.PIECE, 10.0]
    ratio = spread[partition.PIECE, 0.1] / spread[partition.SHARED, 0.1]
    assert 0.4 < ratio < 2.5  # a tenth of the people, or a tenth of epsilon: the same noise


def test_counts_at_full_size_have_the_law_of_drawn_people():
    """2,000 draws of a sample and a piece, counted, against the same by their numbers: means and spreads, 5 sd.

    A naive twin that draws the piece from everybody has too much spread, given the sample.
    """
    rng, adults, everybody = np.random.default_rng(4), 700, 1_000
    people = np.arange(everybody) < adults
    drawn = [int(rng.choice(people, 100, replace=False)[:10].sum()) for _ in range(2_000)]
    told = rng.hypergeometric(adults, everybody - adults, 100, 2_000)
    counted = rng.hypergeometric(told, 100 - told, 10)
    sd = np.std(drawn)
    assert abs(np.mean(drawn) - counted.mean()) < 5 * sd * (2 / 2_000) ** 0.5
    assert abs(counted.std() / sd - 1) < 5 * (2 / (2 * 2_000)) ** 0.5


@pytest.fixture(scope="module")
def full():
    made = partition.full(size=20_000)
    runs = {index: made.run(index, made.seed_of(index, 1)) for index in range(400)}
    return made, table_of(runs)


def test_variances_are_those_of_the_thesis(full):
    """400 runs of Laplace noise: kurtosis 6, so a variance has a relative error of 0.11; 5 of them."""
    made, outcomes = full
    rows = [r for r in made.more(outcomes) if r["item"].endswith(partition.LAPLACE)]
    assert len(rows) == 2 * len(partition.SMALL)
    for row in rows:
        assert abs(row["value"] / row["as_printed"] - 1) < 0.56
    (added,) = [r for r in made.more(outcomes) if r["item"].startswith("variance that a piece adds")]
    assert 0.5 * added["as_printed"] < added["value"] <= added["as_printed"]


def test_what_the_thesis_says_of_its_figure_holds_at_its_sizes():
    """By the formulas: alike up to 0.001 and no more at 0.005."""
    rows = 5_000_000
    for epsilon, alike in ((0.0005, True), (0.001, True), (0.005, False)):
        found = partition.variances(rows=rows, share=0.786, epsilon=epsilon)
        assert (found[partition.PIECE] < 1.21 * found[partition.SHARED]) == alike


def test_pieces_together_are_as_anonymous_as_the_worst_and_not_as_close():
    found = {(line.item, line.query): line.value for line in anonymity.run(0, 0)}
    for way in ("local recoding", "global recoding"):
        for what in ("k", "distinct l"):
            pieces = [found[f"{what}, piece {n + 1}", way] for n in range(anonymity.PIECES)]
            assert found[f"{what}, pieces put together", way] >= min(pieces)
    assert max(found[f"distinct l, piece {n + 1}", "local recoding"] for n in range(anonymity.PIECES)) > 1
    closest = max(found[f"t, piece {n + 1}", "local recoding"] for n in range(anonymity.PIECES))
    assert found["t, pieces put together", "local recoding"] > closest
    told = {item: value for (item, _), value in found.items()}
    assert told["recodings in use over the pieces; more than one is no global recoding"] > 1
    assert told["t of the set with the illness alone"] == told["t of the other set alone"] == 0
    assert told["t of both sets together"] == pytest.approx(0.025)
