"""Whole-number factors: one record moves the sum by its own vector, networks are clipped together, twins break it."""

import numpy as np
import pytest

from reticent.synth.learned import factors, perceptron
from reticent.synth.learned.factors import (
    GRID,
    INPUT,
    LENGTH,
    MOST_INPUT,
    MOST_RESIDUAL,
    STEPS,
    Dense,
    JointGradient,
    clipped,
)
from reticent.synth.learned.gradient import EXPONENTIALS
from reticent.synth.learned.perceptron import (
    Perceptron,
    RowPerceptron,
    logistic,
    praise,
    softmax_residual,
)
from tests.noise.seeded import SeededBits

# covers T21 T23

SIZES = np.array([3, 5, 2, 7])
INTO = np.full((4, 8), -1, dtype=np.int64)
for place, size in enumerate(SIZES):
    INTO[place, :size] = np.arange(size)
LINES = np.where(INTO >= 0, INTO + np.concatenate([[0], np.cumsum(SIZES)[:-1]])[:, None], -1)
MASKS = np.where(np.arange(8) == SIZES[:, None], np.arange(4)[:, None], -1)


def rows_of(seed: int, n: int) -> np.ndarray:
    """A column of cells for each row; the last cell of a column is a missing answer."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size + 1, n) for size in SIZES]).astype(np.uint8)


def on_grid(widths: tuple[int, ...], seed: int, size: float = 1.0) -> Perceptron:
    made = Perceptron.started(widths, SeededBits(seed))
    made.values = np.rint(size * made.values * GRID) / GRID
    return made


def networks(residual=praise, size: float = 1.0) -> tuple[RowPerceptron, ...]:
    """One that reads answers and one that reads what is missing."""
    out = int(SIZES.sum()) if residual is SOFTMAX else 1
    return (
        RowPerceptron(on_grid((17, 12, 9, out), 1, size), LINES, residual),
        RowPerceptron(on_grid((4, 6, 1), 2, size), MASKS, praise),
    )


SOFTMAX = softmax_residual(INTO, SIZES)


def summed(work: JointGradient, rows: np.ndarray) -> np.ndarray:
    totals = np.zeros(work.length, dtype=np.int64)
    work.add(rows, totals)
    return totals


@pytest.mark.parametrize("residual", [praise, logistic, SOFTMAX])
@pytest.mark.parametrize("size", [1.0, 30.0])
def test_one_record_moves_the_sum_by_its_own_vector_of_bounded_length(residual, size: float) -> None:
    """Each of 100 records, two networks together; the bound is nearly met."""
    rows, work = rows_of(1, 100), JointGradient(networks(residual, size))
    whole, lengths = summed(work, rows), []
    for i in range(rows.shape[1]):
        own = summed(work, rows[:, i : i + 1])
        assert (whole - summed(work, np.delete(rows, i, axis=1)) == own).all()
        lengths.append(int((own.astype(object) ** 2).sum()))
    assert max(lengths) <= LENGTH**2
    assert max(lengths) > (0.97 * LENGTH) ** 2


def test_order_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, work = rows_of(3, 500), JointGradient(networks())
    whole = summed(work, rows)
    assert (summed(work, rows[:, np.random.default_rng(5).permutation(500)]) == whole).all()
    monkeypatch.setattr(factors, "CHUNK", 77)
    assert (summed(work, rows) == whole).all()


def float_gradient(network: Perceptron, lines: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The gradient of -output by the public half, in doubles."""
    inputs = np.zeros((1, network.widths[0]))
    used = lines[np.arange(4), row]
    inputs[0, used[used >= 0]] = 1
    return network.backward(network.forward(inputs), -np.ones((1, 1)))[0]


def test_both_halves_are_one_network() -> None:
    """Cosine above .999 with the gradient in doubles, and its length the smaller of the gradient's and the bound."""
    rows = rows_of(6, 60)
    network = on_grid((17, 12, 9, 1), 3, 0.4)
    work = JointGradient((RowPerceptron(network, LINES, praise),))
    for i in range(60):
        own = summed(work, rows[:, i : i + 1]) / LENGTH
        real = float_gradient(network, LINES, rows[:, i])
        assert own @ real > 0.999 * np.linalg.norm(own) * np.linalg.norm(real)
        assert abs(np.linalg.norm(own) - min(1.0, float(np.linalg.norm(real)))) < 0.02


def test_networks_clipped_apart_would_break_the_bound() -> None:
    """The naive twin, met by a canary that is long in both networks: nearly root two of the bound."""
    rows, both = rows_of(1, 100), networks(size=3.0)
    apart = [sum((summed(JointGradient((net,)), rows[:, i : i + 1]).astype(float) ** 2).sum() for net in both)
             for i in range(100)]  # fmt: skip
    assert max(apart) > (1.3 * LENGTH) ** 2


def test_a_respondent_seen_only_through_an_odd_mask_is_within_the_bound() -> None:
    """Nobody else leaves the last column open: their vector has lines that no other row touches, and is no longer."""
    rows = rows_of(1, 100)
    rows[3] = np.minimum(rows[3], SIZES[3] - 1)
    odd = np.append(rows[:3, 0], SIZES[3]).astype(np.uint8)[:, None]
    work = JointGradient(networks())
    own = summed(work, np.hstack([rows, odd])) - summed(work, rows)
    assert (own == summed(work, odd)).all()
    assert 0 < (own.astype(object) ** 2).sum() <= LENGTH**2
    start = sum(networks()[0].sizes)
    assert own[start : start + 24].reshape(4, 6)[3].any()
    assert not summed(work, rows)[start : start + 24].reshape(4, 6)[3].any()


def normalised(factor):
    """Hidden values less the mean of those at hand, over their deviation."""
    if not isinstance(factor, Dense) or factor.inputs.shape[1] == 1:
        return factor
    apart = factor.inputs - factor.inputs.mean(axis=0)
    return Dense(np.trunc(INPUT * apart / (factor.inputs.std(axis=0) + 1)), factor.residuals)


class Normalised(RowPerceptron):
    """The naive twin: batch normalisation."""

    def factors(self, rows):
        return [normalised(factor) for factor in super().factors(rows)]


def test_normalising_over_the_batch_would_let_a_row_move_others() -> None:
    """Twenty rows alike have hidden values of zero until another comes, which then moves the part of all of them."""
    rows = np.repeat(rows_of(1, 1), 21, axis=1)
    rows[:, :1] = rows_of(7, 1)
    for kind, is_sound in ((RowPerceptron, True), (Normalised, False)):
        work = JointGradient((kind(on_grid((17, 12, 9, 1), 1), LINES, praise),))
        moved = summed(work, rows) - summed(work, rows[:, 1:])
        assert ((moved.astype(object) ** 2).sum() <= LENGTH**2) == is_sound


def whole_softmax(logits: list[int], own: int) -> list[int]:
    """Of one column, in Python's whole numbers: chances rounded down, less one where the row's own answer stands."""
    last = len(EXPONENTIALS) - 1
    odds = [int(EXPONENTIALS[min(max(logits) - each, last)]) for each in logits]
    return [each * STEPS // sum(odds) - STEPS * (v == own) for v, each in enumerate(odds)]


@pytest.mark.parametrize("far", [0, 3, 500, 1 << 19])
def test_residuals_of_a_softmax_are_those_of_whole_division(far: int) -> None:
    """300 rows with missing answers among them, logits alike, near and as far apart as they are ever cut to."""
    rows = rows_of(8, 300)
    outputs = np.random.default_rng(far).integers(-far, far, (300, int(SIZES.sum())), endpoint=True)
    made = SOFTMAX(outputs, rows)
    for i in range(300):
        parts, start = [], 0
        for size, cell in zip(SIZES.tolist(), rows[:, i].tolist(), strict=True):
            own = outputs[i, start : start + size].tolist()
            parts += whole_softmax(own, cell) if cell < size else [0] * size
            start += size
        assert made[i].tolist() == parts


def test_what_is_no_number_counts_as_zero() -> None:
    inputs, residuals = np.array([[1.0, np.nan], [256.0, 0.0]]), np.array([[5.0], [np.inf]])
    kept = clipped([Dense(inputs, residuals)])[0]
    assert not kept.any()


def test_a_length_is_tested_in_whole_numbers_up_to_the_bound_itself() -> None:
    """Exactly the bound passes, one step more does not; nor do products whose 64 digits would wrap round to nothing."""
    wide, steps = np.array([float(INPUT**2)]), float(STEPS)
    for residuals, is_short in (([steps, 0.0], True), ([steps, 1.0], False), ([np.nan, 0.0], False)):
        assert factors._is_short([wide], [np.array([residuals])]).tolist() == [is_short]
    halves = [wide / 4, 3 * wide / 4]  # two layers together: a quarter and three quarters of the bound
    assert factors._is_short(halves, [np.array([[steps]])] * 2).tolist() == [True]
    assert factors._is_short(halves, [np.array([[steps]]), np.array([[steps, 1.0]])]).tolist() == [False]
    wrapped = np.array([2.0**32])
    with np.errstate(over="ignore"):
        assert np.array([2**32]) * np.array([2**32]) == 0
    assert factors._is_short([wrapped], [np.array([[2.0**16]])]).tolist() == [False]


def farthest() -> RowPerceptron:
    """Two wide hidden layers, all weights beyond their bound: everything grows as far as it can, forward and backward."""
    network = Perceptron.started((17, 400, 400, 1), SeededBits(1))
    network.values = np.full_like(network.values, 1e6)
    return RowPerceptron(network, LINES, praise)


def is_exact(work: RowPerceptron) -> bool:
    """Whether all factors are whole numbers within the bounds that the proof adds them up by, their squares below 2**53."""
    made = work.factors(rows_of(1, 40))
    inputs = np.concatenate([each.inputs.ravel() for each in made if isinstance(each, Dense)])
    residuals = np.concatenate([each.residuals.ravel() for each in made])
    is_whole = (np.rint(inputs) == inputs).all() and (np.rint(residuals) == residuals).all()
    is_near = np.abs(inputs).max() <= MOST_INPUT and np.abs(residuals).max() <= MOST_RESIDUAL
    squares = [max(each.squares.max(), (each.residuals**2).sum(axis=1).max()) for each in made]
    return bool(is_whole and is_near and max(squares) < 2**53)


def test_factors_stay_within_their_bounds_at_the_farthest_weights() -> None:
    """And the bounds are met, so that something was cut."""
    made = farthest().factors(rows_of(1, 40))
    assert is_exact(farthest())
    assert max(np.abs(each.inputs).max() for each in made if isinstance(each, Dense)) == MOST_INPUT
    assert max(np.abs(each.residuals).max() for each in made) == MOST_RESIDUAL


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("_cut", lambda residuals: residuals),
        ("_bent", lambda bare: np.where(bare > 0, bare, np.trunc(bare / 4))),
    ],
    ids=["residuals", "activations"],
)
def test_a_bound_left_out_would_be_noticed(name: str, twin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perceptron, name, twin)
    assert not is_exact(farthest())


def test_weights_on_the_grid_are_within_their_bound() -> None:
    """The rest of what sums of products rest on; the twin keeps them where they are."""
    network = farthest().network
    most = max(np.abs(part).max() for layer in network.on_grid() for part in layer)
    assert most == perceptron.MOST_WEIGHT * GRID < np.rint(network.values * GRID).max()


def test_the_penalty_is_the_derivative_of_the_slope() -> None:
    """Against finite differences in doubles."""
    rng = np.random.default_rng(0)
    net, at = Perceptron.started((5, 4, 3, 1), SeededBits(1)), rng.normal(size=(6, 5))

    def value(values: np.ndarray) -> float:
        other = Perceptron(net.widths, values)
        slopes = other.backward(other.forward(at), np.ones((6, 1)))[1]
        return float(((np.sqrt((slopes**2).sum(axis=1)) - 1) ** 2).mean())

    steps = 1e-5 * np.eye(len(net.values))
    near = [(value(net.values + step) - value(net.values - step)) / 2e-5 for step in steps]
    assert np.allclose(net.penalty(at), near, atol=1e-8)
