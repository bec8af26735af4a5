"""Correlations without donors: bounds by brute force, the textbook's value, intervals that cover."""

from fractions import Fraction
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from reticent.lab.noise import QuickNoise
from reticent.plan.plan import Plan
from reticent.refine import pivot
from reticent.release.statistics import evaluate
from tests.answer.donating import World
from tests.answer.test_imputed import Prescribed
from tests.audit import ALARM
from tests.doubles import Call, ZeroNoise
from tests.tables import ADD, REPLACE, book, make_plan

COLUMNS = {
    "y": {"kind": "integer", "bounds": [-1, 2]},
    "z": {"kind": "decimal", "bounds": [0, 2], "grid": "0.5"},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
CORNERS = [{"y": y, "z": z, "w": w} for y, z, w in product([-1, 2, None], [0, 4, None], [2])]
CORNERS += [{"y": 2, "z": 4, "w": 0}, {"y": 0, "z": 1, "w": None}]


def plan_of(change: str = ADD, **query: Any) -> Plan:
    asks = {0: {"size": query.pop("size")}} if "size" in query else {}
    return make_plan([{"correlation": ["y", "z"], **query}], book(COLUMNS), change=change, asks=asks)


def tables(people: list[Any], size: int) -> list[tuple[int, ...]]:
    return [t for n in range(size + 1) for t in combinations_with_replacement(range(len(people)), n)]


def calls_of(plan: Plan, rows: list[Any], output: int) -> list[Call]:
    noise = Prescribed(output)
    evaluate(plan, World(plan, rows).tallies(tuple(range(len(rows)))), noise)
    return noise.calls


@pytest.mark.parametrize("change", [ADD, REPLACE])
@pytest.mark.parametrize("weight", [{}, {"weight": "w"}], ids=["heads", "weighted"])
@pytest.mark.parametrize("output", [-50, 1, 50])
def test_no_neighbour_is_further_than_the_bound_and_some_is_as_far(change, weight, output):
    """Sound and tight, for every sum, about low, middle and high means."""
    plan = plan_of(change, **weight)
    known = {t: calls_of(plan, [CORNERS[i] for i in t], output) for t in tables(CORNERS, 2)}
    if change == ADD:
        pairs = [(t, tuple(sorted((*t, i)))) for t in tables(CORNERS, 1) for i in range(len(CORNERS))]
    else:
        pairs = [
            (tuple(sorted((*t, i))), tuple(sorted((*t, j))))
            for t in tables(CORNERS, 1)
            for i, j in combinations(range(len(CORNERS)), 2)
        ]
    for place, call in enumerate(known[()]):
        far = max(known[a][place].distance(known[b][place]) for a, b in pairs)
        assert far == call.sensitivity, f"question {place} moves {far}, declared {call.sensitivity}"


@pytest.mark.parametrize("weight", [{}, {"weight": "w"}], ids=["heads", "weighted"])
def test_without_noise_it_is_the_textbooks_about_rounded_means(weight):
    """Of those who answered both."""
    rng = np.random.default_rng(5)
    rows = [
        {"y": int(y), "z": int(z) if i % 6 else None, "w": int(w)}
        for i, (y, z, w) in enumerate(
            zip(rng.integers(-1, 3, 80), rng.integers(0, 5, 80), rng.integers(1, 3, 80), strict=True)
        )
    ]
    plan = plan_of(**weight)
    value = (
        evaluate(plan, World(plan, rows).tallies(tuple(range(80))), ZeroNoise())["ask 0"].estimates[0].value
    )
    kept = [(r["y"], r["z"], r["w"] if weight else 1) for r in rows if r["z"] is not None]
    n = sum(w for _, _, w in kept)
    a, b = (round(sum(w * v for *vs, w in kept for v in [vs[i]]) / n) for i in (0, 1))
    above = sum(w * (y - a) * (z - b) for y, z, w in kept)
    below = sqrt(sum(w * (y - a) ** 2 for y, _, w in kept) * sum(w * (z - b) ** 2 for _, z, w in kept))
    assert abs(float(value) - above / below) < 1e-11


@pytest.fixture
def remembered(monkeypatch) -> None:
    """Half-widths depend on public numbers alone: equal ones are computed once."""
    monkeypatch.setattr(pivot, "ratio_half_width", lru_cache(100_000)(pivot.ratio_half_width))
    monkeypatch.setattr(pivot, "_NARROWINGS", 12)


@pytest.mark.parametrize("size", [None, 400])
def test_intervals_cover_as_often_as_they_say(size, remembered):
    """120 runs at 80 %, seeded; so many misses would come by chance below 1e-9. Near one, where the cut is."""
    rows = [{"y": i % 4 - 1, "z": (i % 4 + (i % 9 == 0)) % 5, "w": 1} for i in range(400)]
    plan = plan_of(**({"size": size} if size else {}))
    known = World(plan, rows).tallies(tuple(range(400)))
    y, z = [r["y"] for r in rows], [r["z"] for r in rows]
    exact, level = float(np.corrcoef(y, z)[0, 1]), Fraction(8, 10)
    noise, misses = QuickNoise(np.random.default_rng(2)), 0
    for _ in range(120):
        estimate = evaluate(plan, known, noise)["ask 0"].estimates[0]
        low, high = estimate.interval(level)
        assert -1 <= low <= high <= 1 and -1 <= estimate.value <= 1
        misses += not float(low) <= exact <= float(high)
    assert binom.sf(misses - 1, 120, 0.2) >= ALARM


def test_noise_that_leaves_no_squares_gives_zero_and_everything():
    """Nothing fails, whatever is drawn."""
    for output in (-(10**9), -1, 0, 1, 10**9):
        plan = plan_of()
        estimate = evaluate(plan, World(plan, CORNERS[:3]).tallies((0, 1, 2)), Prescribed(output))["ask 0"]
        value, (low, high) = estimate.estimates[0].value, estimate.estimates[0].interval(Fraction(95, 100))
        assert -1 <= low <= high <= 1 and -1 <= value <= 1
