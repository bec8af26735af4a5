"""Kamino and KaminoI: the exact step, fills from the row itself, replay on neighbours with twins, and what is learned."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from reticent.errors import PlanError, SourceError
from reticent.synth.base import MissingMethod
from reticent.synth.learned import kamino
from reticent.synth.learned.attention import FARTHEST, WIDE, AttentionGradient, ColumnOrder
from reticent.synth.learned.gradient import GRID, LENGTH
from reticent.synth.learned.kamino import ColumnPace, Kamino, bounds, sequence
from reticent.synth.marginals.study import plain
from reticent.synth.saved import load, save
from tests.noise.seeded import SeededBits
from tests.synth.learned.test_chain import together
from tests.synth.marginals.trees import faults_when_replaced
from tests.synth.replay import APPROXIMATE, NOT_FILLED, PURE, alike, faults, random_rows, run
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, QuickSynthNoise, toy

# covers T20 T21 T23 T27

DOMAIN = toy([3, 2, 4, 5])
VIEW = plain(DOMAIN, MissingMethod.AVAILABLE)
ORDER = ColumnOrder.of(VIEW, [2, 0, 3, 1])
QUICK = Kamino(pace=ColumnPace(steps=3))
FILLING = replace(QUICK, fills=True, name="kamino-i")


@pytest.fixture(autouse=True)
def few_simulated(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Replays need no exact biases: those who look at what was learned ask for them."""
    if "learns" not in request.node.name:
        monkeypatch.setattr(kamino, "SIMULATED", 64)


def rows_of(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, axis.size, n) for axis in DOMAIN.axes]).astype(np.uint8)


def weights_of(seed: int, column: int, size: float) -> np.ndarray:
    far = bounds(ORDER, column)
    made = np.random.default_rng(seed).normal(0, size, ORDER.length(column))
    return np.rint(np.clip(made, -far, far) * GRID).astype(np.int64)


def summed(column: int, weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    totals = np.zeros(ORDER.length(column), dtype=np.int64)
    AttentionGradient(columns=ORDER, column=column, weights=weights).add(rows, totals)
    return totals


@pytest.mark.parametrize("column", [1, 3])
@pytest.mark.parametrize("size", [0.0, 1.0, 100.0])
def test_one_record_moves_the_sum_by_its_own_vector_of_bounded_length(column: int, size: float) -> None:
    """Every record of 150, at weights from none to the farthest there are; the bound is nearly met."""
    rows, weights = rows_of(1, 150), weights_of(2, column, size)
    whole, lengths = summed(column, weights, rows), []
    for i in range(rows.shape[1]):
        own = summed(column, weights, rows[:, i : i + 1])
        assert (whole - summed(column, weights, np.delete(rows, i, axis=1)) == own).all()
        lengths.append(int((own.astype(object) ** 2).sum()))
    assert max(lengths) <= LENGTH**2
    assert size == 0 or max(lengths) > (0.98 * LENGTH) ** 2
    order = np.random.default_rng(5).permutation(150)
    assert (summed(column, weights, rows[:, order]) == whole).all()


def loss(values: np.ndarray, column: int, row: np.ndarray) -> float:
    """Cross-entropy of one row in doubles, straight from the definition; `row` has groups in the order, -1 for none."""
    one, two, three, _ = ORDER.ends(column)
    seen = [k for k in range(column) if row[k] >= 0]
    mixed = np.zeros(WIDE)
    if seen:
        weights = np.exp(values[seen] - values[seen].max())
        lines = values[one:two].reshape(-1, WIDE)[[ORDER.offsets[k] + row[k] for k in seen]]
        mixed = weights / weights.sum() @ lines
    logits = values[two:three].reshape(-1, WIDE) @ mixed + values[three:]
    return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[row[column]])


def test_the_vector_points_where_the_gradient_does() -> None:
    """Cosine above .999 with finite differences of the loss, over thirty rows with missing cells among them."""
    rows, column = rows_of(4, 60), 3
    weights = weights_of(7, column, 0.5)
    steps = 1e-5 * np.eye(len(weights))
    met = 0
    for i in range(60):
        row = np.array([ORDER.into[k, rows[ORDER.order[k], i]] for k in range(4)])
        if row[column] < 0:
            assert not summed(column, weights, rows[:, i : i + 1]).any()
            continue
        real = weights / GRID
        near = np.array([(loss(real + s, column, row) - loss(real - s, column, row)) / 2e-5 for s in steps])
        own = summed(column, weights, rows[:, i : i + 1]) / LENGTH
        assert own @ near > 0.999 * np.linalg.norm(own) * np.linalg.norm(near)
        assert abs(np.linalg.norm(own) - min(1.0, float(np.linalg.norm(near)))) < 0.01
        met += 1
    assert met > 30


def test_squares_do_not_overflow_at_the_farthest_weights() -> None:
    """All numbers at their bounds, of the sign that makes the gradient longest."""
    row = np.zeros((4, 1), dtype=np.uint8)
    for sign in (1, -1):
        far = bounds(ORDER, 3)
        far[3:] = np.where(np.arange(len(far) - 3) % 2, sign * FARTHEST, FARTHEST)
        own = summed(3, np.rint(far * GRID).astype(np.int64), row)
        assert (own.astype(object) ** 2).sum() <= LENGTH**2


@pytest.mark.parametrize("holes", NOT_FILLED)
def test_replay_on_neighbours(holes: MissingMethod) -> None:
    domain = toy([2, 3, 2], universes={"b": "a = '1'"})
    counts = random_rows(domain, 8, 1)
    assert faults(QUICK, counts, holes, APPROXIMATE) == []
    found, most = faults_when_replaced(QUICK, counts, holes, APPROXIMATE)
    assert found == [] and most <= 1


@dataclass(frozen=True)
class Labelled(ArrayCounts):
    """Rows with names; what is drawn for a row depends on its name and the column's turn, as if drawn before all else."""

    names: tuple[int, ...] = ()
    turn: int = 0

    def redrawn(self, fill, bits):
        block = np.ascontiguousarray(self.cells.T.astype(np.uint16))
        seeds = [np.random.default_rng([name, self.turn]).integers(2**63) for name in self.names]
        fill.fill(block, np.array(seeds, dtype=np.uint64) << np.uint64(1))
        return Labelled(block.T.astype(np.int64), self.domain, self.names, self.turn + 1)

    def without(self, row: int) -> "Labelled":
        kept = tuple(name for at, name in enumerate(self.names) if at != row)
        return Labelled(np.delete(self.cells, row, axis=0), self.domain, kept, self.turn)


def faults_when_filled(counts: Labelled) -> list[str]:
    """Each record removed, with every other row's draws as they were."""
    first, found = FrozenSynthNoise(), []
    model = run(FILLING, counts, MissingMethod.AVAILABLE, APPROXIMATE, first)
    for row in range(len(counts.cells)):
        again = FrozenSynthNoise(script=first.given)
        same = run(FILLING, counts.without(row), MissingMethod.AVAILABLE, APPROXIMATE, again)
        assert [m.parameters for m in again.met] == [m.parameters for m in first.met]
        if any(a.distance(b) > a.sensitivity for a, b in zip(first.met, again.met, strict=True)):
            found.append("moves further than it says")
        if not alike(model, same):
            found.append("says more than the noise let out")
    return found


def holed(n: int) -> Labelled:
    rows = random_rows(toy([2, 3, 2], universes={"b": "a = '1'"}), n, 3)
    return Labelled(rows.cells, rows.domain, tuple(range(n)))


def test_replay_with_fills_that_stay() -> None:
    """KaminoI: filled rows are seen by later models, and one record still moves nothing but its own part."""
    assert faults_when_filled(holed(12)) == []


class BatchMean:
    """The naive twin: missing cells become the mean of the column's answers at hand."""

    def __init__(self, fill) -> None:
        self.own = fill

    def fill(self, block, words) -> None:
        place = int(self.own.columns.order[self.own.column])
        told = block[place][block[place] < self.own.silence]
        block[place][block[place] == self.own.silence] = np.uint16(np.rint(told.mean())) if len(told) else 0


def test_replay_notices_fills_from_the_mean_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    made = kamino.fill_of
    monkeypatch.setattr(kamino, "fill_of", lambda *given: BatchMean(made(*given)))
    cells = np.array([[0, 0, 0], [2, 1, 2], [2, 1, 2], [2, 1, 2], [2, 1, 2], [1, 0, 1], [2, 1, 2]])
    domain = toy([2, 3, 2])
    rows = Labelled(np.where(cells == 2, [2, 3, 2], cells), domain, tuple(range(7)))
    assert "moves further than it says" in faults_when_filled(rows)


def test_fills_change_missing_cells_alone_and_leave_none() -> None:
    """Nobody who was asked is filled with `not asked`, and nothing that was answered is touched."""
    counts = holed(200)
    model = run(FILLING, counts, MissingMethod.AVAILABLE, APPROXIMATE, QuickSynthNoise(1))
    rows = counts
    for fill in model.fills():
        rows = rows.redrawn(fill, SeededBits(1))
    silence = np.array([axis.silence for axis in counts.domain.axes])
    was = counts.cells == silence
    assert (rows.cells[~was] == counts.cells[~was]).all()
    assert (rows.cells < silence)[was].all()


@pytest.mark.parametrize(("method", "lost"), [(QUICK, 0.0), (QUICK, 0.3), (FILLING, 0.3)])
def test_without_noise_it_learns_the_table(method: Kamino, lost: float) -> None:
    """Pairs within .06 of the truth, half of the summed differences; independent columns would be .4 away."""
    method = replace(method, pace=ColumnPace(steps=60, rate=0.15))
    model = run(method, together(20_000, 3, lost), MissingMethod.AVAILABLE, APPROXIMATE, NoSynthNoise())
    truth, made = together(20_000, 3, 0.0).cells, model.draw(20_000, SeededBits(4))
    pairs = [np.bincount(3 * rows[:, 0] + rows[:, 1], minlength=9) / len(rows) for rows in (truth, made)]
    assert np.abs(pairs[0] - pairs[1]).sum() / 2 < 0.06
    assert abs(model.total - 20_000) < 1


def test_the_order_is_that_of_constraints_then_of_size() -> None:
    assert sequence(toy([5, 2, 4, 3]), ()) == [1, 3, 2, 0]
    assert sequence(toy([5, 2, 4, 3]), (("c", "a"), ("a", "d"))) == [2, 0, 3, 1]


@pytest.mark.parametrize(
    ("method", "domain", "holes", "spend", "words"),
    [
        (QUICK, toy([2, 3]), MissingMethod.AVAILABLE, PURE, "needs a delta"),
        (QUICK, toy([2]), MissingMethod.AVAILABLE, APPROXIMATE, "for one, use independent"),
        (QUICK, toy([10_000] * 10), MissingMethod.AVAILABLE, APPROXIMATE, "name fewer columns or bins"),
        (FILLING, toy([2, 3]), MissingMethod.VALUES, APPROXIMATE, "draws missing answers itself"),
    ],
)
def test_what_cannot_be_fitted_is_refused_before_a_row(method, domain, holes, spend, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        method.check(domain, holes, spend)


@pytest.mark.parametrize("rows", [0, 1])
def test_nobody_and_one_row_take_the_same_path(rows: int) -> None:
    """As many calls of the noise as for many rows, and rows to draw."""
    counts, noise = random_rows(DOMAIN, rows, 1), FrozenSynthNoise()
    model = run(QUICK, counts, MissingMethod.AVAILABLE, APPROXIMATE, noise)
    assert len(noise.met) == 4 + 3 * QUICK.pace.steps
    drawn = model.draw(50, SeededBits(1))
    assert (drawn < [axis.silence for axis in DOMAIN.axes]).all()


def test_a_saved_model_comes_back_and_one_without_an_order_does_not(tmp_path) -> None:
    rows = together(500, 2, 0.1)
    model = run(QUICK, rows, MissingMethod.AVAILABLE, APPROXIMATE, QuickSynthNoise(1))
    save(model, tmp_path / "model")
    again = load(tmp_path / "model", rows.domain.schema)
    assert (again.claim, again.total) == (model.claim, model.total)
    assert (again.draw(100, SeededBits(1)) == model.draw(100, SeededBits(1))).all()
    for wrong in (np.nan, 7.0):
        bent = model.parameters.copy()
        bent[0] = wrong
        save(replace(model, parameters=bent), tmp_path / str(wrong))
        with pytest.raises(SourceError, match="no order"):
            load(tmp_path / str(wrong), rows.domain.schema)
