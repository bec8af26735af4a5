"""Amplification by sampling, and parallel composition over pieces of a survey.

**A secret sample.** What is a promise about it worth to everybody it was drawn from? Two designs have a theorem here: a
sample of fixed size without replacement, and one in which each respondent of the frame is taken on their own with the same
probability. What is run on one sample is composed first and amplified once: the mechanisms share the draw. Amounts of what
is promised are rounded up, amounts of what may be spent down.

**Pieces.** One mechanism on each: what do the results promise together, and how far off is each one? The cut may be made by
lot, into pieces of fixed or of random sizes, or by the respondents' own values. Pieces are worked out for pure promises.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Literal

from flint import arb, ctx

from reticent.errors import PlanError, nearest
from reticent.exact import ball
from reticent.privacy.claim import Change, Claim, compose
from reticent.privacy.convert import ball_down, ball_up, rounded_up

PAGE = "proofs/privacy/amplify.md"
BITS = 256


class SamplingDesign(StrEnum):
    """How the sample was drawn. Who was drawn must stay secret, and the draw must not look at the rows."""

    SIMPLE = "simple"
    POISSON = "poisson"


REFUSED = {
    "stratified": "strata are read off the rows: one changed answer moves a respondent to another stratum and with it "
    "the rates of everybody there, and an allocation that looks at the rows can make privacy worse than no sampling",
    "cluster": "neighbours are drawn together, so to be in the sample says much about a whole cluster, and the gain "
    "vanishes as clusters grow",
    "systematic": "the draw has one random start, and the order of the frame can tell who is in",
    "proportional": "the probabilities are read off the rows, so one answer moves the rates of all",
    "replacement": "one respondent may be drawn several times, and the guarantee to a group of copies is needed",
    "quota": "who is in depends on who answered before, which is not a chance that anybody has computed",
}


def design_of(name: str) -> SamplingDesign:
    """The design called `name`; any other is refused, with the reason where it is a known one."""
    if name in REFUSED:
        raise PlanError(
            f"{name} sampling is not amplified: {REFUSED[name]}; claim the guarantee of the sample itself.",
            field="design",
        )
    if name not in tuple(SamplingDesign):
        hint = nearest(name, [*SamplingDesign, *REFUSED])
        raise PlanError(f"{name[:40]!r} is none of {', '.join(SamplingDesign)}{hint}.", field="design")
    return SamplingDesign(name)


def amplified(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """log(1 + rate (e^epsilon - 1)), rounded up.

    Guarantee   pure DP of an epsilon-DP mechanism run on a secret sample.
    Adjacency   replace, for `rate` n' of n records without replacement; add/remove, for records drawn one by one.
    Theorem     THEORY 5.1 (Balle, Barthe and Gaboardi 2018); THEORY 4.1 with one attribute.
    Proof       proofs/privacy/amplify.md
    Assumes     the mechanism is epsilon-DP for that same change; the draw is independent of the rows and secret.
    Keeps back  who was drawn.
    """
    _check(epsilon, rate)
    if rate == 1:
        return epsilon
    with ctx.workprec(BITS):
        return ball_up(_log_mean_exp(ball(epsilon), ball(rate)))


def allowed(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """log(1 + (e^epsilon - 1)/rate), rounded down: what may be spent on the sample to promise epsilon.

    Guarantee   `amplified` of the result is at most epsilon.
    Adjacency   as for `amplified`.
    Theorem     THEORY 5.1, solved for the mechanism's epsilon.
    Proof       proofs/privacy/amplify.md
    Assumes     as for `amplified`.
    Keeps back  who was drawn.
    """
    _check(epsilon, rate)
    if rate == 1:
        return epsilon
    with ctx.workprec(BITS):
        return ball_down((ball(epsilon).expm1() / ball(rate)).log1p())


def amplified_both_ways(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """log((1 - rate + rate e^epsilon)/(1 - rate + rate e^-epsilon)), rounded up.

    Guarantee   pure DP of an epsilon-DP mechanism run on a secret sample of records drawn one by one.
    Adjacency   replace for the frame; the mechanism itself is epsilon-DP for add/remove.
    Theorem     THEORY 4.6 with one attribute.
    Proof       proofs/privacy/amplify.md
    Assumes     the draw is independent of the rows and secret.
    Keeps back  who was drawn.
    """
    _check(epsilon, rate)
    if rate == 1:
        return 2 * epsilon
    with ctx.workprec(BITS):
        e, p = ball(epsilon), ball(rate)
        return ball_up(_log_mean_exp(e, p) - _log_mean_exp(-e, p))


def allowed_both_ways(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """What may be spent on the sample, against adding or removing, to promise epsilon against replacing.

    Guarantee   `amplified_both_ways` of the result is at most epsilon.
    Adjacency   as for `amplified_both_ways`.
    Theorem     THEORY 4.6, solved for the mechanism's epsilon.
    Proof       proofs/privacy/amplify.md
    Assumes     as for `amplified_both_ways`.
    Keeps back  who was drawn.
    """
    _check(epsilon, rate)
    if rate == 1:
        return epsilon / 2
    with ctx.workprec(BITS):
        # With y = e^(the result) - 1 and t = e^epsilon - 1: p y^2 + b y - t = 0. Either form of the root is
        # right; the one taken is that in which nothing cancels.
        p, t = ball(rate), ball(epsilon).expm1()
        b = 2 * p - (1 - p) * t
        root = (b * b + 4 * p * t).sqrt()
        found = ball_down((2 * t / (b + root) if b > 0 else (root - b) / (2 * p)).log1p())
    if not found:
        raise PlanError(f"it is {epsilon}, which leaves nothing of 12 places to spend.", field="epsilon")
    return found


def thesis_bound(*, epsilon: Fraction, rate: Fraction) -> Fraction:
    """log(1 + rate e^epsilon/(1 - rate)), rounded up: a published bound for comparison, above `amplified` by -log(1 - rate).

    It is valid (Merrill 2021, theorem 5.5.1), and below epsilon only for rates below `thesis_largest_rate`.
    """
    _check(epsilon, rate)
    if rate == 1:
        raise PlanError("it is 1, where this bound is infinite; use amplified().", field="rate")
    with ctx.workprec(BITS):
        p = ball(rate)
        return ball_up((p * ball(epsilon).exp() / (1 - p)).log1p())


def thesis_largest_rate(*, epsilon: Fraction) -> Fraction:
    """(e^epsilon - 1)/(2 e^epsilon - 1), rounded down: at larger rates `thesis_bound` is no gain."""
    _check(epsilon, Fraction(1))
    with ctx.workprec(BITS):
        gain = ball(epsilon).expm1()
        return ball_down(gain / (2 * gain + 1))


def amplify(claims: Iterable[Claim], *, rate: Fraction, design: SamplingDesign, change: Change) -> Claim:
    """The promise to the whole frame of all `claims` made on one sample of it. They are composed first.

    Guarantee   the returned claim.
    Adjacency   `change`: replace for `simple`, either for `poisson`.
    Theorem     THEORY 5.1, 4.1, 4.4 and 4.6.
    Proof       proofs/privacy/amplify.md
    Assumes     all claims are about the same one sample; the draw is independent of the rows and secret.
    Keeps back  who was drawn.
    """
    whole = compose(claims)
    _check_claim(whole)
    made = _simple(whole, rate, change) if design is SamplingDesign.SIMPLE else _poisson(whole, rate, change)
    source = ("THEORY 5.1" if design is SamplingDesign.SIMPLE else "THEORY 4.1 and 4.6", PAGE)
    return replace(made, about="the frame it was drawn from", rests_on=(*whole.rests_on, source))


def _simple(whole: Claim, rate: Fraction, change: Change) -> Claim:
    if change is not Change.REPLACE:
        raise PlanError(
            "a sample of fixed size has a rate that depends on how many respondents there are, which this change "
            "hides; protect replaced answers, or draw each respondent on their own.",
            field="change",
        )
    return _weakened(whole.under(Change.REPLACE), rate)


def _poisson(whole: Claim, rate: Fraction, change: Change) -> Claim:
    if whole.change is not Change.ADD_REMOVE:
        raise PlanError(
            "the size of this sample is random, and a guarantee against replaced answers does not cover it: such a "
            "mechanism may tell when everybody was drawn; use mechanisms proved for adding or removing.",
            field="change",
        )
    if change is Change.ADD_REMOVE or whole.measure != "pure":
        return _weakened(whole, rate).under(change)
    return replace(whole, epsilon=amplified_both_ways(epsilon=whole.epsilon, rate=rate), change=change)


def _weakened(whole: Claim, rate: Fraction) -> Claim:
    delta = rounded_up(rate * whole.delta)
    return replace(whole, epsilon=amplified(epsilon=whole.epsilon, rate=rate), delta=delta)


def _check_claim(whole: Claim) -> None:
    if whole.measure not in ("pure", "approximate"):
        way = (
            "convert it to (epsilon, delta) first"
            if whole.measure == "zcdp"
            else "it guarantees nothing formal"
        )
        raise PlanError(f"a guarantee in {whole.measure} is not amplified; {way}.", field="measure")
    if whole.about != "the incomplete data held":
        raise PlanError(
            "the guarantee is amplified already; begin with that of the mechanism.", field="about"
        )


def _check(epsilon: Fraction, rate: Fraction) -> None:
    if not epsilon > 0:
        raise PlanError(f"it is {epsilon}, but must be positive.", field="epsilon")
    if not 0 < rate <= 1:
        raise PlanError(f"it is {rate}, but is a share of the frame: above 0 and at most 1.", field="rate")


def _log_mean_exp(exponent: arb, chance: arb) -> arb:
    """log(1 + chance (e^exponent - 1)), without losing a small one."""
    return (chance * exponent.expm1()).log1p()


PIECES_PAGE = "proofs/privacy/pieces.md"
KEY = "the key of the partition"
KEY_GROUND = ("THEORY 5.2 over a secret cut", PIECES_PAGE)
Sizes = Literal["fixed", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece: its share of the respondents, and the promise of all that is released from it, if anything is."""

    share: Fraction
    claim: Claim | None

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise PlanError(f"it is {self.share}, but must lie above 0 and at most at 1.", field="share")
        if self.claim is not None and self.claim.measure != "pure":
            raise PlanError("pieces are worked out for pure guarantees only.", field="measure")
        if self.claim is not None and self.claim.about != "the incomplete data held":
            raise PlanError("the guarantee is amplified already; give that of the mechanism.", field="about")


def by_lot(pieces: Sequence[Piece], *, sizes: Sizes, change: Change) -> Claim:
    """The promise of all that is released, when chance alone decides who is in which piece.

    With `fixed` sizes every cut into pieces of those sizes is as likely as any other; with `random` ones every
    respondent is put into a piece on their own, with its share as the chance. Pieces of which nothing is
    released are listed too: shares add up to 1.

    Guarantee   the returned claim.
    Adjacency   `change`: replace for fixed sizes, either for random ones.
    Theorem     THEORY 5.2 and 5.1; THEORY 4.1 and 4.6 for random sizes.
    Proof       proofs/privacy/pieces.md
    Assumes     the lot is independent of the rows and secret; each piece's mechanism reads that piece alone.
    Keeps back  who is in which piece.
    """
    claims = _released(pieces)
    if sum(piece.share for piece in pieces) != 1:
        raise PlanError(
            "the shares of the pieces do not add up to 1; list those not released too.", field="share"
        )
    if sizes == "fixed":
        return _fixed(claims, sum((p.share for p in pieces if p.claim), Fraction(0)), change)
    return _random(pieces, claims, change)


def by_values(claims: Sequence[Claim], *, change: Change, within: Sequence[Fraction] | None = None) -> Claim:
    """The promise of all pieces, when the respondents' own values decide who is in which.

    A replaced answer may move a respondent to another piece, or change what they say inside their own. `within`
    gives each mechanism's epsilon against the latter, where something better than twice its own is known; 0
    where the piece tells all that the mechanism reads.

    Guarantee   the largest epsilon against adding or removing; against replacing the two largest together, or the
                largest of `within` if that is more.
    Adjacency   `change`; the mechanisms are proved for adding or removing.
    Theorem     THEORY 5.2 (parallel composition), with changes inside a piece counted too.
    Proof       proofs/privacy/pieces.md
    Assumes     the rule that cuts is public and looks at one respondent at a time.
    Keeps back  nothing more than the mechanisms do.
    """
    parts = _released([Piece(share=Fraction(1), claim=claim) for claim in claims])
    if any(claim.change is not Change.ADD_REMOVE for claim in parts):
        raise PlanError(
            "a changed value takes a respondent from one piece to another, which adds and removes; use mechanisms "
            "proved for that.",
            field="change",
        )
    largest = sorted((claim.epsilon for claim in parts), reverse=True)
    inside = [2 * claim.epsilon for claim in parts] if within is None else list(within)
    if len(inside) != len(parts) or min(inside) < 0:
        raise PlanError("give one amount for each piece, none of them negative.", field="within")
    moved = max(sum(largest[:2], Fraction(0)), *inside)
    return _claim(parts, largest[0] if change is Change.ADD_REMOVE else moved, change)


def _fixed(claims: list[Claim], share: Fraction, change: Change) -> Claim:
    if change is not Change.REPLACE:
        raise PlanError(
            "pieces of fixed sizes presume how many respondents there are, which this change hides; protect replaced "
            "answers, or let every respondent fall into a piece on their own.",
            field="change",
        )
    largest = max(claim.under(Change.REPLACE).epsilon for claim in claims)
    made = _claim(claims, amplified(epsilon=largest, rate=share), change, shared=share < 1)
    return resting_on_key(made)


def _random(pieces: Sequence[Piece], claims: list[Claim], change: Change) -> Claim:
    if any(claim.change is Change.REPLACE for claim in claims):
        if change is Change.ADD_REMOVE:
            raise PlanError(
                "a guarantee against replacing says nothing of adding or removing.", field="change"
            )
        # The same lot for both neighbours: one answer changes, in one piece.
        made = _claim(claims, max(claim.under(change).epsilon for claim in claims), change)
        return resting_on_key(made)
    with ctx.workprec(BITS):
        epsilon = _log_mean_over(pieces, sign=1)
        if change is Change.REPLACE:
            epsilon = epsilon - _log_mean_over(pieces, sign=-1)
        found = ball_up(epsilon)
    largest = max(claim.under(change).epsilon for claim in claims)  # rounding up may not pass it
    return resting_on_key(_claim(claims, min(found, largest), change, shared=True))


def _log_mean_over(pieces: Sequence[Piece], *, sign: int) -> arb:
    """log of the mean of e^(sign epsilon) over the pieces, 0 where nothing is released."""
    gain = sum((ball(p.share) * ball(sign * p.claim.epsilon).expm1() for p in pieces if p.claim), arb(0))
    return gain.log1p()


def resting_on_key(claim: Claim) -> Claim:
    """The same promise, saying that it rests on a lot that no reader of the releases can follow."""
    if claim.measure == "observed":  # it promises nothing, with the key or without
        return claim
    grounds = tuple(dict.fromkeys([*claim.rests_on, KEY_GROUND]))
    return replace(claim, secret=KEY, rests_on=grounds)


def _released(pieces: Sequence[Piece]) -> list[Claim]:
    claims = [piece.claim for piece in pieces if piece.claim is not None]
    if not claims:
        raise PlanError("no piece is released; there is nothing to guarantee.", field="claims")
    return claims


def _claim(claims: list[Claim], epsilon: Fraction, change: Change, *, shared: bool = False) -> Claim:
    return replace(
        claims[0],
        epsilon=epsilon,
        change=change,
        about="the frame it was drawn from" if shared else "the incomplete data held",
        arithmetic="exact" if all(c.arithmetic == "exact" for c in claims) else "ideal reals",
        rests_on=tuple(
            dict.fromkeys([*(pair for c in claims for pair in c.rests_on), ("THEORY 5.2", PIECES_PAGE)])
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceError:
    """Two variances of a mean from one piece: of having asked `size` people only, and of the privacy noise."""

    sampling: float
    noise: float

    @property
    def sd(self) -> float:
        """The standard deviation of both together."""
        return math.sqrt(self.sampling + self.noise)


def piece_error(*, size: int, of: int, sd: float, width: float, epsilon: Fraction) -> PieceError:
    """How far the mean of a piece of `size` out of `of` respondents is from the mean of all, from public numbers.

    `sd` is what the planner expects of the spread among all respondents (divisor `of` - 1), `width` the declared
    upper less lower bound; the mean gets Laplace noise at `epsilon` against replaced answers. With nothing
    left out the first variance is 0.
    """
    if not 1 <= size <= of:
        raise PlanError(
            f"the piece has {size} of {of} respondents; it needs one, and not more than all.", field="size"
        )
    if not (sd >= 0 and width > 0 and epsilon > 0):
        raise PlanError("sd is 0 or more, width and epsilon are positive.", field="sd")
    scale = width / (size * float(epsilon))
    return PieceError(sampling=sd * sd / size * (1 - size / of), noise=2 * scale * scale)
