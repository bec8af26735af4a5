"""A survey cut into pieces, one mechanism on each: what the results promise together, and how far off each one is.

The cut may be made by lot, into pieces of fixed or of random sizes, or by the respondents' own values. Pieces
are worked out for pure promises.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from flint import arb, ctx

from reticent.balls import ball
from reticent.errors import PlanError
from reticent.privacy.amplify import BITS, amplified
from reticent.privacy.claim import Change, Claim
from reticent.privacy.convert import ball_up

PAGE = "proofs/privacy/pieces.md"
KEY = "the key of the partition"
KEY_GROUND = ("THEORY 5.2 over a secret cut", PAGE)
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
            raise PlanError("pieces are worked out for pure promises only.", field="measure")
        if self.claim is not None and self.claim.about != "the incomplete data held":
            raise PlanError("the promise is amplified already; give that of the mechanism.", field="about")


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
            raise PlanError("a promise against replacing says nothing of adding or removing.", field="change")
        # The same lot for both neighbours: one answer changes, in one piece.
        made = _claim(claims, max(claim.under(change).epsilon for claim in claims), change)
        return resting_on_key(made)
    with ctx.workprec(BITS):
        epsilon = _log_mean_exp(pieces, sign=1)
        if change is Change.REPLACE:
            epsilon = epsilon - _log_mean_exp(pieces, sign=-1)
        found = ball_up(epsilon)
    largest = max(claim.under(change).epsilon for claim in claims)  # rounding up may not pass it
    return resting_on_key(_claim(claims, min(found, largest), change, shared=True))


def _log_mean_exp(pieces: Sequence[Piece], *, sign: int) -> arb:
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
        raise PlanError("no piece is released; there is nothing to promise.", field="claims")
    return claims


def _claim(claims: list[Claim], epsilon: Fraction, change: Change, *, shared: bool = False) -> Claim:
    return replace(
        claims[0],
        epsilon=epsilon,
        change=change,
        about="the frame it was drawn from" if shared else "the incomplete data held",
        arithmetic="exact" if all(c.arithmetic == "exact" for c in claims) else "ideal reals",
        rests_on=tuple(dict.fromkeys([*(pair for c in claims for pair in c.rests_on), ("THEORY 5.2", PAGE)])),
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
