"""What a reader can learn at most: the exact chance of every noisy answer, on two surveys that are neighbours."""

from collections.abc import Iterator
from fractions import Fraction

import pytest
from flint import arb, ctx

from reticent.engine.wants import Ring
from reticent.errors import PlanError
from reticent.exact import ball
from reticent.plan.plan import Plan
from reticent.release.statistics import wants_of
from tests.attacks.donors_laws import Cauchy, Lomax, law_of, loss, loss_beyond
from tests.attacks.donors_pairs import PAIRS
from tests.attacks.donors_surveys import calls_of, close_engines, plan_of, tallied
from tests.doubles import Call
from tests.tables import Row, book, make_plan


@pytest.fixture(scope="module", autouse=True)
def _closing() -> Iterator[None]:
    yield
    close_engines()


def largest_loss(one: Call, other: Call) -> arb:
    """Over all steps that there are: one by one between the answers and around them, and in one bound beyond."""
    here, there = law_of(one), law_of(other)
    low, high = (int(end(here.answer, there.answer)) for end in (min, max))
    around = loss(here, there, range(low - 3, high + 4))
    return max(around, loss_beyond(here, there, low - 3, high + 3), key=float)


CHOSEN = [("nearest", i) for i in (0, 1, 3, 8)] + [("several", i) for i in (3, 4, 8)]


# covers T07 T08
def test_no_step_of_the_grid_tells_more_than_epsilon() -> None:
    """Every question of plans at epsilon 2 an ask, on seven pairs; somewhere more than a quarter of it is used."""
    shares = []
    for kind, place in CHOSEN:
        plan, pair = plan_of(kind, epsilon="2", asks=(0, 1, 2, 3)), PAIRS[place]
        for one, other in zip(*(calls_of(plan, rows, 2) for rows in (pair.here, pair.there)), strict=True):
            if one.beta is not None:
                told = largest_loss(one, other)
                assert told <= ball(one.epsilon), pair.name
                shares.append(float(told) / float(one.epsilon))
    assert len(shares) >= 28 and max(shares) > 0.25


# --- the published mechanism, on the two surveys of THEORY 3.6 -------------------------------------------------------------

SITES = {"x": {"kind": "integer", "bounds": [-1000, 1000]}, "y": {"kind": "integer", "bounds": [0, 1]}}
EACH = 50
FEWER: list[Row] = [
    *({"x": x, "y": 0} for x in (1, -1000)),
    *({"x": x, "y": None} for x in (0, 10) for _ in range(EACH)),
]
MORE: list[Row] = [{"x": 9, "y": 1}, *FEWER]
PRINTED = {"0.25": "0.93777", "0.5": "0.90112", "0.75": "0.87394", "0.85": "0.86504"}


def sites(epsilon: str, bound: str = "hubs") -> Plan:
    repair = [{"method": "donors", "column": "y", "match": ["x"], "default": 0, "bound": bound}]
    return make_plan([{"count": "*", "where": "y = 1"}], book(SITES), epsilon=epsilon, repair=repair)


def published(rows: list[Row], epsilon: str) -> Cauchy:
    """The naive twin: scale (1 + L_1)/ln 2 and gamma = 1 + epsilon/(2 ln 2), as printed, from our own rings."""
    plan = sites(epsilon, "newcomer")
    tallies, known = tallied(plan, rows)
    ring = next(want for want in wants_of(plan) if isinstance(want, Ring))
    answer = next(iter(tallies.statistics.sums.values()))
    with ctx.workprec(200):
        ln2 = arb(2).log()
        scale = (1 + known.hubs(ring).first) / ln2
        return Cauchy(Fraction(answer), scale, 1 + ball(Fraction(epsilon)) / (2 * ln2))


def sharpest(one: Cauchy, other: Cauchy) -> arb:
    """The largest loss over whole steps, looked at in hundredths of a step."""
    at = max(range(20, 120), key=lambda step: float(loss(one, other, [step])))
    return loss(one, other, range(100 * at - 100, 100 * at + 101), Fraction(1, 100))


# covers T07 T19
@pytest.mark.parametrize("epsilon", PRINTED)
def test_the_published_mechanism_tells_more_than_it_claims_and_ours_does_not(epsilon: str) -> None:
    """One donor of 103 respondents comes or goes, and with it fifty donees; the same code measures both losses."""
    here, there = (published(rows, epsilon) for rows in (MORE, FEWER))
    assert (here.answer, there.answer) == (EACH + 1, 0)
    told = sharpest(here, there)
    assert told > ball(Fraction(epsilon)) and f"{float(told):.5f}" == PRINTED[epsilon]
    for bound in ("hubs", "newcomer"):
        one, other = (calls_of(sites(epsilon, bound), rows, 2)[0] for rows in (MORE, FEWER))
        assert largest_loss(one, other) <= ball(Fraction(epsilon))
    with pytest.raises(PlanError, match="2 ln 2"):
        wants_of(sites(epsilon, "published"))


def test_the_same_code_finds_a_scale_that_is_a_little_too_small() -> None:
    """The twin: ours at nine tenths of its scale, where the whole of epsilon is used."""
    one, other = (calls_of(sites("0.5"), rows, 2)[0] for rows in (MORE, FEWER))
    laws = [law_of(call) for call in (one, other)]
    tight = [Lomax(Fraction(0), laws[0].scale, 8), Lomax(Fraction(one.sensitivity), laws[0].scale, 8)]
    short = [Lomax(law.answer, law.scale * Fraction(9, 10), law.m) for law in tight]
    near = range(-3000, 3000, 10)
    assert loss(*tight, near) <= ball(one.epsilon) and loss(*short, near) > ball(one.epsilon)
