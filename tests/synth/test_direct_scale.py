"""The noise that an answer claims, beside the noise that it has: the same rows measured again and again.

Where rows are left out, every list is scaled by a noisy number of rows that answered. That noise belongs to the answer.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from reticent.schema.codebook import schema_from
from reticent.synth.answer import answer_directly
from reticent.synth.base import FitTask, MissingMethod, Spend
from reticent.synth.direct import estimated
from reticent.synth.domain import domain_of
from reticent.synth.functionals import values_in, variable_of
from reticent.synth.lists import Lists, as_available
from reticent.synth.marginals.pairs import AllPairs
from reticent.synth.questions import read_question
from reticent.synth.residuals import with_fine_axes
from tests.synth.standins import ArrayCounts, NoSynthNoise

DRAWS = 400
SPEND = Spend(epsilon=Fraction(1), delta=Fraction(1, 10**6))
QUESTIONS = (
    {"mean": "gain"},
    {"difference": "gain", "between": ["sex = 'f'", "sex = 'm'"]},
    {"proportion": "sex = 'f'"},
    {"proportion": "sex = 'f' and region = 's'"},
    {"proportion": "region = 's'", "where": "sex = 'f'"},
    {"regression": "sex = 'f'", "on": ["gain"]},
    {"regression": "sex = 'f'", "on": ["gain", "region = 's'"]},
)


def exact(missing: MissingMethod, *, asked: bool = False, untold: float = 0.2) -> Lists:
    """Lists without noise of 4,000 people of whom most gain next to nothing, a fifth of all answers missing.

    With `asked` only women are asked for their region, of whom `untold` do not tell it.
    """
    rng = np.random.default_rng(7)
    columns = {
        "sex": {"kind": "categorical", "levels": ["f", "m"]},
        "region": {
            "kind": "categorical",
            "levels": ["n", "s", "w"],
            "universe": "sex = 'f'" if asked else "",
        },
        "gain": {"kind": "integer", "bounds": [0, 99]},
    }
    domain = domain_of(schema_from({"survey": {"name": "g", "unit": "row"}, "columns": columns}), bins=4)
    wide, rows = with_fine_axes(domain), 4_000
    sex = (rng.random(rows) < 0.4).astype(int)
    region = np.where(sex == 1, rng.integers(0, 2, rows), rng.integers(0, 3, rows))
    gain = np.where(rng.random(rows) < 0.9 - 0.2 * sex, 3, rng.integers(0, 100, rows))
    binned = np.searchsorted(np.array(domain.axes[2].key.starts), gain, side="right") - 1
    lost = rng.random((rows, 3)) < [0.2, untold, 0.2]
    cells = [sex, region, binned, gain]
    held = [
        np.where(lost[:, min(at, 2)], axis.silence, each)
        for at, (each, axis) in enumerate(zip(cells, wide.axes, strict=True))
    ]
    if asked:
        held[1] = np.where(sex == 0, held[1], wide.axes[1].unasked)
    task = FitTask(
        ArrayCounts(np.stack(held, axis=1), wide),
        domain,
        missing,
        SPEND,
        noise=NoSynthNoise(),
        step=lambda _: None,
    )
    lists = AllPairs(most_pairs=0, iterations=1, last=1).fit(task).lists
    assert lists is not None
    return lists


def noisy(lists: Lists, rng: np.random.Generator) -> Lists:
    """The same with noise on every entry."""
    made = tuple(
        replace(
            each,
            cells=each.cells + rng.normal(0, each.deviation, len(each.cells)),
            left=each.left + rng.normal(0, each.deviation, len(each.left)),
            sums=each.sums + rng.normal(0, 1, len(each.sums)) * each.sum_deviations,
        )
        for each in lists.lists
    )
    return replace(lists, lists=made)


@pytest.mark.parametrize("missing", [MissingMethod.WEIGHTED, MissingMethod.AVAILABLE])
def test_the_noise_that_is_claimed_is_the_noise_there_is(missing):
    """400 draws: a variance is known to 7 %, and eight are compared; 30 % off is a chance of about 1e-4.

    The twin takes the rows left out to be known, and the total to be no list's own: of a mean it claims .57 of what there is.
    """
    lists, rng = exact(missing), np.random.default_rng(3)
    asked = [read_question(raw, lists.domain) for raw in QUESTIONS]
    found, claimed, twin = [], [], []
    for _ in range(DRAWS):
        drawn = noisy(lists, rng)
        answers = [each for question in asked for each in answer_directly(question, drawn)]
        found.append([each.estimate for each in answers])
        claimed.append([each.noise for each in answers])
        twin.append(_with_known_scale(as_available(drawn), asked[0]))
    there, told = np.var(found, axis=0), np.mean(np.square(claimed), axis=0)
    assert (told > 0.7 * there).all()
    assert (told < 1.35 * there).all()
    assert np.mean(twin) < 0.75 * there[0]


def _with_known_scale(lists: Lists, question) -> float:
    """The variance of a mean's midpoints, were the total the only thing that scales a list."""
    table = estimated(lists, (2,))
    assert table is not None
    values = values_in(table, variable_of(question)).values
    mean = float(values @ table.table)
    q = values - mean
    borrowed = float(table.borrowed(q)[-1])
    spread = lists.total_variance / lists.total**2
    return float(np.square(q - borrowed) @ table.own.variance) + borrowed**2 * spread


@pytest.mark.parametrize("missing", [MissingMethod.WEIGHTED, MissingMethod.AVAILABLE])
def test_what_bins_take_is_scaled_by_who_answers_in_its_own_block(missing):
    """Three in five of the women do not tell their region, and nobody else is asked for it.

    Without noise the men's mean gain is what it is with all regions told. The twin, scaled by the least response of the table,
    says 9.6 for 18.2.
    """
    asked = {"mean": "gain", "where": "region is structural"}
    lists, whole = (exact(missing, asked=True, untold=untold) for untold in (0.6, 0.0))
    (told,), (true,) = (answer_directly(read_question(asked, each.domain), each) for each in (lists, whole))
    assert told.estimate == pytest.approx(true.estimate, abs=0.2)
    assert told.answered == pytest.approx(
        0.8, abs=0.02
    )  # of the women that told their region it would be .32
