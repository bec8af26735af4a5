"""Smooth bounds of filled surveys, by brute force: every survey of up to five records of a tiny domain."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import pytest

from reticent.engine.wants import Tallies
from reticent.exact import ball
from reticent.plan.plan import Plan
from reticent.prepare.distance import Distances, distances_of
from reticent.prepare.repair import Donors
from reticent.release.statistics import evaluate, wants_of
from reticent.schema import Schema
from reticent.sensitivity import bounds as lad
from reticent.sensitivity.bounds import Smooth
from reticent.sensitivity.donors import Moves
from reticent.sensitivity.hubs import HubCache
from tests.answer import donating
from tests.answer.donating import World
from tests.attacks.donors_surveys import Prescribed, close_engines, tally
from tests.tables import book, make_plan

COLUMNS = {
    "g": {"kind": "integer", "bounds": [0, 2]},
    "y": {"kind": "integer", "bounds": [-1, 2]},
    "z": {"kind": "integer", "bounds": [0, 2]},
    "w": {"kind": "integer", "bounds": [0, 2], "role": "weight"},
}
QUERIES: list[dict[str, Any]] = [
    {"count": "*", "where": "y > 0"},
    {"total": "y", "weight": "w"},
    {"proportion": "y > 0"},
    {"mean": "y", "where": "z >= 1"},
    {"variance": "y"},
    {"correlation": ["y", "z"]},
]
TYPES = {
    "whole": [(0, -1, 2, 1), (1, 2, 0, 2), (2, -1, 1, 0)],
    "holed": [(0, -1, 2, 1), (0, None, 0, 2), (1, None, None, 1), (2, 2, None, 2)],
}
BETAS = [Fraction("0.05"), Fraction("0.3"), Fraction(1)]
MOST, RUNGS = 5, 9
Survey = tuple[int, ...]
"""How many records there are of each type."""


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    close_engines()


def plan_of(k: int) -> Plan:
    donors = {"method": "donors", "bound": "hubs", "match": ["g"], "k": k}
    repair = [{**donors, "column": "y", "default": 2}, {**donors, "column": "z", "default": 0}]
    return make_plan(QUERIES, book(COLUMNS), repair=repair)


Served = tuple[tuple[Fraction, tuple[int, ...]], ...]
"""c1 and V_0, V_1, ... of each ring."""
Rule = Callable[[Fraction, Served, Fraction], Fraction]


class Noting(HubCache):
    """A book that notes c0 and what is served, question by question, and bounds nothing."""

    def __init__(self, tallies: Tallies, plan: Plan) -> None:
        super().__init__(tallies, plan.schema, plan.repair)
        self.asked: list[tuple[Fraction, Served]] = []

    def bound(self, moves: Moves, *, epsilon: Fraction) -> Smooth:
        served = tuple((c1, tuple(map(self.hubs(ring).serves, range(RUNGS)))) for ring, c1 in moves.c1)
        self.asked.append((moves.c0, served))
        return Smooth(bound=Fraction(1), beta=epsilon / 8)


@cache
def smooth(c0: Fraction, served: Served, beta: Fraction) -> Fraction:
    """The bound: rungs as listed, then on as the last two. With so few records they are on a line by then."""
    rungs = rungs_of(c0, served)
    slope = rungs[-1] - rungs[-2]
    line = lad.LadderLine(base=rungs[-1] - slope * (RUNGS - 1), slope=slope)
    if any(line.at(k) < rung for k, rung in enumerate(rungs)):
        raise ValueError("the last rung listed is not yet on the line")
    return lad.smooth_bound(lad.listed(rungs, line=line), beta).bound


@cache
def first_rung(c0: Fraction, served: Served, beta: Fraction) -> Fraction:
    """The twin: what one respondent moves now, whatever others may do."""
    return rungs_of(c0, served)[0]


def rungs_of(c0: Fraction, served: Served) -> list[Fraction]:
    return [c0 + sum(c1 * v[k] for c1, v in served) for k in range(RUNGS)]


@dataclass(frozen=True)
class Found:
    """The exact answers to all questions with a smooth bound, and what bounds them."""

    answers: list[Fraction]
    asked: list[tuple[Fraction, Served]]

    def bounds(self, beta: Fraction, rule: Rule) -> list[Fraction]:
        return [rule(c0, served, beta) for c0, served in self.asked]


def found_in(plan: Plan, tallies: Tallies) -> Found:
    noise, noting = Prescribed(2), Noting(tallies, plan)
    evaluate(plan, tallies, noise, book=noting)
    answers = [Fraction(call.answers[0]) for call in noise.calls if call.kind == "lomax"]
    return Found(answers, noting.asked)


class Domain:
    """Everybody who could be there: records of a few types, six of each."""

    def __init__(self, types: list[tuple[int | None, ...]], plan: Plan) -> None:
        self.types, self.plan = types, plan
        everybody = [dict(zip("gyzw", each, strict=True)) for each in types for _ in range(MOST + 1)]
        self.world = World(plan, everybody)
        self.known: dict[Survey, Found] = {}

    def surveys(self) -> list[Survey]:
        return [each for each in product(range(MOST + 1), repeat=len(self.types)) if sum(each) <= MOST]

    def labels(self, survey: Survey) -> tuple[int, ...]:
        """Of equal records the first ones are there."""
        return tuple((MOST + 1) * kind + i for kind, count in enumerate(survey) for i in range(count))

    def rows(self, survey: Survey) -> list[dict[str, int | None]]:
        return [dict(self.world.people[label]) for label in self.labels(survey)]

    def found(self, survey: Survey) -> Found:
        if survey not in self.known:
            self.known[survey] = found_in(self.plan, self.world.tallies(self.labels(survey)))
        return self.known[survey]

    def pairs(self) -> Iterator[tuple[Survey, Survey]]:
        """Every survey of up to five records, with every survey that has one record more."""
        for here in self.surveys():
            for kind in range(len(self.types)):
                yield here, (*here[:kind], here[kind] + 1, *here[kind + 1 :])


@cache
def domain_of(types: str, k: int) -> Domain:
    return Domain(TYPES[types], plan_of(k))


@pytest.fixture(autouse=True)
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a plan wants and how far its cells are apart is found once, not for every survey."""
    wanted: dict[str, Any] = {}
    near: dict[Donors, Distances] = {}

    def once(plan: Plan) -> Any:
        if plan.digest not in wanted:
            wanted[plan.digest] = wants_of(plan)
        return wanted[plan.digest]

    def apart(donors: Donors, schema: Schema) -> Distances:
        if donors not in near:  # one codebook for all
            near[donors] = distances_of(donors, schema)
        return near[donors]

    monkeypatch.setattr(donating, "wants_of", once)
    monkeypatch.setattr(donating, "distances_of", apart)


def wrong(domain: Domain, beta: Fraction, rule: Rule = smooth) -> set[str]:
    """Whether some answer moves past a bound, or some bound drifts by more than e^beta, in any pair."""
    bounds = {survey: domain.found(survey).bounds(beta, rule) for pair in domain.pairs() for survey in pair}
    found = set[str]()
    for here, there in domain.pairs():
        found |= faults(domain.found(here), domain.found(there), (bounds[here], bounds[there]), beta)
    return found


def faults(
    one: Found, other: Found, bounds: tuple[list[Fraction], list[Fraction]], beta: Fraction
) -> set[str]:
    found, most = set[str](), growth(beta)
    for a, b, s, t in zip(one.answers, other.answers, *bounds, strict=True):
        if abs(a - b) > min(s, t):
            found.add("moved too far")
        if s > most * t or t > most * s:
            found.add("drifted too far")
    return found


@cache
def growth(beta: Fraction) -> Fraction:
    """A rational at or just below e^beta."""
    mantissa, exponent = (int(part) for part in ball(beta).exp().lower().man_exp())
    return mantissa * Fraction(2) ** exponent


# covers T08 T19
@pytest.mark.parametrize(("types", "k"), [("holed", 1), ("holed", 2), ("whole", 1)])
def test_bounds_cover_every_neighbour_and_drift_slowly(types: str, k: int) -> None:
    """Surveys of up to five records, 126 of them with gaps and 56 without, and all that have one record more; every
    smooth sum of six statistics; three betas."""
    domain = domain_of(types, k)
    assert len(domain.surveys()) == {"holed": 126, "whole": 56}[types]
    assert all(wrong(domain, beta) == set() for beta in BETAS)


# covers T19
def test_the_first_rung_alone_is_found_out() -> None:
    """It covers, and drifts too fast."""
    assert [wrong(domain_of("holed", 1), beta, first_rung) for beta in BETAS[:2]] == [{"drifted too far"}] * 2


# covers T08 T19
def test_the_engine_keeps_to_it_on_a_sample() -> None:
    """Three surveys and one record more in each: sums and rings are the engine's, whose places are its own."""
    plan, domain = plan_of(1), domain_of("holed", 1)
    for survey in domain.surveys()[20::40]:
        more = (*survey[:3], survey[3] + 1)
        one, other = (found_in(plan, tally(plan, domain.rows(each))) for each in (survey, more))
        for beta in BETAS:
            bounds = one.bounds(beta, smooth), other.bounds(beta, smooth)
            assert faults(one, other, bounds, beta) == set()
