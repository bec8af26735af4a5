"""Naive synthesizers, each wrong in a few lines, and each caught by the replay that the real ones pass."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from reticent.synth import fills
from reticent.synth.base import FitTask, MissingMethod, Spend, SynthesisMethod
from reticent.synth.marginals import independent, privbayes, study
from reticent.synth.marginals import study as scoring
from reticent.synth.marginals.aim import AIM
from reticent.synth.marginals.independent import Independent
from reticent.synth.marginals.mst import MST
from reticent.synth.marginals.privbayes import PrivBayes, Search
from reticent.synth.marginals.study import MarginalFit
from reticent.synth.spending import Accountant
from tests.attacks.synth_worlds import SMALL, Records, apart, faults, fitted, records
from tests.synth.standins import FrozenSynthNoise, NoSynthNoise, toy

# covers T05 T08 T10 T11 T12 T20 T27

PURE = Spend(epsilon=Fraction(1))
HERE = records(SMALL, 6, 5)
QUICK_AIM = AIM(iterations=2, last=2, per_column=2, merge=0)
QUICK_MST = MST(iterations=2, merge=0)
CALLS, MOVES, TELLS, SPENDS = (
    "asks otherwise of a neighbour",
    "moves further than it says",
    "says more than the noise let out",
    "spends more than it has",
)
Patch = pytest.MonkeyPatch


def pruned_by_the_data(patch: Patch) -> None:
    """Candidates are pairs that somebody is in, and in every cell."""
    honest = AIM._small

    def small(self: AIM, seen: MarginalFit, options: Any) -> Any:
        kept = honest(self, seen, options)
        return [each for each in kept if seen.held[each.places][:2].all()] or kept[:1]

    patch.setattr(AIM, "_small", small)


def scaled_by_the_confidential_n(patch: Patch) -> None:
    """Shares for counts: a score divided by the rows there are."""

    def score(self: MarginalFit, places: Any, model: Any) -> int:
        table = self.view.table(self.held[places], places)
        return int(scoring.UNIT * np.abs(100 * table / max(1, table.sum()) - model).sum())

    patch.setattr(MarginalFit, "score", score)


def merged_by_exact_counts(patch: Patch) -> None:
    """Cells that few are in are put together, before the noise."""
    honest, honest_merged = MarginalFit.start, study.merged

    def start(self: MarginalFit, **given: Any) -> None:
        def merged(view: Any, ones: Any, *, least: Any) -> Any:
            exact = [view.table(self.held[(place,)], (place,)).astype(float) for place in range(len(ones))]
            return honest_merged(view, exact, least=[1.5] * len(ones))

        patch.setattr(study, "merged", merged)
        honest(self, **given)

    patch.setattr(MarginalFit, "start", start)


def levels_seen(patch: Patch) -> None:
    """Empty cells are dropped: only answers that were given get noise."""
    honest, honest_alone = independent.Accountant.measure, independent._alone

    def measure(self: Any, tables: Any, **given: Any) -> Any:
        return honest(self, [table[table > 0] for table in tables], **given)

    def alone(place: int, cells: Any) -> Any:
        return honest_alone(place, np.resize(cells, 2))

    patch.setattr(independent.Accountant, "measure", measure)
    patch.setattr(independent, "_alone", alone)


def filled_from_exact_histograms(patch: Patch) -> None:
    """Means of the answers that were given, without noise: every filled row tells of every other."""

    class Open(Accountant):
        def measure(self, tables: Any, *, amount: Any) -> Any:
            noisy = Accountant.measure(self, tables, amount=amount)
            return [
                replace(each, cells=table.astype(float)) for each, table in zip(noisy, tables, strict=True)
            ]

    patch.setattr(fills, "Accountant", Open)


def filled_for_free(patch: Patch) -> None:
    """The model that fills takes the whole amount, and so does the one that is published."""
    patch.setattr(fills, "parts", lambda spend, share: (spend, spend))


def total_of_complete_rows(patch: Patch) -> None:
    """How many rows have no hole is said as it is."""
    honest = Independent.fit

    def fit(self: Any, task: Any) -> Any:
        return replace(honest(self, task), total=float(len(task.counts.complete().cells)))

    patch.setattr(Independent, "fit", fit)


def nothing_asked_of_nobody(patch: Patch) -> None:
    """An empty table is spared the noise."""
    honest = Independent.fit

    def fit(self: Any, task: Any) -> Any:
        noise = task.noise if len(task.counts.cells) else type(task.noise)()
        return honest(self, replace(task, noise=noise))

    patch.setattr(Independent, "fit", fit)


def tau_from_the_exact_n(patch: Patch) -> None:
    """Which tables are worth their noise is judged by the rows that are there, complete ones too."""
    patch.setattr(PrivBayes, "_rows", lambda self, search: float(len(search.counts.cells)))


def parents_of_most_answers(patch: Patch) -> None:
    """The first column is that with the fewest holes, not one by lot."""

    def first(self: Search) -> Any:
        silent = [(self.counts.cells[:, a] == axis.silence).sum() for a, axis in enumerate(self.domain.axes)]  # type: ignore[attr-defined]
        return privbayes.ParentChoice(place=int(np.argmin(silent)), parents=())

    patch.setattr(Search, "by_lot", first)


def rows(levels: list[int], cells: list[list[int]]) -> Records:
    return Records(np.array(cells), tuple(range(len(cells))), toy(levels))


RARE = rows([3, 2], [[0, 0], [0, 1], [0, 0], [0, 1], [1, 1], [2, 0]])
SILENT = rows([2, 2], [[0, 0], [1, 1], *([[2, 2]] * 20)])
EVEN = rows([2, 2], [[2, 0], [0, 2], [1, 1]])
RICH = replace(PURE, epsilon=Fraction(50))
NOBODY = records(SMALL, 0, 6)
NINE = records(toy([3, 3, 3]), 9, 3, is_counted=True)
TWINS: list[tuple[Callable[[Patch], None], SynthesisMethod, Records, MissingMethod, Spend, set[str]]] = [
    (pruned_by_the_data, QUICK_AIM, HERE, MissingMethod.VALUES, PURE, {CALLS}),
    (scaled_by_the_confidential_n, QUICK_AIM, HERE, MissingMethod.COMPLETE, PURE, {MOVES}),
    (merged_by_exact_counts, QUICK_MST, RARE, MissingMethod.RANDOM, PURE, {CALLS, TELLS}),
    (levels_seen, Independent(), HERE, MissingMethod.RANDOM, PURE, {CALLS}),
    (filled_from_exact_histograms, Independent(), SILENT, MissingMethod.MEAN, PURE, {MOVES}),
    (filled_for_free, QUICK_MST, HERE, MissingMethod.MODEL, PURE, {SPENDS}),
    (total_of_complete_rows, Independent(), HERE, MissingMethod.COMPLETE, PURE, {TELLS}),
    (nothing_asked_of_nobody, Independent(), NOBODY, MissingMethod.AVAILABLE, PURE, {CALLS}),
    (tau_from_the_exact_n, PrivBayes(useful=4.63), NINE, MissingMethod.VALUES, RICH, {CALLS}),
    (parents_of_most_answers, PrivBayes(), EVEN, MissingMethod.AVAILABLE, PURE, {CALLS, TELLS}),
]


@pytest.mark.parametrize(
    ("plant", "method", "here", "holes", "spend", "expected"), TWINS, ids=[each[0].__name__ for each in TWINS]
)
def test_the_replay_rejects_naive_twins(plant, method, here, holes, spend, expected, monkeypatch) -> None:
    """The same call finds nothing before the bug is planted, and the bug after."""
    assert faults(method, here, holes, spend) == []
    plant(monkeypatch)
    assert expected & set(faults(method, here, holes, spend))


def wrapped(table: np.ndarray, model: np.ndarray) -> int:
    """The naive twin of `distance`: sums of 64 bits, whatever the noise has made of the model."""
    with np.errstate(all="ignore"):
        return int(np.abs(scoring.UNIT * table - np.rint(scoring.UNIT * model).astype(np.int64)).sum())


def test_a_score_of_a_huge_model_does_not_wrap_around() -> None:
    """Half the range of 64 bits in each of two cells: the sum of the twin moves by 2^64, ours by no more than it says."""
    nobody, somebody = np.array([0, 0]), np.array([1, 0])
    for power in (40, 57, 58, 59, 62, 63, 64, 200):
        model = np.full(2, 2.0**power)
        assert 0 <= scoring.distance(nobody, model) < 2**63
        assert abs(scoring.distance(somebody, model) - scoring.distance(nobody, model)) <= scoring.UNIT
    half = np.full(2, 2.0**58)
    assert abs(wrapped(somebody, half) - wrapped(nobody, half)) > 2**63
    small = np.array([3.3, 0.2])
    assert wrapped(somebody, small) == scoring.distance(somebody, small)


def test_the_replay_finds_a_score_that_wraps_around(monkeypatch) -> None:
    """Noise of 2^58, which a tiny epsilon makes an ordinary thing for respondents of thousands of records."""
    here = rows([2, 2], [[0, 0], [0, 1]])
    script = [(2**58, 2**58, 0), (2**59, 0, 0), (0,), (0,) * 9]

    def found() -> list[str]:
        first, other = (
            fitted(QUICK_MST, each, MissingMethod.VALUES, PURE, FrozenSynthNoise(script=script))
            for each in (here, here.without(1))
        )
        return apart(first, other)

    assert found() == []
    monkeypatch.setattr(study, "distance", wrapped)
    assert MOVES in found()


def first_category(here: Records) -> Records:
    """The naive reading of a missing code: it indexes a category, the first one or the last."""
    silence = np.array([axis.silence for axis in here.domain.axes])
    return replace(here, cells=np.where(here.cells == silence, 0, here.cells))


def test_silence_read_as_a_category_is_no_leak_but_a_bias() -> None:
    """No replay can see it: rows are mapped one by one. The chance of the first category shows it."""
    cells = np.array([[0, 0]] * 10 + [[1, 1]] * 30 + [[2, 2]] * 20)
    here = Records(cells, tuple(range(60)), SMALL)
    for holes in (MissingMethod.COMPLETE, MissingMethod.AVAILABLE, MissingMethod.MEAN, MissingMethod.MODEL):
        made, naive = (
            Independent().fit(FitTask(rows, SMALL, holes, PURE, noise=NoSynthNoise(), step=lambda _: None))  # type: ignore[arg-type]
            for rows in (here, first_category(here))
        )
        assert abs(made.steps[0].table[0] - 1 / 4) < 0.1
        assert naive.steps[0].table[0] == pytest.approx(1 / 2)
    assert faults(Independent(), first_category(HERE), MissingMethod.AVAILABLE, PURE) == []
