"""The lab on pieces and on weights to known totals, small: the methods are what they say, and the ways differ as they must."""

from collections import defaultdict

import numpy as np
import pytest

from reticent.lab.experiments import find, partition, poststratify
from reticent.lab.run.experiment import OURS
from reticent.lab.world.poverty import QUERIES, small_state

SIZE = 40_000


@pytest.fixture(scope="module")
def lines():
    """Twelve runs on a state of 40,000."""
    made = poststratify.experiment(size=SIZE)
    found = defaultdict(list)
    for index in range(12):
        for line in made.run(index, made.seed_of(index, 1)):
            found[line.method, line.query, line.epsilon].append(line)
    return found


def rmse(lines, method, query, epsilon) -> float:
    return float(np.sqrt(np.mean([(x.estimate - x.truth) ** 2 for x in lines[method, query, epsilon]])))


def test_the_state_is_what_strategies_and_queries_say():
    state = small_state(SIZE)
    assert {int(sum(each.totals)) for each in state.candidates.strategies} == {SIZE}
    counts = [int(state.counted[query].sum()) for query in QUERIES]
    assert counts[0] > counts[1] > 0 and counts[2] > 0
    assert not (state.counted[QUERIES[1]] & ~state.counted[QUERIES[0]]).any()


def test_weights_take_away_a_bias_that_scaling_keeps(lines):
    """Women of 30 to 39, where people under 25 answer half as often: the naive weight is too large by a sixth or so."""
    query = f"{QUERIES[1]}, {poststratify.HALF}"
    assert rmse(lines, OURS, query, 5.0) < rmse(lines, poststratify.SAMP, query, 5.0)
    naive = [x.estimate / x.truth - 1 for x in lines[poststratify.SAMP, query, 5.0]]
    assert np.mean(naive) > 0.1


def test_who_knows_everybody_is_not_a_curator_of_a_sample(lines):
    for way in (poststratify.HALF, poststratify.EVEN):
        query = f"{QUERIES[0]}, {way}"
        assert rmse(lines, poststratify.POP, query, 1.0) < 20 < rmse(lines, OURS, query, 1.0)


def test_intervals_are_told_where_they_are_known(lines):
    for (method, _, _), found in lines.items():
        assert all((x.low is None) == (method == poststratify.THESIS) for x in found)


def test_one_small_bin_makes_a_choice_a_lottery():
    """Delta, which the choice is paid in, grows with bins over the smallest total."""
    plain, small = (small_state(SIZE, each).candidates for each in (False, True))
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
