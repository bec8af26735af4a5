"""The `[partition]` section of a plan as it is written, and the piece it stands for."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from pydantic import Field

from reticent.decimals import show
from reticent.engine.lots import Lot
from reticent.privacy.claim import Change
from reticent.privacy.ledger import ChargedPiece
from reticent.privacy.ledger.cuts import BEFORE, CHANCE, FIXED, VALUES
from reticent.tomlfile import Section

KEY_SECRET = {
    FIXED: (
        "charges of other pieces do not add to it while nobody who reads the releases knows the ledger's key; with the key "
        "one replaced answer can exchange a respondent in every piece, and all charges add up"
    ),
    CHANCE: (
        "it holds while nobody who reads the releases knows the ledger's key; with the key one replaced answer can take a "
        "respondent out of one piece and into another, and both are charged"
    ),
}
"""What a promise against replaced answers rests on, in a piece by lot."""


class PartitionSection(Section):
    name: str = Field(min_length=1, max_length=100)
    piece: int | str
    pieces: int | None = Field(default=None, ge=2, le=1000)
    shares: list[str] | None = Field(default=None, min_length=2, max_length=1000)
    by: str | None = None
    groups: list[list[str | int]] | None = Field(default=None, min_length=2, max_length=1000)
    frame: list[int] | None = Field(default=None, max_length=1000)
    sizes: list[int] | None = Field(default=None, max_length=1000)
    draw: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A piece of a frame that was cut before anybody was drawn: `size` of its `piece` people were, of `whole` in all."""

    size: int
    piece: int
    whole: int

    @property
    def share(self) -> Fraction:
        """Of the whole frame, the part that this release reads."""
        return Fraction(self.size, self.whole)

    @property
    def rate(self) -> Fraction:
        """Of the piece's own people, the part that was drawn."""
        return Fraction(self.size, self.piece)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """The piece a release reads: which respondents, by rank, by chance or by a column, and what share they stand for.

    `share` is exact: of the survey for a piece by lot, of the frame for a piece of one, and 1 for a piece by
    values, which speaks of itself alone.
    """

    piece: ChargedPiece
    share: Fraction
    first: int = 0
    last: int = 0
    column: str | None = None
    codes: tuple[int, ...] = ()
    frame: Frame | None = None

    @property
    def scale(self) -> Fraction:
        """What a count or total of the piece is multiplied by, to speak of the whole."""
        return 1 / self.share

    @property
    def is_fixed(self) -> bool:
        return self.piece.draw == FIXED

    @property
    def is_by_values(self) -> bool:
        return self.piece.draw == VALUES

    def secret(self, change: Change) -> str:
        """What the promise of a piece by lot rests on; nothing where it holds given the lot."""
        return KEY_SECRET.get(self.piece.draw, "") if change is Change.REPLACE else ""

    def lot(self, key: str) -> Lot:
        """The lot under the ledger's key; by a column the key does not matter."""
        if self.column is not None:
            return Lot(key=key, column=self.column, codes=self.codes)
        return Lot(key=key, first=self.first, last=self.last, chance=not self.is_fixed)

    def rows(self, expected: int | None, sample_size: int | None) -> int | None:
        """How many respondents to expect in the piece; by values, as many as the plan says it expects."""
        if self.is_by_values:
            return expected
        if self.frame is not None:
            return self.frame.size
        rows = expected or sample_size
        return None if rows is None else ceil(rows * self.share)

    @property
    def words(self) -> str:
        of = f"piece {self.piece.number} of {len(self.piece.parts)} of the partition {self.piece.partition!r}"
        times = show(self.scale, digits=6)
        if self.is_by_values:
            return f"{of}, by the answers in {self.column}; it speaks of those respondents alone"
        if self.piece.draw == BEFORE:
            return (
                f"{of}, into which the frame was cut by lot before anybody was drawn; {self.column} is not protected; "
                f"counts and totals are multiplied by {times} to speak of the whole frame"
            )
        drawn = "of fixed size" if self.is_fixed else "into which respondents fell on their own"
        return (
            f"{of}, {drawn}, by lot; counts and totals are multiplied by {times} to speak of the whole survey"
        )
