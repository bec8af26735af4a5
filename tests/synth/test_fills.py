"""Strategies before the noise: a row is filled from itself, for no more than was set aside."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reticent.errors import PlanError
from reticent.schema.codebook import schema_from
from reticent.synth.base import Conditional, FitTask, MissingMethod, Spend
from reticent.synth.domain import Domain, domain_of
from reticent.synth.fills import PAGE, check_spend, even_fills, mean_fills, model_fills, parts, prepared
from reticent.synth.marginals.independent import Independent
from reticent.synth.network import Network
from reticent.synth.registry import KNOWN, find
from reticent.synth.spending import rho_within
from tests.synth.replay import APPROXIMATE, PURE, RHO, random_rows
from tests.synth.standins import ArrayCounts, FrozenSynthNoise, NoSynthNoise, toy

EVERY = list(MissingMethod)
UNTOUCHED = (MissingMethod.AVAILABLE, MissingMethod.WEIGHTED, MissingMethod.VALUES)


def ready(
    counts: ArrayCounts, holes: MissingMethod, spend: Spend = PURE, noise: NoSynthNoise | None = None
) -> tuple[ArrayCounts, Spend]:
    task = FitTask(counts, counts.domain, holes, spend, noise=noise or NoSynthNoise(), step=lambda _: None)
    made = prepared(task, model=Independent())
    assert isinstance(made.counts, ArrayCounts)
    assert (made.domain, made.missing, made.noise) == (task.domain, holes, task.noise)
    return made.counts, made.spend


@pytest.mark.parametrize("holes", EVERY)
def test_filling_changes_silent_cells_only_and_leaves_none(holes: MissingMethod) -> None:  # covers T27
    """Also where a column has a universe: whoever was silent was asked, so nobody is filled with `unasked`."""
    domain = toy([3, 4, 2], universes={"b": "a = '1'"})
    counts = random_rows(domain, 200, 1)
    made, _ = ready(counts, holes)
    if holes in UNTOUCHED:
        assert made is counts
        return
    silence = np.array([axis.silence for axis in domain.axes])
    assert not (made.cells == silence).any()
    if holes is not MissingMethod.COMPLETE:
        spoke = counts.cells != silence
        assert (made.cells == counts.cells)[spoke].all()
        assert (made.cells < silence)[~spoke].all()


def naive_fill(cells: np.ndarray, domain: Domain) -> np.ndarray:
    """The naive twin: silence indexes the first category."""
    silence = np.array([axis.silence for axis in domain.axes])
    return np.where(cells == silence, 0, cells)


def test_silence_is_never_the_first_category() -> None:
    """Nobody answers 0 in column a: no paid strategy invents it, the twin does."""
    domain = toy([3, 2])
    counts = random_rows(domain, 300, 2)
    counts = ArrayCounts(np.where(counts.cells == 0, 1, counts.cells), domain)
    for holes in (MissingMethod.MEAN, MissingMethod.MODEL):
        assert (ready(counts, holes)[0].cells[:, 0] > 0).all()
    assert (naive_fill(counts.cells, domain)[:, 0] == 0).any()


@pytest.mark.parametrize(
    "spend", [PURE, APPROXIMATE, RHO, Spend(epsilon=Fraction(3), delta=Fraction(1, 10**9))]
)
@pytest.mark.parametrize("holes", [MissingMethod.MEAN, MissingMethod.MODEL])
def test_what_is_measured_and_what_is_left_are_not_above_the_whole(
    holes: MissingMethod, spend: Spend
) -> None:
    """In epsilon, or in rho: one record's share of all calls, and of the calls still to come."""
    noise = FrozenSynthNoise()
    counts = random_rows(toy([3, 4]), 50, 3)
    _, left = ready(counts, holes, spend, noise)
    first = sum((met.amount for met in noise.met), Fraction(0))
    if spend.rho:
        assert first + left.rho <= spend.rho and left.epsilon == left.delta == 0
    elif spend.delta == 0:
        assert first + left.epsilon <= spend.epsilon
    else:
        assert first + rho_within(left.epsilon, left.delta) <= rho_within(spend.epsilon, spend.delta)
        assert left.delta == spend.delta


@given(
    epsilon=st.fractions(Fraction(1, 20), 8),
    share=st.fractions(Fraction(1, 20), Fraction(19, 20)),
    places=st.integers(3, 9),
)
def test_parts_never_exceed_the_whole_and_waste_next_to_nothing(
    epsilon: Fraction, share: Fraction, places: int
) -> None:
    spend = Spend(epsilon=Fraction(round(epsilon * 1000), 1000), delta=Fraction(1, 10**places))
    first, then = (rho_within(part.epsilon, part.delta) for part in parts(spend, share))
    rho = rho_within(spend.epsilon, spend.delta)
    assert rho - Fraction(4, 10**12) <= first + then <= rho
    assert abs(first - share * rho) <= Fraction(2, 10**12)


def test_naive_halves_of_epsilon_waste_half() -> None:
    """The naive twin cuts epsilon and delta: sound, but it throws away near half of what may be spent."""
    half = replace(APPROXIMATE, epsilon=APPROXIMATE.epsilon / 2, delta=APPROXIMATE.delta / 2)
    naive = 2 * rho_within(half.epsilon, half.delta)
    assert naive < Fraction(6, 10) * rho_within(APPROXIMATE.epsilon, APPROXIMATE.delta)


def test_a_spend_has_one_unit() -> None:
    """epsilon beside rho would be two promises, and nobody could say which one was kept."""
    for spend in (
        replace(PURE, rho=RHO.rho),
        replace(APPROXIMATE, rho=RHO.rho),
        replace(RHO, rho=Fraction(-1)),
    ):
        with pytest.raises(PlanError):
            check_spend(MissingMethod.AVAILABLE, spend)
    check_spend(MissingMethod.MEAN, RHO)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(1), Fraction(3, 2)])
def test_a_share_that_is_no_share_is_refused(share: Fraction) -> None:
    with pytest.raises(PlanError):
        check_spend(MissingMethod.MEAN, PURE, share)


@dataclass(frozen=True)
class Noting(ArrayCounts):
    """Rows that note what they are filled from."""

    fills: list[Conditional] = field(default_factory=list)

    def filled(self, fills, bits):  # type: ignore[no-untyped-def]
        self.fills.extend(fills)
        return ArrayCounts.filled(self, fills, bits)


def noted(cells: np.ndarray, domain: Domain, holes: MissingMethod, noise: FrozenSynthNoise) -> list[object]:
    counts = Noting(cells, domain)
    ready(counts, holes, PURE, noise)
    return [(fill.place, fill.given, fill.table.tolist()) for fill in counts.fills]


@pytest.mark.parametrize("holes", [MissingMethod.MEAN, MissingMethod.MODEL])
def test_what_rows_are_filled_from_is_what_the_noise_gave(holes: MissingMethod) -> None:  # covers T20 T27
    """One transcript on two tables that have little in common: the same fills. Without it (the naive twin), others."""
    book = {
        "survey": {"name": "s", "unit": "row"},
        "columns": {
            "age": {"kind": "integer", "bounds": [0, 3]},
            "sex": {"kind": "categorical", "levels": ["f", "m"]},
        },
    }
    domain = domain_of(schema_from(book))
    one, other = np.array([[0, 0]] * 9 + [[4, 2]]), np.array([[3, 1]] * 5 + [[0, 2]])
    first = FrozenSynthNoise()
    told = noted(one, domain, holes, first)
    assert len(told) == 2 and noted(other, domain, holes, FrozenSynthNoise(script=first.given)) == told
    assert noted(other, domain, holes, FrozenSynthNoise()) != told


def test_numbers_get_the_cell_of_their_mean() -> None:
    """Ages 0 to 99 in bins of ten; known mean 34.5 by the bins' own middles."""
    book = {
        "survey": {"name": "s", "unit": "row"},
        "columns": {"age": {"kind": "integer", "bounds": [0, 99]}},
    }
    domain = domain_of(schema_from(book), bins=10)
    cells = np.array([[3]] * 4 + [[2], [4]] + [[10]] * 5)
    (fill,) = mean_fills(ArrayCounts(cells, domain), domain, PURE, NoSynthNoise())
    assert fill.table.tolist() == [0.0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_categories_get_their_histogram_of_available_cells() -> None:
    domain = toy([2, 2])
    cells = np.array([[0, 2]] * 3 + [[1, 0]] + [[2, 1]] * 8)
    fills = mean_fills(ArrayCounts(cells, domain), domain, PURE, NoSynthNoise())
    assert fills[0].table.tolist() == [0.75, 0.25, 0]
    np.testing.assert_allclose(fills[1].table, [1 / 9, 8 / 9, 0])


def test_every_answer_is_alike_when_drawn_from_the_domain() -> None:
    domain = toy([4])
    (fill,) = even_fills(domain)
    assert fill.table.tolist() == [0.25] * 4 + [0]


class Copier:
    """A network that copies a to b, and nothing else."""

    def fit(self, task: FitTask) -> Network:
        assert task.missing is MissingMethod.AVAILABLE
        copying = np.vstack([np.eye(2, 3), [[0.5, 0.5, 0]]])
        steps = (
            Conditional(place=0, given=(), table=np.array([0.0, 1, 0])),
            Conditional(place=1, given=(0,), table=copying),
        )
        claim = Independent().claim(task.domain, task.missing, task.spend)
        return Network(domain=task.domain, steps=steps, total=1.0, claim=claim)


def test_a_model_fills_in_its_own_order_from_the_row_itself() -> None:
    """b is copied from a, and where a is silent too, from what a was filled with."""
    domain = toy([2, 2])
    cells = np.array([[0, 2], [1, 2], [2, 2], [0, 1]])
    rows = ArrayCounts(cells, domain)
    task = FitTask(rows, domain, MissingMethod.MODEL, PURE, noise=NoSynthNoise(), step=lambda _: None)
    made = prepared(task, model=Copier(), share=Fraction(1, 4))
    assert isinstance(made.counts, ArrayCounts)
    assert made.counts.cells.tolist() == [[0, 0], [1, 1], [1, 1], [0, 1]]
    assert made.spend.epsilon == Fraction(3, 4)


def test_a_network_that_draws_silence_fills_with_answers() -> None:
    domain = toy([2], universes={})
    claim = Independent().claim(domain, MissingMethod.VALUES, PURE)
    steps = (Conditional(place=0, given=(), table=np.array([0.1, 0.3, 0.6])),)
    (fill,) = model_fills(Network(domain=domain, steps=steps, total=1.0, claim=claim))
    np.testing.assert_allclose(fill.table, [0.25, 0.75, 0])


def hot_deck(counts: ArrayCounts) -> ArrayCounts:
    """The naive twin: a silent cell takes the answer of the row above, so one record sits in many rows."""
    cells = counts.cells.copy()
    for row in range(1, len(cells)):
        for place, axis in enumerate(counts.domain.axes):
            if cells[row, place] == axis.silence:
                cells[row, place] = cells[row - 1, place]
    return ArrayCounts(cells, counts.domain)


def fixed(counts: ArrayCounts) -> ArrayCounts:
    """Filling from a public model without chance: each row from itself."""
    fills = [
        Conditional(place=p, given=(), table=np.eye(a.size)[0]) for p, a in enumerate(counts.domain.axes)
    ]
    return counts.filled(fills, NoSynthNoise().bits)


def reach(fill, counts: ArrayCounts) -> int:  # type: ignore[no-untyped-def]
    """How far removing one record moves the full table of filled rows, at most."""
    whole = tuple(range(len(counts.domain.axes)))
    (here,) = fill(counts).count([whole])
    moves = []
    for row in range(len(counts.cells)):
        (there,) = fill(counts.without(row)).count([whole])
        moves.append(int(np.abs(here - there).sum()))
    return max(moves)


def test_filling_has_stability_one_and_a_hot_deck_has_not() -> None:
    """All removals from 40 rows."""
    counts = random_rows(toy([2, 2]), 40, 5)
    assert reach(fixed, counts) == 1
    assert reach(hot_deck, counts) > 1


@pytest.mark.parametrize("name", list(KNOWN))
@pytest.mark.parametrize("holes", EVERY)
def test_a_claim_names_the_page_on_filling_where_rows_are_mapped_first(
    name: str, holes: MissingMethod
) -> None:
    """And every page that it names is there."""
    pages = {page for _, page in find(name).claim(toy([2, 2]), holes, PURE).rests_on}
    assert (PAGE in pages) == (holes not in UNTOUCHED)
    assert all((Path(__file__).parents[2] / page).is_file() for page in pages) and len(pages) >= 2
