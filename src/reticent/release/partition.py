"""Read the `[partition]` section of a plan: into which pieces a survey is cut by lot, and which one this release reads.

Who is in which piece follows from a key that the ledger draws and keeps; a plan holds none. With fixed sizes
every cut into pieces of those sizes is equally likely; or each respondent falls into a piece on their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate, pairwise
from json import dumps
from math import ceil
from typing import Any

from pydantic import Field

from reticent.answer.base import Answer, Estimate, Interval
from reticent.decimals import read_decimal, show
from reticent.engine.lots import BITS, Lot
from reticent.errors import PlanError
from reticent.privacy.claim import Change
from reticent.privacy.ledger import Piece
from reticent.privacy.ledger.cuts import DRAWS
from reticent.query.kinds import Count, Derived, Margin, Query, Total
from reticent.schema import Schema
from reticent.schema.codebook import ROW
from reticent.tomlfile import Section, fill
from reticent.words import nearest

FIXED, CHANCE = DRAWS
WHOLE = 2**BITS


class PartitionSection(Section):
    name: str = Field(min_length=1, max_length=100)
    piece: int = Field(ge=1)
    pieces: int | None = Field(default=None, ge=2, le=1000)
    shares: list[str] | None = Field(default=None, min_length=2, max_length=1000)
    draw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The piece a release reads: which respondents, by rank or by chance, and their share of the survey, exactly."""

    piece: Piece
    first: int
    last: int
    share: Fraction

    @property
    def scale(self) -> Fraction:
        """What a count or total of the piece is multiplied by, to speak of the whole survey."""
        return 1 / self.share

    @property
    def is_fixed(self) -> bool:
        return self.piece.draw == FIXED

    def lot(self, key: str) -> Lot:
        """The lot under the ledger's key."""
        return Lot(key=key, first=self.first, last=self.last, chance=not self.is_fixed)

    def rows(self, rows: int | None) -> int | None:
        """How many respondents to expect in the piece."""
        return None if rows is None else ceil(rows * self.share)

    @property
    def words(self) -> str:
        drawn = "of fixed size" if self.is_fixed else "into which respondents fell on their own"
        of = f"{self.piece.number} of {len(self.piece.parts)}"
        return (
            f"piece {of} of the partition {self.piece.partition!r}, {drawn}, by lot; counts and totals are multiplied "
            f"by {show(self.scale, digits=6)} to speak of the whole survey"
        )


def read_partition(
    raw: Mapping[str, Any] | None, schema: Schema, codebook: Mapping[str, Any], change: Change
) -> Partition | None:
    """The piece of a plan; None where it reads the whole survey."""
    if raw is None:
        return None
    section = fill(PartitionSection, raw, error=PlanError, at="partition")
    draw = _draw(section, schema, change)
    if draw == FIXED and schema.sample_size is not None:
        whole = schema.sample_size
        ends = _ends(section, whole)
        parts = tuple(str(b - a) for a, b in pairwise(ends))
    else:
        whole = WHOLE
        ends = _ends(section, whole)
        parts = tuple(str(end) for end in ends[1:])
    if any(b <= a for a, b in pairwise(ends)):
        raise PlanError("leaves a piece without respondents; cut into fewer", field="partition")
    piece = Piece(
        partition=section.name, number=section.piece, parts=parts, draw=draw, binds=_binds(schema, codebook)
    )
    first, last = ends[section.piece - 1], ends[section.piece]
    return Partition(piece=piece, first=first, last=last, share=Fraction(last - first, whole))


def _draw(section: PartitionSection, schema: Schema, change: Change) -> str:
    """Fixed sizes presume how many respondents there are: only where that is public."""
    public = change is Change.REPLACE and schema.sample_size is not None
    draw = section.draw if section.draw is not None else FIXED if public else CHANCE
    if draw not in DRAWS:
        raise PlanError(f"is one of: {'; '.join(DRAWS)}{nearest(draw, DRAWS)}", field="partition.draw")
    if draw == FIXED and not public:
        raise PlanError(
            f"pieces of fixed sizes presume how many respondents there are; declare survey.sample_size and protect "
            f"{Change.REPLACE.value!r}, or write draw = {CHANCE!r}",
            field="partition.draw",
        )
    return draw


def _ends(section: PartitionSection, whole: int) -> list[int]:
    """Where pieces end, from 0 up to `whole`, each end rounded down."""
    if (section.pieces is None) == (section.shares is None):
        raise PlanError("says pieces = 10 for equal ones, or the shares of each", field="partition.pieces")
    if section.pieces is not None:
        shares = [Fraction(1, section.pieces)] * section.pieces
    else:
        shares = [_share(text, place) for place, text in enumerate(section.shares or ())]
        if sum(shares) != 1:
            raise PlanError("add up to 1; list pieces that are not released too", field="partition.shares")
    return [0, *(int(end * whole) for end in accumulate(shares))]


def _share(text: str, place: int) -> Fraction:
    share = read_decimal(text)
    if share is None or not 0 < share < 1:
        raise PlanError("is a decimal between 0 and 1", field=f"partition.shares[{place}]")
    return share


def _binds(schema: Schema, codebook: Mapping[str, Any]) -> str:
    """A digest of what labels are made of: all columns of the codebook, and who is a respondent."""
    made = [schema.name, schema.unit, schema.at_most if schema.unit != ROW else 1, codebook.get("columns")]
    return sha256(dumps(made, sort_keys=True, default=str).encode()).hexdigest()


def check_partition(partition: Partition | None, query: Query, size: int | None, field: str) -> None:
    """A public size is that of the whole survey, and a piece's own is not public."""
    if partition is not None and size is not None and not isinstance(query, Derived):
        raise PlanError("a public size is that of the whole survey, not of a piece; remove it", field=field)


def scaled(answer: Answer, query: Query, partition: Partition | None) -> Answer:
    """The answer as it speaks of the whole survey: counts, totals and tables multiplied, quotients as they are."""
    if partition is None or not isinstance(query, Count | Total | Margin):
        return answer
    return replace(answer, estimates=tuple(_scaled(each, partition.scale) for each in answer.estimates))


def _scaled(estimate: Estimate, scale: Fraction) -> Estimate:
    def interval(level: Fraction) -> Interval:
        low, high = estimate.interval(level)
        return low * scale, high * scale

    within = estimate.sampling
    factor = float(scale)
    return replace(
        estimate,
        value=estimate.value * scale,
        interval=interval,
        noise_sd=None if estimate.noise_sd is None else estimate.noise_sd * factor,
        sampling=None if within is None else lambda effect: within(effect) * factor * factor,
    )
