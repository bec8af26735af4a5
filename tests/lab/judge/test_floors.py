"""The two floors, and the two mistakes that stand beside them."""

import numpy as np

from reticent.lab.judge.distances import bootstrap, distances, first_for_silence, midpoints, round_trip
from reticent.lab.noise import SeededBits
from reticent.lab.trials.tables import cells_of, with_missing
from reticent.synth.domain import HOLE, UNASKED


def bits(seed: int = 1) -> SeededBits:
    return SeededBits(np.random.default_rng(seed))


def test_through_bins_and_back_every_cell_is_the_same(census):
    """Drawn evenly inside the bin: no distance at all on the same bins, and codes that differ."""
    made = round_trip(census.codes, census.domain(), bits())
    assert np.array_equal(cells_of(made, census.domain()), census.cells())
    assert not np.array_equal(made, census.codes)


def test_midpoints_leave_their_bins(census):
    """The naive twin: the same round trip by mid-points is at a distance without any noise."""
    domain = census.domain()
    made = midpoints(census.codes, domain, bins=16)
    assert distances(census.cells(), cells_of(made, domain), domain)[2] > 0.005
    assert np.array_equal(made == UNASKED, census.codes == UNASKED)


def test_a_bootstrap_holds_rows_of_the_truth_and_no_others(census):
    made = bootstrap(census.codes, np.random.default_rng(2))
    rows = {tuple(row) for row in census.codes.tolist()}
    assert made.shape == census.codes.shape and {tuple(row) for row in made.tolist()} < rows


def test_silence_called_the_first_answer_moves_that_share_to_it(census):
    """Of a fifth of all answers: the first level gains the masked share of the others."""
    mask = np.random.default_rng(3).random(census.codes.shape) < 0.2
    domain = census.domain()
    holed = cells_of(with_missing(census.codes, mask), domain)
    place = domain.columns.index("race")
    called = first_for_silence(holed, domain)[:, place]
    assert (called == 0).mean() == (mask[:, place] | (census.cells()[:, place] == 0)).mean()
    assert (holed[:, place] == domain.axes[place].silence).mean() == mask[:, place].mean()


def test_a_mask_takes_answers_and_leaves_the_unasked(census):
    gone = with_missing(census.codes, np.ones(census.codes.shape, dtype=bool))
    assert set(np.unique(gone)) == {HOLE, UNASKED}
    assert np.array_equal(gone == UNASKED, census.codes == UNASKED)
